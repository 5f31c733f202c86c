"""Whether a function writes what one of its parameters points to: read by the rules about mutation marks.

In: a routine and a parameter's name. Out: the first write that the source shows, or whether none can be ruled out. It
follows pointers taken from a tensor into locals, launches, and calls of functions of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from opwalker.model.check import CheckedTree
from opwalker.model.statements import CallText, LaunchText, Routine, Statement
from opwalker.notation.cpp_expression import parse_expression, print_expression

_DEEPEST = 6
#: Methods that change a tensor in place end so; these do, and leave the data as it is.
_HARMLESS = frozenset(("requires_grad_", "retain_grad_", "detach_", "rename_", "swap_", "set_", "as_strided_"))
#: Functions whose first argument is where they write to.
_FILLS = re.compile(r"(?:cuda|hip)Mem(?:cpy|set)\w*|(?:std::)?mem(?:cpy|set)|(?:at|torch)::\w+_out|atomic\w+")
#: What is another tensor for certain: a copy, or one that a factory makes.
_COPY = re.compile(
    r"\.clone\(\s*(?:[\w:]+\s*)?\)\Z|\A(?:at|torch)::(?:empty|zeros|ones|full)(?:_like)?\(|\A[^()=?]+\s[-+*/]\s[^()=?]+\Z"
)
_CASTS = frozenset(("reinterpret_cast", "static_cast", "const_cast"))
_CONST = re.compile(r"\bconst\b")
_WORD = re.compile(r"\w+")
#: What leads a value, where it is no element; an element's address; what is read of something, and what is its data:
#: one expression for all names, since to make one for each takes longer than to look.
_LEADS = re.compile(r"&?\s*\(*&?(\w+)\b(?!\s*\[)")
_ELEMENT = re.compile(r"&\s*(\w+)\s*\[")
_READS = re.compile(
    r"\b(?=(\w+)\s*(?:\.|->)\s*(?:size|sizes|stride|numel|dim|scalar_type|dtype|device|options|contiguous|to|clone|"
    r"defined|has_value|get_device|get_device_index|is_\w+|element_size|item)\b)"
)
_DATA = re.compile(r"\b(?=(\w+)\s*(?:\.|->)\s*(?:mutable_)?data_ptr\b)")


class Write(Struct, frozen=True):
    """Where the data is written, and how, in words."""

    file: str
    line: int
    how: str


class Verdict(Struct, frozen=True):
    """``write`` is the first one found; without one, ``sure`` says that the source shows every use."""

    write: Write | None
    sure: bool


class Writes:
    """Answers for one tree, each question once."""

    def __init__(self, tree: CheckedTree) -> None:
        self._tree = tree
        self._known: dict[tuple[str, int, str], Verdict] = {}

    def of(self, routine: Routine, name: str, depth: int = 0) -> Verdict:
        """Whether ``routine`` writes through its parameter (or local) ``name``."""
        key = (routine.file, routine.line, name)
        if key not in self._known:
            self._known[key] = Verdict(None, depth < _DEEPEST)  # what calls itself adds nothing
            self._known[key] = self._read(routine, name, depth)
        return self._known[key]

    def _read(self, routine: Routine, name: str, depth: int) -> Verdict:
        names = _aliases(routine, name)
        anew = _declared_anew(routine, names)
        for one, lines in _copied(routine, names).items():
            anew.setdefault(one, []).extend(lines)
        sure = not routine.errors
        for statement in routine.walk():
            held = {
                one
                for one, since in names.items()
                if since <= statement.line and not any(since < line <= statement.line for line in anew.get(one, ()))
            }
            for found in self._direct(routine, statement, held):
                return Verdict(found, True)
            for launch in statement.launches:
                verdict = self._launch(routine, launch, held, depth)
                if verdict.write:
                    return verdict
                sure = sure and verdict.sure
            kept = any(self._is_read_only(routine, one.target) for one in statement.assigns)
            for call in statement.calls:
                if kept and call.simple in _CASTS:
                    continue  # a pointer to what is const is made of it
                verdict = self._call(routine, call, held, depth)
                if verdict.write:
                    return verdict
                sure = sure and verdict.sure
            if self._stored_away(routine, statement, held):
                sure = False
            if statement.kind == "return" and _mentions(statement.text, held):
                sure = False
            if statement.kind == "asm" and any(_names(statement.text, one) for one in held):
                sure = False
        return Verdict(None, sure)

    def _direct(self, routine: Routine, statement: Statement, names: set[str]) -> Iterator[Write]:
        for one in statement.assigns:
            target = one.target.strip()
            base = re.match(r"[(*&\s]*(?:reinterpret_cast<[^>]*>\s*\(\s*)?&?\s*([A-Za-z_]\w*)", target)
            through = target.startswith(("*", "(*")) or "[" in target or "->" in target
            if base and base[1] in names and through:
                yield Write(routine.file, one.line, f"`{target}` is stored to")
        for call in statement.calls:
            receiver = re.sub(r"\.value\(\)|\*|\(|\)", "", call.receiver or "")
            method = call.simple
            if receiver in names and method.endswith("_") and not method.endswith("__") and method not in _HARMLESS:
                yield Write(routine.file, call.line, f"`{call.receiver}.{method}` changes it in place")
            elif call.receiver is None and call.arguments and _FILLS.fullmatch(call.name):
                if _mentions(call.arguments[0], names):
                    yield Write(routine.file, call.line, f"`{call.name}` writes to it")

    def _stored_away(self, routine: Routine, statement: Statement, names: set[str]) -> bool:
        """Whether a pointer into the data is kept where it is not followed: in a member, or an object made of it."""
        for one in statement.assigns:
            if any(_names(one.value, name) for name in names) and "*" not in _without_casts(one.value):
                if re.search(r"\.|->|\[", one.target) and not re.search(r"\b(?:size|stride|numel|dim)\b", one.value):
                    if not self._is_read_only(routine, one.target):
                        return True
        for declared in statement.declares:
            value = declared.value or ""
            if value[:1] in "({" and any(_names(value, name) for name in names):
                return True
        return any(call.made for call in statement.calls)

    def _is_read_only(self, routine: Routine, target: str) -> bool:
        """Whether a target is a member that points to what is const."""
        found = re.fullmatch(r"(\w+)(?:\.|->)(\w+)", target.strip())
        kinds = [one.type for one in routine.parameters if found and one.name == found[1]]
        kinds += [d.type for one in routine.walk() for d in one.declares if found and d.name == found[1]]
        if found is None or not kinds:
            return False
        plain = re.sub(r"\b(?:const|struct)\b|[&*]|<.*", "", kinds[0]).strip()
        held = self._tree.classes(plain)
        if len(held) != 1:
            return False
        members = {name: kind for name, kind, _ in self._tree.fields(*held[0])}
        kind = members.get(found[2], "")
        return kind.count("*") == 1 and bool(_CONST.search(kind.split("*")[0]))

    def _launch(self, routine: Routine, launch: LaunchText, names: set[str], depth: int) -> Verdict:
        kernels = self._tree.kernels(routine, launch)
        return self._passed(kernels, launch.arguments, names, depth, bool(kernels))

    def _call(self, routine: Routine, call: CallText, names: set[str], depth: int) -> Verdict:
        if call.receiver in names:
            return Verdict(None, True)  # a method of the tensor that is none of the writing ones
        if not any(_mentions(one, names) for one in call.arguments):
            return Verdict(None, True)
        targets = self._tree.targets(routine, call)
        # What is outside the source and takes the pointer may write; a check or a question does not, nor does what
        # changes another tensor in place.
        in_place = call.receiver is not None and call.simple.endswith("_") and call.simple not in _HARMLESS
        known = bool(targets) or _asks(call) or in_place
        return self._passed(targets, call.arguments, names, depth, known)

    def _passed(self, targets, arguments: tuple[str, ...], names: set[str], depth: int, known: bool) -> Verdict:
        sure = known
        for number, argument in enumerate(arguments):
            if not _mentions(argument, names):
                continue
            for target in targets:
                if number >= len(target.parameters) or depth >= _DEEPEST:
                    sure = False
                    continue
                parameter = target.parameters[number]
                if "*" in parameter.type and _CONST.search(parameter.type.split("*")[0]):
                    continue
                if not any(mark in parameter.type for mark in "*&") and "Tensor" not in parameter.type:
                    continue  # a copy: what it holds may be a pointer only in a struct of arguments
                verdict = self.of(target, parameter.name, depth + 1)
                if verdict.write:
                    return verdict
                sure = sure and verdict.sure
        return Verdict(None, sure)


def _aliases(routine: Routine, name: str) -> dict[str, int]:
    """Names that the data is reached by, and the line from which they do: the parameter, and locals that are made of it
    without a copy."""
    names = {name: 0}
    ended = {one: min(lines) for one, lines in _copied(routine, (name,)).items()}
    for _ in range(3):
        before = len(names)
        for statement in routine.walk():
            for one in statement.declares:
                read_only = "*" in one.type and _CONST.search(one.type.split("*")[0])
                if one.value is None or one.name in names or read_only:
                    continue
                if ("*" in one.type or "&" in one.type or "auto" in one.type or "Tensor" in one.type) and any(
                    _is_made_of(value, held)
                    for held in names
                    if one.line <= ended.get(held, one.line)
                    for value in alternatives(one.value)
                ):
                    names[one.name] = one.line
            for assigned in statement.assigns:
                plain = assigned.target.strip()
                if assigned.operator == "=" and re.fullmatch(r"\w+", plain) and plain not in names:
                    if any(
                        _points(assigned.value, held)
                        for held in names
                        if assigned.line <= ended.get(held, assigned.line)
                    ):
                        names[plain] = assigned.line
        if len(names) == before:
            break
    return names


def alternatives(value: str) -> tuple[str, ...]:
    """What a value can be: both sides of a choice, else itself."""
    if "?" not in value:
        return (value,)
    found = parse_expression(value.strip().lstrip("="))
    while found.kind in ("braces", "cast") and len(found.parts) == 1:
        found = found.parts[0]
    if found.kind != "ternary":
        return (value,)
    return tuple(one for side in found.parts[1:] for one in alternatives(print_expression(side)))


def _copied(routine: Routine, names: Iterable[str]) -> dict[str, list[int]]:
    """Lines on which, whichever way is taken, a name is set to another tensor: ``x = x.clone();``."""
    out: dict[str, list[int]] = {}
    for statement in routine.statements:
        for one in statement.assigns if statement.kind == "expression" else ():
            plain = one.target.strip()
            if one.operator == "=" and plain in names and _COPY.search(one.value):
                out.setdefault(plain, []).append(one.line)
    return out


def _declared_anew(routine: Routine, names: dict[str, int]) -> dict[str, list[int]]:
    """Lines on which a name is declared as another variable: in a block beside, or below, that of the alias."""
    out: dict[str, list[int]] = {}
    for statement in routine.walk():
        for one in statement.declares:
            if one.name in names and one.line > names[one.name]:
                out.setdefault(one.name, []).append(one.line)
    return out


def _without_casts(value: str) -> str:
    plain = re.sub(r"(?:reinterpret|static|const)_cast<(?:[^<>]|<[^<>]*>)*>", "", value)
    return re.sub(r"\(\s*(?:const\s+)?[\w:]+(?:<[^<>]*>)?\s*\*+\s*\)", "", plain)


def _is_made_of(value: str, name: str) -> bool:
    """Whether a value is (a pointer into) the data of ``name``: the name leads it, and nothing reads an element."""
    if name not in value:
        return False
    plain = _without_casts(value).strip("=({ ")
    leads = _LEADS.match(plain)
    if leads is not None and leads[1] == name and name not in (found[1] for found in _READS.finditer(plain)):
        return True
    element = _ELEMENT.match(plain)
    return element is not None and element[1] == name


def _points(value: str, name: str) -> bool:
    return name in value and any(found[1] == name for found in _DATA.finditer(value))


def _names(text: str, name: str) -> bool:
    return name in text and name in _WORD.findall(text)


def _mentions(argument: str, names: set[str]) -> bool:
    """Whether an argument hands on one of the names itself: not a size of it, and not an element."""
    return any(_is_made_of(argument, name) for name in names)


def _asks(call: CallText) -> bool:
    """Whether a call outside the source only looks at its arguments."""
    return bool(re.search(r"CHECK|ASSERT|check|assert|size|numel|sizeof|min|max|printf|DISPATCH", call.name))
