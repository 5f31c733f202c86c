// A row of numbers that the threads of a block share, read from memory once and gone through several times.
#pragma once

#include "vector.cuh"

namespace opwalker_ref {

// Each thread keeps its first kKept vectors in registers; a longer row is read again, from the cache, each time.
template <typename scalar_t, int kWidth, int kKept = 4>
class KeptRow {
 public:
  // `row` has `vectors` vectors; every thread of the block makes one.
  __device__ KeptRow(const scalar_t* row, int vectors) : row_(row), vectors_(vectors) {
#pragma unroll
    for (int j = 0; j < kKept; ++j) {
      const int v = threadIdx.x + j * blockDim.x;
      if (v < vectors_) kept_[j] = load<kWidth>(row_ + static_cast<int64_t>(v) * kWidth);
    }
  }

  // Calls f(first element, vector) for this thread's vectors. What f changes in a vector is kept where it is in registers;
  // the rest f must write to the row itself if a later pass is to see it.
  template <typename F>
  __device__ __forceinline__ void each(F f) {
    each_kept(f);
    for (int v = threadIdx.x + kKept * blockDim.x; v < vectors_; v += blockDim.x) {
      auto x = load<kWidth>(row_ + static_cast<int64_t>(v) * kWidth);
      f(static_cast<int64_t>(v) * kWidth, x);
    }
  }

  // Calls f(first element, vector, the other row's vector).
  template <typename F>
  __device__ __forceinline__ void each_with(const KeptRow& other, F f) {
#pragma unroll
    for (int j = 0; j < kKept; ++j) {
      const int v = threadIdx.x + j * blockDim.x;
      if (v < vectors_) f(static_cast<int64_t>(v) * kWidth, kept_[j], other.kept_[j]);
    }
    for (int v = threadIdx.x + kKept * blockDim.x; v < vectors_; v += blockDim.x) {
      const int64_t at = static_cast<int64_t>(v) * kWidth;
      auto x = load<kWidth>(row_ + at);
      f(at, x, load<kWidth>(other.row_ + at));
    }
  }

  // As each, for the part in registers alone.
  template <typename F>
  __device__ __forceinline__ void each_kept(F f) {
#pragma unroll
    for (int j = 0; j < kKept; ++j) {
      const int v = threadIdx.x + j * blockDim.x;
      if (v < vectors_) f(static_cast<int64_t>(v) * kWidth, kept_[j]);
    }
  }

 private:
  const scalar_t* row_;
  int vectors_;
  Vector<scalar_t, kWidth> kept_[kKept];
};

// Threads for a block that keeps a row: as few as keep all of it. Registers are what limits how many rows a multiprocessor
// works on, and a thread needs most of them whether it keeps one vector or four.
inline unsigned threads_for_row(int64_t vectors) {
  const int64_t warps = (vectors + 127) / 128;
  return static_cast<unsigned>((warps < 1 ? 1 : warps > 32 ? 32 : warps) * 32);
}

}  // namespace opwalker_ref
