"""A loop that advances by several elements, accesses several, and is bounded by the last element alone.

*Why.* With a length that is no multiple the last access reaches past the row: the neighbour's first element is read,
or overwritten.

*Flagged*

```cuda
__global__ void scale(__half* y, const __half* x, int cols, __half2 k) {
  for (int i = threadIdx.x * 2; i < cols; i += blockDim.x * 2)
    *reinterpret_cast<__half2*>(y + i) = __hmul2(*reinterpret_cast<const __half2*>(x + i), k);  // flagged
}
__global__ void four(float* y, int n) {
  for (int i = 0; i < n; i += 4) {
    y[i + 3] = y[i];  // flagged
  }
}
__global__ void goes_on(float* y, const float* x, int n) {
  int i = threadIdx.x * 4;
  while (i < n) {
    y[i + 3] = x[i];  // flagged
    i += blockDim.x * 4;
  }
}
struct Rows {
  __device__ static void copy(float* y, int n) {
    const int width = n - 1;
    for (int i = 0; i < width; i += 2) y[i + 1] = y[i];  // flagged
  }
};
void pick(float* y, int64_t count, cudaStream_t stream) {
  if (count >= 4) {
    four<<<1, 1, 0, stream>>>(y, count);
  }
}
```

*Clean*

```cuda
__global__ void scale(__half* y, const __half* x, int cols, __half2 k) {
  for (int i = threadIdx.x * 2; i + 1 < cols; i += blockDim.x * 2)
    *reinterpret_cast<__half2*>(y + i) = __hmul2(*reinterpret_cast<const __half2*>(x + i), k);
  for (int i = threadIdx.x; i < cols / 2; i += blockDim.x)
    reinterpret_cast<__half2*>(y)[i] = k;
}
__global__ void checked(float* y, int n) {
  if (n % 4 != 0) return;
  for (int i = 0; i < n; i += 4) {
    y[i + 3] = y[i];
  }
}
__global__ void picked(float* y, int n) {
  for (int i = 0; i < n; i += 4) {
    y[i + 3] = y[i];
  }
}
void pick(float* y, int64_t count, cudaStream_t stream) {
  if (count >= 4 && count % 4 == 0) {
    picked<<<1, 1, 0, stream>>>(y, count);
  }
}
template <int N>
__global__ void fixed(float* y) {
  static_assert(N % 2 == 0);
  constexpr int PARTS = N / 2;
  for (int i = 0; i < N; i += 2) y[i + 1] = y[i];
  for (int i = 0; i < PARTS; i += 2) y[i + 1] = y[i];
}
template <typename T, int width>
struct Row {
  T data[width];
  __device__ void halve() {
    for (int i = 0; i < width; i += 2) data[i + 1] = data[i];
  }
};
__global__ void chosen(float* y, int n) {
  for (int i = 0; i < n; i += 2) y[i] = i + 1 < n ? y[i + 1] : 0;
}
__global__ void goes_on(float* y, const float* x, int n) {
  int i = threadIdx.x, j = 0;
  while (i < n) {
    y[i] = x[i];
    y[j + 3] = x[j];
    j += 4;
    i += blockDim.x;
  }
  while (j < n) {
    y[j + 1] = 0;
  }
}
__global__ void stepped(float* y, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = 0;
}
```

*Use instead.* The bound `i + k <= n` and a loop for the rest, or a check that the length is a multiple.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine, Statement
from opwalker.rules._above import settled_above
from opwalker.rules._launches import Point, locals_of_point, points
from opwalker.rules._values import checks_before, is_fixed, terms_of

_WIDTH = {"2": 2, "4": 4, "8": 8}
_WIDE = re.compile(
    r"(?:__half2|half2|__nv_bfloat162|float2|float4|int2|int4|uint2|uint4|short4|char4|uchar4|double2)\b"
)


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        if not routine.on_device:
            continue
        for one in routine.walk():
            if one.kind in ("for", "while", "if"):
                yield from _bounded(tree, routine, one)


def _bounded(tree: CheckedTree, routine: Routine, one: Statement) -> Iterator[Draft]:
    bound = re.fullmatch(r"(\w+)\s*<\s*(\w+)", one.text.strip())
    if bound is None:
        return
    name, limit = bound[1], bound[2]
    made = _made(routine, name) if one.kind == "if" else _step(one, name)
    step = re.fullmatch(rf"{name}\s*\+?=\s*(.+)", made, re.DOTALL)
    if step is None:
        return
    count = _multiple(step[1]) if _multiple(step[1]) > 1 else _by_name(routine, step[1])
    if count in (0, 1) or _divides(routine, limit, one.line):
        return
    if is_fixed(routine, limit) or not _comes_in(routine, limit):
        return
    asks = re.compile(rf"<=?\s*{re.escape(limit)}\b[^?;]*\?")
    for held in one.body:
        for part in held.walk():
            if asks.search(part.text) or (
                part.kind in ("if", "while") and re.search(rf"\b{re.escape(limit)}\b", part.text)
            ):
                return  # the body looks at the bound itself
    for held in one.body:
        for part in held.walk():
            if _takes(part.text, name, count) or _takes_each(one, part.text, name, str(count)):
                if _divides_above(tree, routine, limit):
                    return
                yield Draft(
                    routine.file,
                    part.line,
                    f"{count} elements from {name} on are accessed, and `{name} < {limit}` bounds the first alone",
                    (Related(routine.file, one.line, f"{name} goes by {step[1].strip()}"),),
                    name,
                )
                return


def _made(routine: Routine, name: str) -> str:
    """How a local is made, where it is made once and not moved."""
    values = [d.value for one in routine.walk() for d in one.declares if d.name == name and d.value]
    moved = any(a.target == name for one in routine.walk() for a in one.assigns)
    return f"{name} = {values[0].strip().removeprefix('=').strip()}" if len(values) == 1 and not moved else ""


def _step(one: Statement, name: str) -> str:
    """How a loop goes on: its third part, or the last thing in its body that moves what it counts by."""
    moved = [f"{a.target} {a.operator} {a.value}" for part in one.body for a in part.assigns if a.target == name]
    return one.step.strip() or (moved[-1] if moved else "")


def _comes_in(routine: Routine, limit: str) -> bool:
    """Whether a length is a parameter or a local; a constant of the class around, or of the file, is neither."""
    if any(one.name == limit for one in routine.parameters):
        return True
    return any(declared.name == limit for one in routine.walk() for declared in one.declares)


def _multiple(step: str) -> int:
    """The constant factor of a step: ``blockDim.x * 2``, ``4``."""
    found = (
        re.fullmatch(r"\s*(\d+)\s*", step) or re.search(r"\*\s*(\d+)\s*\Z", step) or re.match(r"\s*(\d+)\s*\*", step)
    )
    return int(found[1]) if found else 1


def _by_name(routine: Routine, step: str) -> str | int:
    """The constant of the build that a step is a multiple of: ``blockDim.x * WIDTH``; 1 for none."""
    found = re.search(r"\*\s*([A-Za-z_]\w*)\s*\Z", step) or re.fullmatch(r"\s*([A-Z][A-Z0-9_]+)\s*", step)
    return found[1] if found and re.search(rf"\b{found[1]}\b", routine.template or "") else 1


def _takes_each(loop: Statement, text: str, name: str, count: str) -> bool:
    """Whether an expression stands in a loop over all the elements of a step: ``for (j = 0; j < 4; ++j) y[i + j]``."""
    for part in loop.walk():
        bound = re.fullmatch(r"(\w+)\s*<\s*(\w+)", part.text.strip()) if part.kind == "for" else None
        if bound and bound[2] == count and any(held.text == text for inner in part.body for held in inner.walk()):
            index = rf"(?:{name}\s*\+\s*{bound[1]}|{bound[1]}\s*\+\s*{name})"
            if re.search(rf"\[\s*{index}\s*\]", text):
                return True
    return False


def _takes(text: str, name: str, count: int | str) -> bool:
    """Whether an expression accesses elements beyond the one that the index names."""
    if isinstance(count, str):
        cast = r"(?:reinterpret_cast<[^>]*\*\s*>|\(\s*(?:const\s+)?\w+\s*\*\s*\))"
        return bool(re.search(rf"\*\s*{cast}\s*\(*\s*&?\s*\w+\s*(?:\+\s*{name}\b|\[\s*{name}\s*\])", text))
    if re.search(rf"\[\s*{name}\s*\+\s*(\d+)\s*\]", text):
        return any(0 < int(one) < count for one in re.findall(rf"\[\s*{name}\s*\+\s*(\d+)\s*\]", text))
    cast = r"(?:reinterpret_cast<[^>]*\*\s*>|\(\s*(?:const\s+)?\w+\s*\*\s*\))"
    wide = rf"{cast}\s*\(*\s*&?\s*\w+\s*(?:\+\s*{name}\b|\[\s*{name}\s*\]|\)*\s*\[\s*{name}\s*/\s*\d+\s*\])"
    return bool(re.search(wide, text)) and bool(_WIDE.search(text))


def _divides(routine: Routine, limit: str, line: int) -> bool:
    """Whether something before the loop asks that the length is a multiple."""
    name = re.escape(limit)
    asked = re.compile(rf"\b{name}\s*%|\b{name}\s*&\s*\(?\d|\b{name}\s*=\s*[^;]*(?:/|&|~|round|align)")
    return any(asked.search(one.text) for one in routine.walk() if one.line <= line)


def _divides_above(tree: CheckedTree, routine: Routine, limit: str) -> bool:
    """Whether a launch of the routine stands behind a question for multiples of the length that it passes: the
    host picks the variant that has a tail, or none to leave."""
    places = [number for number, one in enumerate(routine.parameters) if one.name == limit]
    if not places:
        return False
    for caller, arguments, point in _ways_in(tree, routine):
        if len(arguments) <= places[0]:
            continue
        terms = terms_of(arguments[places[0]], locals_of_point(point))
        for condition, _, _ in checks_before(point.before, point.around, point.statement):
            if "%" in condition and terms_of(condition, {}) & terms:
                return True
        if settled_above(tree, caller, terms, lambda text, _, held: "%" in text and bool(terms_of(text, {}) & held)):
            return True
    return False


def _ways_in(tree: CheckedTree, routine: Routine) -> Iterator[tuple[Routine, Sequence[str], Point]]:
    """The launches of a kernel in the source, with the arguments."""
    simple = routine.name.rsplit("::", 1)[-1]
    callers = {(caller.file, caller.line): caller for caller, _ in tree.launches(simple)}
    for caller in callers.values():
        if caller.on_device:
            continue
        for point in points(caller.statements):
            for launch in point.statement.launches:
                fits = len(launch.arguments) == len(routine.parameters)
                if fits and simple in launch.kernel and routine in tree.kernels(caller, launch):
                    yield caller, launch.arguments, point


RULE = Rule("vector-tail", "warning", _run, spread="own")
