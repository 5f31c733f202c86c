"""Registration calls of a body: which handle each one is made on, followed through classes, submodules and functions.

In: calls from the facts or from expanded text, and what the handle of a body stands for. Out: ``Binding`` records and
gaps, gathered in ``out`` and ``gaps``.
"""

from __future__ import annotations

from opwalker.expand.binding_blocks import assigned_variable, bare, class_variable, merged, switched_off
from opwalker.expand.binding_entries import Handle, Place, plain_entries, torch_entries
from opwalker.expand.binding_text import literal
from opwalker.expand.files import Files
from opwalker.expand.macros import MacroTable
from opwalker.expand.preprocess import Preprocessor
from opwalker.expand.tokens import tokenize
from opwalker.facts.cpp_bindings import calls_in
from opwalker.facts.cpp_brackets import match_bracket, split_commas
from opwalker.link.index import Index
from opwalker.model.binding import Binding
from opwalker.model.cpp import BindingCall, BindingSite, CppFacts
from opwalker.model.walk import Gap, Span
from opwalker.notation.regex import Regex

_BINDS_NOTHING = frozenset(
    "class_ enum_ value attr export_values set_python_module ObjectDef GlobalDef RegisterOperators init fallback "
    "func".split()
)
_LAMBDA = Regex(r"[\s+&*(]*\[")
_DIRECTIVE = Regex(r"\n[ \t]*#")


class CallReader:
    """Enters the calls of the bodies of a tree, all into the same ``out`` and ``gaps``."""

    def __init__(self, index: Index, files: Files, macros: MacroTable, preprocessor: Preprocessor) -> None:
        self._index = index
        self._files = files
        self._macros = macros
        self._preprocessor = preprocessor
        self.out: list[Binding] = []
        self.gaps: list[Gap] = []
        self._classes: dict[tuple[str, str], str] = {}
        self._followed: set[tuple[str, int, str]] = set()

    def site(
        self,
        path: str,
        facts: CppFacts,
        site: BindingSite,
        handle_name: str,
        handle: Handle,
        scope: tuple[str, ...],
        macros: tuple[str, ...],
        under: tuple[str, ...] = (),
    ) -> None:
        """Read a site's calls and macro statements. ``under`` are the conditions of the block's head, which differ from
        those in the block where two branches open one block."""
        handles = {bare(handle_name): handle}
        self.calls(path, facts.conditions, site.calls, handles, scope, macros, None, under)
        for name, arguments, offset, condition in site.uses:
            if any(bare(a) in handles for a in arguments) and not self._macros.is_macro_name(name.split("::")[-1]):
                self._follow(name, arguments, handles)
            elif self._macros.is_macro_name(name):
                terms = merged(under, facts.conditions[condition])
                self._macro_statement(path, name, offset, terms, handles, scope)

    def _macro_statement(self, path, name, offset, condition, handles, scope) -> None:
        code = self._files.view(path).blanked.code
        opened = code.find("(", offset)
        close = match_bracket(self._files.view(path).blanked.plain, opened)
        if close < 0:
            return
        expanded = self._preprocessor.tokens(path, tokenize(code[offset:close], offset), path)
        calls = calls_in(expanded.full)
        line = self._files.view(path).blanked.line(offset)
        self.calls(path, (), calls, handles, scope, (name,), (expanded, line, condition))

    def calls(self, path, conditions, calls, handles, scope, macros, origin, under=()) -> None:
        """Enter the calls whose receiver is one of ``handles``. ``origin`` is set for calls that a macro made."""
        owner: dict[int, tuple[Handle, str | None]] = {}
        for number, call in enumerate(calls):
            line = call.line if origin is None else origin[1]
            if call.previous >= 0:
                holder = owner.get(call.previous)
            elif call.method in ("enum_", "ObjectDef", "GlobalDef", "RegisterOperators") or (
                call.method == "class_" and not call.receiver
            ):
                holder = self._class_holder(path, line, call, handles)
            else:
                found = handles.get(call.receiver)
                holder = (found, None) if found else None
            if holder is None:
                continue
            condition = merged(under, conditions[call.condition] if origin is None else origin[2])
            if switched_off(condition):
                continue
            if call.method == "class_" and holder[0].kind == "torch_library":
                why = f"methods of the class {' '.join(call.arguments[:1])} are not read"
                self.gaps.append(Gap("registration", Span(path, line, line), why))
                continue
            if call.method == "def_submodule" and holder[0].kind == "pybind11":
                inner = self._submodule(path, call, handles, holder[0])
                if inner:
                    owner[number] = (inner, None)
                continue
            owner[number] = holder
            self._enter(path, call, holder[0], holder[1], line, condition, scope, macros, origin)
            if call.method == "class_" and call.previous < 0:
                plain = self._files.view(path).blanked.plain
                variable = class_variable(plain, call) if origin is None else None
                if variable:
                    prefix = f"{holder[0].prefix}.{holder[1]}"
                    handles[variable] = Handle(holder[0].kind, prefix, None, holder[0].target)
                    self._classes[(prefix, "")] = self._classes.get((holder[0].prefix, holder[1] or ""), "")

    def _class_holder(
        self, path: str, line: int, call: BindingCall, handles: dict[str, Handle]
    ) -> tuple[Handle, str | None] | None:
        if call.method in ("GlobalDef", "RegisterOperators"):
            kind = "tvm_ffi" if call.method == "GlobalDef" else "torch_library"
            return Handle(kind, ""), None
        if call.method == "ObjectDef":
            return Handle("tvm_ffi", (call.template or "").split("::")[-1]), None
        if len(call.arguments) < 2:
            return None
        holder = handles.get(bare(call.arguments[0]))
        if not holder:
            return None
        name = literal(self._resolved(path, call, 1, None))
        if not name:
            why = f"the name in {call.method}({', '.join(call.arguments[:2])}) is not a literal"
            self.gaps.append(Gap("registration", Span(path, line, line), " ".join(why.split())))
            return None
        if call.template:
            first = split_commas(call.template)[0]
            self._classes[(holder.prefix, name)] = call.template[first[0] : first[1]].strip()
        return holder, name

    def _submodule(self, path: str, call: BindingCall, handles: dict[str, Handle], holder: Handle) -> Handle | None:
        name = literal(call.arguments[0]) if call.arguments else None
        if not name:
            return None
        inner = Handle("pybind11", f"{holder.prefix}.{name}", None, holder.target)
        variable = assigned_variable(self._files.view(path).blanked.plain, call)
        if variable:
            handles[variable] = inner
        return inner

    def _follow(self, name, arguments, handles) -> None:
        """A call that passes a handle on: read the function's bindings with its parameter as the handle."""
        position = next(i for i, a in enumerate(arguments) if bare(a) in handles)
        handle = handles[bare(arguments[position])]
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
                    self.site(where, facts, site, function.parameters[position].name, handle, function.scope, ())

    def _enter(self, path, call, handle, class_name, line, condition, scope, macros, origin) -> None:
        method = call.method
        if method == "RegisterOperators" and len(call.arguments) > 1:
            method = "op"  # made with an op's name and function, as if `op` were called with them
        if handle.kind == "pybind11" and method in ("class_", "enum_", "attr") and call.arguments:
            name = class_name if method != "attr" else literal(call.arguments[0])
            if name:
                # A class or attribute is a binding without a function of its own: listed, and walked by its members.
                self.out.append(
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
        arguments = [self._resolved(path, call, number, origin) for number in range(len(call.arguments))]
        place = Place(path, line, condition, scope, macros)
        offsets = call.argument_offsets if origin is None else ()
        # Only a lambda needs the file's text, for where it ends.
        is_lambda = any("[" in argument and not argument.lstrip().startswith('"') for argument in arguments)
        plain = self._files.view(path).blanked.plain if is_lambda else ""
        if handle.kind == "torch_library":
            made = torch_entries(method, arguments, offsets, plain, handle, place)
        else:
            made_of = self._classes.get((handle.prefix, class_name or "")) or class_name
            made = plain_entries(call.method, arguments, offsets, plain, handle, (class_name, made_of), place)
        for entry in made:
            (self.gaps if isinstance(entry, Gap) else self.out).append(entry)

    def _resolved(self, path: str, call: BindingCall, number: int, origin) -> str:
        """An argument as the build reads it: branches within it chosen, and its macros expanded, where it has any."""
        argument = call.arguments[number]
        if origin is not None or _LAMBDA.match(argument):
            return argument
        at = call.argument_offsets[number]
        if _DIRECTIVE.search(argument):
            return self._preprocessor.span(path, at, at + len(argument), path).full
        return self._preprocessor.text(path, argument, at)
