"""Functions that Python's own C interface binds: tables of ``PyMethodDef``, as modules and types take them.

In: variables at namespace level. Out: ``Binding`` records of kind ``cpython``, named by the module or type that the
table is handed to, and gaps. A table that nothing in its file takes is bound under no name that could be told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opwalker.expand.binding_blocks import switched_off
from opwalker.expand.binding_text import function_ref, literal
from opwalker.expand.files import Files
from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.link.index import Index
from opwalker.model.binding import Binding
from opwalker.model.cpp import CppFacts, Variable
from opwalker.model.walk import Gap, Span
from opwalker.notation.regex import Regex

_TABLE = Regex(r"\bPyMethodDef\b")
_OWNER = Regex(r"\b(PyModuleDef|PyTypeObject)\b")
_CAST = Regex(r"\(\s*[\w:]+\s*\)\s*(?=[&\w(])|_PyCFunction_CAST\s*(?=\()")
_FIELD = Regex(r"\s*\.\s*(\w+)\s*=\s*(.*)\Z", re.DOTALL)
_TYPE_NAME = Regex(r'(?:\.\s*tp_name\s*=|HEAD_INIT\s*\([^()]*\)\s*,?)\s*("[^"]*")')
#: What hands a table on outside of an initialiser.
_ADDED = Regex(
    r"\bPyModule_AddFunctions\s*\(\s*\w+\s*,\s*&?\s*(\w+)|(\w+)\s*\.\s*tp_methods\s*=\s*&?\s*(\w+)"
    r"|\bPy_InitModule\d?\s*\(\s*(\"[^\"]*\")\s*,\s*(\w+)"
)


def method_tables(index: Index, files: Files) -> tuple[list[Binding], list[Gap]]:
    """Every function in a table of ``PyMethodDef`` of the tree."""
    out: list[Binding] = []
    gaps: list[Gap] = []
    for path in index.store.paths_with("method table"):
        facts = index.facts(path)
        for table in facts.variables if facts else ():
            if _TABLE.search(table.type) and table.value and not switched_off(facts.conditions[table.condition]):
                for made in _table(path, facts, table, files):
                    (out if isinstance(made, Binding) else gaps).append(made)
    return out, gaps


def _table(path: str, facts: CppFacts, table: Variable, files: Files) -> Iterator[Binding | Gap]:
    view = files.view(path)
    plain, code = view.blanked.plain, view.blanked.code
    opened = plain.find("{", table.offset)
    close = match_bracket(plain, opened) if opened >= 0 else -1
    if close < 0:
        return
    owner = _owner(table.name, facts, code)
    if owner is None:
        place = Span(path, table.line, table.line)
        yield Gap("namespace", place, f"which module or type takes the table `{table.name}` is not said in its file")
    prefix = f"{owner}." if owner else ""
    unresolved = None if owner else f"what takes the table `{table.name}` is not known"
    for start, end in split_commas(plain, opened + 1, close - 1):
        row = plain.find("{", start, end)
        stop = match_bracket(plain, row, end) if row >= 0 else -1
        if stop < 0:
            continue
        spans = split_commas(plain, row + 1, stop - 1)
        fields = _fields([code[a:b] for a, b in spans], ("ml_name", "ml_meth", "ml_flags", "ml_doc"))
        name = literal(fields.get("ml_name", ""))
        if name is None or "ml_meth" not in fields:
            continue  # the row of zeros that ends a table
        bare = fields["ml_meth"].strip()
        while match := _CAST.match(bare):
            bare = bare[match.end() :].strip()
        at = spans[1][0] if len(spans) > 1 else None
        function, _ = function_ref(bare, at, plain)
        line, condition = view.blanked.line(row), facts.conditions[table.condition]
        for role in ("def", "impl"):
            yield Binding(
                "cpython", role, f"{prefix}{name}", None, None, function, path, line, condition, table.scope,
                unresolved=unresolved,
            )  # fmt: skip


def _owner(table: str, facts: CppFacts, code: str) -> str | None:
    """The module or type that takes a table, by the name that Python knows it by."""
    named: dict[str, str] = {}
    for one in facts.variables:
        kind = _OWNER.search(one.type)
        if kind is None or not one.value:
            continue
        inner = one.value.strip()
        close = match_bracket(inner, 0) if inner.startswith("{") else -1
        parts = [inner[a:b] for a, b in split_commas(inner, 1, close - 1)] if close > 0 else []
        given = _TYPE_NAME.search(inner) if kind.group(1) == "PyTypeObject" else None
        name = literal(given.group(1) if given else _fields(parts, ("", "m_name")).get("m_name", ""))
        if name:
            named[one.name] = name
            if any(re.fullmatch(rf"\s*(?:\.\s*\w+\s*=\s*)?&?\s*{table}\s*(?:\[0\])?\s*", part) for part in parts):
                return name
    for match in _ADDED.finditer(code):
        if match.group(5) == table:
            return literal(match.group(4))
        if match.group(3) == table:
            return named.get(match.group(2), match.group(2))
        if match.group(1) == table and len(named) == 1:
            return next(iter(named.values()))
    return None


def _fields(parts: list[str], order: tuple[str, ...]) -> dict[str, str]:
    """The fields of an initialiser, by name or by their place in ``order``."""
    found: dict[str, str] = {}
    for number, part in enumerate(parts):
        match = _FIELD.match(part)
        if match is not None:
            found[match.group(1)] = match.group(2)
        elif number < len(order):
            found[order[number]] = part
    return found
