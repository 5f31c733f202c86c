// A barrier between the same block of threads on several GPUs, made of flags in memory that all of them can reach.
//
// A rank tells every rank that it has come by a store with release: what it wrote before is seen by whoever sees the flag. It
// waits for every rank by loads with acquire: what it reads afterwards is no older than the flag. Both hold for the whole
// system, not for one GPU.
#pragma once

#include "system_scope.cuh"

#include <cstdint>

namespace opwalker_ref {

constexpr int kMaxRanks = 8;
constexpr int kMaxBlocks = 64;

// Flags of different ranks are written by different GPUs: each has a line of the cache to itself.
struct alignas(128) Flag {
  uint32_t value;
};

// Of one rank, in memory that starts as zeros. The two barriers of a kernel have flags of their own: with one set, a rank that
// is past the first barrier would overwrite what a slow one has not seen yet, and that one would wait for ever.
struct Signal {
  Flag start[kMaxBlocks][kMaxRanks];  // start[b][r]: how often block b of rank r has come, as it told this rank
  Flag end[kMaxBlocks][kMaxRanks];
  Flag count[kMaxBlocks];  // how many barriers block b of this rank has passed
};

__device__ inline Flag* flags_of(Signal* signal, bool at_end) {
#ifdef OPWALKER_WRONG_ONE_FLAG_SET
  at_end = false;
#endif
  return at_end ? signal->end[blockIdx.x] : signal->start[blockIdx.x];
}

// Waits until this block has come here on every rank. Flags count upwards: there is nothing to reset, which would itself need
// a barrier. All threads of the block call it.
__device__ inline void barrier(Signal* const* signals, int rank, int ranks, bool at_end) {
  __syncthreads();  // what any thread of the block did comes before the release below
  Signal* own = signals[rank];
  const uint32_t count = own->count[blockIdx.x].value + 1;
  for (int peer = threadIdx.x; peer < ranks; peer += blockDim.x) {
    store_release(&flags_of(signals[peer], at_end)[rank].value, count);
  }
#ifdef OPWALKER_WRONG_ONE_FLAG_SET
  if (rank == 1) loiter();  // makes the mistake show
#endif
  for (int peer = threadIdx.x; peer < ranks; peer += blockDim.x) {
    while (load_acquire(&flags_of(own, at_end)[peer].value) != count) {
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) own->count[blockIdx.x].value = count;
}

}  // namespace opwalker_ref
