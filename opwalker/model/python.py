"""What one Python file says about ops: calls of ``torch.ops``, registrations, functions and who calls them."""

from __future__ import annotations

from dataclasses import dataclass

from opwalker.model.source import Problem


@dataclass(frozen=True, slots=True)
class PyImport:
    """One bound name. ``from a.b import c as d`` gives module ``a.b``, name ``c``, alias ``d``; ``import a.b as d``
    gives module ``a.b``, name None. ``level`` counts leading dots; a star import has name ``"*"``."""

    module: str
    name: str | None
    alias: str
    level: int
    line: int


@dataclass(frozen=True, slots=True)
class PyFunction:
    """A function or method: ``qualname`` is ``Class.method`` or nested ``outer.inner``. ``parameters`` are
    ``(name, annotation text or None, default text or None, kind)`` with kind ``pos``, ``kwonly``, ``vararg``, ``kwarg``."""

    qualname: str
    line: int
    end_line: int
    parameters: tuple[tuple[str, str | None, str | None, str], ...] = ()
    returns: str | None = None
    decorators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PyOpCall:
    """A call of an op: ``namespace``/``op``/``overload``; ``function`` is the qualname around it, None at module level."""

    namespace: str
    op: str
    overload: str | None
    line: int
    function: str | None
    text: str


@dataclass(frozen=True, slots=True)
class PyCall:
    """Any other call, by the dotted text of its callee (``ops.rms_norm``, ``self.run``); ``function`` is around it."""

    callee: str
    line: int
    function: str | None


@dataclass(frozen=True, slots=True)
class PyRegistration:
    """A registration made in Python.

    ``action`` is ``define``, ``impl``, ``custom_op``, ``fake``, ``library`` or ``helper`` (a call of a project function
    that may end in one of them, resolved while linking). ``arguments`` are ``(keyword or None, text)`` as written.
    """

    action: str
    line: int
    end_line: int
    namespace: str | None
    op: str | None
    schema: str | None
    function: str | None
    key: str | None
    mutates: tuple[str, ...] | None
    arguments: tuple[tuple[str | None, str], ...] = ()
    callee: str | None = None
    within: str | None = None


@dataclass(frozen=True, slots=True)
class PyLight:
    """The cheap facts of every Python file: what it imports and whether it must be read in full."""

    imports: tuple[PyImport, ...] = ()
    mentions_ops: bool = False
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class PyFacts:
    """The full facts of a Python file that matters. ``libraries`` are ``(variable, namespace, kind, line)`` of
    ``torch.library.Library`` objects; ``constants`` are module-level ``(name, literal text)``."""

    imports: tuple[PyImport, ...] = ()
    functions: tuple[PyFunction, ...] = ()
    op_calls: tuple[PyOpCall, ...] = ()
    calls: tuple[PyCall, ...] = ()
    registrations: tuple[PyRegistration, ...] = ()
    libraries: tuple[tuple[str, str, str, int], ...] = ()
    constants: tuple[tuple[str, str], ...] = ()
    aliases: tuple[tuple[str, str, int], ...] = ()
    problems: tuple[Problem, ...] = ()
