"""An error check that ends the process, reachable from Python.

*Why.* A failed call in a worker kills the interpreter. Nothing can be caught, logged or cleaned up.

*Flagged*

```cpp
#include <pybind11/pybind11.h>
#define RUN(x)                          \\
  do {                                  \\
    if ((x) != 0) {                     \\
      std::exit(1); /* flagged */       \\
    }                                   \\
  } while (0)
static void need(bool ok) {
  if (!ok) abort();  // flagged
}
int grab(int n) {
  RUN(n);
  RUN(n + 1);
  need(n > 0);
  return n;
}
PYBIND11_MODULE(kit, m) { m.def("grab", &grab); }
```

*Clean*

```cpp
#include <pybind11/pybind11.h>
#define RUN(x) do { if ((x) != 0) throw std::runtime_error("failed"); } while (0)
int grab(int n) { RUN(n); return n; }
int main(int argc, char** argv) { if (argc > 9) exit(1); return 0; }
PYBIND11_MODULE(kit, m) { m.def("grab", &grab); }
```

*Use instead.* An exception, or an error code that the caller sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import Routine

_CALLS = re.compile(r"(?:std::|::)?(?:exit|abort|_Exit|quick_exit|_exit|terminate)\Z")


def _run(tree: CheckedTree) -> Iterator[Draft]:
    found = list(_ends(tree, tree.routines))
    if tree.changed is not None and found:
        # What stands in a macro is told once, with the first of all its uses.
        places = {(one.file, one.line) for one in found}
        found = [one for one in _ends(tree, tree.every_routine) if (one.file, one.line) in places]
    yield from found


def _ends(tree: CheckedTree, routines: Iterable[Routine]) -> Iterator[Draft]:
    for routine in routines:
        if routine.on_device:
            continue
        for one in routine.walk():
            for call in one.calls:
                if call.receiver is not None or not _CALLS.match(call.name):
                    continue
                ops = tree.ops_of(routine)
                if not ops:
                    continue
                file, line = routine.file, call.line
                if call.macro is not None:
                    if call.macro.known:
                        continue
                    file, line = tree.place(call.macro)
                yield Draft(
                    file,
                    line,
                    f"{call.name} ends the process, and Python reaches it",
                    (Related(routine.file, call.line, f"reached in {routine.name}, by {ops[0]}"),),
                    call.simple,
                    op=ops[0],
                )


RULE = Rule("check-exits-process", "warning", _run, spread="own")
