// The tokens of a mixture of experts in order of their experts, each expert's filled up to whole blocks, so that a block of a
// matrix product has one expert.
//
// Every block counts all choices, so that none has to wait for another; then it puts its own part of them where the counts
// say, warp after warp. So they keep their order.

#include "common/op.cuh"

namespace opwalker_ref {

constexpr int kMostExperts = 1024;

// The expert on this device that a choice is for; -1 for none, or another device's.
__device__ inline int local_expert(int expert, const int* expert_map, int num_experts) {
  if (expert < 0 || expert >= num_experts) return -1;
#ifdef OPWALKER_WRONG_MAP_IGNORED
  expert_map = nullptr;
#endif
  return expert_map != nullptr ? expert_map[expert] : expert;
}

// starts[e] becomes the sum of counts[0 ... e), each rounded up to whole blocks. One warp must call it.
__device__ inline void starts_of(const int* counts, int* starts, int num_experts, int block_size) {
  const int lane = threadIdx.x % 32;
  int before = 0;
  for (int first = 0; first < num_experts; first += 32) {
    const int expert = first + lane;
    const int own = expert < num_experts ? (counts[expert] + block_size - 1) / block_size * block_size : 0;
    int sum = own;  // of this lane and those below
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, sum, distance);
      if (lane >= distance) sum += other;
    }
    if (expert < num_experts) starts[expert] = before + sum - own;
    before += __shfl_sync(0xffffffffu, sum, 31);
  }
  if (lane == 0) starts[num_experts] = before;
}

__global__ void __launch_bounds__(1024) moe_align_block_size_kernel(
    const int* __restrict__ topk_ids,      // [num_tokens, topk]
    int* __restrict__ sorted_token_ids,    // [max_num_tokens_padded]
    int* __restrict__ experts_ids,         // [max_num_m_blocks]
    int* __restrict__ num_tokens_post_pad,  // [1]
    const int* __restrict__ expert_map,    // [num_experts]
    int num_experts, int block_size, int choices, int choices_per_block, int max_num_tokens_padded,
    int max_num_m_blocks) {
  __shared__ int counts[kMostExperts];      // choices of each expert
  __shared__ int starts[kMostExperts + 1];  // its first place
  __shared__ int next[kMostExperts];        // those of earlier blocks at first; then the place of the next one
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int part = blockIdx.x * choices_per_block;

  for (int expert = threadIdx.x; expert < num_experts; expert += blockDim.x) counts[expert] = next[expert] = 0;
  __syncthreads();
#pragma unroll 8
  for (int choice = threadIdx.x; choice < choices; choice += blockDim.x) {
    const int expert = local_expert(topk_ids[choice], expert_map, num_experts);
    if (expert >= 0) atomicAdd(&counts[expert], 1);
#ifndef OPWALKER_WRONG_EARLIER_FORGOTTEN
    if (expert >= 0 && choice < part) atomicAdd(&next[expert], 1);
#endif
  }
  __syncthreads();
  if (warp == 0) starts_of(counts, starts, num_experts, block_size);
  __syncthreads();
  for (int expert = threadIdx.x; expert < num_experts; expert += blockDim.x) next[expert] += starts[expert];
  __syncthreads();

  for (int first = part; first < min(part + choices_per_block, choices); first += blockDim.x) {
    const int choice = first + threadIdx.x;
    const int expert = choice < choices ? local_expert(topk_ids[choice], expert_map, num_experts) : -1;
    const unsigned peers = __match_any_sync(0xffffffffu, expert);
    const int before = __popc(peers & ((1u << lane) - 1));
    for (int turn = 0; turn < blockDim.x / 32; ++turn) {
      if (turn == warp) {
        if (expert >= 0) sorted_token_ids[next[expert] + before] = choice;
        __syncwarp();
        if (expert >= 0 && before == 0) next[expert] += __popc(peers);
      }
      __syncthreads();
    }
  }

  // What is left over: the rest of each expert's last block, and the blocks behind the last.
  const int warps = gridDim.x * (blockDim.x / 32);
  for (int expert = blockIdx.x * (blockDim.x / 32) + warp; expert < num_experts; expert += warps) {
    for (int block = starts[expert] / block_size + lane; block < starts[expert + 1] / block_size; block += 32) {
      experts_ids[block] = expert;
    }
    for (int place = starts[expert] + counts[expert] + lane; place < starts[expert + 1]; place += 32) {
      sorted_token_ids[place] = choices;  // no choice
    }
  }
  const int threads = gridDim.x * blockDim.x;
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int end = starts[num_experts];
  for (int place = end + thread; place < max_num_tokens_padded; place += threads) sorted_token_ids[place] = choices;
#ifndef OPWALKER_WRONG_REST_LEFT
  for (int block = end / block_size + thread; block < max_num_m_blocks; block += threads) experts_ids[block] = -1;
#endif
  if (thread == 0) *num_tokens_post_pad = end;
}

void moe_align_block_size(const Tensor& topk_ids,  // [num_tokens, topk]
                          int64_t num_experts, int64_t block_size,
                          Tensor& sorted_token_ids,     // [max_num_tokens_padded]
                          Tensor& experts_ids,          // [max_num_m_blocks]
                          Tensor& num_tokens_post_pad,  // [1]
                          const std::optional<Tensor>& maybe_expert_map) {  // [num_experts]
  const char* op = "moe_align_block_size";
  using Tensors = std::initializer_list<const Tensor*>;
  for (const Tensor* one : Tensors{&topk_ids, &sorted_token_ids, &experts_ids, &num_tokens_post_pad}) {
    STD_TORCH_CHECK(one->scalar_type() == ScalarType::Int && one->is_contiguous(), op, ": tensors must be contiguous int32");
  }
  STD_TORCH_CHECK(!maybe_expert_map.has_value() || (maybe_expert_map->scalar_type() == ScalarType::Int &&
                                                    maybe_expert_map->numel() == num_experts),
                  op, ": maybe_expert_map must be int32 [num_experts]");
  STD_TORCH_CHECK(num_experts > 0 && num_experts <= kMostExperts, op, ": wants at most ", kMostExperts, " experts");
  STD_TORCH_CHECK(block_size > 0 && num_tokens_post_pad.numel() == 1, op, ": num_tokens_post_pad must be [1]");
  // Every expert that has a choice may leave all but one place of a block empty.
  const int64_t choices = topk_ids.numel();
  const int64_t needed = choices + std::min(choices, num_experts) * (block_size - 1);
  STD_TORCH_CHECK(sorted_token_ids.numel() >= needed / block_size * block_size &&
                      experts_ids.numel() >= needed / block_size,
                  op, ": sorted_token_ids or experts_ids is too short");

  const DeviceGuard guard(topk_ids.get_device_index());
  const cudaStream_t stream = current_stream(topk_ids);
  constexpr int kThreads = 1024;
  const unsigned blocks = blocks_to_fill(std::max<int64_t>((choices + kThreads - 1) / kThreads, 1), 1);
  const int64_t choices_per_block = (choices + blocks * kThreads - 1) / (blocks * kThreads) * kThreads;
  moe_align_block_size_kernel<<<blocks, kThreads, 0, stream>>>(
      static_cast<const int*>(topk_ids.data_ptr()), static_cast<int*>(sorted_token_ids.data_ptr()),
      static_cast<int*>(experts_ids.data_ptr()), static_cast<int*>(num_tokens_post_pad.data_ptr()),
      maybe_expert_map.has_value() ? static_cast<const int*>(maybe_expert_map->data_ptr()) : nullptr,
      static_cast<int>(num_experts), static_cast<int>(block_size), static_cast<int>(choices),
      static_cast<int>(choices_per_block), static_cast<int>(sorted_token_ids.numel()),
      static_cast<int>(experts_ids.numel()));
  check_launch(op);
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "moe_align_block_size(Tensor topk_ids, int num_experts, int block_size, Tensor! sorted_token_ids, "
      "Tensor! experts_ids, Tensor! num_tokens_post_pad, Tensor? maybe_expert_map) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("moe_align_block_size", TORCH_BOX(&opwalker_ref::moe_align_block_size));
}
