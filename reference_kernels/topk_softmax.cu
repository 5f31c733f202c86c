// The topk experts of each token by softmax of its gating logits, the likeliest first; of equal ones the first.
//
// A warp takes a token and keeps its logits in registers. It goes through them once for each expert that it chooses, looking
// for the best one behind the last: nothing needs to be marked as taken.

#include "common/op.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

// An expert and what it is chosen by.
struct Choice {
  float score;
  int expert;

  __device__ bool before(const Choice& other) const {
#ifndef OPWALKER_WRONG_LAST_OF_EQUALS
    return score > other.score || (score == other.score && expert < other.expert);
#else
    return score > other.score || (score == other.score && expert > other.expert);
#endif
  }
};

__device__ inline Choice best_of_warp(Choice best) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    const Choice other{__shfl_xor_sync(0xffffffffu, best.score, distance),
                       __shfl_xor_sync(0xffffffffu, best.expert, distance)};
    if (other.before(best)) best = other;
  }
  return best;
}

// Each lane keeps the logits of kKept experts, 32 apart; those of more experts are read again each time.
template <typename scalar_t, int kKept>
__global__ void __launch_bounds__(128) topk_softmax_kernel(
    float* __restrict__ topk_weights,             // [num_tokens, topk]
    int* __restrict__ topk_indices,               // [num_tokens, topk]
    int* __restrict__ token_expert_indices,       // [num_tokens, topk]
    const scalar_t* __restrict__ gating_output,   // [num_tokens, num_experts]
    const float* __restrict__ bias,               // [num_experts]
    const unsigned char* __restrict__ is_padding,  // [num_tokens]
    int64_t num_tokens, int num_experts, int topk, bool renormalize) {
  constexpr int kLanes = 32;
  const int64_t token = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  const int lane = threadIdx.x % kLanes;
  if (token >= num_tokens) return;  // a whole warp
  const scalar_t* logits = gating_output + token * num_experts;

  float kept[kKept];
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int expert = lane + j * kLanes;
    kept[j] = expert < num_experts ? to_float(logits[expert]) : 0.0f;
  }
  // Calls f(expert, logit) for each expert of this lane.
  const auto each = [&](auto f) {
#pragma unroll
    for (int j = 0; j < kKept; ++j) {
      if (lane + j * kLanes < num_experts) f(lane + j * kLanes, kept[j]);
    }
    for (int expert = lane + kKept * kLanes; expert < num_experts; expert += kLanes) f(expert, to_float(logits[expert]));
  };

  float highest = Max::kNeutral;
  each([&](int, float logit) { highest = fmaxf(highest, logit); });
  highest = warp_reduce<Max>(highest);
  float sum = 0.0f;
  each([&](int, float logit) { sum += expf(logit - highest); });
  sum = warp_reduce<Sum>(sum);
  const auto share = [&](float logit) { return expf(logit - highest) / sum; };

  float chosen = 0.0f;
  Choice mine{};  // number k is kept by lane k % 32 until the warp writes 32 of them at once
  Choice last{-Max::kNeutral, -1};
  for (int k = 0; k < topk; ++k) {
    Choice best{Max::kNeutral, num_experts};
    each([&](int expert, float logit) {
      // Without a bias logits stand in the order of their shares, and are exact.
      const Choice one{bias != nullptr ? share(logit) + bias[expert] : logit, expert};
      if (last.before(one) && one.before(best)) best = one;
    });
    last = best_of_warp(best);
    if (lane == k % kLanes) mine = last;
    if (k % kLanes < kLanes - 1 && k < topk - 1) continue;

    const bool writes = lane <= k % kLanes;
    float weight = writes ? share(to_float(logits[mine.expert])) : 0.0f;
#ifdef OPWALKER_WRONG_BIASED_WEIGHTS
    if (writes && bias != nullptr) weight = mine.score;
#endif
    chosen += warp_reduce<Sum>(weight);
    if (writes) {
      const int place = k / kLanes * kLanes + lane;
      const int64_t at = token * topk + place;
      topk_weights[at] = weight;
      topk_indices[at] = is_padding != nullptr && is_padding[token] ? -1 : mine.expert;
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
    } else {
      launch(std::integral_constant<int, 8>{});
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
