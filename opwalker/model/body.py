"""What a function's body says, read from its expanded text. Spans are offsets into that text, ``end`` exclusive."""

from __future__ import annotations

from msgspec import Struct

Span2 = tuple[int, int]


class Block(Struct, frozen=True):
    """A control structure or lambda: ``kind`` is ``if``, ``else``, ``if constexpr``, ``case``, ``switch``, ``loop`` or
    ``lambda``; ``condition`` spans its condition (a case: its label; None for default); ``parent`` indexes a block."""

    kind: str
    start: int
    end: int
    condition: Span2 | None
    parent: int


class CallFact(Struct, frozen=True):
    """A call. ``name`` is the callee as written without template arguments or object; ``receiver`` spans the object of
    a member call; ``arguments`` and ``template_arguments`` are spans, ``template_arguments`` None when none stand."""

    start: int
    end: int
    callee: Span2
    name: str
    template_arguments: tuple[Span2, ...] | None
    arguments: tuple[Span2, ...]
    receiver: Span2 | None
    block: int

    @property
    def simple(self) -> str:
        """The name without qualifiers."""
        return self.name.rsplit("::", 1)[-1]


class LaunchFact(Struct, frozen=True):
    """``kernel<<<configuration>>>(arguments)``."""

    start: int
    end: int
    kernel: Span2
    configuration: tuple[Span2, ...]
    arguments: tuple[Span2, ...]
    block: int


class LocalFact(Struct, frozen=True):
    """A local variable, alias (``type == "using"``) or namespace alias (``type == "namespace"``).

    ``value`` spans the initialiser (with its parentheses or braces), None without one.
    """

    name: str
    type: str
    value: Span2 | None
    start: int
    end: int
    block: int


class AssignFact(Struct, frozen=True):
    """An assignment; ``target`` is the left side as written."""

    target: str
    value: Span2
    start: int
    block: int


class LambdaFact(Struct, frozen=True):
    """A lambda; ``parameters`` are ``(type, name)``, ``template`` its template parameter list's text or None."""

    start: int
    end: int
    body: Span2
    template: str | None
    parameters: tuple[tuple[str, str], ...]


class ExitFact(Struct, frozen=True):
    """A statement that leaves the function (or lambda) that it stands in: ``kind`` is ``return`` or ``throw``;
    ``value`` spans what is returned or thrown, None for nothing."""

    kind: str
    start: int
    end: int
    value: Span2 | None
    block: int


class BodyFacts(Struct, frozen=True):
    """Everything read from one body. ``errors`` are spans that the parser could not read; ``scopes`` are the compound
    statements that are no block of a control structure, braces included, in order; ``braced`` are objects made as
    ``T{...}``, as calls of ``T``."""

    blocks: tuple[Block, ...] = ()
    calls: tuple[CallFact, ...] = ()
    launches: tuple[LaunchFact, ...] = ()
    locals: tuple[LocalFact, ...] = ()
    assigns: tuple[AssignFact, ...] = ()
    returns: tuple[Span2, ...] = ()
    lambdas: tuple[LambdaFact, ...] = ()
    asm: tuple[Span2, ...] = ()
    ternaries: tuple[tuple[Span2, Span2, Span2], ...] = ()
    errors: tuple[Span2, ...] = ()
    exits: tuple[ExitFact, ...] = ()
    scopes: tuple[Span2, ...] = ()
    braced: tuple[CallFact, ...] = ()
