// out = a_scales * (a @ b) * b_scales + bias, with a and b in fp8, and a scale for each matrix or for each row and column.
//
// A plain product in tiles: what it is to give, not how fast. b lies with its columns one behind the other, as a does with
// its rows, so that both are read along k.

#include "common/fp8.cuh"
#include "common/op.cuh"
#include "common/tile_product.cuh"

namespace opwalker_ref {

template <typename scalar_t>
__global__ void __launch_bounds__(256) cutlass_scaled_mm_kernel(
    scalar_t* __restrict__ out,         // [size_m, size_n]
    const fp8_t* __restrict__ a,        // [size_m, size_k]
    const fp8_t* __restrict__ b,        // [size_k, size_n]
    const float* __restrict__ a_scales,  // [1] or [size_m, 1]
    const float* __restrict__ b_scales,  // [1] or [1, size_n]
    const scalar_t* __restrict__ bias,  // [size_n]
    int64_t out_stride, int64_t a_stride, int64_t b_stride, int a_scale_stride, int b_scale_stride, int size_m, int size_n,
    int size_k) {
  const int first_row = blockIdx.x * kTile;
  const int first_column = blockIdx.y * kTile;
  const auto of_a = [&](int row, int k) {
    const int m = first_row + row;
    return m < size_m && k < size_k ? from_fp8(a[m * a_stride + k]) : 0.0f;
  };
  const auto of_b = [&](int k, int column) {
    const int n = first_column + column;
    return n < size_n && k < size_k ? from_fp8(b[n * b_stride + k]) : 0.0f;
  };
  const TilePart part = tile_product<true>(of_a, of_b, size_k);
  each_of(part, size_m, size_n, [&](int64_t row, int64_t column, float sum) {
    const float scaled = a_scales[row * a_scale_stride] * sum * b_scales[column * b_scale_stride];
    out[row * out_stride + column] = from_float<scalar_t>(bias != nullptr ? scaled + to_float(bias[column]) : scaled);
  });
}

void cutlass_scaled_mm(Tensor& out,             // [size_m, size_n]
                       const Tensor& a,         // [size_m, size_k]
                       const Tensor& b,         // [size_k, size_n]
                       const Tensor& a_scales,  // [1] or [size_m, 1]
                       const Tensor& b_scales,  // [1] or [1, size_n]
                       const std::optional<Tensor>& bias) {  // [size_n]
  const int64_t size_m = a.size(0), size_k = a.size(1), size_n = b.size(1);
  STD_TORCH_CHECK(a.scalar_type() == ScalarType::Float8_e4m3fn && b.scalar_type() == ScalarType::Float8_e4m3fn,
                  "cutlass_scaled_mm: a and b must be float8_e4m3fn");
  STD_TORCH_CHECK(b.size(0) == size_k && out.size(0) == size_m && out.size(1) == size_n,
                  "cutlass_scaled_mm: a, b and out differ in size");
  STD_TORCH_CHECK(a.stride(1) == 1 && out.stride(1) == 1 && b.stride(0) == 1,
                  "cutlass_scaled_mm: rows of a and out and columns of b must be contiguous");
  STD_TORCH_CHECK(a_scales.scalar_type() == ScalarType::Float && b_scales.scalar_type() == ScalarType::Float &&
                      a_scales.is_contiguous() && b_scales.is_contiguous(),
                  "cutlass_scaled_mm: scales must be float32 and contiguous");
  STD_TORCH_CHECK((a_scales.numel() == 1 || a_scales.numel() == size_m) &&
                      (b_scales.numel() == 1 || b_scales.numel() == size_n),
                  "cutlass_scaled_mm: scales are one for a matrix, or one for each row of a and column of b");
  STD_TORCH_CHECK(!bias.has_value() || (bias->scalar_type() == out.scalar_type() && bias->is_contiguous() &&
                                        bias->numel() == size_n),
                  "cutlass_scaled_mm: bias must be [size_n], of the type of out");
  if (out.numel() == 0) return;
#ifndef OPWALKER_WRONG_ONE_SCALE
  const int a_scale_stride = a_scales.numel() == 1 ? 0 : 1;
  const int b_scale_stride = b_scales.numel() == 1 ? 0 : 1;
#else
  const int a_scale_stride = 0, b_scale_stride = 0;
#endif
#ifndef OPWALKER_WRONG_NO_STRIDE
  const int64_t a_stride = a.stride(0);
#else
  const int64_t a_stride = size_k;
#endif

  const DeviceGuard guard(a.get_device_index());
  const cudaStream_t stream = current_stream(a);
  DISPATCH_FLOATING_TYPES(out.scalar_type(), "cutlass_scaled_mm", [&] {
    cutlass_scaled_mm_kernel<scalar_t><<<grid_of_tiles(size_m, size_n), dim3(kTileThreads, kTileThreads), 0, stream>>>(
        static_cast<scalar_t*>(out.data_ptr()), static_cast<const fp8_t*>(a.data_ptr()),
        static_cast<const fp8_t*>(b.data_ptr()), static_cast<const float*>(a_scales.data_ptr()),
        static_cast<const float*>(b_scales.data_ptr()),
        bias.has_value() ? static_cast<const scalar_t*>(bias->data_ptr()) : nullptr, out.stride(0), a_stride, b.stride(1),
        a_scale_stride, b_scale_stride, static_cast<int>(size_m), static_cast<int>(size_n), static_cast<int>(size_k));
  });
  check_launch("cutlass_scaled_mm");
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "cutlass_scaled_mm(Tensor! out, Tensor a, Tensor b, Tensor a_scales, Tensor b_scales, Tensor? bias) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("cutlass_scaled_mm", TORCH_BOX(&opwalker_ref::cutlass_scaled_mm));
}
