// a times weights of GPTQ, which are unpacked on the way: b = (q - zero) * scale, eight 4-bit numbers to an int32 along k.

#include "common/op.cuh"
#include "common/tile_product.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

__global__ void __launch_bounds__(256) gptq_gemm_kernel(
    __half* __restrict__ result,                // [size_m, size_n]
    const __half* __restrict__ a,               // [size_m, size_k]
    const unsigned* __restrict__ b_q_weight,    // [size_k/8, size_n]
    const unsigned* __restrict__ b_gptq_qzeros,  // [groups, size_n/8]
    const __half* __restrict__ b_gptq_scales,   // [groups, size_n]
    int64_t a_stride, int size_m, int size_n, int size_k, int group_size, int zero_offset) {
  const int first_row = blockIdx.x * kTile;
  const int first_column = blockIdx.y * kTile;
  const auto of_a = [&](int row, int k) {
    const int m = first_row + row;
    return m < size_m && k < size_k ? to_float(a[m * a_stride + k]) : 0.0f;
  };
  const auto of_b = [&](int k, int column) {
    const int n = first_column + column;
    if (n >= size_n || k >= size_k) return 0.0f;
    const int64_t group = k / group_size;
    const int q = static_cast<int>(b_q_weight[static_cast<int64_t>(k / 8) * size_n + n] >> (k % 8 * 4) & 0xf);
    const int zero = static_cast<int>(b_gptq_qzeros[group * (size_n / 8) + n / 8] >> (n % 8 * 4) & 0xf);
    return (q - zero - zero_offset) * to_float(b_gptq_scales[group * size_n + n]);
  };
  const TilePart part = tile_product<false>(of_a, of_b, size_k);
  each_of(part, size_m, size_n, [&](int64_t row, int64_t column, float sum) {
    result[row * size_n + column] = from_float<__half>(sum);
  });
}

// What the op returns, without its contents: all that a tensor without memory needs.
Tensor gptq_gemm_shape(const Tensor& a, const Tensor& b_q_weight, const Tensor& b_gptq_qzeros,
                       const Tensor& b_gptq_scales, bool use_exllama, bool use_v2_format, int64_t bit) {
  return torch::stable::new_empty(a, {a.size(0), b_q_weight.size(1)});
}

Tensor gptq_gemm(const Tensor& a,              // [size_m, size_k]
                 const Tensor& b_q_weight,     // [size_k/8, size_n]
                 const Tensor& b_gptq_qzeros,  // [groups, size_n/8]
                 const Tensor& b_gptq_scales,  // [groups, size_n]
                 bool use_exllama, bool use_v2_format, int64_t bit) {
  STD_TORCH_CHECK(bit == 4, "gptq_gemm: weights of ", bit, " bits are left out");
  STD_TORCH_CHECK(!use_exllama, "gptq_gemm: weights in ExLlama's order are left out");
  STD_TORCH_CHECK(a.scalar_type() == ScalarType::Half && b_gptq_scales.scalar_type() == ScalarType::Half,
                  "gptq_gemm: a and b_gptq_scales must be float16");
  STD_TORCH_CHECK(b_q_weight.scalar_type() == ScalarType::Int && b_gptq_qzeros.scalar_type() == ScalarType::Int,
                  "gptq_gemm: b_q_weight and b_gptq_qzeros must be int32");
  STD_TORCH_CHECK(a.stride(1) == 1 && b_q_weight.is_contiguous() && b_gptq_qzeros.is_contiguous() &&
                      b_gptq_scales.is_contiguous(),
                  "gptq_gemm: rows of a and the weights must be contiguous");
  const int64_t size_m = a.size(0), size_k = a.size(1), size_n = b_q_weight.size(1);
  const int64_t groups = b_gptq_scales.size(0);
  STD_TORCH_CHECK(b_q_weight.size(0) * 8 == size_k && size_n % 8 == 0, "gptq_gemm: b_q_weight must be [size_k/8, size_n]");
  STD_TORCH_CHECK(groups > 0 && size_k % groups == 0 && b_gptq_scales.size(1) == size_n &&
                      b_gptq_qzeros.size(0) == groups && b_gptq_qzeros.size(1) * 8 == size_n,
                  "gptq_gemm: scales and zeros must be of [groups] times the columns");
  Tensor result = gptq_gemm_shape(a, b_q_weight, b_gptq_qzeros, b_gptq_scales, use_exllama, use_v2_format, bit);
  if (result.numel() == 0) return result;
#ifndef OPWALKER_WRONG_ZERO_AS_STORED
  const int zero_offset = use_v2_format ? 0 : 1;  // the first format stores zero - 1
#else
  const int zero_offset = 0;
#endif

  const DeviceGuard guard(a.get_device_index());
  const cudaStream_t stream = current_stream(a);
  gptq_gemm_kernel<<<grid_of_tiles(size_m, size_n), dim3(kTileThreads, kTileThreads), 0, stream>>>(
      static_cast<__half*>(result.data_ptr()), static_cast<const __half*>(a.data_ptr()),
      static_cast<const unsigned*>(b_q_weight.data_ptr()), static_cast<const unsigned*>(b_gptq_qzeros.data_ptr()),
      static_cast<const __half*>(b_gptq_scales.data_ptr()), a.stride(0), static_cast<int>(size_m),
      static_cast<int>(size_n), static_cast<int>(size_k), static_cast<int>(size_k / groups), zero_offset);
  check_launch("gptq_gemm");
  return result;
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "gptq_gemm(Tensor a, Tensor b_q_weight, Tensor b_gptq_qzeros, Tensor b_gptq_scales, bool use_exllama, "
      "bool use_v2_format, int bit) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("gptq_gemm", TORCH_BOX(&opwalker_ref::gptq_gemm));
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, Meta, ops) {
  ops.impl("gptq_gemm", TORCH_BOX(&opwalker_ref::gptq_gemm_shape));
}
