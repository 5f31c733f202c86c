"""CMake text to commands."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opwalker.facts.build_cmake import MAX_DEPTH, read_cmake
from opwalker.model.build import BuildArgument, BuildCommand


def commands(text: str) -> tuple[BuildCommand, ...]:
    read, problems = read_cmake(text)
    assert problems == ()
    return read


def test_a_command_has_its_arguments_with_their_styles_and_lines() -> None:
    (command,) = commands('SET(NAME bare\n    "two words"  # why\n    [=[ as ]] it is ]=])')
    assert command == BuildCommand(
        "set",
        (
            BuildArgument("NAME", "bare", 1),
            BuildArgument("bare", "bare", 1),
            BuildArgument("two words", "quoted", 2),
            BuildArgument(" as ]] it is ", "bracket", 3),
        ),
        1,
    )


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('f("a\\"b")', ['a\\"b']),
        ('f("a;b")', ["a;b"]),
        ("f(a;b)", ["a;b"]),
        ('f(-DX="y z")', ['-DX="y z"']),
        ("f(${A}/b.cu)", ["${A}/b.cu"]),
        ("f(#[[ gone ]] a #[==[ gone\n ]==] b)", ["a", "b"]),
        ("f((a OR b))", ["(", "a", "OR", "b", ")"]),
        ('f("line\nline")', ["line\nline"]),
        ("f()", []),
        ("f\n(\na\n)", ["a"]),
        ("\ufefff(a)", ["a"]),
        ("f(a\r\n  b)\r\n", ["a", "b"]),
    ],
)
def test_arguments_are_taken_apart_as_cmake_does(text: str, arguments: list[str]) -> None:
    (command,) = commands(text)
    assert [argument.text for argument in command.arguments] == arguments


def test_blocks_hold_their_commands_and_lose_their_closing_ones() -> None:
    text = "if(A)\n x()\nelseif(B)\n foreach(i 1)\n  y()\n endforeach()\nelse()\nendif()\nz()"
    read = commands(text)
    assert [(c.name, c.line, [inner.name for inner in c.body]) for c in read] == [
        ("if", 1, ["x"]),
        ("elseif", 3, ["foreach"]),
        ("else", 7, []),
        ("z", 9, []),
    ]
    assert [inner.name for inner in read[1].body[0].body] == ["y"]


def test_a_function_may_stand_in_a_function() -> None:
    (outer,) = commands("function(a)\n macro(b)\n endmacro()\nendfunction(a)")
    assert [command.name for command in outer.body] == ["macro"]


@pytest.mark.parametrize(
    ("text", "line", "message", "kept"),
    [
        ("a()\nb(x\nc()\n", 2, "the arguments of b( do not end", ["a", "c"]),
        ('a()\nb("x)\nc()\n', 2, "the arguments of b( do not end", ["a", "c"]),
        ("a()\n]]\nc()\n", 2, "expected a command", ["a", "c"]),
        ("a()\nendif()\nc()", 2, "endif without if", ["a", "c"]),
        ("a()\nelse()\nc()", 2, "else without if", ["a", "c"]),
        ("if(X)\n a()\n", 1, "if is never closed", ["if"]),
        ("if(X)\n foreach(i 1)\n  a()\nendif()\nb()", 4, "endif without if", ["if", "b"]),
    ],
)
def test_faults_are_problems_with_a_line_and_the_rest_is_read(
    text: str, line: int, message: str, kept: list[str]
) -> None:
    read, problems = read_cmake(text)
    assert [command.name for command in read] == kept
    assert any(p.line == line and message in p.message and p.kind == "bad-build-file" for p in problems)


def test_nesting_is_bounded() -> None:
    deep = 5_000
    read, problems = read_cmake("if(A)\n" * deep + "x()\n" + "endif()\n" * deep)
    depth = 0
    while read:
        depth += 1
        read = read[0].body
    assert depth <= MAX_DEPTH
    assert [p.kind for p in problems] == ["too-deep"]


def test_a_file_of_faults_is_given_up() -> None:
    _, problems = read_cmake('f("\n' * 100_000)
    assert 0 < len(problems) < 100


@settings(max_examples=200)
@given(st.text(alphabet=st.sampled_from('ab_ \n\t()[]"#=\\;${}if endif else foreach'), max_size=200))
def test_no_text_raises(text: str) -> None:
    read_cmake(text)


@given(st.lists(st.text(alphabet="abc./-_ ;$", min_size=1, max_size=12), max_size=6))
def test_quoted_arguments_come_back(texts: list[str]) -> None:
    (command,) = commands("f(" + " ".join(f'"{text}"' for text in texts) + ")")
    assert [argument.text for argument in command.arguments] == texts
