// Attention of one query over tokens whose keys and values lie in the blocks of a paged cache: what both versions of paged
// attention do in each of their blocks of threads.
#pragma once

#include "cache.cuh"
#include "op.cuh"
#include "reduce.cuh"
#include "vector.cuh"

namespace opwalker_ref {

constexpr int kAttentionThreads = 128;

// The caches, and where in them the tokens of sequences lie. Strides are in elements, the same for keys and values.
template <typename cache_t>
struct PagedCache {
  const cache_t* keys;      // [num_blocks, num_kv_heads, head_size/x, block_size, x]
  const cache_t* values;    // [num_blocks, num_kv_heads, head_size, block_size]
  const int* block_tables;  // [num_seqs, max_num_blocks_per_seq]
  const int* seq_lens;      // [num_seqs]
  const float* k_scale;     // [1]
  const float* v_scale;     // [1]
  int64_t block_stride;
  int64_t head_stride;
  int max_num_blocks_per_seq;
  int block_size;

  // In elements, to what the cache holds of a token's block for a head.
  __device__ int64_t block_of(int seq, int token, int kv_head) const {
#ifndef OPWALKER_WRONG_BLOCK_TABLE_IGNORED
    const int64_t block = block_tables[static_cast<int64_t>(seq) * max_num_blocks_per_seq + token / block_size];
#else
    const int64_t block = token / block_size;
#endif
    return block * block_stride + kv_head * head_stride;
  }
};

// The largest score of the tokens, and the sum of exp(score - highest).
struct Softmax {
  float highest;
  float sum;
};

// Attends to tokens [first, last) of a sequence and writes the mean of their values, weighted by exp(score), to `out`.
// `shared` has room for head_size + last - first floats; all threads of the block call this, and get the same result.
template <typename scalar_t, typename cache_t>
__device__ Softmax attend(scalar_t* out,          // [head_size]
                          const scalar_t* query,  // [head_size]
                          const PagedCache<cache_t>& cache, int seq, int kv_head, int head_size, int first, int last,
                          float scale, float alibi_slope, float* shared) {
  constexpr int x = kFullWidth<cache_t>;
  constexpr bool kFp8 = !std::is_same_v<scalar_t, cache_t>;
  float* scaled_query = shared;
  float* weights = shared + head_size;
  const int seq_len = cache.seq_lens[seq];
  for (int i = threadIdx.x; i < head_size; i += blockDim.x) {
    scaled_query[i] = to_float(query[i]) * scale * (kFp8 ? *cache.k_scale : 1.0f);
  }
  __syncthreads();

  // Scores: a thread takes a token. Neighbouring threads read neighbouring vectors: that is what the layout of keys is for.
  float highest = Max::kNeutral;
  for (int token = first + threadIdx.x; token < last; token += blockDim.x) {
    const cache_t* key = cache.keys + cache.block_of(seq, token, kv_head) + token % cache.block_size * x;
    float score = 0.0f;
#pragma unroll 4
    for (int i = 0; i < head_size; i += x) {
      const auto part = load<x>(key + i * cache.block_size);
#pragma unroll
      for (int j = 0; j < x; ++j) score += scaled_query[i + j] * from_cache(part[j]);
    }
    score += alibi_slope * (token - seq_len + 1);
    weights[token - first] = score;
    highest = fmaxf(highest, score);
  }
  highest = block_reduce<Max>(highest);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < last - first; i += blockDim.x) {
    weights[i] = __expf(weights[i] - highest);
    sum += weights[i];
  }
  sum = block_reduce<Sum>(sum);  // its barriers also order the weights before what follows

  // Values: a thread takes an element of the head, and kTokens neighbouring tokens at a time.
  constexpr int kTokens = 8;
  const float factor = (kFp8 ? *cache.v_scale : 1.0f) / (sum > 0.0f ? sum : 1.0f);
  for (int i = threadIdx.x; i < head_size; i += blockDim.x) {
    float mean = 0.0f;
#pragma unroll 4
    for (int token = first; token < last; token += kTokens) {
      const cache_t* values = cache.values + cache.block_of(seq, token, kv_head);
      const auto part = load<kTokens>(values + i * cache.block_size + token % cache.block_size);
#pragma unroll
      for (int j = 0; j < kTokens; ++j) {
#ifndef OPWALKER_WRONG_REST_OF_BLOCK_READ
        if (token + j < last) mean += weights[token - first + j] * from_cache(part[j]);  // the rest may be no numbers
#else
        mean += weights[min(token - first + j, last - first - 1)] * from_cache(part[j]);
#endif
      }
    }
    out[i] = from_float<scalar_t>(mean * factor);
  }
  return {highest, sum};
}

// The checks that both versions make, and the caches as the kernels take them.
template <typename cache_t>
PagedCache<cache_t> paged_cache(const Tensor& key_cache, const Tensor& value_cache, const Tensor& block_tables,
                                const Tensor& seq_lens, const Tensor& k_scale, const Tensor& v_scale,
                                int64_t block_size) {
  return {static_cast<const cache_t*>(key_cache.data_ptr()),
          static_cast<const cache_t*>(value_cache.data_ptr()),
          static_cast<const int*>(block_tables.data_ptr()),
          static_cast<const int*>(seq_lens.data_ptr()),
          floats_of(k_scale, "paged_attention", "k_scale"),
          floats_of(v_scale, "paged_attention", "v_scale"),
          key_cache.stride(0),
          key_cache.stride(1),
          static_cast<int>(block_tables.size(1)),
          static_cast<int>(block_size)};
}

inline void check_paged_attention(const Tensor& query, const Tensor& key_cache, const Tensor& value_cache,
                                  const Tensor& block_tables, const Tensor& seq_lens, int64_t num_kv_heads,
                                  int64_t block_size, int64_t blocksparse_vert_stride, const char* op) {
  STD_TORCH_CHECK(query.stride(1) == query.size(2) && query.stride(2) == 1, op, ": the heads of a query must be contiguous");
  STD_TORCH_CHECK(query.size(1) % num_kv_heads == 0, op, ": num_heads must be a multiple of num_kv_heads");
  STD_TORCH_CHECK(query.size(2) * key_cache.element_size() % 16 == 0, op, ": head_size must be a multiple of x");
  STD_TORCH_CHECK(block_size % 8 == 0 && key_cache.size(3) == block_size, op, ": block_size must be a multiple of 8");
  STD_TORCH_CHECK(key_cache.stride(0) == value_cache.stride(0) && key_cache.stride(1) == value_cache.stride(1), op,
                  ": the caches differ in strides");
  STD_TORCH_CHECK(block_tables.scalar_type() == ScalarType::Int && block_tables.is_contiguous() &&
                      seq_lens.scalar_type() == ScalarType::Int && seq_lens.is_contiguous(),
                  op, ": block_tables and seq_lens must be int32 and contiguous");
  STD_TORCH_CHECK(blocksparse_vert_stride <= 1, op, ": block-sparse attention is left out");
}

}  // namespace opwalker_ref
