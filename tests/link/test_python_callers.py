"""Callers of ops, over two levels and through all that imports can do."""

from __future__ import annotations

import textwrap

import pytest

from tests.python_trees import Tree

WRAPPERS = """
import torch


def reshape(
    key,
    value,
):
    torch.ops._K.reshape(
        key,
        value,
    )


class Wrapped:
    @staticmethod
    def run(x):
        return torch.ops._K.run(x)
"""


def tree(**files: str) -> Tree:
    """A tree of files: ``pkg__a`` is ``pkg/a.py``."""
    return Tree({f"{name.replace('__', '/')}.py": textwrap.dedent(text) for name, text in files.items()})


def test_a_wrapper_stands_at_its_definition_and_its_callers_at_their_calls() -> None:
    found = tree(
        _ops=WRAPPERS,
        attention="""
        import _ops as ops


        class Paged:
            @staticmethod
            def write(key):
                ops.reshape(
                    key,
                    1,
                )
        """,
        backend="""
        from attention import Paged

        def update(k):
            Paged.write(k)
        """,
    )
    assert found.callers("_K::reshape") == [
        (0, "_ops.py", 5, "reshape", "torch.ops._K.reshape"),
        (1, "attention.py", 8, "Paged.write", "ops.reshape"),
        (2, "backend.py", 5, "update", "Paged.write"),
    ]
    assert [one.call_line for one in found.ops.callers("_K", "reshape")] == [9, 8, 5]
    assert [(one.file, one.line) for one in found.ops.wrappers("_K", "reshape")] == [("_ops.py", 5)]


def test_each_call_in_a_wrapper_is_told() -> None:
    found = tree(
        _ops="import torch\n\ndef turn(x, back):\n    if back:\n        torch.ops.kit.turn(x, -1)\n"
        "    else:\n        torch.ops.kit.turn(x)\n",
        layer="import _ops\n\ndef forward(x):\n    _ops.turn(x, True)\n",
    )
    calls = [(one.line, one.call_line) for one in found.ops.callers("kit", "turn") if not one.depth]
    assert calls == [(3, 5), (3, 7)]
    assert [one.line for one in found.ops.wrappers("kit", "turn")] == [3]


def test_a_call_that_nobody_wraps_stands_at_its_own_line() -> None:
    found = tree(layer="import torch\n\ndef forward(x):\n    return torch.ops.kit.rowsum(x)\n")
    assert found.callers("kit::rowsum") == [(0, "layer.py", 4, "forward", "torch.ops.kit.rowsum")]
    assert found.callers("kit::other") == []


IMPORTING = {
    "module": ("import pkg._ops\ndef f(k): pkg._ops.reshape(k)\n", "pkg._ops.reshape"),
    "module by another name": ("import pkg._ops as o\ndef f(k): o.reshape(k)\n", "o.reshape"),
    "module of a package": ("from pkg import _ops as ops\ndef f(k): ops.reshape(k)\n", "ops.reshape"),
    "name": ("from pkg._ops import reshape\ndef f(k): reshape(k)\n", "reshape"),
    "name by another name": ("from pkg._ops import reshape as r\ndef f(k): r(k)\n", "r"),
    "re-export": ("from pkg import exported\ndef f(k): exported(k)\n", "exported"),
    "re-exported module": ("from pkg.again import same\ndef f(k): same.reshape(k)\n", "same.reshape"),
    "star": ("from pkg.starred import *\ndef f(k): reshape(k)\n", "reshape"),
    "inside the function": ("def f(k):\n    from pkg._ops import reshape\n    reshape(k)\n", "reshape"),
    "package attribute": ("import pkg\ndef f(k): pkg.exported(k)\n", "pkg.exported"),
    "one of two branches": (
        "if x:\n  from pkg import _ops as ops\nelse:\n  from pkg._other import kit as ops\ndef f(k): ops.reshape(k)\n",
        "ops.reshape",
    ),
}


@pytest.mark.parametrize("name", IMPORTING)
def test_imports_are_followed(name: str) -> None:
    text, callee = IMPORTING[name]
    found = Tree(
        {
            "pkg/__init__.py": "from ._ops import reshape as exported\n",
            "pkg/_ops.py": WRAPPERS,
            "pkg/_other.py": "class kit:\n    pass\n",
            "pkg/again.py": "from . import _ops as same\n",
            "pkg/starred.py": "from pkg._ops import *\n",
            "user.py": text,
        }
    )
    calls = [one for one in found.callers("_K::reshape") if one[1] == "user.py"]
    assert [(one[0], one[3], one[4]) for one in calls] == [(1, "f", callee)]


@pytest.mark.parametrize(
    "text",
    [
        "from elsewhere import reshape\ndef f(k): reshape(k)\n",
        "from pkg._ops import reshape\ndef f(k, reshape): reshape(k)\n",
        "from pkg._ops import reshape\ndef f(k):\n    from elsewhere import reshape\n    reshape(k)\n",
        "from pkg._ops import reshape\ndef f(k):\n    def reshape(x): pass\n    reshape(k)\n",
        "from pkg._ops import reshape\ndef f(k):\n    reshape = k\n    reshape(k)\n",
        "from pkg import _ops as ops\ndef f(k): x.ops.reshape(k)\n",
        "from pkg import _ops as ops\ndef f(k): return ops.reshape\n",
        "from pkg import _ops as ops\ndef f(k): return 'ops.reshape(k)'\n",
        "from pkg._ops import reshape\nclass C:\n    def reshape(self): pass\n    def f(self, k): self.reshape(k)\n",
    ],
)
def test_what_is_no_caller(text: str) -> None:
    found = Tree({"pkg/__init__.py": "", "pkg/_ops.py": WRAPPERS, "user.py": text})
    assert [one for one in found.callers("_K::reshape") if one[1] == "user.py"] == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        # Each branch calls what it imports itself.
        (("def f(k):\n    if k:\n        from pkg._ops import reshape\n        return reshape(k)\n"
         "    else:\n        from pkg._other import reshape\n\n        return reshape(\n    k)\n"), [4]),
        (("def f(k):\n    if k:\n        from pkg._other import reshape\n        return reshape(k)\n"
         "    from pkg._ops import reshape\n    return reshape(k)\n"), [6]),
        # Behind the branches either of them may hold.
        (("def f(k):\n    if k:\n        from pkg._ops import reshape\n    else:\n"
         "        from pkg._other import reshape\n    return reshape(k)\n"), [6]),
        # The import of a block inside hides the outer one there alone.
        (("def f(k):\n    from pkg._ops import reshape\n    if k:\n        from pkg._other import reshape\n"
         "        reshape(k)\n    for _ in k:\n        reshape(k)\n"), [7]),
    ],
)  # fmt: skip
def test_an_import_inside_a_branch_holds_there(text: str, lines: list[int]) -> None:
    files = {"pkg/__init__.py": "", "pkg/_ops.py": WRAPPERS, "pkg/_other.py": "def reshape(k):\n    pass\n"}
    found = Tree({**files, "user.py": text})
    assert [one[2] for one in found.callers("_K::reshape") if one[1] == "user.py"] == lines


SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension

ext_name = "pkg._C"
setup(name="pkg", ext_modules=[CUDAExtension("fast_cuda", ["a.cu"]), CUDAExtension(name=ext_name, sources=["b.cu"])])
"""


@pytest.mark.parametrize(
    ("text", "callee"),
    [
        ("import fast_cuda\ndef f(x): fast_cuda.run(x)\n", "fast_cuda.run"),
        (
            "try:\n    import fast_cuda as fast\nexcept ImportError:\n    fast = None\ndef f(x): fast.run(x)\n",
            "fast_cuda.run",
        ),
        ("from fast_cuda import run as go\ndef f(x): return go(x)\n", "fast_cuda.run"),
        ("def f(x):\n    import fast_cuda\n    return fast_cuda.run(x)\n", "fast_cuda.run"),
        ("from pkg.ext import chosen as c\ndef f(x): return c.run(x)\n", "fast_cuda.run"),
        ("from pkg import ext\ndef f(x): return ext.chosen.run(x)\n", "fast_cuda.run"),
        ("from pkg import _C\ndef f(x): return _C.run(x)\n", "_C.run"),
        ("import pkg._C\ndef f(x): return pkg._C.run(x)\n", "_C.run"),
        ("from pkg._C import Plan\ndef f(x): return Plan.run(x)\n", "_C.Plan.run"),
    ],
)
def test_calls_through_compiled_modules(text: str, callee: str) -> None:
    files = {"pkg/__init__.py": "", "pkg/ext.py": "import fast_cuda\nchosen = fast_cuda\n"}
    found = Tree({"setup.py": SETUP, **files, "user.py": text})
    module, name = callee.split(".")[:2]
    calls = [one for one in found.callers(f"@{module}::{name}") if one[1] == "user.py"]
    assert [(one[0], one[3], one[4]) for one in calls] == [(0, "f", callee)]


@pytest.mark.parametrize(
    "text",
    [
        "import fast_cuda\ndef f(fast_cuda): fast_cuda.run(1)\n",
        "import slow_cuda\ndef f(x): slow_cuda.run(x)\n",
        "import own\ndef f(x): own.run(x)\n",
        "import fast_cuda\ndef f(x): return hasattr(fast_cuda, 'run')\n",
    ],
)
def test_what_is_no_call_of_a_compiled_module(text: str) -> None:
    found = Tree({"setup.py": SETUP + 'CUDAExtension("own")\n', "own.py": "def run(x): pass\n", "user.py": text})
    assert [name for name in found.ops.names() if name.startswith("@")] == []


def test_methods_through_self_bases_and_classes() -> None:
    found = tree(
        base="""
        import torch
        class Base:
            def step(self, x):
                return torch.ops.k.step(x)
            def hidden(self, x):
                return torch.ops.k.hidden(x)
        """,
        derived="""
        from base import Base
        class Derived(Base):
            def forward(self, x):
                return self.step(x) + self.hidden(x)
            def hidden(self, x):
                return super().hidden(x)
        def use(x):
            return Base.step(None, x)
        """,
    )
    assert [one[1:] for one in found.callers("k::step") if one[0] == 1] == [
        ("derived.py", 5, "Derived.forward", "self.step"),
        ("derived.py", 9, "use", "Base.step"),
    ]
    assert [one[3] for one in found.callers("k::hidden") if one[0] == 1] == ["Derived.hidden"]
    assert [one[3] for one in found.callers("k::hidden") if one[0] == 2] == ["Derived.forward"]


def test_constructors_and_autograd_functions() -> None:
    found = tree(
        fn="""
        import torch
        class Fn(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return torch.ops.k.fwd(x)
        class Layer:
            def __init__(self, x):
                self.x = torch.ops.k.pack(x)
        """,
        use="from fn import Fn, Layer\n\ndef apply(x):\n    return Fn.apply(x)\n\ndef make(x):\n    return Layer(x)\n",
    )
    assert [one[1:] for one in found.callers("k::fwd") if one[0]] == [("use.py", 4, "apply", "Fn.apply")]
    assert [one[1:] for one in found.callers("k::pack") if one[0]] == [("use.py", 7, "make", "Layer")]


def test_names_for_ops_that_other_files_import() -> None:
    found = tree(
        names="import torch\nops = torch.ops.k\nrms = torch.ops.k.rms_norm.default\n",
        user="from names import ops, rms as r\n\ndef f(x):\n    ops.add(x)\n    r(x)\n",
        above="from user import f\n\ndef g(x):\n    f(x)\n",
    )
    assert found.callers("k::add") == [
        (0, "user.py", 3, "f", "torch.ops.k.add"),
        (1, "above.py", 4, "g", "f"),
    ]
    assert found.callers("k::rms_norm")[0] == (0, "user.py", 3, "f", "torch.ops.k.rms_norm.default")


def test_ops_that_a_helper_hands_out() -> None:
    found = tree(
        common="""
        import torch
        def get_operator(library, name):
            def missing(*args):
                raise RuntimeError(name)
            try:
                return getattr(getattr(torch.ops, library), name)
            except AttributeError:
                return missing
        def get_kit_operator(name):
            return get_operator("kit", name)
        """,
        layer="""
        from common import get_kit_operator
        class Op:
            OPERATOR = get_kit_operator("attend")
            @classmethod
            def apply(cls, x):
                return cls.OPERATOR(x)
        def use(x):
            return Op.apply(x)
        """,
    )
    assert found.callers("kit::attend") == [
        (0, "layer.py", 6, "Op.apply", "torch.ops.kit.attend"),
        (1, "layer.py", 9, "use", "Op.apply"),
    ]


def test_a_python_op_leads_on_to_the_callers_of_its_function() -> None:
    found = tree(
        reg="""
        import torch
        lib = torch.library.Library("py", "DEF")
        def _impl(x: torch.Tensor) -> torch.Tensor:
            return torch.ops._C.norm(x)
        lib.define("norm(Tensor x) -> Tensor")
        lib.impl("norm", _impl, "CUDA")
        """,
        layer="import torch\n\ndef forward(x):\n    return torch.ops.py.norm(x)\n",
    )
    assert found.callers("_C::norm") == [
        (0, "reg.py", 4, "_impl", "torch.ops._C.norm"),
        (1, "layer.py", 4, "forward", "torch.ops.py.norm"),
    ]


def test_a_decorated_custom_op_is_the_op() -> None:
    found = tree(
        ops="""
        import torch
        @torch.library.custom_op("kit::pack", mutates_args=())
        def pack(x: torch.Tensor) -> torch.Tensor:
            return x
        """,
        layer="from ops import pack\n\ndef forward(x):\n    return pack(x)\n",
    )
    assert found.callers("kit::pack") == [(0, "layer.py", 4, "forward", "torch.ops.kit.pack")]


def test_references_are_apart_from_calls() -> None:
    found = tree(a="import torch\n\ndef test():\n    opcheck(torch.ops.k.f, (1,))\n")
    assert found.callers("k::f") == []
    assert [(one.file, one.line, one.function) for one in found.ops.references("k", "f")] == [("a.py", 4, "test")]


def test_only_files_that_matter_are_read() -> None:
    found = tree(
        _ops=WRAPPERS,
        user="import _ops as ops\n\ndef f(k):\n    ops.reshape(k)\n",
        above="import user\n\ndef g(k):\n    user.f(k)\n",
        far="import above\n\ndef h(k):\n    above.g(k)\n",
        other="import json\n\ndef f():\n    json.dumps(1)\n",
    )
    assert set(found.full) == {"_ops.py", "user.py", "above.py"}
    assert [set(wanted) for wanted in found.rounds] == [{"_ops.py"}, {"user.py"}, {"above.py"}]


def test_the_same_input_gives_the_same_order() -> None:
    files = {
        "b.py": WRAPPERS,
        "a.py": "import b\ndef f(k):\n    b.reshape(k)\n    b.reshape(k)\ndef g(k): b.reshape(k)\n",
    }
    orders = [Tree(dict(sorted(files.items(), reverse=turn))).callers("_K::reshape") for turn in (False, True)]
    assert orders[0] == orders[1]
    assert [one[2] for one in orders[0] if one[0] == 1] == [3, 4, 5]


def test_levels_inside_a_file_do_not_depend_on_what_is_met_first() -> None:
    text = """
    import torch
    def a(x): return torch.ops.k.f(x)
    def b(x): return a(x)
    def c(x): return b(x)
    def d(x): return torch.ops.k.g(c(x))
    def e(x): return d(x)
    """
    found = tree(m=text)
    assert [(one[0], one[3]) for one in found.callers("k::f")] == [(0, "a"), (1, "b"), (2, "c")]
    assert [(one[0], one[3]) for one in found.callers("k::g")] == [(0, "d"), (1, "e")]
