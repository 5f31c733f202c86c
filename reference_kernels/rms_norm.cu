// result = input / sqrt(mean(input^2) + epsilon) * weight, for each row.
//
// A block takes one row. Each thread keeps its part of the row in registers between the two passes, so that a row is read
// from memory once; a row that is longer than a block can keep is read again from the cache.

#include "common/op.cuh"
#include "common/reduce.cuh"
#include "common/rows.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

template <typename scalar_t, int kWidth, bool kHasWeight>
__global__ void __launch_bounds__(1024) rms_norm_kernel(
    scalar_t* __restrict__ result,        // [num_tokens, hidden_size]
    const scalar_t* __restrict__ input,   // [num_tokens, hidden_size]
    const scalar_t* __restrict__ weight,  // [hidden_size]
    Rows rows, float epsilon, int hidden_size) {
  constexpr int kKept = 4;
  const scalar_t* row = input + rows.offset(blockIdx.x);
  scalar_t* out = result + static_cast<int64_t>(blockIdx.x) * hidden_size;
  const int vectors = hidden_size / kWidth;

  Vector<scalar_t, kWidth> kept[kKept];
  float squares = 0.0f;
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int v = threadIdx.x + j * blockDim.x;
    if (v < vectors) kept[j] = load<kWidth>(row + static_cast<int64_t>(v) * kWidth);
  }
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    if (threadIdx.x + j * blockDim.x >= vectors) break;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) squares += to_float(kept[j][i]) * to_float(kept[j][i]);
  }
#ifndef OPWALKER_WRONG_TAIL_DROPPED
  for (int v = threadIdx.x + kKept * blockDim.x; v < vectors; v += blockDim.x) {
    const auto x = load<kWidth>(row + static_cast<int64_t>(v) * kWidth);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) squares += to_float(x[i]) * to_float(x[i]);
  }
#endif
#ifdef OPWALKER_WRONG_NO_EPSILON
  epsilon = 0.0f;
#endif
  const float scale = rsqrtf(block_reduce<Sum>(squares) / hidden_size + epsilon);

  const auto write = [&](int v, const Vector<scalar_t, kWidth>& x) {
    Vector<scalar_t, kWidth> w;
    if constexpr (kHasWeight) w = load<kWidth>(weight + static_cast<int64_t>(v) * kWidth);
    Vector<scalar_t, kWidth> y;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float normed = to_float(x[i]) * scale;
      if constexpr (kHasWeight) {
        y[i] = from_float<scalar_t>(normed * to_float(w[i]));
      } else {
        y[i] = from_float<scalar_t>(normed);
      }
    }
    store<kWidth>(out + static_cast<int64_t>(v) * kWidth, y);
  };
#pragma unroll
  for (int j = 0; j < kKept; ++j) {
    const int v = threadIdx.x + j * blockDim.x;
    if (v < vectors) write(v, kept[j]);
  }
  for (int v = threadIdx.x + kKept * blockDim.x; v < vectors; v += blockDim.x) {
    write(v, load<kWidth>(row + static_cast<int64_t>(v) * kWidth));
  }
}

template <typename scalar_t, int kWidth>
void launch_rms_norm(Tensor& result, const Tensor& input, const std::optional<Tensor>& weight, const Rows& rows,
                     float epsilon, cudaStream_t stream) {
  const int hidden_size = static_cast<int>(input.size(-1));
  const unsigned threads = threads_for((hidden_size / kWidth + 1) / 2, 1024);
  auto* out = static_cast<scalar_t*>(result.data_ptr());
  const auto* in = static_cast<const scalar_t*>(input.data_ptr());
  const auto* w = weight.has_value() ? static_cast<const scalar_t*>(weight->data_ptr()) : nullptr;
  DISPATCH_BOOL(weight.has_value(), kHasWeight, [&] {
    rms_norm_kernel<scalar_t, kWidth, kHasWeight>
        <<<static_cast<unsigned>(rows.count), threads, 0, stream>>>(out, in, w, rows, epsilon, hidden_size);
  });
}

void rms_norm(Tensor& result,                       // [..., hidden_size]
              const Tensor& input,                  // [..., hidden_size]
              const std::optional<Tensor>& weight,  // [hidden_size]
              double epsilon) {
  const int64_t hidden_size = input.size(-1);
  STD_TORCH_CHECK(result.is_contiguous(), "rms_norm: result must be contiguous");
  STD_TORCH_CHECK(result.scalar_type() == input.scalar_type(), "rms_norm: result and input differ in type");
  STD_TORCH_CHECK(result.numel() == input.numel() && result.size(-1) == hidden_size,
                  "rms_norm: result and input differ in shape");
  if (weight.has_value()) {
    STD_TORCH_CHECK(weight->is_contiguous() && weight->numel() == hidden_size, "rms_norm: weight must be [hidden_size]");
    STD_TORCH_CHECK(weight->scalar_type() == input.scalar_type(), "rms_norm: weight and input differ in type");
  }
  Rows rows = rows_of(input, "rms_norm");
#ifdef OPWALKER_WRONG_NO_STRIDE
  rows = {rows.count, {1, 1}, {hidden_size, 0, 0}};
#endif
  if (input.numel() == 0) return;

  const DeviceGuard guard(input.get_device_index());
  const cudaStream_t stream = current_stream(input);
  DISPATCH_FLOATING_TYPES(input.scalar_type(), "rms_norm", [&] {
    constexpr int kWidth = kFullWidth<scalar_t>;
    const auto* in = static_cast<const scalar_t*>(input.data_ptr());
    const auto* w = weight.has_value() ? static_cast<const scalar_t*>(weight->data_ptr()) : nullptr;
    auto* out = static_cast<scalar_t*>(result.data_ptr());
    const bool whole = rows.strides_divide_by(kWidth) && rows_are_vectors<kWidth>(in, 0, hidden_size) &&
                       rows_are_vectors<kWidth>(out, 0, hidden_size) && rows_are_vectors<kWidth>(w, 0, hidden_size);
    if (whole) {
      launch_rms_norm<scalar_t, kWidth>(result, input, weight, rows, static_cast<float>(epsilon), stream);
    } else {
      launch_rms_norm<scalar_t, 1>(result, input, weight, rows, static_cast<float>(epsilon), stream);
    }
  });
  check_launch("rms_norm");
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("rms_norm(Tensor! result, Tensor input, Tensor? weight, float epsilon) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("rms_norm", TORCH_BOX(&opwalker_ref::rms_norm));
}
