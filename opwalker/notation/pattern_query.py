r"""The query of a pattern, read from its lines and printed again.

In: text such as ``find call name ~ /^__shfl_/ and within ~ /for/``. Out: ``Clause`` values; ``QueryError`` says which
line is wrong. ``find`` begins a clause, of which there may be several; ``in``, ``with``, ``without`` narrow the last.
A regular expression stands between slashes, a slash in it is written ``\/``. ``@tile@`` in it is the text that the
group ``tile`` of the ``find`` line captured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from opwalker.model.patterns import Clause, Condition, Demand
from opwalker.notation.regex import Regex

#: What stands in a function, and the fields of each.
INSIDE = {
    "statement": ("kind", "text", "written", "step"),
    "call": ("name", "receiver", "template", "arguments", "text"),
    "launch": ("kernel", "configuration", "arguments"),
    "assign": ("target", "operator", "value"),
    "declare": ("name", "type", "value"),
    "instruction": ("opcode", "what", "order", "scope", "space", "operation", "text"),
}
#: Fields of everything that stands in a function: the macro that wrote it, and the kinds of the statements around it.
AROUND = ("macro", "within")
#: What a query can find.
SUBJECTS = {
    **{subject: (*fields, *AROUND) for subject, fields in INSIDE.items()},
    "function": ("name", "returns", "flags", "parameters", "template", "attributes"),
    "macro": ("name", "parameters", "body"),
    "class": ("name", "kind", "head", "members"),
    "variable": ("name", "type", "value"),
    "python": ("text",),
}
ROLES = ("find", "in", "with", "without")
#: What the ``find`` line captured, by the name of its group.
REFERENCE = Regex(r"@([A-Za-z_]\w*)@")
_CONDITION = Regex(r"(\w+)\s*(!?[~=])\s*(?:/((?:\\.|[^/\\])*)/|([\w.:+*-]+))(?:\s+and\s+(?=\S)|\s*\Z)")


class QueryError(ValueError):
    """A line of a query that cannot be read; ``number`` counts from 1."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def parse_query(text: str) -> tuple[Clause, ...]:
    """The clauses of a query. Raises QueryError."""
    clauses: list[list[Demand]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        demand = _demand(number, line.strip())
        if demand.role == "find":
            clauses.append([demand])
        elif not clauses:
            raise QueryError(number, f"'{demand.role}' before any 'find'")
        elif clauses[-1][0].subject not in (*INSIDE, "function"):
            raise QueryError(number, f"a {clauses[-1][0].subject} stands in no function: '{demand.role}' says nothing")
        else:
            _refers_to_groups(number, demand, clauses[-1][0])
            clauses[-1].append(demand)
    if not clauses:
        raise QueryError(1, "the query finds nothing: it has no 'find' line")
    return tuple(Clause(tuple(demands)) for demands in clauses)


def _demand(number: int, line: str) -> Demand:
    role, _, rest = line.partition(" ")
    subject, _, conditions = rest.strip().partition(" ")
    if role not in ROLES:
        raise QueryError(number, f"a line begins with {_either(ROLES)}, not {role!r}")
    allowed = ("function",) if role == "in" else tuple(INSIDE) if role != "find" else tuple(SUBJECTS)
    if subject not in allowed:
        raise QueryError(number, f"'{role}' is followed by {_either(allowed)}, not {subject!r}")
    return Demand(role, subject, tuple(_conditions(number, conditions.strip(), subject)))


def _refers_to_groups(number: int, demand: Demand, find: Demand) -> None:
    groups = {name for one in find.conditions if one.operator == "~" for name in re.compile(one.value).groupindex}
    for name in (found for one in demand.conditions for found in REFERENCE.findall(one.value)):
        if name not in groups:
            raise QueryError(number, f"@{name}@ names no group of the 'find' line; it has {_listed(groups)}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _conditions(number: int, text: str, subject: str) -> Iterable[Condition]:
    at = 0
    while at < len(text) or not at:
        found = _CONDITION.match(text, at)
        if found is None:
            raise QueryError(number, f"no condition can be read at {text[at : at + 30]!r}: write FIELD ~ /REGEX/")
        field, operator, pattern, word = found.groups()
        if field not in SUBJECTS[subject]:
            raise QueryError(number, f"a {subject} has no field {field!r}; it has {', '.join(SUBJECTS[subject])}")
        if (pattern is None) == operator.endswith("~"):
            raise QueryError(number, f"{field} {operator}: ~ takes a /regular expression/, = a word")
        if pattern is not None:
            pattern = pattern.replace("\\/", "/")
            try:
                re.compile(pattern)
            except re.error as error:
                raise QueryError(number, f"/{pattern}/ is no regular expression: {error}") from error
        yield Condition(field, operator, pattern if pattern is not None else word)
        at = found.end()


def _either(words: Iterable[str]) -> str:
    return "one of " + ", ".join(words)


def print_query(clauses: Iterable[Clause]) -> str:
    """The text of a query: ``parse_query`` of it gives the clauses back."""
    return "\n".join(_line(demand) for clause in clauses for demand in clause.demands)


def _line(demand: Demand) -> str:
    return f"{demand.role} {demand.subject} " + " and ".join(
        f"{one.field} {one.operator} " + (f"/{_slashed(one.value)}/" if one.operator.endswith("~") else one.value)
        for one in demand.conditions
    )


def _slashed(pattern: str) -> str:
    return pattern.replace("/", "\\/")
