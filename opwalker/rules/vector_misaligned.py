"""A pointer read or written as a wide vector, with no proof that it is aligned for it.

*Why.* A 16-byte access to an address that is no multiple of 16 ends the kernel with "misaligned address". The row of a
tensor starts where its length says, not where a vector wants it.

*Flagged*

```cuda
struct alignas(16) Pack { __half v[8]; };
__device__ void copy_row(const __half* in, __half* out, int n) {
  const bool fast = (reinterpret_cast<uintptr_t>(in) & 15) == 0 && n % 8 == 0;
  if (fast) {
    for (int i = threadIdx.x; i < n / 8; i += blockDim.x)
      reinterpret_cast<Pack*>(out)[i] = reinterpret_cast<const Pack*>(in)[i];  // flagged
  }
}
__global__ void rows(float* y, int cols) {
  float* row = y + blockIdx.x * cols;
  reinterpret_cast<float4*>(row)[threadIdx.x] = make_float4(0, 0, 0, 0);  // flagged
}
```

```cuda plain.cu
__global__ void copy_row(const float* in, float* out, int n) {
  int i = threadIdx.x * 4;
  *(float4*)(out + i) = make_float4(0, 0, 0, 0);  // flagged
  float4 held = *(const float4*)&in[i];  // flagged
  ((float4*)out)[threadIdx.x] = held;  // flagged
}
```

*Clean*

```cuda
__device__ void copy_row(const float* in, float* out, int n) {
  const bool fast = (reinterpret_cast<uintptr_t>(in) & 15) == 0 && (reinterpret_cast<uintptr_t>(out) & 15) == 0;
  if (fast) {
    for (int i = threadIdx.x; i < n / 4; i += blockDim.x)
      reinterpret_cast<float4*>(out)[i] = reinterpret_cast<const float4*>(in)[i];
  }
}
__global__ void tile(float* y) {
  __shared__ __align__(16) float held[128];
  reinterpret_cast<float4*>(held)[threadIdx.x] = make_float4(0, 0, 0, 0);
  float4 mine;
  float* parts = reinterpret_cast<float*>(&mine);
  parts[0] = 1;
}
```

```cuda plain.cu
__global__ void copy_row(const float* in, float* out, int n) {
  if (((uintptr_t)in & 15) == 0) {
    float4 held = *(const float4*)&in[threadIdx.x];
    __shared__ __align__(16) float tile[128];
    *(float4*)(tile + threadIdx.x) = held;
  }
  float4* wide = (float4*)(out + n);
  int width = n * (int)(sizeof(float4));
}
```

*Use instead.* A test of each pointer's alignment, with a scalar path. Off by default: that a caller passes only
aligned rows is often known elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine, Statement

_WIDE = re.compile(
    r"(?:u?(?:int|float|long|short|half|char)(?:[248]|64x[24])|double[24]|u?longlong[24]|uint4|int4|__half2|half2|__nv_bfloat162|nv_bfloat162)\Z"
)
_CAST = re.compile(
    r"reinterpret_cast<\s*(?:const\s+|volatile\s+)*([\w:]+)(?:<[^<>]*>)?\s*(?:const\s*)?\*\s*>\s*\(\s*&?\s*\(*\s*([A-Za-z_]\w*)\s*(\[|\+|\))"
)
#: The same as C writes it: ``*(int4*)(out + i)``, ``((const float4*)row)[i]``.
_PLAIN = re.compile(
    r"\(\s*(?:const\s+|volatile\s+)*([\w:]+)\s*(?:const\s*)?\*\s*\)\s*\(*\s*&?\s*([A-Za-z_]\w*)\s*(\[|\+|\))?"
)

#: What a macro writes one side of alone: ``FLOAT4(out[i]) = v``.
_SET = re.compile(r"\w+\s*\([^;]*?\)\s*=(?!=)")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    wide_types = _wide_types(tree)
    for routine in tree.routines:
        if not routine.on_device:
            continue
        local = {d.name: d for one in routine.walk() for d in one.declares}
        parameters = {one.name for one in routine.parameters if "*" in one.type}
        told: set[tuple[int, str]] = set()
        for one in routine.walk():
            if one.macro is not None and not _SET.match(one.written):
                continue
            for name, kind, source in _vectors(one, local):
                wide = _WIDE.match(kind) or kind in wide_types
                line = _used(routine, name, one) if wide and _may_stray(source, parameters, local) else None
                if line is not None and (line, source) not in told and not _tested(routine, source, local):
                    told.add((line, source))
                    said = f"{source} is accessed as {kind} through {name}, and nothing shows that it is aligned"
                    at = Related(routine.file, one.line, f"{name} is made here")
                    yield Draft(routine.file, line, said, (at,), source)
            for text, line in _texts(one):
                for found in (*_CAST.finditer(text), *_PLAIN.finditer(text)):
                    kind, name = found[1].rsplit("::", 1)[-1], found[2]
                    if not (_WIDE.match(kind) or kind in wide_types) or (line, name) in told:
                        continue
                    reads = _dereferenced if found.re is _CAST else _dereferenced_plainly
                    if not reads(text, found) or not _may_stray(name, parameters, local):
                        continue
                    if _tested(routine, name, local):
                        continue
                    told.add((line, name))
                    yield Draft(
                        routine.file,
                        line,
                        f"{name} is accessed as {kind}, and nothing shows that it is aligned",
                        symbol=name,
                    )


def _texts(one) -> Iterator[tuple[str, int]]:
    if one.kind in ("expression", "return"):
        yield one.text, one.line
    for declared in one.declares:
        if declared.value and "*" not in declared.type:
            yield declared.value, declared.line


def _vectors(one: Statement, local: dict) -> Iterator[tuple[str, str, str]]:
    """The pointers to vectors that a statement makes of other pointers: ``(name, type, made of)``."""
    for made in one.declares:
        value = (made.value or "").strip().removeprefix("=").strip()
        if made.name and ("*" in made.type or "auto" in made.type) and "&" not in made.type:
            for found in (*_CAST.finditer(value), *_PLAIN.finditer(value)):
                if found.start() == 0 and found[2] != made.name:
                    yield made.name, found[1].rsplit("::", 1)[-1], found[2]
                    break


def _used(routine: Routine, name: str, made: Statement) -> int | None:
    """The first line on which a pointer is read or written through."""
    access = re.compile(rf"(?<![\w.>]){re.escape(name)}\s*\[|(?<![\w)\]]\s)(?<![\w)\]])\*\s*{re.escape(name)}\b")
    for one in routine.walk():
        if one is not made and one.line >= made.line and one.kind in ("expression", "declaration", "return"):
            if access.search(one.text):
                return one.line
    return None


def _wide_types(tree: CheckedTree) -> frozenset[str]:
    """Structures of the source that are aligned to 8 bytes or more."""
    out: set[str] = set()
    for name in (
        "Pack",
        "Vec",
        "vec_t",
        "AlignedVector",
        "array_t",
        "aligned_array",
        "PackedVec",
        "BytesVec",
        "VecType",
    ):
        for file, definition in tree.classes(name):
            head = tree.text(file)[max(0, definition.offset - 80) : definition.body_start]
            if re.search(r"alignas|__align__", head):
                out.add(name)
    return frozenset(out)


def _dereferenced(text: str, found: re.Match[str]) -> bool:
    """Whether what is cast is read or written there: ``*cast(…)``, ``cast(…)[i]``."""
    before = text[: found.start()].rstrip()
    depth, at = 0, found.start()
    for at in range(text.find("(", text.find(">", text.find("*", found.start()))), len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            break
    after = text[at + 1 :].lstrip()
    return before.endswith("*") or after.startswith("[")


def _dereferenced_plainly(text: str, found: re.Match[str]) -> bool:
    """The same of a cast as C writes it: ``*(T*)…``, ``((T*)…)[i]``."""
    before = text[: found.start()].rstrip()
    if before.endswith("*"):
        return True
    depth = 0
    for at in range(found.start() - 1, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return text[at + 1 :].lstrip().startswith("[")
    return False


def _may_stray(name: str, parameters: set[str], local: dict) -> bool:
    """Whether a pointer comes from outside and may point anywhere: a parameter, or an offset into one."""
    if name in parameters:
        return True
    declared = local.get(name)
    if declared is None or "__shared__" in declared.type or "[" in declared.type or not declared.value:
        return False
    if "*" not in declared.type and "auto" not in declared.type:
        return False
    return any(re.search(rf"\b{re.escape(one)}\b", declared.value) for one in parameters)


def _tested(routine: Routine, name: str, local: dict) -> bool:
    """Whether the routine looks at the alignment of a pointer, or of what it is made of."""
    names = {name}
    declared = local.get(name)
    if declared is not None and declared.value:
        names |= set(re.findall(r"[A-Za-z_]\w*", declared.value)) & {
            one.name for one in routine.parameters if "*" in one.type
        }
    asked = re.compile(r"uintptr_t|is_aligned|aligned\(|isAligned|assume_aligned|alignment", re.IGNORECASE)
    for one in routine.walk():
        if asked.search(one.text) and any(re.search(rf"\b{re.escape(held)}\b", one.text) for held in names):
            return True
    return False


RULE = Rule("vector-misaligned", "warning", _run, default=False, spread="own")
