// out = gelu(gate) * up, with gelu(x) = x * P(X <= x) for a normal X; a row of input is [gate, up].

#include "common/gated.cuh"

namespace opwalker_ref {

struct Gelu {
  // P(X > |x|) is the density at x times a polynomial in 1 / (1 + p |x|): Abramowitz and Stegun, 26.2.17, right to 7.5e-8.
  // A call of erff would keep the device busier than its memory is.
  __device__ static float of(float x) {
#ifndef OPWALKER_WRONG_SQUARE_NOT_HALVED
    constexpr float kHalfSquare = -0.5f;
#else
    constexpr float kHalfSquare = -1.0f;
#endif
    const float t = __fdividef(1.0f, fmaf(0.2316419f, fabsf(x), 1.0f));
    float beyond = fmaf(1.330274429f, t, -1.821255978f);
    beyond = fmaf(beyond, t, 1.781477937f);
    beyond = fmaf(beyond, t, -0.356563782f);
    beyond = fmaf(beyond, t, 0.319381530f);
    beyond *= t * 0.39894228040f * __expf(kHalfSquare * x * x);
    return x * (x < 0.0f ? beyond : 1.0f - beyond);
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
