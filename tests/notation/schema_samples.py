"""Schemas to test with: hypothesis strategies for values, and a comparison with the dispatcher's own spelling."""

from __future__ import annotations

import ast
import re

from hypothesis import strategies as st

from opwalker.model.schema import AliasSet, OpSchema, SchemaArgument, SchemaReturn, SchemaType
from opwalker.notation.op_schema import parse_schema

_KEPT = set(
    "True False None def if else elif for while return and or not in is global import as with assert raise pass break "
    "continue del class".split()
)
names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(lambda name: name not in _KEPT)
alias_names = st.from_regex(r"[a-z][a-z0-9]{0,2}", fullmatch=True).filter(lambda name: name not in _KEPT)
alias_lists = st.lists(alias_names, min_size=1, max_size=3).map(tuple) | st.just(("*",))
alias_sets = st.just(AliasSet(mutated=True, bare=True)) | st.builds(
    AliasSet, before=alias_lists, after=st.just(()) | alias_lists, mutated=st.booleans()
)

#: Base type, and the literals that suit an argument of exactly this type.
_SINGLE = {
    "Tensor": ("None",),
    "int": ("0", "-1", "0x10", "Mean", "long"),
    "SymInt": ("1", "None"),
    "float": ("1.702", "-1e-5", "7.", ".5", "1E+5"),
    "bool": ("True", "False"),
    "str": ('"auto"', "'fp8'", '"a\\"b, c)"', '""'),
    "Scalar": ("1", "0.5", "1j"),
    "ScalarType": ("long", "float32", "bfloat16", "None"),
    "Layout": ("strided",),
    "MemoryFormat": ("contiguous_format",),
    "Device": ('"cuda"',),
    "Generator": ("None",),
    "Any": (),
    "Stream": (),
    "t": (),
    "__torch__.torch.classes.demo.Box": (),
}
_LISTS = {"int": ("[]", "[0,1]", "[0, 1]", "[-1]"), "float": ("[0.5, 1]",), "bool": ("[True, False]",)}


@st.composite
def types(draw: st.DrawFn, depth: int = 2) -> SchemaType:
    """A type of any form but those with a length."""
    kind = draw(st.sampled_from(["name", "name", "name", "tuple", "Dict", "Future", "Union"])) if depth else "name"
    items: tuple[SchemaType, ...] = ()
    base = kind
    if kind == "name":
        base = draw(st.sampled_from(sorted(_SINGLE)))
    else:
        least, most = {"tuple": (0, 3), "Dict": (2, 2), "Future": (1, 1), "Union": (2, 3)}[kind]
        items = tuple(draw(st.lists(types(depth - 1), min_size=least, max_size=most)))
        if kind == "Dict":
            items = (SchemaType(draw(st.sampled_from(["str", "int", "Tensor"]))), items[1])
    suffixes = tuple(draw(st.lists(st.sampled_from(["?", "[]"]), max_size=3)))
    places = [0] if kind in ("name", "Dict") else []
    places += [i for i, suffix in enumerate(suffixes, start=1) if suffix == "[]"]
    aliases = [(place, draw(alias_sets)) for place in places if draw(st.integers(0, 3)) == 0]
    return _with_aliases(base, suffixes, aliases, items)


def _with_aliases(
    base: str, suffixes: tuple[str, ...], aliases: list[tuple[int, AliasSet]], items: tuple[SchemaType, ...]
) -> SchemaType:
    if not aliases:
        return SchemaType(base, suffixes, items=items)
    return SchemaType(base, suffixes, aliases[0][1], aliases[0][0], items, tuple(aliases[1:]))


@st.composite
def sized_types(draw: st.DrawFn) -> SchemaType:
    """``int[3]``, ``int[2](a!)?``."""
    base = draw(st.sampled_from(["int", "SymInt", "float", "bool", "Tensor"]))
    suffixes = (f"[{draw(st.integers(0, 12))}]",) + draw(st.sampled_from([(), ("?",)]))
    aliases = [(1, draw(alias_sets))] if draw(st.integers(0, 3)) == 0 else []
    return _with_aliases(base, suffixes, aliases, ())


def _defaults(type: SchemaType) -> tuple[str, ...]:
    last = type.suffixes[-1] if type.suffixes else ""
    if last == "?":
        return ("None", "1", '"x"')
    if last:
        return _LISTS.get(type.base, ()) if len(type.suffixes) == 1 else ()
    return () if type.items else _SINGLE.get(type.base, ())


@st.composite
def schemas(draw: st.DrawFn) -> OpSchema:
    """A schema that the dispatcher accepts, of any form."""
    arguments: list[SchemaArgument] = []
    positional = draw(st.integers(0, 4))
    seen_default = False
    for index in range(positional + draw(st.integers(0, 3))):
        type = draw(types() | sized_types())
        literals = _defaults(type)
        default = draw(st.sampled_from(literals)) if literals and (seen_default or draw(st.booleans())) else None
        keyword_only = index >= positional
        is_list = bool(type.suffixes) and type.suffixes[-1] != "?"
        if default is None and seen_default and not keyword_only and not is_list:
            continue
        seen_default = seen_default or default is not None
        arguments.append(SchemaArgument(type, draw(names), default, keyword_only))
    returns = tuple(draw(st.lists(st.builds(SchemaReturn, types(1) | sized_types(), st.none() | names), max_size=3)))
    bare = len(returns) == 1 and returns[0].type.base != "tuple" and draw(st.booleans())
    varret = not bare and draw(st.booleans())
    overload = draw(st.none() | names)
    if overload is not None and (overload == "default" or overload.startswith("__")):
        overload = None
    return OpSchema(
        name=draw(names),
        arguments=tuple(arguments),
        returns=returns,
        namespace=draw(st.none() | names),
        overload=overload,
        vararg=not seen_default and draw(st.booleans()),
        varret=varret,
        returns_tuple=not bare and not (varret and not returns),
    )


@st.composite
def spaced(draw: st.DrawFn, text: str) -> str:
    """The text with more and less white space at places where it says nothing."""
    out = []
    quote = ""
    depth = 0
    for before, char in zip(" " + text, text, strict=False):
        if quote:
            quote = "" if char == quote and before != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char in ",()[]!?=|":
            depth += (char in "([") - (char in ")]")
            blanks = [" ", "", "  ", "\t"] + (["\n "] if depth else [])
            out.append(char + draw(st.sampled_from(blanks)))
            continue
        out.append(char)
    return "".join(out)


def dispatcher_value(text: str) -> OpSchema:
    """The value of a schema as the dispatcher prints it: a bare ``!`` reads ``($0! -> )`` there, and in a list of
    optional tensors the alias set has slipped behind the ``?``."""
    text = re.sub(r"\(\$\d+! -> \)", "!", text)
    return parse_schema(re.sub(r"\?(\([^()]*\)|!)\[\]", r"\1?[]", text))


def equal_to_dispatcher(ours: str, theirs: str) -> bool:
    """Whether a schema text means what the dispatcher printed of it: defaults are compared by value, alias sets by
    what they say, and ``-> (Tensor)`` is ``-> Tensor``. A namespace counts if both have one."""
    mine, other = parse_schema(ours), dispatcher_value(theirs)
    if mine.namespace and other.namespace and mine.namespace != other.namespace:
        return False
    return _comparable(mine) == _comparable(other)


def _comparable(schema: OpSchema) -> tuple[object, ...]:
    return (
        schema.name,
        schema.overload or "",
        schema.vararg,
        schema.varret,
        tuple((_plain(a.type), a.name, a.kwarg_only, _literal(a.type, a.default)) for a in schema.arguments),
        tuple((_plain(r.type), r.name) for r in schema.returns),
    )


def _plain(type: SchemaType) -> SchemaType:
    alias = type.alias
    if alias is not None and alias.bare:
        alias = AliasSet(("$",), (), True)
    elif alias is not None:
        alias = AliasSet(tuple(sorted(alias.before)), tuple(sorted(alias.after)), alias.mutated)
    more = tuple((at, AliasSet(("$",), (), True) if a.bare else a) for at, a in type.more_aliases)
    base = {"DeviceIndex": "int", "None": "NoneType"}.get(type.base, type.base)
    return SchemaType(base, type.suffixes, alias, type.alias_at, tuple(map(_plain, type.items)), more)


#: The numbers that stand behind the words of a default.
_WORDS = {"Mean": 1, "strided": 0, "contiguous_format": 0, "float": 6, "long": 4}


def _literal(type: SchemaType, default: str | None) -> object:
    """The default by value, with its kind: ``1.`` is a float, ``1`` for a float argument as well."""
    if default is None:
        return None
    try:
        value = ast.literal_eval(default)
    except (ValueError, SyntaxError):
        value = _WORDS.get(default, default)
    if type.suffixes and type.suffixes[-1][1:-1].isdigit() and not isinstance(value, list):
        value = [value] * int(type.suffixes[-1][1:-1])
    return ("float", value) if isinstance(value, float) or type.base == "float" else ("value", value)
