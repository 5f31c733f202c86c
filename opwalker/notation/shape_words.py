"""Whether what has the form of a shape is one: the words that tell dimensions from code, intervals and asides.

In: the dimensions of a candidate and the text on both sides of it in the comment. Out: yes or no, and the element type
named beside it. A shape taken for prose costs a reader one shape; prose taken for a shape tells him something wrong.
"""

from __future__ import annotations

import re

from opwalker.notation.regex import Regex

#: Parts of words that name an extent.
_EXTENT = Regex(
    r"batch|head|dim|tok|seq|len|size|hid|rows|cols|chan|group|block|blk|expert|topk|width|height|vocab|page|slot|layer"
    r"|rank|state|step|count|num|max|req|beam|split|part|window|chunk|tile|elem|byte|feature|inter|embed|depth|node|world"
    r"|sample|class|bucket|^n[a-z]+s$|^nb(?-i:[A-Z])",
    re.IGNORECASE,
)
#: Words that stand in brackets in comments and are no extent: directions, asides, types, values.
_NO_EXTENT = frozenset(
    "in out inout input output inputs outputs optional default defaults note todo fixme xxx hack bug see required "
    "deprecated unused nullable null none nullptr true false this self const auto void int float double half bool char "
    "long short unsigned signed string size_t bytes elements inclusive exclusive yes no on off etc and or not if else "
    "for while return sizeof device host read write readonly private internal public reserved ignored begin end first "
    "last lo hi low high key value".split()
)
#: Vector and scalar types, which people multiply: ``__half x 2``.
_TYPE = Regex(r"__\w+|\w*b?float\d+\w*|\w*_t|\w*[ef]p?\d+_?e?\d*m?\d*|u?int\d+")
#: Names of a place and not of an extent.
_INDEX = Regex(
    r"[ijxyz]|[a-z][0-9]|row|col|column|idx|index|id|tid|lane|offset|off|ptr|\w+_(?:id|idx|index|ptr|start|end|begin|off)"
)
#: Words before a bracket that make it an interval, a place, a reference or a list of other numbers.
_OTHER_WORDS = frozenset(
    "in range ranges interval between from within to at index indices coord coords coordinate see cf ref is are by "
    "stride strides offset offsets grid block cluster swizzle = < > <= >= == ∈".split()
)
#: Words that begin a line of prose before a shape and name nothing.
_JOINING = frozenset("and or the a of with for as each one if logical contiguous optional shape size device".split())
_SHAPE_LEAD = Regex(
    r"(?:^|[\s,(])(?:shape[sd]?|sizes?|dims?|dimensions?|layout|tensors?|output|input|optional|contiguous|packed|logical"
    r"|flattened|viewed|[1-9]d)(?:\s+(?:of|is|as))?[\s:=,(-]*$",
    re.IGNORECASE,
)
_ELEMENT = (
    r"(?:bf16|fp(?:4|6|8|16|32|64)|f(?:16|32|64)|[iu](?:8|16|32|64)|b?float(?:4|8|16|32|64)?(?:_e\dm\d\w*)?|half2?|double"
    r"|u?int(?:2|4|8|16|32|64|128)?(?:_t)?|uchar|bool|long|byte|e[0-9]m[0-9](?:fn|fnuz)?|nvfp4|mxfp[48]|ue8m0|uint2)"
)
_DTYPE = rf"{_ELEMENT}(?:[ _]e\dm\d(?:fn|fnuz)?)?(?:\s*(?:/|\bor\b)\s*{_ELEMENT})*"
_PLAIN_DTYPE, _ANY_DTYPE = Regex(_DTYPE), Regex(_DTYPE, re.IGNORECASE)
_DTYPE_BEHIND = Regex(rf"[\s,:;-]*\(?({_DTYPE})(?![\w(\[])", re.IGNORECASE)
_DTYPE_IN_BRACKETS = Regex(rf"\(({_DTYPE})\)", re.IGNORECASE)
_DTYPE_BEFORE = Regex(rf"(?:^|[\s(])({_DTYPE})[\s:,=(-]*$", re.IGNORECASE)


def is_shape(dims: tuple[str, ...], style: str, before: str, after: str) -> bool:
    """Whether these dimensions, written in this style between these texts, are a tensor's shape."""
    # A full stop ends a sentence; a member follows its dot at once.
    if after[:1] in tuple("([]=") or re.match(r"\s*=|;\s*$|->|-\w|\.(?!\s|$)", after):
        return False
    if any(dim.lower() in _NO_EXTENT or dim == "0" for dim in dims) or not any(map(is_extent, dims)):
        return False
    if _is_enumeration(dims) or all(map(_is_place, dims)):
        return False
    if re.split(r"[\s,;:(]+", before.rstrip(" :"))[-1].lower() in _OTHER_WORDS:
        return False
    announced = _announces(before)
    likely = sum(map(is_extent, dims))
    numbers = all(dim.isdigit() for dim in dims)
    follows = after.lstrip()[:1]
    if (numbers and follows in ("[", '"')) or (style == "(,)" and re.match(r"\s*(?:->|→|=>|↦)|;", after)):
        return False
    if style == "x":
        return announced and likely == len(dims) and not numbers and not any(map(_is_place, dims))
    if style == "(,)" and len(dims) > 1:
        return announced and 2 * likely >= len(dims) and not any(map(_is_place, dims))
    if style in ("(,)", "[]"):
        return announced
    if len(dims) > 1:
        return announced or not numbers
    return announced or "_" in dims[0]


def is_extent(dim: str) -> bool:
    """Whether a dimension reads like one: a number, a short or telling name, or an expression with such a name."""
    if dim in ("...", "..", "…", "*") or dim.isdigit():
        return True
    expression = re.search(r"[-+*/%^(=]", dim) is not None
    return any(_names_extent(name, expression) for name in _names(dim))


def _names_extent(name: str, expression: bool) -> bool:
    if _INDEX.fullmatch(name) or _TYPE.fullmatch(name):
        return False
    return expression or len(name) <= 2 or "_" in name.strip("_") or _EXTENT.search(name) is not None


def _names(dim: str) -> list[str]:
    """The names in a dimension, each without what it is a member of."""
    return [re.split(r"::|\.|->", name)[-1] for name in re.findall(r"[A-Za-z_]\w*(?:(?:::|\.|->)\w+)*", dim)]


def _is_place(dim: str) -> bool:
    """Whether a dimension is made of names of places alone."""
    names = _names(dim)
    return bool(names) and all(_INDEX.fullmatch(name) for name in names)


def _is_enumeration(dims: tuple[str, ...]) -> bool:
    """``[id0, id1, ...]`` or ``[byte0, byte1]``: values one after the other, not extents."""
    stems = {re.sub(r"[0-9]+$", "#", (_names(dim) or [dim])[0]) for dim in dims}
    if len(dims) > 1 and len(stems) == 1 and next(iter(stems)).endswith("#") and not dims[0].isdigit():
        return True
    if not any(dim in ("...", "..", "…") for dim in dims[1:]):
        return False
    return (dims[-1] in ("...", "..", "…") and len(dims) > 2) or sum(dim[-1].isdigit() for dim in dims) > 1


def _announces(before: str) -> bool:
    """Whether the text before a bracket leads to a shape: nothing, a label, or a word that says so."""
    lead = before.strip()
    return not lead or lead[-1] == ":" or bool(_SHAPE_LEAD.search(lead) or _DTYPE_BEFORE.search(lead))


def dtype_beside(before: str, after: str) -> str | None:
    """The element type named next to a shape: right behind it, in brackets behind it, or right before it."""
    for found in (_DTYPE_BEHIND.match(after), _DTYPE_IN_BRACKETS.search(after), _DTYPE_BEFORE.search(before.rstrip())):
        # `InT` is a template parameter, not an int.
        if found and (found.group(1).islower() or found.group(1).isupper()):
            return found.group(1)
    return None


def may_name_tensor(word: str) -> bool:
    """Whether a word before a shape may be a tensor's name: no ``grid``, ``range``, ``or``, ``int32``."""
    plain = word.lower()
    return plain not in _OTHER_WORDS and plain not in _JOINING and not _PLAIN_DTYPE.fullmatch(plain)


def is_dtype_or_nothing(text: str) -> bool:
    """Whether a text is empty or says an element type and no more."""
    return not text.strip(" :,=-(") or _ANY_DTYPE.fullmatch(text.strip(" :,=-(")) is not None
