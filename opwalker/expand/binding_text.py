"""Arguments of registration calls, as values: string literals joined, dispatch keys named, functions unwrapped."""

from __future__ import annotations

import re

from opwalker.facts.cpp_brackets import last_word, match_angle, match_bracket, split_commas
from opwalker.model.binding import FunctionRef
from opwalker.notation.regex import Regex

_LITERAL = Regex(
    r'\s*(?:u8|[uUL])?(?:R"(?P<mark>[^()\\\s]{0,16})\((?P<raw>[\s\S]*?)\)(?P=mark)"|"(?P<plain>(?:[^"\\]|\\[\s\S])*)")'
)
_ESCAPE = Regex(r"\\(\r?\n|x[0-9a-fA-F]+|[0-7]{1,3}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_SELECTIVE = Regex(
    r"\s*(?:TORCH_SELECTIVE_(?:SCHEMA|NAME)|(?:torch|c10)::(?:schema|jit::parseSchema))\s*\(([\s\S]*)\)\s*\Z"
)
_KEY = Regex(r"(?:(?:c10|at|torch|torch::headeronly)::)?(?:DispatchKey::(\w+)|k([A-Z]\w*)|DeviceType::(\w+))\s*\Z")
_WRAPPERS = frozenset("TORCH_FN TORCH_FN_TYPE TORCH_BOX TORCH_SELECTIVE_FN".split())
_DISPATCH = Regex(r"(?:torch|c10)?:{0,2}dispatch\s*\(")
#: Calls that make a callable object of the function they are given.
_CALLABLE = Regex(
    r"(?:::)?(?:\w+::)*(?:wrap_pybind_function\w*|cpp_function|function|CppFunction|Function::From\w+|TypedFunction)\s*(<|\()"
)
_OPTIONS = Regex(r"(?:\w+::)*options\s*\(\s*\)[\s\S]*?\.\s*(?:template\s+)?(?:catchAllK|k)ernel\s*<")
_CAST = Regex(r"(?:static_cast|reinterpret_cast|const_cast)\s*<")
_OVERLOAD_CAST = Regex(r"(?:\w+::)*overload_cast\s*<")
_KEYS = {"Cuda": "CUDA", "HIP": "CUDA"}


def _unescape(text: str) -> str:
    def replace(match: re.Match) -> str:
        body = match.group(1)
        if body[0] == "\n" or body[0] == "\r":
            return ""
        if body in _ESCAPES:
            return _ESCAPES[body]
        if body[0] == "x":
            return chr(int(body[1:], 16) & 0x10FFFF)
        if body[0].isdigit():
            return chr(int(body, 8))
        return body

    return _ESCAPE.sub(replace, text)


def literal(text: str) -> str | None:
    """The value of one or several adjacent string literals; None when anything else stands there."""
    at = 0
    parts: list[str] = []
    while at < len(text):
        match = _LITERAL.match(text, at)
        if match is None:
            break
        raw = match.group("raw")
        parts.append(raw if raw is not None else _unescape(match.group("plain")))
        at = match.end()
    if not parts or text[at:].strip():
        return None
    return "".join(parts)


def join_literals(text: str) -> str | None:
    """As ``literal``, also through ``TORCH_SELECTIVE_SCHEMA(…)`` and parentheses; white space normalised."""
    match = _SELECTIVE.match(text)
    while match:
        text = match.group(1)
        parts = split_commas(text)
        text = text[parts[0][0] : parts[0][1]] if parts else text
        match = _SELECTIVE.match(text)
    text = text.strip()
    while text.startswith("(") and match_bracket(text, 0) == len(text):
        text = text[1:-1].strip()
    value = literal(text)
    return " ".join(value.split()) if value is not None else None


def key_name(text: str) -> str | None:
    """The dispatch key that an argument names (``torch::kCUDA``, ``c10::DispatchKey::Meta``, bare ``CUDA``)."""
    stripped = "".join(text.split())
    match = _KEY.match(stripped)
    if match:
        name = next(g for g in match.groups() if g)
        return _KEYS.get(name, name)
    if re.fullmatch(
        r"(?:CUDA|CPU|Meta|HIP|XPU|MPS|PrivateUse1|SparseCUDA|QuantizedC\w+|Composite\w+|Autograd\w*|Autocast\w*|"
        r"CatchAll|BackendSelect|ADInplaceOrView|Functionalize|Python|Sparse\w+|Nested\w+|MTIA|HPU|IPU|VE|"
        r"Vulkan|Metal|Lazy|XLA|FPGA|ORT|MAIA)",
        stripped,
    ):
        return stripped
    return None


def function_ref(text: str, offset: int | None, plain: str | None) -> tuple[FunctionRef | None, str | None]:
    """The function that an argument names and the dispatch key that wraps it, if any.

    ``offset`` is where the argument starts in its file and ``plain`` that file's blanked text: needed for lambdas.
    """
    key: str | None = None
    arity: int | None = None
    text = text.strip()
    for _ in range(8):
        start = text
        text = text.lstrip("&+ \t\n")
        while text.startswith("(") and match_bracket(text, 0) == len(text):
            text = text[1:-1].strip()
        dispatch = _DISPATCH.match(text)
        if dispatch and match_bracket(text, dispatch.end() - 1) == len(text):
            inner = text[dispatch.end() : -1]
            parts = [inner[a:b].strip() for a, b in split_commas(inner)]
            if len(parts) == 2:
                key = key_name(parts[0]) or key
                text = parts[1]
        cast = _CAST.match(text) or _OVERLOAD_CAST.match(text)
        if cast:
            close = match_angle(text, cast.end() - 1)
            if close > 0:
                arity = _cast_arity(text[cast.end() : close - 1], bool(_OVERLOAD_CAST.match(text)))
                rest = text[close:].strip()
                if rest.startswith("("):
                    text = rest[1 : match_bracket(rest, 0) - 1].strip()
                    parts = split_commas(text)
                    text = text[parts[0][0] : parts[0][1]].strip() if parts else text
                elif rest.startswith("{}("):
                    text = rest[3:-1].strip()
        c_cast = re.match(r"\(\s*[\w:<>,\s*&]+\(\s*(?:[\w:]+::)?\*\s*\)\s*\([^)]*\)\s*\)\s*(?=[&\w])", text)
        if c_cast:
            arity = _cast_arity(c_cast.group()[1:-1], False)
            text = text[c_cast.end() :]
        wrapper = re.match(r"(\w+)\s*\(", text)
        if wrapper and wrapper.group(1) in _WRAPPERS and match_bracket(text, wrapper.end() - 1) == len(text):
            text = text[wrapper.end() : -1].strip()
        made = re.match(r"(?:\w+::)*(?:makeFromBoxedFunction|makeFromUnboxedFunction)\s*(<|\()", text)
        if made:
            text = text[made.end() :].rstrip("()> ").strip()
        boxed = re.match(r"(?:\w+::)*(?:boxer|Boxer|TORCH_BOX_FN)\s*<", text)
        if boxed:
            close = match_angle(text, boxed.end() - 1)
            if close > 0:
                text = text[boxed.end() : close - 1].strip()
        text = _unwrapped(text)
        options = _OPTIONS.match(text)
        if options:
            close = match_angle(text, options.end() - 1)
            rest = text[close:].strip() if close > 0 else ""
            if rest.startswith("("):
                last = split_commas(text, options.end(), close - 1)[-1]
                key = key_name(rest[1 : match_bracket(rest, 0) - 1]) or key
                text = text[last[0] : last[1]].strip()
        if text == start:
            break
    if text.startswith("["):
        return _lambda(text, offset, plain), key
    match = re.match(r"(?:::)?[A-Za-z_]\w*(?:\s*::\s*~?[A-Za-z_]\w*)*", text)
    if match is None:
        return None, key
    rest = text[match.end() :].strip()
    template = owner = None
    name = "".join(match.group().split())
    if rest.startswith("<"):
        close = match_angle(rest, 0)
        if close < 0:
            return None, key
        template = " ".join(rest[1 : close - 1].split())
        tail = rest[close:].strip()
        member = re.match(r"::\s*(?:template\s+)?(\w+)\s*(?:<(.*)>)?\s*\Z", tail, re.DOTALL)
        if member:
            owner = f"{name}<{template}>"
            name, template, tail = f"{name}::{member.group(1)}", member.group(2), ""
        rest = tail
    if (
        rest
        or name.split("::")[-1] in ("nullptr", "makeFallthrough", "arg", "true", "false")
        or "_RegisterOrVerify" in name
    ):
        return None, key
    return FunctionRef(name, template, arity, owner=owner), key


def _unwrapped(text: str) -> str:
    """What ``cpp_function(f)`` and its kin are made of; the text itself where it is none of them."""
    match = _CALLABLE.match(text)
    if match is None:
        return text
    opened = match.end() - 1
    if text[opened] == "<":
        close = match_angle(text, opened)
        opened = close + len(text[close:]) - len(text[close:].lstrip()) if close > 0 else -1
    if opened < 0 or text[opened : opened + 1] != "(" or match_bracket(text, opened) != len(text):
        return text
    parts = split_commas(text, opened + 1, len(text) - 1)
    return text[parts[0][0] : parts[0][1]].strip() if parts else text


def _cast_arity(text: str, is_list: bool) -> int | None:
    """The parameter count in a function pointer type, or in the argument list of ``overload_cast<…>``."""
    if is_list:
        return len(split_commas(text))
    opened = text.rfind("(")
    if opened < 0:
        return None
    close = match_bracket(text, opened)
    inside = text[opened + 1 : close - 1].strip() if close > 0 else ""
    return 0 if inside in ("", "void") else len(split_commas(inside))


def _lambda(text: str, offset: int | None, plain: str | None) -> FunctionRef:
    if offset is None or plain is None:
        return FunctionRef("lambda")
    at = plain.find("[", offset)
    end = match_bracket(plain, at)
    brace = plain.find("{", end)
    close = match_bracket(plain, brace) if brace >= 0 else -1
    return FunctionRef("lambda", lambda_span=(at, close) if close > 0 else None)


__all__ = ["function_ref", "join_literals", "key_name", "last_word", "literal"]
