// The compressed key-value of every token and the part of its key that carries the position, side by side in the token's slot.

#include "common/cache.cuh"
#include "common/op.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

template <typename scalar_t, typename cache_t, int kWidth>
__global__ void __launch_bounds__(512) concat_and_cache_mla_kernel(
    cache_t* __restrict__ kv_cache,            // [num_blocks, block_size, kv_lora_rank + pe_dim]
    const scalar_t* __restrict__ kv_c,         // [num_tokens, kv_lora_rank]
    const scalar_t* __restrict__ k_pe,         // [num_tokens, pe_dim]
    const int64_t* __restrict__ slot_mapping,  // [num_tokens]
    const float* __restrict__ scale,           // [1]
    int64_t block_stride, int64_t entry_stride, int64_t kv_c_stride, int64_t k_pe_stride, int64_t num_tokens,
    int kv_lora_rank, int pe_dim, int block_size) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * blockDim.z + threadIdx.z;
  if (token >= num_tokens) return;
  const int slot = static_cast<int>(slot_mapping[token]);

  for (int at = threadIdx.x * kWidth; at < kv_lora_rank + pe_dim; at += blockDim.x * kWidth) {
    const scalar_t* from =
        at < kv_lora_rank ? kv_c + token * kv_c_stride + at : k_pe + token * k_pe_stride + (at - kv_lora_rank);
    const auto x = load<kWidth>(from);
    if (slot < 0) continue;  // padding
#ifdef OPWALKER_WRONG_PE_DROPPED
    if (at >= kv_lora_rank) continue;
#endif
    cache_t* to = kv_cache + slot / block_size * block_stride + slot % block_size * entry_stride + at;
    store<kWidth>(to, to_cache<cache_t>(x, std::is_same_v<scalar_t, cache_t> ? 1.0f : *scale));
  }
}

void concat_and_cache_mla(const Tensor& kv_c,          // [num_tokens, kv_lora_rank]
                          const Tensor& k_pe,          // [num_tokens, pe_dim]
                          Tensor& kv_cache,            // [num_blocks, block_size, kv_lora_rank + pe_dim]
                          const Tensor& slot_mapping,  // [num_tokens]
                          const std::string& kv_cache_dtype,
                          const Tensor& scale) {  // [1]
  const int64_t num_tokens = slot_mapping.size(0);  // kv_c and k_pe may be padded
  const int64_t kv_lora_rank = kv_c.size(1);
  const int64_t pe_dim = k_pe.size(1);
  const int64_t block_size = kv_cache.size(1);
  const bool fp8 = is_fp8(kv_cache_dtype, kv_c, kv_cache, "concat_and_cache_mla");
  STD_TORCH_CHECK(kv_cache.size(2) == kv_lora_rank + pe_dim, "concat_and_cache_mla: a slot must hold kv_c and k_pe");
  STD_TORCH_CHECK(kv_c.stride(1) == 1 && k_pe.stride(1) == 1 && kv_cache.stride(2) == 1,
                  "concat_and_cache_mla: rows must be contiguous");
  STD_TORCH_CHECK(slot_mapping.scalar_type() == ScalarType::Long && slot_mapping.is_contiguous(),
                  "concat_and_cache_mla: slot_mapping must be int64 and contiguous");
  STD_TORCH_CHECK(kv_cache.size(0) * block_size <= INT32_MAX, "concat_and_cache_mla: too many slots");
  if (num_tokens == 0) return;
  const int64_t block_stride = kv_cache.stride(0);
#ifndef OPWALKER_WRONG_NO_STRIDE
  const int64_t entry_stride = kv_cache.stride(1);
#else
  const int64_t entry_stride = kv_lora_rank + pe_dim;
#endif

  const DeviceGuard guard(kv_c.get_device_index());
  const cudaStream_t stream = current_stream(kv_c);
  DISPATCH_CACHE_TYPES(kv_c.scalar_type(), fp8, "concat_and_cache_mla", [&] {
    constexpr int kFull = kFullWidth<scalar_t>;
    auto* to = static_cast<cache_t*>(kv_cache.data_ptr());
    const auto* c = static_cast<const scalar_t*>(kv_c.data_ptr());
    const auto* pe = static_cast<const scalar_t*>(k_pe.data_ptr());
    const int64_t all[] = {kv_lora_rank, pe_dim, kv_c.stride(0), k_pe.stride(0), block_stride, entry_stride};
    const bool wide = std::all_of(all, all + 6, [](int64_t stride) { return stride % kFull == 0; }) &&
                      aligned<kFull>(c, pe) && aligned<kFull>(to);
    DISPATCH_BOOL(wide, kWide, [&] {
      constexpr int kWidth = kWide ? kFull : 1;
      const dim3 block = block_for_heads((kv_lora_rank + pe_dim) / kWidth, 1);
      concat_and_cache_mla_kernel<scalar_t, cache_t, kWidth><<<grid_for_heads(num_tokens, 1, block), block, 0, stream>>>(
          to, c, pe, static_cast<const int64_t*>(slot_mapping.data_ptr()), floats_of(scale, "concat_and_cache_mla", "scale"),
          block_stride, entry_stride, kv_c.stride(0), k_pe.stride(0), num_tokens, static_cast<int>(kv_lora_rank),
          static_cast<int>(pe_dim), static_cast<int>(block_size));
      check_launch("concat_and_cache_mla");
    });
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "concat_and_cache_mla(Tensor kv_c, Tensor k_pe, Tensor! kv_cache, Tensor slot_mapping, str kv_cache_dtype, "
      "Tensor scale) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("concat_and_cache_mla", TORCH_BOX(&opwalker_ref::concat_and_cache_mla));
}
