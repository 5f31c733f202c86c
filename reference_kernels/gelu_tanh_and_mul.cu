// out = gelu(gate) * up, with the tanh form of gelu; a row of input is [gate, up].

#include "common/gated.cuh"

namespace opwalker_ref {

struct GeluTanh {
  __device__ static float of(float x) {
    constexpr float kSqrtTwoOverPi = 0.79788456080286536f;
#ifndef OPWALKER_WRONG_NO_CUBE
    const float inner = kSqrtTwoOverPi * (x + 0.044715f * x * x * x);
#else
    const float inner = kSqrtTwoOverPi * x;
#endif
    // 0.5 * (1 + tanh(y)) is the sigmoid of 2 * y, which costs one exponential and one division.
    return __fdividef(x, 1.0f + __expf(-2.0f * inner));
  }
};

void gelu_tanh_and_mul(Tensor& out,            // [..., d]
                       const Tensor& input) {  // [..., 2 * d]
  gated<GeluTanh>(out, input, "gelu_tanh_and_mul");
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("gelu_tanh_and_mul(Tensor! out, Tensor input) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("gelu_tanh_and_mul", TORCH_BOX(&opwalker_ref::gelu_tanh_and_mul));
}
