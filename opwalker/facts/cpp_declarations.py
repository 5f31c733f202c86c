"""Declarations at namespace and class level, collected while ``cpp_scan`` walks the scopes.

In: the span of one declaration and how it ended. Out: entries in the lists of ``Declarations``. A declaration that is
met again in another preprocessor branch is entered once, by its offset.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from opwalker.facts.cpp_brackets import flat, match_bracket, skip_blanks, split_commas
from opwalker.facts.cpp_functions import function_entry, with_body
from opwalker.facts.cpp_heads import FunctionHead, parse_function, strip_templates
from opwalker.facts.cpp_names import KEYWORDS, alias_of, class_head, variables_of, without_attributes
from opwalker.facts.cpp_text import Blanked, Conditionals
from opwalker.facts.cpp_uses import MACRO_USE, MacroUses
from opwalker.model.cpp import Alias, ClassDeclaration, ClassDef, ClassInstantiation, EnumDef, Function, Variable
from opwalker.notation.regex import Regex

ANONYMOUS = "(anonymous namespace)"

_NAMESPACE = Regex(
    r"(?:inline\s+)?namespace\b\s*(?:\[\[[^\]]*\]\]\s*)?((?:inline\s+)?[\w:]*(?:\s*::\s*(?:inline\s+)?\w+)*)\s*(?:__attribute__\s*\(.*\)\s*)?\Z",
    re.DOTALL,
)
_LINKAGE = Regex(r'extern\s*"([^"]*)"\s*\Z')
_CLASS = Regex(r"(?:typedef\s+)?(class|struct|union)\b")
#: A class whose head begins with what its objects are: ``static struct S {…} s;``, ``__device__ struct S {…};``.
_HELD_CLASS = Regex(
    r"(?:(?:static|extern|inline|constexpr|const|volatile|thread_local|__\w+__)\s+)+(class|struct|union)\b"
)
_USED = Regex(r"using\s+(\w+)")
#: ``using name = class C {…};`` makes a class and another name for it.
_USED_CLASS = Regex(r"using\s+(\w+)\s*=\s*((?:class|struct|union|enum)\b.*)\Z", re.DOTALL)
_ENUM = Regex(
    r"(?:typedef\s+)?enum\b\s*(class\b|struct\b)?\s*(?:\[\[[^\]]*\]\]\s*)?([\w:]*)\s*(?::\s*([\w:\s]+?))?\s*\Z"
)


_OPEN_TEMPLATE = Regex(r"template\s*<")
#: A requires expression, whose brace opens no body: it stands behind an operator, a bracket or `requires`.
_REQUIREMENTS = Regex(
    r"\brequires\s*\Z|(?:&&|\|\||[!=(,]|\brequires)\s*requires\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*\Z"
)
_DECLARES_NOTHING = Regex(r"(?:static_assert|asm|return|concept)\b")
_NAMES = Regex(r"[\w\s,]+")
_QUALIFIERS = Regex(r"(?:class|struct|union)\s+(?:::\s*)?((?:\w+\s*::\s*)*)")
_FRIEND = Regex(r"friend\b[^()]*\Z")


def _held_class(core: str) -> re.Match[str] | None:
    if "struct" in core or "class" in core or "union" in core:
        return _HELD_CLASS.match(without_attributes(core).strip())
    return None


class Head(Struct):
    """A ``{`` that opened something: ``kind`` is scope, linkage, class, enum, variable, function, block or other."""

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
        self.instantiations: list[ClassInstantiation] = []
        self.declared_classes: list[ClassDeclaration] = []
        self._numbers: dict[tuple[int, str], int] = {}  # of functions, by place and head
        self._variable_names: set[str] = set()
        self.uses = MacroUses(blanked, conditionals)
        self.c_linkage = False  # whether an `extern "C"` block is open

    def forget(self) -> None:
        """Drop everything: the file is read again with more branches apart."""
        own = self.functions, self.classes, self.enums, self.aliases, self.variables, self.instantiations
        for entries in (*own, self.declared_classes):
            entries.clear()
        self._seen.clear()
        self.uses.forget()

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
        if _USED_CLASS.match(core):
            return False
        if last not in ")}>]" and not (last.isalnum() or last == "_"):
            return False
        if last != ")" and _OPEN_TEMPLATE.match(core):
            return True  # `template <class T, enable_if_t<is_same<T, float>{}> …`: the head is still open
        if "requires" in head and _REQUIREMENTS.search(head):
            return True
        if re.search(r"(?<![=!<>+\-*/%&|^])=(?!=)", flat(core)) and "operator" not in core:
            return True
        if last in ")}]":
            return False
        # `Foo() : a(1), b{` opens a member initialiser; `enum E : int {` and `class A : B {` do not.
        return bool(re.search(r"\)\s*(?:noexcept\s*(?:\([^()]*\)\s*)?)?(?:try\s*)?:(?!:)", without_attributes(core)))

    def statement(self, text: str, start: int, stop: int, scope: tuple[str, ...], class_name: str | None) -> None:
        """A declaration that ended in ``;``."""
        start = skip_blanks(text, start, stop)
        start = self.uses.peel(text, start, stop, scope)
        head = text[start:stop]
        stripped = head.strip()
        if not stripped:
            return
        offset = start + len(head) - len(head.lstrip())
        begin, template, bare = strip_templates(head)
        core = head[begin:].strip()
        if self._alias(core, template, offset, scope):
            return
        if _DECLARES_NOTHING.match(core) or _FRIEND.match(core):
            return
        tagged = _CLASS.match(core)
        if tagged and "=" not in core:
            made = class_head(core, tagged.group(1))
            if bare:
                self._instantiation(head, made, core, offset, scope)
            if made and not bare and len(core.split()) == 2 and core[-1] not in ">:" and self._new(offset, "declared"):
                line, condition = self._blanked.line(offset), self._conditionals.at(offset)
                self.declared_classes.append(ClassDeclaration(made[0], scope, template, offset, line, condition))
            if made or (bare and "(" not in core):
                return
        parsed = parse_function(head, class_name)
        if parsed is not None and self._is_declaration(head, parsed):
            self._function(text, start, parsed, scope, class_name, 0, 0)
            return
        use = MACRO_USE.match(core)
        if use and use.group(2) and use.group(1) not in KEYWORDS and not bare:
            close = match_bracket(core, use.end() - 1)
            if close == len(core):
                self.uses.enter_call(text, start + begin, scope, stop)
                return
        self.variable(text, start, stop, scope)

    def _is_declaration(self, head: str, parsed: FunctionHead) -> bool:
        """`int x(3);` is a variable; `int f(int);` and `f<int>(x)` as explicit instantiation are functions."""
        inside = head[parsed.parameters_start : parsed.parameters_end].strip()
        if not inside or "explicit_instantiation" in parsed.flags or "extern_template" in parsed.flags:
            return True
        if re.match(r"[\d\"'.-]|\w+\s*\(|\w+\.\w", inside):
            return False
        # `Foo y(N);` makes an object when an argument is a variable: no type has its name.
        return not _NAMES.fullmatch(inside) or self._variable_names.isdisjoint(map(str.strip, inside.split(",")))

    def _alias(self, core: str, template: str | None, offset: int, scope: tuple[str, ...]) -> bool:
        found = alias_of(core)
        if found is None:
            return core.startswith(("using", "typedef"))
        if self._new(offset, "alias"):
            kind, name, target = found
            line, condition = self._blanked.line(offset), self._conditionals.at(offset)
            self.aliases.append(Alias(kind, name, scope, " ".join(target.split()), template, offset, line, condition))
        return True

    def _instantiation(self, head: str, made, core: str, offset: int, scope: tuple[str, ...]) -> None:
        """``template class ns::A<int>;``."""
        if made is None or made[1] is None or not self._new(offset, "instantiation"):
            return
        qualified = _QUALIFIERS.match(core)
        named = tuple(p.strip() for p in qualified.group(1).split("::") if p.strip()) if qualified else ()
        external = head.lstrip().startswith("extern")
        line, condition = self._blanked.line(offset), self._conditionals.at(offset)
        arguments = " ".join(made[1].split())
        self.instantiations.append(
            ClassInstantiation(made[0], (*scope, *named), arguments, external, offset, line, condition)
        )

    def variable(self, text: str, start: int, stop: int, scope: tuple[str, ...]) -> None:
        """A variable's declaration with or without initialiser."""
        head = text[start:stop]
        self._variables(head, start, start + len(head) - len(head.lstrip()), scope)

    def _variables(self, head: str, start: int, offset: int, scope: tuple[str, ...]) -> None:
        """The variables that a declaration's text declares; its places are counted from ``start``."""
        for found in variables_of(head):
            if not self._new(offset + found.offset, "variable"):
                continue
            value = " ".join(self._blanked.code[start + found.value_at : start + found.end].split()) or None
            self._variable_names.add(found.name)
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
                    found.specialisation,
                )
            )

    def open_block(self, text: str, start: int, brace: int, scope: tuple[str, ...], class_name: str | None) -> Head:
        """What a ``{`` opens, from the head before it."""
        start = skip_blanks(text, start, brace)
        start = self.uses.peel(text, start, brace, scope)
        head = text[start:brace]
        begin, template, _ = strip_templates(head)
        core = head[begin:].strip()
        offset = start + len(head) - len(head.lstrip())
        used = _USED_CLASS.match(core)
        if used:
            core = used.group(2)
        if match := _NAMESPACE.match(core):
            self._inline_namespaces(core, offset, scope)
            parts = [
                p.replace("inline", "").strip() if p.strip().startswith("inline ") else p.strip()
                for p in match.group(1).split("::")
                if p.strip()
            ]
            return Head("scope", (*scope, *(parts or [ANONYMOUS])))
        if match := _LINKAGE.match(self._blanked.code[offset:brace].strip()):
            return Head("linkage", scope, match.group(1))
        if match := _ENUM.match(core):
            return Head("enum", scope, match.group(2).split("::")[-1], offset, match)
        if match := _CLASS.match(core) or _held_class(core):
            made = class_head(core, match.group(1))
            if made:
                name, specialisation, bases = made
                name = name or (used.group(1) if used else "")
                entry = (name, match.group(1), specialisation, bases, template)
                return Head("class", (*scope, name), name, offset, entry)
        parsed = parse_function(head, class_name)
        if parsed is not None:
            entry = self._function(text, start, parsed, scope, class_name, brace, brace)
            return Head("function", scope, parsed.name, offset, entry)
        use = MACRO_USE.match(text, start, brace)
        if use and use.group(2) and use.group(1) not in KEYWORDS:
            close = match_bracket(text, use.end() - 1, brace)
            if close > 0:
                entry = self.uses.enter_call(text, start, scope, brace, brace)
                return Head("block", scope, use.group(1), offset, entry)
        if len(core.split()) > 1 and re.match(r"[\w:<>,\s*&]+\Z", flat(core) if "(" in core else core):
            return Head("variable", scope, "", offset)
        return Head("other", scope, "", offset)

    def _inline_namespaces(self, core: str, offset: int, scope: tuple[str, ...]) -> None:
        """Enter the inline ones of the namespaces that a head opens: their names are those of the one around, too."""
        for part in re.split(r"::", core[: core.find("__attribute__")] if "__attribute__" in core else core):
            words = re.findall(r"\w+", part)
            if not words or words[-1] in ("inline", "namespace"):
                continue
            if words[0] == "inline" and self._new(offset + len(scope), "inline"):
                line, condition = self._blanked.line(offset), self._conditionals.at(offset)
                target = "::".join((*scope, words[-1]))
                self.aliases.append(Alias("inline", words[-1], scope, target, None, offset, line, condition))
            scope = (*scope, words[-1])

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
        """``typedef struct {…} Name;`` names the class behind its body; with a tag, each name is another for it.
        ``using Name = class C {…};`` names it before, and ``struct {…} table[] = {…};`` declares objects of it."""
        scope = head.scope[:-1] if head.kind == "class" else head.scope
        if used := _USED.match(text, head.start):
            if head.name != used.group(1) and self._new(head.start, "alias"):
                line, condition = self._blanked.line(head.start), self._conditionals.at(head.start)
                target = head.name or used.group(1)
                self.aliases.append(Alias("type", used.group(1), scope, target, None, head.start, line, condition))
            return
        if text[head.start : head.start + 7] != "typedef":
            declared = without_attributes(text[close:stop])
            if declared.strip():
                kind = f"{head.name or 'struct'} "
                self._variables(kind + declared, close - len(kind), skip_blanks(text, close, stop), scope)
            return
        for begin, end in split_commas(text, close, stop):
            word = re.match(r"\s*([*\s]*)(\w+)\s*\Z", text[begin:end])
            target = head.name or (word and word.group(2))
            if not word or (head.name == word.group(2)) or not self._new(begin, "alias"):
                continue
            line, condition = self._blanked.line(begin), self._conditionals.at(begin)
            target += "".join(word.group(1).split())
            self.aliases.append(Alias("type", word.group(2), scope, target, None, begin, line, condition))

    def close_body(self, head: Head, brace: int, close: int) -> None:
        """Give a function or block the body that was just measured."""
        entry, entries = head.entry, self.functions
        if head.kind == "block":
            self.uses.close_body(entry, brace, close)
        if head.kind != "function" or entry is None or not entries or entries[-1] is not entry:
            return
        entries[-1] = with_body(entry, brace, close, self._blanked.line(close - 1))

    def _function(self, text, start, parsed: FunctionHead, scope, class_name, body_start, body_end) -> Function | None:
        offset = start + parsed.name_offset
        listed = text[start + parsed.parameters_start : start + parsed.parameters_end]
        # One name may have several lists of parameters around it, each in a branch of its own; or be a kernel in one.
        kind = "kernel" if "global" in parsed.flags else "function"
        key = offset, f"{kind} {parsed.template} {' '.join(listed.split())}"
        end = body_start or start + parsed.parameters_end
        if not self._new(*key):
            held = self.functions[self._numbers[key]]
            if held.condition != self._conditionals.at(offset):
                # It is read in further branches: it stands under what these have in common.
                condition = self._conditionals.of_selected(text, start, offset, end)
                shared = self._conditionals.common(held.condition, condition)
                self.functions[self._numbers[key]] = replace(held, condition=shared)
            return None
        self._numbers[key] = len(self.functions)
        condition = self._conditionals.of_selected(text, start, offset, end)
        entry = function_entry(
            self._blanked,
            text,
            start,
            parsed,
            scope,
            class_name is not None,
            (body_start, body_end),
            condition,
            self.c_linkage,
        )
        self.functions.append(entry)
        return entry
