"""Regular expressions made of kept code are those that would be compiled, and no other code is run."""

from __future__ import annotations

import importlib
import pkgutil
import re

import msgspec
import pytest

import opwalker.notation
from opwalker.notation import regex
from opwalker.notation.regex import CODES, Code, Regex, compiled

PATTERNS = [
    (r"\b(foo|bär)\s*(?P<x>\w+)", 0),
    (r"(?i)a(?P<n>b)(c)(?P=n)|[^\W\d]", re.MULTILINE | re.DOTALL),
    (r"(?<=x)y{2,3}? (?>ab)*+ # a note", re.VERBOSE),
    (r"\w", re.ASCII),
    ("", 0),
]


@pytest.fixture
def codes(monkeypatch: pytest.MonkeyPatch):
    """The codes of this process, none at the beginning."""
    monkeypatch.setattr(CODES, "_known", {})
    compiled.cache_clear()
    yield CODES
    compiled.cache_clear()


def same(found: re.Pattern[str], wanted: re.Pattern[str]) -> bool:
    """Whether two expressions are one: patterns that are equal have the same code."""
    return found == wanted and (found.groups, dict(found.groupindex)) == (wanted.groups, dict(wanted.groupindex))


@pytest.mark.parametrize(("pattern", "flags"), PATTERNS)
def test_an_expression_is_what_it_would_be_compiled_to(codes, pattern: str, flags: int) -> None:
    assert same(compiled(pattern, flags), re.compile(pattern, flags))
    recalled = msgspec.msgpack.decode(msgspec.msgpack.encode(codes.known), type=dict[str, msgspec.Raw])
    compiled.cache_clear()
    codes._known = recalled
    codes.fresh = False
    assert same(compiled(pattern, flags), re.compile(pattern, flags))
    assert not codes.fresh and codes.known is recalled


def test_expressions_of_this_program_come_back(codes) -> None:
    found = [
        one
        for module in pkgutil.iter_modules(opwalker.notation.__path__)
        for one in vars(importlib.import_module(f"opwalker.notation.{module.name}")).values()
        if isinstance(one, Regex)
    ]
    assert len(found) > 20
    for one in found:
        assert same(compiled(one.pattern, one.flags), re.compile(one.pattern, one.flags)), one


def test_flags_tell_expressions_apart(codes) -> None:
    assert compiled("a").match("A") is None
    assert compiled("a", re.IGNORECASE).match("A") is not None


def test_no_expression_raises_as_it_would(codes) -> None:
    with pytest.raises(re.error):
        compiled("(")
    assert not codes.known


@pytest.mark.parametrize(
    "held",
    [
        msgspec.Raw(b"\xc1"),
        msgspec.Raw(msgspec.msgpack.encode("no code")),
        msgspec.Raw(msgspec.msgpack.encode(Code(32, 0, {}, b"\xff\xff\xff\xff" * 3))),
        msgspec.Raw(msgspec.msgpack.encode(Code(32, 0, {}, b"odd"))),
        msgspec.Raw(msgspec.msgpack.encode(Code(32, 0, {"x": 9}, b""))),
    ],
)
def test_what_is_no_code_is_not_run(codes, held: msgspec.Raw) -> None:
    codes._known = {"0:a+b": held}
    found = compiled("a+b")
    assert same(found, re.compile("a+b")) and codes.known == {}


def test_codes_of_others_leave_room_for_those_of_this_program(codes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "_MOST_OTHERS", 1)
    assert compiled("a").match("a") and compiled("b").match("b") and Regex("c").match("c")
    assert list(codes.known) == ["0:a", "0:c"]


def test_an_engine_without_codes_compiles(codes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex, "_sre", None)
    assert compiled("a+").fullmatch("aaa") and not codes.known
    assert "None" in regex.engine()
