"""Where definitions begin and end, without a parser: against the standard library's parser on sound texts."""

from __future__ import annotations

import ast
import textwrap

import pytest

from opwalker.facts.python_layout import Layout

SAMPLE = textwrap.dedent(
    '''
    """A docstring that fakes:
    def not_a_function():
        pass
    """
    import x

    def one(
        a,
        b=(1, 2),
    ) -> None:
        text = """
    class NotAClass:
    """
        # a comment at the wrong place
    # and one further out
        if a:
            return b

    class Outer(Base, metaclass=M):
        value = 1

        @decorated(
            "x",
        )
        async def two(self): return 1

        class Inner:
            def three(self):
                def four():
                    pass
                return four

        after = 'def five(): "'

    @decorated
    def six(): pass
    x = 1
    '''
)


def spans(text: str) -> dict[str, tuple[int, int]]:
    """The first and last line of every definition, as Python reads them."""
    nodes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, nodes)]
    return {node.name: (node.lineno, node.end_lineno or 0) for node in found}


def test_heads_and_their_lines() -> None:
    layout = Layout(SAMPLE)
    expected = spans(SAMPLE)
    assert {head.name: layout.line_of(head.start) for head in layout.heads} == {k: v[0] for k, v in expected.items()}
    for head in layout.heads:
        body = SAMPLE[head.start : layout.end_of(head)].rstrip()
        assert layout.line_of(head.start) + body.count("\n") == expected[head.name][1]


def test_what_surrounds_a_place() -> None:
    layout = Layout(SAMPLE)
    inside = SAMPLE.index("return four")
    assert [head.name for head in layout.around(inside)] == ["three", "Inner", "Outer"]
    assert layout.around(SAMPLE.index("after =")) == layout.named("Outer")
    assert layout.around(SAMPLE.index("x = 1")) == []
    assert layout.around(SAMPLE.index("NotAClass")) == layout.named("one")


def test_the_function_below_a_decorator() -> None:
    layout = Layout(SAMPLE)
    assert layout.decorated(SAMPLE.index('decorated(\n        "x"')) == layout.named("two")[0]
    assert layout.decorated(SAMPLE.index('"x",')) == layout.named("two")[0]
    assert layout.decorated(SAMPLE.index("decorated\ndef six")) == layout.named("six")[0]
    assert layout.decorated(SAMPLE.index("value = 1")) is None


def test_the_skeleton_keeps_lines_and_drops_bodies() -> None:
    layout = Layout(SAMPLE)
    skeleton = layout.skeleton(lambda head: head.name == "three", lambda head: head.name == "one")
    assert skeleton.count("\n") == SAMPLE.count("\n")
    assert "return b" not in skeleton and "b=(1, 2)" in skeleton and "return four" in skeleton
    left = spans(skeleton)
    assert {name: span[0] for name, span in left.items()} == {name: span[0] for name, span in spans(SAMPLE).items()}


@pytest.mark.parametrize(
    ("text", "strings"),
    [
        ('x = \'"""\'\ny = 1\n', 0),
        ('# it\'s """\ny = 1\n', 0),
        ("x = \"\"\"a\"\"\"; y = '''b\n'''\n", 2),
        ('x = "" """a\n"""\n', 1),
        ('x = """a\\"""b"""\n', 1),
        ('x = """never closed\n', 1),
        ("x = 'it\\'s' '''a'''\n", 1),
    ],
)
def test_triple_quoted_strings(text: str, strings: int) -> None:
    layout = Layout(text)
    assert sum(layout.in_string(at) and not layout.in_string(at - 1) for at in range(1, len(text))) == strings
