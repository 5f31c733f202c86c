// Sums and maxima over the threads of a block; every thread gets the result.
#pragma once

#include <cuda_runtime.h>

namespace opwalker_ref {

struct Sum {
  static constexpr float kNeutral = 0.0f;
  __device__ static float of(float a, float b) { return a + b; }
};

struct Max {
  static constexpr float kNeutral = -3.402823466e38f;
  __device__ static float of(float a, float b) { return fmaxf(a, b); }
};

// Over the 32 lanes of a warp, all of which must call it.
template <typename Operation>
__device__ __forceinline__ float warp_reduce(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = Operation::of(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

// Over a block of whole warps, all of whose threads must call it. It begins with a barrier, so that it may be called again.
template <typename Operation>
__device__ __forceinline__ float block_reduce(float value) {
  __shared__ float of_warp[32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  value = warp_reduce<Operation>(value);
  __syncthreads();
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = lane < blockDim.x / 32 ? of_warp[lane] : Operation::kNeutral;
  return warp_reduce<Operation>(value);
}

}  // namespace opwalker_ref
