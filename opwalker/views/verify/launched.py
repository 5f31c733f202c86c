"""Kernels that ran against those that the walk of the source predicts.

In: names as a demangler prints them, and the predictions. Out: reasons, empty when every kernel was predicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from opwalker.model.walk import KernelEntry
from opwalker.notation.regex import Regex

_BLANKS = Regex(r"\s+")


def unpredicted(launched: Iterable[str], predicted: Sequence[KernelEntry]) -> list[str]:
    """What ran and was not predicted. An entry whose instances are not all known vouches for the kernel alone."""
    by_name = {one.name: one for one in predicted}
    reasons = []
    for text in launched:
        name, instance = split(text)
        entry = by_name.get(name)
        if entry is None:
            reasons.append(f"the kernel {name} was launched, and the walk of the source does not predict it")
        elif entry.complete and instance not in {_plain(one) for one in entry.instances}:
            reasons.append(f"{name}<{instance}> was launched, and the walk does not predict this instance")
    return reasons


def split(text: str) -> tuple[str, str]:
    """``void ns::k<float, 4>(float*)`` → ``("ns::k", "float,4")``."""
    depth = 0
    opened = closed = end = len(text)
    for at, char in enumerate(text):
        if char == "<":
            if depth == 0:
                opened = at
            depth += 1
        elif char == ">":
            depth -= 1
            closed = at
        elif char == "(" and depth == 0 and not text.startswith("(anonymous namespace)", at):
            end = at
            break
    instance = _plain(text[opened + 1 : closed]) if opened < end else ""
    return text[: min(opened, end)].strip().removeprefix("void "), instance


def _plain(instance: str) -> str:
    text = _BLANKS.sub("", instance)
    return text.replace("(bool)1", "true").replace("(bool)0", "false").replace("(int)", "")
