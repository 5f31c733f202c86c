// The key and value of every token moved to its slot of a paged cache in which a token's elements stay together.
//
// A thread takes one vector of the key and the same one of the value; both are on their way before the slot is known.

#include "common/cache.cuh"
#include "common/op.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

// The strides of a cache, in elements: the same for keys and values, heads and tokens in either order. A block's own lie
// within 2^31 of each other.
struct CacheStrides {
  int64_t block;
  int slot;
  int head;
};

template <typename scalar_t, typename cache_t, int kWidth>
__global__ void __launch_bounds__(512) reshape_and_cache_flash_kernel(
    cache_t* __restrict__ key_cache,           // [num_blocks, block_size, num_heads, head_size]
    cache_t* __restrict__ value_cache,         // [num_blocks, block_size, num_heads, head_size]
    const scalar_t* __restrict__ key,          // [num_tokens, num_heads, head_size]
    const scalar_t* __restrict__ value,        // [num_tokens, num_heads, head_size]
    const int64_t* __restrict__ slot_mapping,  // [num_tokens]
    const float* __restrict__ k_scale,         // [1] or [num_heads]
    const float* __restrict__ v_scale,         // [1] or [num_heads]
    CacheStrides strides, int64_t key_stride, int64_t value_stride, int64_t num_tokens, int num_heads, int head_size,
    int block_size, int scale_stride) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * blockDim.z + threadIdx.z;
  const int head = blockIdx.y * blockDim.y + threadIdx.y;
  if (token >= num_tokens || head >= num_heads) return;
  const int slot = static_cast<int>(slot_mapping[token]);
  key += token * key_stride + head * head_size;
  value += token * value_stride + head * head_size;

  for (int at = threadIdx.x * kWidth; at < head_size; at += blockDim.x * kWidth) {
    const auto k = load<kWidth>(key + at);
    const auto v = load<kWidth>(value + at);
#ifndef OPWALKER_WRONG_LAST_FOR_PADDING
    if (slot < 0) return;
#else
    if (slot == 0) return;
#endif
    const int64_t to = slot / block_size * strides.block + static_cast<int64_t>(slot % block_size) * strides.slot +
                       static_cast<int64_t>(head) * strides.head + at;
    const bool converts = !std::is_same_v<scalar_t, cache_t>;
    store<kWidth>(key_cache + to, to_cache<cache_t>(k, converts ? k_scale[head * scale_stride] : 1.0f));
    store<kWidth>(value_cache + to, to_cache<cache_t>(v, converts ? v_scale[head * scale_stride] : 1.0f));
  }
}

void reshape_and_cache_flash(const Tensor& key,           // [num_tokens, num_heads, head_size]
                             const Tensor& value,         // [num_tokens, num_heads, head_size]
                             Tensor& key_cache,           // [num_blocks, block_size, num_heads, head_size]
                             Tensor& value_cache,         // [num_blocks, block_size, num_heads, head_size]
                             const Tensor& slot_mapping,  // [num_tokens]
                             const std::string& kv_cache_dtype,
                             const Tensor& k_scale,    // [1] or [num_heads]
                             const Tensor& v_scale) {  // [1] or [num_heads]
  const int64_t num_tokens = slot_mapping.size(0);  // key and value may be padded
  const int64_t num_heads = key.size(1);
  const int64_t head_size = key.size(2);
  const int64_t block_size = key_cache.size(1);
  const int64_t key_stride = key.stride(0);
  const int64_t value_stride = value.stride(0);
  const bool fp8 = is_fp8(kv_cache_dtype, key, key_cache, "reshape_and_cache_flash");
  STD_TORCH_CHECK(key.stride(1) == head_size && key.stride(2) == 1 && value.stride(1) == head_size && value.stride(2) == 1,
                  "reshape_and_cache_flash: the heads of a token must lie one behind the other");
  STD_TORCH_CHECK(slot_mapping.scalar_type() == ScalarType::Long && slot_mapping.is_contiguous(),
                  "reshape_and_cache_flash: slot_mapping must be int64 and contiguous");
  STD_TORCH_CHECK(key_cache.size(0) * block_size <= INT32_MAX, "reshape_and_cache_flash: too many slots");
  for (int64_t d = 0; d < 4; ++d) {
    STD_TORCH_CHECK(key_cache.stride(d) == value_cache.stride(d), "reshape_and_cache_flash: caches differ in strides");
  }
  STD_TORCH_CHECK(key_cache.stride(3) == 1, "reshape_and_cache_flash: heads of the caches must be contiguous");
  STD_TORCH_CHECK(k_scale.numel() == v_scale.numel() && (k_scale.numel() == 1 || k_scale.numel() == num_heads),
                  "reshape_and_cache_flash: one scale, or one for each head");
#ifndef OPWALKER_WRONG_HEAD_STRIDE
  const int64_t slot_stride = key_cache.stride(1), head_stride = key_cache.stride(2);
#else
  const int64_t slot_stride = num_heads * head_size, head_stride = head_size;
#endif
  STD_TORCH_CHECK(slot_stride <= INT32_MAX && head_stride <= INT32_MAX, "reshape_and_cache_flash: slots lie too far apart");
  const CacheStrides strides{key_cache.stride(0), static_cast<int>(slot_stride), static_cast<int>(head_stride)};
  if (num_tokens == 0 || key.numel() == 0) return;

  const DeviceGuard guard(key.get_device_index());
  const cudaStream_t stream = current_stream(key);
  DISPATCH_CACHE_TYPES(key.scalar_type(), fp8, "reshape_and_cache_flash", [&] {
    auto* to_keys = static_cast<cache_t*>(key_cache.data_ptr());
    auto* to_values = static_cast<cache_t*>(value_cache.data_ptr());
    const auto* k = static_cast<const scalar_t*>(key.data_ptr());
    const auto* v = static_cast<const scalar_t*>(value.data_ptr());
    const auto* ks = floats_of(k_scale, "reshape_and_cache_flash", "k_scale");
    const auto* vs = floats_of(v_scale, "reshape_and_cache_flash", "v_scale");
    constexpr int kFull = kFullWidth<scalar_t>;
    const int64_t all[] = {head_size, key_stride, value_stride, strides.block, strides.slot, strides.head};
    const bool wide = std::all_of(all, all + 6, [](int64_t stride) { return stride % kFull == 0; }) &&
                      aligned<kFull>(k, v) && aligned<kFull>(to_keys, to_values);
    DISPATCH_BOOL(wide, kWide, [&] {
      constexpr int kWidth = kWide ? kFull : 1;
      const dim3 block = block_for_heads(head_size / kWidth, num_heads);
      const dim3 grid = grid_for_heads(num_tokens, num_heads, block);
      reshape_and_cache_flash_kernel<scalar_t, cache_t, kWidth>
          <<<grid, block, 0, stream>>>(
              to_keys, to_values, k, v, static_cast<const int64_t*>(slot_mapping.data_ptr()), ks, vs, strides, key_stride,
              value_stride, num_tokens, static_cast<int>(num_heads), static_cast<int>(head_size),
              static_cast<int>(block_size), k_scale.numel() == 1 ? 0 : 1);
      check_launch("reshape_and_cache_flash");
    });
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "reshape_and_cache_flash(Tensor key, Tensor value, Tensor! key_cache, Tensor! value_cache, Tensor slot_mapping, "
      "str kv_cache_dtype, Tensor k_scale, Tensor v_scale) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("reshape_and_cache_flash", TORCH_BOX(&opwalker_ref::reshape_and_cache_flash));
}
