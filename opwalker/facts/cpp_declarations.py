"""Declarations at namespace and class level, collected while ``cpp_scan`` walks the scopes.

In: the span of one declaration and how it ended. Out: entries in the lists of ``Declarations``. A declaration that is
met again in another preprocessor branch is entered once, by its offset.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from opwalker.facts.cpp_brackets import flat, match_bracket, skip_blanks, split_commas
from opwalker.facts.cpp_functions import function_entry
from opwalker.facts.cpp_heads import FunctionHead, parse_function, strip_templates
from opwalker.facts.cpp_names import KEYWORDS, alias_of, class_head, variable_of
from opwalker.facts.cpp_text import Blanked, Conditionals
from opwalker.model.cpp import Alias, ClassDef, EnumDef, Function, Invocation, Variable

ANONYMOUS = "(anonymous namespace)"

_NAMESPACE = re.compile(
    r"(?:inline\s+)?namespace\b\s*(?:\[\[[^\]]*\]\]\s*)?((?:inline\s+)?[\w:]*(?:\s*::\s*(?:inline\s+)?\w+)*)\s*(?:__attribute__\s*\(.*\)\s*)?\Z",
    re.DOTALL,
)
_LINKAGE = re.compile(r'extern\s*"[^"]*"\s*\Z')
_CLASS = re.compile(r"(?:typedef\s+)?(class|struct|union)\b")
_ENUM = re.compile(
    r"(?:typedef\s+)?enum\b\s*(class\b|struct\b)?\s*(?:\[\[[^\]]*\]\]\s*)?([\w:]*)\s*(?::\s*([\w:\s]+?))?\s*\Z"
)
_MACRO_USE = re.compile(r"\s*([A-Za-z_]\w*)\s*(\()?")
_BARE_USE = re.compile(r"\s*([A-Z_][A-Z0-9_]{2,})\s*\Z")
_ATTRIBUTE_MACROS = re.compile(
    r"\s*(?:__attribute__|__declspec|alignas|__align__|__launch_bounds__|static_assert|decltype|asm|__asm__)\b"
)


@dataclass(slots=True)
class Head:
    """A ``{`` that opened something: ``kind`` is scope, class, enum, variable, function, block or other."""

    kind: str
    scope: tuple[str, ...] = ()
    name: str = ""
    start: int = 0
    entry: object = None


class Declarations:
    """Collects a file's declarations."""

    def __init__(self, blanked: Blanked, conditionals: Conditionals) -> None:
        self._blanked = blanked
        self._conditionals = conditionals
        self._seen: set[tuple[int, str]] = set()
        self.functions: list[Function] = []
        self.classes: list[ClassDef] = []
        self.enums: list[EnumDef] = []
        self.aliases: list[Alias] = []
        self.variables: list[Variable] = []
        self.invocations: list[Invocation] = []

    def forget(self) -> None:
        """Drop everything: the file is read again with more branches apart."""
        for entries in (self.functions, self.classes, self.enums, self.aliases, self.variables, self.invocations):
            entries.clear()
        self._seen.clear()

    def _new(self, offset: int, kind: str) -> bool:
        key = (offset, kind)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def is_initialiser(self, text: str, start: int, brace: int) -> bool:
        """Whether a ``{`` at depth 0 opens an initialiser (``= {``, ``x{``, ``: member{``) and not a body."""
        head = text[skip_blanks(text, start, brace) : brace]
        stripped = head.rstrip()
        if not stripped:
            return False
        last = stripped[-1]
        if last in "=,":
            return True
        begin, _, _ = strip_templates(head)
        core = head[begin:]
        if last not in ")}>" and not (last.isalnum() or last == "_"):
            return False
        if re.search(r"(?<![=!<>+\-*/%&|^])=(?!=)", flat(core)) and "operator" not in core:
            return True
        if last == ")" or last == "}":
            return False
        # `Foo() : a(1), b{` opens a member initialiser; `enum E : int {` and `class A : B {` do not.
        return bool(re.search(r"\)\s*(?:noexcept\s*(?:\([^()]*\)\s*)?)?:(?!:)", core)) and last not in ")}"

    def statement(self, text: str, start: int, stop: int, scope: tuple[str, ...], class_name: str | None) -> None:
        """A declaration that ended in ``;``."""
        start = skip_blanks(text, start, stop)
        start = self._peel(text, start, stop, scope)
        head = text[start:stop]
        stripped = head.strip()
        if not stripped:
            return
        offset = start + len(head) - len(head.lstrip())
        begin, template, bare = strip_templates(head)
        core = head[begin:].strip()
        if self._alias(core, template, offset, scope):
            return
        if core.startswith(("friend ", "static_assert", "asm", "return ", "extern template")) and not core.startswith(
            "friend "
        ):
            if not core.startswith("extern template"):
                return
        if _CLASS.match(core) and "(" not in core and "=" not in core:
            return  # forward declaration, or explicit instantiation of a class
        parsed = parse_function(head, class_name)
        if parsed is not None and self._is_declaration(head, parsed):
            self._function(text, start, parsed, scope, class_name, 0, 0)
            return
        use = _MACRO_USE.match(core)
        if use and use.group(2) and use.group(1) not in KEYWORDS and not bare:
            close = match_bracket(core, use.end() - 1)
            if close == len(core):
                self._invocation(text, start + begin, use.group(1), scope, stop)
                return
        self.variable(text, start, stop, scope)

    def loose(self, text: str, start: int, stop: int, scope: tuple[str, ...]) -> None:
        """Text before a closing brace or the end of the file: macro uses without a semicolon."""
        start = self._peel(text, start, stop, scope)
        use = _MACRO_USE.match(text, start, stop)
        if use and use.group(2) and use.group(1) not in KEYWORDS:
            close = match_bracket(text, use.end() - 1, stop)
            if close > 0 and not text[close:stop].strip():
                self._invocation(text, start, use.group(1), scope, stop)
            return
        bare = _BARE_USE.match(text, start, stop)
        if bare:
            self._enter_invocation(bare.group(1), None, scope, bare.start(1), bare.end(1), 0, 0)

    def _is_declaration(self, head: str, parsed: FunctionHead) -> bool:
        """`int x(3);` is a variable; `int f(int);` and `f<int>(x)` as explicit instantiation are functions."""
        inside = head[parsed.parameters_start : parsed.parameters_end].strip()
        if not inside or "explicit_instantiation" in parsed.flags or "extern_template" in parsed.flags:
            return True
        return not re.match(r"[\d\"'.-]|\w+\s*\(|\w+\.\w", inside)

    def _peel(self, text: str, start: int, stop: int, scope: tuple[str, ...]) -> int:
        """Take leading macro uses without semicolon off a declaration: ``INSTANTIATE(x)`` before ``void f()``."""
        while True:
            use = _MACRO_USE.match(text, start, stop)
            if use is None or use.group(1) in KEYWORDS:
                return start
            if use.group(2):
                if _ATTRIBUTE_MACROS.match(text, start):
                    return start
                close = match_bracket(text, use.end() - 1, stop)
                end = close
            else:
                if not re.fullmatch(r"[A-Z_][A-Z0-9_]{2,}", use.group(1)):
                    return start
                close = use.end(1)
                end = close
            if close < 0:
                return start
            rest = re.compile(r"[ \t]*(\n)?\s*").match(text, close, stop)
            if rest.end() >= stop or not rest.group(1):
                return start
            following = text[rest.end() : min(stop, rest.end() + 2)]
            if not (following[0].isalpha() or following[0] in "_["):
                return start
            self._enter_invocation(
                use.group(1),
                self._arguments(text, use, close) if use.group(2) else None,
                scope,
                use.start(1),
                end,
                0,
                0,
            )
            start = close

    def _arguments(self, text: str, use: re.Match, close: int) -> tuple[str, ...]:
        code = self._blanked.code
        return tuple(" ".join(code[a:b].split()) for a, b in split_commas(text, use.end(), close - 1, angles=False))

    def _invocation(self, text: str, start: int, name: str, scope: tuple[str, ...], stop: int) -> None:
        use = _MACRO_USE.match(text, start, stop)
        close = match_bracket(text, use.end() - 1, stop)
        self._enter_invocation(name, self._arguments(text, use, close), scope, use.start(1), close, 0, 0)

    def _enter_invocation(self, name, arguments, scope, offset, end, body_start, body_end) -> Invocation | None:
        if not self._new(offset, "invocation"):
            return None
        entry = Invocation(
            name,
            arguments,
            scope,
            offset,
            end,
            self._blanked.line(offset),
            body_start,
            body_end,
            self._blanked.line(max(end, body_end) - 1),
            self._conditionals.at(offset),
        )
        self.invocations.append(entry)
        return entry

    def _alias(self, core: str, template: str | None, offset: int, scope: tuple[str, ...]) -> bool:
        found = alias_of(core)
        if found is None:
            return core.startswith(("using", "typedef"))
        if self._new(offset, "alias"):
            kind, name, target = found
            line, condition = self._blanked.line(offset), self._conditionals.at(offset)
            self.aliases.append(Alias(kind, name, scope, " ".join(target.split()), template, offset, line, condition))
        return True

    def variable(self, text: str, start: int, stop: int, scope: tuple[str, ...]) -> None:
        """A variable's declaration with or without initialiser."""
        head = text[start:stop]
        found = variable_of(head)
        if found is None:
            return
        offset = start + len(head) - len(head.lstrip())
        if not self._new(offset, "variable"):
            return
        value = " ".join(self._blanked.code[start + found.value_at : stop].split()) or None
        line, condition = self._blanked.line(offset), self._conditionals.at(offset)
        self.variables.append(
            Variable(
                found.name,
                (*scope, *found.qualifiers),
                found.type,
                value,
                found.constant,
                found.template,
                offset,
                line,
                condition,
            )
        )

    def open_block(self, text: str, start: int, brace: int, scope: tuple[str, ...], class_name: str | None) -> Head:
        """What a ``{`` opens, from the head before it."""
        start = skip_blanks(text, start, brace)
        start = self._peel(text, start, brace, scope)
        head = text[start:brace]
        begin, template, _ = strip_templates(head)
        core = head[begin:].strip()
        offset = start + len(head) - len(head.lstrip())
        if match := _NAMESPACE.match(core):
            parts = [
                p.replace("inline", "").strip() if p.strip().startswith("inline ") else p.strip()
                for p in match.group(1).split("::")
                if p.strip()
            ]
            return Head("scope", (*scope, *(parts or [ANONYMOUS])))
        if _LINKAGE.match(self._blanked.code[offset:brace].strip()):
            return Head("scope", scope)
        if match := _ENUM.match(core):
            return Head("enum", scope, match.group(2).split("::")[-1], offset, match)
        if match := _CLASS.match(core):
            made = class_head(core, match.group(1))
            if made:
                name, specialisation, bases = made
                entry = (name, match.group(1), specialisation, bases, template)
                return Head("class", (*scope, name), name, offset, entry)
        parsed = parse_function(head, class_name)
        if parsed is not None:
            entry = self._function(text, start, parsed, scope, class_name, brace, brace)
            return Head("function", scope, parsed.name, offset, entry)
        use = _MACRO_USE.match(text, start, brace)
        if use and use.group(2) and use.group(1) not in KEYWORDS:
            close = match_bracket(text, use.end() - 1, brace)
            if close > 0:
                entry = self._enter_invocation(
                    use.group(1), self._arguments(text, use, close), scope, use.start(1), close, brace, brace
                )
                return Head("block", scope, use.group(1), offset, entry)
        if re.match(r"[\w:<>,\s*&]+\Z", core) and len(core.split()) > 1:
            return Head("variable", scope, "", offset)
        return Head("other", scope, "", offset)

    def close_class(self, head: Head, brace: int, close: int) -> None:
        """Enter a class whose body is ``[brace, close)``."""
        name, kind, specialisation, bases, template = head.entry
        if self._new(head.start, "class"):
            line = self._blanked.line
            self.classes.append(
                ClassDef(
                    name,
                    head.scope[:-1],
                    kind,
                    bases,
                    template,
                    specialisation,
                    head.start,
                    line(head.start),
                    brace,
                    close,
                    line(close - 1),
                    self._conditionals.at(head.start),
                )
            )

    def close_enum(self, head: Head, text: str, brace: int, close: int) -> None:
        """Enter an enumeration with its members."""
        match = head.entry
        members = []
        for a, b in split_commas(text, brace + 1, close - 1, angles=False):
            name, _, value = self._blanked.code[a:b].partition("=")
            word = re.match(r"\s*(\w+)", name)
            if word:
                members.append((word.group(1), " ".join(value.split()) or None))
        if self._new(head.start, "enum"):
            self.enums.append(
                EnumDef(
                    head.name,
                    head.scope,
                    bool(match.group(1)),
                    match.group(3),
                    tuple(members),
                    head.start,
                    self._blanked.line(head.start),
                    self._conditionals.at(head.start),
                )
            )

    def behind_class(self, text: str, close: int, stop: int, head: Head) -> None:
        """``typedef struct {…} Name;`` names the class behind its body."""
        word = re.match(r"\s*(\w+)\s*\Z", text[close:stop])
        if word and text[head.start : head.start + 7] == "typedef" and not head.name and self._new(close, "alias"):
            line, condition = self._blanked.line(close), self._conditionals.at(close)
            self.aliases.append(Alias("type", word.group(1), head.scope, word.group(1), None, close, line, condition))

    def close_body(self, head: Head, brace: int, close: int) -> None:
        """Give a function or block the body that was just measured."""
        entry = head.entry
        entries = self.functions if head.kind == "function" else self.invocations
        if entry is None or head.kind == "other" or not entries or entries[-1] is not entry:
            return
        end_line = self._blanked.line(close - 1)
        if isinstance(entry, Function):
            entries[-1] = Function(
                entry.name,
                entry.scope,
                entry.return_type,
                entry.parameters,
                entry.flags,
                entry.template,
                entry.specialisation,
                entry.attributes,
                entry.offset,
                entry.line,
                entry.start_line,
                brace,
                close,
                end_line,
                entry.condition,
                entry.class_depth,
            )
        else:
            entries[-1] = Invocation(
                entry.name,
                entry.arguments,
                entry.scope,
                entry.offset,
                entry.end,
                entry.line,
                brace,
                close,
                end_line,
                entry.condition,
            )

    def _function(self, text, start, parsed: FunctionHead, scope, class_name, body_start, body_end) -> Function | None:
        offset = start + parsed.name_offset
        if not self._new(offset, "function"):
            return None
        entry = function_entry(
            self._blanked,
            text,
            start,
            parsed,
            scope,
            class_name is not None,
            (body_start, body_end),
            self._conditionals.at(offset),
        )
        self.functions.append(entry)
        return entry
