"""The functions of Python's library that build scripts use, as far as nothing has to be run or read for them.

In: evaluated arguments. Out: values. Paths are answered from the tree; the environment is unset.
"""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Callable, Iterable
from itertools import product
from typing import TYPE_CHECKING, Any

from opwalker.link.build_guard import Guard, excludes, join
from opwalker.link.build_py_calls import Arguments, Keywords, answer, asked, globbed, map_method, working_folder
from opwalker.link.build_py_operators import MAX_ELEMENTS
from opwalker.link.build_py_paths import joined_path
from opwalker.link.build_py_values import (
    Class,
    Element,
    Function,
    Map,
    Obj,
    PathText,
    Raised,
    Ref,
    Seq,
    Unknown,
    as_text,
    elements_of,
    is_plain,
    truth_of,
)
from opwalker.link.build_tree import resolve
from opwalker.link.build_values import MARK

if TYPE_CHECKING:
    from opwalker.link.build_py_run import PyRun

Known = Callable[["PyRun", Arguments, Keywords, ast.Call], Any]


def _glob(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    pattern = as_text(arguments[0]) if arguments else ""
    if "root_dir" in keywords:
        pattern = joined_path([keywords["root_dir"], pattern])
    return globbed(run, pattern, node)


def _walk(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    """``os.walk``: a row for every folder below one, with the names of its folders and files."""
    top = as_text(arguments[0]) if arguments else MARK
    found = globbed(run, joined_path([top, "**", "*"]), node)
    if not isinstance(found, Seq):
        return found
    folders: dict[str, tuple[set[str], list[str]]] = {}
    for element in found.items:
        path = folder = posixpath.dirname(as_text(element.value))
        folders.setdefault(folder, (set(), []))[1].append(posixpath.basename(as_text(element.value)))
        while len(path) > len(top.rstrip("/")):
            path, name = posixpath.split(path)
            folders.setdefault(path, (set(), []))[0].add(name)
    names = ((Element(one), *(_listed(part) for part in folders[one])) for one in sorted(folders))
    return Seq(tuple(Element(Seq(cells, "tuple"), (), run.frame.module.path, node.lineno) for cells in names))


def _list_folder(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    top = as_text(arguments[0]) if arguments else "."
    found = globbed(run, joined_path([top, "**", "*"]), node)
    if not isinstance(found, Seq):
        return found
    texts = (as_text(element.value) for element in found.items)
    start = len(posixpath.normpath(top)) + 1 if posixpath.normpath(top) != "." else 0
    return _listed(text[start:].partition("/")[0] for text in texts).value


def _listed(names: Iterable[str]) -> Element:
    return Element(Seq(tuple(Element(name) for name in sorted(set(names)))))


def _relative(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    texts = [as_text(one) for one in (*arguments, *keywords.values())]
    if not texts or any(MARK in text for text in texts):
        return run.unknown(node)
    folder = working_folder(run)
    return posixpath.relpath(resolve(texts[0], folder), resolve(texts[1], folder) if len(texts) > 1 else folder)


def _path_function(change: Callable[[str], Any]) -> Known:
    def known(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
        def one(value: Any) -> Any:
            text = as_text(value)
            return run.unknown(node) if text.startswith(MARK) and text.endswith(MARK) else change(text)

        return run.spread(arguments[0], one) if arguments else run.unknown(node)

    return known


def _question(name: str) -> Known:
    def known(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
        return answer(run, asked(run, name, as_text(arguments[0])) if arguments else None, node)

    return known


def _absolute(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    return run.spread(arguments[0], lambda v: resolve(as_text(v), working_folder(run))) if arguments else None


def _split_extension(text: str) -> Seq:
    return Seq(tuple(Element(part) for part in posixpath.splitext(text)), "tuple")


def _environment(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    return map_method(run, run.environment, "get", [*arguments, *keywords.values()], node)


def _as(kind: str) -> Known:
    def known(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
        if not arguments:
            return Seq((), kind)
        elements = elements_of(arguments[0])
        if elements is None:
            elements = (Element(arguments[0], (), run.frame.module.path, node.lineno),)
        if kind == "set":
            elements = tuple({element.value: element for element in reversed(elements)}.values())[::-1]
        return Seq(elements, kind)

    return known


def _sorted(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    elements = elements_of(arguments[0]) if arguments else None
    if elements is None:
        return run.unknown(node)
    if "key" not in keywords and all(isinstance(e.value, (str, PathText)) for e in elements):
        elements = tuple(sorted(elements, key=lambda element: as_text(element.value)))
    return Seq(elements)


def _text(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    return run.spread(arguments[0], as_text) if arguments else ""


def _integer(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    def one(value: Any) -> Any:
        try:
            return int(value) if is_plain(value) and len(str(value)) < 30 else run.unknown(node)
        except (TypeError, ValueError):
            return run.unknown(node)

    return run.spread(arguments[0], one) if arguments else 0


def _truth(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    return answer(run, truth_of(arguments[0]) if arguments else False, node)


def _length(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    elements = elements_of(arguments[0]) if arguments else None
    known = elements is not None and not any(e.guard or isinstance(e.value, Unknown) for e in elements)
    return len(elements or ()) if known else Unknown(run.text(node), True if elements else None, run.next_number())


def _quantified(decisive: bool) -> Known:
    def known(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
        elements = elements_of(arguments[0]) if arguments else None
        if elements is None:
            return run.unknown(node)
        truths = [None if element.guard else truth_of(element.value) for element in elements]
        if decisive in truths:
            return decisive
        return run.unknown(node) if None in truths else not decisive

    return known


def _pairs(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    columns = [elements_of(argument) for argument in arguments]
    if any(column is None for column in columns):
        return run.unknown(node)
    return _rows(zip(*(column or () for column in columns), strict=False))


def _enumerated(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    elements = elements_of(arguments[0]) if arguments else None
    if elements is None:
        return run.unknown(node)
    return _rows((Element(number), element) for number, element in enumerate(elements))


def _rows(rows: Iterable[tuple[Element, ...]]) -> Seq:
    items: list[Element] = []
    for row in rows:
        guard: Guard = ()
        possible = True
        for element in row:
            possible = possible and not excludes(guard, element.guard)
            guard = join(guard, element.guard)
        if possible:
            place = next((e for e in reversed(row) if e.line), row[-1])
            cells = tuple(element._replace(guard=()) for element in row)
            items.append(Element(Seq(cells, "tuple"), guard, place.file, place.line))
        if len(items) >= MAX_ELEMENTS:
            break
    return Seq(tuple(items))


def _product(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    columns = [elements_of(argument) for argument in arguments]
    if any(column is None for column in columns):
        return run.unknown(node)
    return _rows(product(*(column or () for column in columns)))


def _chained(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    items: list[Element] = []
    for argument in arguments:
        items.extend(elements_of(argument) or (Element(argument, (), run.frame.module.path, node.lineno),))
    return Seq(tuple(items[:MAX_ELEMENTS]))


def _range(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    if not arguments or not all(isinstance(a, int) and abs(a) < 10**6 for a in arguments):
        return run.unknown(node)
    if len(arguments) == 3 and arguments[2] == 0:
        return run.unknown(node)
    return Seq(tuple(Element(number) for number in list(range(*arguments)[:1000])))


def _has_attribute(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    if len(arguments) != 2 or not isinstance(arguments[1], str):
        return run.unknown(node)
    owner, name = arguments
    if isinstance(owner, (Obj, Class)):
        cls = owner.cls if isinstance(owner, Obj) else owner
        found = name in owner.attrs or any(name in ancestor.attrs for ancestor in cls.lineage())
        return found if found or not cls.external_bases() else run.unknown(node)
    if isinstance(owner, Ref) and run.seeds.python_name(f"{owner.name}.{name}") is not None:
        return True
    return run.unknown(node)


def _get_attribute(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    if len(arguments) < 2 or not isinstance(arguments[1], str):
        return run.unknown(node)
    if len(arguments) > 2 and _has_attribute(run, arguments[:2], {}, node) is False:
        return arguments[2]
    return run.given(run.attribute(arguments[0], arguments[1], node))


def _instance_of(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    if len(arguments) == 2 and isinstance(arguments[0], Obj) and isinstance(arguments[1], Class):
        cls = arguments[0].cls
        return True if arguments[1] in cls.lineage() else run.unknown(node) if cls.external_bases() else False
    return run.unknown(node)


def _callable(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    value = arguments[0] if arguments else None
    return run.unknown(node) if isinstance(value, (Unknown, Ref)) else isinstance(value, (Function, Class))


def _copied(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    def one(value: Any) -> Any:
        if isinstance(value, Seq):
            return Seq(value.items, value.kind)
        return Map({key: one(item) for key, item in value.store.items()}) if isinstance(value, Map) else value

    return run.spread(arguments[0], one) if arguments else None


def _mapping(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    store = dict(arguments[0].store) if arguments and isinstance(arguments[0], Map) else {}
    return Map({**store, **keywords})


def _leave(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    raise Raised


def _nothing(run: PyRun, arguments: Arguments, keywords: Keywords, node: ast.Call) -> Any:
    return None


FUNCTIONS: dict[str, Known] = {
    "os.path.join": lambda run, arguments, keywords, node: run.spread_all(arguments, joined_path),
    "os.path.exists": _question("exists"),
    "os.path.isfile": _question("isfile"),
    "os.path.isdir": _question("isdir"),
    "os.path.abspath": _absolute,
    "os.path.realpath": _absolute,
    "os.path.dirname": _path_function(posixpath.dirname),
    "os.path.basename": _path_function(posixpath.basename),
    "os.path.normpath": _path_function(lambda text: posixpath.normpath(text) if MARK not in text else text),
    "os.path.splitext": _path_function(_split_extension),
    "os.path.isabs": _path_function(lambda text: text.startswith("/")),
    "os.path.expanduser": _path_function(lambda text: text),
    "os.path.relpath": _relative,
    "os.fspath": _text,
    "os.listdir": _list_folder,
    "os.walk": _walk,
    "os.getcwd": lambda run, arguments, keywords, node: working_folder(run),
    "os.getenv": _environment,
    "glob.glob": _glob,
    "glob.iglob": _glob,
    "pathlib.Path": lambda run, arguments, keywords, node: PathText(joined_path(arguments or ["."])),
    "pathlib.PurePath": lambda run, arguments, keywords, node: PathText(joined_path(arguments or ["."])),
    "itertools.product": _product,
    "itertools.chain": _chained,
    "copy.copy": _copied,
    "copy.deepcopy": _copied,
    "sys.exit": _leave,
    "exit": _leave,
    "print": _nothing,
    "warnings.warn": _nothing,
    "list": _as("list"),
    "tuple": _as("tuple"),
    "set": _as("set"),
    "frozenset": _as("set"),
    "sorted": _sorted,
    "reversed": _as("list"),
    "str": _text,
    "int": _integer,
    "bool": _truth,
    "len": _length,
    "any": _quantified(True),
    "all": _quantified(False),
    "zip": _pairs,
    "enumerate": _enumerated,
    "range": _range,
    "hasattr": _has_attribute,
    "getattr": _get_attribute,
    "isinstance": _instance_of,
    "callable": _callable,
    "dict": _mapping,
}
