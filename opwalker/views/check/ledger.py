"""What the macros of a tree were when its functions were read, and which files a change of them concerns.

In: an index, and the ledger of the state in which the functions were read. Out: a ledger of the tree as it is, and the
files that have to be read anew. What a file's functions say depends on its own text, on how it is built, and on macros:
so a change elsewhere concerns it where it changes a name that was asked about while the file was read. A name changes
with its definitions in a file: their texts, their conditions, and what stands before them of includes and of the names
in their conditions. With an include that comes or goes, all names change that it brings.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from opwalker.expand.macros import MacroTable
from opwalker.expand.workbench import Workbench
from opwalker.link.index import Index
from opwalker.model.cpp import MacroEvent
from opwalker.notation.regex import Regex

_WORD = Regex(r"[A-Za-z_]\w*")

#: The condition of an include, in words, with how often its names were defined above it.
Include = tuple[str, str]


class Entry(Struct, frozen=True, array_like=True):
    """A file: a digest of what it ``said``, digests of its definitions of each name, the files that it includes with
    their conditions, and under which key its functions are kept (None: they were not read)."""

    said: str
    names: dict[str, str]
    includes: tuple[Include, ...]
    key: str | None = None


class Ledger(Struct, frozen=True, array_like=True):
    """A tree: a digest of what is set for it as a whole, and the entries of its files."""

    settings: str
    files: dict[str, Entry]


def settings_of(workbench: Workbench) -> str:
    """A digest of what has its say in every reading of a build: the macros that are set for all of it."""
    unit = workbench.unit()
    return _digest(_settings(table) for table in (unit.macros, unit.device_macros))


def _settings(table: MacroTable) -> tuple:
    held = table.configuration
    units = sorted((path, sorted(macros.items(), key=repr)) for path, macros in held.units.items())
    passes = [sorted(macros.items(), key=repr) for macros in held.passes]
    defines = sorted(held.defines.items(), key=repr)
    return (
        held.build, defines, sorted(held.undefined), held.closed, passes, units, sorted(held.flagged),
        sorted(table.families),
    )  # fmt: skip


def ledger_of(workbench: Workbench, said: Callable[[str], str], old: Ledger | None) -> Ledger:
    """The ledger of a tree as it is, no functions read yet; entries of an earlier one are taken over where they hold
    still."""
    index, settings = workbench.index, settings_of(workbench)
    before = old.files if old is not None else {}
    # Which file an include means hangs on which files there are.
    same = before.keys() == index.paths
    files: dict[str, Entry] = {}
    for path in sorted(index.paths):
        now, entry = f"{said(path)} {workbench.builds.builds_of(path)}", before.get(path)
        if entry is None or entry.said != now or not same:
            files[path] = entry_of(index, path, now)
        else:
            files[path] = Entry(now, entry.names, entry.includes)
    return Ledger(settings, files)


def entry_of(index: Index, path: str, said: str) -> Entry:
    """A file as it is."""
    facts, text = index.stored(path), index.part(path)
    if facts is None:
        return Entry(said, {}, ())
    under = {one.offset: facts.conditions[one.condition] for one in facts.includes}
    rows: list[tuple[int, str | MacroEvent]] = [*index.includes(path), *((one.offset, one) for one in facts.macros)]
    above: Counter[str] = Counter()
    names: dict[str, list[tuple]] = {}
    includes: list[Include] = []
    for at, one in sorted(rows, key=lambda row: row[0]):
        if isinstance(one, str):
            includes.append((one, repr(_under(under.get(at, ()), above))))
            continue
        body = one.body or ""
        breaks = [n for n, char in enumerate(text[at : one.body_offset + len(body)]) if char == "\n"]
        told = (one.parameters, one.variadic, one.body, one.body_offset - at, breaks)
        place = (len(includes), _under(facts.conditions[one.condition], above))
        names.setdefault(one.name, []).append((*told, *place))
        above[one.name] += 1
    return Entry(said, {name: _digest(found) for name, found in names.items()}, tuple(includes))


def _under(terms: Iterable[str], above: Mapping[str, int]) -> tuple:
    """Conditions, with how often each of their names is defined above."""
    return tuple((term, tuple(above[word] for word in _WORD.findall(term))) for term in terms)


def changed_names(old: Ledger, new: Ledger) -> set[str]:
    """The names that may stand for something else than they did."""
    out: set[str] = set()
    for path in old.files.keys() | new.files.keys():
        before, now = old.files.get(path, _NOTHING), new.files.get(path, _NOTHING)
        if before.names != now.names:
            out |= {name for name, _ in before.names.items() ^ now.names.items()}
        if before.includes != now.includes:
            moved = set(before.includes) ^ set(now.includes) or {*now.includes}
            for ledger in (old, new):
                out.update(*(ledger.files[one].names for one in _brought(ledger, {target for target, _ in moved})))
    return out


_NOTHING = Entry("", {}, ())


def _brought(ledger: Ledger, targets: Collection[str]) -> set[str]:
    """What includes bring: files, and what these include."""
    seen: set[str] = set()
    pending = [one for one in targets if one in ledger.files]
    while pending:
        path = pending.pop()
        if path not in seen:
            seen.add(path)
            pending += (target for target, _ in ledger.files[path].includes if target in ledger.files)
    return seen


def stays(old: Ledger | None, new: Ledger, path: str) -> str | None:
    """The key of a file's functions where nothing but names that were asked about can have changed them."""
    if old is None or old.settings != new.settings or path not in old.files:
        return None
    before, now = old.files[path], new.files[path]
    return before.key if before.said == now.said and before.includes == now.includes else None


class Asked:
    """Notes the names that readings ask about."""

    def __init__(self, workbench: Workbench) -> None:
        unit = workbench.unit()
        self._tables = (unit.macros, unit.device_macros)
        self._index = workbench.index
        self._conditions: dict[str, frozenset[str]] = {}
        self._includes: dict[str, frozenset[str]] = {}

    def begin(self) -> None:
        """Forget what was asked."""
        for table in self._tables:
            table.asked.clear()
            table.judged.clear()

    def names(self) -> set[str]:
        """The names that were asked about since."""
        out: set[str] = set()
        for table in self._tables:
            out |= table.asked
            out.update(word for terms in table.judged for term in terms for word in _WORD.findall(term))
        return out

    def in_heads(self, path: str) -> set[str]:
        """The names that may be macros in the names, scopes, parameter lists and template heads of a file's functions;
        what they stand for is asked once more."""
        facts = self._index.stored(path)
        if facts is not None:
            self._index.renamed(path, facts)
        functions = facts.functions if facts is not None else ()
        names = {part for one in functions for part in (*one.scope, one.name)}
        names.update(p.type for one in functions for p in one.parameters if not p.name)
        return names.union(part.strip() for one in functions for part in (one.template or "").split(","))

    def behind(self, path: str, names: Iterable[str]) -> set[str]:
        """The names on which it hangs what some names stand for in a file: those in the conditions of their definitions
        and of the includes that lead to these, and so on."""
        closure, out = self._index.closure(path), set()
        pending = {*names}.union(*(self._including(one) for one in closure))
        while pending:
            out |= pending
            pending = {word for name in pending for word in self._under(name, closure)} - out
        return out

    def _under(self, name: str, closure: frozenset[str]) -> Iterator[str]:
        if name not in self._index.names_of_kind("macro") and name not in self._index.names_of_kind("undef"):
            return
        for path in self._index.store.paths_of(name, ("macro", "undef")):
            yield from self._defining(name, path)
            if path not in closure:
                for one in self._index.closure(path):
                    yield from self._including(one)

    def _defining(self, name: str, path: str) -> frozenset[str]:
        """The names in the conditions of a file's definitions of a name."""
        key = f"{name} {path}"
        if key not in self._conditions:
            facts = self._index.stored(path)
            held = (facts.conditions[one.condition] for one in facts.macros if one.name == name)
            self._conditions[key] = _words(held)
        return self._conditions[key]

    def _including(self, path: str) -> frozenset[str]:
        """The names in the conditions of a file's includes."""
        if path not in self._includes:
            facts, known = self._index.stored(path), {at for at, _ in self._index.includes(path)}
            under = (facts.conditions[one.condition] for one in facts.includes if one.offset in known) if facts else ()
            self._includes[path] = _words(under)
        return self._includes[path]


def _words(conditions: Iterable[Iterable[str]]) -> frozenset[str]:
    return frozenset(word for terms in conditions for term in terms for word in _WORD.findall(term))


def packed(names: Iterable[str]) -> bytes:
    """Names as bytes, in which one of them is found at once."""
    return b"\n" + b"\n".join(sorted(name.encode("utf-8", "surrogateescape") for name in names)) + b"\n"


def holds_any(names: bytes, wanted: Collection[bytes]) -> bool:
    """Whether any of some names, as ``packed`` puts them, is among packed ones."""
    return any(one in names for one in wanted) if len(wanted) < _MANY else not set(wanted).isdisjoint(_each(names))


#: So many names are looked for all at once.
_MANY = 40


def _each(names: bytes) -> Iterator[bytes]:
    return (b"\n%b\n" % one for one in names.split(b"\n"))


def _digest(rows: Iterable[object]) -> str:
    return hashlib.blake2b(repr(list(rows)).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
