"""``opwalker notes``: reading notes as Markdown, one page an op."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opwalker.errors import UsageError
from opwalker.serve.app import command
from opwalker.serve.session import Session


@command("notes", example="opwalker notes reshape_and_cache -o notes --source vllm==0.30.0")
def notes(
    session: Session,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[OP]…", help="Ops, or files, functions, classes, kernels.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="A page for every op of the source.")] = False,
    folder: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="The folder that is written.")] = "",
    permalink: Annotated[
        str | None, typer.Option("--permalink", metavar="URL", help="What source links begin with: URL/file#L12.")
    ] = None,
) -> None:
    """Write reading notes as Markdown: a page an op, with diagrams. What you wrote between the marks stays."""
    if not names and not everything:
        raise UsageError("notes needs an op, or --all", "write 'opwalker notes OP -o DIR'")
    if not folder:
        raise UsageError("notes needs a folder to write to", "write 'opwalker notes OP -o DIR'")
    from opwalker.serve.notes_folder import NotesFolder

    target = NotesFolder(Path(folder).expanduser(), permalink)
    source = session.ask(lambda flow: flow.notes, names or [], everything, lambda note, _: target.add(note))
    session.show(target.finish(source))
