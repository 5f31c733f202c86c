"""A file in reading order: entry points, what they call, kernels with their launchers, device functions, classes.

In: a file and the implementations that begin in it. Out: ``OutlineItem`` tuples. Who calls whom inside the file is read
off its text with comments blanked: a name that stands in a body counts as used there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from opwalker.expand.resolve import Candidate, visible
from opwalker.expand.workbench import Workbench
from opwalker.model.cpp import CppFacts, Function
from opwalker.model.walk import Implementation, OutlineItem
from opwalker.notation.regex import Regex
from opwalker.views.ops import hosts_of, shown_condition

_HEADERS = (".h", ".hpp", ".cuh", ".hh", ".hxx", ".inl", ".inc")
_TABLE_TYPE = Regex(r"\bPy(?:MethodDef|ModuleDef|TypeObject|GetSetDef|MemberDef)\b")
#: Files that include a header and are looked through for who uses it.
MAX_INCLUDERS = 60
_FIXED = Regex(r"\b(?:const|constexpr)\b")


def is_host(workbench: Workbench, path: str, function: Function) -> bool:
    """Whether a function runs on the host; a macro before its return type may say otherwise (``D_INLINE int f()``)."""
    flags = function.flags
    if "global" in flags or ("device" in flags and "host" not in flags):
        return False
    macros = workbench.index.names_of_kind("macro")
    if not any(word in macros for word in re.findall(r"[A-Za-z_]\w*", function.return_type)):
        return True
    said = workbench.unit().bodies.expand(path, function.return_type, function.offset)
    return "__global__" not in said and ("__device__" not in said or "__host__" in said)


def bound_ops(workbench: Workbench, path: str) -> dict[int, tuple[str, ...]]:
    """The ops that are bound to functions of a file, by the function's offset."""
    names = {f.name for f in workbench.index.facts(path).functions if f.body_end}
    out: dict[int, dict[str, None]] = {}
    for binding in workbench.bindings().bindings:
        function = binding.function
        if function is None or function.lambda_span is not None or function.name.split("::")[-1] not in names:
            continue
        for candidate in hosts_of(workbench, binding, None):
            if candidate.path == path:
                out.setdefault(candidate.function.offset, {})[binding.name] = None
    return {offset: tuple(sorted(found)) for offset, found in out.items()}


def outline_of(workbench: Workbench, path: str, implementations: Sequence[Implementation]) -> tuple[OutlineItem, ...]:
    """The file's parts in reading order; ``implementations`` tell what its host functions launch."""
    return _Outline(workbench, path, implementations).items()


class _Outline:
    def __init__(self, workbench: Workbench, path: str, implementations: Sequence[Implementation]) -> None:
        self._workbench = workbench
        self._path = path
        self._facts: CppFacts = workbench.index.facts(path)
        self._code = workbench.files.view(path).blanked.code
        self._made = {(one.host.name, one.host.line): one for one in implementations if one.host is not None}
        self._functions = [f for f in self._facts.functions if f.body_end]
        self._bound = bound_ops(workbench, path)
        self._reasons = self._read_reasons()
        self._uses = {f.offset: self._used_in(f) for f in self._functions}
        self._outside = self._read_outside() if path.endswith(_HEADERS) else {}

    def items(self) -> tuple[OutlineItem, ...]:
        """Everything, in reading order."""
        functions = self._in_order()
        classes = [
            OutlineItem(
                "class", "::".join((*visible(c.scope), c.name)), c.line, c.end_line, condition=self._under(c.condition)
            )
            for c in self._facts.classes
            if c.specialisation is None
        ]
        mutable = [
            OutlineItem("global", "::".join((*visible(v.scope), v.name)), v.line, v.line, notes=(v.type,))
            for v in self._facts.variables
            if not v.constant and not _FIXED.search(v.type) and not self._is_member(v.scope)
            if not _TABLE_TYPE.search(v.type)
        ]
        return (*(self._item(f) for f in functions), *classes, *mutable)

    def _is_member(self, scope: tuple[str, ...]) -> bool:
        return bool(scope) and any(c.name == scope[-1] for c in self._facts.classes)

    def _in_order(self) -> list[Function]:
        """Entry points by their lines, each with the host functions that it calls; then kernels and device functions in
        the order in which they are first used; then what nothing of the file uses."""
        order: dict[int, Function] = {}
        entries = [f for f in self._functions if self._kind(f) == "entry point"]
        for entry in entries:
            order[entry.offset] = entry
        pending = list(entries)
        by_name: dict[str, list[Function]] = {}
        for function in self._functions:
            by_name.setdefault(function.name, []).append(function)
        while pending:
            function = pending.pop(0)
            for name in self._uses[function.offset]:
                for used in by_name[name]:
                    if used.offset not in order:
                        order[used.offset] = used
                        pending.append(used)
        for function in self._functions:
            order.setdefault(function.offset, function)
        ranks = {"entry point": 0, "host function": 1, "kernel": 2, "device function": 3}
        return sorted(order.values(), key=lambda f: ranks[self._kind(f)])

    def _is_host(self, function: Function) -> bool:
        return is_host(self._workbench, self._path, function)

    def _kind(self, function: Function) -> str:
        if "global" in function.flags:
            return "kernel"
        if not self._is_host(function):
            return "device function"
        return "entry point" if function.offset in self._bound or function.offset in self._reasons else "host function"

    def _read_reasons(self) -> dict[int, str]:
        """What makes a host function an entry point besides a binding: C linkage, a module's start."""
        out: dict[int, str] = {}
        for function in self._functions:
            if not self._is_host(function) or function.offset in self._bound:
                continue
            if re.match(r"PyInit_\w+\Z", function.name):
                out[function.offset] = "start of a Python module"
            elif "extern_c" in function.flags and "static" not in function.flags and not self._called(function):
                out[function.offset] = "C linkage, called by nothing in this file"
        return out

    def _called(self, function: Function) -> bool:
        return any(
            re.search(rf"(?<![\w.>]){function.name}\s*\(", self._code[f.body_start : f.body_end])
            for f in self._functions
            if f is not function
        )

    def _read_outside(self) -> dict[str, list[str]]:
        """Files that include this header and name its functions, as far as they are few."""
        index = self._workbench.index
        names = {f.name for f in self._functions}
        word = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\s*[<(]") if names else None
        includers = [p for p in sorted(index.paths) if p != self._path and self._path in index.closure(p)]
        out: dict[str, list[str]] = {}
        for path in includers[:MAX_INCLUDERS] if word is not None else ():
            code = self._workbench.files.view(path).blanked.code
            for name in dict.fromkeys(match[1] for match in word.finditer(code)):
                out.setdefault(name, []).append(path)
        return out

    def _used_in(self, function: Function) -> tuple[str, ...]:
        """Functions of the file whose names stand in a body, in the order of their first mention."""
        kernels = {f.name for f in self._functions if "global" in f.flags}
        names = {f.name for f in self._functions if f.name != function.name}
        macros = {m.name: m.body for m in self._facts.macros if m.body}
        found: dict[str, None] = {}
        seen: set[str] = set()
        pending = [self._code[function.body_start : function.body_end]]
        while pending:
            text = pending.pop(0)
            for match in re.finditer(r"[A-Za-z_]\w*(?=(\s*[<(])?)", text):
                word = match.group()
                # A kernel may only be named, as the argument of what launches it; a function is called.
                if word in names and (match[1] or word in kernels):
                    found[word] = None
                elif word in macros and word not in seen:
                    # What a macro of the file names is used by who uses the macro.
                    seen.add(word)
                    pending.append(macros[word])
        return tuple(found)

    def _item(self, function: Function) -> OutlineItem:
        users = [f.qualified_name for f in self._functions if function.name in self._uses[f.offset]]
        users += self._outside.get(function.name, ())
        return OutlineItem(
            self._kind(function),
            function.qualified_name,
            function.line,
            function.end_line,
            self._bound.get(function.offset, ()),
            self._reasons.get(function.offset),
            self._uses[function.offset],
            tuple(dict.fromkeys(users)),
            tuple(self._notes(function)),
            self._under(function.condition),
        )

    def _under(self, condition: int) -> str | None:
        return shown_condition(self._facts.conditions[condition])

    def _notes(self, function: Function) -> Iterable[str]:
        made = self._made.get((function.qualified_name, function.line))
        if made is None or made.host is None:
            return
        by_kernel: dict[str, set[str]] = {}
        for launch in made.launches:
            by_kernel.setdefault(launch.kernel, set()).update(launch.instances)
        for kernel, instances in by_kernel.items():
            count = len(instances)
            shown = f" in {count} instances" if count > 1 else ""
            yield f"launches {kernel}{shown}"
        for end in dict.fromkeys(end.name for end in made.terminals if end.kind == "library"):
            yield f"calls {end}"
        if made.host.checks:
            yield f"{len(made.host.checks)} check{'s' if len(made.host.checks) > 1 else ''}"


def launchers_of(workbench: Workbench, kernels: Sequence[Candidate]) -> list[Candidate]:
    """Host functions that lead to kernels: those whose text names one, and whoever calls these, up to what is bound."""
    wanted = {k.function.name for k in kernels}
    paths = {k.path for k in kernels}
    found = _naming(workbench, wanted, paths)
    bound = {b.function.name.split("::")[-1] for b in workbench.bindings().bindings if b.function is not None}
    tops: list[Candidate] = []
    seen = {(c.path, c.function.offset) for c in found}
    while found:
        inner = [c for c in found if c.function.name not in bound]
        tops += [c for c in found if c.function.name in bound]
        callers: list[Candidate] = []
        for candidate in inner:
            higher = _naming(workbench, {candidate.function.name}, {candidate.path})
            higher = [c for c in higher if c.function.name != candidate.function.name]
            if not higher:
                tops.append(candidate)
            callers += [c for c in higher if (c.path, c.function.offset) not in seen]
            seen.update((c.path, c.function.offset) for c in higher)
        found = callers
    return sorted(dict.fromkeys(tops), key=lambda c: (c.path, c.function.offset))


def _naming(workbench: Workbench, names: set[str], paths: set[str]) -> list[Candidate]:
    """Host functions that name one of several functions, in the files that define these or include them."""
    index = workbench.index
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    out: list[Candidate] = []
    for path in sorted(index.paths):
        if not (path in paths or paths & index.closure(path)):
            continue
        code = workbench.files.view(path).blanked.code
        if word.search(code) is None:
            continue
        macros = {m.name for m in index.facts(path).macros if m.body and word.search(m.body)}
        also = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(macros)))})\b") if macros else None
        for function in index.facts(path).functions:
            if function.body_end and is_host(workbench, path, function):
                body = code[function.body_start : function.body_end]
                if word.search(body) or (also is not None and also.search(body)):
                    out.append(Candidate(path, function))
    return out
