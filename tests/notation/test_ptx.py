"""Inline PTX: kind, order, scope, space and width of each instruction, from its modifiers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.notation.ptx import decode, decode_one
from opwalker.notation.ptx_words import OPCODES, ORDERS, SCOPES

ACCESSES = [
    # text, what, order, scope, space, bytes
    ("st.release.sys.global.u32 [%1], %0", "store", "release", "system", "global", 4),
    ("st.global.release.sys.u32 [%1], %0", "store", "release", "system", "global", 4),
    ("ld.acquire.gpu.global.u64 %0, [%1]", "load", "acquire", "gpu", "global", 8),
    ("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4]", "load", "volatile", "system", "global", 16),
    ("ld.global.nc.v2.b64 {%0, %1}, [%2]", "load", "weak", None, "global", 16),
    ("st.relaxed.cta.shared::cta.b8 [%0], %1", "store", "relaxed", "block", "shared::cta", 1),
    ("ld.u16 %0, [%1]", "load", "weak", None, "generic", 2),
    ("ld.relaxed.mmio.sys.global.u32 %0, [%1]", "load", "relaxed", "system", "global", 4),
    ("atom.add.u32 %0, [%1], %2", "atomic", "relaxed", "gpu", "generic", 4),
    ("atom.global.acq_rel.sys.cas.b64 %0, [%1], %2, %3", "atomic", "acq_rel", "system", "global", 8),
    ("red.release.gpu.global.add.s32 [%0], %1", "reduction", "release", "gpu", "global", 4),
    ("red.global.add.noftz.v4.bf16x2 [%0], {%1, %2, %3, %4}", "reduction", "relaxed", "gpu", "global", 16),
    ("multimem.red.release.sys.global.add.u32 [%0], 1", "multicast reduction", "release", "system", "global", 4),
    ("membar.gl", "fence", "sc", "gpu", None, None),
    ("membar.sys", "fence", "sc", "system", None, None),
    ("fence.acq_rel.cluster", "fence", "acq_rel", "cluster", None, None),
    ("fence.sc.sys", "fence", "sc", "system", None, None),
    ("fence.gpu", "fence", "acq_rel", "gpu", None, None),
    ("bar.sync 1, 128", "barrier", None, None, None, None),
    ("barrier.cluster.arrive.relaxed.aligned", "cluster barrier arrive", "relaxed", "cluster", None, None),
    ("barrier.cluster.wait", "cluster barrier wait", "acquire", "cluster", None, None),
    ("mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1", "mbarrier wait", "acquire", "block", "shared::cta", None),
    ("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0]", "mbarrier arrive", "release", "cluster",
     "shared::cluster", None),
    ("cp.async.cg.shared.global [%0], [%1], 16", "async copy", None, None, "shared <- global", 16),
    ("cp.async.ca.shared.global [%0], [%1], %2", "async copy", None, None, "shared <- global", None),
    ("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1]", "tensor copy", None, None,
     "global <- shared::cta", None),
    ("griddepcontrol.launch_dependents", "grid release", None, None, None, None),
    ("tcgen05.wait::st.sync.aligned", "tensor memory wait", None, None, None, None),
    ("s_waitcnt vmcnt(0)", "wait", None, None, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "what", "order", "scope", "space", "width"), ACCESSES, ids=lambda v: str(v)[:40])
def test_an_instruction_is_read_by_its_parts(text, what, order, scope, space, width) -> None:
    made = decode_one(text)
    assert made is not None
    assert (made.what, made.order, made.scope, made.space, made.bytes) == (what, order, scope, space, width)


WORDS = [
    ("st.release.sys.global.u32 [%1], %0", "release store of 4 bytes to global memory, system scope"),
    ("ld.acquire.sys.global.u32 %0, [%1]", "acquire load of 4 bytes from global memory, system scope"),
    ("fence.acq_rel.gpu", "acquire-release memory fence, GPU scope"),
    ("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4]",
     "load of 16 bytes from global memory, through the read-only path, not kept in L1"),
    ("cp.async.cg.shared.global [%0], [%1], 16",
     "asynchronous copy of 16 bytes from global memory to shared memory, cached in L2, past L1"),
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1}, {%2}, {%3}",
     "matrix multiply-accumulate of the warp, m16n8k16, f32 f16 f16 f32"),
    ("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2", "conversion from f32 to e4m3x2"),
    ("atom.add.release.gpu.global.u32 %0, [%1], %2", "release atomic (add) of 4 bytes in global memory, GPU scope"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), WORDS, ids=[t[:30] for t, _ in WORDS])
def test_it_is_said_in_words(text, words) -> None:
    assert decode_one(text).means == words


def test_a_template_holds_several_instructions_and_what_is_none() -> None:
    template = (
        "{\n\t.reg .pred P1; // a register\nWAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
        "\t@P1 bra DONE;\n\tbra WAIT;\nDONE:\n\t@!p ld.global.v2.u32 {%2,\n %3}, [%4];\n}\n"
    )
    made = decode(template)
    assert [(one.opcode, one.predicate, one.address) for one in made] == [
        ("mbarrier.try_wait", None, "%0"),
        ("bra", "P1", None),
        ("bra", None, None),
        ("ld", "!p", "%4"),
    ]
    assert made[3].bytes == 8


def test_a_semicolon_separates_a_fence_from_a_store() -> None:
    fence, store = decode("membar.sys; st.volatile.global.u32 [%1], %0;")
    assert (fence.what, store.what, store.order, store.address) == ("fence", "store", "volatile", "%1")


@pytest.mark.parametrize("text", ["frobnicate.sync.b32 %0", "llvm.amdgcn.raw.buffer.store.i16"])
def test_what_is_not_known_is_not_named(text) -> None:
    made = decode_one(text)
    assert (made.what, made.means) == (None, "")


@given(
    order=st.sampled_from(sorted(ORDERS - {"weak", "volatile", "sc", "acq_rel"})),
    scope=st.sampled_from(sorted(set(SCOPES) - {"gl"})),
    space=st.sampled_from(["global", "shared", "shared::cluster"]),
    vector=st.sampled_from([("", 1), ("v2", 2), ("v4", 4)]),
    kind=st.sampled_from([("u8", 1), ("b32", 4), ("f64", 8), ("f16x2", 4)]),
    store=st.booleans(),
)
def test_modifiers_combine_freely(order, scope, space, vector, kind, store) -> None:
    name = ".".join(filter(None, ("st" if store else "ld", order, scope, space, vector[0], kind[0])))
    made = decode_one(f"{name} [%0], %1" if store else f"{name} %0, [%1]")
    assert (made.order, made.scope, made.space, made.bytes) == (order, SCOPES[scope], space, vector[1] * kind[1])
    assert made.what in ("store", "load") and made.means.startswith((order[:4], "memory-mapped"))


@given(st.sampled_from(sorted(OPCODES)), st.lists(st.sampled_from(["aligned", "b32", "x4", "row"]), max_size=3))
def test_every_name_of_the_table_is_found_whatever_follows(opcode, modifiers) -> None:
    made = decode_one(".".join((opcode, *modifiers)) + " %0")
    assert made.opcode.startswith(opcode)
    assert made.what is not None and made.means


@given(st.text(alphabet='abcdeprst.:;{}@%[] \n0123\\"', max_size=60))
def test_no_template_breaks_the_reader(template) -> None:
    for one in decode(template):
        assert one.text
