"""Python build scripts to targets: which files and functions to start from, for one kind of build.

In: Python files of a tree. Out: targets and problems. Setup scripts are evaluated as they would run; in other files,
every function that compiles something is evaluated, and every class that has or inherits a method that does.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Mapping

from msgspec import Struct, field

from opwalker.link.build_assemble import Assembly
from opwalker.link.build_guard import Guard, LimitReached, Stopped
from opwalker.link.build_py_names import ParsedFiles, import_places
from opwalker.link.build_py_run import PyRun
from opwalker.link.build_py_values import Class, Function, Module
from opwalker.link.build_seeds import Seeds
from opwalker.link.build_tree import Tree
from opwalker.model.build import BUILDS, BuildFile, Target
from opwalker.notation.regex import Regex

#: Kinds of build, and devices that are not told apart, as file and folder names have them.
_DEVICE_WORDS = {"cuda": "cuda", "rocm": "rocm", "hip": "rocm", "cpu": "cpu"}
_OTHER_DEVICES = Regex(r"(?:^|[/_-])(?:xpu|npu|hpu|mlu|musa|sycl|tpu|mps|metal|sdaa|supa|klxpu|vulkan)(?:[/_.-]|$)")
_VARIANT = Regex(r"(?:setup|pyproject)[_-](\w+)\.\w+\Z")


class Scripts(Struct):
    """What the scripts of a tree came to in one kind of build.

    ``module_names`` are modules that a script lists without sources: something else, mostly CMake, makes them.
    """

    targets: list[Target] = field(default_factory=list)
    module_names: list[tuple[str, Guard]] = field(default_factory=list)
    problems: list[tuple[str, int, str, str]] = field(default_factory=list)


def builds_of_file(path: str) -> tuple[str, ...]:
    """The kinds of build that a file is for, by its name: ``setup_rocm.py`` for one, ``npu/builder.py`` for none."""
    match = _VARIANT.search(posixpath.basename(path))
    if match:
        build = _DEVICE_WORDS.get(match.group(1))
        return (build,) if build else ()
    return () if _OTHER_DEVICES.search(path) else BUILDS


def evaluate_setup(files: Mapping[str, BuildFile], parsed: ParsedFiles, tree: Tree, seeds: Seeds, path: str) -> Scripts:
    """Evaluate one setup script."""
    run = PyRun(files, parsed, tree, seeds)
    try:
        module = run.load(path, posixpath.dirname(path), as_main=True)
        if module is not None:
            _run_functions(run, module)
    except (LimitReached, RecursionError):
        _cut_off(run, path)
    return _finished(run, tree)


def evaluate_others(
    files: Mapping[str, BuildFile], parsed: ParsedFiles, tree: Tree, seeds: Seeds, paths: list[str]
) -> Scripts:
    """Evaluate files that compile when they are imported or called (``may_compile``)."""
    run = PyRun(files, parsed, tree, seeds)
    run.lenient = True
    modules: list[Module] = []
    for path in paths:
        try:
            module = run.load(path, "")
            if module is not None:
                modules.append(module)
                _run_functions(run, module)
        except (LimitReached, RecursionError):
            _cut_off(run, path)
    for module in modules:
        for cls in module.classes:
            _run_class(run, cls)
    return _finished(run, tree)


def may_compile(files: Mapping[str, BuildFile], parsed: ParsedFiles, path: str) -> bool:
    """Whether a file is worth an evaluation: it calls a build helper, defines sources, or hands them to a file that
    works with torch's helpers."""
    text = files[path].text
    own = "cpp_extension" in text or "Extension(" in text
    handed_on = "sources=" in text and "name=" in text and _imports_helper(files, path, text)
    if not (own or "def sources(" in text or handed_on):
        return False
    syntax = parsed.tree(files[path])
    if syntax is None or "def sources(" in text:
        return syntax is not None
    if own:
        return parsed.compiles(syntax)
    names = parsed.handed_to(syntax)
    imports = [node for node in ast.walk(syntax) if isinstance(node, ast.ImportFrom)] if names else []
    return any(
        _is_helper(files, path, node.module or "", node.level)
        for node in imports
        if any((alias.asname or alias.name) in names for alias in node.names)
    )


_FROM = Regex(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import\b", re.MULTILINE)


def _imports_helper(files: Mapping[str, BuildFile], path: str, text: str) -> bool:
    """Whether a file imports from one that works with torch's helpers; asked before it is parsed."""
    return any(_is_helper(files, path, m.group(2), len(m.group(1))) for m in _FROM.finditer(text))


def _is_helper(files: Mapping[str, BuildFile], importer: str, module: str, level: int) -> bool:
    places = import_places(importer, module, level)
    return any(place in files and "cpp_extension" in files[place].text for place in places)


def _finished(run: PyRun, tree: Tree) -> Scripts:
    assembly = Assembly(run.events, tree, run.seeds.build, cuda=run.seeds.cuda)
    targets = assembly.targets()
    return Scripts(targets, run.module_names, [*run.problems, *assembly.problems])


def _run_functions(run: PyRun, module: Module) -> None:
    """Evaluate the functions of a module that compile something and were not called yet."""
    for node in module.tree.body:
        if not isinstance(node, ast.FunctionDef) or node in run.called or not run.parsed.compiles(node):
            continue
        function = module.frame.vars.get(node.name)
        if isinstance(function, Function) and function.node is node:
            _attempt(run, function)


def _run_class(run: PyRun, cls: Class) -> None:
    """Evaluate the compiling methods of a class on an instance of it."""
    node = next((n for n in ast.walk(cls.module.tree) if isinstance(n, ast.ClassDef) and n.name == cls.name), None)
    seen: set[str] = set()
    for ancestor in cls.lineage():
        for name, method in ancestor.attrs.items():
            if name in seen or not isinstance(method, Function):
                continue
            seen.add(name)
            if name == "__init__" or isinstance(method.node, ast.Lambda) or not run.parsed.compiles(method.node):
                continue
            run.site = (cls.module.path, node.lineno) if node else None
            run.frame = cls.module.frame
            run.allow_more()
            try:
                instance = run.construct(cls, [], {}, None)
                _attempt(run, Function(method.node, method.frame, method.owner, instance))
            except (Stopped, LimitReached, RecursionError):
                continue
            finally:
                run.site = None


def _attempt(run: PyRun, function: Function) -> None:
    run.frame = function.frame
    run.allow_more()
    try:
        run.call_function(function, [], {})
    except Stopped:
        # It ends with an error whatever is handed to it: there is nothing that it compiles.
        return
    except (LimitReached, RecursionError):
        _cut_off(run, function.frame.module.path)


def _cut_off(run: PyRun, path: str) -> None:
    problem = (path, run.line, "limit", "the evaluation of this script was cut off")
    if problem not in run.problems:
        run.problems.append(problem)
