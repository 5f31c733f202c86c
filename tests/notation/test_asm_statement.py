"""An ``asm`` statement's template, operands and clobbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opwalker.notation.asm_statement import parse_asm

STATEMENTS = [
    ('asm volatile("ld.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory")', "ld.u32 %0, [%1];", ("v", "p"), 1, ("memory",)),
    ('asm("st.u32 [%1], %0;" ::"r"(f(a, b)), "l"(x::y))', "st.u32 [%1], %0;", ("f(a, b)", "x::y"), 0, ()),
    ('asm volatile("bar.sync 0;")', "bar.sync 0;", (), 0, ()),
    ('asm volatile("fence.acq_rel.gpu;" ::: "memory")', "fence.acq_rel.gpu;", (), 0, ("memory",)),
    ('asm volatile("ld.shared::cta.u32 %0, " "[%1];\\n" : "=r"(out.x) : "r"(s))', "ld.shared::cta.u32 %0, [%1];\n",
     ("out.x", "s"), 1, ()),
    ('asm(R"(a;\nb)" : : "n"(1))', "a;\nb", ("1",), 0, ()),
    ('__asm__ __volatile__("a ; b" : "+f"((c)[0]), "=f"(*(float*)(&d)) : : )', "a ; b", ("(c)[0]", "*(float*)(&d)"),
     2, ()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "template", "operands", "outputs", "clobbers"), STATEMENTS)
def test_the_parts(text, template, operands, outputs, clobbers) -> None:
    made = parse_asm(text)
    assert made.template == template
    assert tuple(o.expression for o in made.operands) == operands
    assert (made.outputs, made.clobbers) == (outputs, clobbers)


def test_operands_by_number_and_by_name() -> None:
    made = parse_asm('asm("x %[to], %1" : [to] "=r"(a) : "r"(b))')
    assert made.operand("%[to]").expression == "a"
    assert (made.operand("%1").expression, made.operand("%r1").constraint) == ("b", "r")
    assert made.operand("%2") is None and made.operand("%[from]") is None and made.operand("7") is None


@pytest.mark.parametrize("text", ["asm", "asm(x)", "", "asm goto"])
def test_what_has_no_template_is_none(text) -> None:
    assert parse_asm(text) is None


@given(st.text(alphabet='asm(")%:;\\[]r01 ,', max_size=60))
def test_no_text_breaks_it(text) -> None:
    made = parse_asm(text)
    assert made is None or made.outputs <= len(made.operands)
