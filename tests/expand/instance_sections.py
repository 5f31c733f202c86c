"""The sections of ``fixtures/instances``: small sources in the idioms of kernel libraries, with the instances of each.

A section begins with ``// == title``. ``//: k<float, 8>`` is an instance that a compiler makes of it (``//: k`` for a
kernel that is no template), ``//? k`` a kernel whose instances are not all worked out. ``h`` is the op's function.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.views.miniatures import SOURCE, ops_of

FOLDER = Path(__file__).parents[2] / "fixtures" / "instances"


@dataclass
class Section:
    """One section: ``instances`` by kernel, squeezed of blanks; ``open`` are the kernels that stay incomplete."""

    file: str
    title: str
    code: str = ""
    instances: dict[str, set[str]] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)


def sections() -> list[Section]:
    """Every section of every file, in order."""
    out: list[Section] = []
    for path in sorted(FOLDER.glob("*.cu")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("// == "):
                out.append(Section(path.stem, line[6:]))
            elif line.startswith("//: "):
                name, arguments = split_instance(line[4:])
                out[-1].instances.setdefault(name, set()).add(arguments)
            elif line.startswith("//? "):
                out[-1].open.add(line[4:].strip())
            elif out and out[-1].file == path.stem:
                out[-1].code += line + "\n"
    return out


def split_instance(text: str) -> tuple[str, str]:
    """``ns::k<float, 8>`` as the kernel's name and its arguments without blanks."""
    name, _, rest = text.strip().partition("<")
    return name, "".join(rest.rpartition(">")[0].split())


def predicted(code: str) -> tuple[dict[str, set[str]], dict[str, str]]:
    """The instances by kernel that this project reads from a source, and why where they may not be all."""
    from opwalker.views.kernels import list_kernels

    ops, _, bench = ops_of(code + '\nTORCH_LIBRARY(mini, m) { m.def("h", &h); }\n')
    found: dict[str, set[str]] = {}
    reasons: dict[str, str] = {}
    for kernel in list_kernels(bench, SOURCE, list(ops.values()), None).kernels:
        if kernel.ops or kernel.instances:
            found.setdefault(kernel.name, set()).update("".join(text.split()) for text in kernel.instances)
            if not kernel.complete:
                reasons.setdefault(kernel.name, kernel.why_incomplete or "")
    return found, reasons
