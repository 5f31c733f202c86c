// What the host side of every op needs: tensors and checks of torch's stable ABI, the current stream, dispatch of run-time
// values into template arguments, and the check behind a launch. No kernel and no device code is here.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>
#include <torch/headeronly/util/shim_utils.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace opwalker_ref {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using torch::stable::accelerator::DeviceGuard;

// The stream that torch launches on now, on the device of `tensor`.
inline cudaStream_t current_stream(const Tensor& tensor) {
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(tensor.get_device_index(), &stream));
  return static_cast<cudaStream_t>(stream);
}

// A launch reports nothing by itself: a configuration that the device refuses is found here.
inline void check_launch(const char* op) {
  const cudaError_t error = cudaGetLastError();
  STD_TORCH_CHECK(error == cudaSuccess, op, ": launch failed: ", cudaGetErrorString(error));
}

// How many blocks a grid-stride loop needs: enough to fill the device, never more than there is work.
inline unsigned blocks_to_fill(int64_t blocks_of_work, int blocks_per_multiprocessor) {
  int device = 0;
  int multiprocessors = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  return static_cast<unsigned>(
      std::min<int64_t>(blocks_of_work, static_cast<int64_t>(multiprocessors) * blocks_per_multiprocessor));
}

// A block for work that comes in rows of `items` equal pieces: threads side by side on one row, and several rows where a row
// has little to do.
inline dim3 block_for_rows(int64_t items) {
  const unsigned wide = static_cast<unsigned>(std::clamp<int64_t>(items, 1, 512));
  return dim3(wide, std::max(1u, 256 / wide));
}

// How many of these blocks it takes.
inline unsigned grid_for_rows(int64_t rows, dim3 block) { return static_cast<unsigned>((rows + block.y - 1) / block.y); }

}  // namespace opwalker_ref

// Runs a lambda with `scalar_t` bound to the element type that a tensor has.
#define DISPATCH_FLOATING_TYPES(TYPE, NAME, ...)                              \
  [&] {                                                                       \
    switch (TYPE) {                                                           \
      case torch::headeronly::ScalarType::Float: {                            \
        using scalar_t = float;                                               \
        return __VA_ARGS__();                                                 \
      }                                                                       \
      case torch::headeronly::ScalarType::Half: {                             \
        using scalar_t = __half;                                              \
        return __VA_ARGS__();                                                 \
      }                                                                       \
      case torch::headeronly::ScalarType::BFloat16: {                         \
        using scalar_t = __nv_bfloat16;                                       \
        return __VA_ARGS__();                                                 \
      }                                                                       \
      default:                                                                \
        STD_TORCH_CHECK(false, NAME, ": wants float32, float16 or bfloat16"); \
    }                                                                         \
  }()

// Runs a lambda with the constant `NAME` bound to the value of a run-time condition.
#define DISPATCH_BOOL(CONDITION, NAME, ...) \
  [&] {                                     \
    if (CONDITION) {                        \
      constexpr bool NAME = true;           \
      return __VA_ARGS__();                 \
    } else {                                \
      constexpr bool NAME = false;          \
      return __VA_ARGS__();                 \
    }                                       \
  }()
