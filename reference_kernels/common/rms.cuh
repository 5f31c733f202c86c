// What the normalisations by the root of the mean square have in common.
#pragma once

#include "kept_row.cuh"
#include "reduce.cuh"

namespace opwalker_ref {

// 1 / sqrt(mean(x^2) + epsilon) of a row, where `squares` is this thread's part of the sum.
__device__ __forceinline__ float inverse_rms(float squares, float epsilon, int hidden_size) {
#ifdef OPWALKER_WRONG_NO_EPSILON
  epsilon = 0.0f;
#endif
  return rsqrtf(block_reduce<Sum>(squares) / hidden_size + epsilon);
}

// The same of a row that its block keeps.
template <typename scalar_t, int kWidth>
__device__ __forceinline__ float inverse_rms(KeptRow<scalar_t, kWidth>& row, float epsilon, int hidden_size) {
  float squares = 0.0f;
  const auto add_squares = [&](int64_t, const Vector<scalar_t, kWidth>& x) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) squares += to_float(x[i]) * to_float(x[i]);
  };
#ifndef OPWALKER_WRONG_TAIL_DROPPED
  row.each(add_squares);
#else
  row.each_kept(add_squares);
#endif
  return inverse_rms(squares, epsilon, hidden_size);
}

// out = row * scale * weight, in the row's own type.
template <bool kHasWeight, typename scalar_t, int kWidth>
__device__ __forceinline__ void store_normed(KeptRow<scalar_t, kWidth>& row, scalar_t* out, const scalar_t* weight,
                                             float scale) {
  row.each([&](int64_t at, const Vector<scalar_t, kWidth>& x) {
    Vector<scalar_t, kWidth> w, y;
    if constexpr (kHasWeight) w = load<kWidth>(weight + at);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float normed = to_float(x[i]) * scale;
      y[i] = from_float<scalar_t>(kHasWeight ? normed * to_float(w[i]) : normed);
    }
    store_streamed<kWidth>(out + at, y);
  });
}

}  // namespace opwalker_ref
