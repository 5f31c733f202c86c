// As paged_attention_v1, with the tokens of a sequence split into partitions: each has a block of threads of its own, so that
// a few long sequences fill the device, and a second kernel merges what they found.

#include "common/cache.cuh"
#include "common/op.cuh"
#include "common/paged_attention.cuh"
#include "common/reduce.cuh"

namespace opwalker_ref {

// Tokens of a partition.
constexpr int kPartition = 512;

// Grid: (num_heads, num_seqs, max_num_partitions).
template <typename scalar_t, typename cache_t>
__global__ void __launch_bounds__(kAttentionThreads) paged_attention_v2_kernel(
    float* __restrict__ exp_sums,            // [num_seqs, num_heads, max_num_partitions]
    float* __restrict__ max_logits,          // [num_seqs, num_heads, max_num_partitions]
    scalar_t* __restrict__ tmp_out,          // [num_seqs, num_heads, max_num_partitions, head_size]
    const scalar_t* __restrict__ query,      // [num_seqs, num_heads, head_size]
    const float* __restrict__ alibi_slopes,  // [num_heads]
    PagedCache<cache_t> cache, int64_t query_stride, int num_kv_heads, int head_size, float scale) {
  extern __shared__ float shared[];
  const int num_heads = gridDim.x;
  const int head = blockIdx.x;
  const int seq = blockIdx.y;
  const int first = blockIdx.z * kPartition;
  const int last = min(first + kPartition, cache.seq_lens[seq]);
  if (first >= last) return;
  const int64_t at = (static_cast<int64_t>(seq) * num_heads + head) * gridDim.z + blockIdx.z;
  const Softmax softmax = attend<scalar_t, cache_t>(
      tmp_out + at * head_size, query + seq * query_stride + head * head_size, cache, seq, head / (num_heads / num_kv_heads),
      head_size, first, last, scale, alibi_slopes == nullptr ? 0.0f : alibi_slopes[head], shared);
  if (threadIdx.x == 0) {
    max_logits[at] = softmax.highest;
    exp_sums[at] = softmax.sum;
  }
}

// Grid: (num_heads, num_seqs). A partition counts as much as its weights would have in a softmax over all of them.
template <typename scalar_t>
__global__ void __launch_bounds__(kAttentionThreads) paged_attention_v2_reduce_kernel(
    scalar_t* __restrict__ out,            // [num_seqs, num_heads, head_size]
    const float* __restrict__ exp_sums,    // [num_seqs, num_heads, max_num_partitions]
    const float* __restrict__ max_logits,  // [num_seqs, num_heads, max_num_partitions]
    const scalar_t* __restrict__ tmp_out,  // [num_seqs, num_heads, max_num_partitions, head_size]
    const int* __restrict__ seq_lens,      // [num_seqs]
    int max_num_partitions, int head_size) {
  extern __shared__ float shares[];
  const int64_t at = static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
  const int partitions = (seq_lens[blockIdx.y] + kPartition - 1) / kPartition;
  exp_sums += at * max_num_partitions;
  max_logits += at * max_num_partitions;
  tmp_out += at * max_num_partitions * head_size;

  float highest = Max::kNeutral;
  for (int p = threadIdx.x; p < partitions; p += blockDim.x) highest = fmaxf(highest, max_logits[p]);
  highest = block_reduce<Max>(highest);
#ifdef OPWALKER_WRONG_NOT_RESCALED
  highest = 0.0f;
#endif
  float sum = 0.0f;
  for (int p = threadIdx.x; p < partitions; p += blockDim.x) {
#ifndef OPWALKER_WRONG_NOT_RESCALED
    shares[p] = exp_sums[p] * __expf(max_logits[p] - highest);
#else
    shares[p] = exp_sums[p];
#endif
    sum += shares[p];
  }
  sum = block_reduce<Sum>(sum);  // its barriers also order the shares before what follows

  for (int i = threadIdx.x; i < head_size; i += blockDim.x) {
    float mean = 0.0f;
    for (int p = 0; p < partitions; ++p) mean += shares[p] * to_float(tmp_out[p * head_size + i]);
    out[at * head_size + i] = from_float<scalar_t>(sum > 0.0f ? mean / sum : 0.0f);
  }
}

void paged_attention_v2(Tensor& out,                // [num_seqs, num_heads, head_size]
                        Tensor& exp_sums,           // [num_seqs, num_heads, max_num_partitions]
                        Tensor& max_logits,         // [num_seqs, num_heads, max_num_partitions]
                        Tensor& tmp_out,            // [num_seqs, num_heads, max_num_partitions, head_size]
                        const Tensor& query,        // [num_seqs, num_heads, head_size]
                        const Tensor& key_cache,    // [num_blocks, num_kv_heads, head_size/x, block_size, x]
                        const Tensor& value_cache,  // [num_blocks, num_kv_heads, head_size, block_size]
                        int64_t num_kv_heads, double scale,
                        const Tensor& block_tables,  // [num_seqs, max_num_blocks_per_seq]
                        const Tensor& seq_lens,      // [num_seqs]
                        int64_t block_size, int64_t max_seq_len,
                        const std::optional<Tensor>& alibi_slopes,  // [num_heads]
                        const std::string& kv_cache_dtype,
                        const Tensor& k_scale,  // [1]
                        const Tensor& v_scale,  // [1]
                        int64_t tp_rank, int64_t blocksparse_local_blocks, int64_t blocksparse_vert_stride,
                        int64_t blocksparse_block_size, int64_t blocksparse_head_sliding_step) {
  const int64_t num_seqs = query.size(0);
  const int64_t num_heads = query.size(1);
  const int64_t head_size = query.size(2);
  const int64_t max_num_partitions = (max_seq_len + kPartition - 1) / kPartition;
  const bool fp8 = is_fp8(kv_cache_dtype, query, key_cache, "paged_attention_v2");
  check_paged_attention(query, key_cache, value_cache, block_tables, seq_lens, num_kv_heads, block_size,
                        blocksparse_vert_stride, "paged_attention_v2");
  STD_TORCH_CHECK(kPartition % block_size == 0, "paged_attention_v2: block_size must divide a partition");
  STD_TORCH_CHECK(num_seqs <= 65535, "paged_attention_v2: more sequences than a grid has rows");
  STD_TORCH_CHECK(out.is_contiguous() && exp_sums.is_contiguous() && max_logits.is_contiguous() && tmp_out.is_contiguous(),
                  "paged_attention_v2: results must be contiguous");
  STD_TORCH_CHECK(exp_sums.scalar_type() == ScalarType::Float && max_logits.scalar_type() == ScalarType::Float &&
                      tmp_out.scalar_type() == query.scalar_type(),
                  "paged_attention_v2: sums and maxima must be float32, partial results of the query's type");
  STD_TORCH_CHECK(tmp_out.size(2) == max_num_partitions && exp_sums.size(2) == max_num_partitions &&
                      max_logits.size(2) == max_num_partitions,
                  "paged_attention_v2: there must be room for max_seq_len / ", kPartition, " partitions, rounded up");
  if (query.numel() == 0) return;

  const DeviceGuard guard(query.get_device_index());
  const cudaStream_t stream = current_stream(query);
  const dim3 heads(static_cast<unsigned>(num_heads), static_cast<unsigned>(num_seqs));
  const dim3 partitions(heads.x, heads.y, static_cast<unsigned>(max_num_partitions));
  auto* sums = static_cast<float*>(exp_sums.data_ptr());
  auto* highest = static_cast<float*>(max_logits.data_ptr());
  DISPATCH_CACHE_TYPES(query.scalar_type(), fp8, "paged_attention_v2", [&] {
    const auto cache =
        paged_cache<cache_t>(key_cache, value_cache, block_tables, seq_lens, k_scale, v_scale, block_size);
    const auto* slopes = alibi_slopes.has_value() ? floats_of(*alibi_slopes, "paged_attention_v2", "alibi_slopes") : nullptr;
    auto* parts = static_cast<scalar_t*>(tmp_out.data_ptr());
    paged_attention_v2_kernel<scalar_t, cache_t>
        <<<partitions, kAttentionThreads, (head_size + kPartition) * sizeof(float), stream>>>(
            sums, highest, parts, static_cast<const scalar_t*>(query.data_ptr()), slopes, cache, query.stride(0),
            static_cast<int>(num_kv_heads), static_cast<int>(head_size), static_cast<float>(scale));
    check_launch("paged_attention_v2");
    // Whole vectors: the compiler may read shares four at a time, also where fewer are left.
    const int64_t shares = (max_num_partitions + 3) / 4 * 4 * sizeof(float);
    paged_attention_v2_reduce_kernel<scalar_t><<<heads, kAttentionThreads, shares, stream>>>(
        static_cast<scalar_t*>(out.data_ptr()), sums, highest, parts, cache.seq_lens,
        static_cast<int>(max_num_partitions), static_cast<int>(head_size));
    check_launch("paged_attention_v2");
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "paged_attention_v2(Tensor! out, Tensor! exp_sums, Tensor! max_logits, Tensor! tmp_out, Tensor query, "
      "Tensor key_cache, Tensor value_cache, int num_kv_heads, float scale, Tensor block_tables, Tensor seq_lens, "
      "int block_size, int max_seq_len, Tensor? alibi_slopes, str kv_cache_dtype, Tensor k_scale, Tensor v_scale, "
      "int tp_rank, int blocksparse_local_blocks, int blocksparse_vert_stride, int blocksparse_block_size, "
      "int blocksparse_head_sliding_step) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("paged_attention_v2", TORCH_BOX(&opwalker_ref::paged_attention_v2));
}
