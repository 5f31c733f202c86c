"""Every op of a tree: definitions and implementations joined, over builds and files, with schemas and signatures."""

from __future__ import annotations

import pytest

from opwalker.errors import InputError
from opwalker.model.walk import Op, OpDef
from opwalker.views.names import find_op, last_part, nearest, spellings
from opwalker.views.ops import shown_condition
from tests.views.miniatures import LIBRARY, line_of, ops_of, walk_of

CLASSIC = """void f(int a) {}
TORCH_LIBRARY(ns, m) {
  m.def("f(int a, Tensor(a!) x, *, float? b=None) -> (Tensor, int)");
  m.impl("f", torch::kCUDA, &f);
}
"""


def test_definitions_and_implementations_are_one_op() -> None:
    ops, gaps, _ = ops_of(LIBRARY)
    (op,) = ops.values()
    assert (op.name, op.kind, op.schema) == (
        "mini::norm",
        "torch_library",
        "norm(Tensor! out, Tensor input, float eps) -> ()",
    )
    assert [(d.file, d.line) for d in op.defs] == [("csrc/bindings.cpp", 3)]
    (impl,) = op.impls
    assert (impl.key, impl.function, impl.file, impl.line, impl.certainty) == (
        "CUDA",
        "norm",
        "csrc/bindings.cpp",
        4,
        "proved",
    )
    assert (impl.host.file, impl.host.line) == ("csrc/norm.cu", line_of(LIBRARY["csrc/norm.cu"], "void norm("))
    assert not gaps


def test_arguments_of_the_schema() -> None:
    op = ops_of(CLASSIC)[0]["ns::f"]
    assert [(a.name, a.type, a.mutated, a.alias, a.optional, a.default, a.kwarg_only) for a in op.arguments] == [
        ("a", "int", False, None, False, None, False),
        ("x", "Tensor", True, "a!", False, None, False),
        ("b", "float?", False, None, True, "None", True),
    ]
    assert [r.type for r in op.returns] == ["Tensor", "int"]


def test_a_signature_speaks_where_no_schema_does() -> None:
    op = ops_of('int f(int a, float* b) { return 1; }\nTORCH_LIBRARY(ns, m) { m.def("f", &f); }\n')[0]["ns::f"]
    assert (op.schema, op.signature) == (None, "int f(int a, float* b)")


def test_a_schema_that_cannot_be_read_is_a_gap_and_its_op_is_listed() -> None:
    ops, gaps, _ = ops_of('TORCH_LIBRARY(ns, m) {\n  m.def("f(int a -> ()");\n}\n')
    assert list(ops) == ["ns::f"]
    assert [(g.kind, g.span.line) for g in gaps] == [("bad-schema", 2)]


def test_a_function_without_a_body_is_a_gap_and_its_op_is_listed() -> None:
    ops, gaps, _ = ops_of('TORCH_LIBRARY(ns, m) {\n  m.impl("f", torch::kCUDA, &missing);\n}\n')
    (impl,) = ops["ns::f"].impls
    assert (impl.function, impl.host) == ("missing", None)
    assert [(g.kind, g.span.line) for g in gaps] == [("no-body", 2)]
    assert "missing" in gaps[0].reason


def test_overloads_are_ops_of_their_own_and_the_default_one_is_the_op() -> None:
    text = """TORCH_LIBRARY(ns, m) {
  m.def("f.default(int a) -> ()");
  m.def("f.out(int a, Tensor! b) -> ()");
  m.impl("f", torch::kCUDA, &f);
}
"""
    ops = ops_of(text)[0]
    assert set(ops) == {"ns::f", "ns::f.out"}
    assert len(ops["ns::f"].impls) == 1


def test_host_functions_are_chosen_by_the_schema() -> None:
    text = (
        "void f(int a) {}\nvoid f(int a, int b) {}\n" + 'TORCH_LIBRARY(ns, m) { m.def("f(int a, int b) -> ()", &f); }\n'
    )
    (impl,) = ops_of(text)[0]["ns::f"].impls
    assert (impl.host.line, impl.certainty) == (2, "proved")


def test_host_functions_are_chosen_by_a_cast() -> None:
    text = (
        "void f(int a) {}\nvoid f(int a, int b) {}\n"
        'TORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, static_cast<void (*)(int)>(&f)); }\n'
    )
    (impl,) = ops_of(text)[0]["ns::f"].impls
    assert (impl.host.line, impl.certainty) == (1, "proved")


def test_a_function_that_several_definitions_fit_is_only_possible() -> None:
    files = {
        "a.cu": 'void f(int a);\nTORCH_LIBRARY(ns, m) { m.impl("f", torch::kCUDA, &f); }\n',
        "b.cu": "void f(int a) {}\n",
        "c.cu": "void f(int a) {}\n",
    }
    (impl,) = ops_of(files)[0]["ns::f"].impls
    assert impl.certainty == "possible"


def test_a_lambda_is_its_own_host() -> None:
    text = 'TORCH_LIBRARY(ns, m) {\n  m.impl("f", torch::kCUDA, [](int a) {\n    return a;\n  });\n}\n'
    (impl,) = ops_of(text)[0]["ns::f"].impls
    assert (impl.host.file, impl.host.line, impl.host.end_line) == ("a.cu", 2, 4)


BUILDS = {
    "a.cu": "void f(int a) {}\n",
    "b.cpp": """#ifdef USE_ROCM
TORCH_LIBRARY(ns, m) { m.def("f(int a) -> ()"); m.impl("f", torch::kCUDA, &f); }
#else
TORCH_LIBRARY(ns, m) { m.def("f(int b) -> ()"); m.impl("f", torch::kCUDA, &f); }
#endif
""",
    "c.cpp": 'void f_cpu(int a) {}\nTORCH_LIBRARY_IMPL(ns, CPU, m) { m.impl("f", f_cpu); }\n',
}
BUILDS_OF = {"a.cu": ("cuda", "rocm"), "b.cpp": ("cuda", "rocm"), "c.cpp": ("cpu",)}


@pytest.mark.parametrize(("build", "own", "other"), [("cuda", "b", "a"), ("rocm", "a", "b")])
def test_the_build_that_was_asked_for_speaks_first(build: str, own: str, other: str) -> None:
    op = ops_of(BUILDS, build=build, builds_of=BUILDS_OF)[0]["ns::f"]
    assert op.schema == f"f(int {own}) -> ()"
    assert [(d.builds, d.condition, d.schema) for d in op.defs] == [
        ((build,), "!USE_ROCM" if build == "cuda" else "USE_ROCM", None),
        (
            ("rocm",) if build == "cuda" else ("cuda",),
            "USE_ROCM" if build == "cuda" else "!USE_ROCM",
            f"f(int {other}) -> ()",
        ),
    ]
    assert [(i.key, i.builds) for i in op.impls if i.key == "CPU"] == [("CPU", ("cpu",))]


def test_the_builds_of_a_place_without_a_target() -> None:
    text = '#ifdef USE_ROCM\nTORCH_LIBRARY(ns, m) { m.def("f() -> ()"); }\n#endif\n'
    (made,) = ops_of(text)[0]["ns::f"].defs
    assert made.builds == ("rocm",)
    (made,) = ops_of(text.replace("ifdef USE_ROCM", "if 1"))[0]["ns::f"].defs
    assert made.builds is None


def test_an_op_of_two_libraries_is_told_apart_by_its_namespace() -> None:
    text = 'TORCH_LIBRARY(one, m) { m.def("f() -> ()"); }\nTORCH_LIBRARY(two, m) { m.def("f() -> ()"); }\n'
    assert set(ops_of(text)[0]) == {"one::f", "two::f"}


def test_a_method_that_the_bound_class_inherits() -> None:
    text = (
        "struct Base { void run(int a) {} };\nstruct Buffer : public Base {};\n"
        'PYBIND11_MODULE(mod, m) { py::class_<Buffer>(m, "Buffer").def("run", &Buffer::run); }\n'
    )
    (impl,) = ops_of(text)[0]["mod.Buffer.run"].impls
    assert (impl.host.line, impl.function) == (1, "Buffer::run")


CONSTRUCTED = """
struct Row { int width = 4; };
struct Plan {
  Plan
  (
    int rows
  ) : rows_(rows) {}
  Plan(int rows, int columns) {}
  int rows_;
};
"""


@pytest.mark.parametrize(("taken", "line"), [("int", 4), ("int, int", 8)])
def test_a_bound_constructor_is_the_one_that_takes_as_many(taken: str, line: int) -> None:
    bound = f'PYBIND11_MODULE(mod, m) {{ py::class_<Plan>(m, "Plan").def(py::init<{taken}>()); }}\n'
    (impl,) = ops_of(CONSTRUCTED + bound)[0]["mod.Plan.__init__"].impls
    assert (impl.host.line, impl.certainty) == (line, "proved")


def test_a_constructor_that_the_compiler_makes_is_no_missing_body() -> None:
    bound = 'PYBIND11_MODULE(mod, m) { py::class_<Row>(m, "Row").def(py::init<>()); }\n'
    ops, gaps, _ = ops_of(CONSTRUCTED + bound)
    assert (ops["mod.Row.__init__"].impls[0].host, gaps) == (None, ())
    (gap,) = walk_of(CONSTRUCTED + bound, "mod.Row.__init__").gaps
    assert gap.reason == "Row (a.cu:2) has no constructor of its own: one that the compiler makes runs"


def test_a_lambda_that_a_macro_writes_is_said_to_be_one() -> None:
    text = (
        '#define HANDLES(m) m.def("of_device", [](int n) { return n; })\nPYBIND11_MODULE(mod, m) {\n  HANDLES(m);\n}\n'
    )
    ops, gaps, _ = ops_of(text)
    assert ops["mod.of_device"].impls[0].host is None
    assert [g.reason for g in gaps] == ["mod.of_device: a lambda that a macro writes is bound here: it is not followed"]


def test_a_block_that_includes_its_calls_sees_for_them() -> None:
    files = {
        "plan.h": CONSTRUCTED,
        "plan_bind.h": 'py::class_<Plan>(m, "Plan").def(py::init<int>());\n',
        "module.cpp": '#include "plan.h"\nPYBIND11_MODULE(mod, m) {\n  #include "plan_bind.h"\n}\n',
    }
    (impl,) = ops_of(files)[0]["mod.Plan.__init__"].impls
    assert (impl.host.file, impl.host.line) == ("plan.h", 4)


def test_ops_are_sorted_by_name() -> None:
    text = 'TORCH_LIBRARY(ns, m) { m.def("b() -> ()"); m.def("a() -> ()"); m.def("c.x() -> ()"); }\n'
    ops, _, _ = ops_of(text)
    assert list(ops) == ["ns::a", "ns::b", "ns::c.x"]


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        ((), None),
        (("defined(A)",), "A"),
        (("!defined(A)",), "!A"),
        (("defined(A)", "B > 3"), "A && B > 3"),
        (("!(A)",), "!A"),
    ],
)
def test_conditions_as_they_are_shown(terms: tuple[str, ...], text: str | None) -> None:
    assert shown_condition(terms) == text


# -- names that a user types ------------------------------------------------------------------------------------------

NAMES = ("_C::norm", "_C::rope", "_moe_C::topk", "_C::copy.out", "_C::copy.in", "mod.Buffer.run", "mod.sub.f")


def op_of(name: str) -> Op:
    return Op(name, "torch_library", None, defs=(OpDef("a.cpp", 1, builds=("cuda",)),))


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("_C::norm", "_C::norm"),
        ("norm", "_C::norm"),
        ("torch.ops._C.norm", "_C::norm"),
        ("torch.ops._C.norm.default", "_C::norm"),
        ("torch.ops._C.copy.out", "_C::copy.out"),
        ("_C::copy.out", "_C::copy.out"),
        ("_C::norm.default", "_C::norm"),
        ("topk", "_moe_C::topk"),
        ("mod.Buffer.run", "mod.Buffer.run"),
        ("Buffer.run", "mod.Buffer.run"),
        ("run", "mod.Buffer.run"),
        ("f", "mod.sub.f"),
    ],
)
def test_spellings_of_a_name(typed: str, wanted: str) -> None:
    assert find_op(NAMES, typed, "cuda", op_of).name == wanted


@pytest.mark.parametrize("typed", ["nor", "_X::norm", "torch.ops._C.missing", "", "x.run"])
def test_names_that_mean_nothing(typed: str) -> None:
    assert find_op(NAMES, typed, "cuda", op_of) is None


def test_an_ambiguous_name_names_its_candidates() -> None:
    with pytest.raises(InputError) as caught:
        find_op(("a::f", "b::f"), "f", "cuda", op_of)
    assert "a::f" in str(caught.value) and "b::f" in str(caught.value)
    with pytest.raises(InputError):
        find_op(NAMES, "_C::copy", "cuda", op_of)


def test_the_build_decides_between_two_of_a_name() -> None:
    def made(name: str) -> Op:
        return Op(name, "torch_library", None, defs=(OpDef("a.cpp", 1, builds=(name[:4],)),))

    assert find_op(("cuda::f", "rocm::f"), "f", "rocm", made).name == "rocm::f"


def test_the_nearest_names() -> None:
    assert nearest(NAMES, "_C::nrom")[0] == "_C::norm"
    assert nearest(NAMES, "nrom") == ["_C::norm"]
    assert nearest(NAMES, "zzzzzz") == []
    assert len(nearest([f"_C::norm{n}" for n in range(20)], "norm", 5)) == 5


def test_parts_of_names() -> None:
    assert [last_part(name) for name in NAMES] == ["norm", "rope", "topk", "copy", "copy", "run", "f"]
    assert spellings("torch.ops._C.norm") == ("_C::norm",)
    assert spellings("norm") == ("norm",)
