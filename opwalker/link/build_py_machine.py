"""Modules, names and calls of Python build scripts.

In: files of the tree and calls that were met. Out: values, and modules evaluated once each. Statements are run by
``build_py_run``, expressions by ``build_py_eval``.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from opwalker.link.build_extensions import report_extension, report_handed_on
from opwalker.link.build_guard import Guard, Stopped, join
from opwalker.link.build_py_calls import call_method, given_arguments
from opwalker.link.build_py_eval import Evaluator
from opwalker.link.build_py_library import FUNCTIONS
from opwalker.link.build_py_names import ParsedFiles, bound_names, import_places
from opwalker.link.build_py_values import (
    ABSENT,
    Choice,
    Class,
    Element,
    Frame,
    Function,
    Map,
    Module,
    Obj,
    PathText,
    Ref,
    Seq,
    Unknown,
    elements_of,
    merge_values,
    options_of,
    settled,
)
from opwalker.link.build_seeds import Seeds
from opwalker.link.build_tree import Tree, absolute
from opwalker.model.build import BuildFile

MAX_CALLS = 25
MAX_MODULES = 200

NEXT, RETURN, BREAK, CONTINUE = "next", "return", "break", "continue"


class Machine(Evaluator):
    """An evaluation that can load modules and call what they define."""

    def __init__(self, files: Mapping[str, BuildFile], parsed: ParsedFiles, tree: Tree, seeds: Seeds) -> None:
        super().__init__(tree, seeds, parsed.texts)
        self.files = files
        self.parsed = parsed
        self.modules: dict[str, Module | None] = {}
        #: Names of modules that are listed without sources, since something else makes them.
        self.module_names: list[tuple[str, Guard]] = []
        #: Where what is made next is said to be made, if not at the call that makes it.
        self.site: tuple[str, int] | None = None
        self.frame = Module("", ast.Module([], []), "", "").frame
        #: Whether a function that can only fail is taken to give something unknown, instead of ending the script:
        #: what it misses may well be made before it is called.
        self.lenient = False
        self.trying = 0
        self._depth = 0

    @abstractmethod
    def run_body(self, statements: Sequence[ast.stmt], start: int = 0) -> str:
        """Run statements from ``start`` on; gives how they ended."""

    # --- modules -----------------------------------------------------------------------------------------------

    def load(self, path: str, directory: str, as_main: bool = False) -> Module | None:
        """Evaluate a file of the tree once; None if it cannot be read. ``directory`` is the working folder."""
        if path in self.modules:
            return self.modules[path]
        file = self.files.get(path)
        tree = self.parsed.tree(file) if file is not None and len(self.modules) < MAX_MODULES else None
        if file is None or tree is None:
            self.modules[path] = None
            return None
        module = Module(path, tree, directory, file.text)
        self.modules[path] = module
        module.frame.vars["__file__"] = absolute(path)
        module.frame.vars["__name__"] = "__main__" if as_main else path.removesuffix(".py").replace("/", ".")
        outer, self.frame = self.frame, module.frame
        try:
            self.run_body(tree.body)
        except Stopped:
            # What the script did before the error that ends it stands: a module may be half of use.
            self.stopped.add(path)
        finally:
            self.frame = outer
        return module

    def run_import(self, node: ast.Import | ast.ImportFrom) -> None:
        here = self.frame.module
        if isinstance(node, ast.Import):
            for alias in node.names:
                path = self._module_file(alias.name, 0)
                if alias.asname and path:
                    self.bind(alias.asname, self._module_value(path, alias.name))
                else:
                    name = alias.asname or alias.name.partition(".")[0]
                    self.bind(name, Ref(alias.name if alias.asname else name))
            return
        path = self._module_file(node.module or "", node.level)
        module = self.load(path, here.directory) if path else None
        for alias in node.names:
            if alias.name == "*":
                for name, value in (module.frame.vars if module else {}).items():
                    if not name.startswith("_"):
                        self.bind(name, value)
                continue
            value = module.frame.vars.get(alias.name) if module else None
            if value is None:
                sub = self._module_file(f"{node.module or ''}.{alias.name}".strip("."), node.level)
                dotted = f"{node.module or ''}.{alias.name}".strip(".")
                value = self._module_value(sub, dotted) if sub else Ref(dotted)
            self.bind(alias.asname or alias.name, value)

    def _module_value(self, path: str, dotted: str) -> Any:
        module = self.load(path, self.frame.module.directory)
        return module if module is not None else Ref(dotted)

    def _module_file(self, dotted: str, level: int) -> str | None:
        for path in import_places(self.frame.module.path, dotted, level):
            if path in self.files and self.files[path].language == "python":
                return path
        return None

    # --- names ---

    def bind(self, name: str, value: Any) -> None:
        frame = self.frame
        if name in frame.shared:
            frame = frame.module.frame
        self.branches.put(frame.vars, name, value)

    def assign(self, target: ast.expr, value: Any, element: Element | None = None) -> None:
        """Bind a target: a name, an attribute, a subscript, or several of them."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value)
            if element is not None and element.line:
                self.frame.places[target.id] = (element.file, element.line)
            else:
                self.frame.places.pop(target.id, None)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target.elts, value)
        elif isinstance(target, ast.Attribute):
            for _, owner in options_of(self.eval(target.value)):
                if isinstance(owner, (Obj, Class)):
                    self.branches.put(owner.attrs, target.attr, value)
                elif isinstance(owner, Module):
                    self.branches.put(owner.frame.vars, target.attr, value)
        elif isinstance(target, ast.Subscript):
            key = self.eval(target.slice)
            for _, owner in options_of(self.eval(target.value)):
                if isinstance(owner, Map) and isinstance(key, (str, int)):
                    self.branches.put(owner.store, key, value)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value)

    def _unpack(self, targets: list[ast.expr], value: Any) -> None:
        elements = elements_of(settled(value, self.branches.guard))
        exact = elements is not None and len(elements) == len(targets) and not any(e.guard for e in elements)
        for position, target in enumerate(targets):
            if exact and elements is not None and not isinstance(target, ast.Starred):
                self.assign(target, elements[position].value)
            else:
                self.assign(target, Unknown(self.text(target), None, self.next_number()))

    def call(self, node: ast.Call) -> Any:
        """Evaluate any call."""
        function = node.func
        if _called_name(function) == "setup":
            # What else a package says of itself decides nothing about what it compiles.
            kept = [keyword for keyword in node.keywords if keyword.arg in ("ext_modules", None)]
            node = ast.copy_location(ast.Call(function, [], kept), node)
        if isinstance(function, ast.Attribute) and _is_super(function.value):
            arguments, keywords = given_arguments(self, node)
            return self._call_super(function.attr, arguments, keywords, node)
        name = function.attr if isinstance(function, ast.Attribute) else ""
        owner = self.eval(function.value if isinstance(function, ast.Attribute) else function)
        arguments, keywords = given_arguments(self, node)

        def one(option: Any) -> Any:
            if name and isinstance(option, (str, Seq, Map, PathText)):
                return call_method(self, option, name, arguments, keywords, node)
            callee = self.attribute(option, name, node) if name else option
            return self.call_value(callee, arguments, keywords, node)

        options = options_of(owner)
        if len(options) == 1:
            return one(options[0][1])
        frame = self.frame
        results = self.branches.run([(guard, partial(one, option)) for guard, option in options])
        self.frame = frame
        return merge_values(list(results), "a choice")

    def call_value(self, callee: Any, arguments: list[Any], keywords: dict[str, Any], node: ast.Call) -> Any:
        """Call a value that was evaluated."""
        reported = len(self.events)
        if isinstance(callee, Function):
            result = self.call_function(callee, arguments, keywords)
            module = callee.frame.module
        elif isinstance(callee, Class):
            result = self.construct(callee, arguments, keywords, node)
            module = callee.module
        else:
            return self._call_outside(callee, arguments, keywords, node)
        if len(self.events) == reported:
            report_handed_on(self, node, module, keywords)
        return result

    def _call_outside(self, callee: Any, arguments: list[Any], keywords: dict[str, Any], node: ast.Call) -> Any:
        if not isinstance(callee, Ref):
            return self.unknown(node)
        known = FUNCTIONS.get(callee.name)
        if known is not None:
            return known(self, arguments, keywords, node)
        if report_extension(self, node, callee, arguments, keywords):
            return self.unknown(node, True)
        truth = self.seeds.python_name(callee.name)
        return self.unknown(node) if truth is None else truth

    def construct(self, cls: Class, arguments: list[Any], keywords: dict[str, Any], node: ast.Call | None) -> Obj:
        """Make an instance of a class of the scripts."""
        obj = Obj(cls)
        for ancestor in cls.lineage():
            initialiser = ancestor.attrs.get("__init__")
            if isinstance(initialiser, Function):
                bound = Function(initialiser.node, initialiser.frame, initialiser.owner, obj)
                self.call_function(bound, arguments, keywords)
                return obj
        obj.attrs.update(keywords)
        for base in cls.external_bases() if node is not None else ():
            report_extension(self, node, base, arguments, keywords)
        return obj

    def _call_super(self, name: str, arguments: list[Any], keywords: dict[str, Any], node: ast.Call) -> Any:
        receiver, owner = self.frame.receiver, self.frame.owner
        cls = receiver.cls if isinstance(receiver, Obj) else receiver
        if not isinstance(cls, Class) or owner is None:
            return self.unknown(node)
        lineage = cls.lineage()
        above = lineage[lineage.index(owner) + 1 :] if owner in lineage else []
        for ancestor in above:
            found = ancestor.attrs.get(name)
            if isinstance(found, Function):
                bound = Function(found.node, found.frame, found.owner, receiver)
                return self.call_function(bound, arguments, keywords)
        if name == "__init__":
            for base in cls.external_bases():
                report_extension(self, node, base, arguments, keywords)
            return None
        return self.unknown(node)

    def call_function(self, function: Function, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Evaluate a call of a function of the scripts."""
        node = function.node
        if self._depth >= MAX_CALLS:
            return Unknown(f"{getattr(node, 'name', 'a function')}()", None, self.next_number())
        frame = Frame(function.frame, function.frame.module)
        frame.owner = function.owner
        frame.receiver = function.receiver
        frame.guard = self.branches.guard
        self.branches.born(frame.vars)
        if isinstance(node, ast.Lambda):
            bound_names(self, frame, function, arguments, keywords)
            return self._inside(frame, lambda: self.eval(node.body))
        yields, frame.shared = self.parsed.about(node)
        if yields:
            return Unknown(f"{node.name}()", None, self.next_number())
        bound_names(self, frame, function, arguments, keywords)
        self.called.add(node)

        def run() -> Any:
            status = self.run_body(node.body)
            if status != RETURN:
                frame.returns.append(((), None))
            return _result(frame.returns)

        try:
            return self._inside(frame, run)
        except Stopped:
            if not self.lenient or self.trying:
                raise
            return Unknown(f"{node.name}()", None, self.next_number())

    def _inside(self, frame: Frame, thunk: Callable[[], Any]) -> Any:
        outer, line = self.frame, self.line
        self.frame = frame
        self._depth += 1
        try:
            return thunk()
        finally:
            self._depth -= 1
            self.frame, self.line = outer, line


def _result(returns: list[tuple[Guard, Any]]) -> Any:
    """The value of a call: the first return whose guard holds."""
    options: list[tuple[Guard, Any]] = []
    for guard, value in returns:
        if isinstance(value, Choice):
            options.extend((join(guard, inner), option) for inner, option in value.options)
        else:
            options.append((guard, value))
        if not guard:
            break
    if len(options) == 1 or all(type(o) is type(options[0][1]) and o == options[0][1] for _, o in options):
        return options[0][1]
    merged = merge_values(options, "a result")
    return None if merged is ABSENT else merged


def _called_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
