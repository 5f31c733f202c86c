"""The text of an operator schema: printing the value, and white space made canonical.

In: an ``OpSchema``, a part of one, or a text. Out: text. ``print_schema`` is the inverse of ``op_schema.parse_schema``.
Nothing is checked here, and lark is not needed.
"""

from __future__ import annotations

import re
from functools import lru_cache

from opwalker.model.schema import AliasSet, OpSchema, SchemaType
from opwalker.notation.regex import Regex

#: The tokens of a schema text. White space, continued lines and comments are one token.
TOKEN = Regex(
    r"""(?P<blank>(?:\s|\\\n|\#[^\n]*)+)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<arrow>->)
      | (?P<word>\.\.\.|[A-Za-z_]\w*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\w*|\*)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)


def print_schema(schema: OpSchema) -> str:
    """The text of a schema: single blanks, defaults as they were written."""
    name = f"{schema.namespace}::{schema.name}" if schema.namespace else schema.name
    if schema.overload is not None:
        name += f".{schema.overload}"
    items: list[str] = []
    keyword_only = False
    for argument in schema.arguments:
        if argument.kwarg_only and not keyword_only:
            items.append("*")
            keyword_only = True
        default = "" if argument.default is None else f"={argument.default}"
        items.append(f"{print_type(argument.type)} {argument.name}{default}")
    if schema.vararg:
        items.append("...")
    return f"{name}({', '.join(items)}) -> {_print_returns(schema)}"


def print_type(type: SchemaType, aliases: bool = True) -> str:
    """The text of a type; without ``aliases`` the alias sets are left out at every depth."""
    base = type.base
    if type.base == "tuple" or type.items:
        head = "" if type.base == "tuple" else type.base
        base = f"{head}({', '.join(print_type(item, aliases) for item in type.items)})"
    places: dict[int, str] = {}
    if aliases and type.alias is not None:
        places[type.alias_at] = print_alias(type.alias)
        places.update((at, print_alias(alias)) for at, alias in type.more_aliases)
    return base + places.get(0, "") + "".join(s + places.get(i, "") for i, s in enumerate(type.suffixes, start=1))


def print_alias(alias: AliasSet) -> str:
    """The text of an alias set with its brackets, ``"(a! -> *)"``, or ``"!"``."""
    if alias.bare:
        return "!"
    after = f" -> {'|'.join(alias.after)}" if alias.after else ""
    return f"({'|'.join(alias.before)}{'!' if alias.mutated else ''}{after})"


@lru_cache(maxsize=4096)
def normalise_schema_text(text: str) -> str:
    """The text with its white space as ``print_schema`` writes it; strings stay as they are, comments go.

    Inside ``[0,1]`` a blank behind a comma stays if there was one. A text that is no schema is normalised all the
    same: nothing is checked.
    """
    out: list[str] = []
    before, blank, in_list = "", False, False
    for match in TOKEN.finditer(text):
        token = match.group()
        if match.lastgroup == "blank":
            blank = True
            continue
        if out and _blank_between(before, token, blank, in_list):
            out.append(" ")
        out.append(token)
        in_list = (in_list or token == "[") and token != "]"
        before, blank = token, False
    return "".join(out)


def _blank_between(before: str, token: str, written: bool, in_list: bool) -> bool:
    """Whether a blank stands between two tokens of which neither is white space."""
    if before == "->" or token == "->":
        return True
    if token[0] in "),]?!=[|:" or before in tuple("([=|:-") or "." in (before, token):
        return False
    if before == ",":
        return written or not in_list
    if token == "(":
        return False
    if token[0].isalnum() or token[0] in "_*.'\"-":
        return True
    return written


def _print_returns(schema: OpSchema) -> str:
    texts = [print_type(r.type) + (f" {r.name}" if r.name else "") for r in schema.returns]
    if schema.varret:
        texts.append("...")
    if schema.returns_tuple or len(texts) != 1:
        return f"({', '.join(texts)})"
    return texts[0]
