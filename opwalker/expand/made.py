"""Functions whose head a macro makes: ``DEFINE_KERNEL(name, T) { … }`` is a definition once the macro is expanded.

In: macro uses with a body behind them. Out: functions entered into the index, with the body's real place.
"""

from __future__ import annotations

from opwalker.expand.files import Files
from opwalker.expand.macros import MacroTable
from opwalker.expand.preprocess import Preprocessor
from opwalker.expand.tokens import tokenize
from opwalker.facts.cpp_heads import parse_function, parse_parameters
from opwalker.link.index import Index
from opwalker.model.cpp import Function, Invocation, Parameter


def enter_made_functions(index: Index, files: Files, macros: MacroTable, preprocessor: Preprocessor) -> None:
    """Find every use of a macro that makes a function's head, and enter the function."""
    for name in sorted(index.names_of_kind("invocation")):
        if not _may_make_kernels(index, name):
            continue
        for path in index.store.paths_of(name, ("invocation",)):
            facts = index.facts(path)
            made = [
                function
                for use in (facts.invocations if facts else ())
                if use.name == name and use.body_end and (function := _made(path, use, files, macros, preprocessor))
            ]
            if made:
                index.add_functions(path, made)


def _may_make_kernels(index: Index, name: str) -> bool:
    """Whether any definition of a macro mentions what a kernel's head has: a cheap no for test macros and the like."""
    if name not in index.names_of_kind("macro"):
        return False
    for _, event in index.entries(name, ("macro",), lambda facts: facts.macros):
        if event.body and "__global__" in event.body:
            return True
    return False


def _made(path: str, use: Invocation, files: Files, macros: MacroTable, preprocessor: Preprocessor) -> Function | None:
    choice = macros.lookup(use.name, path, use.offset, path)
    if choice is None or "(" not in (choice.event.body or ""):
        return None
    # Everything before the brace: attributes may stand between the macro's use and the body.
    code = files.view(path).blanked.code[use.offset : use.body_start]
    text = preprocessor.tokens(path, tokenize(code, use.offset), path).full
    head = parse_function(text, None)
    if head is None:
        return None
    parameters = tuple(
        Parameter(kind, name, default, use.offset, use.offset)
        for kind, name, default, _, _ in parse_parameters(text, head.parameters_start, head.parameters_end)
    )
    return Function(
        head.name,
        (*use.scope, *head.qualifiers),
        head.return_type,
        parameters,
        head.flags,
        head.template,
        head.specialisation,
        head.attributes,
        use.offset,
        use.line,
        use.line,
        use.body_start,
        use.body_end,
        use.end_line,
        use.condition,
        0,
    )
