// output_s = max(max |input|, eps) / fp8_max for each group of a row's elements, and output_q = input / output_s in fp8.
//
// A group belongs to sixteen threads of a warp, which find its largest element together: no barrier of the block is needed.

#include "common/fp8.cuh"
#include "common/op.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

constexpr int kThreadsPerGroup = 16;

template <typename scalar_t, int kWidth>
__global__ void __launch_bounds__(256) per_token_group_fp8_quant_kernel(
    const scalar_t* __restrict__ input,  // [num_tokens, hidden_size]
    fp8_t* __restrict__ output_q,        // [num_tokens, hidden_size]
    float* __restrict__ output_s,        // [num_tokens, hidden_size/group_size]
    int64_t num_groups, int groups_per_token, int group_size, int64_t token_stride, int64_t group_stride, float eps,
    float fp8_min, float fp8_max, bool scale_ue8m0) {
  const int64_t group = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kThreadsPerGroup;
  const int lane = threadIdx.x % kThreadsPerGroup;
  // Threads without a group go on to the shuffles, with nothing.
  const int elements = group < num_groups ? group_size : 0;
  const scalar_t* from = input + group * group_size;
  fp8_t* to = output_q + group * group_size;

  float largest = eps;
  for (int at = lane * kWidth; at < elements; at += kThreadsPerGroup * kWidth) {
    const auto x = load<kWidth>(from + at);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) largest = fmaxf(largest, fabsf(to_float(x[i])));
  }
#ifndef OPWALKER_WRONG_HALF_OF_GROUP
  constexpr int kFarthest = kThreadsPerGroup / 2;
#else
  constexpr int kFarthest = kThreadsPerGroup / 4;
#endif
#pragma unroll
  for (int distance = kFarthest; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
  }

  float scale = largest / fp8_max;
  // ue8m0 has an exponent alone: the next power of two.
#ifndef OPWALKER_WRONG_POWER_BELOW
  if (scale_ue8m0) scale = exp2f(ceilf(log2f(fmaxf(scale, 1e-10f))));
#else
  if (scale_ue8m0) scale = exp2f(floorf(log2f(fmaxf(scale, 1e-10f))));
#endif
  for (int at = lane * kWidth; at < elements; at += kThreadsPerGroup * kWidth) {
    const auto x = load<kWidth>(from + at);  // out of the cache, this time
    store<kWidth>(to + at, fp8_of<kWidth>([&](int i) {
                    return fminf(fmaxf(to_float(x[i]) / scale, fp8_min), fp8_max);
                  }));
  }
  if (lane == 0 && elements > 0) {
    output_s[group / groups_per_token * token_stride + group % groups_per_token * group_stride] = scale;
  }
}

void per_token_group_fp8_quant(const Tensor& input,  // [..., hidden_size]
                               Tensor& output_q,     // [..., hidden_size]
                               Tensor& output_s,     // [num_tokens, hidden_size/group_size]
                               int64_t group_size, double eps, double fp8_min, double fp8_max, bool scale_ue8m0,
                               bool dummy_is_scale_transposed, bool dummy_is_tma_aligned) {
  const char* op = "per_token_group_fp8_quant";
  STD_TORCH_CHECK(input.is_contiguous() && output_q.is_contiguous(), op, ": input and output_q must be contiguous");
  STD_TORCH_CHECK(output_q.scalar_type() == ScalarType::Float8_e4m3fn && output_q.numel() == input.numel(), op,
                  ": output_q must be float8_e4m3fn, as large as input");
  STD_TORCH_CHECK(group_size > 0 && input.size(-1) % group_size == 0, op, ": rows must be whole groups");
  STD_TORCH_CHECK(output_s.scalar_type() == ScalarType::Float && output_s.dim() == 2, op,
                  ": output_s must be float32, of two dimensions");
  const int64_t num_groups = input.numel() / group_size;
  const int64_t groups_per_token = input.size(-1) / group_size;
  STD_TORCH_CHECK(output_s.size(1) == groups_per_token && output_s.numel() == num_groups, op,
                  ": output_s must be [num_tokens, hidden_size/group_size]");
  if (num_groups == 0) return;
#ifndef OPWALKER_WRONG_SCALES_IN_ROWS
  const int64_t token_stride = output_s.stride(0), group_stride = output_s.stride(1);
#else
  const int64_t token_stride = groups_per_token, group_stride = 1;
#endif

  const DeviceGuard guard(input.get_device_index());
  const cudaStream_t stream = current_stream(input);
  constexpr int kThreads = 256;
  const int64_t threads = num_groups * kThreadsPerGroup;
  const unsigned blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  DISPATCH_FLOATING_TYPES(input.scalar_type(), op, [&] {
    constexpr int kWidth = kFullWidth<scalar_t>;
    const auto* from = static_cast<const scalar_t*>(input.data_ptr());
    auto* to = static_cast<fp8_t*>(output_q.data_ptr());
    auto* scales = static_cast<float*>(output_s.data_ptr());
    if (group_size % kWidth == 0 && aligned<kWidth>(from) && aligned<kWidth>(to)) {
      per_token_group_fp8_quant_kernel<scalar_t, kWidth><<<blocks, kThreads, 0, stream>>>(
          from, to, scales, num_groups, static_cast<int>(groups_per_token), static_cast<int>(group_size), token_stride,
          group_stride, static_cast<float>(eps), static_cast<float>(fp8_min), static_cast<float>(fp8_max), scale_ue8m0);
    } else {
      per_token_group_fp8_quant_kernel<scalar_t, 1><<<blocks, kThreads, 0, stream>>>(
          from, to, scales, num_groups, static_cast<int>(groups_per_token), static_cast<int>(group_size), token_stride,
          group_stride, static_cast<float>(eps), static_cast<float>(fp8_min), static_cast<float>(fp8_max), scale_ue8m0);
    }
  });
  check_launch(op);
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "per_token_group_fp8_quant(Tensor input, Tensor! output_q, Tensor! output_s, int group_size, float eps, "
      "float fp8_min, float fp8_max, bool scale_ue8m0, bool dummy_is_scale_transposed, bool dummy_is_tma_aligned) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("per_token_group_fp8_quant", TORCH_BOX(&opwalker_ref::per_token_group_fp8_quant));
}
