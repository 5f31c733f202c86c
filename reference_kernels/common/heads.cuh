// Tensors [num_tokens, num_heads, head_size] whose heads are contiguous and lie anywhere.
#pragma once

#include "op.cuh"

namespace opwalker_ref {

// In elements.
struct HeadStrides {
  int64_t token;
  int64_t head;

  __host__ __device__ int64_t offset(int64_t token_index, int64_t head_index) const {
    return token_index * token + head_index * head;
  }
  bool divide_by(int64_t elements) const { return token % elements == 0 && head % elements == 0; }
};

}  // namespace opwalker_ref
