"""What the words of PTX mean: modifiers by kind, and opcodes by what they do.

Data for ``ptx``. An opcode stands here by the part of its name that says what it is (``cp.async.bulk``); everything
else about an instruction is in its modifiers, which combine freely.
"""

from __future__ import annotations

ORDERS = frozenset("weak relaxed acquire release acq_rel sc volatile mmio".split())

#: A scope of PTX, ``membar``'s levels among them, as who is meant.
SCOPES = {"cta": "block", "cluster": "cluster", "gpu": "gpu", "sys": "system", "gl": "gpu"}

SPACES = frozenset("global shared local const param shared::cta shared::cluster param::entry param::func".split())

VECTORS = {"v2": 2, "v4": 4, "v8": 8}

OPERATIONS = frozenset("add min max inc dec cas exch and or xor mul popc".split())

#: Bits of an element type.
TYPES = {
    "pred": 0, "f16x2": 32, "bf16x2": 32, "tf32": 32, "e4m3": 8, "e5m2": 8, "e4m3x2": 16, "e5m2x2": 16, "e4m3x4": 32,
    "e5m2x4": 32, "e2m1": 4, "e2m1x2": 8, "e2m1x4": 16, "e3m2": 6, "e2m3": 6, "ue8m0": 8, "ue8m0x2": 16, "ue4m3": 8,
    "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f32x2": 64, "u16x2": 32, "s16x2": 32, "u8x4": 32, "s8x4": 32,
    **{f"{kind}{bits}": bits for kind in "bsu" for bits in (1, 2, 4, 8, 16, 32, 64, 128, 1024)},
}  # fmt: skip

#: Words for the scope of an order, in a sentence.
SCOPE_WORDS = {"block": "block scope", "cluster": "cluster scope", "gpu": "GPU scope", "system": "system scope"}

ORDER_WORDS = {
    "weak": "", "relaxed": "relaxed ", "acquire": "acquire ", "release": "release ", "acq_rel": "acquire-release ",
    "sc": "sequentially consistent ", "volatile": "volatile ", "mmio": "memory-mapped I/O ",
}  # fmt: skip

SPACE_WORDS = {
    "global": "global memory", "shared": "shared memory", "shared::cta": "shared memory of the block",
    "shared::cluster": "shared memory of the cluster", "local": "local memory", "const": "constant memory",
    "param": "parameter memory", "param::entry": "parameter memory", "param::func": "parameter memory",
    "generic": "memory",
}  # fmt: skip

#: What single words of a modifier list add to a sentence, for the instructions that touch memory.
HINTS = {
    "nc": "through the read-only path", "ca": "cached at all levels", "cg": "cached in L2, past L1",
    "cs": "streamed: likely used once", "lu": "last use", "cv": "not cached, fetched again",
    "wb": "written back", "wt": "written through", "L1::no_allocate": "not kept in L1",
    "L1::evict_last": "kept long in L1", "L1::evict_first": "evicted first from L1",
    "L1::evict_normal": "evicted as usual from L1", "L1::evict_unchanged": "its L1 priority kept",
    "L2::cache_hint": "with an L2 policy", "L2::evict_first": "evicted first from L2",
    "L2::evict_last": "kept long in L2", "L2::evict_normal": "evicted as usual from L2",
    "L2::64B": "64 bytes prefetched into L2", "L2::128B": "128 bytes prefetched into L2",
    "L2::256B": "256 bytes prefetched into L2", "multicast::cluster": "to several blocks of the cluster",
}  # fmt: skip

#: ``name -> (what, phrase)``. The longest name that an instruction begins with counts; modifiers say the rest.
OPCODES: dict[str, tuple[str, str]] = {
    "ld": ("load", "load"),
    "ldu": ("load", "load of what is the same for the whole warp"),
    "st": ("store", "store"),
    "st.async": ("async store", "asynchronous store that completes a barrier in shared memory"),
    "st.bulk": ("store", "store of zeros over a range of shared memory"),
    "atom": ("atomic", "atomic"),
    "red": ("reduction", "atomic reduction without a result"),
    "red.async": ("async reduction", "asynchronous atomic reduction"),
    "multimem.ld_reduce": ("multicast load-reduce", "load from every GPU of a multicast address, reduced on the way"),
    "multimem.st": ("multicast store", "store to every GPU of a multicast address"),
    "multimem.red": ("multicast reduction", "atomic reduction on every GPU of a multicast address"),
    "multimem.cp.async.bulk": ("multicast copy", "bulk copy to every GPU of a multicast address"),
    "multimem.cp.reduce.async.bulk": ("multicast copy", "bulk reduction on every GPU of a multicast address"),
    "fence": ("fence", "memory fence"),
    "fence.proxy": ("proxy fence", "fence between ways of access"),
    "fence.mbarrier_init": ("fence", "fence that makes an initialised barrier visible to the cluster"),
    "membar": ("fence", "memory fence"),
    "membar.proxy": ("proxy fence", "fence between ways of access"),
    "bar": ("barrier", "barrier of the block"),
    "bar.sync": ("barrier", "barrier of the block: arrive and wait"),
    "bar.arrive": ("barrier arrive", "barrier of the block: arrive without waiting"),
    "bar.red": ("barrier", "barrier of the block with a vote"),
    "bar.warp.sync": ("warp barrier", "barrier of the warp"),
    "barrier": ("barrier", "barrier of the block"),
    "barrier.sync": ("barrier", "barrier of the block: arrive and wait"),
    "barrier.cta.sync": ("barrier", "barrier of the block: arrive and wait"),
    "barrier.arrive": ("barrier arrive", "barrier of the block: arrive without waiting"),
    "barrier.cta.arrive": ("barrier arrive", "barrier of the block: arrive without waiting"),
    "barrier.red": ("barrier", "barrier of the block with a vote"),
    "barrier.cta.red": ("barrier", "barrier of the block with a vote"),
    "barrier.cluster.arrive": ("cluster barrier arrive", "barrier of the cluster: arrive without waiting"),
    "barrier.cluster.wait": ("cluster barrier wait", "barrier of the cluster: wait"),
    "mbarrier.init": ("mbarrier init", "barrier in shared memory set up"),
    "mbarrier.inval": ("mbarrier end", "barrier in shared memory given up"),
    "mbarrier.expect_tx": ("mbarrier expect", "barrier in shared memory told how many bytes will come"),
    "mbarrier.complete_tx": ("mbarrier complete", "bytes counted as arrived at a barrier in shared memory"),
    "mbarrier.arrive": ("mbarrier arrive", "arrival at a barrier in shared memory"),
    "mbarrier.arrive_drop": ("mbarrier arrive", "arrival at a barrier in shared memory, for the last time"),
    "mbarrier.test_wait": ("mbarrier wait", "test of a barrier in shared memory"),
    "mbarrier.try_wait": ("mbarrier wait", "wait, for a while, on a barrier in shared memory"),
    "mbarrier.pending_count": ("mbarrier count", "arrivals that a barrier in shared memory still waits for"),
    "cp.async": ("async copy", "asynchronous copy"),
    "cp.async.commit_group": ("async copy commit", "asynchronous copies so far closed into a group"),
    "cp.async.wait_group": ("async copy wait", "wait until at most a number of copy groups is open"),
    "cp.async.wait_all": ("async copy wait", "wait for all asynchronous copies"),
    "cp.async.mbarrier.arrive": ("mbarrier arrive", "arrival at a barrier once this thread's copies are done"),
    "cp.async.bulk": ("bulk copy", "bulk copy by the copy engine"),
    "cp.async.bulk.tensor": ("tensor copy", "tensor copy by the copy engine (TMA)"),
    "cp.async.bulk.prefetch": ("prefetch", "bulk prefetch"),
    "cp.async.bulk.prefetch.tensor": ("prefetch", "tensor prefetch by the copy engine (TMA)"),
    "cp.async.bulk.commit_group": ("bulk copy commit", "bulk copies so far closed into a group"),
    "cp.async.bulk.wait_group": ("bulk copy wait", "wait until at most a number of bulk groups is open"),
    "cp.reduce.async.bulk": ("bulk reduction", "bulk reduction by the copy engine"),
    "cp.reduce.async.bulk.tensor": ("tensor reduction", "tensor reduction by the copy engine (TMA)"),
    "griddepcontrol.wait": ("grid wait", "wait until the grids this one depends on have finished and flushed"),
    "griddepcontrol.launch_dependents": ("grid release", "leave for the dependent grid to start"),
    "clusterlaunchcontrol.try_cancel": ("work request", "request for the next block's work"),
    "clusterlaunchcontrol.query_cancel": ("work request", "answer to a request for the next block's work"),
    "elect.sync": ("election", "one thread of the warp elected"),
    "vote.sync": ("warp vote", "vote of the warp"),
    "vote": ("warp vote", "vote of the warp"),
    "match": ("warp vote", "threads of the warp with an equal value"),
    "activemask": ("warp vote", "mask of the warp's active threads"),
    "shfl": ("warp shuffle", "exchange of registers within the warp"),
    "redux": ("warp reduction", "reduction over the warp"),
    "setmaxnreg": ("register budget", "registers of the warp given up or taken"),
    "nanosleep": ("sleep", "pause of some nanoseconds"),
    "ldmatrix": ("matrix load", "8x8 matrices loaded from shared memory by the warp"),
    "stmatrix": ("matrix store", "8x8 matrices stored to shared memory by the warp"),
    "movmatrix": ("matrix move", "8x8 matrix transposed across the warp"),
    "mma": ("matrix multiply", "matrix multiply-accumulate of the warp"),
    "wmma": ("matrix multiply", "matrix operation of the warp"),
    "wgmma.mma_async": ("matrix multiply", "asynchronous matrix multiply-accumulate of four warps"),
    "wgmma.fence": ("matrix fence", "registers and shared memory ordered before a matrix multiply"),
    "wgmma.commit_group": ("matrix commit", "matrix multiplies so far closed into a group"),
    "wgmma.wait_group": ("matrix wait", "wait until at most a number of matrix groups is open"),
    "tcgen05.mma": ("matrix multiply", "asynchronous matrix multiply-accumulate into tensor memory"),
    "tcgen05.alloc": ("tensor memory alloc", "tensor memory taken"),
    "tcgen05.dealloc": ("tensor memory free", "tensor memory given back"),
    "tcgen05.relinquish_alloc_permit": ("tensor memory alloc", "no more tensor memory will be taken by this block"),
    "tcgen05.ld": ("tensor memory load", "load from tensor memory into registers"),
    "tcgen05.st": ("tensor memory store", "store from registers into tensor memory"),
    "tcgen05.cp": ("tensor memory copy", "copy from shared memory into tensor memory"),
    "tcgen05.shift": ("tensor memory move", "rows of tensor memory moved"),
    "tcgen05.wait::ld": ("tensor memory wait", "wait for loads from tensor memory"),
    "tcgen05.wait::st": ("tensor memory wait", "wait for stores into tensor memory"),
    "tcgen05.wait": ("tensor memory wait", "wait for loads from or stores into tensor memory"),
    "tcgen05.fence::before_thread_sync": ("matrix fence", "tensor memory operations ordered before a synchronisation"),
    "tcgen05.fence::after_thread_sync": ("matrix fence", "tensor memory operations ordered after a synchronisation"),
    "tcgen05.commit": ("matrix commit", "a barrier told once the tensor memory operations so far are done"),
    "prefetch": ("prefetch", "prefetch"),
    "prefetchu": ("prefetch", "prefetch"),
    "discard": ("cache control", "cache line dropped without writing it back"),
    "applypriority": ("cache control", "cache priority changed"),
    "createpolicy": ("cache control", "L2 policy made"),
    "tensormap.replace": ("tensor map", "field of a tensor map replaced"),
    "tensormap.cp_fenceproxy": ("proxy fence", "tensor map copied and made visible to the copy engine"),
    "mapa": ("address", "address in the shared memory of another block of the cluster"),
    "setctarank": ("address", "address in the shared memory of another block of the cluster"),
    "getctarank": ("address", "block of the cluster that an address belongs to"),
    "cvta": ("address", "address turned between generic and a space"),
    "isspacep": ("address", "whether an address is in a space"),
    "cvt": ("conversion", "conversion"),
    "trap": ("trap", "kernel aborted"),
    "exit": ("exit", "thread ended"),
    "bra": ("branch", "branch"),
    "brkpt": ("trap", "breakpoint"),
}

#: Plain arithmetic and moves, by opcode.
ARITHMETIC: dict[str, str] = {
    **dict.fromkeys(
        "add sub mul mad fma div rem neg abs min max sqrt rsqrt rcp dp2a dp4a sad mul24 mad24".split(), "arithmetic"
    ),
    **dict.fromkeys("addc subc madc".split(), "arithmetic"),
    **dict.fromkeys("ex2 lg2 sin cos tanh copysign testp".split(), "arithmetic"),
    **dict.fromkeys(
        "and or xor not cnot shl shr shf lop3 prmt bfe bfi popc clz brev bfind fns szext bmsk".split(), "bits"
    ),
    **dict.fromkeys("set setp selp slct".split(), "comparison"),
    **dict.fromkeys(("mov",), "move"),
    **dict.fromkeys(
        "vadd vsub vabsdiff vmin vmax vset vadd4 vsub4 vabsdiff4 vmin4 vmax4 vset4 vadd2 vsub2".split(), "arithmetic"
    ),
}

#: Instructions of AMD's GPUs, by how their names begin: ``(beginning, what, phrase)``, the first that fits counts.
AMD: tuple[tuple[str, str, str], ...] = (
    ("s_waitcnt", "wait", "wait until at most a number of memory operations is open"),
    ("s_wait_", "wait", "wait until at most a number of memory operations is open"),
    ("s_barrier_signal", "barrier arrive", "barrier of the block: arrive without waiting"),
    ("s_barrier", "barrier", "barrier of the block"),
    ("s_sleep", "sleep", "pause"),
    ("s_nop", "move", "pause of some cycles"),
    ("buffer_load", "load", "load"),
    ("global_load", "load", "load"),
    ("flat_load", "load", "load"),
    ("ds_read", "load", "load from shared memory"),
    ("ds_load", "load", "load from shared memory"),
    ("buffer_store", "store", "store"),
    ("global_store", "store", "store"),
    ("flat_store", "store", "store"),
    ("ds_write", "store", "store to shared memory"),
    ("ds_store", "store", "store to shared memory"),
    ("buffer_atomic", "atomic", "atomic"),
    ("global_atomic", "atomic", "atomic"),
    ("buffer_wbl2", "cache control", "L2 written back"),
    ("buffer_inv", "cache control", "caches invalidated"),
    ("buffer_gl", "cache control", "caches invalidated"),
    ("v_mfma", "matrix multiply", "matrix multiply-accumulate of the wave"),
    ("v_wmma", "matrix multiply", "matrix multiply-accumulate of the wave"),
    ("v_cvt", "conversion", "conversion"),
    ("v_mov", "move", "move"),
    ("s_mov", "move", "move"),
    ("v_cmp", "comparison", "comparison"),
    ("v_", "arithmetic", "arithmetic"),
    ("s_", "arithmetic", "arithmetic"),
)
