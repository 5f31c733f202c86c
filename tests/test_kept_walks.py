"""A walk after an edit is that of a fresh start, whatever of earlier answers is used again; and what is used again."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opwalker import asking, indexing, pipeline
from opwalker.asking import Options, Session
from opwalker.errors import InputError
from opwalker.notation import regex
from opwalker.notation.regex import CODES

KIT = Path(__file__).resolve().parents[1] / "fixtures" / "libraries" / "classickit"
OP = "gather_segments"
OPS = (OP, "row_scale_", "running_sum")
FILES = (
    "csrc/bindings.cpp",
    "csrc/segment_sum.cu",
    "csrc/row_ops.cu",
    "csrc/ops.h",
    "csrc/row_kernels.h",
    "csrc/running.h",
    "csrc/running_sum.cu",
    "classickit/segments.py",
    "setup.py",
)


def walked(root: Path, cache: Path, op: str = OP) -> bytes:
    return msgspec.json.encode(pipeline.walk(Options(source=str(root), cache=cache, jobs=1), op))


def asked(root: Path, cache: Path) -> list[bytes | str]:
    """The walks of several ops, or what is said where there is none."""
    out: list[bytes | str] = []
    for op in OPS:
        try:
            out.append(walked(root, cache, op))
        except InputError as error:
            out.append(str(error))
    return out


def behind(path: Path, number: int) -> None:
    """Only remarks behind the last word of code."""
    mark = "#" if path.suffix == ".py" else "//"
    path.write_text(f"{path.read_text()}\n{mark} edit {number}\n\n", encoding="utf-8")


def in_front(path: Path, number: int) -> None:
    """Everything one line further down."""
    mark = "#" if path.suffix == ".py" else "//"
    path.write_text(f"{mark} edit {number}\n{path.read_text()}", encoding="utf-8")


def code_behind(path: Path, number: int) -> None:
    """A definition more."""
    text = f"EDIT_{number} = 1" if path.suffix == ".py" else f"static const int edit_{number} = 1;"
    path.write_text(f"{path.read_text()}\n{text}\n", encoding="utf-8")


def inside(path: Path, number: int) -> None:
    """A remark at the end of a line of code, where a reader looks for shapes."""
    mark = "#" if path.suffix == ".py" else "//"
    lines = path.read_text().split("\n")
    code = [number for number, line in enumerate(lines) if line.strip() and not line.rstrip().endswith("\\")]
    at = code[len(code) // 2]
    lines[at] += f"  {mark} [edit_{number}]"
    path.write_text("\n".join(lines), encoding="utf-8")


def tuned(path: Path, number: int) -> None:
    """Other numbers, under the same names."""
    text = re.sub(r"\b(\d+)\b", lambda found: str(int(found[1]) + number + 1), path.read_text())
    path.write_text(text, encoding="utf-8")


def another_meaning(path: Path, number: int) -> None:
    """A macro and a function of a name that the library has, where they may count or not."""
    text = (
        f"#define ROW_LOOP(I) for (int I = {number}; I < 4; ++I)\nat::Tensor running_sum(const at::Tensor& x, int n);"
    )
    text = f"EDIT_{number} = running_sum = None" if path.suffix == ".py" else text
    path.write_text(f"{text}\n{path.read_text()}", encoding="utf-8")


def copied(path: Path, number: int) -> None:
    """A second file that says the same."""
    shutil.copy(path, path.with_stem(f"{path.stem}_{number}"))


def gone(path: Path, number: int) -> None:
    path.unlink()


def apart(path: Path, number: int) -> None:
    """A blank line more wherever one stands between lines of code, and one between the first two such lines."""
    lines = path.read_text().split("\n")
    code = [at for at in range(1, len(lines)) if all("/" not in one and one.strip() for one in lines[at - 1 : at + 1])]
    if code and path.suffix != ".py":
        lines.insert(code[len(code) // 2], "")
    path.write_text("\n".join(lines).replace("\n\n", "\n\n\n"), encoding="utf-8")


def remarked(path: Path, number: int) -> None:
    """A remark of its own above the code in the middle, where it may say what that is."""
    mark = "#" if path.suffix == ".py" else "//"
    lines = path.read_text().split("\n")
    code = [at for at, line in enumerate(lines) if at and not lines[at - 1].rstrip().endswith("\\") and line.strip()]
    lines.insert(code[len(code) // 2], f"{mark} x: [edit_{number}, 4]")
    path.write_text("\n".join(lines), encoding="utf-8")


#: Where a declaration begins, at the beginning of a line.
_TOP = re.compile(r"^(?:template|static|void|namespace|inline|struct|at::Tensor|constexpr|def|class)\b", re.MULTILINE)
_BODY = re.compile(r"^[^\n#/]*\b(\w+)\([^;{}]*\) (?:const )?\{\n", re.MULTILINE)


def _inserted(path: Path, number: int, text: str) -> None:
    """A text before one of the declarations of a file of C++."""
    before = path.read_text()
    places = [found.start() for found in _TOP.finditer(before)] if path.suffix != ".py" else []
    at = places[number * 7 % len(places)] if places else 0
    path.write_text(before[:at] + text + before[at:] if places else before, encoding="utf-8")


def function_more(path: Path, number: int) -> None:
    """A function that nobody calls."""
    _inserted(path, number, f"static inline int edited_{number}(int x) {{\n  return x + {number};\n}}\n\n")


def overload_more(path: Path, number: int) -> None:
    """A function of a name that is called, or that is a kernel's."""
    names = ("segment_sum", "gather_segments_kernel", "running_sum", "row_scale_", "numbers_of")
    _inserted(path, number, f"template <typename T>\nvoid {names[number % 5]}(T* x, int y, long z) {{ x[y] = z; }}\n")


def owner_more(path: Path, number: int) -> None:
    """A function that acquires what others release, without a line of its own."""
    _inserted(path, number, f"static void* held_{number}() {{ void* x; cudaMalloc(&x, {number}); return x; }} ")


def guarded(path: Path, number: int) -> None:
    """A condition around a declaration that the build does not read."""
    _inserted(path, number, f"#if EDITED_{number}\n#define ROW_LOOP(I) while (true)\n#endif\n")


def class_more(path: Path, number: int) -> None:
    """A class of a name that functions have."""
    _inserted(path, number, "struct running_sum { int row_size; static int size() { return 2; } };\n")


def line_more(path: Path, number: int) -> None:
    """A statement at the beginning of a function."""
    text = path.read_text()
    bodies = list(_BODY.finditer(text))
    for found in bodies[number % 3 :: 3] if path.suffix != ".py" else ():
        text = text.replace(found[0], f"{found[0]}  const int edited_{number} = {number};\n")
    path.write_text(text, encoding="utf-8")


def first_line_more(path: Path, number: int) -> None:
    """A statement at the beginning of the first function: what stands below it is a line further down."""
    found = _BODY.search(path.read_text()) if path.suffix != ".py" else None
    if found is not None:
        text = path.read_text().replace(found[0], f"{found[0]}  const int edited_{number} = {number};\n", 1)
        path.write_text(text, encoding="utf-8")


def renamed(path: Path, number: int) -> None:
    """A function under another name, in this file alone."""
    text = path.read_text()
    bodies = list(_BODY.finditer(text))
    name = bodies[number % len(bodies)][1] if bodies else "edited"
    path.write_text(re.sub(rf"\b{name}\b", f"{name}_{number}", text), encoding="utf-8")


def parameter_more(path: Path, number: int) -> None:
    """One more parameter of every second template."""
    count = iter(range(1000))
    text = re.sub("template <", lambda m: m[0] + f"int kEdit{number}, " * (next(count) % 2), path.read_text())
    path.write_text(text, encoding="utf-8")


EDITS = (
    behind, in_front, code_behind, inside, tuned, another_meaning, copied, gone, apart, remarked, function_more,
    overload_more, owner_more, guarded, class_more, line_more, first_line_more, renamed, parameter_more,
)  # fmt: skip


@pytest.fixture(scope="module")
def shallow() -> Iterator[None]:
    """The program's own limit for calls inside calls would be taken for a test's doing; this library needs none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "STACK", 0)
        yield


@settings(max_examples=16, deadline=None, suppress_health_check=list(HealthCheck))
@given(edits=st.lists(st.tuples(st.sampled_from(FILES), st.sampled_from(EDITS)), min_size=1, max_size=3))
def test_after_any_edit_as_after_a_fresh_start(shallow, tmp_path_factory: pytest.TempPathFactory, edits) -> None:
    root = tmp_path_factory.mktemp("kit")
    shutil.copytree(KIT, root, dirs_exist_ok=True)
    kept = tmp_path_factory.mktemp("kept")
    asked(root, kept)
    for number, (path, edit) in enumerate(edits):
        if (root / path).exists():
            edit(root / path, number)
        assert asked(root, kept) == asked(root, tmp_path_factory.mktemp("fresh"))


@pytest.mark.parametrize("edit", EDITS)
def test_after_each_edit_as_after_a_fresh_start(shallow, tmp_path: Path, edit) -> None:
    """The file of the host function and of its kernels."""
    shutil.copytree(KIT, tmp_path / "kit")
    walked(tmp_path / "kit", tmp_path / "kept")
    for number in range(3):
        if (tmp_path / "kit" / "csrc/segment_sum.cu").exists():
            edit(tmp_path / "kit" / "csrc/segment_sum.cu", number)
        assert walked(tmp_path / "kit", tmp_path / "kept") == walked(tmp_path / "kit", tmp_path / f"fresh{number}")


@pytest.mark.parametrize(
    ("path", "edit", "again"),
    [
        ("csrc/segment_sum.cu", behind, True),
        ("csrc/bindings.cpp", behind, True),
        ("csrc/ops.h", behind, True),
        ("classickit/segments.py", behind, True),
        ("classickit/segments.py", in_front, True),
        ("csrc/segment_sum.cu", in_front, True),
        ("csrc/segment_sum.cu", apart, True),
        ("csrc/segment_sum.cu", remarked, False),
        ("csrc/row_kernels.h", in_front, False),  # macros make code of it
        ("csrc/running_sum.cu", in_front, True),
        ("csrc/running_sum.cu", tuned, True),
        ("csrc/running_sum.cu", code_behind, True),
        ("csrc/segment_sum.cu", tuned, False),
        ("csrc/running_sum.cu", another_meaning, False),
        ("csrc/segment_sum.cu", code_behind, False),
        ("csrc/segment_sum.cu", inside, False),
        ("csrc/segment_sum.cu", function_more, True),
        ("csrc/row_kernels.h", function_more, True),
        ("csrc/ops.h", function_more, True),
        ("csrc/segment_sum.cu", overload_more, False),
        ("csrc/segment_sum.cu", owner_more, False),
        ("csrc/segment_sum.cu", line_more, False),
        ("csrc/segment_sum.cu", guarded, False),
        ("csrc/segment_sum.cu", class_more, False),
        ("csrc/segment_sum.cu", parameter_more, False),
        ("csrc/running_sum.cu", line_more, True),
        ("csrc/running_sum.cu", guarded, True),
        ("csrc/running_sum.cu", overload_more, False),
        ("setup.py", behind, False),
    ],
)
def test_what_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, edit, again: bool) -> None:
    """Remarks behind the code leave what was read of C++ as it is, and so does whatever happens in a file that the walk
    does not read and to no name that it asks for; where lines only move, or functions that it does not read come or go,
    their numbers are brought up to date. Everything else makes it be read anew."""
    root = tmp_path / "kit"
    shutil.copytree(KIT, root)
    walked(root, tmp_path / "cache")
    edit(root / path, 1)
    worked: list[bool] = []
    monkeypatch.setattr(Session, "workbench", property(lambda self: worked.append(True) or _WORKBENCH.func(self)))
    walked(root, tmp_path / "cache")
    assert (worked == []) is again


_WORKBENCH = Session.__dict__["workbench"]


def test_an_answer_that_rests_on_one_about_python_is_kept_no_longer_than_that(tmp_path: Path) -> None:
    """Whether what it rests on was worked out or recalled."""
    root = tmp_path / "kit"
    shutil.copytree(KIT, root)
    wrapper = "classickit/segments.py"

    def session() -> Session:
        return Session(Options(source=str(root), cache=tmp_path / "cache", jobs=1))

    def lines(one: Session) -> int:
        return one.kept_native("lines", int, lambda: one.text(wrapper).count("\n"))

    with contextlib.closing(session()) as one:
        first = lines(one)
    with contextlib.closing(session()) as one:
        assert one.kept_native("twice the lines", int, lambda: 2 * lines(one)) == 2 * first
    in_front(root / wrapper, 1)
    with contextlib.closing(session()) as one:
        assert one.kept_native("twice the lines", int, lambda: 2 * lines(one)) == 2 * first + 2


def test_code_of_regular_expressions_is_there_before_any_process_is_forked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forked process that asks for it then would use the connection to the store that is its parent's."""
    index, held = indexing.index, []

    def indexed(*given, **more):
        held.append(None if CODES._known is None else frozenset(CODES._known))
        regex.compiled("only this test asks for it")
        return index(*given, **more)

    monkeypatch.setattr(indexing, "index", indexed)
    for _ in range(2):
        # What one run has compiled, the next one finds, whatever process it is.
        regex.compiled.cache_clear()
        monkeypatch.setattr(CODES, "_known", None)
        monkeypatch.setattr(CODES, "_recall", lambda: None)
        walked(KIT, tmp_path)
    assert held[0] is not None and "0:only this test asks for it" not in held[0]
    assert held[1] is not None and "0:only this test asks for it" in held[1]


def test_a_part_that_still_holds_is_compared_where_it_stands_now(tmp_path: Path) -> None:
    """The first edit moves what one part was read from and makes the whole anew; the second one changes it."""
    root, header = tmp_path / "kit", tmp_path / "kit" / "widths.cuh"
    root.mkdir()
    header.write_text(
        "__device__ inline float twice(float x) {\n  x *= 2;\n  return x;\n}\n"
        "constexpr int width() {\n  return 128;\n}\n"
    )
    (root / "scale.cu").write_text(
        '#include <torch/library.h>\n#include "widths.cuh"\n'
        "template <int N>\n__global__ void scale_kernel(float* x) {\n  x[threadIdx.x] = twice(x[threadIdx.x]);\n}\n"
        "void scale(torch::Tensor& x) {\n  scale_kernel<width()><<<1, 128>>>(x.data_ptr<float>());\n}\n"
        'TORCH_LIBRARY(kit, m) {\n  m.def("scale(Tensor! x) -> ()");\n  m.impl("scale", torch::kCUDA, &scale);\n}\n'
    )
    assert b'"128"' in walked(root, tmp_path / "cache", "kit::scale")
    more = "".join(f"  x += {number};\n" for number in range(60))
    header.write_text(header.read_text().replace("  x *= 2;\n", more))
    walked(root, tmp_path / "cache", "kit::scale")
    header.write_text(header.read_text().replace("128", "256"))
    assert walked(root, tmp_path / "cache", "kit::scale") == walked(root, tmp_path / "fresh", "kit::scale")


def test_who_includes_a_file_is_known_from_before_but_for_files_that_have_changed(tmp_path: Path) -> None:
    root = tmp_path / "kit"
    shutil.copytree(KIT, root)

    def asked_for(*names: str) -> tuple[list[Sequence[str]], list[str]]:
        """The includers of some headers, and the files whose includes were read for that."""
        with contextlib.closing(Session(Options(source=str(root), cache=tmp_path / "cache", jobs=1))) as one:
            index, read = one.workbench.index, []
            kept = index._read_included
            index._read_included = lambda path: read.append(path) or kept(path)
            return [index.includers(name) for name in names], read

    header, further = "csrc/row_kernels.h", "csrc/more.h"
    (before, nobody), read = asked_for(header, further)
    assert "csrc/row_ops.cu" in before and nobody == () and "csrc/row_ops.cu" in read
    assert asked_for(header) == ([before], [])
    text = (root / "csrc/row_ops.cu").read_text()
    (root / "csrc/row_ops.cu").write_text('#include "more.h"\n' + text.replace('#include "row_kernels.h"\n', ""))
    (root / further).write_text("#pragma once\n")
    (after, some), _ = asked_for(header, further)
    assert "csrc/row_ops.cu" not in after and "csrc/row_ops.cu" in some
    (root / "csrc/row_ops.cu").write_text(text)
    assert asked_for(header, further)[0] == [before, [further]]
    assert asked_for(header, further)[1] == []
