/* What opwalker has clang read before a unit with device code, in place of the wrapper that a CUDA compiler brings.

   Host code is what counts, so nothing here needs to be callable on a device; it must only leave the names, types and
   attributes that a source relies on. The standard library comes first, its functions open to both sides: CUDA's
   headers declare some of them again. OPWALKER_CUDA is 1000 * major + 10 * minor, set on the command line. */
#include <new>
#pragma clang force_cuda_host_device begin
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>
#pragma clang force_cuda_host_device end

#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ (OPWALKER_CUDA / 1000)
#define __CUDACC_VER_MINOR__ (OPWALKER_CUDA % 1000 / 10)
#define __CUDACC_VER_BUILD__ 0
#define __CUDACC_EXTENDED_LAMBDA__ 1
#define __CUDACC_RELAXED_CONSTEXPR__ 1

#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#if __has_include(<cuda.h>)
#include <cuda.h> /* most sources get it from somewhere, and some ask for its CUDA_VERSION */
#endif
#else
/* No CUDA headers on this machine: the least that lets a launch be read as one. */
#define CUDA_VERSION OPWALKER_CUDA
#define CUDART_VERSION OPWALKER_CUDA
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __grid_constant__
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
enum cudaError { cudaSuccess = 0 };
typedef enum cudaError cudaError_t;
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
extern const int warpSize;
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, __SIZE_TYPE__ = 0, cudaStream_t = 0);
extern "C" cudaError_t cudaGetLastError();
extern "C" const char* cudaGetErrorString(cudaError_t);
extern "C" cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, __SIZE_TYPE__ = 0, cudaStream_t = 0);
__attribute__((device)) void __syncthreads();
#endif
