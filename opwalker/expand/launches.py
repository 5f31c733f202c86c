"""Launch sites read: which kernel, with which grid, block, shared memory and stream, through which API and macros."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from opwalker.expand.arity import accepts
from opwalker.expand.bodies import Body
from opwalker.expand.expanded import Expansion
from opwalker.expand.frames import Frame
from opwalker.expand.kernels import KernelFinder
from opwalker.expand.terminals import CONFIG_FIELDS, LAUNCH_CALLS, terminal_kind
from opwalker.facts.cpp_body import argument_spans
from opwalker.facts.cpp_brackets import match_angle, split_commas
from opwalker.model.body import CallFact, LaunchFact, Span2
from opwalker.model.reach import KernelRef, LaunchSite
from opwalker.model.walk import Gap, PathStep, Span, Terminal
from opwalker.notation.regex import Regex

#: What may stand before a kernel's name in an expression: parentheses, C casts, the address operator.
_AROUND = Regex(r"(?:[\s(&*]|\(\s*(?:const\s+)?void\s*(?:const\s*)?\*\s*\))*")
_CAST = Regex(r"(?:(?:static|reinterpret|const|dynamic)_cast|std::(?:forward|move))\s*<")
_QUALIFIED = Regex(r"(?:::)?\w+(?:\s*::\s*\w+)*")
_EXTENT = Regex(r"\bdim3\b|\bauto\b|Dim3|dim3_t")


class _LaunchText(NamedTuple):
    """What a body's text says of a launch: the offset of the kernel's name, the place of the text and the expansions
    that it comes by, the line that it takes effect on (``use`` where a macro brings it), the template arguments as
    written and as given, and the conditions around it."""

    anchor: int
    place: tuple[str, int]
    chain: tuple[Expansion, ...]
    line: int
    use: tuple[str, int] | None
    spelt: tuple[str, ...]
    given: tuple[str, ...]
    under: tuple[tuple[str, int], ...]


class LaunchReader:
    """Turns launch facts of a body into launch sites."""

    def __init__(self, kernels: KernelFinder) -> None:
        self._kernels = kernels

    def chevron(self, frame: Frame, body: Body, fact: LaunchFact) -> LaunchSite | Terminal | Gap | None:
        """``kernel<<<grid, block, shared, stream>>>(arguments)``."""
        # A body is read in a frame for each of its instances: what its text says is the same in all of them.
        parts = body.kept.setdefault("extents", {}).get(fact.configuration)
        if parts is None:
            parts = [self._extent(body, span, number) for number, span in enumerate(fact.configuration)]
            parts += [None] * (4 - len(parts))
            body.kept["extents"][fact.configuration] = parts
        return self._site(
            frame,
            body,
            fact.kernel,
            "triple_chevron",
            (parts[0], parts[1], parts[2] or "0", parts[3] or "0"),
            fact.arguments,
            fact.block,
            tuple((span,) for span in fact.configuration[:4]),
            body.expanded.full.find("<<<", fact.kernel[1]),
        )

    def runtime(self, frame: Frame, body: Body, call: CallFact) -> LaunchSite | Terminal | Gap | None:
        """A launch through the runtime or driver API."""
        style, position, form = LAUNCH_CALLS[call.simple]
        if len(call.arguments) <= position:
            return None
        kernel = call.arguments[position]
        rest = call.arguments
        passed: tuple[Span2, ...] | None = None
        grid = block = shared = stream = None
        extents: tuple[tuple[Span2, ...], ...] = ()
        if form == "kernel-grid-block-args-shared-stream" and len(rest) >= 3:
            grid, block = self._extent(body, rest[1], 0), self._extent(body, rest[2], 1)
            shared = body.written(rest[4]) if len(rest) > 4 else "0"
            stream = body.written(rest[5]) if len(rest) > 5 else "0"
            extents = (rest[1:2], rest[2:3], rest[4:5], rest[5:6])
        elif form == "kernel-grid-block-shared-stream" and len(rest) >= 5:
            grid, block = self._extent(body, rest[1], 0), self._extent(body, rest[2], 1)
            shared, stream = body.written(rest[3]), body.written(rest[4])
            passed = rest[5:]
            extents = (rest[1:2], rest[2:3], rest[3:4], rest[4:5])
        elif form == "driver" and len(rest) >= 9:
            grid = ", ".join(body.written(s) for s in rest[1:4])
            block = ", ".join(body.written(s) for s in rest[4:7])
            shared, stream = body.written(rest[7]), body.written(rest[8])
            extents = (rest[1:4], rest[4:7], rest[7:8], rest[8:9])
        elif form in CONFIG_FIELDS:
            known = body.kept.setdefault("configurations", {})
            if (rest[0], form) not in known:
                known[rest[0], form] = self._config(body, rest[0], CONFIG_FIELDS[form])
            (grid, block, shared, stream), extents = known[rest[0], form]
            if call.simple in ("cudaLaunchKernelEx", "launch_kernel_on_cluster"):
                passed = rest[2:]
                if any("..." in body.text(s) for s in passed):
                    passed = None
        return self._site(frame, body, kernel, style, (grid, block, shared, stream), passed, call.block, extents)

    def named(self, frame: Frame, body: Body, span: Span2) -> LaunchSite | Terminal | Gap | None:
        """A kernel that is named, as if it were launched with nothing known."""
        return self._site(frame, body, span, "named", (None, None, None, None), None, -1)

    def _extent(self, body: Body, span: Span2, position: int) -> str:
        """A grid or block as a reader wants it: the declaration of a ``dim3`` variable, otherwise the expression."""
        text = body.text(span)
        written = body.written(span)
        if position > 1 or not re.fullmatch(r"\w+", text):
            return written
        for local in reversed(body.locals_at(text, span[0])):
            if _EXTENT.search(local.type) and (local.value is not None or text in body.assigns):
                if local.start < span[0] or local.value is None:
                    declared = f"{local.type} {text}"
                    value = body.written(local.value) if local.value else ""
                    if value and value[0] not in "({":
                        return f"{declared} = {value}"
                    return f"{declared}{value}" if value else declared
        return written

    def _config(
        self, body: Body, span: Span2, fields: Sequence[str]
    ) -> tuple[tuple[str | None, ...], tuple[tuple[Span2, ...], ...]]:
        """What a launch configuration object says, from its assignments or its initialiser: grid, block, shared memory
        and stream, and where each stands. ``fields`` are its own, in order."""
        name = body.text(span).lstrip("&* ")
        out: dict[str, str] = {}
        spans_of: dict[str, tuple[Span2, ...]] = {}
        for assign in body.assigns_at(name, span[0]):
            match = re.fullmatch(rf"{re.escape(name)}\s*(?:\.|->)\s*(\w+)(?:\.(\w))?", assign.target)
            if match:
                field = match.group(1)
                value = body.written(assign.value)
                spans_of[field] = (*spans_of.get(field, ()), assign.value) if match.group(2) else (assign.value,)
                if match.group(2):
                    value = (
                        f"{out[field]}, {match.group(2)} = {value}" if field in out else f"{match.group(2)} = {value}"
                    )
                out[field] = value
        for local in body.locals_at(name, span[0]):
            if local.value is None:
                continue
            spans = argument_spans(body.expanded.full, local.value)
            for number, piece in enumerate(spans):
                text = body.text(piece)
                named = re.match(r"\.(\w+)\s*=\s*(.*)", text, re.DOTALL)
                if named:
                    out.setdefault(named.group(1), named.group(2))
                    begin = piece[0] + body.expanded.full[piece[0] : piece[1]].index("=") + 1
                    spans_of.setdefault(named.group(1), ((begin, piece[1]),))
                elif number < len(fields) and text:
                    field = fields[number]
                    out.setdefault(field, body.written(piece))
                    spans_of.setdefault(field, (piece,))
        if not out:
            return (None, None, None, None), ()
        grid, block, shared, stream = (*fields[:2], *fields[-2:])
        if shared not in out:
            shared = "sharedMemBytes"
        if stream not in out:
            stream = "hStream"
        texts = (out.get(grid), out.get(block), out.get(shared, "0"), out.get(stream, "0"))
        return texts, tuple(spans_of.get(field, ()) for field in (grid, block, shared, stream))

    def _site(
        self,
        frame: Frame,
        body: Body,
        kernel: Span2,
        style: str,
        configuration: tuple[str | None, str | None, str | None, str | None],
        passed: tuple[Span2, ...] | None,
        block: int,
        extents: tuple[tuple[Span2, ...], ...] = (),
        operator: int = -1,
    ) -> LaunchSite | Terminal | Gap | None:
        found = self._kernels.kernels(body, kernel, frame, passed)
        if not found and not self._kernels.is_compiled(body, frame, kernel[0]):
            return None
        found = _by_arity(found, len(passed) if passed is not None else None)
        key = (kernel, block, operator)
        text = body.kept.setdefault("launch texts", {}).get(key)
        if text is None:
            text = body.kept["launch texts"][key] = self._text(body, kernel, block, operator)
        anchor, (path, line), chain, use = text.anchor, text.place, text.chain, text.use
        steps = (*frame.steps, PathStep(frame.display_name, body.path, text.line))
        expression = body.written(kernel)
        if not found:
            name = re.sub(r"<.*", "", body.text(kernel), flags=re.DOTALL).lstrip("&( ").strip()
            kind = terminal_kind(name)
            simple = name.split("::")[-1]
            held = (
                simple in body.locals
                or simple in frame.parameter_names
                or any(simple == n for f in body.enclosing_lambdas(kernel[0]) for _, n in f.parameters)
            )
            if kind == "library" or (
                not (held or self._kernels.is_known(simple)) and re.fullmatch(r"(?:::)?\w+(?:::\w+)+", name)
            ):
                # Defined outside the tree: a library's kernel, brought in by its headers.
                return Terminal("library", body.text(kernel)[:117], path, line, steps)
            return Gap(
                "launch",
                Span(path, line, line),
                f"the kernel in `{expression[:80]}` could not be followed to a definition in the source",
            )
        if chain:
            style = f"macro:{style}"
        distinct = {(k.path, k.function.offset) for k in found}
        return LaunchSite(
            found,
            expression,
            (path, line),
            style,
            *configuration,
            steps,
            "matched" if len(distinct) == 1 and all(k.certain for k in found) else "possible",
            use,
            tuple(e.name for e in chain),
            text.given or found[0].template_arguments,
            text.under,
            extents,
            anchor,
            passed or (),
            spelt=text.spelt,
        )

    def _text(self, body: Body, kernel: Span2, block: int, operator: int) -> _LaunchText:
        """What the text says of a launch of ``kernel``."""
        anchor = _name_offset(body, kernel)
        place = body.origin(anchor)
        chain = body.expanded.chain(body.expanded.origin(anchor)[2])
        if not chain and operator >= 0:
            # The kernel's name was handed to a macro that launches it: the launch stands there.
            chain = body.expanded.chain(body.expanded.origin(operator)[2])
            place = body.origin(operator) if chain else place
        line = body.use_line(anchor)
        spelt = self._written_arguments(body, anchor)
        given = _given(body, anchor, spelt)
        use = (body.path, line) if chain else None
        return _LaunchText(anchor, place, chain, line, use, spelt, given, _under(body, block))

    @staticmethod
    def _written_arguments(body: Body, anchor: int) -> tuple[str, ...]:
        """The template arguments that stand behind the kernel's name in the source: a macro's own parameters in its
        body."""
        path, position, _ = body.expanded.origin(anchor)
        code = body.code(path)
        name = re.compile(r"\w+\s*").match(code, position)
        if name is None or name.end() >= len(code) or code[name.end()] != "<" or code.startswith("<<<", name.end()):
            return ()
        close = match_angle(code, name.end())
        if close < 0:
            return ()
        return tuple(
            " ".join(code[a:b].replace("\\\n", " ").split()) for a, b in split_commas(code, name.end() + 1, close - 1)
        )


def _given(body: Body, anchor: int, spelt: tuple[str, ...]) -> tuple[str, ...]:
    """Template arguments that stand in a macro's body, with what its uses give for its parameters."""
    path, position, number = body.expanded.origin(anchor)
    out = list(spelt)
    for entry in reversed(body.expanded.chain(number)):
        event = entry.definition.event
        inside = event.body_offset <= position < event.body_offset + len(event.body or "")
        if entry.definition.path != path or not inside:
            break
        given = dict(zip(event.parameters or (), entry.arguments or (), strict=False))
        out = [t if "#" in t else re.sub(r"\b[A-Za-z_]\w*\b", lambda m, by=given: by.get(m[0], m[0]), t) for t in out]
        # The use itself may stand in the body of another macro, with that one's parameters.
        parent = body.expanded.expansions[entry.parent - 1] if entry.parent else None
        path, position = (parent.definition.path if parent else path), entry.use_pos
    return tuple(" ".join(text.split()) for text in out)


def _under(body: Body, number: int) -> tuple[tuple[str, int], ...]:
    """The conditions around a place that the function itself writes: those that a macro brings are its dispatch's."""
    out: list[tuple[str, int]] = []
    while number >= 0:
        block = body.facts.blocks[number]
        number = block.parent
        if block.condition is None or block.kind not in ("if", "else", "if constexpr", "else constexpr", "case"):
            continue
        if body.expanded.origin(block.condition[0])[2] or body.expanded.origin(block.start)[2]:
            continue
        text = body.written(block.condition)
        shown = f"case {text}" if block.kind == "case" else f"!({text})" if block.kind.startswith("else") else text
        out.append((shown, body.use_line(block.condition[0])))
    return tuple(reversed(out))


def _by_arity(found: tuple[KernelRef, ...], count: int | None) -> tuple[KernelRef, ...]:
    """Overloads of one kernel that take the number of arguments passed; all of them when none does."""
    if count is None or len(found) < 2:
        return found
    fitting = tuple(k for k in found if accepts(k.function, count))
    return fitting or found


def _name_offset(body: Body, kernel: Span2) -> int:
    """The offset of the kernel's own name within its expression: the line that a reader is sent to."""
    full = body.expanded.full
    at, end = kernel
    while True:
        at = _AROUND.match(full, at, end).end()
        cast = _CAST.match(full, at, end)
        if cast is None:
            break
        close = match_angle(full[:end], cast.end() - 1)
        if close < 0:
            break
        at = close
    name = _QUALIFIED.match(full, at, end)
    if name is None:
        return kernel[0]
    last = re.search(r"\w+\Z", name.group())
    return name.start() + (last.start() if last else 0)
