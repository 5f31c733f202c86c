// CUDA's narrow floating-point types: bits, with conversions that round as the device does (to nearest, ties to even).
#pragma once

namespace cuda_on_cpu {

template <typename To, typename From>
To bits_of(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// The bits of a size >= 0 in a type of kExponent bits of exponent and kMantissa behind the point, rounded. What is too large
// comes out as a number larger than every code: the caller says what that becomes.
template <int kExponent, int kMantissa>
uint64_t code_of(double size) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  if (std::isinf(size)) return UINT64_MAX;
  const int exponent = size == 0 ? 1 - kBias : std::max(std::ilogb(size), 1 - kBias);
  const double steps = std::nearbyint(std::ldexp(size, kMantissa - exponent));
  return (static_cast<uint64_t>(exponent + kBias - 1) << kMantissa) + static_cast<uint64_t>(steps);
}

// With a sign, and with all exponent bits set for infinity and NaN.
template <int kExponent, int kMantissa>
unsigned encode(double value) {
  constexpr uint64_t kInfinity = ((1u << kExponent) - 1) << kMantissa;
  if (std::isnan(value)) return kInfinity | ((1u << kMantissa) - 1);
  const unsigned sign = std::signbit(value) ? 1u << (kExponent + kMantissa) : 0;
  return sign | static_cast<unsigned>(std::min(code_of<kExponent, kMantissa>(std::fabs(value)), kInfinity));
}

template <int kExponent, int kMantissa>
float decode(unsigned code) {
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  const unsigned exponent = code >> kMantissa & ((1u << kExponent) - 1);
  const unsigned mantissa = code & ((1u << kMantissa) - 1);
  const float sign = code >> (kExponent + kMantissa) & 1 ? -1.0f : 1.0f;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), 1 - kBias - kMantissa);
  return sign * std::ldexp(static_cast<float>(mantissa + (1u << kMantissa)), static_cast<int>(exponent) - kBias - kMantissa);
}

}  // namespace cuda_on_cpu

struct __half { uint16_t bits; };
struct __nv_bfloat16 { uint16_t bits; };

inline __half __float2half_rn(float x) { return {static_cast<uint16_t>(cuda_on_cpu::encode<5, 10>(x))}; }
inline __half __float2half(float x) { return __float2half_rn(x); }
inline float __half2float(__half x) {
  if ((x.bits & 0x7c00) == 0x7c00) return x.bits & 0x3ff ? NAN : x.bits & 0x8000 ? -INFINITY : INFINITY;
  return cuda_on_cpu::decode<5, 10>(x.bits);
}
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return {static_cast<uint16_t>(cuda_on_cpu::encode<8, 7>(x))}; }
inline __nv_bfloat16 __float2bfloat16(float x) { return __float2bfloat16_rn(x); }
inline float __bfloat162float(__nv_bfloat16 x) { return cuda_on_cpu::bits_of<float>(static_cast<uint32_t>(x.bits) << 16); }

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
using __nv_fp8_storage_t = unsigned char;

// With __NV_SATFINITE what is too large becomes the largest finite value.
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  if (std::isnan(x)) return 0x7f;
  const bool e4m3 = kind == __NV_E4M3;
  const uint64_t code = e4m3 ? cuda_on_cpu::code_of<4, 3>(std::fabs(x)) : cuda_on_cpu::code_of<5, 2>(std::fabs(x));
  const uint64_t largest = e4m3 ? 0x7e : 0x7b;
  const uint64_t beyond = e4m3 ? 0x7f : 0x7c;
  const uint64_t limited = code <= largest ? code : saturate == __NV_SATFINITE ? largest : beyond;
  return static_cast<__nv_fp8_storage_t>((std::signbit(x) ? 0x80 : 0) | limited);
}

using __nv_fp8x2_storage_t = unsigned short;
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturate, __nv_fp8_interpretation_t kind) {
  const unsigned high = __nv_cvt_float_to_fp8(x.y, saturate, kind);
  return static_cast<__nv_fp8x2_storage_t>(high << 8 | __nv_cvt_float_to_fp8(x.x, saturate, kind));
}

struct __nv_fp8_e4m3 {
  __nv_fp8_storage_t __x;
  __nv_fp8_e4m3() = default;
  explicit __nv_fp8_e4m3(float x) : __x(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3)) {}
  explicit operator float() const { return (__x & 0x7f) == 0x7f ? NAN : cuda_on_cpu::decode<4, 3>(__x); }
};
