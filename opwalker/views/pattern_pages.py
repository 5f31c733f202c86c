"""The catalogue: the pages that ship with the program, or those of a user's folder.

In: a folder, or none. Out: patterns by id, in the catalogue's order, with the text of each page.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from opwalker import resources
from opwalker.errors import InputError, UsageError
from opwalker.model.patterns import Pattern, PatternInfo, PatternQuestion
from opwalker.notation.pattern_page import PageError, parse_page

#: A page of the catalogue: the pattern, and its text.
Page = tuple[Pattern, str]


def load_pages(folder: Path | None) -> tuple[Page, ...]:
    """The pages ``*.md`` of a folder, by id; the program's own where None is given. InputError for a page that cannot
    be read, for an id that is not the file's name, and for a folder without pages."""
    chosen = folder if folder is not None else resources.folder("grammars") / "patterns"
    if not chosen.is_dir():
        raise InputError(f"there is no folder {chosen}", "--patterns takes a folder of pattern pages")
    pages = []
    for path in sorted(chosen.glob("*.md")):
        try:
            text = path.read_text(encoding="utf-8")
            pattern = parse_page(text)
        except PageError as error:
            raise InputError(f"{path}:{error.line}: {error}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
        if pattern.id != path.stem:
            raise InputError(f"{path}:1: the page calls itself {pattern.id!r}, its file {path.stem!r}")
        pages.append((pattern, text))
    if not pages:
        raise InputError(f"{chosen} holds no pattern page (*.md)")
    return tuple(pages)


def page_called(pages: Sequence[Page], name: str) -> Page:
    """The page with an id; UsageError with the nearest ids where there is none."""
    for one in pages:
        if one[0].id == name:
            return one
    near = difflib.get_close_matches(name, [pattern.id for pattern, _ in pages], 3, 0.4)
    hint = f"nearest: {', '.join(near)}" if near else None
    raise UsageError(f"no pattern is called {name!r}", hint or "see 'opwalker patterns list'")


def chosen_pages(pages: Sequence[Page], question: PatternQuestion) -> list[Pattern]:
    """The patterns with the ids and tags that were asked for; UsageError for an id or a tag that no page has."""
    ids = {page_called(pages, name)[0].id for name in question.ids}
    tags = sorted({tag for pattern, _ in pages for tag in pattern.tags})
    for tag in question.tags:
        if tag not in tags:
            raise UsageError(f"no pattern has the tag {tag!r}", f"tags: {', '.join(tags)}")
    return [
        pattern
        for pattern, _ in pages
        if (not ids or pattern.id in ids) and all(tag in pattern.tags for tag in question.tags)
    ]


def listed(pages: Sequence[Page], question: PatternQuestion) -> tuple[PatternInfo, ...]:
    """The pages that a list shows: ``text`` is looked for in all of a page."""
    texts = {pattern.id: text.lower() for pattern, text in pages}
    wanted = (question.text or "").lower()
    return tuple(
        PatternInfo(one.id, one.title, one.tags, one.what.split("\n\n", 1)[0])
        for one in chosen_pages(pages, question)
        if wanted in texts[one.id]
    )
