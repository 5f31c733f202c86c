"""CMake commands that decide what runs: loops, definitions, other files, packages, errors.

In: the interpreter and the command. Out: state changed, files run; a command that leaves its block says so.
"""

from __future__ import annotations

from collections.abc import Callable

from opwalker.link.build_guard import Guard, Stopped
from opwalker.link.build_run import BREAK, CONTINUE, MAX_ROUNDS, NEXT, RETURN, Run
from opwalker.link.build_state import Scope
from opwalker.link.build_tree import BINARY, ROOT, resolve
from opwalker.link.build_values import MARK, Argument, Item, Value, flat, is_unknown, shown
from opwalker.model.build import BuildCommand

_LANGUAGE_KEYWORDS = {"VERSION", "DESCRIPTION", "HOMEPAGE_URL", "COMPAT_VERSION"}


def run_foreach(run: Run, command: BuildCommand) -> str | None:
    """``foreach``, over items, lists or a range of numbers."""
    arguments = run.arguments(command)
    if not arguments:
        return None
    name = arguments[0].word
    items = _loop_items(run, arguments[1:])
    outer = run.lookup(name)
    rounds: list[tuple[Guard, Callable[[], None]]] = []
    for item in items:
        guard = item.guard
        if is_unknown(item.text):
            text = shown(item.text).removeprefix("${").removesuffix("}")
            guard = (*guard, run.branches.literal(("elements", item.text), text))
        rounds.append((guard, _binder(run, name, item)))
    status = run.run_loop(rounds, command.body)
    run.put(name, outer or ())
    return status


def _binder(run: Run, name: str, item: Item) -> Callable[[], None]:
    return lambda: run.put(name, (item,))


def _loop_items(run: Run, arguments: list[Argument]) -> Value:
    first = arguments[0].word if arguments else ""
    if first == "RANGE":
        numbers = [argument.plain for argument in arguments[1:4]]
        if not numbers or any(n is None or not n.lstrip("-").isdigit() or len(n) > 6 for n in numbers):
            return ()
        values = [int(n or "0") for n in numbers]
        start, stop = (0, values[0]) if len(values) == 1 else values[:2]
        step = values[2] if len(values) == 3 and values[2] else 1
        # One more than the loop will take, so that it can say that it was cut off.
        return tuple(Item(str(n)) for n in range(start, stop + 1, step)[: MAX_ROUNDS + 1])
    if first != "IN":
        return flat(arguments)
    items: list[Item] = []
    mode = ""
    for argument in arguments[1:]:
        if argument.raw in ("LISTS", "ITEMS", "ZIP_LISTS") and not argument.quoted:
            mode = argument.raw
        elif mode == "ITEMS":
            items.extend(argument.items)
        elif mode == "LISTS":
            for name in argument.items:
                items.extend(run.lookup(name.text) or ())
    return tuple(items)


def run_while(run: Run, command: BuildCommand) -> str | None:
    """``while``: as often as the condition is known to hold; once, if that is not known."""
    for _ in range(1_000):
        answer, identity = run.test(command)
        if answer.truth is False:
            return None
        if answer.truth is None:
            literal = run.branches.literal(identity, answer.negated or answer.text)
            literal = literal.negated() if answer.negated else literal
            return run.run_loop([((literal,), lambda: None)], command.body)
        status = run.run_block(command.body)
        if status in (BREAK, RETURN):
            return RETURN if status == RETURN else None
    run.problem("limit", "a while loop was cut off after 1000 rounds")
    return None


def define(run: Run, command: BuildCommand) -> None:
    """``function`` and ``macro``: the last definition of a name counts, wherever it stands."""
    if command.arguments:
        run.commands[command.arguments[0].text.lower()] = (command, run.file)


def run_scope_block(run: Run, command: BuildCommand) -> str | None:
    """``block()``: variables are its own unless it says otherwise."""
    words = [argument.word for argument in run.arguments(command)]
    if "POLICIES" in words and "VARIABLES" not in words:
        return run.run_block(command.body)
    outer = run.scope
    passed_on = words[words.index("PROPAGATE") + 1 :] if "PROPAGATE" in words else []
    run.scope = Scope(outer)
    try:
        status = run.run_block(command.body)
        for name in passed_on:
            run.put(name, run.lookup(name) or (), parent=True)
    finally:
        run.scope = outer
    return status


def run_return(run: Run, command: BuildCommand) -> str:
    """``return``, with the variables that it hands to the caller."""
    words = [argument.word for argument in run.arguments(command)]
    if words[:1] == ["PROPAGATE"]:
        for name in words[1:]:
            run.put(name, run.lookup(name) or (), parent=True)
    return RETURN


def run_include(run: Run, command: BuildCommand) -> str | None:
    """``include``: a file of the tree, or a module on the module path; CMake's own modules are not read."""
    arguments = run.arguments(command)
    name = arguments[0].plain if arguments else None
    if name is None or MARK in name:
        return None
    optional = any(argument.word == "OPTIONAL" for argument in arguments[1:])
    path = resolve(name, run.directory)
    if run.tree.is_file(path):
        run.run_file(run.tree.relative(path) or "")
        return None
    for folder in run.lookup("CMAKE_MODULE_PATH") or ():
        module = resolve(f"{folder.text}/{name}.cmake", run.directory)
        if run.tree.is_file(module):
            run.run_file(run.tree.relative(module) or "")
            return None
    if name.endswith(".cmake") and path.startswith(ROOT) and not optional:
        run.problem("unresolved", f"include({shown(arguments[0].raw)}): no such file in the source")
    return None


def run_subdirectory(run: Run, command: BuildCommand) -> None:
    """``add_subdirectory``: a scope and a folder of its own."""
    arguments = run.arguments(command)
    name = arguments[0].plain if arguments else None
    if name is None or MARK in name:
        return
    path = resolve(name, run.directory)
    listed = run.tree.relative(f"{path}/CMakeLists.txt")
    if path.startswith(BINARY) or listed is None:
        return
    if listed not in run.files:
        run.problem("unresolved", f"add_subdirectory({shown(arguments[0].raw)}): no CMakeLists.txt in the source")
        return
    outer = run.scope, run.directory
    run.scope = Scope(run.scope)
    run.directory = path
    try:
        run.run_folder(listed)
    finally:
        run.scope, run.directory = outer


def run_project(run: Run, command: BuildCommand) -> None:
    """``project``: its names, and the languages without which it cannot be configured."""
    arguments = run.arguments(command)
    if not arguments:
        return
    name = arguments[0].word
    here = (Item(run.directory),)
    binary = run.lookup("CMAKE_CURRENT_BINARY_DIR") or ()
    run.put("PROJECT_NAME", arguments[0].items)
    run.put("PROJECT_SOURCE_DIR", here)
    run.put("PROJECT_BINARY_DIR", binary)
    run.put(f"{name}_SOURCE_DIR", here)
    run.put(f"{name}_BINARY_DIR", binary)
    if run.cache.get("CMAKE_PROJECT_NAME") is None:
        run.put_cache("CMAKE_PROJECT_NAME", arguments[0].items, force=True)
    words = [argument.word for argument in arguments[1:]]
    skip = False
    for position, word in enumerate(words):
        if skip:
            skip = False
        elif word in _LANGUAGE_KEYWORDS:
            skip = True
            if word == "VERSION" and position + 1 < len(words):
                run.put("PROJECT_VERSION", arguments[position + 2].items)
        else:
            _need_language(run, word)


def run_enable_language(run: Run, command: BuildCommand) -> None:
    """``enable_language``"""
    words = [argument.word for argument in run.arguments(command)]
    if "OPTIONAL" not in words:
        for word in words:
            _need_language(run, word)


def _need_language(run: Run, language: str) -> None:
    if run.seeds.language(language) is False:
        raise Stopped


def run_find_package(run: Run, command: BuildCommand) -> None:
    """``find_package``: found if it is required, unless this kind of build cannot have it."""
    arguments = run.arguments(command)
    name = arguments[0].word if arguments else ""
    if not name or MARK in name:
        return
    required = any(argument.word == "REQUIRED" for argument in arguments[1:])
    found = run.seeds.package(name)
    if found is False and required:
        raise Stopped
    if found is None and required:
        found = True
    if found is not None:
        run.put(f"{name}_FOUND", (Item("TRUE" if found else "FALSE"),))
    if found and name == "Torch" and run.seeds.cuda is not None:
        # Torch's own CMake files turn the list of architectures into flags for every CUDA source.
        before = " ".join(item.text for item in run.lookup("CMAKE_CUDA_FLAGS") or ())
        run.put("CMAKE_CUDA_FLAGS", (Item(f"{before} {run.seeds.cuda.flags}".strip()),))


def run_message(run: Run, command: BuildCommand) -> None:
    """``message``: an error ends the build."""
    if command.arguments and command.arguments[0].text in ("FATAL_ERROR", "SEND_ERROR"):
        raise Stopped


def run_language(run: Run, command: BuildCommand) -> str | None:
    """``cmake_language(CALL command ...)``"""
    arguments = run.arguments(command)
    if len(arguments) > 1 and arguments[0].word == "CALL":
        name = arguments[1].word.lower()
        if name in run.commands:
            run.call(name, arguments[2:])
    return None


def run_include_guard(run: Run, command: BuildCommand) -> str:
    """``include_guard``: leaves the file if it was read before."""
    return RETURN if run.entered.count(run.file) > 1 else NEXT


HANDLERS: dict[str, Callable[[Run, BuildCommand], str | None]] = {
    "foreach": run_foreach,
    "while": run_while,
    "function": define,
    "macro": define,
    "block": run_scope_block,
    "return": run_return,
    "break": lambda run, command: BREAK,
    "continue": lambda run, command: CONTINUE,
    "include": run_include,
    "include_guard": run_include_guard,
    "add_subdirectory": run_subdirectory,
    "project": run_project,
    "enable_language": run_enable_language,
    "find_package": run_find_package,
    "message": run_message,
    "cmake_language": run_language,
}
