"""How a body touches memory: what is read and what is written through a reference that is bound to an element."""

from __future__ import annotations

import pytest

from opwalker.facts.cpp_access import read_accesses

WRITES, READS, BOTH, NEITHER = (True, False), (False, True), (True, True), (False, False)


@pytest.mark.parametrize(
    ("code", "used"),
    [
        ("auto& o = out[i]; o = 1;", WRITES),
        ("float& o = out[i], z = 1; o = z;", WRITES),
        ("if (n) { auto&& o = out[i]; if (m) { o.x = f(n); } }", WRITES),
        ("auto& o = out[i]; auto& p = o; p = 3;", WRITES),
        ("Vec& o = *reinterpret_cast<Vec*>(out + i); o.x = 3;", WRITES),
        ("auto& o = out[i]; [&] { o = 1; }();", WRITES),
        ("auto& o = (out[i]).x; o = 1;", WRITES),
        # What the element points at, or what a call makes of it, is no part of it.
        ("auto& o = at(out[i]); o = 1;", READS),
        ("auto& o = out[i]; o += 1;", BOTH),
        ("auto& o = out[i]; o = 1; g(o);", BOTH),
        ("auto& o = out[i]; float a = o;", READS),
        # What is made of the element is no other name of it.
        ("auto o = out[i]; o = 3;", READS),
        ("const auto& o = out[i]; f(&o);", READS),
        # Only its address is taken, or nothing is done with it.
        ("auto& o = out[i]; store(&o, 1);", NEITHER),
        ("auto& o = out[i]; other = 1;", NEITHER),
        # A variable of the name that is another one.
        ("{ auto& o = out[i]; g(o); } int o; o = 4;", READS),
        ("auto& o = out[i]; { int o; o = 4; }", READS),
        ("auto& o = out[i]; [](int o) { o = 4; }(1);", READS),
    ],
)
def test_an_element_is_used_as_a_reference_to_it_is(code: str, used: tuple[bool, bool]) -> None:
    (found,) = read_accesses(f"{{ {code} }}", ()).accesses
    assert (found.written, found.read) == used


def test_a_use_through_a_reference_stands_where_the_reference_is_named() -> None:
    code = "{ auto& o = out[i]; wait(); o.x = o.y; p[0] = 1; }"
    first, second = read_accesses(code, ()).accesses
    assert first.uses == ((code.index("o.x"), True, False), (code.index("o.y"), False, True))
    assert second.uses == ((code.index("p[0]"), True, False),)
