"""Who owns what: resources with the ways out that release them, lifetimes, globals, and functions with C linkage."""

from __future__ import annotations

import pytest

from opwalker.model.walk import Ownership
from opwalker.notation.families import acquired, released
from opwalker.views.entries import EntryView
from tests.trees import tree
from tests.views.miniatures import SOURCE, line_of


def owned(text: str, name: str = "f") -> Ownership:
    """What the walk of a function of one file owns."""
    return EntryView(tree({"a.cpp": text}), SOURCE).walk(name).ownership


ARENA = """#include <Python.h>
extern "C" {
int last_error = 0;
char last_text[64];
static PyObject* hook = nullptr;
#define TRY(call) \\
  do { \\
    int status = call; \\
    if (status != 0) { last_error = status; snprintf(last_text, 64, "%d", status); } \\
  } while (0)

void fill(void* at, size_t n) {
  TRY(cuMemMap(at, n, 0, 0, 0));
}

void* f(size_t n) {
  CUdeviceptr base;
  TRY(cuMemAddressReserve(&base, n, 0, 0, 0));
  if (last_error != 0) {
    return nullptr;
  }
  if (!hook) {
    return nullptr;
  }
  auto state = PyGILState_Ensure();
  PyObject* told = PyObject_CallFunctionObjArgs(hook, nullptr);
  if (!told) {
    return nullptr;
  }
  PyGILState_Release(state);
  fill((void*)base, n);
  if (last_error != 0) {
    cuMemAddressFree(base, n);
    return nullptr;
  }
  return (void*)base;
}

void undo(void* at, size_t n) {
  cuMemUnmap(at, n);
  cuMemAddressFree(at, n);
}

void set_hook(PyObject* given) { hook = given; }
}
"""


def line(piece: str, nth: int = 1) -> int:
    at = -1
    for _ in range(nth):
        at = ARENA.index(piece, at + 1)
    return ARENA.count("\n", 0, at) + 1


def test_a_resource_is_followed_to_every_way_out() -> None:
    base = owned(ARENA).resources[0]
    assert (base.kind, base.holder, base.line) == ("virtual address range", "base", line("TRY(cuMemAddressReserve"))
    assert [(use.line, use.under) for use in base.releases] == [(line("cuMemAddressFree"), ("last_error is not 0",))]
    # The way out behind the failed reservation releases nothing and owns nothing.
    assert [(path.line, path.released_at, path.handed) for path in base.paths] == [
        (line("return nullptr", 2), None, False),
        (line("return nullptr", 3), None, False),
        (line("return nullptr", 4), line("cuMemAddressFree"), False),
        (line("return (void*)base"), None, True),
    ]
    assert base.goes_to == (
        f"returned to the caller (:{line('return (void*)base')})",
        f"passed to fill (:{line('fill((')})",
    )
    assert [(use.function, use.line) for use in base.elsewhere] == [("undo", line("cuMemAddressFree", 2))]


def test_the_interpreter_lock_is_paired_on_each_way_out() -> None:
    (state,) = [one for one in owned(ARENA).resources if one.kind == "GIL state"]
    assert [(path.line, path.released_at) for path in state.paths] == [
        (line("return nullptr", 3), None),
        (line("return nullptr", 4), line("PyGILState_Release")),
        (line("return (void*)base"), line("PyGILState_Release")),
    ]
    assert state.elsewhere == ()


def test_what_a_called_function_acquires_for_its_caller() -> None:
    (mapped,) = [one for one in owned(ARENA).resources if one.kind == "mapping"]
    assert (mapped.function, mapped.holder) == ("fill", "at")
    assert mapped.goes_to == ("in parameter at, which the caller passes",)
    assert [use.function for use in mapped.elsewhere] == ["undo"]


def test_an_error_that_a_macro_records_in_a_global() -> None:
    found = {one.name: one for one in owned(ARENA).globals}
    error = found["last_error"]
    assert [(use.function, use.text, use.under) for use in error.written] == [
        ("fill", "last_error = status in TRY", ("status is not 0",)),
        ("f", "last_error = status in TRY", ("status is not 0",)),
    ]
    assert [use.line for use in error.tested] == [line("if (last_error", 1), line("if (last_error", 2)]
    assert [use.function for use in found["last_text"].written] == ["fill", "f"]
    assert [(use.function, use.text) for use in found["hook"].written] == [("set_hook", "hook = given")]


def test_nothing_is_raised_across_c_linkage() -> None:
    (boundary,) = owned(ARENA).boundaries
    assert (boundary.function, boundary.raises, boundary.followed) == ("f", (), 2)


def test_what_is_raised_across_c_linkage_and_what_is_caught() -> None:
    text = """void inner(int n) { if (n < 0) throw std::runtime_error("n"); }
extern "C" int f(int n) {
  try { inner(n); TORCH_CHECK(n < 9); } catch (...) { return -1; }
  TORCH_CHECK(n > 1);
  return 0;
}
"""
    (boundary,) = owned(text).boundaries
    assert [(use.function, use.text, use.line) for use in boundary.raises] == [
        ("f", "TORCH_CHECK", 4),
        ("inner", "std::runtime_error", 1),
    ]
    assert boundary.caught == (3,)


def test_cplusplus_linkage_has_no_boundary() -> None:
    assert owned("void f() { throw 1; }").boundaries == ()


HOLDERS = """class Peers {
 public:
  // Peers does not own the memory behind a handle. Its maker frees it.
  char* open(const void* handle) {
    auto [it, fresh] = opened_.insert({key(handle), nullptr});
    if (fresh) {
      char* mapped;
      cudaIpcOpenMemHandle((void**)&mapped, handle, 0);
      it->second = mapped;
    }
    return it->second;
  }
  void use(int n) { n_ = n; }
  ~Peers() {
    for (auto [_, mapped] : opened_) {
      cudaIpcCloseMemHandle(mapped);
    }
  }
  std::map<int, char*> opened_;
  int n_;
};
long f(long made) { auto peers = reinterpret_cast<Peers*>(made); peers->use(2); return 0; }
long room(long size) {
  void* p;
  cudaMalloc(&p, size);
  return reinterpret_cast<long>(p);
}
void leave(long p) { cudaFree(reinterpret_cast<void*>(p)); }
long look(const void* handle) {
  void* seen;
  cudaIpcOpenMemHandle(&seen, handle, 0);
  return reinterpret_cast<long>(seen);
}
"""


def test_who_has_what_other_calls_acquire() -> None:
    found = owned(HOLDERS)
    assert [(one.function, one.kept_in, [use.function for use in one.released]) for one in found.holdings] == [
        ("Peers::open", "opened_", ["Peers::~Peers"]),
        ("room", None, ["leave"]),
        ("look", None, []),
    ]
    assert [(name, use.function) for name, use in found.holdings[2].others] == [("opened_", "Peers::~Peers")]


def test_the_words_of_the_source_on_owning() -> None:
    (words,) = owned(HOLDERS).words
    assert words.text == "Peers does not own the memory behind a handle. Its maker frees it."
    assert words.line == line_of(HOLDERS, "does not own")
    assert owned(HOLDERS.replace("does not own the", "has its own")).words == ()


POOL = """class Pool {
 public:
  void* open(const void* handle) {
    void* p;
    cudaIpcOpenMemHandle(&p, handle, 0);
    slots_.first = p;
    return p;
  }
  void use(int n) { n_ = n; }
  ~Pool() { cudaIpcCloseMemHandle(slots_.first); }
  int n_;
};
long f(long made, int n) { auto pool = reinterpret_cast<Pool*>(made); pool->use(n); return 0; }
long make() { return (long) new Pool(); }
void drop(long made) { delete reinterpret_cast<Pool*>(made); }
"""


def test_what_other_calls_on_the_same_file_and_class_own() -> None:
    found = owned(POOL)
    assert found.resources == ()
    assert [(use.function, use.text.split(":")[0], use.line) for use in found.beside] == [
        ("Pool::open", "acquires IPC mapping", 5),
        ("Pool::~Pool", "releases IPC mapping", 10),
        ("make", "acquires object", 14),
        ("drop", "releases object", 15),
    ]


@pytest.mark.parametrize(
    ("code", "kind", "name", "lines"),
    [
        ("std::lock_guard<std::mutex> held(m);\ng();", "lock", "held", (2, 4)),
        ("{\nconst c10::cuda::CUDAGuard guard(x.device());\ng();\n}\ng();", "guard", "guard", (3, 5)),
        ("auto guard = at::cuda::CUDAGuard(0);", "guard", "guard", (2, 3)),
        ("if (n) {\npy::gil_scoped_release free;\n}", "interpreter lock", "free", (3, 4)),
        ("std::unique_ptr<int> p(new int(3));", "pointer", "p", (2, 3)),
        ("Closing c(n);", "object", "c", (2, 3)),
    ],
)
def test_how_long_an_object_lives(code: str, kind: str, name: str, lines: tuple[int, int]) -> None:
    text = f"void f(int n) {{\n{code}\n}}\nstruct Closing {{ Closing(int n); ~Closing() {{ end(); }} }};\n"
    (found,) = owned(text).lifetimes
    assert (found.kind, found.name, (found.line, found.end_line)) == (kind, name, lines)


@pytest.mark.parametrize("code", ["CUDAGuard* guard = nullptr;", "std::mutex m;", "Open o(n);", "auto& held = lock();"])
def test_what_ends_nothing_with_its_scope(code: str) -> None:
    assert owned(f"struct Open {{ int n; }};\nvoid f(int n) {{ {code} }}\n").lifetimes == ()


@pytest.mark.parametrize(
    ("code", "kind", "holder", "released_on"),
    [
        ("void* p = malloc(n); if (!p) return; free(p);", "host memory", "p", [True]),
        ("void* p; if (cudaMalloc(&p, n)) { return; } cudaFree(p);", "device memory", "p", [True]),
        ("float* p = new float[4]; if (n) return; delete[] p;", "object", "p", [False, True]),
        ("float* p = new float[4];\nif (n > 2) g();\nif (n) return; delete[] p;", "object", "p", [False, True]),
        ("auto* fp = fopen(a, b);\ng();\nif (n) { fclose(fp); return; } fclose(fp);", "file", "fp", [True, True]),
        ("cudaEvent_t e; cudaEventCreate(&e); cudaEventDestroy(e);", "event", "e", [True]),
    ],
)
def test_ways_out(code: str, kind: str, holder: str, released_on: list[bool]) -> None:
    (found,) = owned(f"void f(int n) {{\n{code}\n}}\n").resources
    assert (found.kind, found.holder) == (kind, holder)
    assert [path.released_at is not None for path in found.paths] == released_on


def test_an_owner_of_the_standard_library_is_no_resource_of_its_own() -> None:
    found = owned("void f() { std::unique_ptr<T> p(new T()); auto q = std::shared_ptr<T>(new T()); r.reset(new T()); }")
    assert found.resources == ()


def test_static_locals() -> None:
    (found,) = owned("int f() { static int calls = 0; calls = calls + 1; return calls; }").globals
    assert (found.kind, found.name, [use.text for use in found.written]) == (
        "static local",
        "calls",
        ["calls = calls + 1"],
    )


def test_families_do_not_overlap_where_it_would_matter() -> None:
    assert acquired("cudaMallocHost").kind == "pinned host memory"
    assert acquired("cudaMallocAsync").kind == "device memory"
    assert acquired("cudaMemcpy") is None
    assert [family.kind for family in released("cudaFreeHost")] == ["pinned host memory"]


def test_a_member_is_released_where_a_release_names_it() -> None:
    text = """class Pool {
 public:
  Pool(int n) { cudaMalloc(&first_, n); cudaMalloc(&second_, n); cudaMallocHost(&third_, n); }
  void stop() { cudaFree(first_); cudaFreeHost(fourth_); }
  void* first_; void* second_; void* third_; void* fourth_;
};
"""
    held = owned(text, "Pool").resources
    assert [(one.holder, one.named, [use.text for use in one.elsewhere]) for one in held] == [
        ("first_", True, ["cudaFree(first_)"]),
        ("second_", False, ["cudaFree(first_)"]),
        ("third_", False, ["cudaFreeHost(fourth_)"]),
    ]


@pytest.mark.parametrize(
    ("head", "call", "said"),
    [
        ("", "free(data_);", ["releases host memory: free(data_)"]),
        ("", "std::free(data_);", ["releases host memory: std::free(data_)"]),
        # A function of the project releases what it hands on, whatever its name is.
        ("namespace heap { void free(void* p) { nvshmem_free(p); } }\n", "heap::free(data_);",
         ["releases symmetric device memory: heap::free(data_)"]),
        ("namespace heap { void free(void* p) { cudaFree(p); } }\n", "heap::free(data_);",
         ["releases device memory: heap::free(data_)"]),
        ("namespace heap { void free(void* p) { remember(p); } }\n", "heap::free(data_);", []),
        ("", "heap::free(data_);", []),
        ("", "heap.free(data_);", []),
    ],
)  # fmt: skip
def test_a_functions_own_namespace_tells_it_from_one_of_the_c_library(head: str, call: str, said: list[str]) -> None:
    methods = f"void use() {{ run(data_); }}\n  void drop() {{ {call} }}\n"
    text = f"{head}class Holder {{\n public:\n  {methods}  void* data_;\n}};\n"
    found = owned(f"{text}void f(Holder& one) {{ one.use(); }}\n")
    assert [use.text for use in found.beside if use.function == "Holder::drop"] == said
