"""Types of expressions, as far as calls through objects need them: a class of the tree, or a library's adapter."""

from __future__ import annotations

import functools
import re

from opwalker.expand.bodies import Body
from opwalker.expand.frames import Frame
from opwalker.expand.operators import last_member, opening
from opwalker.expand.resolve import Context, strip_arguments
from opwalker.expand.value_words import initialiser_value
from opwalker.link.index import Index
from opwalker.model.body import LocalFact
from opwalker.notation.regex import Regex

_DECORATION = Regex(
    r"\b(?:const|volatile|static|constexpr|typename|struct|class|thread_local|inline|extern|__restrict__)\b|[*&]"
)
_SMART = Regex(r"(?:std::)?(?:unique_ptr|shared_ptr|optional|reference_wrapper|vector|array)\s*<\s*(.*)>\Z", re.DOTALL)
_MADE = Regex(
    r"(?:(?:reinterpret_cast|static_cast|dynamic_cast|const_cast)\s*<(?P<cast>[^()]*)>\s*\(|"
    r"new\s+(?P<new>[\w:]+(?:\s*<.*?>)?)\s*[({\[;]|"
    r"std::make_(?:unique|shared)\s*<(?P<made>[^()]*)>\s*\(|\(\s*(?P<c>[\w:]+)\s*\*\s*\)\s*\w)",
    re.DOTALL,
)

#: Members that give what a wrapper holds; wrappers are read as what they hold.
_UNWRAPS = frozenset("value get at front back lock operator* emplace_back".split())
_DEEPEST = 8
_EXTENTS = Regex(r"(?:\[[^\[\]]*\]\s*)+\Z")


def _stripped(text: str) -> str:
    """An expression without the stars, ampersands and parentheses around all of it."""
    while True:
        text = text.strip()
        if text[:1] in ("*", "&") and last_member(text)[0] is None:
            text = text[1:]
        elif text[:1] == "(" and text[-1:] == ")" and opening(text) == 0:
            text = text[1:-1]
        else:
            return text


class TypeReader:
    """Reads types off declarations and initialisers."""

    def __init__(self, index: Index) -> None:
        self._index = index
        #: Aliases of a context by name, each with what they were read from.
        self._aliases: dict[int, tuple[tuple, dict[str, str]]] = {}

    def of_expression(self, text: str, body: Body, frame: Frame, depth: int = 0) -> str | None:
        """The type of an expression that a member is called on, as written, without pointers, references and smart
        pointers: a name, ``*name``, ``name[i]``, ``a.b``, ``f(x)``, ``T::instance()``, ``a->b(x)``; None if unknown."""
        text = _stripped(text)
        if not text or depth > _DEEPEST:
            return None
        base, _, member = last_member(text)
        made = _MADE.match(text) if base is None else None
        if made:
            return self._bare(next(g for g in made.groups() if g))
        if text == "this":
            return body.context.scope[-1] if body.context.scope else None
        if base is not None:
            return self._of_member(self.of_expression(base, body, frame, depth + 1), member, body.context)
        if text[-1] in ")]}" and not text.startswith("["):
            opened = opening(text)
            inner = text[:opened].rstrip()
            if text[-1] == "]":
                return self.of_expression(inner, body, frame, depth + 1)
            return self._returned(inner, body.context)
        if not re.fullmatch(r"\w+", text):
            return None
        return self._of_name(text, body, frame, depth)

    def of_local(self, local: LocalFact, body: Body, frame: Frame, depth: int = 0) -> str | None:
        """The type of a local, as ``of_expression`` gives it: what is written, or that of its initialiser."""
        type_text = self._bare(local.type)
        if type_text not in ("auto", "") and not type_text.startswith("decltype"):
            return type_text
        value = initialiser_value(body.text(local.value).lstrip("=: ")) if local.value else ""
        return self.of_expression(value, body, frame, depth + 1)

    def _of_name(self, name: str, body: Body, frame: Frame, depth: int) -> str | None:
        if body.locals.get(name):
            return self.of_local(body.locals[name][-1], body, frame, depth)
        if frame.candidate is not None:
            for parameter in frame.candidate.function.parameters:
                if parameter.name == name:
                    return self._bare(parameter.type)
        return self._member_type(name, body.context)

    def _of_member(self, type_text: str | None, member: str, context: Context) -> str | None:
        """The type of ``x.member`` or ``x->member(...)`` for an ``x`` of a type."""
        called = member.endswith(")")
        name = re.match(r"(?:template\s+)?(\w*)", member).group(1)
        holder = self.class_name(type_text, context) if type_text else None
        if holder is None:
            return type_text if called and name in _UNWRAPS else None
        if called:
            found = {
                self._bare(f.return_type) for _, f in self._index.functions(name) if f.scope and f.scope[-1] == holder
            }
            return found.pop() if len(found) == 1 else type_text if not found and name in _UNWRAPS else None
        types = {
            self._bare(v.type)
            for _, v in self._index.entries(name, ("variable",), lambda facts: facts.variables)
            if v.scope and v.scope[-1] == holder
        }
        return types.pop() if len(types) == 1 else None

    def _returned(self, callee: str, context: Context) -> str | None:
        """What a call returns, where every function of that name in sight returns the same."""
        name = strip_arguments(callee)
        if not re.fullmatch(r"(?:::)?\w+(?:::\w+)*", name):
            return None
        *qualifiers, simple = name.split("::")
        if simple in self._index.names_of_kind("class"):
            return callee
        near = self._index.near(context.root, context.path)
        found = {
            self._bare(f.return_type)
            for path, f in self._index.functions(simple)
            if (not qualifiers or f.scope[-1:] == (qualifiers[-1],)) and (path in near or qualifiers)
        }
        if len(found) == 1:
            return found.pop()
        if found:
            return None
        # Outside the tree: a temporary of a class, or a class's own function, which as a rule returns the class.
        return callee if simple[:1].isupper() else "::".join(qualifiers) or None

    def _member_type(self, name: str, context: Context) -> str | None:
        """The type of a data member of the class around the context, or of a variable at namespace level."""
        for path in self._index.paths_of(name, ("variable",)):
            facts = self._index.declared(path)
            for variable in facts.variables if facts else ():
                if (
                    variable.name == name
                    and (variable.scope == context.scope[: len(variable.scope)])
                    and variable.scope
                ):
                    return self._bare(variable.type)
        return None

    @staticmethod
    @functools.lru_cache(maxsize=1 << 15)
    def _bare(type_text: str) -> str:
        text = " ".join(_DECORATION.sub(" ", _EXTENTS.sub("", type_text)).split())
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
        near = self._index.near(context.root, context.path)
        for _, alias in self._index.entries_in(name, ("alias",), lambda facts: facts.aliases, near):
            if alias.kind in ("type", "using") and strip_arguments(alias.target).split("::")[-1] != name:
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
                namespaces = self._index.namespace_aliases(context.root)
                if len(simple) == 1 and head and head.group(1) in namespaces:
                    return bare
                leading = namespaces.get(simple[0]) if simple else None
                return bare.replace(simple[0], leading, 1) if leading else bare
            text = target + text[head.end() :]
        return self._bare(text)

    def bindable(self, text: str, frame: Frame) -> str | None:
        """A template argument worth passing on: a class of the tree, or a parameter that is known to be one."""
        if text in frame.types:
            return frame.types[text]
        simple = strip_arguments(self._bare(text)).split("::")[-1]
        return self._bare(text) if simple in self._index.names_of_kind("class") else None
