"""The variable of a loop over a list that is written out: ``for (const Tensor* one : {&x, &y})`` speaks of x and of y.

In: a body and a local of it. Out: the names in the list, in order; none where the local is no such variable, or the
list holds anything but names.
"""

from __future__ import annotations

from opwalker.expand.bodies import Body
from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.model.body import LocalFact
from opwalker.notation.regex import Regex

#: An element: a name, its address, or the name in ``std::ref``.
_ELEMENT = Regex(r"(?:[&*]\s*)?(?:std\s*::\s*c?ref\s*\(\s*)?([A-Za-z_]\w*)\s*\)?")
#: What may stand before the braces: the type of the list.
_TYPE = Regex(r"(?:const\s+)?(?:[A-Za-z_]\w*\s*(?:::\s*)?)*(?:<[^{}]*>)?\s*")


def is_element(body: Body, local: LocalFact) -> bool:
    """Whether a local is the variable of a loop over a range."""
    return local.value is not None and body.expanded.full[local.start : local.value[0]].rstrip().endswith(":")


def elements_of(body: Body, local: LocalFact) -> tuple[str, ...]:
    """The names that a loop's variable goes through: of a list in its head, or of a local that is made of one."""
    if not is_element(body, local) or local.value is None:
        return ()
    text = body.text(local.value).strip()
    if text.isidentifier():
        lists = body.locals.get(text, ())
        if len(lists) != 1 or lists[0].value is None or is_element(body, lists[0]):
            return ()
        text = body.text(lists[0].value).strip()
    start = text.find("{")
    if start < 0 or match_bracket(text, start) != len(text) or not _TYPE.fullmatch(text[:start]):
        return ()
    inner = text[start + 1 : -1]
    found = [_ELEMENT.fullmatch(inner[a:b].strip()) for a, b in split_commas(inner) if inner[a:b].strip()]
    return tuple(one.group(1) for one in found if one is not None) if all(found) else ()
