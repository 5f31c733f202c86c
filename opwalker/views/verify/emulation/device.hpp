// What kernels call: barriers, shuffles, votes, atomics, conversions and fast forms of mathematical functions.
#pragma once

#ifdef CUDA_ON_CPU_ONE_THREAD
inline void __syncthreads() {}
#else
inline void __syncthreads() { cuda_on_cpu::block.barrier(false); }
#endif
inline int __syncthreads_count(int vote) { return cuda_on_cpu::block.barrier(vote != 0); }
inline int __syncthreads_or(int vote) { return __syncthreads_count(vote) > 0; }
inline int __syncthreads_and(int vote) { return __syncthreads_count(vote == 0) == 0; }
inline void __syncwarp(unsigned mask = 0xffffffffu) { cuda_on_cpu::block.warp_barrier(mask); }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }

namespace cuda_on_cpu {

// The value of the lane that `source` names; a lane's own where that lies outside its group of `width` lanes.
template <typename T>
T shuffle(unsigned mask, T value, unsigned source, int width, bool inside) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  const unsigned lane = block.lane();
  const unsigned first = lane / width * width;
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  const uint64_t got = block.exchange(mask, bits, [&](const uint64_t* slots, unsigned) {
    return slots[inside ? first + source % width : lane];
  });
  T result;
  std::memcpy(&result, &got, sizeof(T));
  return result;
}

}  // namespace cuda_on_cpu

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  return cuda_on_cpu::shuffle(mask, value, static_cast<unsigned>(source), width, true);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int distance, int width = 32) {
  const unsigned place = cuda_on_cpu::block.lane() % width ^ distance;
  return cuda_on_cpu::shuffle(mask, value, place, width, place < static_cast<unsigned>(width));
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  const unsigned place = cuda_on_cpu::block.lane() % width + distance;
  return cuda_on_cpu::shuffle(mask, value, place, width, place < static_cast<unsigned>(width));
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  const unsigned place = cuda_on_cpu::block.lane() % width - distance;
  return cuda_on_cpu::shuffle(mask, value, place, width, place < static_cast<unsigned>(width));
}

inline unsigned __ballot_sync(unsigned mask, int vote) {
  return cuda_on_cpu::block.exchange(mask, vote != 0, [](const uint64_t* slots, unsigned lanes) {
    unsigned result = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (lanes >> lane & 1 && slots[lane]) result |= 1u << lane;
    }
    return result;
  });
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return cuda_on_cpu::block.exchange(mask, bits, [&](const uint64_t* slots, unsigned lanes) {
    unsigned result = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (lanes >> lane & 1 && slots[lane] == bits) result |= 1u << lane;
    }
    return result;
  });
}
namespace cuda_on_cpu {

template <typename T, typename Better>
T best_of_lanes(unsigned mask, T value, Better better) {
  const auto bits = static_cast<uint64_t>(static_cast<int64_t>(value));
  const uint64_t best = block.exchange(mask, bits, [&](const uint64_t* slots, unsigned lanes) {
    uint64_t found = slots[__builtin_ctz(lanes)];
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (lanes >> lane & 1 && better(static_cast<T>(slots[lane]), static_cast<T>(found))) found = slots[lane];
    }
    return found;
  });
  return static_cast<T>(best);
}

}  // namespace cuda_on_cpu

template <typename T>
T __reduce_max_sync(unsigned mask, T value) {
  return cuda_on_cpu::best_of_lanes(mask, value, [](T a, T b) { return a > b; });
}
template <typename T>
T __reduce_min_sync(unsigned mask, T value) {
  return cuda_on_cpu::best_of_lanes(mask, value, [](T a, T b) { return a < b; });
}
inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
inline int __all_sync(unsigned mask, int vote) { return __ballot_sync(mask, !vote) == 0; }

// Several ranks of a collective run as OS threads, so an atomic is one.
template <typename T, typename Change>
T cuda_on_cpu_atomic(T* at, Change change) {
  T old;
  __atomic_load(at, &old, __ATOMIC_RELAXED);
  for (;;) {
    T wanted = change(old);
    if (__atomic_compare_exchange(at, &old, &wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return old;
  }
}
template <typename T>
T atomicAdd(T* at, T by) { return cuda_on_cpu_atomic(at, [&](T old) { return static_cast<T>(old + by); }); }
template <typename T>
T atomicMax(T* at, T with) { return cuda_on_cpu_atomic(at, [&](T old) { return std::max(old, with); }); }
template <typename T>
T atomicMin(T* at, T with) { return cuda_on_cpu_atomic(at, [&](T old) { return std::min(old, with); }); }
template <typename T>
T atomicOr(T* at, T with) { return cuda_on_cpu_atomic(at, [&](T old) { return old | with; }); }
template <typename T>
T atomicExch(T* at, T with) { return cuda_on_cpu_atomic(at, [&](T) { return with; }); }
template <typename T>
T atomicCAS(T* at, T if_this, T then_this) {
  return cuda_on_cpu_atomic(at, [&](T old) { return old == if_this ? then_this : old; });
}

// What common/system_scope.cuh has for a GPU. Ranks are OS threads, of which there may be more than cores.
namespace opwalker_ref {

inline void store_release(uint32_t* to, uint32_t value) { __atomic_store_n(to, value, __ATOMIC_RELEASE); }
inline uint32_t load_acquire(const uint32_t* from) {
  cuda_on_cpu::block.pause();
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
inline void loiter() { usleep(20000); }

}  // namespace opwalker_ref

inline int __float_as_int(float x) { return cuda_on_cpu::bits_of<int>(x); }
inline unsigned __float_as_uint(float x) { return cuda_on_cpu::bits_of<unsigned>(x); }
inline float __int_as_float(int x) { return cuda_on_cpu::bits_of<float>(x); }
inline float __uint_as_float(unsigned x) { return cuda_on_cpu::bits_of<float>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
template <typename T>
T __ldg(const T* from) { return *from; }
template <typename T>
T __ldcs(const T* from) { return *from; }
template <typename T>
void __stcs(T* to, T value) { *to = value; }

using std::isinf;
using std::isnan;
using std::max;
using std::min;
