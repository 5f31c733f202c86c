"""Registrations: which names a tree binds to which functions, through whatever macros.

In: binding sites from the facts. Out: ``Binding`` records and gaps. A block counts for what its macro expands to, so a
project's own ``REGISTER_LIBRARY(…)`` is read like the library's; statements that are macros are expanded as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from opwalker.expand.binding_blocks import (
    BLOCK_TEXT,
    RegistrationMacros,
    bare,
    known_uses,
    switched_off,
)
from opwalker.expand.binding_calls import CallReader
from opwalker.expand.binding_entries import Handle
from opwalker.expand.binding_tables import method_tables
from opwalker.expand.binding_text import function_ref, key_name
from opwalker.expand.expanded import Expanded
from opwalker.expand.files import Files, FileView
from opwalker.expand.macros import MacroTable
from opwalker.expand.preprocess import Preprocessor
from opwalker.expand.tokens import tokenize
from opwalker.facts.cpp_bindings import calls_in
from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.link.index import Index
from opwalker.model.binding import Binding, FunctionRef
from opwalker.model.cpp import BindingSite, CppFacts, Invocation
from opwalker.model.walk import Gap, Span
from opwalker.notation.op_list import read_op_list
from opwalker.notation.regex import Regex

_TORCH_BLOCK = Regex(
    r"(?:STABLE_)?TORCH_LIBRARY(?P<kind>_FRAGMENT|_IMPL)?(?:_THIS_API_IS_FOR_PER_OP_REGISTRATION_ONLY|_EXPAND)?\Z"
)
_PYBIND_BLOCK = frozenset(("PYBIND11_MODULE", "PYBIND11_EMBEDDED_MODULE", "PYBIND11_PLUGIN", "NB_MODULE"))
_EXPORT = Regex(r"TVM_FFI_DLL_EXPORT(?:_INTERNAL)?_TYPED_FUNC\Z")
_EXTENSION_NAME = "TORCH_EXTENSION_NAME"


def listed(path: str, text: str) -> Iterator[Binding]:
    """The ops of a list in YAML, which belong to torch's own namespace: one without a dispatch table is implemented by
    the function of its name for every key."""
    for entry in read_op_list(text):
        name = entry.schema.split("(", 1)[0].strip()
        full = name if "::" in name else f"aten::{name}"
        yield Binding("aten", "def", full, entry.schema, None, None, path, entry.line)
        plain = name.rsplit("::", 1)[-1].split(".", 1)[0]
        every = () if entry.delegates else (("CompositeImplicitAutograd", plain, entry.line),)
        for key, function, line in entry.dispatch or every:
            yield Binding("aten", "impl", full, None, key, FunctionRef(function), path, line)


class Bindings(Struct, frozen=True):
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
        self._preprocessor = preprocessor
        self._extension_names = extension_names
        self._registers = RegistrationMacros(index)
        self._reader = CallReader(index, files, macros, preprocessor)

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
        self._reader.out += [one for path, text in self._index.store.op_lists() for one in listed(path, text)]
        tables, gaps = method_tables(self._index, self._files)
        self._reader.out += tables
        self._reader.gaps += gaps
        unique: dict[Binding, None] = dict.fromkeys(self._reader.out)
        ordered = sorted(unique, key=lambda b: (b.path, b.line, b.name, b.role))
        return Bindings(tuple(ordered), tuple(dict.fromkeys(self._reader.gaps)))

    # -- blocks -----------------------------------------------------------------------------------------------------

    def _block(self, path: str, facts: CppFacts, site: BindingSite) -> None:
        block = facts.invocations[site.block]
        under = facts.conditions[block.condition]
        if not self._registers.may_register(block.name) and not any(
            c.method in ("GlobalDef", "ObjectDef") for c in site.calls
        ):
            return
        for name, arguments in self._registration(path, block):
            handles = self._handles(path, name, arguments, block.line)
            for handle, variable in handles:
                macros = (block.name,) if handle.kind == "torch_library" else ()
                self._reader.site(path, facts, site, variable, handle, block.scope, macros, under)
            if not handles and (
                name.startswith("TVM_FFI") or any(c.method in ("GlobalDef", "ObjectDef") for c in site.calls)
            ):
                self._free_calls(path, facts, site)

    def _handles(self, path: str, name: str, arguments: Sequence[str], line: int) -> list[tuple[Handle, str]]:
        """What a use of a known block macro opens: each handle, and the variable that it is called by."""
        match = _TORCH_BLOCK.match(name)
        if match and len(arguments) >= (3 if match.group("kind") == "_IMPL" else 2):
            key = key_name(arguments[1]) if match.group("kind") == "_IMPL" else None
            found, variable, kind = self._names(path, arguments[0], line), arguments[-1], "torch_library"
        elif name in _PYBIND_BLOCK and len(arguments) >= 2:
            key = None
            found, variable, kind = self._names(path, arguments[0], line), arguments[1], "pybind11"
        else:
            return []
        return [(Handle(kind, prefix, key, target, why), bare(variable)) for prefix, target, why in found]

    def _registration(self, path: str, block: Invocation) -> list[tuple[str, tuple[str, ...]]]:
        """The known block macros that a use means, with their arguments expanded."""
        if block.arguments is None:
            return []
        text = f"{block.name}({', '.join(block.arguments)})"
        # A name that the build sets goes before the source's own fallback for it, not before one set in its place.
        by_build = self._extension_names(path) and not self._renamed(path, block.offset)
        hidden = frozenset((_EXTENSION_NAME,)) if by_build else frozenset()
        expanded = self._preprocessor.tokens(path, tokenize(text, block.offset, 0, hidden), path)
        found = known_uses(expanded.full)
        if found:
            return found
        return [(block.name, tuple(block.arguments))]

    def _renamed(self, path: str, offset: int) -> bool:
        """Whether the source itself sets the extension's name before a place, whatever the build has set."""
        events = self._index.entries(_EXTENSION_NAME, ("macro",), lambda facts: facts.macros)
        for other, event in events:
            if (
                event.body is None
                or other not in self._index.closure(path)
                or (other == path and event.offset >= offset)
            ):
                continue
            under = self._index.declared(other).conditions[event.condition]
            if not any(_EXTENSION_NAME in term for term in under):
                return True
        return False

    def _names(self, path: str, text: str, line: int) -> list[tuple[str, str | None, str | None]]:
        """A namespace or module name, resolved: ``(name, target, what stayed unresolved)``."""
        name = "".join(text.split()).strip('"')
        if _EXTENSION_NAME not in name:
            return [(name, None, None)]
        known = self._extension_names(path)
        if not known:
            self._reader.gaps.append(
                Gap(
                    "namespace",
                    Span(path, line, line),
                    f"{_EXTENSION_NAME} is set by the build, and no build file says to what",
                )
            )
            return [(name, None, f"{_EXTENSION_NAME} is not resolved")]
        return [(name.replace(_EXTENSION_NAME, value), value, None) for value in known]

    def _free_calls(self, path: str, facts: CppFacts, site: BindingSite) -> None:
        """Calls that need no handle: ``GlobalDef().def(…)``, ``RegisterOperators().op(…)``."""
        if any(call.method in ("GlobalDef", "ObjectDef", "RegisterOperators") for call in site.calls):
            scope: tuple[str, ...] = ()
            if site.function >= 0:
                scope = facts.functions[site.function].scope
            elif site.block >= 0:
                scope = facts.invocations[site.block].scope
            self._reader.calls(path, facts.conditions, site.calls, {}, scope, (), None)

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
                    if use.name != name or use.arguments is None or switched_off(facts.conditions[use.condition]):
                        continue
                    if use.body_end:
                        self._included(path, facts, use)
                    else:
                        self._export(path, facts, use, known)

    def _included(self, path: str, facts: CppFacts, block: Invocation) -> None:
        """Calls of a block that stand in a file which the block includes."""
        for include in facts.includes:
            if not block.body_start <= include.offset < block.body_end:
                continue
            target = self._files.resolve_include(path, include.target)
            if target is None:
                continue
            view = self._files.view(target)
            calls = calls_in(view.blanked.text)
            under = facts.conditions[include.condition]
            for name, arguments in self._registration(path, block):
                for handle, variable in self._handles(path, name, arguments, block.line):
                    found = {variable: handle}
                    self._reader.calls(target, view.conditionals.conditions, calls, found, block.scope, (), None, under)

    def _export(self, path: str, facts: CppFacts, use: Invocation, known: bool) -> None:
        if known:
            self._export_entry(path, facts, use, tuple(use.arguments), ())
            return
        whole = self._files.view(path).blanked.code
        code = whole[use.offset : use.end]
        if use.name.startswith("TVM_FFI_STATIC_INIT") and "GlobalDef" in code:
            # Blanks before the block keep its lines and offsets those of the file.
            view = FileView(path, re.sub(r"[^\n]", " ", whole[: use.offset]) + code)
            under = facts.conditions[use.condition]
            calls = calls_in(view.blanked.text)
            self._reader.calls(path, view.conditionals.conditions, calls, {}, use.scope, (), None, under)
            return
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
        # What a macro made has no place in the file that a lambda could be read at.
        plain = None if macros else self._files.view(path).blanked.plain
        function, _ = function_ref(arguments[1], use.offset, plain)
        for role in ("def", "impl"):
            self._reader.out.append(
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
            if end < 0:
                continue
            origin = (expanded, use.line, facts.conditions[use.condition])
            calls = calls_in(text[brace.end() - 1 : end])
            for handle, variable in self._handles(path, match.group(1), arguments, use.line):
                self._reader.calls(path, (), calls, {variable: handle}, use.scope, (use.name,), origin)
