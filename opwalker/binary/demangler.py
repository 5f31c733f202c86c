"""A program of its own: mangled C++ names in, one a line; names as ``c++filt`` spells them out, one a line.

An empty line answers what is no C++ name. It needs the standard library alone and is run by ``demangle`` as a file, in
isolation: a name that was made to break the demangler takes nothing else along. Exit status 5: there is no demangler.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys

NO_DEMANGLER = 5
_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1", "libc++abi.dylib")


def find_demangler() -> ctypes._CFuncPtr | None:
    """``__cxa_demangle`` of the C++ runtime library of this machine, None where there is none."""
    for name in (*_LIBRARIES, ctypes.util.find_library("stdc++"), ctypes.util.find_library("c++abi")):
        try:
            found = ctypes.CDLL(name).__cxa_demangle if name else None
        except (OSError, AttributeError):
            continue
        if found is not None:
            found.restype = ctypes.c_void_p
            found.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
            return found
    return None


def main() -> int:
    """Answers the names on stdin, each as soon as it is known."""
    demangle = find_demangler()
    if demangle is None:
        return NO_DEMANGLER
    free = ctypes.CDLL(None).free
    free.argtypes = (ctypes.c_void_p,)
    status = ctypes.c_int()
    for line in sys.stdin.buffer.read().split(b"\n"):
        found = demangle(line, None, None, ctypes.byref(status))
        sys.stdout.buffer.write(ctypes.string_at(found) + b"\n" if found else b"\n")
        sys.stdout.buffer.flush()
        if found:
            free(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
