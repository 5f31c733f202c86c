"""Which definition of a macro holds at a place.

The last one before the place in translation-unit order: the same file above it (``#undef`` and conditions respected),
then the headers it includes, then the file that the walk entered by, then what is known of library macros whose headers
are not in the tree, then a definition that is the only one in the tree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set
from functools import cached_property

from msgspec import Struct

from opwalker.expand.files import Configuration, holds
from opwalker.expand.read_once import Included, ReadOnce
from opwalker.link.index import Index
from opwalker.model.cpp import MacroEvent
from opwalker.notation.regex import Regex

#: Pseudo-path of the bundled knowledge of library macros.
KNOWN = "<known macros>"

#: No file was included before.
_NONE: Included = frozenset()

#: The end of any file: everything in it stands before.
_END = 1 << 60

#: Names that compilers, CUDA, torch and the libraries around them set in headers of their own.
_OUTSIDE = Regex(
    r"_|(?:CUTLASS|CUTE|CUDA|CUDART|CUDNN|CUBLAS|CUB|THRUST|NCCL|NVSHMEM|TORCH|AT|C10|PYBIND11|PY|Py|HIP|ROCM|CK|DNNL|"
    r"MKL|FLASHINFER|TVM|DMLC|EIGEN|BOOST|GTEST|FMT|OPENMP|ISA|SIMD|ARM|CPU_CAPABILITY|LITTLE|BIG|BYTE|linux|WIN)"
)

#: Libraries whose headers a tree may hold itself: then they set nothing that is not in the tree. A tree that defines so
#: many macros of a family holds its library.
_VENDORED = Regex(r"(?:CUTLASS|CUTE|CK|CUB|THRUST|FLASHINFER|TVM|DMLC|EIGEN|FMT|PYBIND11|BOOST)_")
_FAMILY = 20

#: Macros that nvcc sets in its pass for one architecture; ``__CUDA_ARCH_LIST__`` is the same in all.
_OF_A_PASS = Regex(r"__CUDA_ARCH_(?!LIST__)")


class MacroChoice(Struct, frozen=True):
    """A definition and how it was found. ``others`` counts further definitions that could hold as well; where that
    is open, ``alternatives`` are those, ``(path, definition)``."""

    path: str
    event: MacroEvent
    certainty: str
    others: int = 0
    alternatives: tuple[tuple[str, MacroEvent], ...] = ()


class MacroTable:
    """Finds macro definitions of a tree for one configuration."""

    def __init__(self, index: Index, configuration: Configuration, known: dict[str, MacroEvent] | None = None) -> None:
        self._index = index
        self.configuration = configuration
        self._known = known or {}
        self._once = ReadOnce(index, self._reached)
        self._events: dict[str, dict[str, list[tuple[int, MacroEvent]]]] = {}
        self._whole: dict[tuple, list[tuple[str, MacroEvent, bool | None]]] = {}
        self._are_names: dict[str, bool] = {}
        self._truths: dict[tuple, bool | None] = {}
        #: Macros that are set for some files and not for others.
        self._of_units = frozenset(name for macros in configuration.units.values() for name in macros)
        self._fixed: dict[tuple[str, ...], bool] = {}
        #: Names that an `#undef` ends at a place: true where it is certain to be read.
        self._undone: dict[tuple[str, str, int, str], bool] = {}
        self._limits: dict[tuple[str, str], int] = {}
        self._settings: dict[str, bool] = {}
        self._busy: set[tuple[str, str]] = set()
        self._reaching: dict[tuple[str, str], bool] = {}
        self._definer_cache: dict[str, frozenset[str]] = {}
        self._choices: dict[tuple[str, str, int, str], MacroChoice | None] = {}
        #: What has been asked about: names, and conditions. Whoever wants to know what a reading rests on empties both.
        self.asked: set[str] = set()
        self.judged: set[tuple[str, ...]] = set()

    def is_macro_name(self, name: str) -> bool:
        """A quick test: whether any definition of the name is known."""
        self.asked.add(name)
        found = self._are_names.get(name)
        if found is None:
            found = self._are_names[name] = name in self._index.names_of_kind("macro") or name in self._known
        return found

    def truth(self, path: str, terms: tuple[str, ...], offset: int, root: str) -> bool | None:
        """Whether a condition holds at a place: what the file defined before it counts before what the build says."""
        if not terms:
            return True
        self.judged.add(terms)
        passes = self.configuration.passes
        unit = self.configuration.units.get(root, {})
        number = 0
        differs = False

        def state(name: str) -> tuple[bool | None, str | None]:
            if passes and _OF_A_PASS.match(name):
                nonlocal differs
                differs = True
                return self.configuration.of_pass(name, number)
            if name in self._index.names_of_kind("undef"):
                choice = self.lookup(name, path, offset, root)
                undone = self._undone.get((name, path, offset, root)) if choice is None else None
                if undone is not None:
                    return (False, None) if undone else (None, None)
            if name in unit:
                return True, unit[name]
            known, value = self.configuration.state(name)
            if known is not None:
                return known, value
            if not self.is_macro_name(name):
                # What nobody sets is unset, unless a header that is not in the source or an unread build may set it.
                return (False, None) if self.configuration.closed and not self._may_be_set(name) else (None, None)
            choice = self.lookup(name, path, offset, root)
            if choice is not None and choice.certainty == "proved":
                return True, (choice.event.body or "").strip() or None
            if choice is None and (name, path) not in self._busy and self._is_unset(name, root):
                return False, None
            return (False, None) if self._undone.get((name, path, offset, root)) else (None, None)

        # What no file of the tree defines is the same everywhere; the rest depends on the place and on the unit.
        key = (terms,) if self._is_fixed(terms) else (terms, path, offset, root)
        if key not in self._truths:
            opened = self._opened(path, terms, offset)
            if opened is not None:
                rest = tuple(term for term in terms if term != opened[0])
                found = self.truth(path, opened[:1], opened[1], root), self.truth(path, rest, offset, root)
                return False if False in found else None if None in found else True
            value = holds(terms, state)
            while differs and value is not None and number + 1 < len(passes):
                # What holds in some passes only is read both ways.
                number += 1
                value = value if holds(terms, state) is value else None
            if self._busy:
                # Within a look-up some names are taken for unknown, to end a circle.
                return value
            self._truths[key] = value
        return self._truths[key]

    def _opened(self, path: str, terms: tuple[str, ...], offset: int) -> tuple[str, int] | None:
        """A condition that the branch around a place itself ends, by defining what has to be undefined for it to be
        read, and where the branch begins: there the condition holds or not."""
        for term in terms:
            name = term[len("!defined(") : -1]
            if not term.startswith("!defined(") or not self.is_macro_name(name):
                continue
            facts = self._index.stored(path)
            for at, event in self._file_events(path).get(name, ()):
                if event.body is None or at >= offset:
                    continue
                for start, end, condition in facts.branches:
                    if start <= at and offset < end and facts.conditions[condition][-1:] == (term,):
                        return term, start
        return None

    def _is_unset(self, name: str, root: str) -> bool:
        """Whether a macro of which a unit reads no definition is unset in it: all files that define it are the unit's,
        in branches that it does not read, and nothing outside of the tree sets it."""
        if not self.configuration.closed or self._may_be_set(name) or name in self._known:
            return False
        closure = self._index.closure(root)
        return all(path in closure for path in self._definers(name))

    def _may_be_set(self, name: str) -> bool:
        """Whether a flag or a header that is not in the tree may set a macro that no file of the tree sets."""
        return name in self.configuration.flagged or self._is_outside(name)

    def _is_outside(self, name: str) -> bool:
        """Whether a header that is not in the tree may set a macro that no file of the tree sets."""
        if not _OUTSIDE.match(name):
            return False
        family = _VENDORED.match(name)
        if family is None:
            return True
        return family.group() not in self.families

    @cached_property
    def families(self) -> frozenset[str]:
        """How the macros begin of the libraries that the tree holds itself."""
        found = (_VENDORED.match(name) for name in self._index.names_of_kind("macro"))
        held = Counter(one.group() for one in found if one is not None)
        return frozenset(family for family, number in held.items() if number >= _FAMILY)

    def _is_fixed(self, terms: tuple[str, ...]) -> bool:
        found = self._fixed.get(terms)
        if found is None:
            words = {word for term in terms for word in _words(term)}
            undone = self._index.names_of_kind("undef")
            found = self._fixed[terms] = not any(
                self.is_macro_name(word) or word in undone or word in self._of_units for word in words
            )
        return found

    def _file_events(self, path: str) -> dict[str, list[tuple[int, MacroEvent]]]:
        found = self._events.get(path)
        if found is None:
            found = {}
            facts = self._index.stored(path)
            for event in facts.macros if facts else ():
                found.setdefault(event.name, []).append((event.offset, event))
            self._events[path] = found
        return found

    def lookup(self, name: str, path: str, offset: int, root: str) -> MacroChoice | None:
        """The definition of ``name`` that holds at ``offset`` of ``path``, in a translation unit that begins at
        ``root``."""
        self.asked.add(name)
        key = (name, path, offset, root)
        if key in self._choices:
            return self._choices[key]
        if (name, path) in self._busy:
            return None
        self._busy.add((name, path))
        try:
            choice = self._lookup(name, path, offset, root)
        finally:
            self._busy.discard((name, path))
        self._choices[key] = choice
        return choice

    def _lookup(self, name: str, path: str, offset: int, root: str) -> MacroChoice | None:
        done = self._included(name, root, self._limit(root, path), root) if root != path and self._sets(root) else _NONE
        found = self._before(name, path, offset, {path}, root, done=done)
        if root != path and all(self._is_fallback(p, event) for p, event, _ in found):
            apart = path if name in self._file_events(path) else ""
            found = [*found, *self._before(name, root, self._limit(root, path), {root}, root, apart)]
        # `#ifndef NAME / #define NAME` gives way to whatever defined the name before: the first of them counts, and
        # last. Behind an `#undef` it does not.
        number = next((n for n, f in enumerate(found) if not self._is_fallback(f[0], f[1])), len(found))
        if number and (number == len(found) or (found[number][1].body is None and found[number][2] is True)):
            found = [(p, e, True) for p, e, _ in reversed(found[:number])]
        else:
            found = [f for f in found if not self._is_fallback(f[0], f[1])]
        if found:
            if found[0][1].body is None:
                self._undone[name, path, offset, root] = found[0][2] is True
                return None
            defined = [f for f in found if f[1].body is not None]
            certainty = "proved" if found[0][2] is True or len(defined) == 1 else "possible"
            if certainty != "proved" and not (found[0][1].body or "").strip():
                # One that stands for nothing leaves out what another one adds: what may be there is read.
                defined.sort(key=lambda one: not (one[1].body or "").strip())
            rest = () if certainty == "proved" else tuple((path, event) for path, event, _ in defined[1:])
            return MacroChoice(defined[0][0], defined[0][1], certainty, len(defined) - 1, rest)
        if name in self._known:
            return MacroChoice(KNOWN, self._known[name], "proved")
        return self._anywhere(name, path)

    def _limit(self, root: str, path: str) -> int:
        """How far a unit's own file is read before a header: to the include that brings the header in. One that is
        included several times is read after all of it, as is one that no include brings in."""
        key = (root, path)
        if key not in self._limits:
            includes = self._index.includes(root)
            direct = [at for at, included in includes if included == path]
            limit = direct[0] if len(direct) == 1 else _END
            if not direct:
                # The header that includes it is read as well, wherever in it that is.
                limit = next((at + 1 for at, found in includes if path in self._index.closure(found)), _END)
            self._limits[key] = limit
        return self._limits[key]

    def _sets(self, root: str) -> bool:
        """Whether a unit's own file defines anything above an include of its: its headers may depend on it."""
        found = self._settings.get(root)
        if found is None:
            last = max((at for at, _ in self._index.includes(root)), default=0)
            found = root in self.configuration.units
            found = found or any(at < last for events in self._file_events(root).values() for at, _ in events)
            self._settings[root] = found
        return found

    def _anywhere(self, name: str, user: str) -> MacroChoice | None:
        """A definition that no include reaches, if it is the only one that the build can read."""
        candidates = []
        for path in self._index.store.paths_of(name, ("macro",)):
            if path == user:
                continue  # what its own file defines below the use does not hold at it
            facts = self._index.stored(path)
            for event in facts.macros if facts else ():
                # An object-like macro of some other file's is rarely meant: the name may as well be a variable.
                if event.name == name and event.body is not None and event.parameters is not None:
                    if self.truth(path, facts.conditions[event.condition], event.offset, path) is not False:
                        candidates.append((path, event))
        bodies = {(c[1].parameters, " ".join((c[1].body or "").split())) for c in candidates}
        if len(bodies) == 1:
            return MacroChoice(candidates[0][0], candidates[0][1], "matched")
        return None

    def _before(
        self,
        name: str,
        path: str,
        offset: int,
        within: Set[str],
        root: str,
        apart: str = "",
        done: Included = _NONE,
    ) -> list[tuple[str, MacroEvent, bool | None]]:
        """Events of ``name`` before a place, latest first, up to the first one that certainly holds; ``within`` are the
        files that include this one, which it does not include once more. The events of the file ``apart`` are left out:
        it is only just being included. ``done`` are files that were included before this one."""
        if name not in self._index.names_of_kind("macro") and name not in self._index.names_of_kind("undef"):
            return []
        # A header is the same in all units whose own files define nothing before they include it.
        sets = self._sets(root)
        kept = (name, path, offset, root if sets else "", apart, done) if offset == _END or path == root else None
        if kept:
            cached = self._whole.get(kept)
            if cached is not None:
                return cached
        events: list[tuple[int, MacroEvent | str]] = [
            (at, event) for at, event in self._file_events(path).get(name, ()) if at < offset
        ]
        if self._included_defines(name, path):
            events += [(at, included) for at, included in self._index.includes(path) if at < offset]
        events.sort(key=lambda item: -item[0])
        out: list[tuple[str, MacroEvent, bool | None]] = []
        facts = self._index.stored(path)
        for at, event in events:
            if isinstance(event, str):
                if event in within or event == apart:
                    continue
                if event not in self._definers(name) and not self._included_defines(name, event):
                    continue
                reached = self._reached(path, at, root)
                if reached is False:
                    continue
                before = done | self._included(name, path, at, root)
                read = self._once.was_read(event, before, root)
                if read:
                    continue
                reached = reached if read is False else None
                inner = self._before(name, event, _END, within | {event}, root, apart, before)
                held = [one[:2] for one in out]
                out += [(p, e, t if reached else None) for p, e, t in inner if (p, e) not in held]
            else:
                terms = facts.conditions[event.condition]
                if self._is_fallback(path, event):
                    terms = tuple(t for t in terms if t != f"!defined({name})")
                elif event.body is None:
                    # `#ifdef NAME / #undef NAME`: it is undefined behind that in any case.
                    terms = tuple(t for t in terms if t != f"defined({name})")
                value = self.truth(path, terms, at, root if sets else path)
                if value is False:
                    continue
                out.append((path, event, value))
            if out and out[-1][2] is True and not self._is_fallback(out[-1][0], out[-1][1]):
                break
        if kept:
            self._whole[kept] = out
        return out

    def _included(self, name: str, path: str, offset: int, root: str) -> Included:
        """The includes of a file above an offset that lead to a definition of ``name``, and whether each is read."""
        if name not in self._index.names_of_kind("undef"):
            return _NONE  # it means one thing, however often its file is read
        definers = self._definers(name)
        out: list[tuple[str, bool | None]] = []
        for at, included in self._index.includes(path):
            if at < offset and (included in definers or self._included_defines(name, included)):
                value = self._reached(path, at, root)
                if value is not False:
                    out.append((included, value))
        return frozenset(out)

    def _reached(self, path: str, at: int, root: str) -> bool | None:
        """Whether a unit reads the include at an offset of a file."""
        facts = self._index.stored(path)
        include = next((i for i in facts.includes if i.offset == at), None)
        root = root if self._sets(root) else path
        return self.truth(path, facts.conditions[include.condition], at, root) if include else True

    def _is_fallback(self, path: str, event: MacroEvent) -> bool:
        facts = self._index.stored(path)
        return event.body is not None and f"!defined({event.name})" in facts.conditions[event.condition]

    def _definers(self, name: str) -> frozenset[str]:
        if name not in self._definer_cache:
            self._definer_cache[name] = frozenset(self._index.store.paths_of(name, ("macro", "undef")))
        return self._definer_cache[name]

    def _included_defines(self, name: str, path: str) -> bool:
        key = (name, path)
        found = self._reaching.get(key)
        if found is None:
            closure = self._index.closure(path)
            found = self._reaching[key] = any(d in closure and d != path for d in self._definers(name))
        return found


def _words(term: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*", term)
