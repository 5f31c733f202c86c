"""Function bodies on a walk: expanded, parsed, and asked by name.

``Body`` joins the expanded text with its facts and answers the questions that a walk has: which local does a name mean,
where does this text stand, what does the reader see there.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import Any

from opwalker.expand.configuration import DECIDED
from opwalker.expand.expanded import Expanded
from opwalker.expand.files import Files
from opwalker.expand.giving import Giving
from opwalker.expand.macros import KNOWN
from opwalker.expand.mentions import mentions, name_alone
from opwalker.expand.preprocess import MAX_TOKENS, Preprocessor
from opwalker.expand.resolve import Candidate, Context
from opwalker.facts.cpp_body import read_body
from opwalker.facts.cpp_unread import first_line
from opwalker.link.index import Index
from opwalker.model.access import AccessFacts
from opwalker.model.body import AssignFact, BodyFacts, CallFact, LambdaFact, LocalFact, Span2
from opwalker.model.cpp import Function
from opwalker.model.reach import KernelRef, Origin
from opwalker.notation.condition_parse import parse_condition
from opwalker.notation.condition_terms import names_of, negate
from opwalker.notation.regex import compiled

#: Bodies kept in memory: enough for the deepest walk, and a bound for one over all ops of a tree.
MAX_BODIES = 1500


class Body:
    """One function's (or lambda's) body in one translation unit."""

    def __init__(
        self,
        path: str,
        root: str,
        function: Function | None,
        expanded: Expanded,
        facts: BodyFacts,
        files: Files,
        scope: tuple[str, ...],
    ) -> None:
        self.path = path
        self.root = root
        self.function = function
        self.expanded = expanded
        self.facts = facts
        self._files = files
        self._texts: dict[Span2, str] = {}
        self._written: dict[Span2, str] = {}
        self._around: dict[int, list[LambdaFact]] = {}
        #: What a name means at an offset, and the origin of a value written at one: each is asked for many times.
        self.holders: dict[tuple[str, int], LocalFact | LambdaFact | None] = {}
        self.origins: dict[tuple[int, int, str, str], Origin] = {}
        #: What a view keeps with the body, by its own name.
        self.kept: dict[str, Any] = {}
        self._scopes: dict[str, list[Span2]] = {}
        self._standing: dict[int, tuple[str, ...]] = {}
        self._local_starts: dict[str, list[int]] = {}
        self._locals_at: dict[tuple[str, int], list[LocalFact]] = {}
        self._assigns_to: dict[str, list[tuple[AssignFact, set[Span2]]]] = {}
        self._assigns_at: dict[tuple[str, int], list[AssignFact]] = {}
        #: Tells bodies apart for as long as a tree is read.
        self.key: tuple = (path, root, id(self))
        self._block_starts = [block.start for block in facts.blocks]
        self._scope_starts = [start for start, _ in facts.scopes]
        #: Calls of each lambda, by where it starts: asked for at every mention of one of its parameters.
        self.lambda_calls: dict[int, list] = {}
        #: The branches of every ``if constexpr``.
        self.constexpr_blocks = [b for b in facts.blocks if b.condition is not None and b.kind.endswith("constexpr")]
        self.locals: dict[str, list[LocalFact]] = {}
        for local in facts.locals:
            if local.name:
                self.locals.setdefault(local.name, []).append(local)
        self.assigns: dict[str, list[AssignFact]] = {}
        for assign in facts.assigns:
            self.assigns.setdefault(assign.target, []).append(assign)
        usings = tuple(self.text(f.value) for f in facts.locals if f.type == "using namespace" and f.value)
        aliases = tuple((f.name, self.text(f.value)) for f in facts.locals if f.type == "namespace" and f.value)
        aliases += tuple((f.name, self.text(f.value)) for f in facts.locals if f.type == "using" and f.value)
        self.context = Context(path, root, scope, usings, aliases)

    @property
    def cut(self) -> str | None:
        """Why not all that the body compiles stands in it; None where it does."""
        if not self.expanded.folded:
            return None
        return f"its macros make more than {MAX_TOKENS:,} words: those that are given a lambda are not expanded"

    @cached_property
    def mentions(self) -> list[tuple[str, int, tuple[Span2, ...]]]:
        """The names with template arguments that stand in the body without a call: see ``mentions``."""
        tokens, token_at = self.expanded.tokens, self.expanded.token_at
        return [one for one in mentions(self.expanded.full) if '"' not in tokens[token_at(one[1])].text]

    @cached_property
    def bare_mentions(self) -> list[tuple[str, int, tuple[Span2, ...]]]:
        """The names alone that a variable is given or that the body returns, in the form of ``mentions``."""
        facts, full = self.facts, self.expanded.full
        spans = [f.value for f in facts.locals if f.value and f.type not in ("using", "namespace", "using namespace")]
        spans += [a.value for a in facts.assigns] + list(facts.returns)
        spans += [e.value for e in facts.exits if e.value]
        named = {m.start(1): m.group(1) for m in (name_alone(full, span) for span in spans) if m}
        return [("".join(name.split()), at, ()) for at, name in sorted(named.items()) if name not in self.locals]

    @cached_property
    def accesses(self) -> AccessFacts:
        """How the body touches memory: read when first asked for."""
        from opwalker.facts.cpp_access import read_accesses

        return read_accesses(self.expanded.text, self.facts.blocks)

    def constexpr_at(self, offset: int) -> tuple[int, ...]:
        """The branches of ``if constexpr`` around an offset, by number."""
        return tuple(n for n, b in enumerate(self.constexpr_blocks) if b.start <= offset < b.end)

    def text(self, span: Span2) -> str:
        """The expanded text of a span."""
        found = self._texts.get(span)
        if found is None:
            found = self._texts[span] = " ".join(self.expanded.full[span[0] : span[1]].split())
        return found

    def written(self, span: Span2) -> str:
        """A span as the source spells it."""
        found = self._written.get(span)
        if found is None:
            found = self._written[span] = " ".join(self.expanded.written(*span).split())
        return found

    def passed(self, call: CallFact) -> int | None:
        """How many arguments a call passes; None where a pack is among them."""
        full = self.expanded.full
        spread = any(full[a:b].rstrip().endswith("...") for a, b in call.arguments)
        return None if spread else len(call.arguments)

    def origin(self, offset: int) -> tuple[str, int]:
        """``(path, line)`` of where the text at an offset stands."""
        path, position, _ = self.expanded.origin(offset)
        if path == KNOWN:
            return self.path, self.use_line(offset)
        return path, self._files.part(path).blanked.line(position)

    def line_in(self, path: str, position: int) -> int:
        """The line of a position in a file that holds part of this body."""
        return self._files.part(path).blanked.line(position)

    def condition_at(self, offset: int) -> tuple[str, ...]:
        """The preprocessor conditions that the text at an offset stands under and its function does not."""
        path, position, _ = self.expanded.origin(offset)
        return self.conditions_of(path, position)

    def conditions_around(self, offset: int) -> tuple[str, ...]:
        """The same with those of the macro's use where a macro brings the text, outermost first."""
        used = self.conditions_of(self.path, self.expanded.use_position(offset))
        return tuple(dict.fromkeys((*used, *self.condition_at(offset))))

    def only_where(self, offset: int, at: int) -> tuple[str, ...] | None:
        """The preprocessor conditions that the text at an offset stands under and the text at ``at`` does not, but for
        those that the kind of build decides; None where no build compiles both."""
        held = self._standing_under(offset)
        if not held:
            return ()
        here = {parse_condition(term) for term in self._standing_under(at)}
        terms = {term: parse_condition(term) for term in held}
        if any(negate(one) in here for one in terms.values()):
            return None
        return tuple(term for term, one in terms.items() if one not in here and not names_of(one) <= DECIDED)

    def _standing_under(self, offset: int) -> tuple[str, ...]:
        found = self._standing.get(offset)
        if found is None:
            found = self._standing[offset] = self.conditions_around(offset)
        return found

    def conditions_of(self, path: str, position: int, elsewhere: bool = False) -> tuple[str, ...]:
        """The preprocessor conditions of a place in a file that the function does not stand under; those of other files
        only where ``elsewhere`` asks for them."""
        if path == KNOWN:
            return ()
        conditionals = self._files.part(path).conditionals
        terms = conditionals.conditions[conditionals.at(position)]
        if self.function is None or path != self.path:
            return terms if elsewhere or path == self.path else ()
        own = conditionals.conditions[conditionals.at(self.function.offset)]
        return terms[len(own) :] if terms[: len(own)] == own else terms

    def code(self, path: str) -> str:
        """The text of a file that holds part of this body, comments blanked; of bundled macros, nothing. It is for one
        who looks at nothing but this body and the macros that wrote it."""
        return self._files.part(path).blanked.code if path != KNOWN else ""

    def head(self, path: str, function: Function) -> str:
        """What stands before a function's name, from the beginning of its first line at the most, comments blanked."""
        blanked = self._files.part(path).blanked
        first = blanked.line_starts[first_line(function, blanked.code, blanked.line_starts) - 1]
        return blanked.code[max(first, blanked.code.rfind(";", first, function.offset) + 1) : function.offset]

    def use_line(self, offset: int) -> int:
        """The line of the function's own file on which the text at an offset takes effect."""
        return self._files.part(self.path).blanked.line(self.expanded.use_position(offset))

    def locals_at(self, name: str, offset: int) -> list[LocalFact]:
        """The locals that a name can mean at an offset: those of the innermost block around it that declares it."""
        held = self.locals.get(name, [])
        if len(held) < 2:
            return held
        found = self._locals_at.get((name, offset))
        if found is None:
            found = self._locals_at[name, offset] = self._innermost(name, offset, held)
        return found

    def last_around(self, name: str, offset: int) -> LocalFact | None:
        """The last local of a name that is declared before an offset, in a block around it."""
        held = self.locals.get(name)
        if held is None:
            return None
        starts = self._local_starts.get(name)
        if starts is None:
            starts = self._local_starts[name] = [local.start for local in held]
        blocks = self.facts.blocks
        for number in range(bisect_left(starts, offset) - 1, -1, -1):
            local = held[number]
            block = blocks[local.block] if local.block >= 0 else None
            if block is None or block.start <= offset < block.end:
                return local
        return None

    def _innermost(self, name: str, offset: int, held: list[LocalFact]) -> list[LocalFact]:
        scopes = self._scopes.get(name)
        if scopes is None:
            scopes = self._scopes[name] = [self._scope_of(f) for f in held]
        around = [
            (scope, f)
            for scope, f in zip(scopes, held, strict=True)
            if scope[0] <= offset < scope[1] and f.start <= offset
        ]
        if not around:
            return held
        inner = max(scope for scope, _ in around)
        return [f for scope, f in around if scope == inner]

    def assigns_at(self, name: str, offset: int) -> list[AssignFact]:
        """The assignments to a name, or to parts of it, that are to the variable that it means at an offset."""
        found = self._assigns_at.get((name, offset))
        if found is None:
            found = self._assigns_at[name, offset] = self._assigned(name, offset)
        return found

    def _assigned(self, name: str, offset: int) -> list[AssignFact]:
        held = self._assigns_to.get(name)
        if held is None:
            begins = compiled(rf"{re.escape(name)}\b")
            held = self._assigns_to[name] = [
                (a, {self._scope_of(f) for f in self.locals_at(name, a.start)})
                for target, found in self.assigns.items()
                if begins.match(target)
                for a in found
            ]
        scopes = {self._scope_of(f) for f in self.locals_at(name, offset)}
        return [a for a, around in held if not scopes or not scopes.isdisjoint(around)]

    def values_of(self, name: str, offset: int) -> list[Span2]:
        """What a local that a name means at an offset is initialised with or assigned; nothing for anything else."""
        held = [f for f in self.locals_at(name, offset) if f.type not in ("using", "namespace")]
        return [f.value for f in held if f.value] + [a.value for a in self.assigns_at(name, offset) if held]

    def _scope_of(self, local: LocalFact) -> Span2:
        """What a local is known in: the control structure, or the braces alone, that it stands in; or the body."""
        block = self.facts.blocks[local.block] if local.block >= 0 else None
        around = (block.start, block.end) if block is not None else (-1, len(self.expanded.full) + 1)
        number = bisect_right(self._scope_starts, local.start) - 1
        while number >= 0 and self._scope_starts[number] > around[0]:
            start, end = self.facts.scopes[number]
            if local.start < end:
                return start, end
            number -= 1
        return around

    def block_at(self, offset: int) -> int:
        """The innermost block around an offset, -1 for none."""
        number = bisect_right(self._block_starts, offset) - 1
        while number >= 0 and self.facts.blocks[number].end <= offset:
            number = self.facts.blocks[number].parent
        return number

    def lambda_at(self, span: Span2) -> LambdaFact | None:
        """The lambda that a span is, if it is one."""
        return next((f for f in self.facts.lambdas if f.start == span[0]), None)

    def enclosing_lambdas(self, offset: int) -> list[LambdaFact]:
        """The lambdas around an offset, innermost first."""
        if not self.facts.lambdas:
            return []
        found = self._around.get(offset)
        if found is None:
            held = [f for f in self.facts.lambdas if f.body[0] <= offset < f.body[1]]
            found = self._around[offset] = sorted(held, key=lambda f: f.body[1] - f.body[0])
        return found


class Bodies:
    """Reads bodies once per translation unit."""

    def __init__(
        self, files: Files, preprocessor: Preprocessor, device_preprocessor: Preprocessor | None = None
    ) -> None:
        self.files = files
        self._preprocessor = preprocessor
        self._device_preprocessor = device_preprocessor or preprocessor
        self._bodies: dict[tuple[str, int, str, bool], Body] = {}
        #: What was read of a body last, by its place, with its text.
        self._facts: dict[tuple[str, int], tuple[str, BodyFacts]] = {}
        self._giving: Giving | None = None
        #: The kernels that an expression means, by body, frame and span.
        self.meant: dict[tuple, tuple[KernelRef, ...]] = {}
        #: What functions lead to, by all that their frames say besides the way to them: see ``expand/moves.py``.
        self.moves: dict[tuple, tuple] = {}

    def of(self, candidate: Candidate, root: str, device: bool = False) -> Body:
        """The body of a function as the unit that begins at ``root`` reads it; ``device`` says that it is device
        code though its head may not show it (``__device__`` may stand in a macro)."""
        function = candidate.function
        span = function.body_start, function.body_end
        return self.span(candidate.path, *span, root, function, function.scope, device)

    def giving(self, index: Index) -> Giving:
        """What tells those definitions from others that can give a kernel by their words."""
        if self._giving is None:
            self._giving = Giving(index, self.files)
        return self._giving

    def expand(self, path: str, text: str, offset: int) -> str:
        """A piece of a file's text with its macros expanded, as device code reads it."""
        return self._device_preprocessor.text(path, text, offset)

    def unread_includes(self, body: Body) -> list[tuple[str, int, str]]:
        """Files that a body includes in its middle and that the tree lacks: ``(path, line, why)``."""
        if body.function is None:
            return []
        view = self.files.part(body.path)
        out = []
        for directive in view.blanked.directives:
            if directive.name == "include" and body.function.body_start < directive.offset < body.function.body_end:
                target = directive.body.strip().strip('"<>')
                if self.files.resolve_include(body.path, target) is None:
                    reason = f"{target} is included inside this function, and it is not in the source"
                    out.append((body.path, view.blanked.line(directive.offset), reason))
        return out

    def span(
        self,
        path: str,
        start: int,
        end: int,
        root: str,
        function: Function | None,
        scope: tuple[str, ...],
        device: bool = False,
    ) -> Body:
        """The body in ``[start, end)`` of a file, braces included."""
        on_device = device or (function is not None and ("global" in function.flags or "device" in function.flags))
        key = (path, start, root, on_device)
        found = self._bodies.get(key)
        if found is None:
            if len(self._bodies) >= MAX_BODIES:
                self._bodies.clear()
                self._facts.clear()
            reader = self._device_preprocessor if on_device else self._preprocessor
            expanded = reader.span(path, start, end, root)
            # Most units that read a body read the same.
            text, facts = self._facts.get((path, start), (None, None))
            if facts is None or text != expanded.text:
                facts = read_body(expanded.text)
                self._facts[path, start] = expanded.text, facts
            found = Body(path, root, function, expanded, facts, self.files, scope)
            found.key = key
            self._bodies[key] = found
        return found
