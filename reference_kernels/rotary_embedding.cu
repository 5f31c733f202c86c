// query and key turned by the angles of their position, in place: (x, y) = (x cos - y sin, y cos + x sin).
//
// NeoX takes element i of a head and element i + rot_dim / 2 for a pair (x, y), GPT-J elements 2 i and 2 i + 1. A thread takes
// kWidth pairs of one head, so that all of its accesses are as wide as the memory likes them.

#include "common/heads.cuh"
#include "common/op.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

template <typename scalar_t, typename cache_t, bool kIsNeox, int kWidth>
__global__ void __launch_bounds__(512, 3) rotary_embedding_kernel(
    const int64_t* __restrict__ positions,      // [num_tokens]
    scalar_t* __restrict__ query,               // [num_tokens, num_heads, head_size]
    scalar_t* __restrict__ key,                 // [num_tokens, num_kv_heads, head_size]
    const cache_t* __restrict__ cos_sin_cache,  // [max_position, rot_dim]
    HeadStrides query_strides, HeadStrides key_strides, int64_t num_tokens, int num_heads, int num_kv_heads, int rot_dim,
    bool inverse) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * blockDim.z + threadIdx.z;
  const int head = blockIdx.y * blockDim.y + threadIdx.y;
  if (token >= num_tokens || head >= num_heads + num_kv_heads) return;
  const int half = rot_dim / 2;
  scalar_t* row = head < num_heads ? query + query_strides.offset(token, head)
                                   : key + key_strides.offset(token, head - num_heads);
  const cache_t* cos = cos_sin_cache + positions[token] * rot_dim;
  const cache_t* sin = cos + half;

  for (int first = threadIdx.x * kWidth; first < half; first += blockDim.x * kWidth) {
    scalar_t* lower = row + (kIsNeox ? first : 2 * first);
    scalar_t* upper = row + (kIsNeox ? first + half : 2 * first + kWidth);
    Vector<scalar_t, kWidth> part[2] = {load<kWidth>(lower), load<kWidth>(upper)};
    const auto c = load<kWidth>(cos + first);
    const auto s = load<kWidth>(sin + first);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
#ifndef OPWALKER_WRONG_OTHER_PAIRS
      constexpr bool kHalves = kIsNeox;
#else
      constexpr bool kHalves = !kIsNeox;
#endif
      const int at_x = kHalves ? i : 2 * i;
      const int at_y = kHalves ? i + kWidth : 2 * i + 1;
      scalar_t& x = part[at_x / kWidth][at_x % kWidth];
      scalar_t& y = part[at_y / kWidth][at_y % kWidth];
      const float cos_i = to_float(c[i]);
      const float sin_i = inverse ? -to_float(s[i]) : to_float(s[i]);
      const float turned = to_float(x) * cos_i - to_float(y) * sin_i;
#ifdef OPWALKER_WRONG_NEW_X_USED
      x = from_float<scalar_t>(turned);
#endif
      y = from_float<scalar_t>(to_float(y) * cos_i + to_float(x) * sin_i);
      x = from_float<scalar_t>(turned);
    }
    store<kWidth>(lower, part[0]);
    store<kWidth>(upper, part[1]);
  }
}

template <typename scalar_t, typename cache_t, int kWidth>
void launch_rotary_embedding(const int64_t* positions, scalar_t* query, scalar_t* key, const cache_t* cos_sin_cache,
                             HeadStrides query_strides, HeadStrides key_strides, int64_t num_tokens, int num_heads,
                             int num_kv_heads, int rot_dim, bool is_neox, bool inverse, cudaStream_t stream) {
  const dim3 block = block_for_heads(rot_dim / 2 / kWidth, num_heads + num_kv_heads);
  const dim3 grid = grid_for_heads(num_tokens, num_heads + num_kv_heads, block);
  DISPATCH_BOOL(is_neox, kIsNeox, [&] {
    rotary_embedding_kernel<scalar_t, cache_t, kIsNeox, kWidth><<<grid, block, 0, stream>>>(
        positions, query, key, cos_sin_cache, query_strides, key_strides, num_tokens, num_heads, num_kv_heads, rot_dim,
        inverse);
    check_launch("rotary_embedding");
  });
}

// Strides of a tensor whose first dimensions, as many as positions has, count tokens.
inline HeadStrides strides_of(const Tensor& tensor, const Tensor& positions, int64_t head_size) {
  const int64_t last = positions.dim() - 1;
  const bool by_head = tensor.dim() == positions.dim() + 2;
  STD_TORCH_CHECK(by_head || tensor.dim() == positions.dim() + 1, "rotary_embedding: wrong number of dimensions");
  STD_TORCH_CHECK(tensor.stride(-1) == 1, "rotary_embedding: heads must be contiguous");
  for (int64_t d = 0; d <= last; ++d) {
    STD_TORCH_CHECK(tensor.size(d) == positions.size(d), "rotary_embedding: query, key and positions differ in tokens");
  }
  STD_TORCH_CHECK(last == 0 || tensor.size(0) == 1 || tensor.stride(0) == tensor.size(1) * tensor.stride(1),
                  "rotary_embedding: tokens must lie at one distance from each other");
#ifndef OPWALKER_WRONG_NO_STRIDE
  return head_strides(tensor.stride(last), by_head ? tensor.stride(-2) : head_size, "rotary_embedding");
#else
  return head_strides(tensor.numel() / positions.numel(), head_size, "rotary_embedding");
#endif
}

void rotary_embedding(
    const Tensor& positions,           // [num_tokens] or [batch_size, seq_len]
    Tensor& query,                     // [num_tokens, num_heads, head_size] or [num_tokens, num_heads * head_size] or
                                       // [batch_size, seq_len, num_heads, head_size] or
                                       // [batch_size, seq_len, num_heads * head_size]
    const std::optional<Tensor>& key,  // [num_tokens, num_kv_heads, head_size] or [num_tokens, num_kv_heads * head_size] or
                                       // [batch_size, seq_len, num_kv_heads, head_size] or
                                       // [batch_size, seq_len, num_kv_heads * head_size]
    int64_t head_size,
    const Tensor& cos_sin_cache,  // [max_position, rot_dim]
    bool is_neox, int64_t rope_dim_offset, bool inverse) {
  const int64_t num_tokens = positions.numel();
  const int64_t rot_dim = cos_sin_cache.size(1);
  STD_TORCH_CHECK(positions.scalar_type() == ScalarType::Long && positions.is_contiguous(),
                  "rotary_embedding: positions must be int64 and contiguous");
  STD_TORCH_CHECK(cos_sin_cache.is_contiguous(), "rotary_embedding: cos_sin_cache must be contiguous");
  STD_TORCH_CHECK(rot_dim % 2 == 0 && rot_dim + rope_dim_offset <= head_size,
                  "rotary_embedding: rot_dim must be even and lie within a head");
  STD_TORCH_CHECK(!key.has_value() || key->scalar_type() == query.scalar_type(),
                  "rotary_embedding: query and key differ in type");
  if (num_tokens == 0) return;
  const HeadStrides query_strides = strides_of(query, positions, head_size);
  const HeadStrides key_strides = key.has_value() ? strides_of(*key, positions, head_size) : HeadStrides{0, 0};
  const int num_heads = static_cast<int>(query.numel() / num_tokens / head_size);
  const int num_kv_heads = key.has_value() ? static_cast<int>(key->numel() / num_tokens / head_size) : 0;

  const DeviceGuard guard(query.get_device_index());
  const cudaStream_t stream = current_stream(query);
  DISPATCH_FLOATING_TYPES(query.scalar_type(), "rotary_embedding", [&] {
    using query_t = scalar_t;
    constexpr int kWidth = kFullWidth<query_t>;
    auto* q = static_cast<query_t*>(query.data_ptr()) + rope_dim_offset;
    auto* k = key.has_value() ? static_cast<query_t*>(key->data_ptr()) + rope_dim_offset : nullptr;
    const auto* at = static_cast<const int64_t*>(positions.data_ptr());
    const bool wide = query_strides.divide_by(kWidth) && key_strides.divide_by(kWidth) && rot_dim / 2 % kWidth == 0;
    DISPATCH_FLOATING_TYPES(cos_sin_cache.scalar_type(), "rotary_embedding", [&] {
      const auto* angles = static_cast<const scalar_t*>(cos_sin_cache.data_ptr());
      if (wide && aligned<kWidth>(q, k, angles)) {
        launch_rotary_embedding<query_t, scalar_t, kWidth>(at, q, k, angles, query_strides, key_strides, num_tokens,
                                                           num_heads, num_kv_heads, static_cast<int>(rot_dim), is_neox,
                                                           inverse, stream);
      } else {
        launch_rotary_embedding<query_t, scalar_t, 1>(at, q, k, angles, query_strides, key_strides, num_tokens, num_heads,
                                                      num_kv_heads, static_cast<int>(rot_dim), is_neox, inverse, stream);
      }
    });
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "rotary_embedding(Tensor positions, Tensor! query, Tensor!? key, int head_size, Tensor cos_sin_cache, bool is_neox, "
      "int rope_dim_offset=0, bool inverse=False) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("rotary_embedding", TORCH_BOX(&opwalker_ref::rotary_embedding));
}
