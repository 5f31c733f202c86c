"""Registrations: which names a tree binds to which functions, through whatever macros.

In: binding sites from the facts. Out: ``Binding`` records and gaps. A block counts for what its macro expands to, so a
project's own ``REGISTER_LIBRARY(…)`` is read like the library's; statements that are macros are expanded as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from opwalker.expand.binding_blocks import BLOCK_TEXT, RegistrationMacros, known_uses
from opwalker.expand.binding_entries import Handle, Place, plain_entries, torch_entries
from opwalker.expand.binding_text import function_ref, key_name, literal
from opwalker.expand.expanded import Expanded
from opwalker.expand.files import Files
from opwalker.expand.macros import MacroTable
from opwalker.expand.preprocess import Preprocessor
from opwalker.expand.tokens import tokenize
from opwalker.facts.cpp_bindings import calls_in
from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.link.index import Index
from opwalker.model.binding import Binding
from opwalker.model.cpp import BindingCall, BindingSite, CppFacts, Invocation
from opwalker.model.walk import Gap, Span

_TORCH_BLOCK = re.compile(
    r"(?:STABLE_)?TORCH_LIBRARY(?P<kind>_FRAGMENT|_IMPL)?(?:_THIS_API_IS_FOR_PER_OP_REGISTRATION_ONLY)?\Z"
)
_PYBIND_BLOCK = frozenset(("PYBIND11_MODULE", "PYBIND11_EMBEDDED_MODULE", "PYBIND11_PLUGIN", "NB_MODULE"))
_EXPORT = re.compile(r"TVM_FFI_DLL_EXPORT(?:_INTERNAL)?_TYPED_FUNC\Z")
_BINDS_NOTHING = frozenset(
    "class_ enum_ value attr export_values set_python_module ObjectDef GlobalDef RegisterOperators init fallback "
    "func".split()
)
_EXTENSION_NAME = "TORCH_EXTENSION_NAME"


@dataclass(frozen=True, slots=True)
class Bindings:
    """All bindings of a tree, in file and line order, and what could not be read."""

    bindings: tuple[Binding, ...]
    gaps: tuple[Gap, ...]


class BindingReader:
    """Reads the registrations of a tree.

    ``extension_names`` maps a file to the names that ``TORCH_EXTENSION_NAME`` stands for in it, one per target.
    """

    def __init__(
        self,
        index: Index,
        files: Files,
        macros: MacroTable,
        preprocessor: Preprocessor,
        extension_names: Callable[[str], Sequence[str]],
    ) -> None:
        self._index = index
        self._files = files
        self._macros = macros
        self._preprocessor = preprocessor
        self._extension_names = extension_names
        self._out: list[Binding] = []
        self._gaps: list[Gap] = []
        self._registers = RegistrationMacros(index)
        self._classes: dict[tuple[str, str], str] = {}
        self._followed: set[tuple[str, int, str]] = set()

    def read(self) -> Bindings:
        """Every binding of the tree."""
        for path in self._index.store.paths_with("bindings"):
            facts = self._index.facts(path)
            for site in facts.bindings if facts else ():
                if site.block >= 0:
                    self._block(path, facts, site)
                else:
                    self._free_calls(path, facts, site)
        self._exports()
        unique: dict[Binding, None] = dict.fromkeys(self._out)
        ordered = sorted(unique, key=lambda b: (b.path, b.line, b.name, b.role))
        return Bindings(tuple(ordered), tuple(dict.fromkeys(self._gaps)))

    # -- blocks -----------------------------------------------------------------------------------------------------

    def _block(self, path: str, facts: CppFacts, site: BindingSite) -> None:
        block = facts.invocations[site.block]
        if not self._registers.may_register(block.name) and not any(
            c.method in ("GlobalDef", "ObjectDef") for c in site.calls
        ):
            return
        for name, arguments in self._registration(path, block):
            match = _TORCH_BLOCK.match(name)
            if match and len(arguments) >= (3 if match.group("kind") == "_IMPL" else 2):
                key = key_name(arguments[1]) if match.group("kind") == "_IMPL" else None
                for namespace, target, why in self._names(path, arguments[0], block.line):
                    handle = Handle("torch_library", namespace, key, target, why)
                    self._site(path, facts, site, arguments[-1], handle, block.scope, (block.name,))
            elif name in _PYBIND_BLOCK and len(arguments) >= 2:
                for module, target, why in self._names(path, arguments[0], block.line):
                    handle = Handle("pybind11", module, None, target, why)
                    self._site(path, facts, site, arguments[1], handle, block.scope, ())
            elif name.startswith("TVM_FFI") or any(c.method in ("GlobalDef", "ObjectDef") for c in site.calls):
                self._free_calls(path, facts, site)

    def _registration(self, path: str, block: Invocation) -> list[tuple[str, tuple[str, ...]]]:
        """The known block macros that a use means, with their arguments expanded."""
        if block.arguments is None:
            return []
        text = f"{block.name}({', '.join(block.arguments)})"
        # A name that the build sets goes before the source's own fallback for it.
        hidden = frozenset((_EXTENSION_NAME,)) if self._extension_names(path) else frozenset()
        expanded = self._preprocessor.tokens(path, tokenize(text, block.offset, 0, hidden), path)
        found = known_uses(expanded.full)
        if found:
            return found
        return [(block.name, tuple(block.arguments))]

    def _names(self, path: str, text: str, line: int) -> list[tuple[str, str | None, str | None]]:
        """A namespace or module name, resolved: ``(name, target, what stayed unresolved)``."""
        name = "".join(text.split()).strip('"')
        if _EXTENSION_NAME not in name:
            return [(name, None, None)]
        known = self._extension_names(path)
        if not known:
            self._gaps.append(
                Gap(
                    "namespace",
                    Span(path, line, line),
                    f"{_EXTENSION_NAME} is set by the build, and no build file says to what",
                )
            )
            return [(name, None, f"{_EXTENSION_NAME} is not resolved")]
        return [(name.replace(_EXTENSION_NAME, value), value, None) for value in known]

    # -- calls ------------------------------------------------------------------------------------------------------

    def _site(
        self,
        path: str,
        facts: CppFacts,
        site: BindingSite,
        handle_name: str,
        handle: Handle,
        scope: tuple[str, ...],
        macros: tuple[str, ...],
    ) -> None:
        handles = {handle_name.strip().lstrip("&"): handle}
        self._calls(path, facts, site.calls, handles, scope, macros, None)
        for name, arguments, offset, condition in site.uses:
            if any(a.strip() in handles for a in arguments) and not self._macros.is_macro_name(name.split("::")[-1]):
                self._follow(path, name, arguments, handles, scope, offset)
            elif self._macros.is_macro_name(name):
                self._macro_statement(path, facts, name, offset, condition, handles, scope)

    def _macro_statement(self, path, facts, name, offset, condition, handles, scope) -> None:
        code = self._files.view(path).blanked.code
        opened = code.find("(", offset)
        close = match_bracket(self._files.view(path).blanked.plain, opened)
        if close < 0:
            return
        expanded = self._preprocessor.tokens(path, tokenize(code[offset:close], offset), path)
        calls = calls_in(expanded.full)
        line = self._files.view(path).blanked.line(offset)
        self._calls(path, facts, calls, handles, scope, (name,), (expanded, line, condition))

    def _calls(self, path, facts, calls, handles, scope, macros, origin) -> None:
        """Enter the calls whose receiver is one of ``handles``. ``origin`` is set for calls that a macro made."""
        owner: dict[int, tuple[Handle, str | None]] = {}
        for number, call in enumerate(calls):
            if call.previous >= 0:
                holder = owner.get(call.previous)
            elif call.method in ("class_", "enum_", "ObjectDef", "GlobalDef", "RegisterOperators"):
                holder = self._class_holder(call, handles)
            else:
                found = handles.get(call.receiver)
                holder = (found, None) if found else None
            if holder is None:
                continue
            owner[number] = holder
            line = call.line if origin is None else origin[1]
            condition = facts.conditions[call.condition if origin is None else origin[2]]
            if call.method == "def_submodule" and holder[0].kind == "pybind11":
                self._submodule(path, call, handles, holder[0])
                continue
            self._enter(path, call, holder[0], holder[1], line, condition, scope, macros, origin)
            if call.method == "class_" and call.previous < 0:
                variable = self._variable(path, call) if origin is None else None
                if variable:
                    handles[variable] = Handle(
                        holder[0].kind, f"{holder[0].prefix}.{holder[1]}", None, holder[0].target
                    )

    def _class_holder(self, call: BindingCall, handles: dict[str, Handle]) -> tuple[Handle, str | None] | None:
        if call.method in ("GlobalDef", "RegisterOperators"):
            kind = "tvm_ffi" if call.method == "GlobalDef" else "torch_library"
            return Handle(kind, ""), None
        if call.method == "ObjectDef":
            return Handle("tvm_ffi", (call.template or "").split("::")[-1]), None
        if len(call.arguments) < 2:
            return None
        holder = handles.get(call.arguments[0].strip())
        name = literal(call.arguments[1])
        if not holder or not name:
            return None
        if call.template:
            first = split_commas(call.template)[0]
            self._classes[(holder.prefix, name)] = call.template[first[0] : first[1]].strip()
        return holder, name

    def _variable(self, path: str, call: BindingCall) -> str | None:
        """The name of a variable that is declared as ``py::class_<T> name(m, "T")``."""
        plain = self._files.view(path).blanked.plain
        before = plain[call.offset : call.argument_offsets[0] - 1] if call.argument_offsets else ""
        word = re.search(r">\s*(\w+)\s*\(?\s*\Z", before)
        if word:
            return word.group(1)
        line = plain[plain.rfind("\n", 0, call.offset) + 1 : call.offset]
        assigned = re.search(r"(\w+)\s*=\s*(?:\w+::)*\Z", line)
        return assigned.group(1) if assigned else None

    def _submodule(self, path: str, call: BindingCall, handles: dict[str, Handle], holder: Handle) -> None:
        plain = self._files.view(path).blanked.plain
        line = plain[max(plain.rfind(";", 0, call.offset), plain.rfind("{", 0, call.offset)) + 1 : call.offset]
        assigned = re.search(r"(\w+)\s*(?:=|\()\s*\Z", line)
        name = literal(call.arguments[0]) if call.arguments else None
        if assigned and name:
            handles[assigned.group(1)] = Handle("pybind11", f"{holder.prefix}.{name}", None, holder.target)

    def _free_calls(self, path: str, facts: CppFacts, site: BindingSite) -> None:
        """Calls that need no handle: ``GlobalDef().def(…)``, ``RegisterOperators().op(…)``."""
        if any(call.method in ("GlobalDef", "ObjectDef", "RegisterOperators") for call in site.calls):
            scope: tuple[str, ...] = ()
            if site.function >= 0:
                scope = facts.functions[site.function].scope
            elif site.block >= 0:
                scope = facts.invocations[site.block].scope
            self._calls(path, facts, site.calls, {}, scope, (), None)

    def _follow(self, path, name, arguments, handles, scope, offset) -> None:
        """A call that passes a handle on: read the function's bindings with its parameter as the handle."""
        position = next(i for i, a in enumerate(arguments) if a.strip() in handles)
        handle = handles[arguments[position].strip()]
        simple = name.split("::")[-1]
        wanted = tuple(p for p in name.split("::")[:-1] if p)
        for where, function in self._index.functions(simple):
            if not function.body_end or len(function.parameters) <= position:
                continue
            visible = tuple(s for s in function.scope if not s.startswith("("))
            if wanted and visible[-len(wanted) :] != wanted:
                continue
            key = (where, function.offset, handle.prefix)
            if key in self._followed:
                continue
            facts = self._index.facts(where)
            number = facts.functions.index(function)
            for site in facts.bindings:
                if site.function == number:
                    self._followed.add(key)
                    self._site(where, facts, site, function.parameters[position].name, handle, function.scope, ())
        del scope, offset, path

    # -- entries ----------------------------------------------------------------------------------------------------

    def _enter(self, path, call, handle, class_name, line, condition, scope, macros, origin) -> None:
        method = call.method
        if handle.kind == "pybind11" and method in ("class_", "enum_", "attr") and call.arguments:
            name = class_name if method != "attr" else literal(call.arguments[0])
            if name:
                # A class or attribute is a binding without a function of its own: listed, and walked by its members.
                self._out.append(
                    Binding(
                        handle.kind,
                        "def",
                        f"{handle.prefix}.{name}",
                        None,
                        None,
                        None,
                        path,
                        line,
                        condition,
                        scope,
                        macros=macros,
                        unresolved=handle.unresolved,
                        target=handle.target,
                        class_name=(call.template or name) if method != "attr" else None,
                    )
                )
        if method in _BINDS_NOTHING or not call.arguments:
            return
        arguments = [self._resolved(path, a, origin) for a in call.arguments]
        place = Place(path, line, condition, scope, macros)
        offsets = call.argument_offsets if origin is None else ()
        # Only a lambda needs the file's text, for where it ends.
        is_lambda = any(argument.lstrip().startswith("[") for argument in arguments)
        plain = self._files.view(path).blanked.plain if is_lambda else ""
        if handle.kind == "torch_library":
            made = torch_entries(call.method, arguments, offsets, plain, handle, place)
        else:
            made_of = self._classes.get((handle.prefix, class_name or ""), class_name)
            made = plain_entries(call.method, arguments, offsets, plain, handle, (class_name, made_of), place)
        for entry in made:
            (self._gaps if isinstance(entry, Gap) else self._out).append(entry)

    def _resolved(self, path: str, argument: str, origin) -> str:
        """An argument with its macros expanded, where it has any."""
        if origin is not None or not any(self._macros.is_macro_name(w) for w in re.findall(r"[A-Za-z_]\w*", argument)):
            return argument
        if argument.lstrip().startswith("["):
            return argument
        return self._preprocessor.tokens(path, tokenize(argument, 0), path).full

    # -- exports at namespace level -----------------------------------------------------------------------------------

    def _exports(self) -> None:
        """Uses at namespace level that export a function under a name, or expand to a whole registration."""
        for name in sorted(self._index.names_of_kind("invocation")):
            known = bool(_EXPORT.match(name))
            if not known and not self._registers.may_register(name):
                continue
            for path in self._index.store.paths_of(name, ("invocation",)):
                facts = self._index.facts(path)
                for use in facts.invocations:
                    if use.name == name and not use.body_end and use.arguments is not None:
                        self._export(path, facts, use, known)

    def _export(self, path: str, facts: CppFacts, use: Invocation, known: bool) -> None:
        if known:
            self._export_entry(path, facts, use, tuple(use.arguments), ())
            return
        code = self._files.view(path).blanked.code[use.offset : use.end]
        expanded = self._preprocessor.tokens(path, tokenize(code, use.offset), path)
        text = expanded.full
        if "TORCH_LIBRARY" not in text and "TVM_FFI" not in text and "PYBIND11_MODULE" not in text:
            return
        for name, arguments in known_uses(text):
            if _EXPORT.match(name):
                self._export_entry(path, facts, use, arguments, (use.name,))
        self._made_blocks(path, facts, use, expanded)

    def _export_entry(self, path, facts, use, arguments: tuple[str, ...], macros: tuple[str, ...]) -> None:
        if len(arguments) < 2:
            return
        stem = path.rsplit("/", 1)[-1].split(".")[0]
        function, _ = function_ref(arguments[1], None, None)
        for role in ("def", "impl"):
            self._out.append(
                Binding(
                    "tvm_ffi",
                    role,
                    f"{stem}.{arguments[0]}",
                    None,
                    None,
                    function,
                    path,
                    use.line,
                    facts.conditions[use.condition],
                    use.scope,
                    macros=macros,
                )
            )

    def _made_blocks(self, path: str, facts: CppFacts, use: Invocation, expanded: Expanded) -> None:
        """Whole registration blocks that a macro made: ``TORCH_LIBRARY(ns, m) { m.def(…); }`` in its body."""
        text = expanded.full
        for match in BLOCK_TEXT.finditer(text):
            close = match_bracket(text, match.end() - 1)
            brace = re.compile(r"\s*\{").match(text, close) if close > 0 else None
            if brace is None:
                continue
            end = match_bracket(text, brace.end() - 1)
            arguments = tuple(text[a:b].strip() for a, b in split_commas(text, match.end(), close - 1))
            torch = _TORCH_BLOCK.match(match.group(1))
            if torch and end > 0:
                key = key_name(arguments[1]) if torch.group("kind") == "_IMPL" else None
                for namespace, target, why in self._names(path, arguments[0], use.line):
                    handle = Handle("torch_library", namespace, key, target, why)
                    self._calls(
                        path,
                        facts,
                        calls_in(text[brace.end() - 1 : end]),
                        {arguments[-1]: handle},
                        use.scope,
                        (use.name,),
                        (expanded, use.line, use.condition),
                    )
