// The product of two matrices, a tile of the result for each block of threads.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace opwalker_ref {

constexpr int kTile = 64;         // rows and columns of a block's tile
constexpr int kTileThreads = 16;  // threads along each side of it
constexpr int kPerThread = kTile / kTileThreads;

// What a thread has of the tile: rows threadIdx.y + 16 i, columns threadIdx.x + 16 j.
struct TilePart {
  float sums[kPerThread][kPerThread] = {};
};

// Adds up a(row, k) * b(k, column) over k, for the rows and columns of the block's tile. Both give 0 where the matrices end.
// Elements are fetched once for the whole block, kDepth values of k at a time, with k fastest for a, and for b where
// kDepthFirst says so: neighbouring threads then read neighbouring elements.
template <bool kDepthFirst, typename A, typename B>
__device__ TilePart tile_product(A a, B b, int depth) {
  constexpr int kDepth = 16;
  __shared__ float a_tile[kDepth][kTile + 1];
  __shared__ float b_tile[kDepth][kTile + 1];
  const int thread = threadIdx.y * kTileThreads + threadIdx.x;
  TilePart part;
#ifdef OPWALKER_WRONG_DEPTH_CUT
  depth = depth / kDepth * kDepth;
#endif
  for (int first = 0; first < depth; first += kDepth) {
    for (int i = thread; i < kDepth * kTile; i += kTileThreads * kTileThreads) {
      a_tile[i % kDepth][i / kDepth] = a(i / kDepth, first + i % kDepth);
      const int k = kDepthFirst ? i % kDepth : i / kTile;
      const int column = kDepthFirst ? i / kDepth : i % kTile;
      b_tile[k][column] = b(first + k, column);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
#pragma unroll
        for (int j = 0; j < kPerThread; ++j) {
          part.sums[i][j] += a_tile[k][threadIdx.y + i * kTileThreads] * b_tile[k][threadIdx.x + j * kTileThreads];
        }
      }
    }
    __syncthreads();
  }
  return part;
}

// Calls f(row, column, sum) for what a thread has of its block's tile, as far as the result reaches.
template <typename F>
__device__ void each_of(const TilePart& part, int64_t rows, int64_t columns, F f) {
#pragma unroll
  for (int i = 0; i < kPerThread; ++i) {
    const int64_t row = static_cast<int64_t>(blockIdx.x) * kTile + threadIdx.y + i * kTileThreads;
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) {
      const int64_t column = static_cast<int64_t>(blockIdx.y) * kTile + threadIdx.x + j * kTileThreads;
      if (row < rows && column < columns) f(row, column, part.sums[i][j]);
    }
  }
}

// Tiles for a result of that size: x counts rows, y columns.
inline dim3 grid_of_tiles(int64_t rows, int64_t columns) {
  return dim3(static_cast<unsigned>((rows + kTile - 1) / kTile), static_cast<unsigned>((columns + kTile - 1) / kTile));
}

}  // namespace opwalker_ref
