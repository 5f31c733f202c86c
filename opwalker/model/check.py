"""The nouns of ``check``: what a rule is, what it sees of a source, and what it finds.

A rule imports nothing but ``model`` and ``notation``: it reads a ``CheckedTree``, which the views make, and yields
``Draft`` values. Everything that a finding needs besides (op, column, fingerprint) is added for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct, field

from opwalker.model.cpp import ClassDef, Function, MacroEvent
from opwalker.model.host import ParameterFact
from opwalker.model.ops import Op
from opwalker.model.places import SourceInfo
from opwalker.model.statements import CallText, LaunchText, MacroUse, Routine

#: From the most to the least severe.
SEVERITIES = ("error", "warning", "info")


class Related(Struct, frozen=True):
    """A further place that a finding rests on: the steps from a value to a launch, a sibling, a declaration."""

    file: str
    line: int
    message: str


class Draft(Struct, frozen=True):
    """What a rule yields: where, what is wrong (one sentence, no full stop), and what it rests on. ``symbol`` is the
    name that the finding is about (a variable, an argument): two findings on a line differ in it. ``severity`` None
    is the rule's own. ``op`` is the op it concerns, where the rule knows it."""

    file: str
    line: int
    message: str
    related: tuple[Related, ...] = ()
    symbol: str = ""
    severity: str | None = None
    op: str | None = None
    end_line: int | None = None


class Finding(Struct, frozen=True):
    """A finding as it is reported. ``op`` names the op whose path passes the place, None where there is none."""

    rule: str
    severity: str
    message: str
    file: str
    line: int
    end_line: int
    column: int
    op: str | None
    related: tuple[Related, ...]
    fingerprint: str


class RuleInfo(Struct, frozen=True):
    """A rule as its documentation page describes it; ``default`` says whether it runs unasked."""

    id: str
    summary: str
    severity: str
    default: bool
    help: str


class CheckResult(Struct, frozen=True, kw_only=True):
    """The answer to ``check``. ``counts`` are findings by rule; ``hidden`` is how many a baseline, an excuse or a
    change filter holds back, by reason; ``rules`` those that ran."""

    format: int = 1
    source: SourceInfo
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    hidden: dict[str, int] = field(default_factory=dict)
    rules: tuple[RuleInfo, ...] = ()
    notes: tuple[str, ...] = ()


class CheckOptions(Struct, frozen=True):
    """What was asked of ``check``: ``select``/``ignore`` are rule ids or ``ALL``; ``paths`` narrow the findings.
    ``baseline`` holds findings back, ``write_baseline`` is written; ``changed_since`` keeps those on changed lines."""

    paths: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    baseline: str | None = None
    write_baseline: str | None = None
    changed_since: str | None = None


class Settings(Struct, frozen=True):
    """What a project says of itself: names that the rules take for what they are. All are added to the built-in ones.

    ``launch_checks`` are macros or functions that ask for a launch error, ``guards`` types that set the device,
    ``required_dtypes`` what a dispatch is expected to cover; ``torch`` is the least release that the source asks for,
    None where it does not say.
    """

    launch_checks: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()
    required_dtypes: tuple[str, ...] = ()
    torch: tuple[int, ...] | None = None


class CallSite(Struct, frozen=True):
    """A call of a routine: who calls, and the call."""

    caller: Routine
    call: CallText


class PythonFunction(Struct, frozen=True):
    """A Python function that stands for an op (a fake): its parameters as written, ``*`` and ``/`` among them."""

    op: str
    file: str
    line: int
    name: str
    parameters: tuple[str, ...]
    defaults: tuple[tuple[str, str], ...]
    keyword_only: tuple[str, ...]
    text: str


class ReferenceShapes(Struct, frozen=True):
    """What the contract of a reference kernel says of an op: a shape, as written, by tensor argument."""

    kernel: str
    shapes: Mapping[str, str]


#: In which functions the places of a rule's findings lie, besides macros and other declarations that these name. All
#: count from the function that a finding is found in, of an op its host functions (and what names the op): that one
#: (``own``); those that it names by their heads (``named``); what leads to it by calls (``up``), what it leads to
#: (``down``); or ``both``.
Spread = Literal["own", "named", "up", "down", "both"]


class CheckedTree(Protocol):
    """A source as rules see it, for one build."""

    source: SourceInfo
    build: str
    settings: Settings
    #: Every function definition that the build reads, in path and line order.
    every_routine: Sequence[Routine]
    #: Every op, with schema, definitions, implementations, fakes and Python callers.
    every_op: Sequence[Op]
    #: Those to look at: all, or those that findings about a change can come from.
    routines: Sequence[Routine]
    ops: Sequence[Op]
    #: The files that were changed; None where all of the source is looked at.
    changed: frozenset[str] | None
    #: Members and variables that are declared volatile and hold a whole number, with ``(file, line)``.
    volatile: Mapping[str, tuple[str, int]]
    #: The routines that may, by their own statements, access memory with an order (a volatile, an atomic, an
    #: instruction with one) or that of a peer; perhaps others.
    ordered: Sequence[Routine]

    #: The same source, all of it to be looked at.
    whole: CheckedTree

    def is_shared(self, one: Draft) -> bool:
        """Whether a draft is about a change by its steps alone, and stands in a macro: others may stand there too."""

    def within(self, spread: Spread) -> CheckedTree:
        """The same source, with the routines and ops to look at for findings that spread no farther."""

    def routine_at(self, file: str, line: int) -> Routine | None:
        """The routine whose name stands at a line (``Routine.line``)."""

    def routine_around(self, file: str, line: int) -> Routine | None:
        """The innermost routine that a line lies in."""

    def implementations(self, op: Op) -> Sequence[tuple[str | None, Routine]]:
        """``(dispatch key, host function)`` of an op's implementations that are in the source."""

    def ops_of(self, routine: Routine) -> Sequence[str]:
        """The names of ops (or bound functions) whose path enters a routine, its own included."""

    def place(self, macro: MacroUse) -> tuple[str, int]:
        """The file and the line that a macro's text stands on."""

    def targets(self, routine: Routine, call: CallText) -> Sequence[Routine]:
        """What a call in a routine can mean in this source; empty for what is outside or not known."""

    def kernels(self, routine: Routine, launch: LaunchText) -> Sequence[Routine]:
        """The kernels that a launch can start, as far as its text names them."""

    def calling(self, name: re.Pattern[str]) -> Iterable[Routine]:
        """The routines of the files in which something is called whose name begins like that."""

    def calling_any(self, names: Collection[str]) -> Iterable[Routine]:
        """The routines that call something of some names (their last parts), and perhaps others."""

    def launches(self, name: str) -> Iterable[tuple[Routine, LaunchText]]:
        """The launches of something by the last part of its name, each with the routine that it stands in."""

    def routines_in(self, file: str) -> Sequence[Routine]:
        """The routines of a file, in the order of their lines."""

    def callers(self, routine: Routine) -> Sequence[CallSite]:
        """The calls that can mean a routine."""

    def is_entry(self, routine: Routine) -> bool:
        """Whether something outside the source may call it: an op's implementation, a bound or exported function."""

    def functions(self, name: str) -> Sequence[tuple[str, Function]]:
        """Declarations and definitions with an unqualified name: ``(file, function)``."""

    def classes(self, name: str) -> Sequence[tuple[str, ClassDef]]:
        """Class definitions with an unqualified name."""

    def enumerations(self, name: str) -> Sequence[tuple[str, ...]]:
        """The members of the enumerations with an unqualified name."""

    def fields(self, file: str, definition: ClassDef) -> Sequence[tuple[str, str, int]]:
        """``(name, type, line)`` of the data members of a class, aliases of the class followed."""

    def macros(self, file: str) -> Sequence[MacroEvent]:
        """The macro definitions of a file."""

    def text(self, file: str) -> str:
        """A file's text."""

    def files(self, *languages: str) -> Sequence[str]:
        """The paths of a language (``cuda``, ``cpp``, ``python``, …); but for Python, the source's own alone: what was
        copied in from others is left out."""

    def included(self, file: str) -> Collection[str]:
        """The files of the source that a file includes, directly or not; itself among them."""

    def type_of(self, name: str, routine: Routine | None) -> str:
        """A type with the aliases of the source followed as far as they are known: ``index_t`` → ``uint32_t``. Those
        of ``routine`` go first; None for a place outside of one."""

    def fakes(self, op: Op) -> Sequence[PythonFunction]:
        """The fake implementations of an op, with their parameters."""

    def documented(self, op: Op) -> Sequence[ParameterFact]:
        """The parameters of an op's host functions, with the shapes that are documented."""

    def shapes(self, op: Op) -> Sequence[ParameterFact]:
        """The same with what code shows, where shapes are documented; of a change, where it lies in either."""

    def contract(self, op: Op) -> ReferenceShapes | None:
        """What the contract of the reference kernel for an op says; None where there is none."""


class Rule(Struct, frozen=True):
    """A rule: one file of ``rules/``, named like its id. The module's docstring is its page: a summary line, *Why*,
    *Flagged*, *Clean* and *Use instead*; the fences below *Flagged* and *Clean* are its test."""

    id: str
    severity: str
    run: Callable[[CheckedTree], Iterable[Draft]]
    default: bool = True
    since: str = "0.2"
    spread: Spread = "both"
