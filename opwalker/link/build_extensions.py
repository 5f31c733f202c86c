"""Extension modules that Python makes: torch's and setuptools' helpers, and calls of a project's own around them.

In: the evaluated arguments of a call. Out: events (``build_events``). Which helper makes what is a table.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from opwalker.link.build_events import Event
from opwalker.link.build_guard import Guard, join
from opwalker.link.build_py_values import (
    Function,
    Map,
    Module,
    Ref,
    Seq,
    Unknown,
    as_text,
    elements_of,
    options_of,
)
from opwalker.link.build_tree import absolute, resolve
from opwalker.link.build_values import MARK, Item, Value, shown

if TYPE_CHECKING:
    from opwalker.link.build_py_run import PyRun

#: Helpers that make an extension module, by the last part of their name: the kinds of build that can have it.
FACTORIES: dict[str, tuple[str, ...]] = {
    "CUDAExtension": ("cuda", "rocm"),
    "CppExtension": ("cuda", "rocm", "cpu"),
    "Extension": ("cuda", "rocm", "cpu"),
    "Pybind11Extension": ("cuda", "rocm", "cpu"),
    "CMakeExtension": ("cuda", "rocm", "cpu"),
    # For devices that are not told apart here.
    "SyclExtension": (),
    "SYCLExtension": (),
    "NpuExtension": (),
    "MUSAExtension": (),
}

#: Torch's own compile-and-load, by the end of its dotted name.
LOADERS = ("cpp_extension.load",)

#: Suffixes of files that are compiled.
SOURCE_SUFFIXES = (".cpp", ".cc", ".cxx", ".c", ".cu", ".hip")

#: The keys of ``extra_compile_args`` by the language that they are for.
_ARGUMENT_LANGUAGES = {"cxx": "CXX", "nvcc": "CUDA", "hipcc": "HIP"}


def report_extension(run: PyRun, node: ast.Call, callee: Ref, arguments: list[Any], keywords: dict[str, Any]) -> bool:
    """Report the module that a helper makes; False if it is none."""
    helper = callee.name.rpartition(".")[2]
    loader = any(callee.name == name or callee.name.endswith("." + name) for name in LOADERS)
    if helper not in FACTORIES and not loader:
        return False
    given = dict(zip(("name", "sources"), arguments, strict=False))
    given.update(keywords)
    if not loader and run.seeds.build not in FACTORIES[helper]:
        return True
    if helper == "CUDAExtension" and run.seeds.build == "rocm" and "rocm" not in run.seeds.asked:
        # It is for a device whatever its files are; that it is ever built for ROCm, nobody has said.
        return True
    # Torch's build defines the name for every module that goes through its helpers.
    defines_name = loader or "cpp_extension" in callee.name
    _report(run, node, given, "jit" if loader else "module", defines_name)
    return True


def report_handed_on(run: PyRun, node: ast.Call, module: Module, keywords: dict[str, Any]) -> None:
    """Report a call that hands ``name`` and ``sources`` to a function or class that works with torch's helpers.

    Counted only if the sources are files of the tree: then there is no doubt what is compiled.
    """
    if "name" not in keywords or "sources" not in keywords or "cpp_extension" not in module.text:
        return
    given = {key: _called(run, value) for key, value in keywords.items()}
    listed = _items(run, given["sources"], node)
    sources = tuple(item for item in listed if item.text.endswith(SOURCE_SUFFIXES))
    if _has_files(run, sources, absolute(run.frame.module.directory)):
        _report(run, node, given, "jit", True)


def _called(run: PyRun, value: Any) -> Any:
    return run.call_function(value, [], {}) if isinstance(value, Function) else value


def _report(run: PyRun, node: ast.Call, given: dict[str, Any], kind: str, defines_name: bool) -> None:
    file, line = run.site or (run.frame.module.path, node.lineno)
    directory = absolute(run.frame.module.directory)
    for guard, option in options_of(given.get("name")):
        name = as_text(option)
        sources = _items(run, given.get("sources"), node)
        if not sources:
            run.module_names.append((shown(name), join(run.branches.guard, guard)))
            continue
        if (option is None or MARK in name) and not _has_files(run, sources, directory):
            # The general form of a helper, which is met again where it is given something.
            continue
        # Two modules may have one name: the number keeps what is said of them apart.
        key = f"{name}#{run.next_number()}"
        reports: list[tuple[str, Value, str]] = [("target", sources, kind)]
        reports.append(("property", (Item(shown(name)),), "OUTPUT_NAME"))
        last = name.rpartition(".")[2]
        if defines_name and MARK not in last:
            reports.append(("defines", (Item(f"TORCH_EXTENSION_NAME={last}", (), file, line),), ""))
        reports.append(("defines", _macros(run, given.get("define_macros"), node), ""))
        reports.extend(("options", items, language) for language, items in _flags(run, given, node))
        for folders in ("include_dirs", "extra_include_paths"):
            reports.append(("includes", _items(run, given.get(folders), node), ""))
        for what, items, detail in reports:
            if items:
                inside = join(run.branches.guard, guard)
                run.events.append(Event(what, key, items, inside, directory, file, line, detail))


def _has_files(run: PyRun, sources: Value, directory: str) -> bool:
    return any(run.tree.is_file(resolve(item.text, directory)) for item in sources if MARK not in item.text)


def _items(run: PyRun, value: Any, node: ast.Call, guard: Guard = ()) -> Value:
    """A list of texts or paths as items."""
    elements = elements_of(value) if isinstance(value, (Seq, Map)) or not isinstance(value, str) else None
    if value is None:
        return ()
    if elements is None:
        unknown = value if isinstance(value, (Unknown, str)) else Unknown("sources")
        return (Item(as_text(unknown), guard, run.frame.module.path, node.lineno),)
    found: list[Item] = []
    for element in elements:
        text = as_text(element.value)
        if text:
            found.append(Item(text, join(guard, element.guard), element.file, element.line))
    return tuple(found)


def _macros(run: PyRun, value: Any, node: ast.Call) -> Value:
    """``[("NAME", "value"), ("NAME", None)]`` as items."""
    found: list[Item] = []
    for element in (elements_of(value) or ()) if value is not None else ():
        cells = elements_of(element.value) if isinstance(element.value, Seq) else None
        if not cells:
            continue
        texts = [as_text(cell.value) for cell in cells]
        bare = len(cells) < 2 or cells[1].value is None
        text = texts[0] if bare else f"{texts[0]}={texts[1]}"
        file, line = (element.file, element.line) if element.line else (run.frame.module.path, node.lineno)
        found.append(Item(text, element.guard, file, line))
    return tuple(found)


def _flags(run: PyRun, given: dict[str, Any], node: ast.Call) -> list[tuple[str, Value]]:
    """The compiler flags by language; "" for those that all files get."""
    device = "HIP" if run.seeds.build == "rocm" else "CUDA"
    found: list[tuple[str, Value]] = []
    for guard, option in options_of(given.get("extra_compile_args")):
        if isinstance(option, Map):
            for key, value in option.store.items():
                language = _ARGUMENT_LANGUAGES.get(str(key))
                if language:
                    flags = _items(run, value, node, guard)
                    found.append((device if language in ("CUDA", "HIP") else language, flags))
        elif option is not None:
            found.append(("", _items(run, option, node, guard)))
    found.append(("CXX", _items(run, given.get("extra_cflags"), node)))
    found.append((device, _items(run, given.get("extra_cuda_cflags"), node)))
    return found
