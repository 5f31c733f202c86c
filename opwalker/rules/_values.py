"""Where a value comes from, and what is known of it before a place: read by the rules about extents and indexes.

In: an expression's text and a site. Out: the terms that it is made of, locals followed back to sizes, parameters and
constants; and the checks before the site that speak of them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence

from opwalker.model.statements import CallText, Routine, Statement
from opwalker.notation.cpp_expression import Expr, parse_expression, print_expression, walk

_WORD = re.compile(r"(?<![\w.>:])[A-Za-z_]\w*(?:(?:\.|->)[A-Za-z_]\w*(?:\((?:[^()]|\([^()]*\))*\))?)*")
_NO_VALUE = frozenset(
    "std min max int int64_t int32_t uint32_t uint64_t size_t unsigned long short static_cast dim3 const auto sizeof"
    " true false nullptr return ceil_div cdiv div_up ceilDiv CEILDIV DIVUP divUp at c10 torch cuda float double"
    " char".split()
)
#: A tensor made of a list of sizes, and the size asked of it.
_MADE = re.compile(r"=?\s*(?:[\w:]+::)?(?:empty|zeros|ones|full|rand|randn)\s*\(\s*\{([^{}]*)\}")
_SIZE = re.compile(r"\w+(?:\.|->)size\((-?\d+)\)")
_CHECK = re.compile(r"\w*(?:CHECK|ASSERT|ENFORCE|REQUIRE|assert|Check|Assert|Require|Enforce)\w*\Z")
#: A check whose name says how its two arguments compare.
_COMPARES = re.compile(r"_(EQ|NE|LT|LE|GT|GE)\Z")
_SIGNS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*|k[A-Z]\w*")
#: Calls that nothing comes behind.
_ENDS = re.compile(r"\b(?:exit|abort|TORCH_CHECK|throw|AT_ERROR|C10_THROW_ERROR)\b")
_LEAVES = frozenset(("return", "throw", "break", "continue"))
_DEEPEST = 8
#: No longer text is worked out: names that are made of each other grow without end.
_LONGEST = 200
_NAME = re.compile(r"\b[A-Za-z_]\w*")
#: Comparisons, and what each is when its sides change places.
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
}


def terms_of(text: str, known: Mapping[str, str]) -> set[str]:
    """What an expression is made of: names without an initialiser in sight, and questions asked of a tensor
    (``x.size(0)``, ``x.numel()``); a local with an initialiser counts with what it is made of, itself too, and a size
    of a tensor that was made here with what it was made of."""
    out: set[str] = set()
    texts = [text]
    for _ in range(_DEEPEST + 1):
        words = {one for held in texts for one in _words_of(held)} - out
        out |= words
        texts = [value for word in sorted(words) for value in _made_of(word, known)]
        if not texts:
            break
    return out


def _words_of(text: str) -> Iterator[str]:
    for found in _WORD.finditer(re.sub(r'"[^"]*"', lambda quoted: " " * len(quoted.group()), text)):
        word = "".join(found.group().split())
        if _head(word) not in _NO_VALUE and not text[found.end() : found.end() + 2].lstrip().startswith("::"):
            yield word


def _made_of(word: str, known: Mapping[str, str]) -> Iterator[str]:
    """The texts of what a word of an expression is made of."""
    value = known.get(_head(word))
    if value is None:
        return
    size = size_made(word, value)
    if size is not None:
        yield size
    if word == _head(word) and not re.match(r"=?\s*\[", value):
        yield value


def _head(word: str) -> str:
    return re.split(r"\.|->", word, maxsplit=1)[0]


def size_made(word: str, value: str) -> str | None:
    """The size that ``word`` asks of a tensor, as its initialiser ``value`` gives it."""
    asked, made = _SIZE.fullmatch(word), _MADE.match(value)
    if asked is None or made is None:
        return None
    sizes, axis = split(made[1]), int(asked[1])
    return sizes[axis] if -len(sizes) <= axis < len(sizes) else None


def checks_before(
    before: Sequence[Statement], around: Sequence[Statement], statement: Statement
) -> Iterator[tuple[str, bool, int]]:
    """``(condition, holds, line)`` of what is known at a statement: conditions of checks, conditions of the branches
    around it, and the opposite of those that were left by an early return or whose other branch it stands in.
    ``holds`` is false for the latter two."""
    for one in before:
        for call in one.calls:
            if _CHECK.match(call.simple) and call.receiver is None and call.arguments:
                yield checked(call), True, call.line
        if one.kind == "if" and one.body and leaves(one.body) and not one.orelse:
            yield one.text, False, one.line
        if one.kind == "if" and any(call for held in one.body for call in held.calls if _CHECK.match(call.simple)):
            yield one.text, False, one.line
    for one, inside in zip(around, (*around[1:], statement), strict=False):
        if one.kind in ("if", "while", "for"):
            yield one.text, not any(inside is other for other in one.orelse), one.line


def checked(call: CallText) -> str:
    """The condition that a check asks for: its first argument, or how the two of ``CHECK_EQ(a, b)`` compare."""
    compares = _COMPARES.search(call.simple)
    if compares is None or len(call.arguments) < 2:
        return call.arguments[0]
    return f"({call.arguments[0]}) {_SIGNS[compares[1]]} ({call.arguments[1]})"


def limits(condition: str, holds: bool, terms: set[str]) -> Iterator[str]:
    """What a condition keeps a value that is made of ``terms`` at or below: the other sides of its comparisons."""
    for found in walk(parse_expression(condition)):
        if found.kind != "binary" or found.text not in _FLIPPED:
            continue
        left, right = found.parts
        for value, limit, sign in ((left, right, found.text), (right, left, _FLIPPED[found.text])):
            if sign in (("<", "<=", "==") if holds else (">", ">=", "!=")):
                if terms_of(print_expression(value), {}) & terms:
                    yield print_expression(limit)


def leaves(body: Sequence[Statement]) -> bool:
    """Whether what follows a block is not reached from its end."""
    last = body[-1]
    if last.kind == "block" and last.body:
        return leaves(last.body)
    return last.kind in _LEAVES or any(_ENDS.search(call.name) for call in last.calls)


def extents(text: str, known: Mapping[str, str]) -> tuple[str, ...]:
    """The axes of a grid or block: of ``dim3(a, b)`` or ``{a, b}`` each, of a ``dim3`` variable those it is made of, of
    anything else the expression itself."""
    plain = text.strip().removeprefix("=").strip()
    for _ in range(3):
        if re.fullmatch(r"\w+", plain) and plain in known:
            value = known[plain].strip().removeprefix("=").strip()
            if not value or not (value[0] in "({" or value.startswith("dim3")):
                break
            plain = value
        else:
            break
    made = re.fullmatch(r"(?:::)?(?:dim3\s*)?[({](.*)[)}]", plain, re.DOTALL)
    return tuple(part.strip() for part in split(made[1])) if made else (plain,)


def split(text: str) -> list[str]:
    """The parts between the commas of the outermost level."""
    out: list[str] = []
    depth = start = 0
    for at, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "<" and re.search(r"\w\Z", text[:at]) and re.match(r"<[\w:, *&]*>", text[at:]):
            depth += 1
        elif char == ">" and depth and re.search(r"<[\w:, *&]*\Z", text[start:at]):
            depth -= 1
        elif char == "," and depth == 0:
            out.append(text[start:at])
            start = at + 1
    return [*out, text[start:]] if text[start:].strip() else out


def is_fixed(routine: Routine, name: str) -> bool:
    """Whether a name is a constant of the build, as far as the routine shows it: a parameter of its template, a
    ``constexpr`` of its own, or a name written as constants are."""
    if "::" in name or _CONSTANT.fullmatch(name) or re.search(rf"\b{re.escape(name)}\b", routine.template or ""):
        return True
    return any(d.name == name and "constexpr" in d.type for one in routine.walk() for d in one.declares)


#: What a scalar takes, in bytes.
_SIZEOF = re.compile(r"\bsizeof\s*\(\s*([\w:]+)\s*\)")
_BYTES = {
    **dict.fromkeys(("char", "bool", "int8_t", "uint8_t", "__nv_fp8_e4m3", "__nv_fp8_e5m2"), "1"),
    **dict.fromkeys(("short", "half", "__half", "__nv_bfloat16", "Half", "BFloat16", "int16_t", "uint16_t"), "2"),
    **dict.fromkeys(("int", "unsigned", "float", "int32_t", "uint32_t", "half2", "__half2"), "4"),
    **dict.fromkeys(("double", "int64_t", "uint64_t", "size_t", "float2", "int2"), "8"),
    **dict.fromkeys(("float4", "int4", "uint4"), "16"),
}


def number_of(text: str, known: Mapping[str, str] | None = None) -> int | None:
    """The value of a constant expression of whole numbers; None for anything else."""
    plain = re.sub(r"(?<=\d)[uUlL]+\b|'", "", text.strip().removeprefix("=").strip())
    for _ in range(4):
        if known is None or len(plain) > _LONGEST or not any(one in known for one in _NAME.findall(plain)):
            break
        plain = _NAME.sub(lambda found: _opened(found.group(), known), plain)
    plain = _SIZEOF.sub(lambda found: _BYTES.get(found[1].rsplit("::", 1)[-1], found.group()), plain)
    return _whole(parse_expression(plain)) if len(plain) <= _LONGEST else None


def _opened(name: str, known: Mapping[str, str]) -> str:
    """A name, or in parentheses what it was initialised with."""
    if name not in known:
        return name
    value = known[name].strip().removeprefix("=").strip()
    if re.fullmatch(r"\((.*)\)|\{(.*)\}", value):
        value = value[1:-1]
    return f"({value})"


def _whole(expr: Expr) -> int | None:
    if expr.kind == "number":
        return int(expr.text, 0) if re.fullmatch(r"0[xX][\da-fA-F]+|\d+", expr.text) else None
    parts = [_whole(one) for one in expr.parts]
    if any(one is None for one in parts):
        return None
    if expr.kind == "cast" and len(parts) == 1:
        return parts[0]
    if expr.kind == "unary" and expr.text == "-":
        return -parts[0]
    if expr.kind != "binary" or expr.text not in _OPERATORS:
        return None
    left, right = parts
    if (expr.text in "/%" and not right) or (expr.text == "<<" and not 0 <= right < 64):
        return None
    return _OPERATORS[expr.text](left, right)
