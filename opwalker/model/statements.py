"""A function's body as a tree of statements: what a rule of the check reads.

Lines are those of the function's own file on which a statement takes effect (in a macro: the use). Text is expanded,
white space made even, unless it says ``written``. ``Routine`` is one function; a lambda inside an expression carries
its statements with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct, field

Span2 = tuple[int, int]


class MacroUse(Struct, frozen=True):
    """The macro that wrote a piece of text: its name, the file that defines it, and by which of the definitions of the
    name there (from 0). The text stands ``below`` lines under the first one of the definition: so it is told without
    what stands above that. A file that is included in a body is no definition (None), and ``below`` its line.
    ``known`` is true for a framework's macro that this program ships a definition of (``TORCH_CHECK``)."""

    name: str
    file: str
    number: int | None
    below: int
    known: bool = False


class CallText(Struct, frozen=True):
    """A call. ``name`` is the callee without object and template arguments, ``receiver`` the object of a member call,
    ``template`` the template arguments as written, None when there are none. ``made`` is true for ``new T(…)``."""

    name: str
    receiver: str | None
    template: tuple[str, ...] | None
    arguments: tuple[str, ...]
    line: int
    text: str
    macro: MacroUse | None = None
    made: bool = False

    @property
    def simple(self) -> str:
        """The name without qualifiers."""
        return self.name.rsplit("::", 1)[-1]


class LaunchText(Struct, frozen=True):
    """``kernel<<<configuration>>>(arguments)``."""

    kernel: str
    configuration: tuple[str, ...]
    arguments: tuple[str, ...]
    line: int
    macro: MacroUse | None = None

    @property
    def simple(self) -> str:
        """The kernel's name without qualifiers and template arguments."""
        plain, before = self.kernel, ""
        while plain != before:
            plain, before = re.sub(r"<[^<>]*>", "", plain), plain
        return plain.split("<", 1)[0].rsplit("::", 1)[-1].strip("&() ")


class AssignText(Struct, frozen=True):
    """An assignment, ``operator`` being ``=``, ``+=`` and so on, or ``++``/``--`` (then ``value`` is empty)."""

    target: str
    operator: str
    value: str
    line: int
    macro: MacroUse | None = None


class DeclareText(Struct, frozen=True):
    """A local variable; ``value`` is its initialiser with its parentheses or braces, None without one. ``type`` is
    ``using`` for an alias. ``static`` marks one that lives as long as the program."""

    name: str
    type: str
    value: str | None
    line: int
    static: bool = False
    macro: MacroUse | None = None


class LambdaText(Struct, frozen=True):
    """A lambda with its statements; ``parameters`` are ``(type, name)``."""

    parameters: tuple[tuple[str, str], ...]
    body: tuple[Statement, ...]
    line: int


class Statement(Struct, frozen=True):
    """A statement.

    ``kind``: ``expression``, ``declaration``, ``if``, ``if constexpr``, ``for``, ``range for``, ``while``, ``do``,
    ``switch``, ``case`` (its ``text`` the label, empty for ``default``), ``block``, ``return``, ``throw``, ``break``,
    ``continue``, ``goto``, ``label``, ``try``, ``catch``, ``asm``, ``unread`` (what the parser could not read).
    ``text`` is what is evaluated: the condition of a branch or loop, the value of a return, the whole expression
    otherwise, the insides of lambdas left out; ``written`` the same as the source spells it (empty where there is a
    lambda). ``body`` are the statements below; of an ``if``, ``orelse``
    those of its other branch; of a ``for``, ``head`` its initialiser and ``step`` its third part. Calls, launches,
    assignments, declarations and lambdas are those of the statement's own expressions, lambda bodies left out.
    """

    kind: str
    line: int
    end_line: int
    text: str = ""
    written: str = ""
    body: tuple[Statement, ...] = ()
    orelse: tuple[Statement, ...] = ()
    head: tuple[Statement, ...] = ()
    step: str = ""
    calls: tuple[CallText, ...] = ()
    launches: tuple[LaunchText, ...] = ()
    assigns: tuple[AssignText, ...] = ()
    declares: tuple[DeclareText, ...] = ()
    lambdas: tuple[LambdaText, ...] = ()
    macro: MacroUse | None = None

    def walk(self, lambdas: bool = True) -> Iterator[Statement]:
        """This statement and all below it, in source order; those in lambdas where asked for."""
        yield self
        for part in (*self.head, *self.body, *self.orelse):
            yield from part.walk(lambdas)
        if lambdas:
            for one in self.lambdas:
                for part in one.body:
                    yield from part.walk(lambdas)


class RoutineParameter(Struct, frozen=True):
    """A parameter as written."""

    type: str
    name: str
    default: str | None = None


class Routine(Struct, frozen=True):
    """A function definition with its statements.

    ``name`` is qualified. ``flags`` are those of the scan (``global device host static extern_c …``); ``scope`` holds
    the namespaces and classes around it, ``classes`` how many of the innermost are classes. ``template`` is the text of
    its template parameters, None for no template. ``condition`` is the preprocessor condition it stands under, None for
    none. ``returns`` is the return type. ``errors`` counts what the parser could not read.
    """

    name: str
    file: str
    line: int
    end_line: int
    returns: str
    parameters: tuple[RoutineParameter, ...]
    flags: tuple[str, ...]
    scope: tuple[str, ...]
    classes: int
    template: str | None
    attributes: tuple[str, ...]
    condition: str | None
    statements: tuple[Statement, ...]
    errors: int = 0
    #: What names of the body resolve to in this source: ``(call name, (file, line) of the definitions)``.
    targets: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = field(default=())

    @property
    def on_device(self) -> bool:
        """Whether it runs on the device alone."""
        return "global" in self.flags or ("device" in self.flags and "host" not in self.flags)

    def walk(self, lambdas: bool = True) -> Iterator[Statement]:
        """All statements, in source order."""
        for statement in self.statements:
            yield from statement.walk(lambdas)


class Node(Struct, frozen=True):
    """A statement as the parser's file hands it on: spans into the expanded text instead of text and lines."""

    kind: str
    span: Span2
    text: Span2 | None = None
    body: tuple[Node, ...] = ()
    orelse: tuple[Node, ...] = ()
    head: tuple[Node, ...] = ()
    step: Span2 | None = None
    calls: tuple[CallNode, ...] = ()
    launches: tuple[LaunchNode, ...] = ()
    assigns: tuple[tuple[Span2, str, Span2 | None], ...] = ()
    declares: tuple[tuple[str, str, Span2 | None, int, bool], ...] = ()
    lambdas: tuple[LambdaNode, ...] = ()


class CallNode(Struct, frozen=True):
    """A call, by spans."""

    span: Span2
    name: str
    receiver: Span2 | None
    template: tuple[Span2, ...] | None
    arguments: tuple[Span2, ...]
    made: bool = False


class LaunchNode(Struct, frozen=True):
    """A launch, by spans."""

    span: Span2
    kernel: Span2
    configuration: tuple[Span2, ...]
    arguments: tuple[Span2, ...]


class LambdaNode(Struct, frozen=True):
    """A lambda, by spans; ``inside`` is what stands between its braces."""

    span: Span2
    inside: Span2
    parameters: tuple[tuple[str, str], ...]
    body: tuple[Node, ...]
