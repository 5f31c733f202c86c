"""A selector of template instances whose last branch neither launches nor fails.

*Why.* For a shape or type without an instance the function returns as if it had worked. Its output is what `empty`
left in memory.

*Flagged*

```cuda
#include <torch/all.h>
template <int N> void launch(torch::Tensor& y, cudaStream_t stream);
torch::Tensor run(const torch::Tensor& x, int64_t d, cudaStream_t stream) {
  torch::Tensor y = torch::empty_like(x);
  if (d == 64) {
    launch<64>(y, stream);
  } else if (d == 128) {
    launch<128>(y, stream);
  } else {
    std::cout << "no kernel for " << d;  // flagged
  }
  return y;
}
void pick(torch::Tensor& y, int64_t d, cudaStream_t stream) {
  switch (d) {  // flagged
    case 64: launch<64>(y, stream); break;
    case 128: launch<128>(y, stream); break;
  }
}
void chain(torch::Tensor& y, int64_t d, cudaStream_t stream) {
  if (d == 64) {  // flagged
    launch<64>(y, stream);
  } else if (d == 128) {
    launch<128>(y, stream);
  }
}
struct Shape { int width; };
void by_width(const Shape& shape, torch::Tensor& y, cudaStream_t stream) {
  if (shape.width == 2) {  // flagged
    launch<2>(y, stream);
  } else if (shape.width == 3) {
    launch<3>(y, stream);
  }
}
enum class Kind { Even, Odd, Both };
void by_kind(torch::Tensor& y, Kind kind, cudaStream_t stream) {
  if (kind == Kind::Even) {  // flagged
    launch<2>(y, stream);
  } else if (kind == Kind::Odd) {
    launch<3>(y, stream);
  }
}
void by_parts(torch::Tensor& y, int64_t rows, int step, cudaStream_t stream) {
  const int parts = (rows + step - 1) / step;
  if (parts == 1) {  // flagged
    launch<1>(y, stream);
  } else if (parts == 2) {
    launch<2>(y, stream);
  }
}
void unchecked(torch::Tensor& y, const torch::Tensor& weight, cudaStream_t stream) {
  Shape shape;
  shape.width = weight.size(-1);
  TORCH_CHECK(y.size(0) <= 8, "too many rows");
  by_width(shape, y, stream);
}
```

*Clean*

```cuda
#include <torch/all.h>
template <int N> void launch(torch::Tensor& y, cudaStream_t stream);
void run(torch::Tensor& y, int64_t d, cudaStream_t stream) {
  TORCH_CHECK(d == 64 || d == 128, "64 or 128");
  if (d == 64) {
    launch<64>(y, stream);
  } else if (d == 128) {
    launch<128>(y, stream);
  }
  switch (y.size(0)) {
    case 64: launch<64>(y, stream); break;
    default: TORCH_CHECK(false, "no kernel");
  }
  if (d == 64) {
    launch<64>(y, stream);
  } else {
    launch<128>(y, stream);
  }
}
struct Shape { int width; };
void fill(Shape& shape, int64_t width) { shape.width = width; }
void by_width(const Shape& shape, torch::Tensor& y, cudaStream_t stream) {
  if (shape.width == 2) {
    launch<2>(y, stream);
  } else if (shape.width == 3) {
    launch<3>(y, stream);
  }
}
void checked(torch::Tensor& y, const torch::Tensor& weight, cudaStream_t stream) {
  const int width = weight.size(-1);
  TORCH_CHECK(width >= 2 && width <= 3, "2 or 3");
  Shape shape;
  fill(shape, width);
  by_width(shape, y, stream);
}
bool tried(torch::Tensor& y, int64_t d, cudaStream_t stream) {
  if (d == 64) {
    launch<64>(y, stream);
    return true;
  } else if (d == 128) {
    launch<128>(y, stream);
    return true;
  }
  return false;
}
void panics(torch::Tensor& y, int64_t d, cudaStream_t stream) {
  if (d == 64) {
    launch<64>(y, stream);
  } else if (d == 128) {
    launch<128>(y, stream);
  } else {
    host::Panic("no kernel for ", d);
  }
}
void asserts(torch::Tensor& y, int64_t d, cudaStream_t stream) {
  if (d == 64) {
    launch<64>(y, stream);
  } else if (d == 128) {
    launch<128>(y, stream);
  } else {
    assert(false);
  }
}
enum class Kind { Even, Odd };
void every(torch::Tensor& y, Kind kind, cudaStream_t stream) {
  if (kind == Kind::Even) {
    launch<2>(y, stream);
  } else if (kind == Kind::Odd) {
    launch<3>(y, stream);
  }
  switch (kind) {
    case Kind::Even: launch<2>(y, stream); break;
    case Kind::Odd: launch<3>(y, stream); break;
  }
}
enum class Way { Rows, Columns, Both };
void chosen(torch::Tensor& y, bool both, cudaStream_t stream) {
  const Way way = both ? Way::Both : Way::Rows;
  switch (way) {
    case Way::Rows: launch<1>(y, stream); break;
    case Way::Both: launch<2>(y, stream); break;
  }
}
void in_a_row(torch::Tensor& y, int64_t rows, cudaStream_t stream) {
  TORCH_INTERNAL_ASSERT(rows >= 1 && rows <= 4);
  const int steps = log2_ceil(rows);
  switch (steps) {
    case 0: launch<0>(y, stream); break;
    case 1: launch<1>(y, stream); break;
    case 2: launch<2>(y, stream); break;
    default: break;
  }
}
int width_of(const torch::Tensor& x) {
  if (x.size(-1) % 4 == 0) return std::min<int>(4, x.element_size());
  return x.size(-1) % 2 == 0 ? 2 : 1;
}
void by_width_of(torch::Tensor& y, cudaStream_t stream) {
  const int width = width_of(y);
  switch (width) {
    case 1: launch<1>(y, stream); break;
    case 2: launch<2>(y, stream); break;
    case 4: launch<4>(y, stream); break;
  }
  int tile = -1;
  if (width == 4) {
    tile = 32;
  } else {
    tile = 16;
  }
  switch (tile) {
    case 16: launch<16>(y, stream); break;
    case 32: launch<32>(y, stream); break;
  }
}
void falls_back(torch::Tensor& y, const torch::Tensor& x, int64_t k, cudaStream_t stream) {
  switch (k) {
    case 2: launch<2>(y, stream); break;
    case 3: launch<3>(y, stream); break;
    default: at::sum_out(y, x, 1); break;
  }
}
int next_pow2(int64_t n);
void steps(torch::Tensor& y, int64_t rows, cudaStream_t stream) {
  TORCH_CHECK(rows <= 16, "too many rows");
  const int wide = next_pow2(rows);
  const int threads = wide < 4 ? 4 : wide;
  if (threads == 4) {
    launch<4>(y, stream);
  } else if (threads == 8) {
    launch<8>(y, stream);
  } else if (threads == 16) {
    launch<16>(y, stream);
  }
}
void thrown(torch::Tensor& y, int64_t d, cudaStream_t stream) {
  if (d == 64) {
    launch<64>(y, stream);
  } else if (d == 128) {
    launch<128>(y, stream);
  } else {
    KIT_LOG_AND_THROW(UnknownWidth) << "no kernel for " << d;
  }
  if (d == 64) {
    launch<64>(y, stream);
  } else if (d == 128) {
    launch<128>(y, stream);
  } else {
    LOG(FATAL) << "no kernel for " << d;
  }
}
void left(torch::Tensor& y, int64_t d, cudaStream_t stream) {
  if (d % 64 != 0) throw std::invalid_argument("a multiple of 64");
  if (d % 128 == 0) {
    launch<128>(y, stream);
  } else if (d % 64 == 0) {
    launch<64>(y, stream);
  }
}
```

*Use instead.* An error in the last branch that names what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import CallText, Routine, Statement
from opwalker.rules._choices import nothing_left
from opwalker.rules._launches import points
from opwalker.rules._values import leaves

#: Calls that only tell of it.
_SAYS = re.compile(r"(?i:print|warn|puts|to_string|c_str)|LOG|\blog|_log\b")
_FAILS = re.compile(r"THROW|throw|FATAL|Fatal|ERROR|abort|ABORT|UNREACHABLE|[Pp]anic")
#: What is compared for equality.
_ASKED = re.compile(r"([A-Za-z_][\w.>-]*)\s*==")
_EQUAL = re.compile(r"==|\bis_same|\.has_value\(\)")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    for routine in tree.routines:
        if routine.on_device:
            continue
        inner: set[int] = set()
        for point in points(routine.statements):
            one = point.statement
            if id(one) in inner or (one.macro is not None):
                continue
            row = _row(one, point.after)
            branches, last, has_last = _of_row(row, point.after, inner) if row else _branches(one, inner)
            by_name: dict[str, set[str]] = {}
            for name, arguments in (found for branch in branches for found in _instances(tree, routine, branch)):
                by_name.setdefault(name, set()).add(arguments)
            if len(branches) < 2 or not any(len(found) > 1 for found in by_name.values()):
                continue
            settled = _works(last) or nothing_left(tree, routine, point)
            if settled or (not row and _goes_on(routine, one, point.after, branches)):
                continue
            said = "neither launches nor fails" if has_last else "has no branch for what is left"
            line = last[0].line if has_last and last else one.line
            yield Draft(
                routine.file,
                line,
                f"this selection of {next(n for n, f in by_name.items() if len(f) > 1)} {said}",
                (Related(routine.file, one.line, f"chosen by `{one.text[:60]}`"),),
                "",
            )


def _row(one: Statement, after: Sequence[Statement]) -> list[Statement]:
    """The ``if``s of a selection that stand one behind the other, each of which returns: ``if (n == 4) return f<4>();
    if (n == 8) return f<8>();``. Empty where there is one alone."""
    row: list[Statement] = []
    asked: set[str] = set()
    for held in (one, *after):
        apart = held.kind == "if" and held.body and not held.orelse and leaves(held.body)
        about = set(_ASKED.findall(held.text)) if apart else set()
        if not about or (row and not about & asked):
            break
        row.append(held)
        asked |= about
    return row if len(row) > 1 else []


def _of_row(
    row: Sequence[Statement], after: Sequence[Statement], inner: set[int]
) -> tuple[list[Sequence[Statement]], Sequence[Statement], bool]:
    """What ``_branches`` says, of such a row: its last branch is what follows it."""
    inner.update(id(held) for held in row[1:])
    rest = after[len(row) - 1 :]
    return [held.body for held in row], rest, bool(rest)


def _branches(one: Statement, inner: set[int]) -> tuple[list[Sequence[Statement]], Sequence[Statement], bool]:
    """The branches of a chain of ``if``s or of a ``switch``, its last one, and whether there is a last one."""
    if one.kind == "switch":
        cases = [held for held in one.body if held.kind == "case"]
        default = next((held for held in cases if not held.text), None)
        return [held.body for held in cases if held.text], default.body if default else (), default is not None
    if one.kind != "if" or not _EQUAL.search(one.text):
        return [], (), False
    branches: list[Sequence[Statement]] = []
    while True:
        branches.append(one.body)
        if not one.orelse:
            return branches, (), False
        following = one.orelse[0]
        if len(one.orelse) == 1 and following.kind == "if":
            inner.add(id(following))
            one = following
            continue
        return branches, one.orelse, True


def _instances(tree: CheckedTree, routine: Routine, branch: Sequence[Statement]) -> Iterator[tuple[str, str]]:
    """Templates that a branch calls or launches with explicit arguments."""
    for first in branch:
        for one in first.walk():
            for call in one.calls:
                if call.template and call.receiver is None and _starts_work(tree, routine, call):
                    yield call.name, ", ".join(call.template)
            for launch in one.launches:
                if "<" in launch.kernel:
                    name, _, arguments = launch.kernel.partition("<")
                    yield name, arguments


def _starts_work(tree: CheckedTree, routine: Routine, call: CallText) -> bool:
    """Whether a function launches, by its name, by the stream that it is given, or as its definition shows."""
    if re.search(r"launch|run|kernel|dispatch|call|impl", call.name, re.I):
        return True
    streams = {one.name for one in routine.parameters if "Stream_t" in one.type}
    streams |= {d.name for one in routine.walk() for d in one.declares if "Stream_t" in d.type}
    if not streams.isdisjoint(argument.strip() for argument in call.arguments):
        return True
    return any(one.launches for target in tree.targets(routine, call) for one in target.walk())


def _works(branch: Sequence[Statement]) -> bool:
    """Whether a branch launches, calls something of the kind, returns another value, or fails."""
    for first in branch:
        for one in first.walk():
            if one.kind in ("throw", "return", "goto", "continue", "switch") or one.launches:
                return True
            if any(not _SAYS.search(call.name) or _FAILS.search(call.text) for call in one.calls):
                return True
            if one.assigns:
                return True
    return False


def _goes_on(routine: Routine, one: Statement, after: Sequence[Statement], branches: list) -> bool:
    """Whether what is not chosen is dealt with behind the selection: each branch returns, and something follows."""
    returns = all(any(held.kind == "return" for first in branch for held in first.walk()) for branch in branches)
    if not returns:
        return False
    return _works(after)


RULE = Rule("dispatch-no-default", "warning", _run, spread="own")
