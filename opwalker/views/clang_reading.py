"""What all units of a walk say together, asked by place: uses, definitions, macros, functions that variables hold.

In: ``ClangUnit`` facts. Out: ``ClangReading``. Nothing is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from opwalker.facts.cpp_brackets import split_commas
from opwalker.model.clang import (
    ClangFunction,
    ClangMacro,
    ClangMacroUse,
    ClangSymbol,
    ClangUnit,
    ClangUse,
    ClangValue,
)
from opwalker.model.walk import PathStep
from opwalker.notation.regex import Regex

#: A use and the functions that it can mean.
Row = tuple[ClangUse, tuple[ClangSymbol, ...]]

#: The steps that lead to a function, outermost first.
Way = tuple[PathStep, ...]

#: Lines around an error within which a use that clang does not show is taken to be lost by it.
_NEAR = 3


class ClangReading:
    """The joined facts of some units."""

    def __init__(self, units: Sequence[ClangUnit]) -> None:
        self._uses: dict[tuple[str, int], dict[Row, None]] = {}
        self._calls: dict[str, set[tuple[int, int]]] = {}
        self._compiled: dict[tuple[str, int], set[tuple[ClangSymbol, str | None]]] = {}
        self._lambda_calls: dict[tuple[str, int], set[tuple[str, int, int]]] = {}
        self._functions: dict[str, dict[ClangFunction, None]] = {}
        self._by_usr: dict[str, dict[ClangFunction, None]] = {}
        self.macro_uses: dict[tuple[str, int], dict[ClangMacroUse, None]] = {}
        self.macros: dict[str, dict[ClangMacro, None]] = {}
        self._into: dict[tuple[str, int], list[tuple[ClangValue, tuple[ClangSymbol, ...]]]] = {}
        self._returned: dict[str, list[tuple[ClangValue, tuple[ClangSymbol, ...]]]] = {}
        self._without: dict[str, dict[str, None]] = {}
        self._errors: dict[str, set[int]] = {}
        self.lambdas: set[tuple[str, int]] = set()
        for unit in units:
            self._take(unit)

    def _take(self, unit: ClangUnit) -> None:
        for use in unit.uses:
            if use.kind == "call" and use.end_line > use.start_line:
                self._calls.setdefault(use.file, set()).add((use.start_line, use.end_line))
            row = (use, tuple(unit.symbols[number] for number in use.targets))
            for symbol in row[1]:
                if use.kind == "call" and last(symbol.name) == "operator()":
                    call = (use.file, use.line, use.end_line)
                    self._lambda_calls.setdefault((symbol.file, symbol.line), set()).add(call)
            for line in {use.line, use.start_line}:
                self._uses.setdefault((use.file, line), {})[row] = None
        for one in unit.instances:
            row = (unit.symbols[one.symbol], one.text)
            self._compiled.setdefault((one.file, one.line), set()).add(row)
        for value in unit.values:
            row = (value, unit.symbols)
            if value.into is None:
                self._returned.setdefault(value.file, []).append(row)
            else:
                self._into.setdefault(value.into, []).append(row)
        for function in unit.functions:
            self._without.setdefault(function.file, {}).update(dict.fromkeys(unit.missing))
            self._functions.setdefault(function.file, {})[function] = None
            self._by_usr.setdefault(function.usr, {})[function] = None
        for macro_use in unit.macro_uses:
            self.macro_uses.setdefault((macro_use.file, macro_use.line), {})[macro_use] = None
        for macro in unit.macros:
            self.macros.setdefault(macro.name, {})[macro] = None
        for file, line in unit.error_lines:
            self._errors.setdefault(file, set()).add(line)
        self.lambdas.update(unit.lambdas)

    # -- places -----------------------------------------------------------------------------------------------------

    def at(self, file: str, line: int) -> list[Row]:
        """The uses on a line, each with what it can mean."""
        return list(self._uses.get((file, line), ()))

    def defined_at(self, file: str, line: int, end_line: int, name: str) -> ClangFunction | None:
        """The function that is defined at a place: its name there, or (its head being a macro's) within its lines."""
        found = [f for f in self._functions.get(file, ()) if simple(f.name) == simple(name)]
        exact = [f for f in found if f.line == line]
        return next(iter(exact or [f for f in found if f.start_line <= line <= f.end_line <= end_line + 1]), None)

    def around(self, file: str, line: int, name: str) -> ClangFunction | None:
        """The innermost function around a line that has a name."""
        found = [
            f
            for f in self._functions.get(file, ())
            if f.start_line <= line <= f.end_line and simple(f.name) == simple(name)
        ]
        return min(found, key=lambda f: f.end_line - f.start_line, default=None)

    def unseen(self, name: str, file: str, line: int) -> str:
        """Why a definition is not among what clang shows."""
        known = file in self._functions or any(use[0] == file for use in self._uses)
        if not known:
            return f"no unit was read that has {file}"
        return self.lost(file, line, line) or f"clang sees no definition of {name} at {file}:{line}" + self.lacking(
            file
        )

    def instances(self, file: str, first: int, last: int, wanted: ClangFunction) -> set[str | None]:
        """The instances of a kernel that some lines compile, None among them for those that clang does not spell."""
        rows = (row for line in range(first, last + 1) for row in self._compiled.get((file, line), ()))
        return {text for symbol, text in rows if means(symbol, wanted)}

    def overloads(self, file: str, line: int, wanted: ClangFunction) -> dict[str, tuple[str, int]]:
        """The instances that a line compiles of other kernels of the same name, in plain spelling, by their places."""
        rows = self._compiled.get((file, line), ())
        return {
            plain_instance(text): (symbol.file, symbol.line)
            for symbol, text in sorted(rows, key=lambda row: (row[0].file, row[0].line, row[1] or ""))
            if text is not None and symbol.name == wanted.name and not means(symbol, wanted)
        }

    def faulty(self, file: str, first: int, last: int) -> bool:
        """Whether clang has an error on one of some lines."""
        return not self._errors.get(file, set()).isdisjoint(range(first, last + 1))

    def in_one_call(self, file: str, first: int, last: int) -> bool:
        """Whether two lines belong to one call."""
        return first == last or any(start <= first and last <= end for start, end in self._calls.get(file, ()))

    def lost(self, file: str, first: int, last: int) -> str | None:
        """What is said where an error stands by: what clang does not show there, it may have dropped."""
        near = [line for line in self._errors.get(file, ()) if first - _NEAR <= line <= last + _NEAR]
        return f"clang has an error at {file}:{min(near)}" + self.lacking(file) if near else None

    def lacking(self, file: str) -> str:
        """The headers that a file was read without, in words."""
        missing = list(self._without.get(file, ()))
        return f" (read without {', '.join(missing[:3])})" if missing else ""

    # -- meaning ----------------------------------------------------------------------------------------------------

    def definition_of(self, symbol: ClangSymbol) -> tuple[str, int] | None:
        """Where a symbol is defined, in whichever unit; None where no unit has it."""
        if symbol.defined or not symbol.here:
            return symbol.file, symbol.line
        found = self._by_usr.get(symbol.usr)
        return next(((one.file, one.line) for one in found), None) if found else None

    def flows(
        self, variable: tuple[str, int], wanted: ClangFunction, way: Way, seen: set[tuple[str, int]] | None = None
    ) -> bool:
        """Whether a function is put into a variable: named there, returned to it, or passed along the steps of ``way``,
        which lead to the function that has the variable."""
        seen = set() if seen is None else seen
        if variable in seen:
            return False
        seen.add(variable)
        for value, symbols in self._into.get(variable, ()):
            if self._comes(value, symbols, wanted, way, seen):
                return True
            for one, its_symbols in self._returned.get(value.file, ()):
                inside = value.line <= one.line <= value.end_line
                if inside and self._comes(one, its_symbols, wanted, way, seen):
                    return True
        # A parameter of a lambda: what the calls of the lambda name or pass on.
        if any(self._passed(*call, wanted, way, seen) for call in self._lambda_calls.get(variable, ())):
            return True
        if not way or variable in self._into:
            return False
        last = way[-1]
        return self._passed(last.file, last.line, self.end_of_calls(last.file, last.line), wanted, way[:-1], seen)

    def _passed(
        self, file: str, first: int, last: int, wanted: ClangFunction, way: Way, seen: set[tuple[str, int]]
    ) -> bool:
        """Whether a call on some lines names a function, or passes one on from a variable that holds it."""
        for line in range(first, last + 1):
            for use, found in self.at(file, line):
                if not use.dependent and meets(found, wanted):
                    return True
                if use.through is not None and self.flows(use.through, wanted, way, seen):
                    return True
        return False

    def end_of_calls(self, file: str, line: int) -> int:
        """Where the calls end that stand on a line."""
        return max((line, *(use.end_line for use, _ in self.at(file, line))))

    def _comes(
        self,
        value: ClangValue,
        symbols: tuple[ClangSymbol, ...],
        wanted: ClangFunction,
        way: Way,
        seen: set[tuple[str, int]],
    ) -> bool:
        if meets((symbols[number] for number in value.names), wanted):
            return True
        for number in value.calls:
            for giver in self._by_usr.get(symbols[number].usr, ()):
                if (giver.file, giver.line) in seen:
                    continue
                seen.add((giver.file, giver.line))
                for one, its_symbols in self._returned.get(giver.file, ()):
                    inside = giver.start_line <= one.line <= giver.end_line
                    if inside and self._comes(one, its_symbols, wanted, (), seen):
                        return True
        return any(self.flows(other, wanted, way, seen) for other in value.variables)


def means(symbol: ClangSymbol, wanted: ClangFunction) -> bool:
    """Whether a symbol is a function: by its place, or where only a declaration was seen by clang's name for it."""
    if symbol.defined:
        return (symbol.file, symbol.line) == (wanted.file, wanted.line)
    return symbol.usr == wanted.usr


def meets(symbols: Iterable[ClangSymbol], wanted: ClangFunction) -> bool:
    """Whether one of some symbols is a function."""
    return any(means(symbol, wanted) for symbol in symbols)


def simple(name: str) -> str:
    """A name without qualifiers and template arguments."""
    return last(name.split("<", 1)[0] if not name.startswith("operator") else name)


def last(name: str) -> str:
    """The last part of a qualified name, or of a member's."""
    return name.replace(".", "::").rsplit("::", 1)[-1].strip()


_EAST_CONST = Regex(r"((?:unsigned |signed |long |short )*[\w:]+(?:<[^<>]*>)?) const\b")
_SUFFIX = Regex(r"(?<![\w.])(-?\d+)[uUlL]+\b")


def plain_instance(text: str) -> str:
    """Template arguments without what two printers of them spell differently: blanks, the side of ``const``, the
    suffixes of numbers, and what stands with the name of a function."""
    if "&(" in text:
        text = ", ".join(_function_name(text[a:b].strip()) for a, b in split_commas(text))
    return _SUFFIX.sub(r"\1", re.sub(r"\s*([,<>*&()])\s*", r"\1", _EAST_CONST.sub(r"const \1", text)))


def _function_name(argument: str) -> str:
    """``&(float n::f<float>(float))`` by its name: ``&n::f``."""
    if not argument.startswith("&("):
        return argument
    depth = begin = 0
    inside = argument[2:]
    for at, char in enumerate(inside):
        if char == "(" and depth == 0:
            return "&" + re.sub(r"<.*", "", inside[begin:at], flags=re.DOTALL)
        depth += {"<": 1, ">": -1}.get(char, 0)
        if char == " " and depth == 0:
            begin = at + 1
    return argument
