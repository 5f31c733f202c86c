// The logits of tokens that were seen, in the prompt or in the output, pushed down: divided by the penalty where positive,
// multiplied by it where not; in place.
//
// Most tokens were never seen: logits are read and written only where a thread's piece of the masks has a token.

#include "common/op.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

template <typename scalar_t, int kWidth>
__global__ void __launch_bounds__(256) apply_repetition_penalties_kernel(
    scalar_t* __restrict__ logits,                      // [num_seqs, vocab_size]
    const bool* __restrict__ prompt_mask,               // [num_seqs, vocab_size]
    const bool* __restrict__ output_mask,               // [num_seqs, vocab_size]
    const scalar_t* __restrict__ repetition_penalties,  // [num_seqs]
    int64_t vocab_size) {
  const int64_t token = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * kWidth;
  if (token >= vocab_size) return;
  const int64_t at = blockIdx.x * vocab_size + token;
  const auto in_prompt = load<kWidth>(prompt_mask + at);
  const auto in_output = load<kWidth>(output_mask + at);
  const float penalty = to_float(repetition_penalties[blockIdx.x]);

  bool seen[kWidth];
  bool any = false;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
#ifndef OPWALKER_WRONG_PROMPT_IGNORED
    seen[i] = in_prompt[i] || in_output[i];
#else
    seen[i] = in_output[i];
#endif
    any = any || seen[i];
  }
  if (!any) return;
  auto x = load<kWidth>(logits + at);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const float logit = to_float(x[i]);
#ifndef OPWALKER_WRONG_SIGN_IGNORED
    const float pushed = logit > 0.0f ? logit / penalty : logit * penalty;
#else
    const float pushed = logit / penalty;
#endif
    if (seen[i]) x[i] = from_float<scalar_t>(pushed);
  }
  store<kWidth>(logits + at, x);
}

void apply_repetition_penalties_(Tensor& logits,                        // [num_seqs, vocab_size]
                                 const Tensor& prompt_mask,             // [num_seqs, vocab_size]
                                 const Tensor& output_mask,             // [num_seqs, vocab_size]
                                 const Tensor& repetition_penalties) {  // [num_seqs]
  const int64_t num_seqs = logits.size(0);
  const int64_t vocab_size = logits.size(1);
  STD_TORCH_CHECK(logits.is_contiguous() && prompt_mask.is_contiguous() && output_mask.is_contiguous() &&
                      repetition_penalties.is_contiguous(),
                  "apply_repetition_penalties_: all tensors must be contiguous");
  STD_TORCH_CHECK(prompt_mask.scalar_type() == ScalarType::Bool && output_mask.scalar_type() == ScalarType::Bool,
                  "apply_repetition_penalties_: masks must be bool");
  STD_TORCH_CHECK(prompt_mask.numel() == logits.numel() && output_mask.numel() == logits.numel(),
                  "apply_repetition_penalties_: masks must be [num_seqs, vocab_size]");
  STD_TORCH_CHECK(repetition_penalties.scalar_type() == logits.scalar_type() && repetition_penalties.numel() == num_seqs,
                  "apply_repetition_penalties_: repetition_penalties must be [num_seqs], of the type of logits");
  if (logits.numel() == 0) return;

  const DeviceGuard guard(logits.get_device_index());
  const cudaStream_t stream = current_stream(logits);
  DISPATCH_FLOATING_TYPES(logits.scalar_type(), "apply_repetition_penalties_", [&] {
    constexpr int kFull = 16;  // tokens whose masks are 16 bytes
    auto* x = static_cast<scalar_t*>(logits.data_ptr());
    const auto* prompt = static_cast<const bool*>(prompt_mask.data_ptr());
    const auto* output = static_cast<const bool*>(output_mask.data_ptr());
    const bool wide = vocab_size % kFull == 0 && aligned<kFull>(x) && aligned<kFull>(prompt, output);
    DISPATCH_BOOL(wide, kWide, [&] {
      constexpr int kWidth = kWide ? kFull : 1;
      constexpr int kThreads = 256;
      const dim3 grid(static_cast<unsigned>(num_seqs),
                      static_cast<unsigned>((vocab_size / kWidth + kThreads - 1) / kThreads));
      apply_repetition_penalties_kernel<scalar_t, kWidth><<<grid, kThreads, 0, stream>>>(
          x, prompt, output, static_cast<const scalar_t*>(repetition_penalties.data_ptr()), vocab_size);
      check_launch("apply_repetition_penalties_");
    });
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "apply_repetition_penalties_(Tensor! logits, Tensor prompt_mask, Tensor output_mask, Tensor repetition_penalties) "
      "-> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("apply_repetition_penalties_", TORCH_BOX(&opwalker_ref::apply_repetition_penalties_));
}
