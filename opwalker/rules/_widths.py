"""How many bits the values of a routine have: read by the rules about narrow offsets.

In: a routine. Out: 32, 64, or None where the type is not known. A product of 32-bit values is formed in 32 bits,
whatever it is stored in."""

from __future__ import annotations

import re
from functools import cached_property

from opwalker.model.check import CheckedTree
from opwalker.model.statements import Routine
from opwalker.notation.cpp_expression import Expr, parse_expression, walk

_WIDE = re.compile(
    r"\b(?:u?int64_t|size_t|ssize_t|ptrdiff_t|u?intptr_t|long|unsigned long|long long|uint64|index_t64)\b"
)
_NARROW = re.compile(r"\b(?:int|unsigned|u?int32_t|u?int16_t|short|uint|unsigned int|uint32|int32)\b")
_QUALIFIERS = re.compile(r"\b(?:const|volatile|static|extern|struct|__shared__|__constant__)\b|[&*]|<.*")
_BUILTIN = re.compile(r"\b(?:threadIdx|blockIdx|blockDim|gridDim)\s*\.\s*[xyz]\b")
_OTHER = re.compile(r"\b(?:float|double|half|bool|char|void)\b|\*")


#: Names of numbers that stay small, whatever the load.
_FEW = re.compile(r"(?i)head|expert|layer|lane|warp|chunk|part|split|rank|stage|group_idx|vec|tile|cta_n|_n\Z|tid")


class Widths:
    """The widths of one routine's values."""

    def __init__(self, tree: CheckedTree, routine: Routine) -> None:
        self._tree = tree
        self._routine = routine
        self._kinds: dict[str, str] = {one.name: one.type for one in routine.parameters}
        self._values: dict[str, str] = {}
        for one in routine.walk():
            for declared in one.declares:
                self._kinds.setdefault(declared.name, declared.type)
                if declared.value:
                    self._values.setdefault(declared.name, declared.value.strip().removeprefix("=").strip())
        self._constants = {name for name, kind in self._kinds.items() if "constexpr" in kind}
        self._members: dict[str, dict[str, str]] = {}
        self._given: dict[str, bool] = {}

    @cached_property
    def own_members(self) -> dict[str, str]:
        """The types of the data members of the class that the routine is a method of."""
        if not self._routine.classes:
            return {}
        held = self._tree.classes(self._routine.scope[-1])
        return {name: kind for file, one in held[:1] for name, kind, _ in self._tree.fields(file, one)}

    def of_type(self, kind: str) -> int | None:
        """The width of a type by its name, aliases followed."""
        if _OTHER.search(kind):
            return None
        known = kind if _WIDE.search(kind) or _NARROW.search(kind) else self._tree.type_of(kind, self._routine)
        return 64 if _WIDE.search(known) else 32 if _NARROW.search(known) else None

    def of_name(self, name: str) -> int | None:
        """The width of a variable; of one declared ``auto``, that of its value."""
        kind = self._kinds.get(name) or self.own_members.get(name)
        if kind is None:
            return None
        if "auto" in kind and name in self._values:
            return self.of(parse_expression(self._values[name]))
        return self.of_type(kind)

    def of(self, expr: Expr) -> int | None:
        """The width that an expression is worked out in."""
        if expr.kind == "number":
            return 64 if re.search(r"[lL]", expr.text) else 32
        if expr.kind == "name":
            return self.of_name(expr.text)
        if expr.kind == "member":
            text = _spelt(expr)
            if _BUILTIN.fullmatch(text):
                return 32
            return self._member(expr)
        if expr.kind == "index" and expr.parts and expr.parts[0].kind == "name":
            kind = self._kinds.get(expr.parts[0].text, "")
            return self.of_type(kind.replace("*", " ")) if kind.count("*") == 1 else None
        if expr.kind == "cast":
            return self.of_type(re.sub(r"^(?:static_cast|reinterpret_cast)<|>$|^\(|\)$", "", expr.text))
        if expr.kind == "call" and expr.parts:
            callee = expr.parts[0]
            if callee.kind == "name":
                made = self.of_type(callee.text) if len(expr.parts) == 2 else None
                return made if re.fullmatch(r"[\w:]+", callee.text) else None
            if callee.kind == "member" and callee.text.lstrip(".->") in ("size", "stride", "numel", "sizes"):
                return 64
            return None
        if expr.kind in ("unary", "postfix"):
            return self.of(expr.parts[0])
        if expr.kind == "ternary":
            return _wider(self.of(expr.parts[1]), self.of(expr.parts[2]))
        if expr.kind == "binary" and expr.text in ("+", "-", "*", "/", "%", "<<", ">>", "&", "|"):
            return _wider(self.of(expr.parts[0]), self.of(expr.parts[1]))
        return None

    def _member(self, expr: Expr) -> int | None:
        base = expr.parts[0]
        if base.kind != "name" or base.text not in self._kinds:
            return None
        kind = _QUALIFIERS.sub("", self._kinds[base.text]).strip()
        if kind not in self._members:
            held: dict[str, str] = {}
            for file, definition in self._tree.classes(kind):
                held.update({name: type_ for name, type_, _ in self._tree.fields(file, definition)})
            self._members[kind] = held
        found = self._members[kind].get(expr.text.lstrip(".->"))
        return self.of_type(found) if found else None

    def narrow_product(self, expr: Expr) -> Expr | None:
        """A multiplication in an expression that is formed in 32 bits of a block's number and a size. Products of
        thread numbers and constants are small, and so are those of a head's or an expert's number."""
        for one in walk(expr):
            if one.kind == "binary" and one.text == "*" and self.of(one) == 32:
                left, right = one.parts
                sized = sum(self._is_sized(side) for side in (left, right))
                if sized == 2 and self._counts_blocks(one):
                    return one
        return None

    def _is_sized(self, expr: Expr) -> bool:
        """Whether a value grows with the problem: a block's number, a parameter, a member, or a local made of those."""
        for one in walk(expr):
            text = _spelt(one)
            if re.fullmatch(r"(?:blockIdx|gridDim)\s*\.\s*[xyz]", text):
                return True
            if one.kind == "member" and one.parts[0].text in self._kinds:
                return True
            if one.kind == "name" and self._grows(one.text):
                return True
        return False

    def _counts_blocks(self, expr: Expr, depth: int = 0) -> bool:
        """Whether the number of a block, which grows with the load, is in an expression."""
        if expr.kind == "index" and _FEW.search(expr.parts[0].text):
            return False  # the number of a head or an expert, looked up
        if re.fullmatch(r"blockIdx\s*\.\s*[xyz]", _spelt(expr)):
            return True
        if expr.kind == "name" and not _FEW.search(expr.text) and depth < 5:
            if expr.text in self._values:
                return self._counts_blocks(parse_expression(self._values[expr.text]), depth + 1)
            return self._given_blocks(expr.text, depth + 1)
        return any(self._counts_blocks(one, depth) for one in expr.parts)

    def _given_blocks(self, name: str, depth: int) -> bool:
        """Whether a caller hands the number of a block to a parameter."""
        names = [one.name for one in self._routine.parameters]
        if name not in names or "global" in self._routine.flags:
            return False
        if name not in self._given:
            self._given[name] = False  # what calls itself adds nothing
            number = names.index(name)
            for site in self._tree.callers(self._routine):
                if number < len(site.call.arguments) and site.caller.on_device:
                    above = Widths(self._tree, site.caller)
                    if above._counts_blocks(parse_expression(site.call.arguments[number]), depth):
                        self._given[name] = True
                        break
        return self._given[name]

    def _grows(self, name: str, depth: int = 0) -> bool:
        if name in self._constants or name not in self._kinds or depth > 5:
            return False
        if name not in self._values:
            return any(one.name == name for one in self._routine.parameters)
        value = self._values[name]
        if re.search(r"\b(?:threadIdx|lane|warp)\w*", value) and not re.search(r"\bblockIdx\b", value):
            return False
        if re.search(r"\bblockIdx\b|\.(?:size|numel)\(", value):
            return True
        return any(self._grows(word, depth + 1) for word in re.findall(r"[A-Za-z_]\w*", value) if word != name)


def _spelt(expr: Expr) -> str:
    if expr.kind == "member" and expr.parts and expr.parts[0].kind == "name":
        return f"{expr.parts[0].text}{expr.text if expr.text[:1] in '.-' else '.' + expr.text}"
    return expr.text


def _wider(left: int | None, right: int | None) -> int | None:
    if left == 64 or right == 64:
        return 64
    return 32 if left == right == 32 else None
