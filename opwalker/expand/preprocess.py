"""A span of a file as a compiler reads it: branches chosen, macros expanded, every piece with its origin.

In: a file's span, a macro table, a translation unit. Out: ``Expanded``: one text that parses as statements, and a map
from its offsets back to the places where the text was written and to the macro uses that brought it there.
"""

from __future__ import annotations

import re

from opwalker.expand.expanded import Expanded, Expansion
from opwalker.expand.files import Files, active_spans, included_within
from opwalker.expand.macro_arguments import given_lambda, take_arguments
from opwalker.expand.macros import KNOWN, MacroChoice, MacroTable
from opwalker.expand.tokens import NEW, NOTHING, Token, spell, tokenize
from opwalker.model.cpp import MacroEvent

#: Tokens that one span may expand to before expansion is given up: beyond any function seen, far below memory.
MAX_TOKENS = 400_000
#: Nested expansions; the standard's hidden sets already stop self-reference.
MAX_DEPTH = 200

#: Macros that stay as they are written: their call is the fact that a reader wants.
KEPT_PREFIXES = (
    "TORCH_CHECK",
    "STD_TORCH_CHECK",
    "TORCH_INTERNAL_ASSERT",
    "TVM_FFI_ICHECK",
    "TVM_FFI_CHECK",
    "PYBIND11_",
)


def _wraps(choice: MacroChoice) -> bool:
    """Whether a macro is a project's own around one that is kept, of whose name its own begins: around
    ``TORCH_CHECK``, as ``TORCH_CHECK_EVEN(x)``."""
    name, body = choice.event.name, choice.event.body or ""
    kept = (one for one in KEPT_PREFIXES if name.startswith(one))
    return choice.path != KNOWN and any(re.search(rf"\b{one}\s*\(", body) for one in kept)


class Preprocessor:
    """Expands spans of files in one translation unit. With ``folds``, a macro that is given a lambda stays a call."""

    def __init__(self, files: Files, macros: MacroTable, folds: bool = False) -> None:
        self._files = files
        self._macros = macros
        self.folds = folds
        self._bodies: dict[tuple[str, int], list[Token]] = {}

    def span(self, path: str, start: int, end: int, root: str) -> Expanded:
        """Expand ``[start, end)`` of ``path``, read in the translation unit that begins at ``root``. Where that is too
        much, a macro that is given a lambda stays a call."""
        try:
            return self._span(path, start, end, root, self.folds, stops=not self.folds)
        except _TooMuch:
            # Branches of macros within branches of macros may be millions: what they are given is read once then.
            return self._span(path, start, end, root, folds=True, stops=False)

    def _span(self, path: str, start: int, end: int, root: str, folds: bool, stops: bool) -> Expanded:
        view = self._files.part(path, start, end)
        run = _Run(self, self._macros, path, root, folds, stops)

        def truth(terms: tuple[str, ...], at: int) -> bool | None:
            return self._macros.truth(path, terms, at, root)

        spans = active_spans(view, start, end, truth)
        includes = included_within(self._files, view, start, end, truth)
        tokens: list[Token] = []
        code = view.blanked.code
        for a, b in spans:
            while includes and includes[0][0] < a:
                tokens += self._included(run, includes.pop(0), root)
            piece = tokenize(code[a:b], a)
            if piece and tokens and not piece[0].space:
                piece[0] = piece[0]._replace(space=True)
            tokens += piece
        for include in includes:
            tokens += self._included(run, include, root)
        out = run.expand(tokens, 0)
        return Expanded(path, out, run.expansions, run.problems, folds and not self.folds)

    def _included(self, run: _Run, include: tuple[int, int, str], root: str) -> list[Token]:
        """The tokens of a file that is included within a body. They come by the include as others come by a macro."""
        offset, end, target = include
        view = self._files.view(target)
        code = view.blanked.code
        event = MacroEvent(f'#include "{target}"', None, None, "", 0, 0, 1, 1)
        choice = MacroChoice(target, event, "proved")
        number = len(run.expansions) + 1
        run.expansions.append(Expansion(number, event.name, offset, 0, choice, None, end))
        spans = active_spans(view, 0, len(code), lambda terms, at: self._macros.truth(target, terms, at, root))
        out = [token for a, b in spans for token in tokenize(code[a:b], a, number)]
        return [out[0]._replace(space=True), *out[1:]] if out else out

    def text(self, path: str, text: str, offset: int) -> str:
        """A text that stands at ``offset`` of ``path``, its macros expanded."""
        found = tokenize(text, offset)
        if not any(token.word and self._macros.is_macro_name(token.text) for token in found):
            return text
        return self.tokens(path, [token._replace(pos=offset) for token in found], path).full

    def tokens(self, path: str, tokens: list[Token], root: str) -> Expanded:
        """Expand tokens that stand in ``path``."""
        run = _Run(self, self._macros, path, root, self.folds)
        out = run.expand(tokens, 0)
        return Expanded(path, out, run.expansions, run.problems)

    def body(self, choice: MacroChoice) -> list[Token]:
        """The tokens of a macro's body, cut once."""
        key = (choice.path, choice.event.body_offset if choice.path != KNOWN else hash(choice.event.name))
        found = self._bodies.get(key)
        if found is None:
            found = self._bodies[key] = tokenize(choice.event.body or "", choice.event.body_offset)
        return found


class _TooMuch(Exception):
    """A span makes more than ``MAX_TOKENS``."""


class _Run:
    """One expansion of one token list. ``folds`` is as for the preprocessor; one that ``stops`` raises where it makes
    too much, others go on without."""

    def __init__(
        self,
        preprocessor: Preprocessor,
        macros: MacroTable,
        path: str,
        root: str,
        folds: bool,
        stops: bool = False,
    ) -> None:
        self._preprocessor = preprocessor
        self._macros = macros
        self._path = path
        self._root = root
        self._folds = folds
        self._stops = stops
        self.expansions: list[Expansion] = []
        self.problems: list[str] = []
        self._made = 0
        #: Words that are no macros.
        self._plain: set[str] = set()

    def _position(self, token: Token) -> int:
        """Where in the span's own file a token takes effect."""
        return token.pos if token.expansion == 0 else self.expansions[token.expansion - 1].outermost_pos

    def expand(self, tokens: list[Token], depth: int) -> list[Token]:
        """Fully expand a token list (rescanning included)."""
        out: list[Token] = []
        pending = list(reversed(tokens))
        macros = self._macros
        while pending:
            token = pending.pop()
            if not token.word or token.text in self._plain or token.text in token.hidden:
                out.append(token)
                continue
            if not macros.is_macro_name(token.text) or token.text in KEPT_PREFIXES:
                self._plain.add(token.text)
                out.append(token)
                continue
            choice = macros.lookup(token.text, self._path, self._position(token), self._root)
            if choice is None or depth > MAX_DEPTH or (token.text.startswith(KEPT_PREFIXES) and not _wraps(choice)):
                out.append(token)
                continue
            event = choice.event
            arguments: list[list[Token]] | None = None
            closing = token
            commas: list[Token] = []
            if event.parameters is not None or event.variadic is not None:
                if not pending or pending[-1].text != "(" or (self._folds and given_lambda(pending)):
                    out.append(token)
                    continue
                taken = take_arguments(pending)
                if taken is None:
                    out.append(token)
                    continue
                arguments, commas, closing = taken
            if self._made > MAX_TOKENS:
                if self._stops:
                    raise _TooMuch
                if not self.problems or self.problems[-1] != "too-large":
                    self.problems.append("too-large")
                out.append(token)
                continue
            made = self._replace(token, closing, choice, arguments, commas, depth)
            self._made += len(made)
            pending.extend(reversed(made))
        return out

    def _replace(
        self,
        name: Token,
        closing: Token,
        choice: MacroChoice,
        arguments: list[list[Token]] | None,
        commas: list[Token],
        depth: int,
    ) -> list[Token]:
        event = choice.event
        if arguments is None:
            hidden = name.hidden | {event.name}
        else:
            hidden = (name.hidden & closing.hidden) | {event.name}
        spelled = tuple(spell(a) for a in arguments) if arguments is not None else None
        entry = Expansion(
            len(self.expansions) + 1,
            event.name,
            name.pos,
            name.expansion,
            choice,
            spelled,
            self._position(name),
            closing.expansion,
        )
        self.expansions.append(entry)
        body = self._preprocessor.body(choice)
        bound = _bind(event, arguments, commas)
        out = self._substitute(body, bound, _Place(entry.id, name.via), event, depth)
        result: list[Token] = []
        # Nearly all tokens share a few sets: each union is made once.
        unions: dict[frozenset[str], frozenset[str]] = {NOTHING: hidden}
        space = name.space
        for token in out:
            text, own, pos, expansion, word, before, via = token
            merged = unions.get(before)
            if merged is None:
                merged = unions[before] = before | hidden
            result.append(NEW(Token, (text, own if result else space, pos, expansion, word, merged, via)))
        return result

    def _substitute(
        self, body: list[Token], bound: dict[str, list[Token]], place: _Place, event, depth: int
    ) -> list[Token]:
        via = place.via
        expansion = via[0]
        out: list[Token] = []
        expanded: dict[str, list[Token]] = {}
        number = 0
        count = len(body)
        while number < count:
            token = body[number]
            following = body[number + 1].text if number + 1 < count else ""
            if (
                token.text == "#"
                and event.parameters is not None
                and number + 1 < count
                and body[number + 1].text in bound
            ):
                text = '"' + spell(bound[body[number + 1].text]).replace("\\", "\\\\").replace('"', '\\"') + '"'
                out.append(Token(text, token.space, token.pos, expansion, False, NOTHING, via))
                number += 2
                continue
            if token.text == "##" and out:
                number += 1
                if number < count:
                    self._paste(out, body[number], bound, place)
                    number += 1
                continue
            if token.text == "__VA_OPT__" and following == "(":
                close = _matching(body, number + 1)
                inner = body[number + 2 : close]
                # It counts what the arguments expand to: they may vanish.
                if event.variadic and self.expand(bound.get(event.variadic) or [], depth + 1):
                    out += self._substitute(inner, bound, place, event, depth)
                number = close + 1
                continue
            if token.word and token.text in bound:
                if following == "##":
                    piece = place.put(bound[token.text])
                    if not piece:
                        piece = [Token("", token.space, token.pos, expansion, False, NOTHING, via)]
                else:
                    if token.text not in expanded:
                        expanded[token.text] = self.expand(bound[token.text], depth + 1)
                    piece = place.put(expanded[token.text])
                if piece:
                    piece[0] = piece[0]._replace(space=token.space)
                out += piece
                if self._stops and len(out) > MAX_TOKENS:
                    raise _TooMuch
                number += 1
                continue
            out.append(NEW(Token, (token.text, token.space, token.pos, expansion, token.word, NOTHING, via)))
            number += 1
        return [t for t in out if t.text]

    def _paste(self, out: list[Token], right: Token, bound: dict[str, list[Token]], place: _Place) -> None:
        """``left ## right``. GNU's ``, ## __VA_ARGS__`` drops the comma when nothing follows."""
        pieces = (
            place.put(bound[right.text])
            if right.word and right.text in bound
            else [Token(right.text, False, right.pos, place.via[0], right.word, NOTHING, place.via)]
        )
        left = out.pop()
        if not pieces:
            if left.text != ",":
                out.append(left)
            return
        if left.text == ",":
            out.append(left)
            out += pieces
            return
        joined = tokenize(left.text + pieces[0].text)
        out += [
            Token(
                t.text,
                left.space if i == 0 else t.space,
                left.pos if left.text else pieces[0].pos,
                left.expansion or place.via[0],
                t.word,
                NOTHING,
                place.via,
            )
            for i, t in enumerate(joined)
        ]
        out += pieces[1:]


def _bind(event, arguments: list[list[Token]] | None, commas: list[Token]) -> dict[str, list[Token]]:
    """The tokens that each parameter stands for."""
    bound: dict[str, list[Token]] = {}
    if arguments is None:
        return bound
    parameters = event.parameters or ()
    if len(arguments) == 1 and not arguments[0] and not parameters:
        arguments = []
    for number, parameter in enumerate(parameters):
        bound[parameter] = arguments[number] if number < len(arguments) else []
    if event.variadic:
        rest: list[Token] = []
        for number in range(len(parameters), len(arguments)):
            if number > len(parameters):
                rest.append(commas[number - 1])
            rest += arguments[number]
        bound[event.variadic] = rest
    return bound


class _Place:
    """Where one use of a macro puts tokens: ``base`` is the place of the use itself, ``via`` that of its results."""

    __slots__ = ("base", "via", "_outside")

    def __init__(self, number: int, base: tuple | None) -> None:
        self.base = base
        self.via = (number, base)
        self._outside: set[int] | None = None

    def put(self, tokens: list[Token]) -> list[Token]:
        """An argument's tokens where a parameter stands; each time they are made anew, in places of their own."""
        base, via = self.base, self.via
        made: dict[int, tuple] = {}
        known = made.get
        return [
            NEW(
                Token,
                (
                    text,
                    space,
                    pos,
                    expansion,
                    word,
                    hidden,
                    via if place is base else known(id(place)) or self._in(place, made),
                ),
            )
            for text, space, pos, expansion, word, hidden, place in tokens
        ]

    def _in(self, place: tuple | None, made: dict[int, tuple]) -> tuple:
        if self._outside is None:
            self._outside = set()
            outer = self.base
            while outer is not None:
                self._outside.add(id(outer))
                outer = outer[1]
        found = made.get(id(place))
        if found is None:
            inside = place is not None and id(place) not in self._outside
            found = made[id(place)] = (place[0], self._in(place[1], made)) if inside else self.via
        return found


def _matching(tokens: list[Token], opened: int) -> int:
    depth = 0
    for number in range(opened, len(tokens)):
        if tokens[number].text == "(":
            depth += 1
        elif tokens[number].text == ")":
            depth -= 1
            if depth == 0:
                return number
    return len(tokens) - 1
