// Attention of one new token for each sequence over a paged cache of keys and values: a block of threads for each head of each
// sequence goes through all of its tokens, with their weights in shared memory.

#include "common/cache.cuh"
#include "common/op.cuh"
#include "common/paged_attention.cuh"

namespace opwalker_ref {

// Grid: (num_heads, num_seqs).
template <typename scalar_t, typename cache_t>
__global__ void __launch_bounds__(kAttentionThreads) paged_attention_v1_kernel(
    scalar_t* __restrict__ out,               // [num_seqs, num_heads, head_size]
    const scalar_t* __restrict__ query,       // [num_seqs, num_heads, head_size]
    const float* __restrict__ alibi_slopes,   // [num_heads]
    PagedCache<cache_t> cache, int64_t query_stride, int num_kv_heads, int head_size, float scale) {
  extern __shared__ float shared[];
  const int num_heads = gridDim.x;
  const int head = blockIdx.x;
  const int seq = blockIdx.y;
#ifndef OPWALKER_WRONG_HEADS_MODULO
  const int kv_head = head / (num_heads / num_kv_heads);
#else
  const int kv_head = head % num_kv_heads;
#endif
  attend<scalar_t, cache_t>(out + (static_cast<int64_t>(seq) * num_heads + head) * head_size,
                            query + seq * query_stride + head * head_size, cache, seq, kv_head, head_size, 0,
                            cache.seq_lens[seq], scale, alibi_slopes == nullptr ? 0.0f : alibi_slopes[head], shared);
}

void paged_attention_v1(Tensor& out,                // [num_seqs, num_heads, head_size]
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
  const bool fp8 = is_fp8(kv_cache_dtype, query, key_cache, "paged_attention_v1");
  check_paged_attention(query, key_cache, value_cache, block_tables, seq_lens, num_kv_heads, block_size,
                        blocksparse_vert_stride, "paged_attention_v1");
  STD_TORCH_CHECK(num_seqs <= 65535, "paged_attention_v1: more sequences than a grid has rows");
  STD_TORCH_CHECK(out.is_contiguous(), "paged_attention_v1: out must be contiguous");
  if (query.numel() == 0) return;

  const DeviceGuard guard(query.get_device_index());
  const cudaStream_t stream = current_stream(query);
  const dim3 grid(static_cast<unsigned>(num_heads), static_cast<unsigned>(num_seqs));
  const int shared = static_cast<int>((head_size + max_seq_len) * sizeof(float));
  DISPATCH_CACHE_TYPES(query.scalar_type(), fp8, "paged_attention_v1", [&] {
    const auto cache =
        paged_cache<cache_t>(key_cache, value_cache, block_tables, seq_lens, k_scale, v_scale, block_size);
    const auto* slopes = alibi_slopes.has_value() ? floats_of(*alibi_slopes, "paged_attention_v1", "alibi_slopes") : nullptr;
    // More than 48 KiB of shared memory has to be asked for; more than a multiprocessor has is refused.
    check_cuda(cudaFuncSetAttribute(paged_attention_v1_kernel<scalar_t, cache_t>,
                                    cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
               "paged_attention_v1");
    paged_attention_v1_kernel<scalar_t, cache_t><<<grid, kAttentionThreads, shared, stream>>>(
        static_cast<scalar_t*>(out.data_ptr()), static_cast<const scalar_t*>(query.data_ptr()), slopes, cache,
        query.stride(0), static_cast<int>(num_kv_heads), static_cast<int>(head_size), static_cast<float>(scale));
    check_launch("paged_attention_v1");
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "paged_attention_v1(Tensor! out, Tensor query, Tensor key_cache, Tensor value_cache, int num_kv_heads, float scale, "
      "Tensor block_tables, Tensor seq_lens, int block_size, int max_seq_len, Tensor? alibi_slopes, str kv_cache_dtype, "
      "Tensor k_scale, Tensor v_scale, int tp_rank, int blocksparse_local_blocks, int blocksparse_vert_stride, "
      "int blocksparse_block_size, int blocksparse_head_sliding_step) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("paged_attention_v1", TORCH_BOX(&opwalker_ref::paged_attention_v1));
}
