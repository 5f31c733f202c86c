"""Structures whose members are flags: which member an address is in, who stores and loads it, how it is aligned.

In: addresses of flags, and readings of the functions that touch them. Out: ``FlagStruct`` values. A member is known by
its name where one structure of the unit has a member of that name.
"""

from __future__ import annotations

import re

from opwalker.expand.bodies import Body
from opwalker.expand.workbench import Workbench
from opwalker.model.cpp import ClassDef, Variable
from opwalker.model.flags import FlagMember, FlagStruct
from opwalker.notation.regex import Regex
from opwalker.views.device_functions import Reading
from opwalker.views.sync_events import members_of, opened

_ALIGNED = Regex(r"(?:alignas|__align__|__attribute__\s*\(\(\s*aligned)\s*\(\s*(\w+)\s*\)")
_COMMENT = Regex(r"\s*(?://+|/?\*+/?)\s?(.*?)(?:\*/)?\s*\Z")


class Flags:
    """The flag structures of one walk."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench
        self._members: dict[tuple[str, str], tuple[str, ClassDef, Variable] | None] = {}
        #: Structures met, by their place; how each member is touched.
        self._met: dict[tuple[str, int], tuple[str, ClassDef]] = {}
        self._uses: dict[tuple[str, int, str], dict[str, dict[str, None]]] = {}

    def member(self, flag: str, body: Body) -> str | None:
        """The member that an address is in, ``ns::Signal::start``."""
        found = self._found(flag, body)
        return "::".join((*found[1].scope, found[1].name, found[2].name)) if found is not None else None

    def see(self, reading: Reading) -> None:
        """Takes note of the members that a function touches: as flags, and beside flags of the same structure."""
        body = reading.body
        owners: set[str] = set()
        for event in reading.events:
            if event.address is None or event.kind == "plain_store":
                continue  # plain accesses are looked at by themselves
            found = self._found(opened(body, event.address, event.start), body)
            if found is not None:
                path, owner, variable = found
                self._met[path, owner.offset] = (path, owner)
                owners.add(owner.name)
                kind = "loaded" if "load" in event.kind else "stored"
                self._use(path, owner, variable.name, kind, f"{reading.name}: {event.kind}")
        for access in body.accesses.accesses if owners else ():
            text = body.text((access.start, access.end))
            found = self._found(text, body) if access.kind == "index" else None
            if found is not None and found[1].name in owners:
                path, owner, variable = found
                for kind, what, held in (("stored", "store", access.written), ("loaded", "load", access.read)):
                    if held:
                        self._use(path, owner, variable.name, kind, f"{reading.name}: plain {what}")

    def _use(self, path: str, owner: ClassDef, name: str, kind: str, text: str) -> None:
        self._uses.setdefault((path, owner.offset, name), {}).setdefault(kind, {})[text] = None

    def _found(self, flag: str, body: Body) -> tuple[str, ClassDef, Variable] | None:
        for name in reversed(members_of(flag)):
            key = (name, body.root)
            if key not in self._members:
                self._members[key] = self._lookup(name, body)
            if self._members[key] is not None:
                return self._members[key]
        return None

    def _lookup(self, name: str, body: Body) -> tuple[str, ClassDef, Variable] | None:
        """The only structure of the unit that has a member of a name."""
        index = self._workbench.index
        near = index.near(body.root, body.path)
        found: list[tuple[str, ClassDef, Variable]] = []
        for path, variable in index.entries(name, ("variable",), lambda facts: facts.variables):
            if path in near and variable.name == name and variable.scope and not variable.constant:
                for made in index.declared(path).classes:
                    inside = made.body_start <= variable.offset < made.body_end
                    if inside and variable.scope == (*made.scope, made.name):
                        found.append((path, made, variable))
        return found[0] if len(found) == 1 else None

    def structs(self) -> tuple[FlagStruct, ...]:
        """The structures met, in the order of the source."""
        return tuple(
            self._struct(path, owner) for path, owner in sorted(self._met.values(), key=lambda m: (m[0], m[1].line))
        )

    def _struct(self, path: str, owner: ClassDef) -> FlagStruct:
        view = self._workbench.files.part(path)
        lines = view.blanked.text.split("\n")
        members = []
        for variable in self._workbench.index.declared(path).variables:
            if variable.scope == (*owner.scope, owner.name) and owner.body_start <= variable.offset < owner.body_end:
                line = lines[variable.line - 1]
                uses = self._uses.get((path, owner.offset, variable.name), {})
                members.append(
                    FlagMember(
                        variable.name, variable.type, variable.line, _alignment(line), _beside(line),
                        tuple(uses.get("stored", ())), tuple(uses.get("loaded", ())),
                    )
                )  # fmt: skip
        name = "::".join((*owner.scope, owner.name))
        return FlagStruct(name, path, owner.line, owner.end_line, _above(lines, owner.line), tuple(members))


def _alignment(line: str) -> int | None:
    found = _ALIGNED.search(line)
    return int(found.group(1), 0) if found and re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", found.group(1)) else None


def _beside(line: str) -> str | None:
    found = re.search(r"//\s*(.*\S)\s*\Z|/\*\s*(.*?)\s*\*/", line)
    return (found.group(1) or found.group(2)) if found else None


def _above(lines: list[str], line: int) -> str | None:
    """The comment that ends on the line above."""
    out: list[str] = []
    number = line - 2
    while number >= 0 and re.match(r"\s*(?://|\*|/\*)", lines[number]):
        text = _COMMENT.match(lines[number])
        out.append(text.group(1) if text else "")
        number -= 1
    return " ".join(part for part in reversed(out) if part) or None
