"""A function being followed: where from, and what its parameters are known to be."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from opwalker.expand.bodies import Body
from opwalker.expand.resolve import Candidate, Context
from opwalker.facts.cpp_brackets import split_commas
from opwalker.model.reach import KernelRef
from opwalker.model.walk import PathStep


def template_parameters(template: str | None) -> tuple[str, ...]:
    """The names of a template parameter list, ``""`` for an unnamed one."""
    if not template:
        return ()
    out = []
    for a, b in split_commas(template):
        piece = template[a:b].split("=")[0].strip()
        word = re.search(r"(\w+)\s*\Z", piece)
        name = word.group(1) if word and word.group(1) not in ("typename", "class", "int", "bool", "auto") else ""
        out.append(name)
    return tuple(out)


@dataclass(frozen=True)
class Frame:
    """``functions`` maps parameters (run-time and template) to kernels they can be; ``types`` maps template parameters
    to class names, ``values`` to constants. ``candidate`` is None for a lambda, which then has a ``name``."""

    candidate: Candidate | None
    root: str
    steps: tuple[PathStep, ...]
    functions: dict[str, tuple[KernelRef, ...]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    name: str = "lambda"

    @property
    def key(self) -> tuple:
        """What makes two visits of one function the same visit."""
        held = tuple(
            sorted(
                (name, tuple((k.path, k.function.offset, k.template_arguments) for k in found))
                for name, found in self.functions.items()
            )
        )
        return (
            *self.candidate.key,
            self.root,
            held,
            tuple(sorted(self.types.items())),
            tuple(sorted(self.values.items())),
        )

    @property
    def display_name(self) -> str:
        return self.candidate.function.qualified_name if self.candidate else self.name

    @property
    def parameter_names(self) -> frozenset[str]:
        if self.candidate is None:
            return frozenset()
        return frozenset(p.name for p in self.candidate.function.parameters)

    def context(self, body: Body) -> Context:
        """The context of names in the body, with what is known of template parameters."""
        if not self.types:
            return body.context
        return replace(body.context, aliases=body.context.aliases + tuple(sorted(self.types.items())))
