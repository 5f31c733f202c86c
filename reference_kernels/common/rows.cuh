// Rows of a tensor [..., row_size] whose leading dimensions may have any strides.
#pragma once

#include "op.cuh"

namespace opwalker_ref {

// Where row number `r` begins, for up to three leading dimensions (rows are counted with the last of them fastest).
struct Rows {
  int64_t count;
  int64_t sizes[2];    // of the second and third leading dimension from the front; 1 where there is none
  int64_t strides[3];  // in elements, of the leading dimensions; 0 where there is none

  __host__ __device__ int64_t offset(int64_t row) const {
    if (sizes[0] == 1 && sizes[1] == 1) return row * strides[0];
    const int64_t third = row % sizes[1];
    const int64_t second = row / sizes[1] % sizes[0];
    return row / sizes[1] / sizes[0] * strides[0] + second * strides[1] + third * strides[2];
  }

  // Whether they lie one stride apart.
  bool even() const { return sizes[0] == 1 && sizes[1] == 1; }

  // Whether every stride is a multiple of `elements`: then rows keep the alignment of the first.
  bool strides_divide_by(int64_t elements) const {
    return strides[0] % elements == 0 && strides[1] % elements == 0 && strides[2] % elements == 0;
  }
};

// Rows that lie one stride apart, as nearly all do. A kernel that does little else feels the choice that Rows has to make
// before its first load.
struct EvenRows {
  int64_t stride;

  __host__ __device__ int64_t offset(int64_t row) const { return row * stride; }
};

// The rows of a tensor of one to four dimensions whose last dimension is contiguous.
inline Rows rows_of(const Tensor& tensor, const char* op) {
  const int64_t leading = tensor.dim() - 1;
  STD_TORCH_CHECK(leading >= 0 && leading <= 3, op, ": wants one to four dimensions");
  STD_TORCH_CHECK(tensor.stride(-1) == 1 || tensor.size(-1) <= 1, op, ": the last dimension must be contiguous");
  Rows rows{1, {1, 1}, {0, 0, 0}};
  for (int64_t d = 0; d < leading; ++d) {
    rows.count *= tensor.size(d);
    if (d > 0) rows.sizes[d - 1] = tensor.size(d);
    rows.strides[d] = tensor.stride(d);
  }
  // Leading dimensions that lie one behind the other are one dimension: no division is needed to find a row.
  if (leading == 3 && rows.strides[1] == rows.sizes[1] * rows.strides[2]) {
    rows = {rows.count, {rows.sizes[0] * rows.sizes[1], 1}, {rows.strides[0], rows.strides[2], 0}};
  }
  if (rows.sizes[1] == 1 && rows.sizes[0] > 1 && rows.strides[0] == rows.sizes[0] * rows.strides[1]) {
    rows = {rows.count, {1, 1}, {rows.strides[1], 0, 0}};
  }
  return rows;
}

}  // namespace opwalker_ref
