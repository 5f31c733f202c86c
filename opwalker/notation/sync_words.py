"""Calls that make threads, streams or devices wait for each other, or order what they see: by name, what each is.

In: a function's name, its arguments as text. Out: ``SyncCall``: kind, order, scope, and which argument is the address.
Names are those of CUDA, HIP, C++ and their atomics; a library's own wrappers are known by what they do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from opwalker.model.assembly import Instruction
from opwalker.notation.regex import Regex


class SyncCall(Struct, frozen=True):
    """What a call is: ``kind``, ``means`` in words, ``order`` and ``scope`` where it has them; ``address`` numbers the
    argument that is the address, ``value`` the one that is stored, None where there is none."""

    kind: str
    means: str
    order: str | None = None
    scope: str | None = None
    address: int | None = None
    value: int | None = None


_SCOPE_WORD = {"block": "block scope", "cluster": "cluster scope", "gpu": "GPU scope", "system": "system scope",
               "warp": "warp scope", "thread": "thread scope"}  # fmt: skip

#: Calls without an address: ``pattern -> (kind, words, order, scope)``.
_PLAIN: tuple[tuple[re.Pattern[str], tuple[str, str, str | None, str | None]], ...] = tuple(
    (Regex(pattern + r"\Z"), found)
    for pattern, found in (
        (r"__syncthreads", ("barrier", "barrier of the block", None, "block")),
        (r"__syncthreads_(?:and|or|count)", ("barrier", "barrier of the block with a vote", None, "block")),
        (r"__syncwarp", ("warp_barrier", "barrier of the warp", None, "warp")),
        (r"__threadfence", ("fence", "memory fence, GPU scope", "sc", "gpu")),
        (r"__threadfence_block", ("fence", "memory fence, block scope", "sc", "block")),
        (r"__threadfence_system", ("fence", "memory fence, system scope", "sc", "system")),
        (r"__builtin_amdgcn_s_barrier", ("barrier", "barrier of the block", None, "block")),
        (r"__builtin_amdgcn_wave_barrier", ("warp_barrier", "barrier of the wave", None, "warp")),
        (r"__builtin_amdgcn_s_waitcnt", ("memory_wait", "wait for this wave's memory operations", None, None)),
        (r"(?:cuda|hip)GridDependencySynchronize|cudaGridDependencySynchronize",
         ("grid_wait", "wait until the grids this one depends on have finished and flushed", "acquire", "gpu")),
        (r"cudaTriggerProgrammaticLaunchCompletion",
         ("grid_release", "leave for the dependent grid to start", None, "gpu")),
        (r"(?:cuda|hip|musa)StreamSynchronize|stream_synchronize",
         ("stream_sync", "host waits for a stream", None, None)),
        (r"(?:cuda|hip|musa)DeviceSynchronize|device_synchronize",
         ("device_sync", "host waits for the device", None, None)),
        (r"(?:cuda|hip|musa)EventRecord\w*", ("event_record", "event recorded on a stream", None, None)),
        (r"(?:cuda|hip|musa)EventSynchronize", ("event_sync", "host waits for an event", None, None)),
        (r"(?:cuda|hip|musa)EventQuery", ("event_query", "host asks whether an event has happened", None, None)),
        (r"(?:cuda|hip|musa)StreamWaitEvent", ("event_wait", "stream waits for an event", None, None)),
        (r"call_once", ("once", "done once, others wait", None, None)),
    )
)  # fmt: skip

_ATOMIC = Regex(r"atomic(Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)(_system|_block)?\Z")
_BUILTIN = Regex(
    r"__(?:(scoped_)|(hip_))?atomic_(load|store|exchange|compare_exchange|fetch_\w+|\w+_fetch|test_and_set|clear)(_n|_strong|_weak)?\Z"
)
_FENCE = Regex(r"(?:atomic_thread_fence|__atomic_thread_fence|atomic_signal_fence|__builtin_amdgcn_fence)\Z")
#: Members of C++ atomics.
_MEMBER = Regex(r"(?:load|store|exchange|compare_exchange_(?:weak|strong)|fetch_\w+|test_and_set|test|clear|wait)\Z")
_ORDER = Regex(r"(?:memory_order(?:_|::)|__ATOMIC_)(relaxed|consume|acquire|release|acq_rel|seq_cst)", re.IGNORECASE)
_SCOPE = Regex(r"(?:thread_scope_|MEMORY_SCOPE_|memory_scope_)(\w+)", re.IGNORECASE)
_SCOPES = {
    "system": "system", "device": "gpu", "agent": "gpu", "block": "block", "workgroup": "block", "cluster": "cluster",
    "thread": "thread", "singlethread": "thread", "wvfrnt": "warp", "wavefront": "warp", "wrkgrp": "block",
}  # fmt: skip
_ORDER_WORD = {"relaxed": "relaxed", "acquire": "acquire", "release": "release", "acq_rel": "acquire-release",
               "sc": "sequentially consistent"}  # fmt: skip


def of_call(name: str, arguments: Sequence[str]) -> SyncCall | None:
    """What a call of a free function is, None where it orders nothing."""
    for pattern, (kind, words, order, scope) in _PLAIN:
        if pattern.match(name):
            return SyncCall(kind, words, order, scope)
    atomic = _ATOMIC.match(name)
    if atomic is not None:
        scope = {"_system": "system", "_block": "block"}.get(atomic.group(2) or "", "gpu")
        words = f"relaxed atomic ({atomic.group(1).lower()}), {_SCOPE_WORD[scope]}"
        return SyncCall("atomic", words, "relaxed", scope, 0, 1)
    text = ", ".join(arguments)
    if _FENCE.match(name):
        order, scope = order_in(text) or "sc", scope_in(text) or ("gpu" if "amdgcn" in name else "system")
        return SyncCall("fence", f"{_ORDER_WORD[order]} memory fence, {_SCOPE_WORD[scope]}", order, scope)
    builtin = _BUILTIN.match(name)
    if builtin is not None:
        order = order_in(text) or "sc"
        return _access(builtin.group(3), order, scope_in(text) or "system", 0)
    return None


def of_member(name: str, kind: str, arguments: Sequence[str]) -> SyncCall | None:
    """What a call of an atomic's member is; ``kind`` is the atomic's type."""
    if not _MEMBER.match(name):
        return None
    order = order_in(", ".join(arguments)) or "sc"
    return _access(name, order, scope_in(kind) or "system", None)


def _access(operation: str, order: str, scope: str, address: int | None) -> SyncCall:
    what = "load" if operation in ("load", "test", "wait") else "store" if operation in ("store", "clear") else "atomic"
    words = f"{_ORDER_WORD[order]} {what}"
    if what == "atomic":
        words += f" ({operation.removeprefix('fetch_').replace('_', ' ')})"
    kind = what if what == "atomic" else f"{order}_{what}"
    value = None if what == "load" else (0 if address is None else 1)
    return SyncCall(kind, f"{words}, {_SCOPE_WORD[scope]}", order, scope, address, value)


def order_in(text: str) -> str | None:
    """The memory order that a text names."""
    found = _ORDER.search(text)
    return {"seq_cst": "sc", "consume": "acquire"}.get(found[1].lower(), found[1].lower()) if found else None


def scope_in(text: str) -> str | None:
    """The scope that a text names."""
    found = _SCOPE.search(text)
    if found is not None:
        return _SCOPES.get(found[1].lower())
    literal = re.search(r'"(agent|workgroup|wavefront|singlethread|)"', text)
    return _SCOPES.get(literal[1], "system") if literal else None


#: Kinds of sync point by what an instruction is; ``{order}`` is put in for loads and stores.
_INSTRUCTIONS = {
    "atomic": "atomic", "reduction": "reduction", "multicast reduction": "reduction", "async reduction": "reduction",
    "fence": "fence", "proxy fence": "fence", "barrier": "barrier", "barrier arrive": "barrier_arrive",
    "warp barrier": "warp_barrier", "cluster barrier arrive": "cluster_arrive", "cluster barrier wait": "cluster_wait",
    "mbarrier init": "mbarrier_init", "mbarrier end": "mbarrier_end", "mbarrier expect": "mbarrier_expect",
    "mbarrier complete": "mbarrier_complete", "mbarrier arrive": "mbarrier_arrive", "mbarrier wait": "mbarrier_wait",
    "async copy commit": "copy_commit", "async copy wait": "copy_wait", "bulk copy commit": "copy_commit",
    "bulk copy wait": "copy_wait", "matrix wait": "matrix_wait", "matrix commit": "matrix_commit",
    "matrix fence": "fence", "tensor memory wait": "tensor_memory_wait", "grid wait": "grid_wait",
    "grid release": "grid_release", "wait": "memory_wait",
}  # fmt: skip


def kind_of(instruction: Instruction) -> str | None:
    """The kind of sync point that an instruction is, None where it orders nothing."""
    if instruction.what in ("load", "store"):
        ordered = instruction.order not in (None, "weak")
        return f"{instruction.order}_{instruction.what}" if ordered else None
    return _INSTRUCTIONS.get(instruction.what or "")
