// Two attentions of the same queries, over a prefix and over a suffix of the keys, made one.
//
// An attention's output is a mean of values, weighted by exp(score); its lse is the logarithm of the weights' sum. So the
// merged output is the mean of both, weighted by exp(lse), and only differences of lse are ever put into an exponential.

#include "common/cache.cuh"
#include "common/heads.cuh"
#include "common/op.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

// The strides of an lse tensor, in elements.
struct LseStrides {
  int64_t head;
  int64_t token;

  __device__ int64_t offset(int64_t token_index, int head_index) const { return head_index * head + token_index * token; }
};

// No key at all is spelt -infinity, and +infinity by some kernels.
__device__ __forceinline__ float lse_or_none(float lse) { return isinf(lse) ? -INFINITY : lse; }

// The prefix's part of all weights; all of it where neither side has a key.
__device__ __forceinline__ float share_of_prefix(float of_prefix, float of_suffix) {
#ifndef OPWALKER_WRONG_EQUAL_SHARES
  const float p = lse_or_none(of_prefix);
  const float s = lse_or_none(of_suffix);
  return isinf(p) && isinf(s) ? 1.0f : __fdividef(1.0f, 1.0f + __expf(s - p));
#else
  return 0.5f;
#endif
}

__device__ __forceinline__ float lse_of_both(float of_prefix, float of_suffix) {
  const float p = lse_or_none(of_prefix);
  const float s = lse_or_none(of_suffix);
  const float highest = fmaxf(p, s);
  return isinf(highest) ? highest : highest + __logf(__expf(p - highest) + __expf(s - highest));
}

template <typename scalar_t, typename out_t, int kWidth>
__global__ void __launch_bounds__(512) merge_attn_states_kernel(
    out_t* __restrict__ output,                  // [num_tokens, num_heads, head_size]
    float* __restrict__ output_lse,              // [num_heads, num_tokens]
    const scalar_t* __restrict__ prefix_output,  // [num_tokens, num_heads, head_size]
    const float* __restrict__ prefix_lse,        // [num_heads, num_tokens]
    const scalar_t* __restrict__ suffix_output,  // [num_tokens, num_heads, head_size]
    const float* __restrict__ suffix_lse,        // [num_heads, num_tokens]
    const float* __restrict__ output_scale,      // [1]
    HeadStrides output_strides, HeadStrides prefix_strides, HeadStrides suffix_strides, LseStrides output_lse_strides,
    LseStrides prefix_lse_strides, LseStrides suffix_lse_strides, int64_t num_tokens, int64_t tokens_with_prefix,
    int num_heads, int head_size) {
  const int64_t token = static_cast<int64_t>(blockIdx.x) * blockDim.z + threadIdx.z;
  const int head = blockIdx.y * blockDim.y + threadIdx.y;
  if (token >= num_tokens || head >= num_heads) return;
  prefix_output += prefix_strides.offset(token, head);
  suffix_output += suffix_strides.offset(token, head);
  output += output_strides.offset(token, head);
  const float of_prefix = prefix_lse[prefix_lse_strides.offset(token, head)];
  const float of_suffix = suffix_lse[suffix_lse_strides.offset(token, head)];

  const float inverse_scale = std::is_same_v<scalar_t, out_t> ? 1.0f : 1.0f / *output_scale;

  for (int at = threadIdx.x * kWidth; at < head_size; at += blockDim.x * kWidth) {
    auto prefix = load<kWidth>(prefix_output + at);
    auto suffix = load<kWidth>(suffix_output + at);
    // What has no share is left out: it may be no number.
    const float share = token < tokens_with_prefix ? share_of_prefix(of_prefix, of_suffix) : 0.0f;
    if (share == 0.0f) prefix = suffix;
    if (share == 1.0f) suffix = prefix;
    const auto mean = [&](int i) {
      const float base = to_float(suffix[i]);
      return base + share * (to_float(prefix[i]) - base);
    };
    Vector<out_t, kWidth> merged;
    if constexpr (std::is_same_v<scalar_t, out_t>) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) merged[i] = from_float<out_t>(mean(i));
    } else {
      merged = fp8_of<kWidth>([&](int i) { return mean(i) * inverse_scale; });
    }
    store<kWidth>(output + at, merged);
  }
  if (output_lse != nullptr && threadIdx.x == 0) {
    output_lse[output_lse_strides.offset(token, head)] =
        token < tokens_with_prefix ? lse_of_both(of_prefix, of_suffix) : of_suffix;
  }
}

inline HeadStrides strides_of(const Tensor& tensor) {
  STD_TORCH_CHECK(tensor.dim() == 3 && tensor.stride(2) == 1,
                  "merge_attn_states: outputs must be [num_tokens, num_heads, head_size] with contiguous heads");
  return head_strides(tensor.stride(0), tensor.stride(1), "merge_attn_states");
}

inline LseStrides lse_strides(const Tensor& tensor) {
#ifndef OPWALKER_WRONG_LSE_TRANSPOSED
  return {tensor.stride(0), tensor.stride(1)};
#else
  return {tensor.stride(1), tensor.stride(0)};
#endif
}

void merge_attn_states(Tensor& output,                            // [num_tokens, num_heads, head_size]
                       const std::optional<Tensor>& output_lse,   // [num_heads, num_tokens]
                       const Tensor& prefix_output,               // [num_tokens, num_heads, head_size]
                       const Tensor& prefix_lse,                  // [num_heads, num_tokens]
                       const Tensor& suffix_output,               // [num_tokens, num_heads, head_size]
                       const Tensor& suffix_lse,                  // [num_heads, num_tokens]
                       std::optional<int64_t> prefill_tokens_with_context,
                       const std::optional<Tensor>& output_scale) {  // [1]
  const int64_t num_tokens = output.size(0);
  const int64_t num_heads = output.size(1);
  const int64_t head_size = output.size(2);
  const int64_t tokens_with_prefix = prefill_tokens_with_context.value_or(num_tokens);
  STD_TORCH_CHECK(prefix_output.scalar_type() == suffix_output.scalar_type(),
                  "merge_attn_states: prefix_output and suffix_output differ in type");
  STD_TORCH_CHECK(output_scale.has_value() ? output.scalar_type() == ScalarType::Float8_e4m3fn
                                           : output.scalar_type() == prefix_output.scalar_type(),
                  "merge_attn_states: output must have the type of the inputs, or be fp8 (e4m3) with output_scale");
  STD_TORCH_CHECK(!output_lse.has_value() || output_lse->scalar_type() == ScalarType::Float,
                  "merge_attn_states: output_lse must be float32");
  STD_TORCH_CHECK(tokens_with_prefix <= num_tokens, "merge_attn_states: more tokens with a context than tokens");
  const HeadStrides output_strides = strides_of(output);
  const HeadStrides prefix_strides = strides_of(prefix_output);
  const HeadStrides suffix_strides = strides_of(suffix_output);
  if (output.numel() == 0) return;

  const DeviceGuard guard(output.get_device_index());
  const cudaStream_t stream = current_stream(output);
  DISPATCH_CACHE_TYPES(prefix_output.scalar_type(), output_scale.has_value(), "merge_attn_states", [&] {
    auto* to = static_cast<cache_t*>(output.data_ptr());
    const auto* prefix = static_cast<const scalar_t*>(prefix_output.data_ptr());
    const auto* suffix = static_cast<const scalar_t*>(suffix_output.data_ptr());
    auto* to_lse = output_lse.has_value() ? static_cast<float*>(output_lse->data_ptr()) : nullptr;
    const auto* scale = output_scale.has_value() ? floats_of(*output_scale, "merge_attn_states", "output_scale") : nullptr;
    constexpr int kFull = kFullWidth<scalar_t>;
    const bool wide = head_size % kFull == 0 && output_strides.divide_by(kFull) && prefix_strides.divide_by(kFull) &&
                      suffix_strides.divide_by(kFull) && aligned<kFull>(prefix, suffix) && aligned<kFull>(to);
    DISPATCH_BOOL(wide, kWide, [&] {
      constexpr int kWidth = kWide ? kFull : 1;
      const dim3 block = block_for_heads(head_size / kWidth, num_heads);
      const dim3 grid = grid_for_heads(num_tokens, num_heads, block);
      merge_attn_states_kernel<scalar_t, cache_t, kWidth><<<grid, block, 0, stream>>>(
          to, to_lse, prefix, floats_of(prefix_lse, "merge_attn_states", "prefix_lse"), suffix,
          floats_of(suffix_lse, "merge_attn_states", "suffix_lse"), scale, output_strides, prefix_strides, suffix_strides,
          output_lse.has_value() ? lse_strides(*output_lse) : LseStrides{0, 0}, lse_strides(prefix_lse),
          lse_strides(suffix_lse), num_tokens, tokens_with_prefix, static_cast<int>(num_heads),
          static_cast<int>(head_size));
      check_launch("merge_attn_states");
    });
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def(
      "merge_attn_states(Tensor! output, Tensor!? output_lse, Tensor prefix_output, Tensor prefix_lse, "
      "Tensor suffix_output, Tensor suffix_lse, int? prefill_tokens_with_context=None, Tensor? output_scale=None) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("merge_attn_states", TORCH_BOX(&opwalker_ref::merge_attn_states));
}
