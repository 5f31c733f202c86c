// Loads and stores that order memory for the whole system: the other GPUs and the CPU too. The emulation has its own.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
namespace opwalker_ref {

__device__ __forceinline__ void store_release(uint32_t* to, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

__device__ __forceinline__ uint32_t load_acquire(const uint32_t* from) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}

// Some milliseconds of nothing: lets the wrong variants of a protocol be slow where that shows what is wrong.
__device__ inline void loiter() {
  for (int i = 0; i < 10; ++i) __nanosleep(1000000);
}

}  // namespace opwalker_ref
#endif
