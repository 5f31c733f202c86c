// CUDA's keywords and its small built-in structures.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sched.h>
#include <unistd.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __grid_constant__
#define __launch_bounds__(...)
// A block's threads, and they alone, see one copy; another block, run later, finds the old contents, so the emulation
// poisons each variable when a block meets it first (the rewriting of the source adds that call).
#define __shared__ static thread_local

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
using uint3 = dim3;

#define CUDA_ON_CPU_VECTORS(T, NAME)                                 \
  struct alignas(2 * sizeof(T)) NAME##2 { T x, y; };                 \
  struct NAME##3 { T x, y, z; };                                     \
  struct alignas(4 * sizeof(T)) NAME##4 { T x, y, z, w; };           \
  inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }         \
  inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
CUDA_ON_CPU_VECTORS(float, float)
CUDA_ON_CPU_VECTORS(int, int)
#undef CUDA_ON_CPU_VECTORS
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// What a kernel reads of its place; set whenever a fiber gets its turn.
inline thread_local dim3 threadIdx{0, 0, 0}, blockIdx{0, 0, 0}, blockDim, gridDim;
constexpr int warpSize = 32;
