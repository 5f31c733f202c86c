// Numbers to fp8 (e4m3: four bits of exponent, three of mantissa, no infinity; the largest is 448) and back.
#pragma once

#include "vector.cuh"

namespace opwalker_ref {

// The bits of an e4m3 number.
using fp8_t = unsigned char;

constexpr float kLargestFp8 = 448.0f;

// The nearest fp8 number, ties to even; beyond the largest it is the largest, and NaN stays NaN.
__device__ __forceinline__ fp8_t to_fp8(float x) {
#ifndef OPWALKER_WRONG_NO_SATURATION
  return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
#else
  return __nv_cvt_float_to_fp8(x, __NV_NOSAT, __NV_E4M3);
#endif
}

// Two at a time: the device has one instruction for that.
__device__ __forceinline__ __nv_fp8x2_storage_t to_fp8(float2 x) {
#ifndef OPWALKER_WRONG_NO_SATURATION
  return __nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, __NV_E4M3);
#else
  return __nv_cvt_float2_to_fp8x2(x, __NV_NOSAT, __NV_E4M3);
#endif
}

// The values f(0), f(1), ... as a vector of fp8 numbers.
template <int kWidth, typename F>
__device__ __forceinline__ Vector<fp8_t, kWidth> fp8_of(F f) {
  Vector<fp8_t, kWidth> codes;
  if constexpr (kWidth % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) {
      const __nv_fp8x2_storage_t pair = to_fp8(make_float2(f(i), f(i + 1)));
      codes[i] = static_cast<fp8_t>(pair & 0xff);
      codes[i + 1] = static_cast<fp8_t>(pair >> 8);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) codes[i] = to_fp8(f(i));
  }
  return codes;
}

__device__ __forceinline__ float from_fp8(fp8_t x) {
  __nv_fp8_e4m3 code;
  code.__x = x;
  return static_cast<float>(code);
}

}  // namespace opwalker_ref
