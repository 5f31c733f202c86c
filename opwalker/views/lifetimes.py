"""Objects that release something at the end of their scope: guards, locks, owners, ranges, classes with a destructor.

In: a body. Out: ``Lifetime`` facts: from the line of the declaration to that of the brace that ends its scope.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from opwalker.expand.bodies import Body
from opwalker.facts.cpp_brackets import match_bracket
from opwalker.model.body import LocalFact
from opwalker.model.walk import Lifetime
from opwalker.notation.regex import Regex
from opwalker.views.ops import shown_condition

#: Kinds by the type's own name, in the order in which they are tried.
_KINDS = (
    ("lock", Regex(r"(?:lock_guard|unique_lock|scoped_lock|shared_lock|\w*Lock(?:Guard|Holder))\Z")),
    ("interpreter lock", Regex(r"(?:gil_scoped_(?:acquire|release)|(?:With|No|Auto)\w*G(?:IL|il)\w*)\Z")),
    ("guard", Regex(r"\w*Guard\Z|InferenceMode\Z|AutoDispatch\w+\Z|AutoGradMode\Z|NoGradMode\Z")),
    ("pointer", Regex(r"(?:unique_ptr|shared_ptr|intrusive_ptr|scoped_ptr|DataPtr)\Z")),
    ("range", Regex(r"(?:scoped_range\w*|\w*[Nn]vtx\w*[Rr]ange\w*|ProfileRange|RecordFunction)\Z")),
)
_MADE = Regex(r"((?:::)?[A-Za-z_][\w:]*?)\s*(?:<[^;{}]*>)?\s*[({]")


def lifetimes_of(body: Body, name: str, destructed: Callable[[str], bool]) -> tuple[Lifetime, ...]:
    """The objects of a body; ``destructed`` says whether a class of the tree has a destructor."""
    out: dict[tuple, Lifetime] = {}
    for local in body.facts.locals:
        kind, shown = _kind(body, local, destructed)
        if kind is None or "*" in local.type or local.type.rstrip().endswith("&"):
            continue
        value = body.written(local.value).strip() if local.value is not None else ""
        of = value[1:-1].strip() if value[:1] in ("(", "{") else value
        line = body.use_line(local.start)
        compiled = shown_condition(body.conditions_around(local.start))
        fact = Lifetime(kind, shown, local.name, of or None, name, body.path, line, scope_end(body, local), compiled)
        out.setdefault((local.name, line), fact)
    return tuple(out.values())


def scope_end(body: Body, local: LocalFact) -> int:
    """The line of the brace that ends a local's scope."""
    full = body.expanded.full
    depth = 0
    for match in re.finditer(r"[{}]", full[local.end :]):
        depth += 1 if match.group() == "{" else -1
        if depth < 0:
            return body.use_line(local.end + match.start())
    return body.use_line(max(0, len(full) - 1))


def _kind(body: Body, local: LocalFact, destructed: Callable[[str], bool]) -> tuple[str | None, str]:
    if local.type in ("using", "namespace", "using namespace"):
        return None, ""
    text = re.sub(r"\b(?:const|constexpr|static|thread_local|volatile|typename)\b", "", local.type).strip()
    if text == "auto" and local.value is not None:
        # `auto guard = CUDAGuard(device)`: the type is what is made.
        made = _MADE.match(body.text(local.value))
        text = made.group(1) if made else ""
    bare = _without_arguments(text).split("::")[-1].strip()
    if not bare:
        return None, ""
    for kind, pattern in _KINDS:
        if pattern.match(bare):
            return kind, " ".join(text.split())
    return ("object", " ".join(text.split())) if destructed(bare) else (None, "")


def _without_arguments(text: str) -> str:
    at = text.find("<")
    if at < 0:
        return text
    close = match_bracket(text, at) if text[at] in "([{" else text.rfind(">") + 1
    return text[:at] + text[close:]
