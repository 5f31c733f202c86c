"""A launch on the legacy default stream.

*Why.* `<<<grid, block>>>` does not mean the framework's current stream. The work is not ordered with the operators
around it, and a graph capture does not record it: replays give old results, and look faster.

*Flagged*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void twice(torch::Tensor& x) {
  const dim3 grid(1), block(32);
  twice_kernel<<<grid, block>>>(x.data_ptr<float>());  // flagged
  twice_kernel<<<grid, block, 0, 0>>>(x.data_ptr<float>());  // flagged
  twice_kernel<<<grid, block, 0, nullptr>>>(x.data_ptr<float>());  // flagged
  cudaStream_t stream = 0;
  twice_kernel<<<grid, block, 0, stream>>>(x.data_ptr<float>());  // flagged
}
```

*Clean*

```cuda
#include <torch/all.h>
__global__ void twice_kernel(float* x) { x[threadIdx.x] *= 2; }
void twice(torch::Tensor& x, cudaStream_t given) {
  cudaStream_t stream = 0;
  stream = at::cuda::getCurrentCUDAStream();
  twice_kernel<<<1, 32, 0, stream>>>(x.data_ptr<float>());
  twice_kernel<<<1, 32, 0, given>>>(x.data_ptr<float>());
  twice_kernel<<<1, 32, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>());
}
```

*Use instead.* The current stream of the tensors' device as the fourth launch argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine
from opwalker.rules._launches import Site, locals_of, sites

_NONE = re.compile(r"(?:\(\s*cudaStream_t\s*\)\s*)?(?:0|nullptr|NULL|cudaStreamDefault|cudaStreamLegacy|\{\s*\})\Z")

_CONFIG = re.compile(r"(?:struct\s+)?(?:cuda|hip)LaunchConfig_(?:t|st)")
#: A list of fields, not the answer of a function.
_FIELDS = re.compile(r"\s*=?\s*\{")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        for site in sites(routine):
            said = _said(routine, site) or _given(tree, routine, site)
            if said is None:
                continue
            file, line = site.place(tree, routine)
            message, related = said
            yield Draft(file, line, f"the launch of {site.name} {message}", related, site.name)


def _said(routine: Routine, site: Site) -> tuple[str, tuple[Related, ...]] | None:
    """What is wrong with the stream of a launch; None where nothing is, or where it cannot be told."""
    written = site.stream
    if written is None:
        # In a configuration object that another function filled, the stream may stand there.
        if (site.statement.launches and not _unpacked(site)) or _is_left_out(routine, site):
            return "names no stream: it goes to the legacy default stream", ()
        return None
    written = written.strip()
    if _NONE.match(written):
        return f"is given `{written}` as its stream: the legacy default stream", ()
    value = locals_of(site).get(written)
    if value is None or not re.fullmatch(r"\w+", written):
        return None
    plain = value.strip().removeprefix("=").strip().strip("(){} ")
    if plain and not _NONE.match(plain):
        return None
    assigned = any(a.target == written for one in routine.walk() for a in one.assigns)
    given = (argument.replace(" ", "") for one in routine.walk() for call in one.calls for argument in call.arguments)
    taken = any(f"&{written}" in argument for argument in given)
    if not assigned and not taken:
        line = next(d.line for one in routine.walk() for d in one.declares if d.name == written)
        return f"is given {written}, which is only ever 0", (Related(routine.file, line, f"{written} is made here"),)
    return None


def _given(tree: CheckedTree, routine: Routine, site: Site) -> tuple[str, tuple[Related, ...]] | None:
    """What is wrong with a stream that is a parameter: no caller in the source gives it another value than 0."""
    number, parameter = next(
        ((n, one) for n, one in enumerate(routine.parameters) if one.name == (site.stream or "").strip()), (0, None)
    )
    if parameter is None or tree.is_entry(routine):
        return None
    if any(a.target == parameter.name for one in routine.walk() for a in one.assigns):
        return None
    callers = tree.callers(routine)
    left = _NONE.match((parameter.default or "").strip())
    given = [one.call.arguments[number : number + 1] for one in callers]
    if not callers or not all(_NONE.match(one[0].strip()) if one else left for one in given):
        return None
    at = callers[0]
    related = (Related(at.caller.file, at.call.line, f"called by {at.caller.name} without another stream"),)
    return f"is given {parameter.name}, which is 0 in every call", related


def _is_left_out(routine: Routine, site: Site) -> bool:
    """Whether a launch is configured by an object of this routine whose stream nobody sets: no other function is
    handed it, and nothing is assigned to it or to its stream."""
    name = site.config
    made = next((d for one in site.before for d in one.declares if d.name == name), None)
    if made is None or not _CONFIG.fullmatch(made.type) or not _FIELDS.match(made.value or "{"):
        return False
    statements = list(routine.walk())
    if any(a.target.strip() in (name, f"{name}.stream") for one in statements for a in one.assigns):
        return False
    given = [argument.strip(" &") for one in statements for call in one.calls for argument in call.arguments]
    return given.count(name) == sum(one.config == name for one in sites(routine))


def _unpacked(site: Site) -> bool:
    """Whether the configuration is a pack or a macro's own argument list: then its length is not what is seen."""
    return any("..." in (part or "") for part in (site.grid, site.block, site.shared))


RULE = Rule("stream-default", "warning", _run, spread="up")
