"""What one C++ or CUDA file says by itself, before any file is joined to another.

Offsets are in characters of the file's text, 0-based; ``end`` offsets are exclusive; lines are 1-based. A
``condition`` is the id of an entry in ``CppFacts.conditions``: the preprocessor conditions that a place stands under,
in source form, outermost first (``()`` has id 0).
"""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.source import Problem


class Include(Struct, frozen=True):
    """An ``#include``: its target as written; ``system`` for angle brackets."""

    target: str
    system: bool
    offset: int
    line: int
    condition: int = 0


class MacroEvent(Struct, frozen=True):
    """A ``#define`` (``body`` is text) or ``#undef`` (``body`` is None) at a place.

    ``parameters`` is None for an object-like macro. ``body`` starts at ``body_offset``, with comments and line
    continuations blanked so that offsets stay true; ``variadic`` names the pack (``__VA_ARGS__`` for a plain ``...``).
    """

    name: str
    parameters: tuple[str, ...] | None
    variadic: str | None
    body: str | None
    body_offset: int
    offset: int
    line: int
    end_line: int
    condition: int = 0


class Parameter(Struct, frozen=True):
    """A function parameter as written. ``offset``/``end`` span it in the file, comments beside it excluded."""

    type: str
    name: str
    default: str | None
    offset: int
    end: int


class Function(Struct, frozen=True):
    """A function definition (``body`` set) or declaration (``body_start == body_end == 0``).

    ``scope`` is the tuple of enclosing namespaces and classes (anonymous: ``"(anonymous namespace)"``) with the
    qualifiers of the written name appended. ``template`` is the parameter list's text of the innermost ``template``
    head, None for no template, ``""`` for a full specialisation. ``specialisation`` is the text between ``<>`` behind
    the name, None if absent. ``flags`` hold ``global device host static inline constexpr extern_c virtual override
    pure explicit_instantiation extern_template friend member deleted const``. ``requires`` is the text of its
    requires clauses, ``owner`` that between ``<>`` behind the class it is defined outside of; ``unit`` is the
    translation unit that gives it this name by a macro, where others give it others.
    """

    name: str
    scope: tuple[str, ...]
    return_type: str
    parameters: tuple[Parameter, ...]
    flags: tuple[str, ...]
    template: str | None
    specialisation: str | None
    attributes: tuple[str, ...]
    offset: int
    line: int
    start_line: int
    body_start: int
    body_end: int
    end_line: int
    condition: int = 0
    class_depth: int = 0
    requires: str | None = None
    owner: str | None = None
    unit: str | None = None

    @property
    def is_definition(self) -> bool:
        """Whether a body stands with it."""
        return self.body_end > 0

    @property
    def qualified_name(self) -> str:
        """The name with its scopes, ``::`` between them."""
        return "::".join((*self.scope, self.name))


class ClassDef(Struct, frozen=True):
    """A class, struct or union definition; ``bases`` as written, ``specialisation`` and ``template`` as in Function."""

    name: str
    scope: tuple[str, ...]
    kind: str
    bases: tuple[str, ...]
    template: str | None
    specialisation: str | None
    offset: int
    line: int
    body_start: int
    body_end: int
    end_line: int
    condition: int = 0


class ClassDeclaration(Struct, frozen=True):
    """``struct A;``, ``template <int N> class B;``: a class that is only named. ``template`` as in Function."""

    name: str
    scope: tuple[str, ...]
    template: str | None
    offset: int
    line: int
    condition: int = 0

    @property
    def specialisation(self) -> None:
        """None: declared specialisations are not entered."""


class EnumDef(Struct, frozen=True):
    """An enumeration; ``members`` are ``(name, value text or None)``."""

    name: str
    scope: tuple[str, ...]
    scoped: bool
    underlying: str | None
    members: tuple[tuple[str, str | None], ...]
    offset: int
    line: int
    condition: int = 0


class Alias(Struct, frozen=True):
    """``using X = T`` / ``typedef T X`` (kind ``type``), ``namespace a = b`` (``namespace``), ``using namespace a``
    (``directive``, name empty), ``using a::b`` (``using``)."""

    kind: str
    name: str
    scope: tuple[str, ...]
    target: str
    template: str | None
    offset: int
    line: int
    condition: int = 0


class Variable(Struct, frozen=True):
    """A namespace- or class-level variable. ``constant`` for constexpr/const; ``value`` is the initialiser's text,
    ``specialisation`` what stands between ``<>`` behind the name."""

    name: str
    scope: tuple[str, ...]
    type: str
    value: str | None
    constant: bool
    template: str | None
    offset: int
    line: int
    condition: int = 0
    specialisation: str | None = None


class ClassInstantiation(Struct, frozen=True):
    """``template class A<int>;``: compiles every member. ``external`` for ``extern template``; ``arguments`` is the
    text between ``<>``."""

    name: str
    scope: tuple[str, ...]
    arguments: str
    external: bool
    offset: int
    line: int
    condition: int = 0


class Invocation(Struct, frozen=True):
    """A macro-like use at namespace or class level.

    ``NAME(args)`` or a bare ``NAME``, with a ``{ body }`` behind it (then ``body_end > 0``) or none. Whether NAME is a
    macro, and what it makes, is known only when files are joined.
    """

    name: str
    arguments: tuple[str, ...] | None
    scope: tuple[str, ...]
    offset: int
    end: int
    line: int
    body_start: int
    body_end: int
    end_line: int
    condition: int = 0


class BindingCall(Struct, frozen=True):
    """A call that may bind something: ``m.def("f", &f)``, ``ops.impl(...)``, ``py::class_<T>(m, "T")``.

    ``receiver`` is the text before the last ``.`` of the chain's start (``m``); ``method`` the called name with its
    template arguments in ``template``; ``arguments`` the texts of the arguments; ``line`` is that of the first
    argument, which names what is bound (calls are often wrapped behind the parenthesis); ``previous`` the index, within
    the same tuple, of the call that this one is chained to, or -1.
    """

    receiver: str
    method: str
    template: str | None
    arguments: tuple[str, ...]
    offset: int
    line: int
    previous: int = -1
    condition: int = 0
    argument_offsets: tuple[int, ...] = ()


class BindingSite(Struct, frozen=True):
    """A body that holds binding calls: a registration block (``block`` is its index in ``invocations``) or a function
    (``function`` is its index in ``functions``); -1 where not, and -1 twice for a statement at namespace level.
    ``uses`` are macro-like statements in the body, which
    may expand to further calls, and calls that pass a binding handle on: ``(name, arguments, offset, condition)``."""

    block: int
    function: int
    calls: tuple[BindingCall, ...]
    uses: tuple[tuple[str, tuple[str, ...], int, int], ...]


class CppFacts(Struct, frozen=True):
    """Everything that one file says. ``branches`` are ``(start, end, condition)`` of every conditional branch, in
    order, nested ones after their parents; ``line_count`` and ``unread`` (characters that no item covers because of
    faults) let a reader judge the coverage. ``code_digest`` is of the text up to its last word of code: what comes
    behind it, blanks and comments about nothing, has a say in no answer that is read from code. ``once`` says that a
    unit reads the file one time only, for its guard or ``#pragma once``."""

    conditions: tuple[tuple[str, ...], ...] = ((),)
    includes: tuple[Include, ...] = ()
    macros: tuple[MacroEvent, ...] = ()
    branches: tuple[tuple[int, int, int], ...] = ()
    functions: tuple[Function, ...] = ()
    classes: tuple[ClassDef, ...] = ()
    enums: tuple[EnumDef, ...] = ()
    aliases: tuple[Alias, ...] = ()
    variables: tuple[Variable, ...] = ()
    invocations: tuple[Invocation, ...] = ()
    bindings: tuple[BindingSite, ...] = ()
    line_count: int = 0
    unread: int = 0
    problems: tuple[Problem, ...] = ()
    instantiations: tuple[ClassInstantiation, ...] = ()
    code_digest: str = ""
    declared_classes: tuple[ClassDeclaration, ...] = ()
    once: bool = False
