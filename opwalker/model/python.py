"""What one Python file says about ops: calls of ``torch.ops``, registrations, functions and who calls them."""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.source import Problem

#: Marks a module that is compiled from the tree among the namespaces of ``torch.ops``: ``torch.ops.@module.function``.
COMPILED = "@"


class PyImport(Struct, frozen=True):
    """One bound name. ``from a.b import c as d`` gives module ``a.b``, name ``c``, alias ``d``; ``import a.b as d``
    gives module ``a.b``, name None. ``level`` counts leading dots; a star import has name ``"*"``. ``scope`` is the
    qualname of the function that the import stands in, None at module level; there, ``until`` is the last line of the
    block that it stands in (0 where that is not known)."""

    module: str
    name: str | None
    alias: str
    level: int
    line: int
    scope: str | None = None
    until: int = 0


class PyFunction(Struct, frozen=True):
    """A function or method: ``qualname`` is ``Class.method`` or nested ``outer.inner``. ``parameters`` are
    ``(name, annotation text or None, default text or None, kind)`` with kind ``posonly``, ``pos``, ``kwonly``,
    ``vararg``, ``kwarg``; they and ``returns`` are read only where ``signed`` is true. ``method_of`` is the qualname
    of the class whose body it stands in."""

    qualname: str
    line: int
    end_line: int
    parameters: tuple[tuple[str, str | None, str | None, str], ...] = ()
    returns: str | None = None
    decorators: tuple[str, ...] = ()
    method_of: str | None = None
    signed: bool = False


class PyClass(Struct, frozen=True):
    """A class with the texts of its bases and the names of the methods that its own body defines."""

    qualname: str
    line: int
    bases: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


class PyOpCall(Struct, frozen=True):
    """A use of an op: ``namespace``/``op``/``overload``; ``function`` is the qualname around it, None at module level.

    ``line`` is where the text starts; ``text`` is how the op is spelt there, which may be an alias. ``called`` is
    false where the op is only handed on (an argument, a stored object) and not called.
    """

    namespace: str
    op: str
    overload: str | None
    line: int
    function: str | None
    text: str
    called: bool = True


class PyCall(Struct, frozen=True):
    """Any other call, by the dotted text of its callee (``ops.rms_norm``, ``self.run``); ``function`` is around it."""

    callee: str
    line: int
    function: str | None


class PyAlias(Struct, frozen=True):
    """A name that stands for a namespace or an op: ``target`` is spelt from the root (``torch.ops._C.rms_norm``).

    ``scope`` is the qualname of the function or class that binds it, None at module level.
    """

    name: str
    target: str
    scope: str | None
    line: int


class PyExpr(Struct, frozen=True):
    """An expression, as far as the flow of a registration needs it.

    ``kind`` and what ``text``/``items`` then hold:
    ``name`` text · ``attr`` text is the attribute, items the object · ``call`` items are callee and arguments ·
    ``keyword`` text is the name, items the value · ``star``/``dstar`` items the value · ``str`` text is the value ·
    ``const`` text as written (numbers, ``None``, ``True``) · ``add``/``or``/``and``/``is``/``isnot``/``in``/``notin``/
    ``eq``/``ne`` items left and right · ``not`` · ``ifexp`` items condition, then, else · ``index`` items object, key ·
    ``seq`` (list, tuple or set) items · ``dict`` items alternate key, value · ``fstring`` items the parts ·
    ``lambda`` text · ``other`` text as written.
    """

    kind: str
    text: str = ""
    items: tuple[PyExpr, ...] = ()


class PyGuard(Struct, frozen=True):
    """A condition that a step stands under, and which way it must come out. ``kind`` is ``if`` or ``for``;
    a loop's ``target`` is its variable and ``test`` what it runs over."""

    test: PyExpr
    wanted: bool = True
    kind: str = "if"
    target: str | None = None
    text: str = ""


class PyStep(Struct, frozen=True):
    """One step of the flow that registrations go through.

    ``kind``: ``assign`` (``target`` is a name or ``self.x``) · ``return`` · ``call`` (an expression statement) ·
    ``decorate`` (``target`` is the decorated function's qualname, ``value`` one decorator). ``scope`` is the qualname
    of the function or class that it stands in, None at module level; ``line`` to ``end_line`` is the text of the step.
    """

    kind: str
    target: str | None
    value: PyExpr
    scope: str | None
    line: int
    end_line: int
    guards: tuple[PyGuard, ...] = ()


class PyForeign(Struct, frozen=True):
    """A C function reached through ``ctypes``: its exported ``name``, where it is named, and the function around it."""

    name: str
    line: int
    function: str | None


class PyLight(Struct, frozen=True):
    """The cheap facts of every Python file: what it imports and whether it must be read in full.

    ``imports`` are the import statements, each on one line with single spaces and without brackets. A statement that
    stands in a docstring may be among them. ``builds`` says that the file may compile C++ or CUDA sources,
    ``extensions`` are the modules that it may make of them.
    """

    imports: tuple[str, ...] = ()
    mentions_ops: bool = False
    problems: tuple[Problem, ...] = ()
    builds: bool = False
    extensions: tuple[str, ...] = ()


class PyFacts(Struct, frozen=True):
    """The full facts of a Python file that matters.

    ``functions``, ``classes`` and ``imports`` are those that the other facts speak of, not all of the file.
    ``watched`` are the names that the file was searched for on behalf of other files.
    """

    imports: tuple[PyImport, ...] = ()
    functions: tuple[PyFunction, ...] = ()
    classes: tuple[PyClass, ...] = ()
    op_calls: tuple[PyOpCall, ...] = ()
    calls: tuple[PyCall, ...] = ()
    aliases: tuple[PyAlias, ...] = ()
    steps: tuple[PyStep, ...] = ()
    foreign: tuple[PyForeign, ...] = ()
    watched: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
