// A cache to fp8, dst = src / scale, or from fp8, dst = src * scale. Codes of fp8 are uint8.

#include "common/fp8.cuh"
#include "common/op.cuh"
#include "common/vector.cuh"

#include <type_traits>

namespace opwalker_ref {

template <typename to_t, typename from_t, int kWidth>
__global__ void __launch_bounds__(256) convert_fp8_kernel(
    to_t* __restrict__ dst_cache,          // [num_blocks, ...]
    const from_t* __restrict__ src_cache,  // [num_blocks, ...]
    float scale, int64_t vectors) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
#ifndef OPWALKER_WRONG_ONE_ROUND
  for (int64_t v = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; v < vectors; v += step) {
#else
  if (const int64_t v = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; v < std::min(vectors, step)) {
#endif
    const auto x = load<kWidth>(src_cache + v * kWidth);
    if constexpr (std::is_same_v<to_t, fp8_t>) {
#ifndef OPWALKER_WRONG_SCALE_INVERTED
      store<kWidth>(dst_cache + v * kWidth, fp8_of<kWidth>([&](int i) { return to_float(x[i]) / scale; }));
#else
      store<kWidth>(dst_cache + v * kWidth, fp8_of<kWidth>([&](int i) { return to_float(x[i]) * scale; }));
#endif
    } else {
      Vector<to_t, kWidth> y;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) y[i] = from_float<to_t>(from_fp8(x[i]) * scale);
      store<kWidth>(dst_cache + v * kWidth, y);
    }
  }
}

template <typename to_t, typename from_t, int kWidth>
void launch_convert_fp8(to_t* to, const from_t* from, double scale, int64_t elements, cudaStream_t stream) {
  constexpr int kThreads = 256;
  const int64_t vectors = elements / kWidth;
  const unsigned blocks = blocks_to_fill((vectors + kThreads - 1) / kThreads, 8);
  convert_fp8_kernel<to_t, from_t, kWidth>
      <<<blocks, kThreads, 0, stream>>>(to, from, static_cast<float>(scale), vectors);
  check_launch("convert_fp8");
}

void convert_fp8(Tensor& dst_cache,        // [num_blocks, ...]
                 const Tensor& src_cache,  // [num_blocks, ...]
                 double scale, const std::string& kv_cache_dtype) {
  STD_TORCH_CHECK(kv_cache_dtype == "fp8" || kv_cache_dtype == "fp8_e4m3", "convert_fp8: no conversion for kv_cache_dtype ",
                  kv_cache_dtype);
  STD_TORCH_CHECK(dst_cache.is_contiguous() && src_cache.is_contiguous(), "convert_fp8: caches must be contiguous");
  STD_TORCH_CHECK(dst_cache.numel() == src_cache.numel(), "convert_fp8: caches differ in size");
  const bool to_fp8 = dst_cache.scalar_type() == ScalarType::Byte;
  STD_TORCH_CHECK(to_fp8 != (src_cache.scalar_type() == ScalarType::Byte), "convert_fp8: one cache must be uint8");
  const int64_t elements = src_cache.numel();
  if (elements == 0) return;

  const DeviceGuard guard(src_cache.get_device_index());
  const cudaStream_t stream = current_stream(src_cache);
  const Tensor& plain = to_fp8 ? src_cache : dst_cache;
  const Tensor& coded = to_fp8 ? dst_cache : src_cache;
  DISPATCH_FLOATING_TYPES(plain.scalar_type(), "convert_fp8", [&] {
    constexpr int kWidth = kFullWidth<scalar_t>;
    auto* numbers = static_cast<scalar_t*>(plain.data_ptr());
    auto* codes = static_cast<fp8_t*>(coded.data_ptr());
    const bool wide = elements % kWidth == 0 && aligned<kWidth>(numbers) && aligned<kWidth>(codes);
    if (to_fp8 && wide) {
      launch_convert_fp8<fp8_t, scalar_t, kWidth>(codes, numbers, scale, elements, stream);
    } else if (to_fp8) {
      launch_convert_fp8<fp8_t, scalar_t, 1>(codes, numbers, scale, elements, stream);
    } else if (wide) {
      launch_convert_fp8<scalar_t, fp8_t, kWidth>(numbers, codes, scale, elements, stream);
    } else {
      launch_convert_fp8<scalar_t, fp8_t, 1>(numbers, codes, scale, elements, stream);
    }
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("convert_fp8(Tensor! dst_cache, Tensor src_cache, float scale, str kv_cache_dtype) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("convert_fp8", TORCH_BOX(&opwalker_ref::convert_fp8));
}
