// Tensors [num_tokens, num_heads, head_size] whose heads are contiguous and lie anywhere.
#pragma once

#include "op.cuh"

namespace opwalker_ref {

// In elements. The heads of a token lie within 2^31 of each other: to find one takes a single multiplication.
struct HeadStrides {
  int64_t token;
  int head;

  __host__ __device__ int64_t offset(int64_t token_index, int head_index) const {
    return token_index * token + static_cast<int64_t>(head_index) * head;
  }
  bool divide_by(int64_t elements) const { return token % elements == 0 && head % elements == 0; }
};

inline HeadStrides head_strides(int64_t token, int64_t head, const char* op) {
  STD_TORCH_CHECK(head <= INT32_MAX, op, ": heads lie too far apart");
  return {token, static_cast<int>(head)};
}

}  // namespace opwalker_ref
