// residual = input + residual; input = residual / sqrt(mean(residual^2) + epsilon) * weight, for each row, in place.
//
// One launch in place of two: the sum is normalised from registers, before it has left the multiprocessor.

#include "common/op.cuh"
#include "common/rms.cuh"
#include "common/rows.cuh"

namespace opwalker_ref {

template <typename scalar_t, int kWidth, bool kHasWeight, typename RowsOf>
__global__ void __launch_bounds__(1024) fused_add_rms_norm_kernel(
    scalar_t* __restrict__ input,         // [num_tokens, hidden_size]
    scalar_t* __restrict__ residual,      // [num_tokens, hidden_size]
    const scalar_t* __restrict__ weight,  // [hidden_size]
    RowsOf rows, float epsilon, int hidden_size) {
  scalar_t* in = input + rows.offset(blockIdx.x);
  scalar_t* sum = residual + static_cast<int64_t>(blockIdx.x) * hidden_size;
  KeptRow<scalar_t, kWidth> added(in, hidden_size / kWidth);
  KeptRow<scalar_t, kWidth> row(sum, hidden_size / kWidth);

  float squares = 0.0f;
  row.each_with(added, [&](int64_t at, Vector<scalar_t, kWidth>& x, const Vector<scalar_t, kWidth>& y) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      x[i] = from_float<scalar_t>(to_float(x[i]) + to_float(y[i]));
      squares += to_float(x[i]) * to_float(x[i]);
    }
#ifndef OPWALKER_WRONG_RESIDUAL_NOT_WRITTEN
    store_streamed<kWidth>(sum + at, x);
#endif
  });
  const float scale = inverse_rms(squares, epsilon, hidden_size);
  store_normed<kHasWeight>(row, in, weight, scale);
}

template <typename scalar_t, int kWidth>
void launch_fused_add_rms_norm(scalar_t* input, scalar_t* residual, const scalar_t* weight, const Rows& rows,
                               double epsilon, int hidden_size, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows.count);
  const unsigned threads = threads_for_row(hidden_size / kWidth);
  DISPATCH_BOOL(weight != nullptr, kHasWeight, [&] {
    const auto launch = [&](auto input_rows) {
      fused_add_rms_norm_kernel<scalar_t, kWidth, kHasWeight, decltype(input_rows)><<<blocks, threads, 0, stream>>>(
          input, residual, weight, input_rows, static_cast<float>(epsilon), hidden_size);
      check_launch("fused_add_rms_norm");
    };
    if (rows.even()) {
      launch(EvenRows{rows.strides[0]});
    } else {
      launch(rows);
    }
  });
}

void fused_add_rms_norm(Tensor& input,                        // [..., hidden_size]
                        Tensor& residual,                     // [..., hidden_size]
                        const std::optional<Tensor>& weight,  // [hidden_size]
                        double epsilon) {
  const int64_t hidden_size = input.size(-1);
  STD_TORCH_CHECK(residual.is_contiguous(), "fused_add_rms_norm: residual must be contiguous");
  STD_TORCH_CHECK(residual.scalar_type() == input.scalar_type(), "fused_add_rms_norm: input and residual differ in type");
  STD_TORCH_CHECK(residual.numel() == input.numel() && residual.size(-1) == hidden_size,
                  "fused_add_rms_norm: input and residual differ in shape");
  if (weight.has_value()) {
    STD_TORCH_CHECK(weight->is_contiguous() && weight->numel() == hidden_size,
                    "fused_add_rms_norm: weight must be [hidden_size]");
    STD_TORCH_CHECK(weight->scalar_type() == input.scalar_type(), "fused_add_rms_norm: weight and input differ in type");
  }
  Rows rows = rows_of(input, "fused_add_rms_norm");
#ifdef OPWALKER_WRONG_NO_STRIDE
  rows = {rows.count, {1, 1}, {hidden_size, 0, 0}};
#endif
  if (input.numel() == 0) return;

  const DeviceGuard guard(input.get_device_index());
  const cudaStream_t stream = current_stream(input);
  DISPATCH_FLOATING_TYPES(input.scalar_type(), "fused_add_rms_norm", [&] {
    constexpr int kWidth = kFullWidth<scalar_t>;
    auto* in = static_cast<scalar_t*>(input.data_ptr());
    auto* sum = static_cast<scalar_t*>(residual.data_ptr());
    const auto* w = weight.has_value() ? static_cast<const scalar_t*>(weight->data_ptr()) : nullptr;
    const int size = static_cast<int>(hidden_size);
    if (hidden_size % kWidth == 0 && rows.strides_divide_by(kWidth) && aligned<kWidth>(in, sum, w)) {
      launch_fused_add_rms_norm<scalar_t, kWidth>(in, sum, w, rows, epsilon, size, stream);
    } else {
      launch_fused_add_rms_norm<scalar_t, 1>(in, sum, w, rows, epsilon, size, stream);
    }
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("fused_add_rms_norm(Tensor! input, Tensor! residual, Tensor? weight, float epsilon) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("fused_add_rms_norm", TORCH_BOX(&opwalker_ref::fused_add_rms_norm));
}
