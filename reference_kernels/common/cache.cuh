// What the ops that fill a paged key-value cache share: the element types of a cache, and how an element becomes one of it.
#pragma once

#include "fp8.cuh"
#include "op.cuh"
#include "vector.cuh"

#include <type_traits>

namespace opwalker_ref {

// A vector as the cache stores it: the same bits, or quotients by `scale` in fp8, whose tensors are of uint8.
template <typename cache_t, int kWidth, typename scalar_t>
__device__ __forceinline__ Vector<cache_t, kWidth> to_cache(const Vector<scalar_t, kWidth>& from, float scale) {
  if constexpr (std::is_same_v<cache_t, scalar_t>) {
    return from;
  } else {
    return fp8_of<kWidth>([&](int i) { return to_float(from[i]) / scale; });
  }
}

// What an element of a cache stands for, where its scale is 1.
template <typename cache_t>
__device__ __forceinline__ float from_cache(cache_t x) {
  if constexpr (std::is_same_v<cache_t, fp8_t>) {
    return from_fp8(x);
  } else {
    return to_float(x);
  }
}

// Whether `kv_cache_dtype` names fp8 ("auto" is the type of the keys and values), with a check of the cache's own type.
inline bool is_fp8(const std::string& kv_cache_dtype, const Tensor& key, const Tensor& cache, const char* op) {
  const bool fp8 = kv_cache_dtype == "fp8" || kv_cache_dtype == "fp8_e4m3";
  STD_TORCH_CHECK(fp8 || kv_cache_dtype == "auto", op, ": no cache of kv_cache_dtype ", kv_cache_dtype);
  STD_TORCH_CHECK(fp8 ? cache.element_size() == 1 : cache.scalar_type() == key.scalar_type(), op,
                  ": the cache has another type than kv_cache_dtype says");
  return fp8;
}

}  // namespace opwalker_ref

// Runs a lambda with `scalar_t` bound to the type of the keys and `cache_t` to that of the cache.
#define DISPATCH_CACHE_TYPES(TYPE, IS_FP8, NAME, ...)   \
  DISPATCH_FLOATING_TYPES(TYPE, NAME, [&] {             \
    if (IS_FP8) {                                       \
      using cache_t = ::opwalker_ref::fp8_t;            \
      return __VA_ARGS__();                             \
    } else {                                            \
      using cache_t = scalar_t;                         \
      return __VA_ARGS__();                             \
    }                                                   \
  })
