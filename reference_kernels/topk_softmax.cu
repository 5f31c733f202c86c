// The topk experts of each token by softmax of its gating logits, the likeliest first; of equal ones the first.
//
// A warp takes a token and keeps the scores of its experts in registers, as numbers that are ordered like them: the device
// has one instruction for the largest of a warp's whole numbers.

#include "common/op.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

// A number in the order of scores, as equal ones are equal; 0 is below that of any score.
__device__ inline unsigned rank_of(float score) {
  const unsigned bits = __float_as_uint(score + 0.0f);  // the two zeros are one
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// Each lane keeps kKept experts, 32 apart.
template <typename scalar_t, int kKept>
__global__ void __launch_bounds__(128) topk_softmax_kernel(
    float* __restrict__ topk_weights,             // [num_tokens, topk]
    int* __restrict__ topk_indices,               // [num_tokens, topk]
    int* __restrict__ token_expert_indices,       // [num_tokens, topk]
    const scalar_t* __restrict__ gating_output,   // [num_tokens, num_experts]
    const float* __restrict__ bias,               // [num_experts]
    const unsigned char* __restrict__ is_padding,  // [num_tokens]
    int64_t num_tokens, int num_experts, int topk, bool renormalize) {
  constexpr unsigned kAll = 0xffffffffu;
  constexpr int kLanes = 32;
  const int64_t token = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  if (token >= num_tokens) return;  // a whole warp
  const scalar_t* logits = gating_output + token * num_experts;

  float logit[kKept];
  float highest = Max::kNeutral;
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int expert = lane + j * kLanes;
    logit[j] = expert < num_experts ? to_float(logits[expert]) : -INFINITY;
    highest = fmaxf(highest, logit[j]);
  }
  highest = warp_reduce<Max>(highest);
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < kKept; ++j) sum += expf(logit[j] - highest);
  sum = warp_reduce<Sum>(sum);
  const auto share = [&](float one) { return expf(one - highest) / sum; };

  unsigned rank[kKept];  // 0 where there is no expert, or it is chosen already
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int expert = lane + j * kLanes;
    // Without a bias logits stand in the order of their shares, and are exact.
    const float score = bias != nullptr && expert < num_experts ? share(logit[j]) + bias[expert] : logit[j];
    rank[j] = expert < num_experts ? rank_of(score) : 0;
  }

  float chosen = 0.0f;
  int mine = 0;  // number k is kept by lane k % 32 until the warp writes 32 of them at once
  for (int k = 0; k < topk; ++k) {
    unsigned best = 0;
    int expert = num_experts;
#pragma unroll
    for (int j = 0; j < kKept; ++j) {
      if (rank[j] > best) {
        best = rank[j];
        expert = lane + j * kLanes;
      }
    }
    const unsigned best_of_all = __reduce_max_sync(kAll, best);
#ifndef OPWALKER_WRONG_LAST_OF_EQUALS
    expert = __reduce_min_sync(kAll, best == best_of_all ? expert : num_experts);
#else
    expert = __reduce_max_sync(kAll, best == best_of_all ? expert : -1);
#endif
#pragma unroll
    for (int j = 0; j < kKept; ++j) rank[j] = expert == lane + j * kLanes ? 0 : rank[j];
    if (lane == k % kLanes) mine = expert;
    if (k % kLanes < kLanes - 1 && k < topk - 1) continue;

    const bool writes = lane <= k % kLanes;
    float weight = writes ? share(to_float(logits[mine])) : 0.0f;
#ifdef OPWALKER_WRONG_BIASED_WEIGHTS
    if (writes && bias != nullptr) weight += bias[mine];
#endif
    chosen += warp_reduce<Sum>(weight);
    if (writes) {
      const int place = k / kLanes * kLanes + lane;
      const int64_t at = token * topk + place;
      topk_weights[at] = weight;
      topk_indices[at] = is_padding != nullptr && is_padding[token] ? -1 : mine;
      token_expert_indices[at] = static_cast<int>(place * num_tokens + token);
    }
  }
  if (renormalize) {
    for (int k = lane; k < topk; k += kLanes) topk_weights[token * topk + k] /= chosen;
  }
}

void topk_softmax(Tensor& topk_weights,                     // [num_tokens, topk]
                  Tensor& topk_indices,                     // [num_tokens, topk]
                  Tensor& token_expert_indices,             // [num_tokens, topk]
                  const Tensor& gating_output,              // [num_tokens, num_experts]
                  bool renormalize,
                  const std::optional<Tensor>& bias,          // [num_experts]
                  const std::optional<Tensor>& is_padding) {  // [num_tokens]
  const int64_t num_tokens = gating_output.size(0);
  const int num_experts = static_cast<int>(gating_output.size(1));
  const int topk = static_cast<int>(topk_weights.size(1));
  STD_TORCH_CHECK(gating_output.is_contiguous(), "topk_softmax: gating_output must be contiguous");
  STD_TORCH_CHECK(topk_weights.scalar_type() == ScalarType::Float, "topk_softmax: topk_weights must be float32");
  for (const Tensor* one : {&topk_indices, &token_expert_indices}) {
    STD_TORCH_CHECK(one->scalar_type() == ScalarType::Int, "topk_softmax: indices must be int32");
  }
  for (const Tensor* one : {&topk_weights, &topk_indices, &token_expert_indices}) {
    STD_TORCH_CHECK(one->is_contiguous() && one->size(0) == num_tokens && one->size(1) == topk,
                    "topk_softmax: outputs must be [num_tokens, topk], contiguous");
  }
  STD_TORCH_CHECK(topk <= num_experts, "topk_softmax: there are fewer experts than topk");
  STD_TORCH_CHECK(num_experts <= 1024, "topk_softmax: wants at most 1024 experts");
  STD_TORCH_CHECK(!bias.has_value() || (bias->scalar_type() == ScalarType::Float && bias->numel() == num_experts),
                  "topk_softmax: bias must be float32 [num_experts]");
  STD_TORCH_CHECK(!is_padding.has_value() || is_padding->scalar_type() == ScalarType::Bool,
                  "topk_softmax: is_padding must be bool");
  if (topk_weights.numel() == 0) return;

  const DeviceGuard guard(gating_output.get_device_index());
  const cudaStream_t stream = current_stream(gating_output);
  constexpr int kThreads = 128;
  const unsigned blocks = static_cast<unsigned>((num_tokens * 32 + kThreads - 1) / kThreads);
  DISPATCH_FLOATING_TYPES(gating_output.scalar_type(), "topk_softmax", [&] {
    const auto launch = [&](auto kept) {
      topk_softmax_kernel<scalar_t, kept.value><<<blocks, kThreads, 0, stream>>>(
          static_cast<float*>(topk_weights.data_ptr()), static_cast<int*>(topk_indices.data_ptr()),
          static_cast<int*>(token_expert_indices.data_ptr()), static_cast<const scalar_t*>(gating_output.data_ptr()),
          bias.has_value() ? static_cast<const float*>(bias->data_ptr()) : nullptr,
          is_padding.has_value() ? static_cast<const unsigned char*>(is_padding->data_ptr()) : nullptr, num_tokens,
          num_experts, topk, renormalize);
      check_launch("topk_softmax");
    };
    if (num_experts <= 4 * 32) {
      launch(std::integral_constant<int, 4>{});
    } else if (num_experts <= 8 * 32) {
      launch(std::integral_constant<int, 8>{});
    } else {
      launch(std::integral_constant<int, 32>{});
    }
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "topk_softmax(Tensor! topk_weights, Tensor! topk_indices, Tensor! token_expert_indices, Tensor gating_output, "
      "bool renormalize, Tensor? bias, Tensor? is_padding) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("topk_softmax", TORCH_BOX(&opwalker_ref::topk_softmax));
}
