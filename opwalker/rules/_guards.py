"""What sets the device: guard objects that are alive, and calls that set it by hand."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from opwalker.model.check import CheckedTree
from opwalker.model.statements import CallText, Statement

GUARD = re.compile(
    r"(?:.*::)?(?:Optional)?(?:CUDA|HIP|Cuda|Device|Stream|MultiStream|Accelerator)\w*Guard\w*\Z|\w*DeviceGuard\w*\Z"
)
_SETTERS = ("cudaSetDevice", "hipSetDevice", "set_device", "SetDevice", "setDevice", "ExchangeDevice", "MaybeSetDevice")
_SETS = re.compile(rf"(?:.*::)?(?:{'|'.join(_SETTERS)})\Z")


def bare(kind: str) -> str:
    """A type without qualifiers and template arguments."""
    plain = re.sub(r"\b(?:const|static|constexpr|auto|volatile)\b|[&*]", " ", kind)
    return re.sub(r"<.*", "", plain, flags=re.DOTALL).strip()


def is_guard(kind: str, named: Collection[str] = ()) -> bool:
    """Whether a type's name is that of a device guard; ``named`` are a project's own."""
    plain = bare(kind)
    return bool(GUARD.match(plain)) or plain.rsplit("::", 1)[-1] in named


@lru_cache(maxsize=1)
def guards_of(tree: CheckedTree) -> frozenset[str]:
    """The names that stand for a guard in a source: those that its settings name, and its own classes whose objects
    set the device when they are made."""
    makers = (one for one in tree.calling_any(_SETTERS) if one.classes and one.name.split("::")[-1] == one.scope[-1])
    setting = (one for one in makers if any(_SETS.match(c.name) for held in one.walk() for c in held.calls))
    return frozenset((*tree.settings.guards, *(one.scope[-1] for one in setting)))


def sets_device(one: Statement, named: Collection[str] = ()) -> bool:
    """Whether a device is set from this statement on: a named guard is made, or the device is set by a call."""
    if any(is_guard(d.type, named) and d.name and not unnamed(one) for d in one.declares):
        return True
    if any("Guard" in (d.value or "") and is_guard(_made(d.value or ""), named) for d in one.declares):
        return True
    if any(_SETS.match(call.name) or call.simple in named or _fills(call) for call in one.calls):
        return True
    # A guard that is filled in a branch outlives it: the branch leaves out what has no device.
    inside = one.body if one.kind.startswith("if") else ()
    return any(_fills(call) for held in inside for call in held.calls)


def _fills(call: CallText) -> bool:
    """Whether a call makes a guard in an object that was there before."""
    return call.simple == "emplace" and bool(call.receiver) and "guard" in call.receiver.lower()


def _made(value: str) -> str:
    """The type that an initialiser names: ``c10::cuda::CUDAGuard(x.device())``."""
    found = re.match(r"[={(\s]*(?:std::make_unique<\s*)?([\w:]+)", value)
    return found[1] if found else ""


def unnamed(one: Statement) -> bool:
    """Whether a statement is a guard that is made and gone at once: ``CUDAGuard(x.device());``."""
    found = re.match(r"((?:const\s+)?(?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)(?:<[^;]*>)?\s*([({])", one.text)
    return bool(found) and one.kind in ("expression", "declaration") and is_guard(found[1])
