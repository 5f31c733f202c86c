"""What a compiler says: one translation unit as clang reads it, and the second opinion on a walk that comes of it.

Paths are relative to the source root, with ``/``; a file outside of it is ``<name>``, relative to the include folder
that it was found in. Lines are 1-based.
"""

from __future__ import annotations

from msgspec import Struct

from opwalker.model.places import Span

#: What an edge of a walk can come to. ``ruled out`` is said of one of several candidates that opwalker lists, where
#: clang takes another of them; ``contradicted`` of an edge that opwalker had no doubt about.
PROVED = "proved"
CONTRADICTED = "contradicted"
RULED_OUT = "ruled out"
NOT_CONFIRMED = "not confirmed"


class UnitRequest(Struct, frozen=True):
    """A translation unit to read: ``root`` is absolute, ``path`` relative to it; ``arguments`` are clang's own.

    ``outside`` are absolute include folders that lie outside of the tree, longest first: files in them are named
    relative to these. ``behind`` is C++ text to be read behind the unit's own.
    """

    root: str
    path: str
    arguments: tuple[str, ...]
    outside: tuple[str, ...] = ()
    behind: str = ""


class ClangSymbol(Struct, frozen=True):
    """A function that something refers to; all instances of a template are one.

    ``usr`` is clang's name for it in every unit. ``file``/``line`` are its definition where the unit has one
    (``defined``), else its declaration; ``here`` says that this lies in the tree.
    """

    name: str
    usr: str
    file: str
    line: int
    defined: bool
    here: bool


class ClangInstance(Struct, frozen=True):
    """An instance of a kernel that a place in the tree compiles: ``symbol`` indexes ``ClangUnit.symbols``, ``text`` is
    its template arguments as ``Launch.instances`` has them; None where clang's interface does not tell one of them."""

    file: str
    line: int
    symbol: int
    text: str | None


class ClangFunction(Struct, frozen=True):
    """A definition in the tree: its qualified name, the line of the name, and the lines that it begins and ends on."""

    name: str
    usr: str
    file: str
    line: int
    start_line: int
    end_line: int


class ClangUse(Struct, frozen=True):
    """A use of functions in the tree.

    ``kind`` is ``call``, ``launch`` or ``name`` (the function is named, not called). ``line`` is where the name stands,
    ``start_line`` where the expression begins: for a macro's text, where the macro is used. ``targets`` index
    ``ClangUnit.symbols``. With ``dependent``, they are the candidates that clang has for a call whose arguments depend
    on a template parameter. ``through`` is where the variable is declared that is called or launched. ``end_line`` is
    where a call ends: functions that it passes on may stand on any line up to there.
    """

    kind: str
    name: str
    file: str
    line: int
    start_line: int
    targets: tuple[int, ...] = ()
    dependent: bool = False
    through: tuple[str, int] | None = None
    end_line: int = 0


class ClangValue(Struct, frozen=True):
    """Functions on their way into a variable, or out of a function by ``return``.

    ``into`` is where the variable is declared, None for a return, which stands at ``file``/``line``. ``names`` are the
    functions named as values and ``calls`` those whose results are (both index ``ClangUnit.symbols``), ``variables``
    the places of variables that are read. Up to ``end_line``, what a lambda returns goes the same way.
    """

    into: tuple[str, int] | None
    file: str
    line: int
    names: tuple[int, ...] = ()
    calls: tuple[int, ...] = ()
    variables: tuple[tuple[str, int], ...] = ()
    end_line: int = 0


class ClangMacroUse(Struct, frozen=True):
    """A macro that is used where the tree's own text names it, and the definition that held there."""

    name: str
    file: str
    line: int
    defined_file: str
    defined_line: int


class ClangMacro(Struct, frozen=True):
    """A macro definition in the tree, in the order in which the unit meets them. ``words`` are the names in it."""

    name: str
    file: str
    line: int
    end_line: int
    words: tuple[str, ...] = ()


class ClangUnit(Struct, frozen=True):
    """A translation unit as clang reads it.

    ``missing`` are headers that were not found, as written; ``errors`` counts the errors in the tree's own files,
    ``first_errors`` shows some with their places. ``unread`` says why it could not be read at all. ``cut`` says that
    not every instance of its templates was looked at. ``seconds`` are those of computing that it took.
    """

    path: str
    functions: tuple[ClangFunction, ...] = ()
    symbols: tuple[ClangSymbol, ...] = ()
    uses: tuple[ClangUse, ...] = ()
    values: tuple[ClangValue, ...] = ()
    instances: tuple[ClangInstance, ...] = ()
    macro_uses: tuple[ClangMacroUse, ...] = ()
    macros: tuple[ClangMacro, ...] = ()
    lambdas: tuple[tuple[str, int], ...] = ()
    errors: int = 0
    first_errors: tuple[str, ...] = ()
    error_lines: tuple[tuple[str, int], ...] = ()
    missing: tuple[str, ...] = ()
    seconds: float = 0.0
    clang: str = ""
    cut: bool = False
    unread: str | None = None


class UnitReport(Struct, frozen=True):
    """A unit that was read for a second opinion: ``flags_from`` is the file that its flags come from, ``seconds`` what
    reading it took when it was read."""

    file: str
    flags_from: str | None
    seconds: float
    errors: int = 0
    missing: tuple[str, ...] = ()
    first_errors: tuple[str, ...] = ()
    unread: str | None = None


class ClangEdge(Struct, frozen=True):
    """One edge of a walk and what clang says of it.

    ``kind`` is ``registration``, ``call``, ``launch``, ``instances`` or ``dispatch``; ``what`` names its two ends;
    ``at`` is where it stands. ``says`` is what clang finds there instead, or why it cannot tell; ``found_at`` where
    that is.
    """

    kind: str
    what: str
    at: Span
    status: str
    says: str | None = None
    found_at: Span | None = None


class ClangReport(Struct, frozen=True):
    """A second opinion on a walk: with which clang and headers, what was read, and each edge.

    ``torch`` and ``cuda`` are the versions whose headers were found, None where none were; ``missing`` says in words
    what was not there and what that costs.
    """

    clang: str
    torch: str | None
    cuda: str | None
    units: tuple[UnitReport, ...]
    edges: tuple[ClangEdge, ...]
    proved: int
    contradicted: int
    ruled_out: int
    not_confirmed: int
    missing: tuple[str, ...] = ()
