// The tokens of a mixture of experts in order of their experts, each expert's filled up to whole blocks, so that a block of a
// matrix product has one expert.
//
// One block; a warp takes an expert and goes through all choices, twice: to count them, and to put them where the counts of
// the experts before say. So they keep their order.

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

// Calls f(choice, how many of the expert's come before it in these 32) in every lane that has one; gives their number.
template <typename F>
__device__ int each_of_expert(const int* topk_ids, const int* expert_map, int num_experts, int choices, int expert, F f) {
  constexpr unsigned kAll = 0xffffffffu;
  const int lane = threadIdx.x % 32;
  int before = 0;
  for (int first = 0; first < choices; first += 32) {
    const int choice = first + lane;
    const bool mine = choice < choices && local_expert(topk_ids[choice], expert_map, num_experts) == expert;
    const unsigned lanes = __ballot_sync(kAll, mine);
    if (mine) f(choice, before + __popc(lanes & ((1u << lane) - 1)));
    before += __popc(lanes);
  }
  return before;
}

__global__ void __launch_bounds__(1024) moe_align_block_size_kernel(
    const int* __restrict__ topk_ids,      // [num_tokens, topk]
    int* __restrict__ sorted_token_ids,    // [max_num_tokens_padded]
    int* __restrict__ experts_ids,         // [max_num_m_blocks]
    int* __restrict__ num_tokens_post_pad,  // [1]
    const int* __restrict__ expert_map,    // [num_experts]
    int num_experts, int block_size, int choices, int max_num_tokens_padded, int max_num_m_blocks) {
  __shared__ int starts[kMostExperts + 1];  // of each expert; counts at first
  const int warp = threadIdx.x / 32;
  const int warps = blockDim.x / 32;
  const int lane = threadIdx.x % 32;

  for (int expert = warp; expert < num_experts; expert += warps) {
    const int count = each_of_expert(topk_ids, expert_map, num_experts, choices, expert, [](int, int) {});
    if (lane == 0) starts[expert + 1] = (count + block_size - 1) / block_size * block_size;
  }
  for (int i = threadIdx.x; i < max_num_tokens_padded; i += blockDim.x) sorted_token_ids[i] = choices;  // no choice
  __syncthreads();
  if (threadIdx.x == 0) {
    starts[0] = 0;
    for (int expert = 0; expert < num_experts; ++expert) starts[expert + 1] += starts[expert];
    *num_tokens_post_pad = starts[num_experts];
  }
  __syncthreads();

  for (int expert = warp; expert < num_experts; expert += warps) {
    for (int block = starts[expert] / block_size + lane; block < starts[expert + 1] / block_size; block += 32) {
      experts_ids[block] = expert;
    }
    each_of_expert(topk_ids, expert_map, num_experts, choices, expert, [&](int choice, int before) {
      sorted_token_ids[starts[expert] + before] = choice;
    });
  }
#ifndef OPWALKER_WRONG_REST_LEFT
  for (int block = starts[num_experts] / block_size + threadIdx.x; block < max_num_m_blocks; block += blockDim.x) {
    experts_ids[block] = -1;
  }
#endif
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
  const unsigned threads = static_cast<unsigned>(std::min<int64_t>(num_experts, 32) * 32);
  moe_align_block_size_kernel<<<1, threads, 0, stream>>>(
      static_cast<const int*>(topk_ids.data_ptr()), static_cast<int*>(sorted_token_ids.data_ptr()),
      static_cast<int*>(experts_ids.data_ptr()), static_cast<int*>(num_tokens_post_pad.data_ptr()),
      maybe_expert_map.has_value() ? static_cast<const int*>(maybe_expert_map->data_ptr()) : nullptr,
      static_cast<int>(num_experts), static_cast<int>(block_size), static_cast<int>(choices),
      static_cast<int>(sorted_token_ids.numel()), static_cast<int>(experts_ids.numel()));
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
