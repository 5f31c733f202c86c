"""Template arguments that a build spells in a way of its own: with a hash, or with the version of a library.

In: what the parameters of an instance are bound to. Out: why its printed name is not the one in the binary, or None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opwalker.expand.terms import ConstTerm, FunctionTerm, Term, TypeTerm, flattened
from opwalker.link.index import Index
from opwalker.model.reach import HASHED, VERSIONED
from opwalker.notation.regex import Regex

#: The name in a printed address: ``&ns::f``, ``&(f(float))``, ``&(float ns::f<float>(float const&))``.
_ADDRESS = Regex(r"&(?:\((?:[\w:<>,*& ]+? )?)?((?:\w+::)*[A-Za-z_]\w*)(?=[(<>,) ]|\Z)")


def own_spelling(bound: Iterable[Term | None], index: Index) -> str | None:
    """Why the printed name of a function with internal linkage, or of a library of headers, is not the binary's."""
    for term in flattened(t for t in bound if t is not None):
        if isinstance(term, FunctionTerm) and term.internal:
            return f"`{term.text}` {HASHED}"
        if isinstance(term, ConstTerm) and term.type.startswith("cub::"):
            return f"`{term.type}` {VERSIONED}"
        if isinstance(term, TypeTerm) and "PackedTensorAccessor<" in term.text:
            return f"`{term.text}` is spelt as the version of torch has it"
        # What was printed as a part of a class's arguments has been read back since.
        if isinstance(term, TypeTerm | FunctionTerm) and "&" in term.text:
            for name in _static_functions(term.text, index):
                return f"`{name}` {HASHED}"
    return None


def _static_functions(text: str, index: Index) -> Iterator[str]:
    """The functions that a printed text takes the address of and that only their own unit sees."""
    known = index.names_of_kind("function")
    for match in _ADDRESS.finditer(text):
        scope, _, simple = match.group(1).rpartition("::")
        if simple in known:
            for _, function in index.functions(simple):
                held = "::".join(function.scope)
                if "static" in function.flags and "member" not in function.flags and held.endswith(scope):
                    yield f"&{match.group(1)}"
                    break
