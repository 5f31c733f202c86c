"""CMake commands that make targets and say how they are compiled.

In: the interpreter and the command. Out: events (``build_events``). Which command makes what is a table, so that a
further one is a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opwalker.link.build_run import Run
from opwalker.link.build_tree import resolve
from opwalker.link.build_values import MARK, Argument, Item, Value, flat, shown
from opwalker.model.build import BuildCommand
from opwalker.notation.regex import Regex

#: Commands that make a target, and what it is if no keyword says otherwise.
MAKERS = {
    "add_library": "library",
    "add_executable": "executable",
    "python_add_library": "module",
    "python2_add_library": "module",
    "python3_add_library": "module",
    "pybind11_add_module": "module",
    "nanobind_add_module": "module",
    "cuda_add_library": "library",
    "cuda_add_executable": "executable",
    "hip_add_library": "library",
    "hip_add_executable": "executable",
}

#: Keywords of these commands that change what is made; ``interface`` and ``imported`` are not compiled.
_KINDS = {"MODULE": "module", "INTERFACE": "interface", "IMPORTED": "imported"}
_WITH_VALUE = {"USE_SABI", "NB_DOMAIN", "NB_SUFFIX"}
_KEYWORD = Regex(r"[A-Z][A-Z0-9_]+\Z")
_VISIBILITIES = {"PRIVATE": "", "PUBLIC": "PUBLIC", "INTERFACE": "INTERFACE"}
_PLACEMENTS = {"BEFORE", "AFTER", "SYSTEM"}

#: Properties of targets and files that say how they are compiled or what comes out.
_PROPERTIES = {
    "OUTPUT_NAME",
    "LIBRARY_OUTPUT_NAME",
    "COMPILE_DEFINITIONS",
    "COMPILE_OPTIONS",
    "COMPILE_FLAGS",
    "INCLUDE_DIRECTORIES",
    "INTERFACE_COMPILE_DEFINITIONS",
}


def make_target(run: Run, command: BuildCommand) -> None:
    """``add_library`` and every other command of MAKERS."""
    arguments = run.arguments(command)
    if not arguments:
        return
    name = arguments[0].word
    if MARK in name:
        run.problem("unresolved", f"{command.name}: the name {shown(name)} is not known")
        return
    kind = MAKERS[command.name]
    sources: list[Item] = []
    skip = False
    for position, argument in enumerate(arguments[1:], start=1):
        word = argument.word
        if skip:
            skip = False
        elif word == "ALIAS" and position + 1 < len(arguments):
            run.report("alias", name, detail=arguments[position + 1].word)
            return
        elif word in _WITH_VALUE:
            skip = True
        elif _KEYWORD.match(word) and not argument.quoted:
            kind = _KINDS.get(word, kind)
        else:
            sources.extend(argument.items)
    run.report("target", name, tuple(sources), kind)
    if run.seeds.cuda is not None and not run.seeds.cuda.assumed:
        run.report("architectures", name, run.lookup("CMAKE_CUDA_ARCHITECTURES") or ())


def _sections(arguments: list[Argument]) -> Iterator[tuple[str, Value]]:
    """The items of a target command by visibility; PUBLIC where none is given, as CMake has it."""
    visibility = "PUBLIC"
    items: list[Item] = []
    for argument in arguments:
        word = argument.word
        if word in _VISIBILITIES and not argument.quoted:
            if items:
                yield visibility, tuple(items)
            visibility, items = _VISIBILITIES[word], []
        elif word not in _PLACEMENTS:
            items.extend(argument.items)
    if items:
        yield visibility, tuple(items)


def _for_target(what: str) -> Callable[[Run, BuildCommand], None]:
    def give(run: Run, command: BuildCommand) -> None:
        arguments = run.arguments(command)
        if not arguments or MARK in arguments[0].word:
            return
        rest = arguments[1:]
        words = [argument.word for argument in rest]
        if "FILE_SET" in words:
            rest = rest[: words.index("FILE_SET")]
        for visibility, items in _sections(rest):
            run.report(what, arguments[0].word, items, visibility)

    return give


def _for_folder(what: str) -> Callable[[Run, BuildCommand], None]:
    def give(run: Run, command: BuildCommand) -> None:
        items = tuple(item for argument in run.arguments(command) for item in argument.items)
        kept = tuple(item for item in items if item.text not in _PLACEMENTS)
        if kept:
            run.report(what, "", kept)

    return give


def set_target_properties(run: Run, command: BuildCommand) -> None:
    """``set_target_properties(target ... PROPERTIES name value ...)``"""
    _pairs(run, run.arguments(command), "property")


def set_file_properties(run: Run, command: BuildCommand) -> None:
    """``set_source_files_properties(file ... PROPERTIES name value ...)``"""
    _pairs(run, run.arguments(command), "file")


def _pairs(run: Run, arguments: list[Argument], what: str) -> None:
    words = [argument.raw for argument in arguments]
    if "PROPERTIES" not in words:
        return
    at = words.index("PROPERTIES")
    named = flat(arguments[:at])
    pairs = arguments[at + 1 :]
    for key, value in zip(pairs[::2], pairs[1::2], strict=False):
        _property(run, what, named, key.word, value.items)


def _property(run: Run, what: str, named: Value, name: str, items: Value) -> None:
    if name == "CUDA_ARCHITECTURES" and what == "property":
        for item in named:
            run.report("architectures", item.text, items)
    if name not in _PROPERTIES or not items:
        return
    if name in ("COMPILE_OPTIONS", "COMPILE_FLAGS") and not any("D" in item.text for item in items):
        # No macro among the flags: most of these are flags of the device compiler, for file after file. Which
        # architectures they are for is worth keeping where it is known.
        if run.seeds.cuda is None or not any("arch=" in item.text for item in items):
            return
    for item in named:
        if MARK in item.text and what == "property":
            continue
        target = resolve(item.text, run.directory) if what == "file" else item.text
        run.report(what, target, tuple(i.under(item.guard) for i in items), name)


def set_property(run: Run, command: BuildCommand) -> None:
    """``set_property``, of targets, files, folders and globally."""
    arguments = run.arguments(command)
    words = [argument.raw for argument in arguments]
    if len(arguments) < 3 or "PROPERTY" not in words:
        return
    at = words.index("PROPERTY")
    if at + 1 >= len(arguments):
        return
    scope, name, items = words[0], arguments[at + 1].word, flat(arguments[at + 2 :])
    named = flat([a for a in arguments[1:at] if a.word not in ("APPEND", "APPEND_STRING")])
    if scope == "GLOBAL":
        old = run.branches.get(run.properties, name, ()) if "APPEND" in words[:at] else ()
        run.branches.put(run.properties, name, old + items)
    elif scope == "TARGET":
        _property(run, "property", named, name, items)
    elif scope == "SOURCE":
        _property(run, "file", named, name, items)
    elif scope == "DIRECTORY":
        what = {"COMPILE_DEFINITIONS": "folder-defines", "COMPILE_OPTIONS": "folder-options"}.get(name)
        if what and items:
            run.report(what, "", items)


def install(run: Run, command: BuildCommand) -> None:
    """``install(TARGETS ...)``: where libraries go."""
    arguments = run.arguments(command)
    words = [argument.word for argument in arguments]
    if words[:1] != ["TARGETS"] or "DESTINATION" not in words[:-1]:
        return
    names: list[str] = []
    for word in words[1:]:
        if _KEYWORD.match(word):
            break
        names.append(word)
    library = words.index("LIBRARY") if "LIBRARY" in words else 0
    at = words.index("DESTINATION", library) if "DESTINATION" in words[library:-1] else words.index("DESTINATION")
    for name in names:
        run.report("install", name, detail=words[at + 1])


HANDLERS: dict[str, Callable[[Run, BuildCommand], None]] = {
    **dict.fromkeys(MAKERS, make_target),
    "target_sources": _for_target("sources"),
    "target_compile_definitions": _for_target("defines"),
    "target_compile_options": _for_target("options"),
    "target_include_directories": _for_target("includes"),
    "target_link_libraries": _for_target("links"),
    "add_compile_definitions": _for_folder("folder-defines"),
    "add_definitions": _for_folder("folder-options"),
    "add_compile_options": _for_folder("folder-options"),
    "include_directories": _for_folder("folder-includes"),
    "set_target_properties": set_target_properties,
    "set_source_files_properties": set_file_properties,
    "set_property": set_property,
    "install": install,
}
