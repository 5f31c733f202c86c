"""Pages and queries of patterns: read and printed they are the same; what cannot be read is said with its line."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opwalker import resources
from opwalker.model.patterns import Clause, Condition, Demand
from opwalker.notation.pattern_page import parse_page, print_page
from opwalker.notation.pattern_query import INSIDE, SUBJECTS, QueryError, parse_query, print_query

PAGES = sorted((resources.folder("grammars") / "patterns").glob("*.md"))


#: Pieces of regular expressions, each of which may stand once.
PIECES = ("a", "b*", r"\w", "/", "(?P<x>c)", " and ", " ", r"\(", "[~=]", r"\\")


def _conditions(subject: str) -> st.SearchStrategy[tuple[Condition, ...]]:
    fields = st.sampled_from(SUBJECTS[subject])
    pattern = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4, unique=True).map("".join)
    searched = st.builds(Condition, fields, st.sampled_from(("~", "!~")), pattern)
    equal = st.builds(Condition, fields, st.sampled_from(("=", "!=")), st.sampled_from(("union", "cp.async", "a:b")))
    return st.lists(st.one_of(searched, equal), min_size=1, max_size=2).map(tuple)


def _demand(role: str, subjects: tuple[str, ...]) -> st.SearchStrategy[Demand]:
    return st.sampled_from(subjects).flatmap(lambda s: _conditions(s).map(lambda c: Demand(role, s, c)))


INNER = tuple(INSIDE)
CLAUSES = st.builds(
    lambda find, rest: Clause((find, *rest)),
    _demand("find", INNER),
    st.lists(st.one_of(_demand("in", ("function",)), _demand("with", INNER), _demand("without", INNER)), max_size=2),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(CLAUSES, min_size=1, max_size=2).map(tuple))
def test_a_query_that_is_printed_reads_the_same(clauses: tuple[Clause, ...]) -> None:
    assert parse_query(print_query(clauses)) == clauses


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_that_is_printed_is_the_same(path) -> None:
    text = path.read_text(encoding="utf-8")
    assert print_page(parse_page(text)) == text


@pytest.mark.parametrize(
    ("query", "line", "said"),
    [
        ("", 1, "it has no 'find' line"),
        ("with call name ~ /x/", 1, "'with' before any 'find'"),
        ("find macro name ~ /x/\nwith call name ~ /y/", 2, "a macro stands in no function"),
        ("look call name ~ /x/", 1, "a line begins with one of find, in, with, without, not 'look'"),
        ("find call name ~ /x", 1, "no condition can be read at 'name ~ /x'"),
        ("find call", 1, "no condition can be read at ''"),
        ("find call name = /x/", 1, "name =: ~ takes a /regular expression/, = a word"),
        ("find call name ~ x", 1, "name ~: ~ takes a /regular expression/, = a word"),
        ("\nfind call colour ~ /x/", 2, "a call has no field 'colour'"),
        ("find call name ~ /x/ name ~ /y/", 1, "no condition can be read"),
        ("find call name ~ /(/", 1, "/(/ is no regular expression"),
        ("find call name ~ /(?P<a>x)/\nwith call name ~ /@b@/", 2, "@b@ names no group of the 'find' line; it has a"),
        ("find call name ~ /x/\nwithout declare name ~ /@b@/", 2, "it has none"),
    ],
)
def test_a_bad_query(query: str, line: int, said: str) -> None:
    with pytest.raises(QueryError) as error:
        parse_query(query)
    assert (error.value.number, said in str(error.value)) == (line, True)


def test_a_later_line_may_name_what_the_find_line_captured() -> None:
    text = "find declare name ~ /(?P<tile>\\w+)/\nwith statement text ~ /@tile@\\[/\nwith call text ~ /@other/"
    assert print_query(parse_query(text)) == text
