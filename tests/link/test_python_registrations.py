"""Registrations in Python: torch's own functions, libraries, and helpers of a project that end in them."""

from __future__ import annotations

import textwrap

import pytest

from opwalker.link.python_attach import attach
from opwalker.model.walk import Op, OpDef, Span
from tests.python_trees import Tree


def tree(**files: str) -> Tree:
    return Tree({f"{name.replace('__', '/')}.py": textwrap.dedent(text) for name, text in files.items()})


def told(op: Op) -> tuple[object, ...]:
    """``(schema, definition lines, (key, function, line) of implementations, fake lines)``."""
    return (
        op.schema,
        [one.line for one in op.defs],
        [(one.key, one.function, one.line) for one in op.impls],
        [one.line for one in op.fake],
    )


HEAD = """import torch
from torch import Tensor
from torch.library import Library, custom_op, define, impl, register_fake
"""

FORMS = {
    "library": (
        """
        lib = Library("kit", "DEF")
        lib.define("add(Tensor! x,  Tensor y)"
                   " -> ()")
        def run(x, y): pass
        lib.impl("add", run, "CUDA")
        lib._register_fake("add", lambda x, y: None)
        """,
        ("add(Tensor! x, Tensor y) -> ()", [6], [("CUDA", "run", 9)], [10]),
    ),
    "module functions": (
        """
        torch.library.define("kit::add", "(Tensor x) -> Tensor")
        def run(x): return x
        torch.library.impl("kit::add", ["cpu", "CUDA"], run)
        @torch.library.register_fake("kit::add")
        def fake(x): return x
        """,
        ("add(Tensor x) -> Tensor", [5], [("CPU", "run", 7), ("CUDA", "run", 7)], [9]),
    ),
    "decorated": (
        """
        @custom_op(
            "kit::add", mutates_args=["x"], device_types="cuda")
        def add(x: Tensor, n: int = 2, *, s: str = "a") -> None:
            pass
        @add.register_fake
        def _(x, n=2, *, s="a"): pass
        @add.register_kernel("cpu")
        def on_cpu(x, n=2, *, s="a"): pass
        """,
        (
            'add(Tensor(a0!) x, SymInt n=2, *, str s="a") -> ()',
            [5],
            [("CUDA", "add", 5), ("CPU", "on_cpu", 11)],
            [10],
        ),
    ),
    "old decorators": (
        """
        lib = Library("kit", "FRAGMENT")
        @define(lib, "other(Tensor x) -> Tensor")
        def other(x): return x
        lib.define("add(Tensor x) -> Tensor")
        @impl(lib, "add", "Meta")
        def meta(x): return x
        @torch.library.impl_abstract("kit::add")
        def fake(x): return x
        """,
        ("add(Tensor x) -> Tensor", [8], [("Meta", "meta", 9)], [12]),
    ),
    "explicit schema": (
        """
        @torch.library.triton_op("kit::add", mutates_args={}, schema="(Tensor x) -> Tensor")
        def add(x): return x
        """,
        ("add(Tensor x) -> Tensor", [5], [("CompositeExplicitAutograd", "add", 5)], []),
    ),
    "in a function": (
        """
        def setup():
            lib = torch.library.Library("kit", "DEF")
            for name in ["add", "sub"]:
                lib.define(f"{name}(Tensor x) -> Tensor")
                lib.impl(name, lambda x: x, "CUDA")
        """,
        ("add(Tensor x) -> Tensor", [8], [("CUDA", "lambda", 9)], []),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    text, expected = FORMS[name]
    found = Tree({"m.py": HEAD + textwrap.dedent(text)})
    assert told(found.op("kit::add")) == expected
    assert found.reasons() == []


HELPER = """
import torch
from torch.library import Library

kit_lib = Library("kit", "FRAGMENT")


def register(op_name, op_func, mutates_args=None, fake_impl=None, target_lib=None):
    if mutates_args is None:
        mutates_args = []
    schema = torch.library.infer_schema(op_func, mutates_args=mutates_args)
    my_lib = target_lib or kit_lib
    my_lib.define(op_name + schema)
    my_lib.impl(op_name, op_func, "CUDA")
    if fake_impl is not None:
        my_lib._register_fake(op_name, fake_impl)
"""


def test_a_helper_called_with_keywords_from_another_file() -> None:
    found = tree(
        helper=HELPER,
        layer="""
        import torch
        from helper import register

        def _add(x: torch.Tensor, y: torch.Tensor) -> None:
            x.add_(y)

        def _add_fake(x: torch.Tensor, y: torch.Tensor) -> None:
            return None

        register(
            op_name="add",
            op_func=_add,
            mutates_args=["x"],
            fake_impl=_add_fake,
        )
        register("same", _add)
        """,
    )
    add = found.op("kit::add")
    assert told(add) == ("add(Tensor(a0!) x, Tensor y) -> ()", [11], [("CUDA", "_add", 11)], [8])
    assert add.impls[0].host is not None
    assert add.defs[0].namespace_at == Span("helper.py", 5, 5)
    assert (add.impls[0].host.file, add.impls[0].host.line, add.impls[0].host.end_line) == ("layer.py", 5, 6)
    assert told(found.op("kit::same")) == ("same(Tensor x, Tensor y) -> ()", [17], [("CUDA", "_add", 17)], [])
    assert found.reasons() == []


def test_helpers_over_helpers_partials_and_other_libraries() -> None:
    found = tree(
        helper=HELPER,
        mine="""
        import functools
        import helper
        from torch.library import Library
        my_lib = Library("mine", "FRAGMENT")
        register_mine = functools.partial(helper.register, target_lib=my_lib)
        def register_all(**kwargs):
            register_mine(**kwargs)
        """,
        layer="""
        import torch
        from mine import register_all as reg, register_mine
        from ops import f
        reg(op_name="a", op_func=f)
        register_mine("b", f)
        """,
        ops="import torch\ndef f(x: torch.Tensor) -> torch.Tensor:\n    return x\n",
    )
    assert told(found.op("mine::a")) == ("a(Tensor x) -> Tensor", [5], [("CUDA", "f", 5)], [])
    assert told(found.op("mine::b")) == ("b(Tensor x) -> Tensor", [6], [("CUDA", "f", 6)], [])


def test_a_decorator_factory_that_goes_through_a_class() -> None:
    found = tree(
        helper=HELPER,
        deco="""
        from helper import register
        class Wrapper:
            def __init__(self, op_name, op_func, mutates_args, **kwargs):
                self.op_name = op_name
                self.op_func = op_func
                self.mutates_args = mutates_args
                self.kwargs = kwargs
            @property
            def real(self):
                register(
                    op_name=self.op_name, op_func=self.op_func,
                    mutates_args=self.mutates_args, fake_impl=self.fake)
                return self.op_func
            @property
            def fake(self):
                if "fake_impl" in self.kwargs:
                    return self.kwargs["fake_impl"]
                def nothing(*args):
                    return None
                return nothing
        def custom(fn=None, *, op_name=None, mutates_args=None, eager=True, **extra):
            def decorator(op_func):
                wrapper = Wrapper(
                    op_name=op_name or op_func.__name__, op_func=op_func,
                    mutates_args=mutates_args or [], **extra)
                return wrapper.real if eager else wrapper
            if fn is not None:
                return decorator(fn)
            return decorator
        """,
        layer="""
        import torch
        from deco import custom
        def fake(x): return None
        @custom(mutates_args=["x"], fake_impl=fake)
        def scale(x: torch.Tensor) -> None: ...
        @custom
        def plain(x: torch.Tensor) -> None: ...
        """,
    )
    assert told(found.op("kit::scale")) == ("scale(Tensor(a0!) x) -> ()", [5], [("CUDA", "scale", 5)], [4])
    plain = found.op("kit::plain")
    assert told(plain)[:3] == ("plain(Tensor x) -> ()", [7], [("CUDA", "plain", 7)])
    assert [(one.file, one.function) for one in plain.fake] == [("deco.py", "Wrapper.fake.nothing")]


def test_the_key_may_depend_on_the_platform() -> None:
    found = tree(
        helper=HELPER.replace('my_lib.impl(op_name, op_func, "CUDA")', "")
        + """
    if is_npu():
        my_lib.impl(op_name, op_func, "PrivateUse1")
    elif is_xpu():
        my_lib.impl(op_name, op_func, "XPU")
    else:
        my_lib.impl(op_name, op_func, platform.key)
""",
        layer="import torch\nfrom helper import register\ndef f(x: torch.Tensor) -> None: ...\nregister('a', f)\n",
    )
    impls = found.op("kit::a").impls
    assert [(one.key, one.condition) for one in impls] == [
        ("PrivateUse1", "is_npu()"),
        ("XPU", "not (is_npu()) and is_xpu()"),
        (None, "not (is_npu()) and not (is_xpu())"),
    ]
    assert [(kind, line) for kind, line, _ in found.reasons()] == [("python_dispatch_key", 23)]


@pytest.mark.parametrize(
    ("text", "kind", "line", "reason"),
    [
        ("register(f'a_{n}', f)\n", "python_registration", 4, "put together at run time: f'a_{n}'"),
        ("register(name_of(f), f)\n", "python_registration", 4, "the result of a call"),
        (
            "register('a', f, target_lib=torch.other)\n",
            "python_registration",
            4,
            "torch.other, which is not in this tree",
        ),
        (
            "def g(x: Foo) -> None: ...\nregister('a', g)\n",
            "python_schema",
            5,
            "kit::a: parameter x has the annotation Foo",
        ),
        ("def g(x) -> None: ...\nregister('a', g)\n", "python_schema", 5, "kit::a: parameter x has no annotation"),
        ("register('a', f, mutates_args=args())\n", "python_schema", 4, "kit::a: the list of mutated arguments"),
        ("register('a', torch.other.g)\n", "python_function", 4, "kit::a: the function is torch.other.g"),
    ],
)
def test_what_cannot_be_known_is_a_gap(text: str, kind: str, line: int, reason: str) -> None:
    head = "import torch\nfrom helper import register\ndef f(x: torch.Tensor) -> None: ...\n"
    found = Tree({"helper.py": HELPER, "layer.py": head + text})
    assert [one for one in found.reasons() if one[:2] == (kind, line) and reason in one[2]]
    assert all(op.schema is None for op in found.ops.registrations.ops)


def test_a_schema_that_is_not_known_leaves_the_signature() -> None:
    found = Tree(
        {
            "helper.py": HELPER,
            "l.py": "from helper import register\ndef g(x: Foo, *, n=3) -> int: ...\nregister('a', g)\n",
        }
    )
    assert (found.op("kit::a").schema, found.op("kit::a").signature) == (None, "g(x: Foo, *, n=3) -> int")


def test_helpers_alone_register_nothing_and_are_no_gap() -> None:
    found = Tree({"helper.py": HELPER})
    assert found.ops.registrations.ops == () and found.reasons() == []


def test_decorated_functions_of_one_name_are_each_its_own() -> None:
    text = """
    define("kit::one", "(Tensor x) -> Tensor")
    define("kit::two", "(Tensor x) -> Tensor")
    @register_fake("kit::one")
    def _(x): return x
    @register_fake("kit::two")
    def _(x): return x + 1
    """
    found = Tree({"m.py": HEAD + textwrap.dedent(text)})
    assert [told(found.op(f"kit::{name}"))[3] for name in ("one", "two")] == [[8], [10]]


def test_libraries_from_outside_are_gaps() -> None:
    text = """
    from torch.library import impl
    from torch_xla.kernels import XLA_LIB
    XLA_LIB.define("f(Tensor x) -> Tensor")
    @impl(XLA_LIB, "f", "XLA")
    def f(x): return x
    """
    found = tree(m=text)
    assert [(kind, line) for kind, line, _ in found.reasons()] == [
        ("python_registration", 4),
        ("python_registration", 5),
    ]
    assert all("torch_xla.kernels.XLA_LIB, which is not in this tree" in reason for *_, reason in found.reasons())


def test_fakes_and_implementations_are_attached_to_ops_of_other_languages() -> None:
    text = """
    import torch
    if hasattr(torch.ops._C, "gemm"):
        @torch.library.register_fake("_C::gemm")
        def _gemm_fake(a): return a
    lib = torch.library.Library("aten", "IMPL")
    lib.impl("mm", lambda a, b: a, "CUDA")
    """
    python = tree(m=text).ops.registrations
    native = Op("_C::gemm", "torch_library", "gemm(Tensor a) -> Tensor", defs=(OpDef("b.cpp", 3),))
    other = Op("_C::gemm", "pybind11", None)
    merged = attach([native, other], python)
    by_kind = {(op.name, op.kind): op for op in merged}
    assert [(one.file, one.line) for one in by_kind["_C::gemm", "torch_library"].fake] == [("m.py", 5)]
    assert by_kind["_C::gemm", "pybind11"].fake == ()
    assert [one.key for one in by_kind["aten::mm", "python"].impls] == ["CUDA"]


def test_versions_of_torch_are_alternatives_not_two_ops() -> None:
    text = """
    import torch
    try:
        from torch.library import register_fake
    except ImportError:
        from torch.library import impl_abstract as register_fake
    if torch.__version__ >= "2.4":
        wrapper = torch.library.custom_op
    else:
        def nothing(name, fn=None, **kwargs):
            return lambda fn: fn
        wrapper = nothing
    @wrapper("kit::a", mutates_args=())
    def a(x: torch.Tensor) -> torch.Tensor: return x
    @register_fake("kit::a")
    def fake(x): return x
    """
    op = tree(m=text).op("kit::a")
    assert told(op) == ("a(Tensor x) -> Tensor", [13], [("CompositeExplicitAutograd", "a", 13)], [16])
