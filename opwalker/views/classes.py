"""A class: its methods with who overrides them, its data, what derives from it, and where it is made and deleted.

In: a class definition. Out: ``ClassView``. Bases are matched by their own names; a method overrides another one where
it has its name and number of parameters and stands in a class that derives from the other's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.expand.resolve import visible
from opwalker.expand.workbench import Workbench
from opwalker.model.cpp import ClassDef, Function
from opwalker.model.walk import ClassRef, ClassView, MethodFact, UseFact

#: Places of construction that are told.
MAX_PLACES = 24


def class_view(workbench: Workbench, path: str, made: ClassDef) -> ClassView:
    """Everything about one class."""
    derived = list(derived_classes(workbench, made.name))
    name = "::".join((*visible(made.scope), made.name))
    constructed, deleted = _places(workbench, path, made, [c.name for _, c in derived])
    return ClassView(
        name,
        made.kind,
        path,
        made.line,
        made.end_line,
        made.template,
        made.bases,
        tuple(ClassRef("::".join((*visible(c.scope), c.name)), p, c.line) for p, c in derived),
        tuple(_methods(workbench, path, made, derived)),
        tuple(_members(workbench, path, made)),
        tuple(constructed[:MAX_PLACES]),
        tuple(deleted[:MAX_PLACES]),
    )


def derived_classes(workbench: Workbench, name: str) -> Iterator[tuple[str, ClassDef]]:
    """Classes that derive from a class, directly or not, with their files."""
    index = workbench.index
    by_base: dict[str, list[tuple[str, ClassDef]]] = {}
    for path in index.paths_with("class"):
        for made in index.facts(path).classes:
            for base in made.bases:
                bare = base.split("<")[0].split("::")[-1].split(" ")[-1].strip()
                by_base.setdefault(bare, []).append((path, made))
    seen: set[tuple[str, int]] = set()
    pending = [name]
    while pending:
        for path, made in by_base.get(pending.pop(0), ()):
            if (path, made.offset) not in seen:
                seen.add((path, made.offset))
                pending.append(made.name)
                yield path, made


def methods_in(workbench: Workbench, path: str, made: ClassDef) -> list[tuple[str, Function]]:
    """The methods of a class, declared and defined, in its own file and in those that include it."""
    index = workbench.index
    scope = (*visible(made.scope), made.name)
    inside = [
        (path, f)
        for f in index.facts(path).functions
        if visible(f.scope) == scope or (f.scope[-1:] == (made.name,) and made.body_start < f.offset < made.body_end)
    ]
    for name in dict.fromkeys(f.name for _, f in inside):
        for where, function in index.functions(name):
            # Written as `Made::name` elsewhere.
            if visible(function.scope)[-len(scope) :] == scope and (where, function) not in inside:
                if where == path or path in index.closure(where):
                    inside.append((where, function))
    return inside


def _methods(
    workbench: Workbench, path: str, made: ClassDef, derived: list[tuple[str, ClassDef]]
) -> Iterator[MethodFact]:
    found = methods_in(workbench, path, made)
    seen: set[tuple[str, int]] = set()
    for where, function in found:
        key = (function.name, len(function.parameters))
        if key in seen:
            continue
        seen.add(key)
        body = next(((w, f) for w, f in found if f.body_end and (f.name, len(f.parameters)) == key), None)
        virtual = bool({"virtual", "override", "pure"} & set(function.flags))
        yield MethodFact(
            function.name,
            _signature(function),
            where,
            function.line,
            virtual,
            "pure" in function.flags,
            UseFact("", function.qualified_name, body[0], body[1].line) if body else None,
            tuple(_overriders(workbench, function, derived)) if virtual else (),
        )


def _signature(function: Function) -> str:
    parameters = ", ".join(f"{p.type} {p.name}".strip() for p in function.parameters)
    head = f"{function.return_type} " if function.return_type else ""
    behind = " const" if "const" in function.flags else ""
    return " ".join(f"{head}{function.name}({parameters}){behind}".split())


def _overriders(workbench: Workbench, function: Function, derived: list[tuple[str, ClassDef]]) -> Iterator[UseFact]:
    for path, made in derived:
        for where, other in methods_in(workbench, path, made):
            if other.name == function.name and len(other.parameters) == len(function.parameters):
                name = "::".join((*visible(made.scope), made.name))
                yield UseFact(_signature(other), name, where, other.line)
                break


def _members(workbench: Workbench, path: str, made: ClassDef) -> Iterator[UseFact]:
    """The data of a class, each with its type."""
    scope = (*made.scope, made.name)
    for variable in workbench.index.facts(path).variables:
        if variable.scope == scope and made.body_start < variable.offset < made.body_end:
            yield UseFact(variable.type, variable.name, path, variable.line)


def _places(workbench: Workbench, path: str, made: ClassDef, derived: list[str]) -> tuple[list[UseFact], list[UseFact]]:
    """Where objects of the class, or of one that derives from it, are made and deleted."""
    index = workbench.index
    name = rf"(?:{'|'.join(map(re.escape, dict.fromkeys((made.name, *derived))))})"
    making = re.compile(
        rf"\bnew\s+(?:\w+::)*{name}\b|\bmake_(?:unique|shared|intrusive)\s*<\s*(?:\w+::)*{name}\b"
        rf"|(?<![\w:~<.])(?:\w+::)*{name}(?:\s*<[^;{{}}()]*>)?\s+\w+\s*[({{;]|\bclass_\s*<\s*(?:\w+::)*{name}\b"
    )
    freeing = re.compile(rf"\bdelete\s+[^;]*\b{name}\s*\*[^;]*")
    made_at: list[UseFact] = []
    freed_at: list[UseFact] = []
    for where in sorted(index.paths):
        if where != path and path not in index.closure(where):
            continue
        view = workbench.files.view(where)
        for pattern, out in ((making, made_at), (freeing, freed_at)):
            for match in pattern.finditer(view.blanked.code):
                if where == path and made.body_start < match.start() < made.body_end:
                    continue
                text = " ".join(match.group().split()).rstrip("({; ")
                function = _around(index.facts(where).functions, match.start())
                out.append(UseFact(text, function, where, view.blanked.line(match.start())))
    return made_at, freed_at


def _around(functions: tuple[Function, ...], offset: int) -> str:
    """The function that an offset lies in."""
    found = next((f for f in functions if f.body_start <= offset < f.body_end), None)
    return found.qualified_name if found is not None else ""
