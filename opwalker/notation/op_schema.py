"""Operator schemas, text to value and back.

In: the text that a registration gives the dispatcher, ``"ns::name.overload(Tensor! out, int x=1) -> ()"``. Out: an
``OpSchema`` (``parse_schema``), and the text again (``print_schema``), equal but for white space. A text that the
dispatcher would refuse raises ``SchemaError`` with its place. What is not done here: nothing is known of the C++ side
(see ``cpp_signature``), a name without ``(`` is no schema, and custom classes are not looked up.

The form is in ``grammars/op_schema.lark``; lark and the grammar are loaded at the first parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, cast

from opwalker.model.schema import AliasSet, OpSchema, SchemaArgument, SchemaReturn, SchemaType
from opwalker.model.walk import Argument, Returned
from opwalker.notation import schema_types
from opwalker.notation.readings import SCHEMAS
from opwalker.notation.schema_text import TOKEN, normalise_schema_text, print_alias, print_schema, print_type

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.exceptions import UnexpectedInput

__all__ = [
    "SchemaError",
    "arguments_of",
    "normalise_schema_text",
    "parse_schema",
    "print_alias",
    "print_schema",
    "print_type",
    "returns_of",
]

#: What the grammar's terminals are called in an error message.
_WORDS = {
    "OP_NAME": "an operator name", "NAME": "a name", "CLASS": "a type", "DICT": "a type", "WRAPPER": "a type",
    "LPAR": "`(`", "RPAR": "`)`", "COMMA": "`,`", "EQUAL": "`=`", "STAR": "`*`", "OPTIONAL": "`?`", "LIST": "`[]`",
    "LENGTH": "a length", "BARE_ALIAS": "`!`", "ALIAS_SET": "an alias set", "DEFAULT": "a default value",
    "ARROW": "`->`", "DOTS": "`...`", "$END": "the end",
}  # fmt: skip


class SchemaError(ValueError):
    """A text that is no operator schema. ``line`` and ``column`` are 1-based; ``str`` gives the message alone."""

    def __init__(self, message: str, column: int, line: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.column = column
        self.line = line


def parse_schema(text: str, *, type_variables: bool = True) -> OpSchema:
    """The value of a schema text. Raises ``SchemaError``.

    Accepted is what PyTorch's own reader accepts, with two differences: a type variable is ``t``, ``t1`` or ``tVal``
    (PyTorch takes any lower-case word for one where it takes them at all), and a custom class need not be registered.
    ``type_variables=False`` refuses type variables, as a registration in C++ does. A ``*`` with no argument behind it
    says nothing and is dropped.
    """
    schema = SCHEMAS.reading(text, _parsed)
    if not type_variables:
        _refuse_type_variables(schema, text)
    return schema


def _parsed(text: str) -> OpSchema:
    from lark.exceptions import UnexpectedInput

    try:
        schema = cast("OpSchema", _parser().parse(text))
    except UnexpectedInput as error:
        raise _syntax_error(text, error) from None
    if "\n" in text:
        _refuse_line_breaks(text)
    return schema


def arguments_of(schema: OpSchema) -> tuple[Argument, ...]:
    """The arguments as the JSON shows them: the type without alias sets, the alias set beside it (``"a!"``, ``"a"``,
    ``"a! -> *"``).

    A bare ``!`` is an alias set of its own: it gets the first letter that the schema does not use, in order of
    appearance, just as the dispatcher makes up a name for it.
    """
    names = _fresh_names(schema)
    arguments = []
    for argument in schema.arguments:
        alias, mutated = _alias_fact(argument.type, names)
        optional = bool(argument.type.suffixes) and argument.type.suffixes[-1] == "?"
        text = print_type(argument.type, aliases=False)
        arguments.append(Argument(argument.name, text, mutated, alias, optional, argument.default, argument.kwarg_only))
    return tuple(arguments)


def returns_of(schema: OpSchema) -> tuple[Returned, ...]:
    """The returned values, in the manner of ``arguments_of``."""
    names = _fresh_names(schema)
    for argument in schema.arguments:
        _alias_fact(argument.type, names)
    return tuple(
        Returned(print_type(part.type, aliases=False), part.name, _alias_fact(part.type, names)[0])
        for part in schema.returns
    )


def _alias_fact(type: SchemaType, names: Iterator[str]) -> tuple[str | None, bool]:
    """The text of the alias sets of a type, outermost last, and whether one of them is written to."""
    sets = [alias for _, alias in _aliases_of(type)]
    texts = [f"{next(names)}!" if alias.bare else print_alias(alias)[1:-1] for alias in sets]
    return ", ".join(texts) or None, any(alias.mutated for alias in sets)


def _fresh_names(schema: OpSchema) -> Iterator[str]:
    """``a`` to ``z``, then ``a1``, ``b1``, ... without those that the schema uses itself."""
    used: set[str] = set()
    for part in (*schema.arguments, *schema.returns):
        for _, alias in _aliases_of(part.type):
            used.update(alias.before, alias.after)
    for turn in count():
        for letter in ascii_lowercase:
            name = f"{letter}{turn or ''}"
            if name not in used:
                yield name


@lru_cache(maxsize=1)
def _parser() -> Lark:
    from lark import Lark

    from opwalker import resources

    return Lark(
        resources.text("grammars/op_schema.lark"),
        parser="lalr",
        lexer="contextual",
        transformer=_Builder(),
        propagate_positions=False,
        maybe_placeholders=False,
        cache=resources.parser_cache("op_schema"),
    )


def _fail(token: Token, message: str) -> SchemaError:
    return SchemaError(message, token.column or 1, token.line or 1)


_STAR = "*"
_DOTS = "..."


class _Builder:
    """Makes the value while the text is read: one method for a rule of the grammar, called with the rule's parts."""

    def start(self, parts: list[Any]) -> OpSchema:
        namespace, name, overload = self._split_name(parts[0])
        arguments: list[SchemaArgument] = []
        keyword_only = vararg = False
        for item in parts[1:-1]:
            if vararg:
                raise _fail(parts[0], "`...` must be the last argument")
            if item is _STAR:
                keyword_only = True
            elif item is _DOTS:
                vararg = True
                if any(argument.default is not None for argument in arguments):
                    raise _fail(parts[0], "a schema with `...` cannot have defaults")
            else:
                type, token, default = item
                arguments.append(SchemaArgument(type, str(token), default, keyword_only))
                needs_default = default is None and not keyword_only and not schema_types.may_follow_default(type)
                if needs_default and any(argument.default is not None for argument in arguments):
                    raise _fail(token, f"`{token}` has no default and stands behind an argument that has one")
        returns, returns_tuple, varret = parts[-1] if parts[-1] is not _DOTS else ((), False, True)
        return OpSchema(name, tuple(arguments), returns, namespace, overload, vararg, varret, returns_tuple)

    @staticmethod
    def _split_name(token: Token) -> tuple[str | None, str, str | None]:
        text = re.sub(r"\s+", "", token)
        namespace, colons, rest = text.rpartition("::")
        name, dot, overload = rest.partition(".")
        if overload == "default" or overload.startswith("__"):
            raise _fail(token, f"`{overload}` is reserved and no overload name")
        return namespace if colons else None, name, overload if dot else None

    def star(self, parts: list[Any]) -> str:
        return _STAR

    def dots(self, parts: list[Any]) -> str:
        return _DOTS

    def argument(self, parts: list[Any]) -> tuple[SchemaType, Token, str | None]:
        if len(parts) == 2:
            return parts[0], parts[1], None
        type, name, default = parts
        wrong = schema_types.wrong_default(type, default)
        if wrong:
            raise _fail(default, wrong)
        text = str(default)
        return type, name, text if text[0] in "\"'" else normalise_schema_text(text)

    def returned(self, parts: list[Any]) -> SchemaReturn:
        return SchemaReturn(parts[0], str(parts[1]) if len(parts) > 1 else None)

    def returned_alone(self, parts: list[Any]) -> tuple[tuple[SchemaReturn, ...], bool, bool]:
        return (self.returned(parts),), False, False

    def returned_list(self, parts: list[Any]) -> tuple[tuple[SchemaReturn, ...], bool, bool]:
        if _DOTS in parts[:-1]:
            raise SchemaError("`...` must be the last returned value", 1)
        returns = tuple(part for part in parts if part is not _DOTS)
        return returns, True, len(returns) < len(parts)

    def sized(self, parts: list[Any]) -> SchemaType:
        inner, length, *rest = parts
        added = [re.sub(r"\s+", "", length)]
        aliases = _aliases_of(inner)
        for token in rest:
            if token.type == "OPTIONAL":
                added.append("?")
            else:
                aliases.append((len(inner.suffixes) + 1, _alias_set(token)))
        return _with_aliases(inner.base, (*inner.suffixes, *added), aliases, inner.items)

    def named_type(self, parts: list[Any]) -> SchemaType:
        token = parts[0]
        base = re.sub(r"\s+", "", token) if token.type == "CLASS" else str(token)
        if token.type == "NAME":
            wrong = schema_types.wrong_type(base)
            if wrong:
                raise _fail(token, wrong)
        return _finish_type(base, parts[1:])

    def dict_type(self, parts: list[Any]) -> SchemaType:
        token, key, value, *tail = parts
        if key.suffixes or key.base not in schema_types.DICT_KEYS:
            raise _fail(token, f"`{print_type(key)}` cannot be the key of a Dict")
        return _finish_type("Dict", tail, (key, value))

    def wrapper_type(self, parts: list[Any]) -> SchemaType:
        token = parts[0]
        items = tuple(part for part in parts if isinstance(part, SchemaType))
        if token != "Union" and len(items) > 1:
            raise _fail(token, f"`{token}` takes one type")
        if token == "Union" and len(items) < 2:
            raise _fail(token, "`Union` takes two types or more")
        return _finish_type(str(token), parts[1 + len(items) :], items)

    def tuple_type(self, parts: list[Any]) -> SchemaType:
        items = tuple(part for part in parts if isinstance(part, SchemaType))
        return _finish_type("tuple", parts[len(items) :], items)


def _finish_type(base: str, tail: list[Token], items: tuple[SchemaType, ...] = ()) -> SchemaType:
    """A type from its base and the tokens behind it: suffixes, and alias sets between them."""
    suffixes: list[str] = []
    aliases: list[tuple[int, AliasSet]] = []
    for token in tail:
        if token.type == "OPTIONAL":
            suffixes.append("?")
        elif token.type == "LIST":
            suffixes.append("[]")
        else:
            aliases.append((len(suffixes), _alias_set(token)))
    return _with_aliases(base, tuple(suffixes), aliases, items)


def _aliases_of(type: SchemaType) -> list[tuple[int, AliasSet]]:
    return [] if type.alias is None else [(type.alias_at, type.alias), *type.more_aliases]


def _with_aliases(
    base: str, suffixes: tuple[str, ...], aliases: list[tuple[int, AliasSet]], items: tuple[SchemaType, ...]
) -> SchemaType:
    if not aliases:
        return SchemaType(base, suffixes, items=items)
    (at, alias), *more = aliases
    return SchemaType(base, suffixes, alias, at, items, tuple(more))


@lru_cache(maxsize=256)
def _alias_set_of(text: str) -> AliasSet:
    if text == "!":
        return AliasSet(mutated=True, bare=True)
    before, _, after = re.sub(r"\s+", "", text)[1:-1].partition("->")
    mutated = before.endswith("!")
    return AliasSet(tuple(before.removesuffix("!").split("|")), tuple(after.split("|")) if after else (), mutated)


def _alias_set(token: Token) -> AliasSet:
    return _alias_set_of(str(token))


def _syntax_error(text: str, error: UnexpectedInput) -> SchemaError:
    """Puts a parse error into words: what was expected, what stands there."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    expected: set[str] = set()
    if isinstance(error, UnexpectedCharacters):
        expected = set(error.allowed or ())
    elif isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    words = list(dict.fromkeys(word for name, word in _WORDS.items() if name in expected))
    wanted = f"expected {' or '.join(words[:3])}, " if words else ""
    if at_end:
        stripped = text.rstrip()
        line = stripped.count("\n") + 1
        return SchemaError(f"{wanted}found the end", len(stripped) - (stripped.rfind("\n") + 1) + 1, line)
    position = error.pos_in_stream or 0
    for qualified in re.finditer(r"\w+(?:\s*::\s*\w+)+", text):
        if "(" in text[: qualified.start()] and qualified.start() < position < qualified.end():
            message = schema_types.wrong_type(re.sub(r"\s+", "", qualified.group()))
            return SchemaError(f"{message}", error.column - (position - qualified.start()), error.line)
    found = re.match(r"\w+|->|\S", text[position:])
    return SchemaError(f"{wanted}found `{found.group() if found else ' '}`", error.column, error.line)


def _refuse_line_breaks(text: str) -> None:
    """A line may break inside brackets only; at the ends of the text it does no harm."""
    depth = 0
    end = len(text.rstrip())
    start = len(text) - len(text.lstrip())
    for match in TOKEN.finditer(text, start, end):
        token = match.group()
        if token in ("(", "["):
            depth += 1
        elif token in (")", "]"):
            depth -= 1
        elif match.lastgroup == "blank" and depth == 0 and "\n" in token.replace("\\\n", ""):
            position = match.start() + token.index("\n")
            line_start = text.rfind("\n", 0, position) + 1
            raise SchemaError(
                "a line may break inside brackets only", position - line_start + 1, text.count("\n", 0, position) + 1
            )


def _refuse_type_variables(schema: OpSchema, text: str) -> None:
    pending = [part.type for part in (*schema.arguments, *schema.returns)]
    while pending:
        type = pending.pop(0)
        pending.extend(type.items)
        if schema_types.is_type_variable(type.base):
            place = re.compile(rf"\b{type.base}\b").search(text, text.index("("))
            position = place.start() if place else 0
            line_start = text.rfind("\n", 0, position) + 1
            line = text.count("\n", 0, position) + 1
            raise SchemaError(f"`{type.base}` is a type variable", position - line_start + 1, line)
