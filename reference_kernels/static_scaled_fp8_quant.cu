// result = input / scale in fp8, with one scale for all, or one for each group of rows and columns.
//
// Each element is read once and written once.

#include "common/fp8.cuh"
#include "common/op.cuh"
#include "common/rows.cuh"
#include "common/vector.cuh"

namespace opwalker_ref {

// How many vectors of 16 bytes a thread has under way at a time.
constexpr int kUnroll = 2;

// Which scale an element has: that of its group of `rows` by `columns` elements. Strides are in elements of `scale`.
struct ScaleGroups {
  int64_t rows;
  int64_t columns;
  int64_t row_stride;
  int64_t column_stride;

  __device__ int64_t offset(int64_t row, int64_t column) const {
#ifndef OPWALKER_WRONG_GROUPS_SWAPPED
    return row / rows * row_stride + column / columns * column_stride;
#else
    return row / rows * column_stride + column / columns * row_stride;
#endif
  }
};

// A block takes a row, or several that are short, and finds its place without a division. A thread issues the loads of all its
// vectors of a round before anything else that may have to wait: it does so little that the way to them counts.
template <typename scalar_t, int kWidth, bool kOneScale, typename RowsOf>
__global__ void __launch_bounds__(256) static_scaled_fp8_quant_kernel(
    fp8_t* __restrict__ result,          // [num_tokens, hidden_size]
    const scalar_t* __restrict__ input,  // [num_tokens, hidden_size]
    const float* __restrict__ scale,     // [1] or [num_tokens/group_m, hidden_size/group_n]
    RowsOf result_rows, RowsOf input_rows, ScaleGroups groups, int64_t num_tokens, int hidden_size) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= num_tokens) return;
  const scalar_t* from = input + input_rows.offset(row);
  const int step = blockDim.x * kWidth;

  for (int first = threadIdx.x * kWidth; first < hidden_size; first += kUnroll * step) {
    Vector<scalar_t, kWidth> x[kUnroll];
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) {
      if (first + j * step < hidden_size) x[j] = load<kWidth>(from + first + j * step);
    }
    const float of_all = kOneScale ? 1.0f / *scale : 0.0f;
    fp8_t* to = result + result_rows.offset(row);
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) {
      const int at = first + j * step;
      if (at >= hidden_size) break;
      store<kWidth>(to + at, fp8_of<kWidth>([&](int i) {
                      const float factor = kOneScale ? of_all : 1.0f / scale[groups.offset(row, at + i)];
                      return to_float(x[j][i]) * factor;
                    }));
    }
  }
}

template <typename scalar_t, int kWidth>
void launch_static_scaled_fp8_quant(fp8_t* result, const scalar_t* input, const float* scale, const Rows& result_rows,
                                    const Rows& input_rows, const ScaleGroups& groups, bool one_scale, int hidden_size,
                                    cudaStream_t stream) {
  constexpr int kThreads = 256;
  const int vectors = (hidden_size + kWidth - 1) / kWidth;
  const unsigned along_row = std::clamp((vectors + kUnroll - 1) / kUnroll, 1, kThreads);
  const dim3 block(along_row, kThreads / along_row);
  const unsigned blocks = static_cast<unsigned>((input_rows.count + block.y - 1) / block.y);
  DISPATCH_BOOL(one_scale, kOneScale, [&] {
    const auto launch = [&](auto to, auto from) {
      static_scaled_fp8_quant_kernel<scalar_t, kWidth, kOneScale, decltype(to)>
          <<<blocks, block, 0, stream>>>(result, input, scale, to, from, groups, input_rows.count, hidden_size);
      check_launch("static_scaled_fp8_quant");
    };
    if (result_rows.even() && input_rows.even()) {
      launch(EvenRows{result_rows.strides[0]}, EvenRows{input_rows.strides[0]});
    } else {
      launch(result_rows, input_rows);
    }
  });
}

// The groups that the shape of `scale` and `group_shape` say; a side of -1 is as long as the tensor.
inline ScaleGroups scale_groups(const Tensor& scale, const std::optional<std::vector<int64_t>>& group_shape,
                                int64_t num_tokens, int64_t hidden_size) {
  if (scale.numel() == 1) return {num_tokens, hidden_size, 0, 0};
  STD_TORCH_CHECK(scale.dim() == 2 || group_shape.has_value(),
                  "static_scaled_fp8_quant: a scale of one dimension wants a group_shape");
  STD_TORCH_CHECK(scale.dim() <= 2, "static_scaled_fp8_quant: scale has one or two dimensions");
  int64_t rows = scale.dim() == 2 ? num_tokens / scale.size(0) : (*group_shape)[0];
  int64_t columns = scale.dim() == 2 ? hidden_size / scale.size(1) : (*group_shape)[1];
  rows = rows == -1 ? num_tokens : rows;
  columns = columns == -1 ? hidden_size : columns;
  STD_TORCH_CHECK(rows > 0 && columns > 0 && num_tokens % rows == 0 && hidden_size % columns == 0 &&
                      scale.numel() == num_tokens / rows * (hidden_size / columns),
                  "static_scaled_fp8_quant: the groups do not fill the tensor");
  if (scale.dim() == 2) return {rows, columns, scale.stride(0), scale.stride(1)};
  STD_TORCH_CHECK(rows == num_tokens || columns == hidden_size,
                  "static_scaled_fp8_quant: a scale of one dimension goes along one side");
  return {rows, columns, rows == num_tokens ? 0 : scale.stride(0), columns == hidden_size ? 0 : scale.stride(0)};
}

void static_scaled_fp8_quant(
    Tensor& result,       // [..., hidden_size]
    const Tensor& input,  // [..., hidden_size]
    const Tensor& scale,  // [1] or [num_tokens/group_m, hidden_size/group_n] or [hidden_size] or [num_tokens]
    std::optional<std::vector<int64_t>> group_shape) {
  STD_TORCH_CHECK(result.scalar_type() == ScalarType::Float8_e4m3fn, "static_scaled_fp8_quant: result must be float8_e4m3fn");
  STD_TORCH_CHECK(scale.scalar_type() == ScalarType::Float, "static_scaled_fp8_quant: scale must be float32");
  STD_TORCH_CHECK(result.numel() == input.numel() && result.size(-1) == input.size(-1),
                  "static_scaled_fp8_quant: result and input differ in shape");
  if (input.numel() == 0) return;
  const int64_t hidden_size = input.size(-1);
  STD_TORCH_CHECK(hidden_size < INT32_MAX / 4, "static_scaled_fp8_quant: rows are too long");
  const Rows result_rows = rows_of(result, "static_scaled_fp8_quant");
  Rows input_rows = rows_of(input, "static_scaled_fp8_quant");
  const ScaleGroups groups = scale_groups(scale, group_shape, input_rows.count, hidden_size);
  const bool one_scale = scale.numel() == 1;
#ifdef OPWALKER_WRONG_NO_STRIDE
  input_rows = {input_rows.count, {1, 1}, {hidden_size, 0, 0}};
#endif

  const DeviceGuard guard(input.get_device_index());
  const cudaStream_t stream = current_stream(input);
  DISPATCH_FLOATING_TYPES(input.scalar_type(), "static_scaled_fp8_quant", [&] {
    constexpr int kWidth = kFullWidth<scalar_t>;
    auto* to = static_cast<fp8_t*>(result.data_ptr());
    const auto* from = static_cast<const scalar_t*>(input.data_ptr());
    const auto* scales = static_cast<const float*>(scale.data_ptr());
    const bool wide = hidden_size % kWidth == 0 && input_rows.strides_divide_by(kWidth) &&
                      result_rows.strides_divide_by(kWidth) && aligned<kWidth>(from) && aligned<kWidth>(to);
    if (wide) {
      launch_static_scaled_fp8_quant<scalar_t, kWidth>(to, from, scales, result_rows, input_rows, groups, one_scale,
                                                       static_cast<int>(hidden_size), stream);
    } else {
      launch_static_scaled_fp8_quant<scalar_t, 1>(to, from, scales, result_rows, input_rows, groups, one_scale,
                                                  static_cast<int>(hidden_size), stream);
    }
  });
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("static_scaled_fp8_quant(Tensor! result, Tensor input, Tensor scale, int[]? group_shape=None) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("static_scaled_fp8_quant", TORCH_BOX(&opwalker_ref::static_scaled_fp8_quant));
}
