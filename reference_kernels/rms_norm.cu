// result = input / sqrt(mean(input^2) + epsilon) * weight, for each row.
//
// A block takes one row and keeps it in registers between the two passes, so that it is read from memory once.

#include "common/op.cuh"
#include "common/rms.cuh"
#include "common/rows.cuh"

namespace opwalker_ref {

template <typename scalar_t, int kWidth, bool kHasWeight>
__global__ void __launch_bounds__(1024) rms_norm_kernel(
    scalar_t* __restrict__ result,        // [num_tokens, hidden_size]
    const scalar_t* __restrict__ input,   // [num_tokens, hidden_size]
    const scalar_t* __restrict__ weight,  // [hidden_size]
    Rows rows, float epsilon, int hidden_size) {
  KeptRow<scalar_t, kWidth> row(input + rows.offset(blockIdx.x), hidden_size / kWidth);
  scalar_t* out = result + static_cast<int64_t>(blockIdx.x) * hidden_size;

  const float scale = inverse_rms(row, epsilon, hidden_size);
  store_normed<kHasWeight>(row, out, weight, scale);
}

template <typename scalar_t, int kWidth>
void launch_rms_norm(scalar_t* result, const scalar_t* input, const scalar_t* weight, const Rows& rows, double epsilon,
                     int hidden_size, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>(rows.count);
  const unsigned threads = threads_for_row(hidden_size / kWidth);
  DISPATCH_BOOL(weight != nullptr, kHasWeight, [&] {
    rms_norm_kernel<scalar_t, kWidth, kHasWeight><<<blocks, threads, 0, stream>>>(
        result, input, weight, rows, static_cast<float>(epsilon), hidden_size);
    check_launch("rms_norm");
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
    auto* out = static_cast<scalar_t*>(result.data_ptr());
    const auto* in = static_cast<const scalar_t*>(input.data_ptr());
    const auto* w = weight.has_value() ? static_cast<const scalar_t*>(weight->data_ptr()) : nullptr;
    const int size = static_cast<int>(hidden_size);
    if (hidden_size % kWidth == 0 && rows.strides_divide_by(kWidth) && aligned<kWidth>(in, out, w)) {
      launch_rms_norm<scalar_t, kWidth>(out, in, w, rows, epsilon, size, stream);
    } else {
      launch_rms_norm<scalar_t, 1>(out, in, w, rows, epsilon, size, stream);
    }
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("rms_norm(Tensor! result, Tensor input, Tensor? weight, float epsilon) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("rms_norm", TORCH_BOX(&opwalker_ref::rms_norm));
}
