"""One registration as the source makes it: a name bound to a function under some binding."""

from __future__ import annotations

from msgspec import Struct


class FunctionRef(Struct, frozen=True):
    """A function as a registration names it.

    ``name`` is qualified as written, without ``&``, casts and wrappers; ``template`` the text of its template
    arguments; ``arity`` the parameter count where a cast gives it. ``lambda_span`` is set (and ``name`` is
    ``"lambda"``) where the function is a lambda written in place: offsets of its text in the file. ``owner`` is the
    class of a member function, where template arguments are written for it.
    """

    name: str
    template: str | None = None
    arity: int | None = None
    lambda_span: tuple[int, int] | None = None
    owner: str | None = None


class Binding(Struct, frozen=True):
    """``role`` is ``def`` or ``impl``.

    ``name`` is the op's full name (``ns::op.overload``, ``module.Class.method``); ``schema`` its text where the binding
    gives one; ``key`` the dispatch key of an implementation. ``scope`` is the C++ scope that the registration stands
    in;
    ``condition`` its preprocessor terms. ``macros`` are the macros it was made by, outermost first. ``unresolved`` says
    what of the name could not be worked out.
    """

    kind: str
    role: str
    name: str
    schema: str | None
    key: str | None
    function: FunctionRef | None
    path: str
    line: int
    condition: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()
    unresolved: str | None = None
    target: str | None = None
    class_name: str | None = None
