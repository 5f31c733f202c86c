"""Functions whose parameters stand under conditions, of which a build chooses another mixture than any reading."""

from __future__ import annotations

import pytest

from tests.trees import follow, kernels, tree

SOURCE = """#define WIDE {wide}
#define TALL {tall}
template <int N> __global__ void k(float* x) {{}}
void launch(float* x,
#if WIDE
  int width,
#endif
#if TALL
  int height,
#else
  long depth,
#endif
  int n) {{
  k<4><<<n, 32>>>(x);
}}
void entry(float* x) {{
  launch(x,
#if WIDE
    3,
#endif
    7, 9);
}}
"""


@pytest.mark.parametrize(
    ("wide", "tall", "names"),
    [
        (1, 1, ["x", "width", "height", "n"]),
        (1, 0, ["x", "width", "depth", "n"]),
        (0, 1, ["x", "height", "n"]),
        (0, 0, ["x", "depth", "n"]),
    ],
)
def test_parameters_are_those_of_the_build(wide: int, tall: int, names: list[str]) -> None:
    bench = tree({"a.cu": SOURCE.format(wide=wide, tall=tall)})
    read = [f for f in bench.index.functions("launch") if bench.unit().resolver.is_read("a.cu", f[1])]
    assert [[p.name for p in function.parameters] for _, function in read] == [names]
    found = follow(bench, "a.cu", "entry")
    assert (kernels(found), found.gaps) == (["k"], ())


def test_a_function_that_no_build_reads_stays_out() -> None:
    text = SOURCE.format(wide=1, tall=0)
    head, tail = text.split("void launch")[0], "void launch" + text.split("void launch")[1].split("void entry")[0]
    bench = tree({"a.cu": f"#define MINE 0\n{head}#if MINE\n{tail}#endif\n"})
    assert not [f for f in bench.index.functions("launch") if bench.unit().resolver.is_read("a.cu", f[1])]


QUALIFIED = """#define WIDE {wide}
#if {fused}
__device__ __forceinline__
#else
__global__
#endif
void impl(float* x,
#if WIDE
  int width,
#endif
  int n) {{}}
"""


@pytest.mark.parametrize("wide", [0, 1])
@pytest.mark.parametrize(("fused", "flag"), [("defined(WIDE)", "device"), ("!defined(WIDE)", "global")])
def test_what_is_a_kernel_in_the_build_is_one(wide: int, fused: str, flag: str) -> None:
    bench = tree({"a.cu": QUALIFIED.format(wide=wide, fused=fused)})
    (read,) = [f for _, f in bench.index.functions("impl") if bench.unit().resolver.is_read("a.cu", f)]
    assert flag in read.flags and {"global", "device"} - set(read.flags)
    assert [p.name for p in read.parameters] == (["x", "width", "n"] if wide else ["x", "n"])


HEADS = """struct Other {{ int before; }};
template <typename T,
#if {wide}
  int N
#else
  bool B
#endif
>
__global__ void k(T* x
#if {tall}
  , float* scale
#endif
) {{}}
void entry(float* x) {{}}
"""


@pytest.mark.parametrize(
    ("wide", "tall", "template", "names"),
    [
        (1, 0, "typename T, int N", ["x"]),
        (0, 1, "typename T, bool B", ["x", "scale"]),
        (1, 1, "typename T, int N", ["x", "scale"]),
        (0, 0, "typename T, bool B", ["x"]),
    ],
)
def test_a_template_head_is_that_of_the_build(wide: int, tall: int, template: str, names: list[str]) -> None:
    bench = tree({"a.cu": HEADS.format(wide=f"{wide} == 1", tall=f"{tall} == 1")})
    found = [f for f in bench.index.facts("a.cu").functions if f.name == "k"]
    resolver = bench.unit().resolver
    (read,) = [f for f in found if resolver.is_read("a.cu", f, "a.cu")]
    assert " ".join(read.template.split()) == template
    assert [p.name for p in read.parameters] == names
    assert "global" in read.flags
