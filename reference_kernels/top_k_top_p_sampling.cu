// One token for each row of logits, drawn from the top_k most likely ones and of these from the smallest number that together
// has probability top_p. The random numbers are given, and the same ones give the same tokens: probabilities are weights in
// fixed point, whose sums do not depend on the order in which threads add them.
//
// Likelier is what has the larger logit; of equal ones the first. A row is never sorted: what is kept is found by descending
// through the bits of the logits, with one histogram for each eight of them.

#include "common/op.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

constexpr int kSamplingThreads = 512;

// A number of tokens, or their probability in units of 2^-40 of the likeliest one's.
using Weight = unsigned long long;

// Everything up to a token, likeliest first.
struct Kept {
  unsigned key;  // of its logit
  int last;      // its index: ties behind it are out

  __device__ bool has(int token, unsigned of) const { return of > key || (of == key && token <= last); }
};

// A row of logits, and what its block of threads shares while it goes through it.
template <typename scalar_t>
struct LogitRow {
  const scalar_t* logits;  // [vocab_size]
  int size;
  float highest;
  Weight* histogram;  // [256]
  Weight* of_warp;    // [32]
  Kept* found;        // [1]
  Weight* above;      // [1]

  // An unsigned number that is larger for a larger logit; both zeros have the same.
  __device__ unsigned key(int token) const {
    const unsigned bits = __float_as_uint(to_float(logits[token]) + 0.0f);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
  }
  __device__ Weight probability(int token) const {
    return static_cast<Weight>(expf(to_float(logits[token]) - highest) * 1099511627776.0f);
  }
};

// The sum of what the threads before this one bring; `total` is that of all. It begins with a barrier.
template <typename scalar_t>
__device__ Weight sum_before(const LogitRow<scalar_t>& row, Weight mine, Weight& total) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  Weight sum = mine;
  for (int distance = 1; distance < 32; distance *= 2) {
    const Weight other = __shfl_up_sync(0xffffffffu, sum, distance);
    if (lane >= distance) sum += other;
  }
  __syncthreads();
  if (lane == 31) row.of_warp[warp] = sum;
  __syncthreads();
  Weight before = 0;
  total = 0;
  for (int w = 0; w < kSamplingThreads / 32; ++w) {
    if (w == warp) before = total;
    total += row.of_warp[w];
  }
  return before + sum - mine;
}

// The first token, in the order of the vocabulary, at which the sum of measure(token, key) is more than `target`.
template <typename scalar_t, typename Measure>
__device__ int locate(const LogitRow<scalar_t>& row, Weight target, Measure measure) {
  Weight before = 0;
  for (int first = 0; first < row.size && before <= target; first += kSamplingThreads) {
    const int token = first + threadIdx.x;
    const Weight mine = token < row.size ? measure(token, row.key(token)) : 0;
    Weight total;
    const Weight at = before + sum_before(row, mine, total);
    if (at <= target && target < at + mine) row.found->last = token;
    before += total;
  }
  __syncthreads();
  return row.found->last;
}

// The likeliest tokens, as few of them as reach `target` by the sum of measure(token, key).
template <typename scalar_t, typename Measure>
__device__ Kept cut(const LogitRow<scalar_t>& row, Weight target, Measure measure) {
  unsigned key = 0;
  Weight above = 0;  // of tokens with a larger key than those that share the bits found
  for (int shift = 24; shift >= 0; shift -= 8) {
    __syncthreads();
    if (threadIdx.x < 256) row.histogram[threadIdx.x] = 0;
    __syncthreads();
    for (int token = threadIdx.x; token < row.size; token += kSamplingThreads) {
      const unsigned of = row.key(token);
      if ((of ^ key) >> shift >> 8 == 0) atomicAdd(&row.histogram[of >> shift & 255], measure(token, of));
    }
    __syncthreads();
    const int digit = 255 - static_cast<int>(threadIdx.x);
    const Weight mine = digit >= 0 ? row.histogram[digit] : 0;
    Weight total;
    const Weight at = above + sum_before(row, mine, total);
    if (at < target && target <= at + mine) {
      row.found->key = key | static_cast<unsigned>(digit) << shift;
      *row.above = at;
    }
    __syncthreads();
    key = row.found->key;
    above = *row.above;
  }
#ifndef OPWALKER_WRONG_ALL_TIES_KEPT
  const int last = locate(row, target - above - 1, [&](int token, unsigned of) -> Weight {
    return of == key ? measure(token, of) : 0;
  });
#else
  const int last = row.size;
#endif
  return {key, last};
}

template <typename scalar_t>
__global__ void __launch_bounds__(kSamplingThreads) top_k_top_p_sampling_kernel(
    int64_t* __restrict__ samples,        // [num_seqs]
    const scalar_t* __restrict__ logits,  // [num_seqs, vocab_size]
    const int* __restrict__ top_k,        // [num_seqs]
    const float* __restrict__ top_p,      // [num_seqs]
    const float* __restrict__ uniform,    // [num_seqs]
    int64_t logits_stride, int vocab_size) {
  __shared__ Weight histogram[256];
  __shared__ Weight of_warp[32];
  __shared__ Weight above;
  __shared__ Kept found;
  const int64_t seq = blockIdx.x;
  LogitRow<scalar_t> row{logits + seq * logits_stride, vocab_size, 0.0f, histogram, of_warp, &found, &above};
  float highest = Max::kNeutral;
  for (int i = threadIdx.x; i < vocab_size; i += kSamplingThreads) highest = fmaxf(highest, to_float(row.logits[i]));
  row.highest = block_reduce<Max>(highest);

  Kept kept{0, vocab_size};  // everything
  const auto probability = [&](int token, unsigned key) -> Weight {
    return kept.has(token, key) ? row.probability(token) : 0;
  };
  const auto sum_of_kept = [&] {
    Weight mine = 0;
    for (int i = threadIdx.x; i < vocab_size; i += kSamplingThreads) mine += probability(i, row.key(i));
    Weight total;
    sum_before(row, mine, total);
    return total;
  };
#ifdef OPWALKER_WRONG_SHARE_OF_ALL
  const Weight of_all = sum_of_kept();
#endif
  if (top_k != nullptr && top_k[seq] > 0 && top_k[seq] < vocab_size) {
    kept = cut(row, top_k[seq], [](int, unsigned) -> Weight { return 1; });
  }
  if (top_p != nullptr && top_p[seq] < 1.0f) {
    const Weight of_kept = sum_of_kept();
#ifdef OPWALKER_WRONG_SHARE_OF_ALL
    const Weight wanted = static_cast<Weight>(ceil(static_cast<double>(top_p[seq]) * of_all));
#else
    const Weight wanted = static_cast<Weight>(ceil(static_cast<double>(top_p[seq]) * of_kept));
#endif
    kept = cut(row, min(max(wanted, Weight{1}), of_kept), probability);
  }
  const Weight total = sum_of_kept();
  const Weight target = min(static_cast<Weight>(static_cast<double>(uniform[seq]) * total), total - 1);
  const int sample = locate(row, target, probability);
  if (threadIdx.x == 0) samples[seq] = sample;
}

void top_k_top_p_sampling(Tensor& samples,                     // [num_seqs]
                          const Tensor& logits,                // [num_seqs, vocab_size]
                          const std::optional<Tensor>& top_k,  // [num_seqs]
                          const std::optional<Tensor>& top_p,  // [num_seqs]
                          const Tensor& uniform) {             // [num_seqs]
  const int64_t num_seqs = logits.size(0);
  STD_TORCH_CHECK(logits.stride(1) == 1, "top_k_top_p_sampling: the logits of a sequence must be contiguous");
  STD_TORCH_CHECK(samples.scalar_type() == ScalarType::Long && samples.is_contiguous() && samples.numel() == num_seqs,
                  "top_k_top_p_sampling: samples must be int64 and [num_seqs]");
  STD_TORCH_CHECK(!top_k.has_value() || (top_k->scalar_type() == ScalarType::Int && top_k->numel() == num_seqs),
                  "top_k_top_p_sampling: top_k must be int32 and [num_seqs]");
  STD_TORCH_CHECK(!top_p.has_value() || (top_p->scalar_type() == ScalarType::Float && top_p->numel() == num_seqs),
                  "top_k_top_p_sampling: top_p must be float32 and [num_seqs]");
  STD_TORCH_CHECK(uniform.scalar_type() == ScalarType::Float && uniform.numel() == num_seqs,
                  "top_k_top_p_sampling: uniform must be float32 and [num_seqs]");
  if (logits.numel() == 0) return;

  const DeviceGuard guard(logits.get_device_index());
  const cudaStream_t stream = current_stream(logits);
  DISPATCH_FLOATING_TYPES(logits.scalar_type(), "top_k_top_p_sampling", [&] {
    top_k_top_p_sampling_kernel<scalar_t><<<static_cast<unsigned>(num_seqs), kSamplingThreads, 0, stream>>>(
        static_cast<int64_t*>(samples.data_ptr()), static_cast<const scalar_t*>(logits.data_ptr()),
        top_k.has_value() ? static_cast<const int*>(top_k->data_ptr()) : nullptr,
        top_p.has_value() ? static_cast<const float*>(top_p->data_ptr()) : nullptr,
        static_cast<const float*>(uniform.data_ptr()), logits.stride(0), static_cast<int>(logits.size(1)));
    check_launch("top_k_top_p_sampling");
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "top_k_top_p_sampling(Tensor! samples, Tensor logits, Tensor? top_k, Tensor? top_p, Tensor uniform) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("top_k_top_p_sampling", TORCH_BOX(&opwalker_ref::top_k_top_p_sampling));
}
