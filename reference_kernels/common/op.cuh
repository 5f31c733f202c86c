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

// What a call of the runtime returns.
inline void check_cuda(cudaError_t error, const char* op) {
  STD_TORCH_CHECK(error == cudaSuccess, op, ": ", cudaGetErrorString(error));
}

// A launch reports nothing by itself: a configuration that the device refuses is found here.
inline void check_launch(const char* op) { check_cuda(cudaGetLastError(), op); }

// The elements of a tensor that is read, whose type must be float32.
inline const float* floats_of(const Tensor& tensor, const char* op, const char* name) {
  STD_TORCH_CHECK(tensor.scalar_type() == ScalarType::Float, op, ": ", name, " must be float32");
  return static_cast<const float*>(tensor.data_ptr());
}

// How many blocks a grid-stride loop needs: enough to fill the device, never more than there is work.
inline unsigned blocks_to_fill(int64_t blocks_of_work, int blocks_per_multiprocessor) {
  int device = 0;
  int multiprocessors = 1;
  check_cuda(cudaGetDevice(&device), "blocks_to_fill");
  check_cuda(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device), "blocks_to_fill");
  return static_cast<unsigned>(
      std::min<int64_t>(blocks_of_work, static_cast<int64_t>(multiprocessors) * blocks_per_multiprocessor));
}

// A block for work on heads of tokens: x takes the vectors of a head, y heads, and z tokens where one has little to do. No
// thread then has to divide to find its place.
inline dim3 block_for_heads(int64_t vectors_per_head, int64_t heads) {
  const unsigned x = static_cast<unsigned>(std::clamp<int64_t>(vectors_per_head, 1, 512));
  const unsigned y = static_cast<unsigned>(std::clamp<int64_t>(heads, 1, 512 / x));
  return dim3(x, y, std::clamp(256 / (x * y), 1u, 64u));
}

// The grid of these blocks: x counts tokens, y heads.
inline dim3 grid_for_heads(int64_t tokens, int64_t heads, dim3 block) {
  return dim3(static_cast<unsigned>((tokens + block.z - 1) / block.z), static_cast<unsigned>((heads + block.y - 1) / block.y));
}

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
