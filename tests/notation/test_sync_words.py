"""Calls that order threads and memory, by name: kind, order, scope, address."""

from __future__ import annotations

import pytest

from opwalker.notation.ptx import decode_one
from opwalker.notation.sync_words import kind_of, of_call, of_member

CALLS = [
    ("__syncthreads", [], "barrier", None, "block", None),
    ("__threadfence_system", [], "fence", "sc", "system", None),
    ("__threadfence_block", [], "fence", "sc", "block", None),
    ("__syncwarp", ["mask"], "warp_barrier", None, "warp", None),
    ("atomicAdd", ["&n", "1"], "atomic", "relaxed", "gpu", 0),
    ("atomicCAS_system", ["p", "a", "b"], "atomic", "relaxed", "system", 0),
    ("__atomic_load_n", ["p", "__ATOMIC_ACQUIRE"], "acquire_load", "acquire", "system", 0),
    ("__atomic_store_n", ["p", "1", "__ATOMIC_RELEASE"], "release_store", "release", "system", 0),
    ("__scoped_atomic_load_n", ["p", "__ATOMIC_RELAXED", "__MEMORY_SCOPE_DEVICE"], "relaxed_load", "relaxed", "gpu", 0),
    ("__hip_atomic_store", ["p", "v", "__ATOMIC_RELEASE", "__HIP_MEMORY_SCOPE_SYSTEM"], "release_store", "release",
     "system", 0),
    ("__hip_atomic_fetch_add", ["p", "1", "__ATOMIC_ACQ_REL", "__HIP_MEMORY_SCOPE_AGENT"], "atomic", "acq_rel",
     "gpu", 0),
    ("__builtin_amdgcn_fence", ["__ATOMIC_RELEASE", '"workgroup"'], "fence", "release", "block", None),
    ("atomic_thread_fence", ["std::memory_order_acq_rel"], "fence", "acq_rel", "system", None),
    ("cudaStreamWaitEvent", ["s", "e", "0"], "event_wait", None, None, None),
    ("cudaGridDependencySynchronize", [], "grid_wait", "acquire", "gpu", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "kind", "order", "scope", "address"), CALLS, ids=[c[0] for c in CALLS])
def test_a_call_by_its_name(name, arguments, kind, order, scope, address) -> None:
    found = of_call(name, arguments)
    assert (found.kind, found.order, found.scope, found.address) == (kind, order, scope, address)
    assert found.means


@pytest.mark.parametrize("name", ["memcpy", "atomic", "sync_weights", "__ldg", "load"])
def test_other_calls_order_nothing(name) -> None:
    assert of_call(name, ["p"]) is None


MEMBERS = [
    ("load", "cuda::atomic_ref<int, cuda::thread_scope_device>", ["cuda::memory_order_acquire"], "acquire_load", "gpu"),
    ("store", "std::atomic<bool>", ["true", "std::memory_order_release"], "release_store", "system"),
    ("store", "std::atomic<bool>", ["true"], "sc_store", "system"),
    ("fetch_add", "std::atomic<int>", ["1", "std::memory_order::relaxed"], "atomic", "system"),
]


@pytest.mark.parametrize(("name", "kind", "arguments", "point", "scope"), MEMBERS)
def test_a_member_of_an_atomic(name, kind, arguments, point, scope) -> None:
    found = of_member(name, kind, arguments)
    assert (found.kind, found.scope) == (point, scope)


def test_what_is_no_atomic_operation_is_none() -> None:
    assert of_member("is_lock_free", "std::atomic<int>", []) is None


INSTRUCTIONS = [
    ("st.release.sys.global.u32 [%0], %1", "release_store"),
    ("ld.volatile.global.u32 %0, [%1]", "volatile_load"),
    ("ld.global.u32 %0, [%1]", None),
    ("red.release.gpu.global.add.u32 [%0], 1", "reduction"),
    ("cp.async.wait_group 0", "copy_wait"),
    ("mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1", "mbarrier_wait"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1}, {%2}, {%3}", None),
    ("griddepcontrol.wait", "grid_wait"),
]


@pytest.mark.parametrize(("text", "kind"), INSTRUCTIONS)
def test_the_kind_of_an_instruction(text, kind) -> None:
    assert kind_of(decode_one(text)) == kind
