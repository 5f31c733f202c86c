"""Facts of one kind by path, each with a stamp, decoded only when they are looked at.

In: a store, or facts held in memory. Out: mappings ``path -> facts`` that also say which facts have changed: the same
stamp means the same facts. What the facts say is not looked at here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from opwalker.link.store import Store, StoreRebuilt
from opwalker.link.store_rows import stamp_of, stamps_digest

T = TypeVar("T")


class FactsGone(StoreRebuilt):
    """Facts that were there a moment ago have been dropped by another process: index again."""


class Stamped(Mapping[str, T]):
    """Facts by path. ``stamps`` has one for every path that there are facts of."""

    stamps: Mapping[str, str]
    _state: tuple[Mapping[str, str], str] | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(self.stamps)

    def __len__(self) -> int:
        return len(self.stamps)

    def __contains__(self, path: object) -> bool:
        return path in self.stamps

    def load(self) -> None:
        """Make ready for all facts to be looked at."""

    def state(self) -> str:
        """A digest of all paths and stamps: equal states, equal facts."""
        if self._state is None or self._state[0] is not self.stamps:
            self._state = (self.stamps, stamps_digest(self.stamps))
        return self._state[1]


class HeldFacts(Stamped[T]):
    """Facts in memory, stamped by their contents."""

    def __init__(self, facts: Mapping[str, T]) -> None:
        self._facts = dict(facts)
        self.stamps = {path: stamp_of(msgspec.msgpack.encode(one)) for path, one in self._facts.items()}

    def __getitem__(self, path: str) -> T:
        return self._facts[path]


class FactsInStore(Stamped[T]):
    """Facts in a store: of every file in ``language`` that has some of this kind. Raises FactsGone when facts that are
    asked for have been dropped meanwhile."""

    def __init__(self, store: Store, kind: str, producer: str, language: str, facts: type[T]) -> None:
        self._store = store
        self._which = (kind, producer)
        self._language = language
        self._decode = msgspec.msgpack.Decoder(facts).decode
        self._known: dict[str, T] = {}
        self._all = False
        self._stamps: Mapping[str, str] | None = None
        #: The state that was told before the stamps were looked at.
        self._told: str | None = None

    @property
    def stamps(self) -> Mapping[str, str]:
        """A stamp for every file that there are facts of."""
        if self._stamps is None:
            self._stamps = self._store.stamps(*self._which, self._language)
            if self._told is not None and self._told != super().state():
                raise FactsGone("facts in the store have changed meanwhile", "run the command again")
        return self._stamps

    def state(self) -> str:
        """A digest of all paths and stamps; there are thousands, and mostly none is looked at."""
        if self._stamps is not None:
            return super().state()
        if self._told is None:
            self._told = self._store.stamps_state(*self._which, self._language)
        return self._told

    def __getitem__(self, path: str) -> T:
        if path not in self._known:
            if path not in self.stamps:
                raise KeyError(path)
            self._known[path] = self._decode(self._blob(path))
        return self._known[path]

    def get(self, path: str, default: T | None = None) -> T | None:
        """The facts of a file, or ``default`` where it has none."""
        return self[path] if path in self.stamps else default

    def load(self) -> None:
        """Decode all that is not decoded yet, with one look at the store."""
        if not self._all:
            for path, blob in self._store.facts_by_path(*self._which):
                if path in self.stamps and path not in self._known:
                    self._known[path] = self._decode(blob)
            self._all = True

    def renew(self) -> None:
        """Look at the store again: facts may have been put there since."""
        before = self.stamps
        self._stamps = self._store.stamps(*self._which, self._language)
        for path in [path for path in self._known if before.get(path) != self.stamps.get(path)]:
            del self._known[path]

    def _blob(self, path: str) -> bytes:
        blob = self._store.facts_at(path, *self._which)
        if blob is None:
            raise FactsGone(f"facts of {path} are gone from the store", "run the command again")
        return blob
