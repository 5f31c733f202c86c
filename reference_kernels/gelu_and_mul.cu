// out = gelu(gate) * up, with gelu(x) = x * P(X <= x) for a normal X; a row of input is [gate, up].

#include "common/gated.cuh"

namespace opwalker_ref {

struct Gelu {
  __device__ static float of(float x) {
#ifndef OPWALKER_WRONG_NO_SQRT_HALF
    return x * 0.5f * (1.0f + erff(x * 0.70710678118654752f));
#else
    return x * 0.5f * (1.0f + erff(x));
#endif
  }
};

void gelu_and_mul(Tensor& out,            // [..., d]
                  const Tensor& input) {  // [..., 2 * d]
  gated<Gelu>(out, input, "gelu_and_mul");
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("gelu_and_mul(Tensor! out, Tensor input) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("gelu_and_mul", TORCH_BOX(&opwalker_ref::gelu_and_mul));
}
