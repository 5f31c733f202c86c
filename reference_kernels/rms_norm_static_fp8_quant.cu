// result = input / sqrt(mean(input^2) + epsilon) * weight / scale in fp8, for each row.
//
// A block takes one row and keeps it in registers between the two passes, so that it is read from memory once.

#include "common/fp8.cuh"
#include "common/op.cuh"
#include "common/rms.cuh"
#include "common/rows.cuh"

namespace opwalker_ref {

template <typename scalar_t, int kWidth>
__global__ void __launch_bounds__(1024) rms_norm_static_fp8_quant_kernel(
    fp8_t* __restrict__ result,           // [num_tokens, hidden_size]
    const scalar_t* __restrict__ input,   // [num_tokens, hidden_size]
    const scalar_t* __restrict__ weight,  // [hidden_size]
    const float* __restrict__ scale,      // [1]
    Rows rows, float epsilon, int hidden_size) {
  KeptRow<scalar_t, kWidth> row(input + rows.offset(blockIdx.x), hidden_size / kWidth);
  fp8_t* out = result + static_cast<int64_t>(blockIdx.x) * hidden_size;

  const float normalise = inverse_rms(row, epsilon, hidden_size);
  const float quantise = 1.0f / *scale;

  row.each([&](int64_t at, const Vector<scalar_t, kWidth>& x) {
    const auto w = load<kWidth>(weight + at);
    store<kWidth>(out + at, fp8_of<kWidth>([&](int i) {
                    return to_float(x[i]) * normalise * to_float(w[i]) * quantise;
                  }));
  });
}

void rms_norm_static_fp8_quant(Tensor& result,        // [..., hidden_size]
                               const Tensor& input,   // [..., hidden_size]
                               const Tensor& weight,  // [hidden_size]
                               const Tensor& scale,   // [1]
                               double epsilon) {
  const char* op = "rms_norm_static_fp8_quant";
  const int hidden_size = static_cast<int>(input.size(-1));
  STD_TORCH_CHECK(result.scalar_type() == ScalarType::Float8_e4m3fn && result.is_contiguous(), op,
                  ": result must be float8_e4m3fn and contiguous");
  STD_TORCH_CHECK(result.numel() == input.numel() && result.size(-1) == hidden_size, op,
                  ": result and input differ in shape");
  STD_TORCH_CHECK(weight.is_contiguous() && weight.numel() == hidden_size, op, ": weight must be [hidden_size]");
  STD_TORCH_CHECK(weight.scalar_type() == input.scalar_type(), op, ": weight and input differ in type");
  STD_TORCH_CHECK(scale.scalar_type() == ScalarType::Float && scale.numel() == 1, op, ": scale must be one float32");
  Rows rows = rows_of(input, op);
#ifdef OPWALKER_WRONG_NO_STRIDE
  rows = {rows.count, {1, 1}, {hidden_size, 0, 0}};
#endif
  if (input.numel() == 0) return;

  const DeviceGuard guard(input.get_device_index());
  const cudaStream_t stream = current_stream(input);
  const unsigned blocks = static_cast<unsigned>(rows.count);
  DISPATCH_FLOATING_TYPES(input.scalar_type(), op, [&] {
    constexpr int kWidth = kFullWidth<scalar_t>;
    auto* out = static_cast<fp8_t*>(result.data_ptr());
    const auto* in = static_cast<const scalar_t*>(input.data_ptr());
    const auto* w = static_cast<const scalar_t*>(weight.data_ptr());
    const auto* s = static_cast<const float*>(scale.data_ptr());
    if (hidden_size % kWidth == 0 && rows.strides_divide_by(kWidth) && aligned<kWidth>(in, w) && aligned<kWidth>(out)) {
      rms_norm_static_fp8_quant_kernel<scalar_t, kWidth><<<blocks, threads_for_row(hidden_size / kWidth), 0, stream>>>(
          out, in, w, s, rows, static_cast<float>(epsilon), hidden_size);
    } else {
      rms_norm_static_fp8_quant_kernel<scalar_t, 1><<<blocks, threads_for_row(hidden_size), 0, stream>>>(
          out, in, w, s, rows, static_cast<float>(epsilon), hidden_size);
    }
  });
  check_launch(op);
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "rms_norm_static_fp8_quant(Tensor! result, Tensor input, Tensor weight, Tensor scale, float epsilon) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("rms_norm_static_fp8_quant", TORCH_BOX(&opwalker_ref::rms_norm_static_fp8_quant));
}
