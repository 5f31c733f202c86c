// The key and value of every token moved to its slot of a paged cache, in the layouts that paged attention reads.
//
// Neighbours in the cache are tokens, neighbours in key and value are elements of a head: a token alone writes its value in
// pieces of one element. So the work goes by what is written. A first kernel notes which token goes to each slot; then a
// block takes kGroup neighbouring slots and one head, collects the rows of their tokens and writes them in whole vectors.

#include "common/cache.cuh"
#include "common/op.cuh"
#include "common/vector.cuh"

#include <numeric>

namespace opwalker_ref {

// Slots that are written together: 32 bytes of a row of value_cache at two bytes an element. All lie in one cache block.
constexpr int kGroup = 16;

// Scratch memory, filled with -1 before it is used.
struct Slots {
  int* token;     // [num_slots] the token that goes to a slot
  int* noted;     // [num_groups] 0 for a group that is in the list
  int* list;      // [num_groups] groups that some token goes to, in no order
  int* last;      // [1] index of the list's last entry
};

__global__ void note_tokens_kernel(const int64_t* __restrict__ slot_mapping,  // [num_tokens]
                                   Slots slots, int num_tokens, int group_size) {
  const int token = blockIdx.x * blockDim.x + threadIdx.x;
  if (token >= num_tokens) return;
  const int64_t slot = slot_mapping[token];
  if (slot < 0) return;  // padding
  slots.token[slot] = token;
  const int64_t group = slot / group_size;
  if (atomicExch(&slots.noted[group], 0) != 0) slots.list[atomicAdd(slots.last, 1) + 1] = static_cast<int>(group);
}

template <typename scalar_t, typename cache_t, int kWidth>
__global__ void __launch_bounds__(256) fill_slots_kernel(
    cache_t* __restrict__ key_cache,     // [num_blocks, num_heads, head_size/x, block_size, x]
    cache_t* __restrict__ value_cache,   // [num_blocks, num_heads, head_size, block_size]
    const scalar_t* __restrict__ key,    // [num_tokens, num_heads, head_size]
    const scalar_t* __restrict__ value,  // [num_tokens, num_heads, head_size]
    Slots slots, const float* __restrict__ k_scale, const float* __restrict__ v_scale, int64_t key_stride,
    int64_t value_stride, int num_heads, int head_size, int block_size, int group_size) {
  constexpr int x = kFullWidth<cache_t>;
  __shared__ int tokens[kGroup];  // the token of each slot, negative where there is none
  extern __shared__ __align__(16) char shared[];
  const int pitch = head_size + x;  // of a row in shared memory: x more, so that a column lies in different banks
  cache_t* keys = reinterpret_cast<cache_t*>(shared);
  cache_t* values = keys + kGroup * pitch;
  const bool converts = !std::is_same_v<scalar_t, cache_t>;
  const float key_scale = converts ? *k_scale : 1.0f;
  const float value_scale = converts ? *v_scale : 1.0f;

  for (int item = blockIdx.x; item < (*slots.last + 1) * num_heads; item += gridDim.x) {
    const int head = item % num_heads;
    const int64_t first_slot = static_cast<int64_t>(slots.list[item / num_heads]) * group_size;
    if (threadIdx.x < group_size) tokens[threadIdx.x] = slots.token[first_slot + threadIdx.x];
    __syncthreads();

    const int row_vectors = head_size / kWidth;
    for (int i = threadIdx.x; i < group_size * row_vectors; i += blockDim.x) {
      const int row = i / row_vectors;
      const int at = i % row_vectors * kWidth;
      const int64_t token = tokens[row];
      if (token < 0) continue;
      const auto k = load<kWidth>(key + token * key_stride + head * head_size + at);
      const auto v = load<kWidth>(value + token * value_stride + head * head_size + at);
      store<kWidth>(keys + row * pitch + at, to_cache<cache_t>(k, key_scale));
      store<kWidth>(values + row * pitch + at, to_cache<cache_t>(v, value_scale));
    }
    __syncthreads();

    const int64_t block = first_slot / block_size;
    const int offset = static_cast<int>(first_slot % block_size);
    cache_t* to_keys = key_cache + (block * num_heads + head) * head_size * block_size;
    for (int i = threadIdx.x; i < group_size * (head_size / x); i += blockDim.x) {
      const int row = i % group_size;
      const int vector = i / group_size;
      if (tokens[row] < 0) continue;
#ifndef OPWALKER_WRONG_AXES_SWAPPED
      cache_t* to = to_keys + (static_cast<int64_t>(vector) * block_size + offset + row) * x;
#else
      cache_t* to = to_keys + (static_cast<int64_t>(offset + row) * (head_size / x) + vector) * x;
#endif
      store<x>(to, load<x>(keys + row * pitch + vector * x));
    }

    cache_t* to_values = value_cache + (block * num_heads + head) * head_size * block_size + offset;
    const int vectors = (group_size + x - 1) / x;
    for (int i = threadIdx.x; i < head_size * vectors; i += blockDim.x) {
      const int row = i % vectors * x;
      const int element = i / vectors;
      cache_t* to = to_values + element * block_size + row;
      Vector<cache_t, x> vector;
      unsigned there = 0;
#pragma unroll
      for (int j = 0; j < x; ++j) {
        if (row + j >= group_size || tokens[row + j] < 0) continue;
        vector[j] = values[(row + j) * pitch + element];
        there |= 1u << j;
      }
#ifdef OPWALKER_WRONG_ALL_TAKEN_FOR_FULL
      there = (1u << x) - 1;
#endif
      if (there == (1u << x) - 1) {
        store<x>(to, vector);
      } else {
#pragma unroll
        for (int j = 0; j < x; ++j) {
          if (there >> j & 1) to[j] = vector[j];
        }
      }
    }
    __syncthreads();
  }
}

void reshape_and_cache(const Tensor& key,           // [num_tokens, num_heads, head_size]
                       const Tensor& value,         // [num_tokens, num_heads, head_size]
                       Tensor& key_cache,           // [num_blocks, num_heads, head_size/x, block_size, x]
                       Tensor& value_cache,         // [num_blocks, num_heads, head_size, block_size]
                       const Tensor& slot_mapping,  // [num_tokens]
                       const std::string& kv_cache_dtype,
                       const Tensor& k_scale,    // [1]
                       const Tensor& v_scale) {  // [1]
  const int64_t num_tokens = slot_mapping.size(0);  // key and value may be padded
  const int64_t num_heads = key.size(1);
  const int64_t head_size = key.size(2);
  const int64_t block_size = key_cache.size(3);
  const int64_t x = key_cache.size(4);
  const bool fp8 = is_fp8(kv_cache_dtype, key, key_cache, "reshape_and_cache");
  STD_TORCH_CHECK(x * key_cache.element_size() == 16 && head_size % x == 0,
                  "reshape_and_cache: x elements must be 16 bytes, and a part of a head");
  STD_TORCH_CHECK(key_cache.is_contiguous() && value_cache.is_contiguous(), "reshape_and_cache: caches must be contiguous");
  STD_TORCH_CHECK(key.stride(1) == head_size && key.stride(2) == 1 && value.stride(1) == head_size && value.stride(2) == 1,
                  "reshape_and_cache: the heads of a token must lie one behind the other");
  STD_TORCH_CHECK(slot_mapping.scalar_type() == ScalarType::Long && slot_mapping.is_contiguous(),
                  "reshape_and_cache: slot_mapping must be int64 and contiguous");
  const int64_t num_slots = key_cache.size(0) * block_size;
  STD_TORCH_CHECK(num_slots <= INT32_MAX && num_tokens * num_heads <= INT32_MAX, "reshape_and_cache: too many slots");
  if (num_tokens == 0 || key.numel() == 0) return;
#ifndef OPWALKER_WRONG_NO_STRIDE
  const int64_t key_stride = key.stride(0);
#else
  const int64_t key_stride = num_heads * head_size;
#endif

  const DeviceGuard guard(key.get_device_index());
  const cudaStream_t stream = current_stream(key);
  const int group_size = static_cast<int>(std::gcd(block_size, static_cast<int64_t>(kGroup)));
  const int64_t num_groups = num_slots / group_size;
  const int64_t scratch_size = num_slots + 2 * num_groups + 1;
  Tensor scratch = torch::stable::new_empty(key, {scratch_size}, ScalarType::Int);
  int* first = static_cast<int*>(scratch.data_ptr());
  check_cuda(cudaMemsetAsync(first, 0xff, scratch_size * sizeof(int), stream), "reshape_and_cache");
  const Slots slots{first, first + num_slots, first + num_slots + num_groups, first + num_slots + 2 * num_groups};
  const auto* mapping = static_cast<const int64_t*>(slot_mapping.data_ptr());
  const unsigned note_blocks = static_cast<unsigned>((num_tokens + 255) / 256);
  note_tokens_kernel<<<note_blocks, 256, 0, stream>>>(mapping, slots, static_cast<int>(num_tokens), group_size);
  check_launch("reshape_and_cache");

  const unsigned blocks = blocks_to_fill(num_tokens * num_heads, 8);
  DISPATCH_CACHE_TYPES(key.scalar_type(), fp8, "reshape_and_cache", [&] {
    constexpr int kWidth = kFullWidth<scalar_t>;
    auto* to_keys = static_cast<cache_t*>(key_cache.data_ptr());
    auto* to_values = static_cast<cache_t*>(value_cache.data_ptr());
    const auto* k = static_cast<const scalar_t*>(key.data_ptr());
    const auto* v = static_cast<const scalar_t*>(value.data_ptr());
    const auto* ks = floats_of(k_scale, "reshape_and_cache", "k_scale");
    const auto* vs = floats_of(v_scale, "reshape_and_cache", "v_scale");
    const size_t shared = 2 * kGroup * (head_size + x) * sizeof(cache_t);
    STD_TORCH_CHECK(shared <= 48 * 1024, "reshape_and_cache: head_size is too large");
    const bool wide = key_stride % kWidth == 0 && value.stride(0) % kWidth == 0 && aligned<kWidth>(k, v);
    DISPATCH_BOOL(wide, kWide, [&] {
      fill_slots_kernel<scalar_t, cache_t, kWide ? kWidth : 1><<<blocks, 256, shared, stream>>>(
          to_keys, to_values, k, v, slots, ks, vs, key_stride, value.stride(0), static_cast<int>(num_heads),
          static_cast<int>(head_size), static_cast<int>(block_size), group_size);
      check_launch("reshape_and_cache");
    });
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "reshape_and_cache(Tensor key, Tensor value, Tensor! key_cache, Tensor! value_cache, Tensor slot_mapping, "
      "str kv_cache_dtype, Tensor k_scale, Tensor v_scale) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("reshape_and_cache", TORCH_BOX(&opwalker_ref::reshape_and_cache));
}
