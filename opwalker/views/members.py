"""Data members that keep the value which their object was made with.

In: a name in a member function that is no local and no parameter. Out: whether only constructors of the class give it a
value, by the text of every file that the function's unit includes. A member that a method changes, or whose address is
taken anywhere, is not followed.
"""

from __future__ import annotations

import re
from functools import lru_cache

from opwalker.expand.environment import Environment
from opwalker.link.index import Index
from opwalker.model.cpp import Function


def is_kept_member(name: str, environment: Environment) -> bool:
    """Whether a name is a data member of the function's class that no code behind its constructors changes."""
    body = environment.body
    function = body.function if body is not None else None
    if function is None or not function.scope or not re.fullmatch(r"[A-Za-z_]\w*", name):
        return False
    owner = function.scope[-1]
    place = (name, owner, body.path, body.root, environment.tools.index)
    return _is_member(*place) and not _changes(*place)


@lru_cache(maxsize=256)
def _is_member(name: str, owner: str, path: str, root: str, index: Index) -> bool:
    """Whether the class declares it: ``int world_;`` in its body, outside of its functions."""
    for where in sorted({path, *index.closure(root)}):
        facts = index.declared(where)
        for held in facts.classes if facts is not None else ():
            if held.name != owner or not held.body_end:
                continue
            text = index.part(where, held.body_start, held.body_end)[held.body_start : held.body_end]
            if re.search(rf"[\w>*&\]]\s+[*&]?\s*{name}\s*(?:\[[^\]]*\]\s*)?(?:=[^;]*|\{{[^;]*\}})?;", text):
                return True
    return False


@lru_cache(maxsize=256)
def _changes(name: str, owner: str, path: str, root: str, index: Index) -> bool:
    """Whether anything but a constructor of the class may give it another value."""
    assigned = re.compile(
        rf"\b{name}\s*(?:=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--|\[[^\]]*\]\s*=(?!=))|(?:\+\+|--)\s*(?:this\s*->\s*)?{name}\b"
        rf"|(?<![&\w)\]])&\s*(?:\w+\s*(?:\.|->)\s*)*{name}\b"
    )
    for where in sorted({path, *index.closure(root)}):
        text = index.store.text(where)
        if name not in text:
            continue
        facts = index.facts(where)
        functions = facts.functions if facts is not None else ()
        for match in assigned.finditer(text):
            if not _declares(text, match.start()) and not _in_constructor(functions, owner, match.start()):
                return True
    return False


def _declares(text: str, at: int) -> bool:
    """``int world_ = 1;``: a type stands before it."""
    before = text[max(0, at - 80) : at]
    typed = re.search(r"(?:^|[;{}:])\s*(?:\w[\w:<>,\s*]*[\w>*]\s+)\Z", before)
    return typed is not None and "return" not in before.split()[-1:]


def _in_constructor(functions: tuple[Function, ...], owner: str, at: int) -> bool:
    inside = [f for f in functions if f.offset <= at < f.body_end]
    return bool(inside) and inside[-1].name == owner
