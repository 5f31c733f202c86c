"""``opwalker patterns``: the catalogue of patterns listed, shown, and searched for in a source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opwalker.errors import UsageError
from opwalker.serve.app import command
from opwalker.serve.session import Session, one_of

VERBS = ("list", "show", "search")


@command("patterns", example="opwalker patterns search raii-guard --op rms_norm --source vllm==0.30.0")
def patterns(
    session: Session,
    verb: Annotated[str, typer.Argument(metavar="|".join(VERBS), help="What to do; without a word: list.")] = VERBS[0],
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[ID | PATH]…", help="Ids of patterns; of a search, paths as well.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Patterns with this tag.")] = None,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="Pages, or hits, that hold this text.")
    ] = None,
    op: Annotated[str | None, typer.Option("--op", metavar="OP", help="Hits on the way of this op.")] = None,
    folder: Annotated[
        str | None, typer.Option("--patterns", metavar="DIR", help="Your own pages instead of the program's.")
    ] = None,
) -> None:
    """Search a source for known patterns of kernel code; list them, or show the page of one."""
    from opwalker.model.patterns import PatternList, PatternPage, PatternQuestion
    from opwalker.views.pattern_pages import listed, load_pages, page_called

    one_of(verb, VERBS, "patterns")
    pages = load_pages(Path(folder).expanduser() if folder is not None else None)
    known = {pattern.id for pattern, _ in pages}
    words = words or []
    # An id is one word; what has a slash or a dot in it, or is no id, is a path.
    ids = tuple(word for word in words if word in known or not ("/" in word or "." in word or verb != "search"))
    paths = tuple(word for word in words if word not in ids) if verb == "search" else ()
    if verb == "show":
        if len(words) != 1:
            raise UsageError("show takes the id of one pattern", "see 'opwalker patterns list'")
        pattern, page = page_called(pages, words[0])
        session.show(PatternPage(pattern=pattern, page=page))
        return
    question = PatternQuestion(tuple(words) if verb == "list" else ids, tuple(tag or ()), text, op, paths)
    if verb == "list":
        session.show(PatternList(patterns=listed(pages, question)))
    else:
        session.show(session.ask(lambda flow: flow.patterns, pages, question), "of these patterns")
