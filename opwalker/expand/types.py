"""Types of expressions, as far as calls through objects need them: a class of the tree, or a library's adapter."""

from __future__ import annotations

import re

from opwalker.expand.bodies import Body
from opwalker.expand.frames import Frame
from opwalker.expand.resolve import Context, strip_arguments
from opwalker.link.index import Index

_DECORATION = re.compile(
    r"\b(?:const|volatile|static|constexpr|typename|struct|class|thread_local|inline|extern|__restrict__)\b|[*&]"
)
_SMART = re.compile(
    r"(?:std::)?(?:unique_ptr|shared_ptr|optional|reference_wrapper|vector|array)\s*<\s*(.*)>\Z", re.DOTALL
)
_MADE = re.compile(
    r"(?:\*?\s*)?(?:(?:reinterpret_cast|static_cast|dynamic_cast|const_cast)\s*<(?P<cast>[^()]*)>\s*\(|new\s+(?P<new>[\w:]+(?:\s*<.*?>)?)\s*[({\[;]|"
    r"std::make_(?:unique|shared)\s*<(?P<made>[^()]*)>\s*\(|\(\s*(?P<c>[\w:]+)\s*\*\s*\)|(?P<ctor>[A-Z][\w:]*(?:<.*?>)?)\s*[({])",
    re.DOTALL,
)


class TypeReader:
    """Reads types off declarations and initialisers."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def of_expression(self, text: str, body: Body, frame: Frame) -> str | None:
        """The type of a simple expression (a name, ``*name``, ``name[i]``, ``name->``), as written; None if unknown."""
        word = re.match(r"\(?\s*[*&]?\s*(\w+)\s*\)?\s*(?:\[.*\])?\s*\Z", text, re.DOTALL)
        if word is None:
            made = _MADE.match(text)
            if made:
                return next(g for g in made.groups() if g)
            called = re.match(r"((?:\w+::)*\w+)(?:<.*>)?\s*(?:\(\s*\))\Z", text, re.DOTALL)
            if called:
                qualifier = called.group(1).rsplit("::", 1)[0]
                return qualifier if "::" in called.group(1) else None
            return None
        name = word.group(1)
        for local in reversed(body.locals.get(name, ())):
            type_text = self._bare(local.type)
            if type_text in ("auto", "") or type_text.startswith("decltype"):
                value = body.text(local.value) if local.value else ""
                made = _MADE.match(value.lstrip("= "))
                return next((g for g in made.groups() if g), None) if made else None
            return type_text
        if frame.candidate is not None:
            for parameter in frame.candidate.function.parameters:
                if parameter.name == name:
                    return self._bare(parameter.type)
        return self._member_type(name, body.context)

    def _member_type(self, name: str, context: Context) -> str | None:
        """The type of a data member of the class around the context, or of a variable at namespace level."""
        for path in self._index.store.paths_of(name, ("variable",)):
            facts = self._index.facts(path)
            for variable in facts.variables if facts else ():
                if (
                    variable.name == name
                    and (variable.scope == context.scope[: len(variable.scope)])
                    and variable.scope
                ):
                    return self._bare(variable.type)
        return None

    @staticmethod
    def _bare(type_text: str) -> str:
        text = " ".join(_DECORATION.sub(" ", type_text).split())
        smart = _SMART.match(text)
        return " ".join(_DECORATION.sub(" ", smart.group(1)).split()) if smart else text

    def class_name(self, type_text: str | None, context: Context) -> str | None:
        """The class of the tree that a type means, through aliases; None when it is none."""
        seen: set[str] = set()
        text = type_text or ""
        while text and text not in seen:
            seen.add(text)
            simple = strip_arguments(self._bare(text)).split("::")[-1]
            if simple in self._index.names_of_kind("class"):
                return simple
            target = self._alias(simple, context)
            if target is None:
                return None
            text = target
        return None

    def _alias(self, name: str, context: Context) -> str | None:
        for alias, target in context.aliases:
            if alias == name:
                return target
        if name not in self._index.names_of_kind("alias"):
            return None
        closure = self._index.closure(context.root) | {context.path}
        for path, alias in self._index.entries(name, ("alias",), lambda facts: facts.aliases):
            if (
                path in closure
                and alias.kind in ("type", "using")
                and strip_arguments(alias.target).split("::")[-1] != name
            ):
                return alias.target
        return None

    def expanded_name(self, name: str, context: Context) -> str:
        """A name with the alias that leads it replaced, so that ``namespace fe = cudnn_frontend`` is seen through."""
        text = name
        for _ in range(6):
            head = re.match(r"(?:::)?(\w+)", text)
            target = self._alias(head.group(1), context) if head else None
            if target is None:
                bare = self._bare(text)
                simple = strip_arguments(bare).split("::")
                if len(simple) == 1 and head and head.group(1) in self._namespace_aliases(context):
                    return bare
                leading = self._namespace_aliases(context).get(simple[0]) if simple else None
                return bare.replace(simple[0], leading, 1) if leading else bare
            text = target + text[head.end() :]
        return self._bare(text)

    def _namespace_aliases(self, context: Context) -> dict[str, str]:
        cache = self.__dict__.setdefault("_namespace_cache", {})
        if context.root not in cache:
            out: dict[str, str] = {}
            for path in self._index.closure(context.root):
                facts = self._index.facts(path)
                for alias in facts.aliases if facts else ():
                    if alias.kind == "namespace":
                        out[alias.name] = alias.target
            cache[context.root] = out
        return cache[context.root]

    def bindable(self, text: str, frame: Frame) -> str | None:
        """A template argument worth passing on: a class of the tree, or a parameter that is known to be one."""
        if text in frame.types:
            return frame.types[text]
        simple = strip_arguments(self._bare(text)).split("::")[-1]
        return self._bare(text) if simple in self._index.names_of_kind("class") else None
