// out = activation(gate) * up, where a row of the input is [gate, up]: the middle of a gated feed-forward layer.
#pragma once

#include "op.cuh"
#include "vector.cuh"

namespace opwalker_ref {

// How many vectors of each half a thread has under way: enough to keep the memory busy while an activation is computed.
constexpr int kGatedUnroll = 4;

// A block takes kGatedUnroll vectors for each of its threads out of one row; all loads are issued before the first is
// needed. Blocks that run at the same time have neighbouring numbers, and so neighbouring parts of a row.
template <typename Activation, typename scalar_t, int kWidth>
__global__ void __launch_bounds__(256) gated_kernel(
    scalar_t* __restrict__ out,          // [num_tokens, d]
    const scalar_t* __restrict__ input,  // [num_tokens, 2 * d]
    int64_t d, unsigned blocks_per_row) {
  const int64_t token = blockIdx.x / blocks_per_row;
  const scalar_t* gate = input + token * 2 * d;
#ifndef OPWALKER_WRONG_HALVES_SWAPPED
  const scalar_t* up = gate + d;
#else
  const scalar_t* up = gate;
  gate = up + d;
#endif
  scalar_t* row = out + token * d;
  const int64_t step = static_cast<int64_t>(blockDim.x) * kWidth;
  const int64_t first = blockIdx.x % blocks_per_row * kGatedUnroll * step + threadIdx.x * kWidth;

  Vector<scalar_t, kWidth> x[kGatedUnroll], y[kGatedUnroll];
#pragma unroll
  for (int j = 0; j < kGatedUnroll; ++j) {
    if (first + j * step < d) {
      x[j] = load<kWidth>(gate + first + j * step);
      y[j] = load<kWidth>(up + first + j * step);
    }
  }
#pragma unroll
  for (int j = 0; j < kGatedUnroll; ++j) {
    if (first + j * step >= d) return;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      x[j][i] = from_float<scalar_t>(Activation::of(to_float(x[j][i])) * to_float(y[j][i]));
    }
    store<kWidth>(row + first + j * step, x[j]);
  }
}

template <typename Activation, typename scalar_t, int kWidth>
void launch_gated(scalar_t* out, const scalar_t* input, int64_t num_tokens, int64_t d, cudaStream_t stream,
                  const char* op) {
  constexpr int kThreads = 256;
  const int64_t per_block = static_cast<int64_t>(kThreads) * kGatedUnroll * kWidth;
  const unsigned blocks_per_row = static_cast<unsigned>((d + per_block - 1) / per_block);
  const unsigned blocks = static_cast<unsigned>(num_tokens) * blocks_per_row;
  gated_kernel<Activation, scalar_t, kWidth><<<blocks, kThreads, 0, stream>>>(out, input, d, blocks_per_row);
  check_launch(op);
}

// The host side that all gated activations share.
template <typename Activation>
void gated(Tensor& out, const Tensor& input, const char* op) {
  const int64_t d = input.size(-1) / 2;
  STD_TORCH_CHECK(input.size(-1) % 2 == 0, op, ": the last dimension of input must be even");
  STD_TORCH_CHECK(input.is_contiguous() && out.is_contiguous(), op, ": input and output must be contiguous");
  STD_TORCH_CHECK(out.scalar_type() == input.scalar_type(), op, ": input and output differ in type");
  STD_TORCH_CHECK(out.size(-1) == d && out.numel() * 2 == input.numel(), op, ": output must be [..., d]");
  if (out.numel() == 0) return;

  const DeviceGuard guard(input.get_device_index());
  const cudaStream_t stream = current_stream(input);
  DISPATCH_FLOATING_TYPES(input.scalar_type(), op, [&] {
    constexpr int kWidth = kFullWidth<scalar_t>;
    auto* to = static_cast<scalar_t*>(out.data_ptr());
    const auto* from = static_cast<const scalar_t*>(input.data_ptr());
    if (d % kWidth == 0 && aligned<kWidth>(to, from)) {
      launch_gated<Activation, scalar_t, kWidth>(to, from, out.numel() / d, d, stream, op);
    } else {
      launch_gated<Activation, scalar_t, 1>(to, from, out.numel() / d, d, stream, op);
    }
  });
}

}  // namespace opwalker_ref
