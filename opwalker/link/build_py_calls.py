"""Calls in Python build scripts: their arguments, and the methods of lists, dicts, texts and paths.

In: a call and the evaluation. Out: its value. Paths are answered from the tree; whatever would run a program or read a
file gives an unknown.
"""

from __future__ import annotations

import ast
import posixpath
from typing import TYPE_CHECKING, Any

from opwalker.link.build_py_operators import MAX_ELEMENTS
from opwalker.link.build_py_paths import joined_path, text_method
from opwalker.link.build_py_values import (
    Element,
    Map,
    PathText,
    Seq,
    as_text,
    is_plain,
    options_of,
    settled,
)
from opwalker.link.build_tree import absolute, resolve
from opwalker.link.build_values import MARK

if TYPE_CHECKING:
    from opwalker.link.build_py_run import PyRun

Arguments = list[Any]
Keywords = dict[str, Any]


def given_arguments(run: PyRun, node: ast.Call) -> tuple[Arguments, Keywords]:
    """The evaluated arguments of a call, ``*`` and ``**`` taken apart."""
    arguments: Arguments = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            arguments.extend(element.value for element in run.iterate(argument.value))
        else:
            arguments.append(run.eval(argument))
    keywords: Keywords = {}
    for keyword in node.keywords:
        value = run.eval(keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
        elif isinstance(value, Map):
            keywords.update({key: item for key, item in value.store.items() if isinstance(key, str)})
    return arguments, keywords


def call_method(run: PyRun, owner: Any, name: str, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    """A method of a value that is no object of the scripts; None in the first place if it has no such method."""
    if isinstance(owner, str):
        return text_method(owner, name, arguments, keywords)
    if isinstance(owner, Seq):
        return _seq_method(run, owner, name, arguments, node)
    if isinstance(owner, Map):
        return map_method(run, owner, name, arguments, node)
    if isinstance(owner, PathText):
        return _path_method(run, owner, name, arguments, node)
    return run.unknown(node)


def _seq_method(run: PyRun, owner: Seq, name: str, arguments: Arguments, node: ast.Call) -> Any:
    first = arguments[0] if arguments else None
    here = run.frame.module.path
    if name in ("append", "add") and arguments:
        place = run.frame.places.get(node.args[0].id) if isinstance(node.args[0], ast.Name) else None
        file, line = place or (here, node.args[0].lineno)
        added = tuple(Element(option, guard, file, line) for guard, option in options_of(first))
        run.branches.put(owner.store, "items", (*owner.items, *added)[:MAX_ELEMENTS])
    elif name in ("extend", "update") and arguments:
        run.extend(owner, first)
    elif name == "insert" and len(arguments) == 2 and isinstance(first, int):
        added = (Element(arguments[1], (), here, node.lineno),)
        run.branches.put(owner.store, "items", owner.items[:first] + added + owner.items[first:])
    elif name in ("remove", "discard"):
        run.branches.put(owner.store, "items", tuple(e for e in owner.items if e.value != first))
    elif name == "clear":
        run.branches.put(owner.store, "items", ())
    elif name == "copy":
        return Seq(owner.items, owner.kind)
    elif name == "pop" and owner.items and (not arguments or first in (0, -1)):
        at = len(owner.items) - 1 if first != 0 else 0
        run.branches.put(owner.store, "items", owner.items[:at] + owner.items[at + 1 :])
        return owner.items[at].value
    elif name not in ("sort", "reverse"):
        return run.unknown(node)
    return None


def map_method(run: PyRun, owner: Map, name: str, arguments: Arguments, node: ast.Call) -> Any:
    """A method of a dict."""
    key = arguments[0] if arguments else None
    plain = is_plain(key)
    if name in ("get", "pop") and arguments and plain:
        default = arguments[1] if len(arguments) > 1 else None
        value = owner.store.get(key, default)
        if name == "pop" and key in owner.store:
            run.branches.put(owner.store, key, default)
        return settled(value, run.branches.guard)
    if name == "setdefault" and len(arguments) > 1 and plain:
        if key not in owner.store:
            run.branches.put(owner.store, key, arguments[1])
        return owner.store[key]
    if name == "update":
        for _, option in options_of(key):
            for inner, value in option.store.items() if isinstance(option, Map) else ():
                run.branches.put(owner.store, inner, value)
        return None
    if name == "items":
        pairs = [Seq((Element(k), Element(v)), "tuple") for k, v in owner.store.items()]
        return Seq(tuple(Element(pair) for pair in pairs))
    if name in ("keys", "values"):
        return Seq(tuple(Element(k if name == "keys" else v) for k, v in owner.store.items()))
    if name == "copy":
        return Map(dict(owner.store))
    return run.unknown(node)


def _path_method(run: PyRun, owner: PathText, name: str, arguments: Arguments, node: ast.Call) -> Any:
    text = owner.text
    if name in ("resolve", "absolute"):
        return PathText(resolve(text, working_folder(run)))
    if name in ("expanduser", "with_segments"):
        return owner
    if name == "joinpath":
        return PathText(joined_path([owner, *arguments]))
    if name in ("as_posix", "__str__", "__fspath__"):
        return text
    if name in ("exists", "is_file", "is_dir"):
        return answer(run, asked(run, name, text), node)
    if name in ("glob", "rglob") and arguments:
        pattern = joined_path([owner, "**" if name == "rglob" else "", arguments[0]])
        return globbed(run, pattern, node, as_path=True)
    if name == "iterdir":
        return globbed(run, joined_path([owner, "*"]), node, as_path=True)
    if name == "relative_to" and arguments:
        return PathText(posixpath.relpath(text, as_text(arguments[0]))) if MARK not in text else run.unknown(node)
    if name in ("with_suffix", "with_name") and arguments:
        folder, base = posixpath.split(text)
        changed = posixpath.splitext(base)[0] + as_text(arguments[0]) if name == "with_suffix" else arguments[0]
        return PathText(joined_path([folder, changed]) if folder else as_text(changed))
    return run.unknown(node)


# --- files -----------------------------------------------------------------------------------------------------


def working_folder(run: PyRun) -> str:
    """Where relative paths of the running script start."""
    return absolute(run.frame.module.directory)


def asked(run: PyRun, question: str, path: str) -> bool | None:
    """What the tree says to a question about a path; None if it cannot know."""
    if MARK in path:
        return None
    place = resolve(path, working_folder(run))
    if question in ("exists", "lexists"):
        return run.tree.exists(place)
    return run.tree.is_file(place) if question in ("is_file", "isfile") else run.tree.is_folder(place)


def answer(run: PyRun, truth: bool | None, node: ast.Call) -> Any:
    """A truth as a value: unknown if it is None."""
    return run.unknown(node) if truth is None else truth


def globbed(run: PyRun, pattern: str, node: ast.Call, as_path: bool = False) -> Any:
    """The files that a pattern matches; none at all is worth telling."""
    if MARK in pattern:
        return run.unknown(node)
    folder = working_folder(run)
    place = resolve(pattern, folder)
    found = run.tree.matching(place)
    if not found:
        run.problem(node, "unresolved", f"{run.text(node)} matches no file of the source")
    if not pattern.startswith("/"):
        found = [posixpath.relpath(path, folder) for path in found]
    file = run.frame.module.path
    return Seq(tuple(Element(PathText(p) if as_path else p, (), file, node.lineno) for p in found))
