"""The conditions of pages' queries are there for something: an example says what, by an answer that changes when the
condition is turned or left out."""

from __future__ import annotations

from pathlib import Path

from opwalker.notation.pattern_query import parse_query, print_query
from opwalker.views.pattern_pages import load_pages
from tests.views.pattern_mutants import mutants, survivors

PAGES = {pattern.id: pattern for pattern, _ in load_pages(None)}


def test_an_example_notices_each_condition(tmp_path: Path) -> None:
    """One in twenty may have none: a page that was just changed is no reason to stop."""
    found = {name: survivors(pattern, tmp_path / name, tmp_path / "cache") for name, pattern in PAGES.items()}
    alive = [f"{name}:\n{query}" for name, (_, queries) in found.items() for query in queries]
    assert len(alive) <= sum(total for total, _ in found.values()) // 20, "\n\n".join(alive)


def test_what_is_turned_and_left_out() -> None:
    first = "find call name ~ /a/ and receiver = b"
    second = "find python text ~ /d/ and text ~ /^(?P<e>d)$/"
    query = parse_query(f"{first}\nwith call name !~ /c/\n{second}")
    assert [print_query(one) for one in mutants(query)] == [
        second,
        f"find call name !~ /a/ and receiver = b\nwith call name !~ /c/\n{second}",
        f"find call receiver = b\nwith call name !~ /c/\n{second}",
        f"find call name ~ /a/ and receiver != b\nwith call name !~ /c/\n{second}",
        f"find call name ~ /a/\nwith call name !~ /c/\n{second}",
        f"{first}\n{second}",
        f"{first}\nwithout call name !~ /c/\n{second}",
        f"{first}\nwith call name ~ /c/\n{second}",
        f"{first}\nwith call name !~ /c/",
        f"{first}\nwith call name !~ /c/\nfind python text !~ /d/ and text ~ /^(?P<e>d)$/",
        f"{first}\nwith call name !~ /c/\nfind python text ~ /d/ and text !~ /^(?P<e>d)$/",
        f"{first}\nwith call name !~ /c/\nfind python text ~ /d/",
    ]
