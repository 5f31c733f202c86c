"""What becomes of an element that is passed to a function: read where it is passed by value, written where a reference
to it is assigned.

In: a call with an element as an argument. Out: ``(written, read)``; ``(False, False)`` where only its address is known
to be passed on, because the function is not in the tree, is not certain, or does neither.
"""

from __future__ import annotations

import re

from opwalker.expand.device_calls import DeviceCalls
from opwalker.expand.resolve import Candidate, Context
from opwalker.expand.types import TypeReader
from opwalker.expand.value_reader import ValueReader
from opwalker.expand.workbench import Unit
from opwalker.link.index import Index
from opwalker.model.body import CallFact, Span2
from opwalker.notation.regex import Regex
from opwalker.views.sync_events import type_text

#: Functions of the language and of CUDA that take numbers by value.
_BY_VALUE = Regex(
    r"__(?!ldg|st|ld|pipeline|builtin)\w+|f?(?:abs|max|min|ma|mod)f?|(?:r?sqrt|exp2?|log2?|tanh?|sinh?|cosh?|erf|pow|floor|ceil"
    r"|round|rint|isnan|isinf|isfinite)f?"
)
_ASSIGNED = r"\b{}\s*(?:=(?!=)|[-+*/%&|^]=)"


class PassedHow:
    """Answers for the calls of one kernel and of what it calls."""

    def __init__(self, calls: DeviceCalls, unit: Unit, index: Index) -> None:
        self._calls = calls
        self._unit = unit
        self._types = TypeReader(index)

    def of(self, call: CallFact, argument: Span2, reader: ValueReader) -> tuple[bool, bool]:
        """``(written, read)`` of the element that an argument is."""
        number = call.arguments.index(argument)
        if call.receiver is None and call.simple not in reader.body.locals and _BY_VALUE.fullmatch(call.simple):
            return False, True
        candidate = self._callee(call, reader)
        if candidate is None or number >= len(candidate.function.parameters):
            return False, False
        parameter = candidate.function.parameters[number]
        kind = parameter.type.strip()
        if "&" not in kind:
            return False, "*" not in kind and "[" not in kind
        if re.match(r"const\b", kind) or kind.endswith("const &") or " const&" in kind:
            return False, True
        text = self._unit.bodies.of(candidate, reader.body.root, device=True).expanded.text
        word = re.escape(parameter.name)
        written = re.search(_ASSIGNED.format(word), text) is not None
        # Anything but the left side of a plain assignment asks for the value, or may.
        rest = re.sub(rf"\b{word}\s*=(?!=)", "", text)
        return written, written and re.search(rf"\b{word}\b", rest) is not None

    def _callee(self, call: CallFact, reader: ValueReader) -> Candidate | None:
        body = reader.body
        if call.receiver is not None:
            return None
        if call.simple not in body.locals:
            return self._calls.candidate(call.name, len(call.arguments), reader)
        kind = type_text(body, call.simple, call.start)
        context = Context(body.path, body.root, body.context.scope, body.context.usings, body.context.aliases)
        owner = self._types.class_name(kind, context) if kind else None
        if owner is None:
            return None
        found = self._unit.resolver.method("operator()", owner, context, len(call.arguments))
        return found.candidates[0] if len(found.candidates) == 1 and not found.loose else None
