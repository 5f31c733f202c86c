"""Synchronisation points of a walk: flags with order and scope, barriers, locks, streams, and what each protects."""

from __future__ import annotations

import pytest

from opwalker.model.walk import SyncPoint, Walk
from opwalker.views.entries import EntryView
from tests.trees import tree
from tests.views.miniatures import SOURCE, line_of, walk_of
from tests.views.notes_text import section
from tests.views.test_notes import note_of

FLAGS = """#include <torch/library.h>
#define INLINE __device__ __forceinline__
namespace mini {

// One set of marks to begin with and one to end with:
// a fast device may already be at the end.
struct Marks {
  alignas(128) unsigned begin[8];
  alignas(128) unsigned finish[8];
  alignas(64) unsigned round;  // counts up
};

static INLINE void put(unsigned* mark, unsigned v) {
#if __CUDA_ARCH__ >= 700
  asm volatile("st.release.sys.global.u32 [%1], %0;" ::"r"(v), "l"(mark));
#else
  asm volatile("membar.sys; st.volatile.global.u32 [%1], %0;" ::"r"(v), "l"(mark));
#endif
}
static INLINE unsigned get(unsigned* mark) {
  unsigned v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(mark));
  return v;
}
static INLINE void put_plain(unsigned* mark, unsigned v) {
  asm volatile("st.volatile.global.u32 [%1], %0;" ::"r"(v), "l"(mark));
}

template <bool last = false>
INLINE void meet(Marks** all, Marks* own, int rank) {
  unsigned round = own->round + 1;
  if (threadIdx.x < 8) {
    auto there = &all[threadIdx.x]->finish[rank];
    if constexpr (!last) {
      put(there, round);
      while (get(&own->finish[threadIdx.x]) != round);
    } else {
      put_plain(there, round);
    }
  }
  __syncthreads();
  own->round = round;
}

template <typename T>
__global__ void gather_kernel(T* out, const T* in, T* between, Marks** all, Marks* own, int rank, int n) {
  __shared__ float scale;
  if (threadIdx.x == 0) scale = 2.f;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) between[i] = in[i] * scale;
  meet(all, own, rank);
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = between[i];
  meet<true>(all, own, rank);
  atomicAdd(&own->begin[0], 1u);
}

}  // namespace mini

void gather(torch::Tensor& out, torch::Tensor& in, int64_t n) {
  static std::mutex guard;
  std::lock_guard<std::mutex> held(guard);
  buffers[n] = in.data_ptr();
  mini::gather_kernel<float><<<1, 128, 0, stream>>>(out.data_ptr<float>(), in.data_ptr<float>(), tmp, all, own, 0, n);
  cudaEventRecord(done, stream);
  cudaStreamSynchronize(stream);
}
TORCH_LIBRARY(mini, ops) {
  ops.def("gather(Tensor! out, Tensor input, int n) -> ()");
  ops.impl("gather", torch::kCUDA, &gather);
}
"""


def walked() -> Walk:
    return walk_of(FLAGS, "mini::gather")


def at(points: tuple[SyncPoint, ...], piece: str, kind: str | None = None) -> list[SyncPoint]:
    line = line_of(FLAGS, piece)
    return [p for p in points if p.line == line and kind in (None, p.kind)]


def test_a_flag_store_is_named_where_the_flag_is() -> None:
    kinds = {p.kind: p for p in at(walked().synchronisation, "put(there, round)")}
    assert set(kinds) == {"release_store", "fence", "volatile_store"}
    point = kinds["release_store"]
    assert (point.text, point.order, point.scope) == ("st.release.sys.global.u32", "release", "system")
    assert (point.flag, point.member) == ("&all[threadIdx.x]->finish[rank]", "mini::Marks::finish")
    assert (point.through, point.at.line) == ("mini::put", line_of(FLAGS, '"st.release'))
    assert (point.function, point.value) == ("mini::meet", "round = own->round + 1")
    assert (point.under, point.condition) == (("!last",), "__CUDA_ARCH__ >= 700")
    assert kinds["volatile_store"].condition == "!(__CUDA_ARCH__ >= 700)"
    assert point.kernels == ("mini::gather_kernel",)


def test_which_threads_reach_a_point_is_said() -> None:
    body = """  const int lane = threadIdx.x % 32;
  if (lane == 0) { if (n > 3) { __threadfence(); } } else { __syncwarp(); }
  __syncthreads();"""
    text = f"__global__ void k(int* p, int n) {{\n{body}\n}}\n"
    walk = EntryView(tree({"k.cu": text}), SOURCE).walk("k")
    assert {point.text: point.threads for point in walk.synchronisation} == {
        "__threadfence()": ("lane == 0",),
        "__syncwarp()": ("lane != 0",),
        "__syncthreads()": (),
    }
    note = note_of(walk, "cuda")
    assert "  Done where `lane == 0`." in section(note, "synchronisation")


def test_a_wait_for_a_flag_spins() -> None:
    (point,) = at(walked().synchronisation, "while (get(")
    assert (point.kind, point.spins, point.member) == ("acquire_load", True, "mini::Marks::finish")


def test_order_says_which_side_it_protects() -> None:
    points = walked().synchronisation
    release = at(points, "put(there, round)", "release_store")[0]
    assert release.protects == "in gather_kernel, before it: reads in, writes between"
    (acquire,) = at(points, "while (get(")
    assert acquire.protects == "in gather_kernel, after it: reads between, writes out"
    (plain,) = at(points, "put_plain(there")
    assert (plain.kind, plain.protects, plain.under) == ("volatile_store", None, ("last",))


def test_a_function_of_flags_is_a_barrier_of_its_caller() -> None:
    (first,) = at(walked().synchronisation, "meet(all, own, rank);")
    assert (first.kind, first.scope, first.through) == ("flag_barrier", "system", "mini::meet")
    assert first.protects == "before it: reads in, writes between; after it: reads between, writes out"


def test_a_block_barrier_hands_shared_memory_over() -> None:
    points = [p for p in walked().synchronisation if p.kind == "barrier" and p.function == "mini::gather_kernel"]
    assert [(p.protects, p.scope) for p in points] == [("scale", "block")]


def test_an_atomic_touches_its_member() -> None:
    (point,) = at(walked().synchronisation, "atomicAdd(&own->begin")
    assert (point.kind, point.order, point.scope, point.member) == ("atomic", "relaxed", "gpu", "mini::Marks::begin")


def test_the_structure_of_flags() -> None:
    (one,) = walked().flags
    assert (one.name, one.line) == ("mini::Marks", line_of(FLAGS, "struct Marks"))
    assert one.comment == "One set of marks to begin with and one to end with: a fast device may already be at the end."
    assert [(m.name, m.alignment, m.comment) for m in one.members] == [
        ("begin", 128, None),
        ("finish", 128, None),
        ("round", 64, "counts up"),
    ]
    finish = one.members[1]
    assert finish.stored_in == ("mini::meet: release_store", "mini::meet: volatile_store")
    assert finish.loaded_in == ("mini::meet: acquire_load",)


def test_the_host_side_comes_first() -> None:
    host = [p for p in walked().synchronisation if p.function == "gather"]
    assert [p.kind for p in host] == ["lock", "event_record", "stream_sync"]
    assert host[0].protects == "buffers"
    assert walked().synchronisation[:3] == tuple(host)


def test_a_kernel_by_itself_has_them_too() -> None:
    found = EntryView(tree({"a.cu": FLAGS}), SOURCE).walk("mini::gather_kernel")
    assert {"flag_barrier", "barrier", "release_store", "atomic"} <= {p.kind for p in found.synchronisation}
    assert found.flags


GROUPS = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void all_kernel(int* n, volatile int* flag, cuda::atomic<int, cuda::thread_scope_device>* count) {
  auto grid = cg::this_grid();
  grid.sync();
  cg::this_thread_block().sync();
  cuda::atomic_ref<int, cuda::thread_scope_system> ref(*n);
  ref.store(1, cuda::memory_order_release);
  while (*flag == 0);
  asm volatile("barrier.cluster.arrive.relaxed.aligned;");
  __threadfence();
}
"""


def test_groups_references_and_volatile_accesses() -> None:
    found = EntryView(tree({"a.cu": GROUPS}), SOURCE).walk("all_kernel")
    assert [(p.kind, p.scope, p.flag, p.spins) for p in found.synchronisation] == [
        ("grid_barrier", "gpu", None, False),
        ("barrier", "block", None, False),
        ("release_store", "system", "*n", False),
        ("volatile_load", None, "flag", True),
        ("cluster_arrive", "cluster", None, False),
        ("fence", "gpu", None, False),
    ]


LOAD = """static __device__ int ld_acquire(int* p) {
  int v;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}
"""
ASM = 'asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(state) : "l"(lock));'


@pytest.mark.parametrize(
    ("code", "spins"),
    [
        # Around the load, whatever the loop's form is.
        (f"int state = -1; do {ASM} while (state != n);", [True]),
        (f"int state = -1; do {{ __nanosleep(20); {ASM} }} while (state < 0);", [True]),
        (f"int state = -1; while (state != n) {{ {ASM} }}", [True]),
        (f"int state; while (true) {{ {ASM} if (state == n) break; }}", [True]),
        ("while (true) { int state = ld_acquire(lock); if (state == n) break; }", [True]),
        ("int state; do { state = ld_acquire(lock); } while (state != n);", [True]),
        ("do { } while (ld_acquire(lock) != n);", [True]),
        ("while (true) { int state = ld_acquire(lock); if (state == n) { out[0] = state; break; } }", [True]),
        ("while (true) { auto left = n - ld_acquire(&lock[1]); if (left < 8) break; if (n < 0) trap(); }", [True]),
        ("for (int i = 0; i < 9; i++) { int state = ld_acquire(lock + 1); if (state == n) return; }", [True]),
        # Another address each round, nothing that asks about it, or a loop that works.
        ("for (int i = 0; i < n; i++) { int state = ld_acquire(lock + i); if (state == n) break; }", [False]),
        ("for (int i = 0; i < n; i++) { int state = ld_acquire(lock); take(state); }", [False]),
        ("while (true) { int state = ld_acquire(lock); if (n == 0) break; }", [False]),
        ("while (true) { int state = ld_acquire(lock); if (state == n) break; out[state] = 1; }", [False]),
        ("while (true) { int state = ld_acquire(lock); if (state == n) break; work(state); }", [False]),
        ("while (true) { int task = atomicAdd(lock, 1); if (task >= n) break; }", [False]),
        ("if (n > 0) { int state = ld_acquire(lock); }", [False]),
    ],
)
def test_loops_that_wait_for_what_they_read(code: str, spins: list[bool]) -> None:
    text = f"{LOAD}__global__ void k(int* lock, int* out, int n) {{ {code} }}\n"
    found = EntryView(tree({"a.cu": text}), SOURCE).walk("k")
    assert [point.spins for point in found.synchronisation] == spins


RED = 'asm volatile("red.relaxed.gpu.global.add.s32 [%0], %1;" :: "l"(lock), "r"(n));'


@pytest.mark.parametrize(
    ("code", "stored"),
    [
        (f"if (n == 0) {{ lock[0] = 0; return; }} __threadfence(); {RED}", [("lock[0] = 0", "lock", "0")]),
        (f"__threadfence(); {RED} *lock = n;", [("*lock = n", "lock", "n")]),
        ("while (ld_acquire(lock + n) == 0); lock[n] = 0;", [("lock[n] = 0", "&lock[n]", "0")]),
        ("while (ld_acquire(&lock[n]) == 0); lock[n] = 0;", [("lock[n] = 0", "&lock[n]", "0")]),
        # Of another element, of memory that no order is asked of, or what is a flag's store already.
        ("while (ld_acquire(lock) == 0); lock[1] = 0;", []),
        ("while (ld_acquire(lock) == 0); out[0] = 0;", []),
        ("atomicAdd(&out[n], 1); out[n] = 0;", []),
        ("__threadfence(); __syncthreads(); atomicAdd(&out[n], 1); out[n] = 0;", []),
        ("volatile int* mark = lock; *mark = 0;", []),
        ("while (ld_acquire(lock) == 0); int held = lock[0]; lock[0] += held;", []),
    ],
)
def test_plain_stores_to_flags(code: str, stored: list[tuple[str, str, str]]) -> None:
    text = f"{LOAD}__global__ void k(int* lock, int* out, int n) {{ {code} }}\n"
    points = EntryView(tree({"a.cu": text}), SOURCE).walk("k").synchronisation
    assert [(p.text, p.flag, p.value) for p in points if p.kind == "plain_store"] == stored


def test_a_function_that_waits_and_then_stores_is_no_barrier_of_flags() -> None:
    text = LOAD + """static __device__ void take(int* lock) {
  int state;
  do { state = ld_acquire(lock); } while (state >= 0);
  atomicAdd(lock, 1);
  __syncthreads();
}
__global__ void k(int* lock) { take(lock); }
"""
    points = EntryView(tree({"a.cu": text}), SOURCE).walk("k").synchronisation
    assert [(p.kind, p.spins) for p in points] == [("acquire_load", True), ("atomic", False), ("barrier", False)]


def test_a_walk_without_any_says_nothing() -> None:
    found = EntryView(tree({"a.cu": "__global__ void k(int* n) { n[0] = 1; }\n"}), SOURCE).walk("k")
    assert (found.synchronisation, found.flags) == ((), ())


def test_a_device_function_by_itself_has_them_too() -> None:
    found = EntryView(tree({"a.cu": FLAGS}), SOURCE).walk("mini::meet")
    assert (found.entry.kind, found.entry.name) == ("function", "mini::meet")
    ((kernel,),) = [one.kernels for one in found.implementations]
    assert (kernel.name, kernel.kind) == ("mini::meet", "device")
    assert {"release_store", "acquire_load", "volatile_store", "barrier"} <= {p.kind for p in found.synchronisation}


TWO_WAYS = """#ifdef SAFE
#define LOAD "ld.volatile.global"
#define MEET() __syncthreads()
#define BOTH "membar.gl;"
#else
#define LOAD "ld.acquire.gpu.global"
#define MEET() __syncwarp()
#define BOTH "membar.gl;"
#endif
__device__ __forceinline__ int take(const int* p) {
  int r;
  asm volatile(LOAD ".s32 %0, [%1];" : "=r"(r) : "l"(p));
  return r;
}
__global__ void two(int* flag) {
  MEET();
  asm volatile(BOTH ::);
#if OTHER
  while (take(flag) == 0);
#endif
}
"""


def test_a_macro_with_several_definitions_is_told_with_each() -> None:
    found = EntryView(tree({"a.cu": TWO_WAYS}), SOURCE).walk("two")
    assert sorted((p.kind, p.condition, p.flag, p.spins) for p in found.synchronisation) == [
        ("acquire_load", "OTHER && !SAFE", "flag", True),
        ("fence", None, None, False),
        ("volatile_load", "OTHER && SAFE", "flag", True),
        ("warp_barrier", "!SAFE", None, False),
    ]
    ((kernel,),) = [one.kernels for one in found.implementations]
    read = {(one.text.split()[0], fact.condition) for fact in kernel.assembly for one in fact.instructions}
    assert read == {
        ("ld.acquire.gpu.global.s32", "OTHER && !SAFE"),
        ("ld.volatile.global.s32", "OTHER && SAFE"),
        ("membar.gl", None),
    }


OVERLOADS = """struct half; struct half2;
__device__ __forceinline__ void add_one(half* to, half v) {
  unsigned old = *(unsigned*)to;
  old = atomicCAS((unsigned*)to, old, old + 1);
}
__device__ __forceinline__ void add_pair(half2* to, half2 v) {
  unsigned old = *(unsigned*)to;
  old = atomicCAS((unsigned*)to, old, old + 2);
}
#if __CUDA_ARCH__ < 700
__device__ __forceinline__ void atomicAdd(half* to, half v) { add_one(to, v); }
__device__ __forceinline__ void atomicAdd(half2* to, half2 v) { add_pair(to, v); }
#endif
__global__ void k(half2* out, half2 v) {
  half2* here = out + threadIdx.x;
  atomicAdd(here, v);
}
"""


def test_an_overload_is_chosen_by_what_it_is_given() -> None:
    points = EntryView(tree({"k.cu": OVERLOADS}), SOURCE).walk("k").synchronisation
    assert [(one.through, one.value, one.condition) for one in points if one.through] == [
        ("add_pair", None, "__CUDA_ARCH__ < 700"),
    ]
    (direct,) = [one for one in points if not one.through]
    assert (direct.value, direct.condition) == ("v", None)


SHARED = ("s_h", "s_b", "s_f", "s_a", "s_g", "s_c", "s_e", "s_d")


def test_shared_variables_are_named_in_the_order_of_the_text() -> None:
    """Whatever the seed of hashes: what is named once more must be named as before."""
    declared = " ".join(f"__shared__ int {name};" for name in SHARED)
    text = f"""__global__ void k(int* out) {{
  {declared}
  out[0] = {" + ".join(SHARED)};
  __threadfence_block();
  out[1] = 0;
}}
"""
    (fence,) = [one for one in EntryView(tree({"k.cu": text}), SOURCE).walk("k").synchronisation if one.kind == "fence"]
    read = fence.protects.split("reads ")[1].split(", writes")[0].split(", ")
    assert len(read) > 2
    assert tuple(read) == SHARED[: len(read)]


CALLED_UNDER = """
__device__ __forceinline__ unsigned turned(unsigned x) { asm volatile("prmt.b32 %0, %0, 0, 1;" : "+r"(x)); return x; }
__device__ __forceinline__ unsigned packed(unsigned x) {
#if NARROW
  return turned(x);
#else
  return x;
#endif
}
__global__ void pack(unsigned* out) {
  out[0] = packed(out[0]);
  MORE
}
void run() { pack<<<1, 32>>>(nullptr); }
"""


@pytest.mark.parametrize(("more", "under"), [("", "NARROW"), ("out[1] = turned(out[1]);", None)])
def test_assembly_stands_under_the_conditions_of_every_call_that_leads_to_it(more: str, under: str | None) -> None:
    found = EntryView(tree({"a.cu": CALLED_UNDER.replace("MORE", more)}), SOURCE).walk("pack")
    kernels = [kernel for one in found.implementations for kernel in one.kernels]
    assert [fact.condition for kernel in kernels for fact in kernel.assembly] == [under]
