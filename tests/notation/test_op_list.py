"""Op lists in YAML."""

from __future__ import annotations

from opwalker.notation.op_list import ListedOp, read_op_list

LIST = """# - func: not_an_entry(Tensor a) -> Tensor
- func: add(Tensor a, Tensor b) -> Tensor
  variants: function, method
  dispatch:
    CPU, CUDA: add_both  # one function for two keys
    Meta: kit::add_meta
  tags: [core]
- func: "scale(Tensor(a!) x,
    float by) -> ()"
- func: sum.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
  structured_delegate: sum
  dispatch: {CUDA: sum_cuda, CPU: sum_cpu}
other:
  dispatch:
    CPU: nothing
"""


def test_entries_with_their_lines() -> None:
    assert read_op_list(LIST) == (
        ListedOp(
            "add(Tensor a, Tensor b) -> Tensor",
            2,
            (("CPU", "add_both", 5), ("CUDA", "add_both", 5), ("Meta", "kit::add_meta", 6)),
        ),
        ListedOp("scale(Tensor(a!) x, float by) -> ()", 8),
        ListedOp(
            "sum.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
            10,
            (("CUDA", "sum_cuda", 12), ("CPU", "sum_cpu", 12)),
            True,
        ),
    )


def test_other_files_have_none() -> None:
    assert read_op_list("name: build\njobs:\n  - run: make\n    env:\n      CUDA: on\n") == ()
    assert read_op_list("") == ()
    assert read_op_list("- func: run\n  dispatch:\n    CUDA: run_cuda\n- schema: table\n") == ()
