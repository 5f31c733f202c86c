"""A file's text as HTML lines: comments, strings, numbers and keywords marked, every character escaped.

Comes in: text and language. Goes out: one piece of HTML a line. It reads for the eye, not for meaning: what it marks
wrong is still shown right.
"""

from __future__ import annotations

import re
from html import escape

_CPP_WORDS = (
    "alignas auto bool break case catch char class const constexpr consteval continue decltype default delete do double"
    " else enum explicit extern false float for friend goto if inline int long mutable namespace new noexcept nullptr"
    " operator private protected public register requires return short signed sizeof static static_assert struct switch"
    " template this thread_local throw true try typedef typename union unsigned using virtual void volatile while"
    " __global__ __device__ __host__ __shared__ __constant__ __restrict__ __launch_bounds__ __forceinline__"
)
_PYTHON_WORDS = (
    "and as assert async await break class continue def del elif else except False finally for from global if import in"
    " is lambda None nonlocal not or pass raise return True try while with yield"
)
_CPP = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<string>R"(?P<d>[^\s()\\]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\')'
    r"|(?P<directive>(?<![^\n])[ \t]*\#(?:\\\n|[^\n])*)"
    rf"|(?P<word>\b(?:{'|'.join(_CPP_WORDS.split())})\b)"
    r"|(?P<number>\b\d[\w.']*)",
    re.DOTALL,
)
_PYTHON = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r'|(?P<string>"""(?:\\.|.)*?"""|\'\'\'(?:\\.|.)*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    rf"|(?P<word>\b(?:{'|'.join(_PYTHON_WORDS.split())})\b)"
    r"|(?P<number>\b\d[\w.]*)",
    re.DOTALL,
)


def highlighted(text: str, path: str) -> list[str]:
    """HTML of each line of ``text``; how it reads goes by the file's suffix."""
    pattern = _PYTHON if path.endswith((".py", ".pyi")) else _CPP
    out: list[str] = [""]

    def put(piece: str, kind: str | None) -> None:
        for number, line in enumerate(piece.split("\n")):
            if number:
                out.append("")
            if line:
                shown = escape(line.rstrip("\r"), quote=False)
                out[-1] += f'<i class="{kind}">{shown}</i>' if kind else shown

    at = 0
    for found in pattern.finditer(text):
        put(text[at : found.start()], None)
        put(found.group(), next(name for name, value in found.groupdict().items() if value is not None and name != "d"))
        at = found.end()
    put(text[at:], None)
    if len(out) > 1 and not out[-1]:
        out.pop()
    return out
