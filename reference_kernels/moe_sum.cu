// output = the sum of what the topk experts of a token give, without those that are not on this device.

#include "common/op.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

// In elements.
struct PairStrides {
  int64_t token;
  int64_t choice;
};

template <typename scalar_t, int kWidth>
__global__ void __launch_bounds__(512) moe_sum_kernel(
    const scalar_t* __restrict__ input,  // [num_tokens, topk, hidden_size]
    scalar_t* __restrict__ output,       // [num_tokens, hidden_size]
    const int* __restrict__ topk_ids,    // [num_tokens, topk]
    const int* __restrict__ expert_map,  // [num_experts]
    PairStrides strides, PairStrides id_strides, int topk, int hidden_size) {
  const int64_t token = blockIdx.x;
  for (int at = threadIdx.x * kWidth; at < hidden_size; at += blockDim.x * kWidth) {
    float sums[kWidth] = {};
#pragma unroll 4
    for (int k = 0; k < topk; ++k) {
      if (topk_ids != nullptr) {
        const int expert = topk_ids[token * id_strides.token + k * id_strides.choice];
        if (expert < 0) continue;  // a token that only fills up the batch
#ifndef OPWALKER_WRONG_MAP_IGNORED
        if (expert_map != nullptr && expert_map[expert] < 0) continue;  // another device's
#endif
      }
      const auto x = load<kWidth>(input + token * strides.token + k * strides.choice + at);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sums[i] += to_float(x[i]);
    }
    Vector<scalar_t, kWidth> y;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) y[i] = from_float<scalar_t>(sums[i]);
    store<kWidth>(output + token * hidden_size + at, y);
  }
}

// Whole warps, as many as a row keeps busy.
inline unsigned threads_for(int64_t vectors) {
  return static_cast<unsigned>(std::clamp<int64_t>((vectors + 31) / 32 * 32, 32, 512));
}

void moe_sum(const Tensor& input,                      // [num_tokens, topk, hidden_size]
             Tensor& output,                           // [num_tokens, hidden_size]
             const std::optional<Tensor>& topk_ids,    // [num_tokens, topk]
             const std::optional<Tensor>& expert_map) {  // [num_experts]
  STD_TORCH_CHECK(input.dim() == 3 && input.stride(2) == 1, "moe_sum: input must have three dimensions, rows contiguous");
  STD_TORCH_CHECK(output.is_contiguous() && output.scalar_type() == input.scalar_type() && output.dim() == 2 &&
                      output.size(0) == input.size(0) && output.size(1) == input.size(2),
                  "moe_sum: output must be [num_tokens, hidden_size], contiguous, of the type of input");
  STD_TORCH_CHECK(!topk_ids.has_value() || (topk_ids->scalar_type() == ScalarType::Int && topk_ids->dim() == 2 &&
                                            topk_ids->size(0) == input.size(0) && topk_ids->size(1) == input.size(1)),
                  "moe_sum: topk_ids must be int32 [num_tokens, topk]");
  STD_TORCH_CHECK(!expert_map.has_value() || (topk_ids.has_value() && expert_map->scalar_type() == ScalarType::Int &&
                                              expert_map->is_contiguous()),
                  "moe_sum: expert_map must be int32, with topk_ids");
  const unsigned blocks = static_cast<unsigned>(input.size(0));
  const int hidden_size = static_cast<int>(input.size(2));
  if (output.numel() == 0) return;
#ifndef OPWALKER_WRONG_NO_STRIDE
  const PairStrides strides{input.stride(0), input.stride(1)};
#else
  const PairStrides strides{input.size(1) * hidden_size, hidden_size};
#endif
  const PairStrides id_strides =
      topk_ids.has_value() ? PairStrides{topk_ids->stride(0), topk_ids->stride(1)} : PairStrides{0, 0};

  const DeviceGuard guard(input.get_device_index());
  const cudaStream_t stream = current_stream(input);
  const auto* ids = topk_ids.has_value() ? static_cast<const int*>(topk_ids->data_ptr()) : nullptr;
  const auto* map = expert_map.has_value() ? static_cast<const int*>(expert_map->data_ptr()) : nullptr;
  const int topk = static_cast<int>(input.size(1));
  DISPATCH_FLOATING_TYPES(input.scalar_type(), "moe_sum", [&] {
    constexpr int kWidth = kFullWidth<scalar_t>;
    const auto* from = static_cast<const scalar_t*>(input.data_ptr());
    auto* to = static_cast<scalar_t*>(output.data_ptr());
    if (hidden_size % kWidth == 0 && strides.token % kWidth == 0 && strides.choice % kWidth == 0 &&
        aligned<kWidth>(from, to)) {
      moe_sum_kernel<scalar_t, kWidth><<<blocks, threads_for(hidden_size / kWidth), 0, stream>>>(
          from, to, ids, map, strides, id_strides, topk, hidden_size);
    } else {
      moe_sum_kernel<scalar_t, 1><<<blocks, threads_for(hidden_size), 0, stream>>>(
          from, to, ids, map, strides, id_strides, topk, hidden_size);
    }
  });
  check_launch("moe_sum");
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("moe_sum(Tensor input, Tensor! output, Tensor? topk_ids=None, Tensor? expert_map=None) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("moe_sum", TORCH_BOX(&opwalker_ref::moe_sum));
}
