"""Answers made ahead by several processes, where one would make them one after the other.

In: a session, names, and what answers a name and keeps the answer in the store. Out: nothing: every answer lies in the
store, or is made when it is asked for, as it would be without this. A process that ends early costs time alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from opwalker.asking import Session, asked
from opwalker.facts import workers

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

#: Fewer names than this are answered sooner than another process has opened the source.
FEWEST = 48
#: Each process holds an index of its own.
_MOST_PROCESSES = 8
#: Names that stand beside each other often share what is read on the way.
_AT_ONCE = 4

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
    try:
        with workers.starting():
            for one in others:
                one.start()
        for number in _numbers(taken, len(names)):
            if session.progress:
                session.progress(number, len(names), names[number])
            answer(session, names[number])
        for one in others:
            one.join()
    finally:
        for one in others:
            if one.pid is not None:
                one.kill()
                one.join()
    return True


def _numbers(taken: Synchronized[int], count: int) -> Iterator[int]:
    """Numbers below ``count`` that no other process has taken, until all are."""
    while True:
        with taken.get_lock():
            begin = taken.value
            taken.value = begin + _AT_ONCE
        if begin >= count:
            return
        yield from range(begin, min(begin + _AT_ONCE, count))


def _other(session: Session, names: Sequence[str], answer: Answer, taken: Synchronized[int]) -> None:
    """Another process: what ends it here is met, and said, by the first one at the same name."""

    def make(own: Session) -> None:
        for number in _numbers(taken, len(names)):
            answer(own, names[number])

    status = 1
    try:
        asked(replace(session.options, jobs=1), None, None, make)
        status = 0
    finally:
        # Nothing of the first process's is closed or written here: its store, its screen.
        os._exit(status)
