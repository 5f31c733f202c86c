"""A check macro that asks for an error and throws the answer away.

*Why.* The call looks checked at every use, and no failure is ever seen.

*Flagged*

```cuda
#include <torch/all.h>
#define RUN(x) (void)(x)  // flagged
#define CHECK_CUDA_ERROR() { cudaGetLastError(); }  // flagged
#define TRY(x) do { cudaError_t e = (x); (void)e; } while (0)  // flagged
#define TEST(x) { auto status = x; if (status != cudaSuccess) {} }  // flagged
void run(float* p) {
  RUN(cudaFree(p));
  TRY(cudaFree(p));
  TEST(cudaFree(p));
  CHECK_CUDA_ERROR();
}
```

*Clean*

```cuda
#include <torch/all.h>
#define RUN(x) do { auto e = (x); if (e != cudaSuccess) throw e; } while (0)
#define CHECK_SHAPE(x) (void)(x)
#define TRY(x) do { cudaError_t e = (x); (void)e; report(e); } while (0)
#define TEST(x) { auto status = x; if (status != cudaSuccess) { report(status); } }
#define CUDA_CHECK(x) C10_CUDA_CHECK(x)
#define SIZE_OF(x) ((x).size(0))
void run(float* p) {
  RUN(cudaFree(p));
  TRY(cudaFree(p));
  TEST(cudaFree(p));
  CHECK_SHAPE(p);
  CUDA_CHECK(cudaFree(p));
}
```

*Use instead.* A macro that compares with `cudaSuccess` and throws.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from opwalker.model.check import CheckedTree, Draft, Rule

_READS = re.compile(
    r"[!=]=|\bif\b|\?|throw|TORCH_|CHECK|ASSERT|Error\w*\(|_check|check\(|assert|return|fail|<<", re.IGNORECASE
)
_ASKS = re.compile(
    r"^[\s({;})]*(?:do\s*\{)?\s*(?:\(\s*void\s*\)|(?:static_cast\s*<\s*void\s*>|void)\s*\()?[\s(]*(?:::)?(?:cuda|hip)(?:Get|PeekAt)LastError"
    r"\s*\(\s*\)[\s)]*;?\s*\}?[\s()};while0]*$"
)
#: A name that says that the error is to go.
_CLEARS = re.compile(r"(?i)clear|reset|flush|drain|swallow|ignore|consume|discard|drop|pop")
_CLAIMS = re.compile(r"(?i)check|assert|verify|ensure|require|safe|must|enforce|_ok\Z|\Aok_?")
#: ``{ auto e = (x);`` at the start of a body, and what makes no use of ``e``.
_KEPT = r"(?:do\b)?[({{\s]*(?:const\s+)?[\w:]+\s+(\w+)\s*=\s*\(?\s*{given}\s*\)?\s*;"
_UNUSED = (
    r"\s*(?:(?:\(\s*void\s*\)\s*\(?\s*{name}\s*\)?\s*;?|if\s*\([^(){{}}]*\)\s*(?:\{{[\s;]*\}}|;)|;)\s*)*[)}};\s]*"
    r"(?:while\s*\(\s*(?:0|false)\s*\))?[)}};\s]*"
)
_VOID = r"(?:\(\s*void\s*\)|static_cast\s*<\s*void\s*>)"
_RUNTIME = re.compile(r"\b(?:cuda|hip|nccl|cublas)[A-Z]\w*\s*\(")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    used = cache(lambda: _runtime_arguments(tree))
    alone = cache(lambda: _whole_statements(tree))
    for file in tree.files("cuda", "cpp"):
        if tree.changed is not None and file not in tree.changed:
            continue
        for macro in tree.macros(file):
            body = (macro.body or "").strip()
            if macro.parameters is None or not body:
                continue
            if _ASKS.match(body) and not _CLEARS.search(macro.name):
                yield Draft(file, macro.line, f"{macro.name} asks for the last error and drops it", symbol=macro.name)
                continue
            if len(macro.parameters) != 1:
                continue
            given = re.escape(macro.parameters[0])
            kept = re.match(_KEPT.format(given=given), body)
            if kept and re.fullmatch(_UNUSED.format(name=kept[1]), body[kept.end() :]) and macro.name in used():
                yield Draft(
                    file,
                    macro.line,
                    f"{macro.name} keeps the error of what it is given and does not look",
                    symbol=macro.name,
                )
                continue
            if _READS.search(body):
                continue
            only = re.fullmatch(rf"(?:do\b)?[({{\s]*{_VOID}[({{\s]*{given}[)}};\s]*(?:while\s*\(\s*0\s*\))?", body)
            bare = _CLAIMS.search(macro.name) and re.fullmatch(rf"[({{\s]*{given}[)}};\s]*", body)
            # A name alone says little: what is handed to it must be a runtime call.
            if (only and macro.name in used()) or (bare and macro.name in alone()):
                yield Draft(file, macro.line, f"{macro.name} drops the error of what it is given", symbol=macro.name)
    for routine in tree.routines:
        name = routine.name.rsplit("::", 1)[-1]
        if routine.on_device or len(routine.statements) != 1 or _CLEARS.search(name) or not _CLAIMS.search(name):
            continue
        if routine.statements[0].kind == "expression" and _ASKS.match(routine.statements[0].text):
            yield Draft(routine.file, routine.line, f"{name} asks for the last error and drops it", symbol=name)


def _runtime_arguments(tree: CheckedTree) -> frozenset[str]:
    """Macros that are given a runtime call somewhere in the source."""
    given = (one for routine in tree.every_routine for one in routine.walk() if _RUNTIME.search(one.text))
    return frozenset(one.text.partition("(")[0] if one.macro is None else one.macro.name for one in given)


def _whole_statements(tree: CheckedTree) -> frozenset[str]:
    """Macros that are given a runtime call somewhere in the source and are a statement there, so that nobody can look
    at what they hand on."""
    held = (one for routine in tree.every_routine for one in routine.walk() if one.kind == "expression")
    given = (re.match(r"(\w+)\s*\(", one.written) for one in held if _RUNTIME.search(one.text))
    return frozenset(found[1] for found in given if found)


RULE = Rule("check-discards-error", "warning", _run, spread="own")
