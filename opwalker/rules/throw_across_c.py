"""An exception that can leave a function with C linkage.

*Why.* The caller may be C, or Python through ctypes. An exception that reaches it ends the process.

*Flagged*

```cpp
#include <stdexcept>
struct Driver {
  Driver() { throw std::runtime_error("no driver"); }
  static Driver& get() { static Driver d; return d; }
};
static void need(bool ok) { if (!ok) throw std::runtime_error("no"); }
extern "C" int kit_init() {  // flagged
  Driver::get();
  return 0;
}
extern "C" int kit_need(int n) {  // flagged
  need(n > 0);
  return 0;
}
extern "C" int kit_throw(int n) {  // flagged
  if (n < 0) throw std::runtime_error("negative");
  return 0;
}
extern "C" int kit_number(const char* text) {  // flagged
  return std::stoi(text);
}
extern "C" int kit_item(const std::vector<int>* held, int n) {  // flagged
  return held->at(n);
}
extern "C" int kit_part(int n) {  // flagged
  try {
    TORCH_CHECK(n > 0, "positive");
    return 0;
  } catch (const std::runtime_error& e) {
    return 1;
  }
}
extern "C" void kit_check(int n) {  // flagged
  TORCH_CHECK(n > 0, "positive");
}
```

*Clean*

```cpp
#include <stdexcept>
static void need(bool ok) { if (!ok) throw std::runtime_error("no"); }
static int careful(bool ok) {
  try { need(ok); } catch (...) { return 1; }
  return 0;
}
extern "C" int kit_need(int n) {
  try {
    need(n > 0);
    return 0;
  } catch (const std::exception& e) {
    return 1;
  } catch (...) {
    return 2;
  }
}
extern "C" int kit_number(const char* text, const Table* table) {
  return at(text) + table->at(text, 1) + table->store(text) + table->find(text);
}
extern "C" int kit_code(int n) {
  try {
    TORCH_CHECK(n > 0, "positive");
    return 0;
  } catch (const std::exception& e) {
    return 1;
  }
}
extern "C" int kit_other(int n) { return careful(n > 0); }
```

*Use instead.* `try { … } catch (...) { … }` around the whole body, and an error code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from opwalker.model.check import CheckedTree, Draft, Related, Rule
from opwalker.model.statements import CallText, Routine, Statement

_CHECKS = re.compile(r"(?:STD_|C10_|AT_|TORCH_|TVM_FFI_)\w*(?:CHECK|ASSERT|THROW|ERROR|ENFORCE)\w*\Z|AT_ERROR\Z")
#: Of the standard library: what turns a text into a number.
_STANDARD = re.compile(r"std::sto(?:i|l|ul|ll|ull|f|d|ld)\Z")
_EXCEPTION = re.compile(r"\bstd::exception\b")
#: The class of an object that is thrown.
_THROWN = re.compile(r"([A-Za-z_][\w:]*)(?:<[^()]*>)?\s*[({]")
_PROMISES = re.compile(r"\)\s*(?:const\b|&{1,2}|\s)*noexcept\b(?!\s*\(\s*false\b)")
_DEEPEST = 6


def _run(tree: CheckedTree) -> Iterator[Draft]:
    known: dict[tuple[str, int], tuple[Related, ...] | None] = {}
    for routine in tree.routines:
        if not _has_c_linkage(tree, routine) or routine.on_device or _promises(tree, routine):
            continue
        if re.match(r"(?:PyInit_|PyMODINIT)", routine.name):
            continue
        found = _first(tree, routine, routine.statements, known, 0)
        if found is not None:
            line, way = found
            message = f"an exception can leave {routine.name}, which has C linkage"
            at = Related(routine.file, line, f"from here in {routine.name}")
            yield Draft(routine.file, routine.line, message, (at, *way), routine.name)


def _has_c_linkage(tree: CheckedTree, routine: Routine) -> bool:
    """Whether a function has C linkage: by its definition, or by a declaration that it includes."""
    if "extern_c" in routine.flags:
        return True
    if routine.scope or routine.template is not None or "static" in routine.flags or "::" in routine.name:
        return False
    declared = [file for file, one in tree.functions(routine.name) if "extern_c" in one.flags and not one.is_definition]
    return bool(declared) and not tree.included(routine.file).isdisjoint(declared)


def _first(
    tree: CheckedTree, routine: Routine, statements: Sequence[Statement],
    known: dict[tuple[str, int], tuple[Related, ...] | None], depth: int, handlers: tuple[Statement, ...] = (),
) -> tuple[int, tuple[Related, ...]] | None:  # fmt: skip
    """The first line of a routine from which an exception can leave it, and the steps to the throw; ``handlers`` are
    those around the statements."""
    caught = any(map(_catches_all, handlers))
    for one in statements:
        if one.kind == "try":
            found = _first(tree, routine, one.body, known, depth, (*one.orelse, *handlers))
            for held in one.orelse:
                found = found or _first(tree, routine, held.body, known, depth, handlers)
            if found:
                return found
            continue
        if one.kind == "throw":
            if any(_takes(held, one.text) for held in handlers):
                continue
            return one.line, (Related(routine.file, one.line, "thrown here"),)
        for call in () if caught else one.calls:
            way = _thrown_by(tree, routine, call, known, depth)
            if way is not None:
                return call.line, way
        for declared in () if caught else one.declares:
            way = _made(tree, routine, declared.type, declared.value, known, depth)
            if way is not None:
                return declared.line, (Related(routine.file, declared.line, f"{declared.name} is made here"), *way)
        for part in (one.head, one.body, one.orelse):
            found = _first(tree, routine, part, known, depth, handlers)
            if found:
                return found
    return None


def _takes(held: Statement, thrown: str) -> bool:
    """Whether a handler takes what a ``throw`` throws: a value that is no object derives from nothing."""
    found = _THROWN.match(thrown.strip().removeprefix("throw").strip())
    if found is None:
        return held.kind == "catch" and held.text.strip() in ("...", "")
    named = re.search(rf"(?<![\w:]){re.escape(found[1])}\b", held.text)
    return _catches_all(held) or (held.kind == "catch" and named is not None)


def _catches_all(held: Statement) -> bool:
    """Whether a handler takes what is thrown. Checks and libraries throw what derives from ``std::exception``."""
    return held.kind == "catch" and (held.text.strip() in ("...", "") or bool(_EXCEPTION.search(held.text)))


def _thrown_by(tree: CheckedTree, routine: Routine, call: CallText, known, depth: int) -> tuple[Related, ...] | None:
    if _CHECKS.match(call.simple) and call.receiver is None:
        return (Related(routine.file, call.line, f"{call.simple} throws"),)
    if _STANDARD.match(call.name) or (call.simple == "at" and call.receiver is not None and len(call.arguments) == 1):
        return (Related(routine.file, call.line, f"{call.simple} throws where there is no such value"),)
    for target in tree.targets(routine, call):
        way = _leaves(tree, target, known, depth + 1)
        if way is not None:
            return way
    return None


def _made(tree: CheckedTree, routine: Routine, kind: str, value: str | None, known, depth: int):
    """The throw of a constructor that an object's declaration runs."""
    name = re.sub(r"\b(?:const|static|thread_local)\b|[&*]", " ", kind).strip()
    if not re.fullmatch(r"[\w:]+", name) or "*" in kind or "&" in kind:
        return None
    simple = name.rsplit("::", 1)[-1]
    for file, function in tree.functions(simple):
        if function.scope[-1:] == (simple,) and function.body_end:
            target = tree.routine_at(file, function.line)
            if target is not None:
                way = _leaves(tree, target, known, depth + 1)
                if way is not None:
                    return way
    return None


def _promises(tree: CheckedTree, routine: Routine) -> bool:
    """Whether a routine says that nothing leaves it: an exception ends the process there."""
    heads = (
        tree.text(file)[one.offset : one.body_start]
        for file, one in tree.functions(routine.name.rsplit("::", 1)[-1])
        if (file, one.line) == (routine.file, routine.line)
    )
    return any(_PROMISES.search(head) for head in heads)


def _leaves(tree: CheckedTree, routine: Routine, known, depth: int) -> tuple[Related, ...] | None:
    """The steps from a routine to a throw that can leave it."""
    key = (routine.file, routine.line)
    if key not in known:
        known[key] = None
        if depth < _DEEPEST and not routine.on_device and not _promises(tree, routine):
            found = _first(tree, routine, routine.statements, known, depth)
            if found is not None:
                line, way = found
                known[key] = (Related(routine.file, line, f"in {routine.name}"), *way)
    return known[key]


RULE = Rule("throw-across-c", "error", _run, spread="down")
