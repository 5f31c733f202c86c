// Weights of AWQ to plain ones: (q - zero) * scale, eight 4-bit numbers to an int32.
//
// A thread takes one int32, and with it eight neighbouring columns of a row.

#include "common/op.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

// Column c of eight, out of the int32 that holds them: the even columns lie in its lower half, the odd ones in its upper.
__device__ __forceinline__ int awq_column(unsigned packed, int c) {
#ifndef OPWALKER_WRONG_PLAIN_ORDER
  const int place = c / 2 + c % 2 * 4;
#else
  const int place = c;
#endif
  return static_cast<int>(packed >> (4 * place) & 0xf);
}

__global__ void __launch_bounds__(256) awq_dequantize_kernel(
    __half* __restrict__ result,                 // [in_c, out_c]
    const unsigned* __restrict__ kernel,         // [in_c, out_c/8]
    const __half* __restrict__ scaling_factors,  // [in_c/G, out_c]
    const unsigned* __restrict__ zeros,          // [in_c/G, out_c/8]
    int64_t packed, int packed_columns, int group_size) {
  constexpr int kColumns = 8;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= packed) return;
  const int64_t row = at / packed_columns;
#ifndef OPWALKER_WRONG_FIRST_GROUP
  const int64_t of_group = row / group_size * packed_columns + at % packed_columns;
#else
  const int64_t of_group = at % packed_columns;
#endif
  const unsigned weights = kernel[at];
  const unsigned zero = zeros[of_group];
  const auto scales = load<kColumns>(scaling_factors + of_group * kColumns);
  Vector<__half, kColumns> y;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    y[c] = from_float<__half>((awq_column(weights, c) - awq_column(zero, c)) * to_float(scales[c]));
  }
  store<kColumns>(result + at * kColumns, y);
}

// What the op returns, without its contents: all that a tensor without memory needs.
Tensor awq_dequantize_shape(const Tensor& _kernel, const Tensor& _scaling_factors, const Tensor& _zeros,
                            int64_t split_k_iters, int64_t thx, int64_t thy) {
  return torch::stable::new_empty(_scaling_factors, {_kernel.size(0), _kernel.size(1) * 8});
}

Tensor awq_dequantize(const Tensor& _kernel,           // [in_c, out_c/8]
                      const Tensor& _scaling_factors,  // [in_c/G, out_c]
                      const Tensor& _zeros,            // [in_c/G, out_c/8]
                      int64_t split_k_iters, int64_t thx, int64_t thy) {
  STD_TORCH_CHECK(_kernel.scalar_type() == ScalarType::Int && _zeros.scalar_type() == ScalarType::Int,
                  "awq_dequantize: _kernel and _zeros must be int32");
  STD_TORCH_CHECK(_scaling_factors.scalar_type() == ScalarType::Half, "awq_dequantize: _scaling_factors must be float16");
  STD_TORCH_CHECK(_kernel.is_contiguous() && _scaling_factors.is_contiguous() && _zeros.is_contiguous(),
                  "awq_dequantize: tensors must be contiguous");
  STD_TORCH_CHECK(_scaling_factors.size(1) == _kernel.size(1) * 8 && _zeros.size(1) == _kernel.size(1) &&
                      _zeros.size(0) == _scaling_factors.size(0),
                  "awq_dequantize: tensors differ in columns or groups");
  Tensor result = awq_dequantize_shape(_kernel, _scaling_factors, _zeros, split_k_iters, thx, thy);
  if (result.numel() == 0) return result;
  const int64_t groups = _scaling_factors.size(0);
  STD_TORCH_CHECK(groups > 0 && _kernel.size(0) % groups == 0, "awq_dequantize: rows must be whole groups");

  const DeviceGuard guard(_kernel.get_device_index());
  const cudaStream_t stream = current_stream(_kernel);
  constexpr int kThreads = 256;
  const int64_t packed = _kernel.numel();
  awq_dequantize_kernel<<<static_cast<unsigned>((packed + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      static_cast<__half*>(result.data_ptr()), static_cast<const unsigned*>(_kernel.data_ptr()),
      static_cast<const __half*>(_scaling_factors.data_ptr()), static_cast<const unsigned*>(_zeros.data_ptr()), packed,
      static_cast<int>(_kernel.size(1)), static_cast<int>(_kernel.size(0) / groups));
  check_launch("awq_dequantize");
  return result;
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "awq_dequantize(Tensor _kernel, Tensor _scaling_factors, Tensor _zeros, SymInt split_k_iters, int thx, int thy) -> "
      "Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("awq_dequantize", TORCH_BOX(&opwalker_ref::awq_dequantize));
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, Meta, ops) {
  ops.impl("awq_dequantize", TORCH_BOX(&opwalker_ref::awq_dequantize_shape));
}
