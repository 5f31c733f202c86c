"""Lists, dicts, comprehensions and f-strings of Python build scripts.

In: their syntax trees and the evaluation. Out: values; an element keeps the place where it was written.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from opwalker.link.build_guard import Guard, join, without
from opwalker.link.build_py_operators import MAX_ELEMENTS, MAX_TEXT
from opwalker.link.build_py_values import Choice, Element, Frame, Map, Seq, as_text, options_of, settled

if TYPE_CHECKING:
    from opwalker.link.build_py_eval import Evaluator


def sequence(run: Evaluator, node: ast.List | ast.Tuple | ast.Set) -> Seq:
    """``[a, *b]`` and its kin; a variable of a loop keeps the place of what it stands for."""
    items: list[Element] = []
    path = run.frame.module.path
    for inner in node.elts:
        if isinstance(inner, ast.Starred):
            items.extend(run.iterate(inner.value))
        else:
            value = run.eval(inner)
            place = run.frame.places.get(inner.id) if isinstance(inner, ast.Name) else None
            file, line = place or (path, inner.lineno)
            items.extend(Element(option, guard, file, line) for guard, option in options_of(value))
    kind = {ast.List: "list", ast.Tuple: "tuple"}.get(type(node), "set")
    return Seq(tuple(items[:MAX_ELEMENTS]), kind)


def mapping(run: Evaluator, node: ast.Dict) -> Map:
    """``{"a": b, **c}``; keys that are not known are left out."""
    store: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            inner = settled(run.eval(value), run.branches.guard)
            if isinstance(inner, Map):
                store.update(inner.store)
            continue
        name = run.eval(key)
        if isinstance(name, (str, int, bool)) or name is None:
            store[name] = run.eval(value)
    return Map(store)


def joined(run: Evaluator, node: ast.JoinedStr) -> Any:
    """An f-string; format specifications are not looked at."""
    texts: list[tuple[Guard, str]] = [((), "")]
    for part in node.values:
        inner = part.value if isinstance(part, ast.FormattedValue) else part
        value = run.eval(inner)
        texts = [
            (join(guard, more), (text + as_text(option))[:MAX_TEXT])
            for guard, text in texts
            for more, option in options_of(value)
        ][:12]
    return texts[0][1] if len(texts) == 1 else Choice(tuple(texts))


def comprehension(run: Evaluator, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Seq:
    """A comprehension over what is known; an undecided filter becomes a condition of its elements."""
    items: list[Element] = []

    def visit(position: int, guard: Guard, source: Element | None) -> None:
        if len(items) >= MAX_ELEMENTS:
            return
        if position == len(node.generators):
            value = run.eval(node.elt)
            file, line = (source.file, source.line) if source and source.line else ("", 0)
            items.extend(
                Element(option, join(guard, more), file or run.frame.module.path, line or node.lineno)
                for more, option in options_of(value)
            )
            return
        generator = node.generators[position]
        for element in run.iterate(generator.iter):
            run.assign(generator.target, element.value)
            inner = join(guard, without(element.guard, run.branches.guard))
            for condition in generator.ifs:
                truth, literal = run.test(condition)
                if truth is False:
                    break
                if literal is not None:
                    inner = join(inner, (literal,))
            else:
                visit(position + 1, inner, element)

    outer = run.frame
    run.frame = Frame(outer, outer.module)
    run.frame.guard, run.frame.owner, run.frame.receiver = outer.guard, outer.owner, outer.receiver
    try:
        visit(0, (), None)
    finally:
        run.frame = outer
    return Seq(tuple(items), "set" if isinstance(node, ast.SetComp) else "list")
