"""CMake commands that give variables their values, apart from ``list`` and ``string``.

In: the interpreter and the command. Out: variables set. What only a configured machine could say (programs, libraries,
outputs, hashes) stays unknown.
"""

from __future__ import annotations

import ast
import operator
import posixpath
import re
from collections.abc import Callable
from itertools import pairwise

from opwalker.link.build_run import Run
from opwalker.link.build_tree import BINARY, ROOT, resolve
from opwalker.link.build_values import MARK, Argument, Item, Value, flat, shown, split_list
from opwalker.model.build import BuildCommand


def run_set(run: Run, command: BuildCommand) -> None:
    """``set``, of a normal variable, a cache entry, the variable of the caller, or the environment."""
    arguments = run.arguments(command)
    if not arguments:
        return
    name, rest = arguments[0].word, arguments[1:]
    if MARK in name:
        return
    if name.startswith("ENV{"):
        run.branches.put(run.properties, name, flat(rest))
        return
    words = [argument.raw if not argument.quoted else "" for argument in rest]
    if "CACHE" in words:
        at = words.index("CACHE")
        force = "FORCE" in words[at:] or "INTERNAL" in words[at:]
        run.put_cache(name, flat(rest[:at]), force)
        return
    parent = words[-1:] == ["PARENT_SCOPE"]
    run.put(name, flat(rest[:-1] if parent else rest), parent)


def run_unset(run: Run, command: BuildCommand) -> None:
    """``unset``"""
    words = [argument.word for argument in run.arguments(command)]
    if not words or MARK in words[0]:
        return
    if "CACHE" in words[1:]:
        run.branches.put(run.cache, words[0], ())
    else:
        run.put(words[0], (), parent="PARENT_SCOPE" in words[1:])


def run_option(run: Run, command: BuildCommand) -> None:
    """``option``: the default, unless something has given a value already."""
    arguments = run.arguments(command)
    if arguments and run.lookup(arguments[0].word) is None:
        default = arguments[2].items if len(arguments) > 2 else (Item("OFF", (), run.file, run.line),)
        run.put_cache(arguments[0].word, default, force=False)


def run_dependent_option(run: Run, command: BuildCommand) -> None:
    """``cmake_dependent_option``: the default where its conditions may hold."""
    arguments = run.arguments(command)
    if len(arguments) > 2 and run.lookup(arguments[0].word) is None:
        run.put_cache(arguments[0].word, arguments[2].items, force=False)


def run_parse_arguments(run: Run, command: BuildCommand) -> None:
    """``cmake_parse_arguments``: keyword arguments of a project's function become variables."""
    arguments = run.arguments(command)
    given: list[Argument]
    if arguments and arguments[0].word == "PARSE_ARGV":
        start = arguments[1].plain if len(arguments) > 5 else None
        if start is None or not start.isdigit():
            return
        given, arguments = _from_position(run, int(start)), arguments[2:]
    else:
        given = arguments[4:]
    if len(arguments) < 4:
        return
    prefix = arguments[0].word
    options, singles, multiples = ([item.text for item in argument.items] for argument in arguments[1:4])
    values: dict[str, list[Item]] = {}
    unparsed: list[Item] = []
    current = ""
    for argument in given:
        keyword = argument.word
        if keyword in options:
            values[keyword], current = [Item("TRUE")], ""
        elif keyword in singles or keyword in multiples:
            current = keyword
            values.setdefault(keyword, [])
        elif current in multiples:
            values[current].extend(argument.items)
        elif current:
            values[current], current = list(argument.items), ""
        else:
            unparsed.extend(argument.items)
    for name in options:
        run.put(f"{prefix}_{name}", tuple(values.get(name, [Item("FALSE")])))
    for name in [*singles, *multiples]:
        run.put(f"{prefix}_{name}", tuple(values.get(name, ())))
    run.put(f"{prefix}_UNPARSED_ARGUMENTS", tuple(unparsed))


def _from_position(run: Run, start: int) -> list[Argument]:
    found: list[Argument] = []
    index = start
    while (items := run.positional(index)) is not None and index < 500:
        found.append(Argument(items, True, ""))
        index += 1
    return found


# --- paths and files -------------------------------------------------------------------------------------------

_COMPONENTS: dict[str, Callable[[str], str]] = {
    "DIRECTORY": posixpath.dirname,
    "PATH": posixpath.dirname,
    "NAME": posixpath.basename,
    "NAME_WE": lambda path: posixpath.basename(path).split(".")[0],
    "NAME_WLE": lambda path: posixpath.splitext(posixpath.basename(path))[0],
    "EXT": lambda path: "".join(re.findall(r"\..*\Z", posixpath.basename(path))),
    "LAST_EXT": lambda path: posixpath.splitext(path)[1],
}


def run_filename_component(run: Run, command: BuildCommand) -> None:
    """``get_filename_component``"""
    arguments = run.arguments(command)
    if len(arguments) < 3:
        return
    mode, path = arguments[2].word, arguments[1].plain
    if path is None:
        run.answer(arguments[:1], None)
    elif mode in ("ABSOLUTE", "REALPATH"):
        base = arguments[4].word if len(arguments) > 4 and arguments[3].word == "BASE_DIR" else run.directory
        run.answer(arguments[:1], resolve(path, base))
    else:
        component = _COMPONENTS.get(mode)
        run.answer(arguments[:1], component(path) if component else None)


_UNKNOWN_CONTENTS = ("READ", "STRINGS", "MD5", "SHA1", "SHA256", "SIZE", "TIMESTAMP", "READ_SYMLINK")


def run_file(run: Run, command: BuildCommand) -> None:
    """``file``: globs over the files of the source, and path arithmetic; contents stay unknown."""
    arguments = run.arguments(command)
    if len(arguments) < 2:
        return
    operation = arguments[0].word
    if operation in ("GLOB", "GLOB_RECURSE"):
        _glob(run, arguments[1].word, arguments[2:], operation == "GLOB_RECURSE")
    elif operation == "RELATIVE_PATH" and len(arguments) > 3:
        base, path = arguments[2].plain, arguments[3].plain
        known = base is not None and path is not None and base.startswith("/")
        run.answer(arguments[1:2], posixpath.relpath(path or "", base or "") if known else None)
    elif operation == "REAL_PATH" and len(arguments) > 2:
        path = arguments[1].plain
        run.answer(arguments[2:3], None if path is None else resolve(path, run.directory))
    elif operation in _UNKNOWN_CONTENTS and len(arguments) > 2:
        run.answer(arguments[2:3], None)
    elif operation in ("TO_CMAKE_PATH", "TO_NATIVE_PATH") and len(arguments) > 2:
        run.put(arguments[2].word, arguments[1].items)


def _glob(run: Run, output: str, patterns: list[Argument], recursive: bool) -> None:
    found: list[Item] = []
    base = None
    skip = ""
    for argument in patterns:
        word = argument.word
        if skip:
            base = resolve(word, run.directory) if skip == "RELATIVE" else base
            skip = ""
        elif word in ("RELATIVE", "LIST_DIRECTORIES"):
            skip = word
        elif word not in ("CONFIGURE_DEPENDS", "FOLLOW_SYMLINKS"):
            for item in argument.items:
                found.extend(_matches(run, item, recursive))
    if base is not None and base.startswith("/"):
        found = [i._replace(text=posixpath.relpath(i.text, base)) if i.text.startswith(ROOT) else i for i in found]
    run.put(output, tuple(found))


def _matches(run: Run, pattern: Item, recursive: bool) -> list[Item]:
    if MARK in pattern.text:
        return [pattern]
    path = resolve(pattern.text, run.directory)
    paths = run.tree.matching(path, any_depth=recursive)
    if not paths:
        written = shown(pattern.text).replace(ROOT + "/", "").replace(BINARY, "${CMAKE_BINARY_DIR}")
        run.problem("unresolved", f"file(GLOB {written}) matches no file of the source")
    return [Item(path, pattern.guard, run.file, run.line) for path in paths]


# --- what a machine would say ----------------------------------------------------------------------------------


def run_find(run: Run, command: BuildCommand) -> None:
    """``find_library`` and its kin: where it is cannot be known."""
    arguments = run.arguments(command)
    if arguments and MARK not in arguments[0].word:
        run.put(arguments[0].word, (run.unknown(arguments[0].word),))


def run_execute_process(run: Run, command: BuildCommand) -> None:
    """``execute_process``: nothing is run, so outputs are unknown."""
    arguments = run.arguments(command)
    for keyword, output in pairwise(arguments):
        if keyword.word in ("OUTPUT_VARIABLE", "RESULT_VARIABLE", "ERROR_VARIABLE", "RESULTS_VARIABLE"):
            run.answer([output], None)


def run_get_property(run: Run, command: BuildCommand) -> None:
    """``get_property``: global ones are known, others are not."""
    arguments = run.arguments(command)
    words = [argument.word for argument in arguments]
    if len(words) > 3 and words[1] == "GLOBAL" and "PROPERTY" in words:
        name = words[words.index("PROPERTY") + 1]
        run.put(words[0], run.branches.get(run.properties, name, ()))
    elif words:
        run.answer(arguments[:1], None)


def run_get_target_property(run: Run, command: BuildCommand) -> None:
    """``get_target_property``: not known."""
    run.answer(run.arguments(command)[:1], None)


def run_separate_arguments(run: Run, command: BuildCommand) -> None:
    """``separate_arguments``: a command line becomes a list."""
    arguments = run.arguments(command)
    if not arguments:
        return
    name = arguments[0].word
    items: Value = flat(arguments[2:]) if len(arguments) > 1 else run.lookup(name) or ()
    run.put(name, tuple(item.becoming(text) for item in items for text in item.text.split()))


_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: int(a / b),
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}


def run_math(run: Run, command: BuildCommand) -> None:
    """``math(EXPR ...)`` on whole numbers."""
    arguments = run.arguments(command)
    if len(arguments) < 3:
        return
    text = arguments[2].plain
    number = None
    if text is not None and len(text) < 200 and re.fullmatch(r"[\d\s+*/%()|&^-]+", text):
        number = _number(text)
    run.answer(arguments[1:2], None if number is None else str(number))


def _number(text: str) -> int | None:
    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise ValueError(text)

    try:
        return value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError):
        return None


def run_cmake_path(run: Run, command: BuildCommand) -> None:
    """``cmake_path(SET ...)``; other forms leave their result unknown."""
    arguments = run.arguments(command)
    words = [argument.word for argument in arguments]
    if words[:1] == ["SET"] and len(words) > 2:
        run.put(words[1], tuple(Item(text, (), run.file, run.line) for text in split_list(words[-1])))
    elif "OUTPUT_VARIABLE" in words[:-1]:
        run.answer([arguments[words.index("OUTPUT_VARIABLE") + 1]], None)


HANDLERS: dict[str, Callable[[Run, BuildCommand], None]] = {
    "set": run_set,
    "unset": run_unset,
    "option": run_option,
    "cmake_dependent_option": run_dependent_option,
    "cmake_parse_arguments": run_parse_arguments,
    "get_filename_component": run_filename_component,
    "file": run_file,
    "find_library": run_find,
    "find_program": run_find,
    "find_path": run_find,
    "find_file": run_find,
    "execute_process": run_execute_process,
    "get_property": run_get_property,
    "get_target_property": run_get_target_property,
    "separate_arguments": run_separate_arguments,
    "math": run_math,
    "cmake_path": run_cmake_path,
}
