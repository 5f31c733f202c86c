"""What Python makes a group's size from: the ``x`` of a cache documented as ``[blocks, heads, head_size/x, block, x]``.

In: a host function's documented shapes and the Python files that call its op. Out: ``DimensionFact`` values: where a
function assigns the dimension's name and makes a tensor of that many dimensions with it as the last one. Files are
parsed, never run; a name that is assigned twice in the function says nothing.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from opwalker.model.host import DimensionFact, ParameterFact
from opwalker.model.walk import PythonRef, Walk
from opwalker.notation.regex import Regex

_MAKES = frozenset("view reshape empty zeros ones full new_empty new_zeros as_strided empty_strided".split())
_MOST = 2
#: Folders whose files come last: what they make is for trying the op out.
_ASIDE = Regex(r"(?:^|/)(?:tests?|testing|benchmarks?|examples?|docs?)/")


def with_dims(walk: Walk, callers: Iterable[PythonRef], text: Callable[[str], str]) -> Walk:
    """A walk whose host functions say where Python makes their group sizes."""
    refs = tuple(callers)
    made = []
    for one in walk.implementations:
        dims = python_dims(one.host.parameters, refs, text) if one.host is not None else ()
        made.append(replace(one, host=replace(one.host, dimensions=dims)) if dims else one)
    return replace(walk, implementations=tuple(made))


def python_dims(
    parameters: Iterable[ParameterFact], callers: Iterable[PythonRef], text: Callable[[str], str]
) -> tuple[DimensionFact, ...]:
    """The group sizes of documented shapes, as the files of the callers make them; ``text`` reads a file."""
    wanted = {name: len(one.shape or ()) for one in parameters for name in group_names(one.shape or ())}
    if not wanted:
        return ()
    files = list(dict.fromkeys(ref.file for ref in callers))
    files.sort(key=lambda file: bool(_ASIDE.search(file)))
    read = functools.cache(text)
    out: dict[str, list[DimensionFact]] = {}
    for file in files:
        source = read(file)
        for name, count in wanted.items():
            if len(out.get(name, ())) < _MOST and re.search(rf"^\s*{re.escape(name)}\s*=[^=]", source, re.MULTILINE):
                out.setdefault(name, []).extend(_made(file, source, name, count))
    return tuple(fact for name in wanted for fact in out.get(name, ())[:_MOST])


def group_names(shape: tuple[str, ...]) -> Iterator[str]:
    """Dimensions that another one is cut into groups of: ``x`` of ``[n, d/x, b, x]``."""
    for number, dim in enumerate(shape):
        found = re.fullmatch(r"\w+\s*(?:/|//)\s*([A-Za-z_]\w*)", dim)
        if found and shape[-1] == found[1] and number < len(shape) - 1:
            yield found[1]


def _made(file: str, source: str, name: str, count: int) -> Iterator[DimensionFact]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        nodes = list(ast.walk(function))
        assigned = [n for n in nodes if isinstance(n, ast.Assign) and any(_is(t, name) for t in n.targets)]
        makes = [n for n in nodes if isinstance(n, ast.Call) and _last(n, name, count)]
        if len(assigned) == 1 and makes and assigned[0].lineno < makes[0].lineno:
            yield DimensionFact(
                name, ast.unparse(assigned[0].value), file, assigned[0].lineno, ast.unparse(makes[0])[:160],
                makes[0].lineno,
            )  # fmt: skip


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _last(call: ast.Call, name: str, count: int) -> bool:
    """Whether a call makes a tensor of ``count`` dimensions, the last one of that name."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr not in _MAKES:
        return False
    dims = list(call.args)
    for one in (*call.args[:1], *(k.value for k in call.keywords if k.arg in ("size", "shape"))):
        if isinstance(one, ast.Tuple | ast.List):
            dims = one.elts
    return len(dims) == count and _is(dims[-1], name)
