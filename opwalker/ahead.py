"""Answers made by several processes, where one would make them one after the other.

In: a session, names, and what answers a name. Out: of ``made_ahead`` nothing: every answer lies in the store, or is
made when it is asked for, as it would be without this; of ``shared_out`` the answers. A process that ends early costs
time alone.
"""

from __future__ import annotations

import contextlib
import gc
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from opwalker.asking import Session, asked
from opwalker.facts import workers

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from multiprocessing.sharedctypes import Synchronized

#: Fewer names than this are answered sooner than another process has opened the source.
FEWEST = 48
#: Each process holds an index of its own.
_MOST_PROCESSES = 8
#: Names that stand beside each other often share what is read on the way.
_AT_ONCE = 4
#: As ``FEWEST`` and ``_AT_ONCE`` for answers of processes that know from the start what the first one knows.
FEWEST_SHARED = 8
_SHARED_AT_ONCE = 2
#: The most of one kin that a process takes at once; it leaves as many to the others.
_MOST_KIN = 32
#: Bytes that say how long a packed answer is.
_LENGTH = 8

Answer = Callable[[Session, str], Any]


def made_ahead(session: Session, names: Sequence[str], answer: Answer) -> bool:
    """Whether ``answer`` has been called for the names, some of them in other processes, with sessions of their own."""
    count = min(session.options.jobs or workers.processors(), _MOST_PROCESSES)
    if count < 2 or len(names) < FEWEST or not hasattr(os, "fork"):
        return False
    import multiprocessing

    context = multiprocessing.get_context("fork")
    taken = context.Value("l", 0)
    told = (session, names, answer, taken)
    others = [context.Process(target=_other, args=told, daemon=True) for _ in range(count - 1)]
    with _started(others):
        for number in _numbers(taken, len(names), _AT_ONCE):
            if session.progress:
                session.progress(number, len(names), names[number])
            answer(session, names[number])
        for one in others:
            one.join()
    return True


@contextlib.contextmanager
def _started(others: Sequence[BaseProcess]) -> Iterator[None]:
    """Around what this process does while others do the same: none of them is left behind."""
    # What a copy does not look through for garbage, it need not have pages of its own for.
    gc.freeze()
    try:
        with workers.starting():
            for one in others:
                one.start()
        yield
    finally:
        for one in others:
            if one.pid is not None:
                one.kill()
                one.join()
        gc.unfreeze()


def _numbers(taken: Synchronized[int], count: int, at_once: int, kin: Sequence[object] = ()) -> Iterator[int]:
    """Numbers below ``count`` that no other process has taken, until all are. Those that stand beside each other and
    are of one kin are taken by one process, up to half of what is left."""
    while True:
        with taken.get_lock():
            begin = end = taken.value
            most = max(at_once, min(_MOST_KIN, (count - begin) // 2))
            while end < count and (end - begin < at_once or (end - begin < most and kin and kin[end] == kin[end - 1])):
                end += 1
            taken.value = end
        if begin >= count:
            return
        yield from range(begin, end)


def _other(session: Session, names: Sequence[str], answer: Answer, taken: Synchronized[int]) -> None:
    """Another process: what ends it here is met, and said, by the first one at the same name."""

    def make(own: Session) -> None:
        for number in _numbers(taken, len(names), _AT_ONCE):
            answer(own, names[number])

    status = 1
    try:
        asked(replace(session.options, jobs=1), None, None, make)
        status = 0
    finally:
        # Nothing of the first process's is closed or written here: its store, its screen.
        os._exit(status)


def shared_out(
    session: Session, names: Sequence[str], answer: Callable[[int], Any], kind: Any, kin: Sequence[object] = ()
) -> list[Any]:
    """``answer(number)`` for the number of each name, in order, of a type that msgspec packs. Names that are of one
    ``kin`` (empty: none are) share much of what is read for them.

    Some are answered by copies of this process, which know all that the session has read so far, and hand back what
    they find; what one of them leaves is answered here.
    """
    count = min(session.options.jobs or workers.processors(), _MOST_PROCESSES)
    found: dict[int, Any] = {}
    if count > 1 and len(names) >= FEWEST_SHARED and hasattr(os, "fork") and session.store.path is not None:
        found = _shared(session, names, answer, count - 1, msgspec.msgpack.Decoder(kind), kin)
    for number, name in enumerate(names):
        if number not in found:
            if session.progress:
                session.progress(number, len(names), name)
            found[number] = answer(number)
    return [found[number] for number in range(len(names))]


def _shared(
    session: Session,
    names: Sequence[str],
    answer: Callable[[int], Any],
    others: int,
    decoder: msgspec.msgpack.Decoder,
    kin: Sequence[object],
) -> dict[int, Any]:
    import multiprocessing

    context = multiprocessing.get_context("fork")
    taken = context.Value("l", 0)
    # A file takes what a pipe would hold back: nobody reads while all are at work.
    with contextlib.ExitStack() as held:
        outs = [held.enter_context(tempfile.TemporaryFile()) for _ in range(others)]
        told = [(session, len(names), answer, taken, out, kin) for out in outs]
        copies = [context.Process(target=_copy, args=one, daemon=True) for one in told]
        found: dict[int, Any] = {}
        with _started(copies):
            for number in _numbers(taken, len(names), _SHARED_AT_ONCE, kin):
                if session.progress:
                    session.progress(number, len(names), names[number])
                found[number] = answer(number)
            for one, out in zip(copies, outs, strict=True):
                one.join()
                found.update((number, decoder.decode(blob)) for number, blob in _packed(out))
    return found


def _copy(
    session: Session,
    count: int,
    answer: Callable[[int], Any],
    taken: Synchronized[int],
    out: IO[bytes],
    kin: Sequence[object],
) -> None:
    """A copy of the first process: what ends it here is met, and said, by the first one at the same number."""
    status = 1
    try:
        session.store.reopen()
        encoder = msgspec.msgpack.Encoder()
        for number in _numbers(taken, count, _SHARED_AT_ONCE, kin):
            blob = encoder.encode(answer(number))
            out.write(number.to_bytes(_LENGTH) + len(blob).to_bytes(_LENGTH) + blob)
            out.flush()
        status = 0
    finally:
        # Nothing of the first process's is closed or written here: its store, its screen.
        os._exit(status)


def _packed(out: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """The answers that a copy has written whole."""
    out.seek(0)
    while len(head := out.read(2 * _LENGTH)) == 2 * _LENGTH:
        number, length = int.from_bytes(head[:_LENGTH]), int.from_bytes(head[_LENGTH:])
        blob = out.read(length)
        if len(blob) < length:
            return
        yield number, blob
