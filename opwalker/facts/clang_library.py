"""The clang library as installed: whether it is there, which one, and its functions that the Python bindings leave out.

In: nothing. Out: a stamp of the installed library (cheap, without loading it) and the loaded bindings. Which package
brings them does not matter: ``libclang`` and its successors all give the module ``clang.cindex``.
"""

from __future__ import annotations

import importlib.util
import os
from ctypes import CFUNCTYPE, POINTER, byref, c_int, c_uint, c_void_p, cast, py_object
from functools import cache
from typing import Any

#: What a user does about a missing library.
INSTALL = "install the package libclang, as by: pip install 'opwalker[clang]'"


#: ``CXPrintingPolicy_TerseOutput``.
_TERSE = 17


class ClangMissing(Exception):
    """The library is not installed or cannot be loaded; the text says which, and what to do."""


def stamp() -> str:
    """What tells one installed library from another: its file, size and time. Raises ClangMissing."""
    try:
        found = importlib.util.find_spec("clang.cindex")
    except ImportError:
        found = None
    if found is None or not found.origin:
        raise ClangMissing(f"clang is not installed; {INSTALL}")
    parts = [f"{found.origin}:{os.stat(found.origin).st_size}"]
    native = os.path.join(os.path.dirname(found.origin), "native")
    for name in sorted(os.listdir(native)) if os.path.isdir(native) else ():
        if "clang" in name:
            state = os.stat(os.path.join(native, name))
            parts.append(f"{name}:{state.st_size}:{state.st_mtime_ns}")
    return ";".join(parts)


@cache
def load() -> Any:
    """The bindings, with the library loaded. Raises ClangMissing."""
    try:
        from clang import cindex
    except ImportError as error:
        raise ClangMissing(f"clang is not installed ({error}); {INSTALL}") from error
    try:
        library = cindex.conf.lib
    except cindex.LibclangError as error:
        text = str(error).split(". To provide")[0]
        raise ClangMissing(f"clang's bindings are there, but not its library ({text}); {INSTALL}") from error
    place = [cindex.SourceLocation, POINTER(c_void_p), POINTER(c_uint), POINTER(c_uint), POINTER(c_uint)]
    library.clang_getFileLocation.argtypes = place
    library.clang_getFileLocation.restype = None
    library.clang_getClangVersion.restype = cindex._CXString
    library.clang_getCursorPrintingPolicy.argtypes = [cindex.Cursor]
    library.clang_getCursorPrintingPolicy.restype = c_void_p
    library.clang_PrintingPolicy_setProperty.argtypes = [c_void_p, c_int, c_uint]
    library.clang_PrintingPolicy_setProperty.restype = None
    library.clang_PrintingPolicy_dispose.argtypes = [c_void_p]
    library.clang_PrintingPolicy_dispose.restype = None
    library.clang_getCursorPrettyPrinted.argtypes = [cindex.Cursor, c_void_p]
    library.clang_getCursorPrettyPrinted.restype = cindex._CXString
    return cindex


@cache
def resources() -> str | None:
    """The folder of clang's own headers where the package brings them, None where it does not."""
    found = importlib.util.find_spec("clang.cindex")
    folder = os.path.join(os.path.dirname(found.origin), "native", "resource") if found and found.origin else ""
    return folder if os.path.isfile(os.path.join(folder, "include", "stddef.h")) else None


def version() -> str:
    """What the loaded library says of itself (``"clang version 18.1.1"``)."""
    made = load().conf.lib.clang_getClangVersion()
    return " ".join(made.spelling.decode(errors="replace").split("(")[0].split())


def printed(cursor: Any) -> str:
    """The head of a declaration as clang prints it, without its body."""
    library = load().conf.lib
    policy = library.clang_getCursorPrintingPolicy(cursor)
    try:
        library.clang_PrintingPolicy_setProperty(policy, _TERSE, 1)
        return library.clang_getCursorPrettyPrinted(cursor, policy).spelling.decode(errors="replace")
    finally:
        library.clang_PrintingPolicy_dispose(policy)


def visitor_type() -> Any:
    """The type of function that is called for each cursor of a visit."""
    cursor = load().Cursor
    return CFUNCTYPE(c_int, cursor, cursor, py_object)


class Places:
    """Where things stand: a macro's text where the macro is used, a macro's argument where it is written."""

    def __init__(self, root: str, outside: tuple[str, ...]) -> None:
        self._cindex = load()
        self._locate = self._cindex.conf.lib.clang_getFileLocation
        self._file = c_void_p()
        self._line = c_uint()
        self._rest = (c_uint(), c_uint())
        self._arguments = (byref(self._file), byref(self._line), *(byref(one) for one in self._rest))
        self._root = os.path.join(os.path.realpath(root), "")
        self._outside = outside
        self._names: dict[int | None, tuple[str, bool]] = {None: ("", False)}

    def of(self, location: Any) -> tuple[int | None, int]:
        """``(handle of the file, line)`` of a location."""
        self._locate(location, *self._arguments)
        return self._file.value, self._line.value

    def named(self, handle: int | None) -> tuple[str, bool]:
        """A file's name as opwalker gives it, and whether it lies in the tree."""
        found = self._names.get(handle)
        if found is None:
            file = self._cindex.File(cast(handle, self._cindex.c_object_p))
            found = self._names[handle] = self._name(file.name)
        return found

    def _name(self, path: str) -> tuple[str, bool]:
        full = os.path.normpath(path)
        if full.startswith(self._root):
            return full[len(self._root) :].replace(os.sep, "/"), True
        for folder in self._outside:
            if full.startswith(folder):
                return f"<{full[len(folder) :].lstrip(os.sep)}>", False
        return f"<{os.path.basename(full)}>", False
