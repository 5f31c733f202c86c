"""Which reference kernel has the contract of an op.

In: the folder of reference kernels, and an op. Out: a kernel's name. Contracts are read as text: nothing of them is
imported or run here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from opwalker import resources
from opwalker.model.ops import Op
from opwalker.model.walk import Walk
from opwalker.notation.regex import Regex
from opwalker.views.verify.plan import NAMESPACE

_DEFINITION = Regex(r'\.def\(\s*((?:"[^"\n]*"\s*)+)\)')
_PIECE = Regex(r'"([^"\n]*)"')


def with_reference(walk: Walk) -> Walk:
    """A walk with the name of the reference kernel that has its op's contract, where there is one."""
    if walk.op is None:
        return walk
    return replace(walk, reference_kernel=reference_kernel(resources.folder("reference_kernels"), walk.op))


def reference_kernel(folder: Path, op: Op) -> str | None:
    """The kernel that has an op's contract: one whose contract names it, or one of its name with the same arguments."""
    space, _, bare = op.name.rpartition("::")
    if space == NAMESPACE:
        return bare if (folder / f"{bare}.cu").is_file() else None
    for path in sorted(folder.glob("*.cu")):
        contract = path.with_suffix(".py")
        if not contract.is_file():
            continue
        text = contract.read_text(encoding="utf-8")
        if f'"{op.name}"' in text and op.name in _names(text):
            return path.stem
        if path.stem == bare and _takes_the_same(path, op):
            return path.stem
    return None


def _names(contract: str) -> Sequence[str]:
    """What a contract's ``NAMES`` holds."""
    import ast

    for statement in ast.parse(contract).body:
        if isinstance(statement, ast.Assign) and [ast.unparse(target) for target in statement.targets] == ["NAMES"]:
            return ast.literal_eval(statement.value)
    return ()


def _takes_the_same(kernel: Path, op: Op) -> bool:
    """Whether an op takes what a kernel's own schema says; what it leaves out at the end has a default there."""
    from opwalker.notation.op_schema import arguments_of, parse_schema

    text = kernel.read_text(encoding="utf-8")
    schemas = ("".join(_PIECE.findall(found)) for found in _DEFINITION.findall(text))
    own = next((schema for schema in schemas if schema.startswith(f"{kernel.stem}(")), None)
    if own is None or not op.arguments:
        return False
    ours = arguments_of(parse_schema(own))
    theirs = op.arguments
    if [(one.name, _kind(one.type)) for one in ours[: len(theirs)]] != [(one.name, _kind(one.type)) for one in theirs]:
        return False
    return all(one.default is not None for one in ours[len(theirs) :])


def _kind(type_text: str) -> str:
    return re.sub(r"\([^)]*\)|[!? ]", "", type_text)
