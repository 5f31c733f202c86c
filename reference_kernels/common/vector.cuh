// Several neighbouring elements moved as one: a thread that loads 16 bytes at once keeps the memory busy with a quarter of
// the instructions that 4-byte loads need.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>

namespace opwalker_ref {

// How many elements of a type fill one 16-byte access.
template <typename scalar_t>
constexpr int kFullWidth = 16 / sizeof(scalar_t);

template <typename scalar_t, int kWidth>
struct alignas(sizeof(scalar_t) * kWidth) Vector {
  scalar_t data[kWidth];

  __device__ scalar_t& operator[](int i) { return data[i]; }
  __device__ const scalar_t& operator[](int i) const { return data[i]; }
};

// `from` must be aligned to the size of the vector.
template <int kWidth, typename scalar_t>
__device__ __forceinline__ Vector<scalar_t, kWidth> load(const scalar_t* from) {
  return *reinterpret_cast<const Vector<scalar_t, kWidth>*>(from);
}

template <int kWidth, typename scalar_t>
__device__ __forceinline__ void store(scalar_t* to, const Vector<scalar_t, kWidth>& value) {
  *reinterpret_cast<Vector<scalar_t, kWidth>*>(to) = value;
}

// The same, and the first to leave the cache: for results that fill it many times over before anyone reads them.
template <int kWidth, typename scalar_t>
__device__ __forceinline__ void store_streamed(scalar_t* to, const Vector<scalar_t, kWidth>& value) {
  if constexpr (sizeof(value) == sizeof(uint4)) {
    __stcs(reinterpret_cast<uint4*>(to), *reinterpret_cast<const uint4*>(&value));
  } else {
    store<kWidth>(to, value);
  }
}

// Whether vectors of kWidth elements may be loaded from each pointer; a null pointer is never loaded from.
template <int kWidth, typename... scalar_t>
bool aligned(const scalar_t*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % (sizeof(scalar_t) * kWidth) == 0) && ...);
}

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

// Rounds to the nearest value of a type, ties to even.
template <typename scalar_t>
__device__ __forceinline__ scalar_t from_float(float x);
template <>
__device__ __forceinline__ float from_float<float>(float x) { return x; }
template <>
__device__ __forceinline__ __half from_float<__half>(float x) { return __float2half_rn(x); }
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }

}  // namespace opwalker_ref
