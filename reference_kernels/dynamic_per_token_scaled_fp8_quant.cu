// scale = max |input| / 448 for each row, and result = input / scale in fp8.
//
// A block takes one row and keeps it in registers between the search for the maximum and the division.

#include "common/fp8.cuh"
#include "common/kept_row.cuh"
#include "common/op.cuh"
#include "common/reduce.cuh"
#include "common/rows.cuh"

namespace opwalker_ref {

template <typename scalar_t, int kWidth>
__global__ void __launch_bounds__(1024) dynamic_per_token_scaled_fp8_quant_kernel(
    fp8_t* __restrict__ result,          // [num_tokens, hidden_size]
    const scalar_t* __restrict__ input,  // [num_tokens, hidden_size]
    float* __restrict__ scale,           // [num_tokens, 1]
    const float* __restrict__ scale_ub,  // [1]
    Rows result_rows, Rows input_rows, int hidden_size) {
  // Keeps quotients of a row of zeros, or nearly so, in range.
  constexpr float kSmallestScale = 1.0f / (kLargestFp8 * 512.0f);
  KeptRow<scalar_t, kWidth> row(input + input_rows.offset(blockIdx.x), hidden_size / kWidth);
  fp8_t* out = result + result_rows.offset(blockIdx.x);

  float largest = 0.0f;
  const auto compare = [&](int64_t, const Vector<scalar_t, kWidth>& x) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
#ifndef OPWALKER_WRONG_SIGN_KEPT
      largest = fmaxf(largest, fabsf(to_float(x[i])));
#else
      largest = fmaxf(largest, to_float(x[i]));
#endif
    }
  };
#ifndef OPWALKER_WRONG_TAIL_DROPPED
  row.each(compare);
#else
  row.each_kept(compare);
#endif
  largest = block_reduce<Max>(largest);
#ifndef OPWALKER_WRONG_NO_BOUND
  if (scale_ub != nullptr) largest = fminf(largest, *scale_ub);
#endif
  const float of_row = fmaxf(largest / kLargestFp8, kSmallestScale);
  if (threadIdx.x == 0) scale[blockIdx.x] = of_row;
  const float factor = 1.0f / of_row;
  row.each([&](int64_t at, const Vector<scalar_t, kWidth>& x) {
    store<kWidth>(out + at, fp8_of<kWidth>([&](int i) { return to_float(x[i]) * factor; }));
  });
}

void dynamic_per_token_scaled_fp8_quant(Tensor& result,       // [..., hidden_size]
                                        const Tensor& input,  // [..., hidden_size]
                                        Tensor& scale,        // [num_tokens, 1]
                                        const std::optional<Tensor>& scale_ub) {  // [1]
  const char* op = "dynamic_per_token_scaled_fp8_quant";
  STD_TORCH_CHECK(result.scalar_type() == ScalarType::Float8_e4m3fn, op, ": result must be float8_e4m3fn");
  STD_TORCH_CHECK(result.numel() == input.numel() && result.size(-1) == input.size(-1), op,
                  ": result and input differ in shape");
  STD_TORCH_CHECK(scale.scalar_type() == ScalarType::Float && scale.is_contiguous(), op,
                  ": scale must be float32 and contiguous");
  STD_TORCH_CHECK(!scale_ub.has_value() || (scale_ub->scalar_type() == ScalarType::Float && scale_ub->numel() == 1), op,
                  ": scale_ub must be one float32");
  if (input.numel() == 0) return;
  const int hidden_size = static_cast<int>(input.size(-1));
  const Rows result_rows = rows_of(result, op);
  Rows input_rows = rows_of(input, op);
  STD_TORCH_CHECK(scale.numel() == input_rows.count, op, ": scale must be [num_tokens, 1]");
#ifdef OPWALKER_WRONG_NO_STRIDE
  input_rows = {input_rows.count, {1, 1}, {hidden_size, 0, 0}};
#endif

  const DeviceGuard guard(input.get_device_index());
  const cudaStream_t stream = current_stream(input);
  const unsigned blocks = static_cast<unsigned>(input_rows.count);
  DISPATCH_FLOATING_TYPES(input.scalar_type(), op, [&] {
    auto* to = static_cast<fp8_t*>(result.data_ptr());
    const auto* from = static_cast<const scalar_t*>(input.data_ptr());
    auto* scales = static_cast<float*>(scale.data_ptr());
    const auto* bound = scale_ub.has_value() ? static_cast<const float*>(scale_ub->data_ptr()) : nullptr;
    constexpr int kWidth = kFullWidth<scalar_t>;
    const bool wide = hidden_size % kWidth == 0 && input_rows.strides_divide_by(kWidth) &&
                      result_rows.strides_divide_by(kWidth) && aligned<kWidth>(from) && aligned<kWidth>(to);
    if (wide) {
      dynamic_per_token_scaled_fp8_quant_kernel<scalar_t, kWidth>
          <<<blocks, threads_for_row(hidden_size / kWidth), 0, stream>>>(to, from, scales, bound, result_rows, input_rows,
                                                                         hidden_size);
    } else {
      dynamic_per_token_scaled_fp8_quant_kernel<scalar_t, 1><<<blocks, threads_for_row(hidden_size), 0, stream>>>(
          to, from, scales, bound, result_rows, input_rows, hidden_size);
    }
  });
  check_launch(op);
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("dynamic_per_token_scaled_fp8_quant(Tensor! result, Tensor input, Tensor! scale, Tensor? scale_ub) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("dynamic_per_token_scaled_fp8_quant", TORCH_BOX(&opwalker_ref::dynamic_per_token_scaled_fp8_quant));
}
