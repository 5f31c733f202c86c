// result = silu(gate) * up, with silu(x) = x / (1 + exp(-x)); a row of input is [gate, up].

#include "common/gated.cuh"

namespace opwalker_ref {

struct Silu {
  __device__ static float of(float x) {
#ifndef OPWALKER_WRONG_SIGMOID_ALONE
    return __fdividef(x, 1.0f + __expf(-x));
#else
    return __fdividef(1.0f, 1.0f + __expf(-x));
#endif
  }
};

void silu_and_mul(Tensor& result,         // [..., d]
                  const Tensor& input) {  // [..., 2 * d]
  gated<Silu>(result, input, "silu_and_mul");
}

}  // namespace opwalker_ref

STABLE_TORCH_LIBRARY_FRAGMENT(opwalker_ref, ops) {
  ops.def("silu_and_mul(Tensor! result, Tensor input) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL(opwalker_ref, CUDA, ops) {
  ops.impl("silu_and_mul", TORCH_BOX(&opwalker_ref::silu_and_mul));
}
