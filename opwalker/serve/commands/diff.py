"""``opwalker diff``: what changed between two versions, and whether callers notice."""

from __future__ import annotations

from typing import Annotated

import typer

from opwalker.serve.app import command
from opwalker.serve.session import Session, one_of

FORMATS = ("text", "json", "markdown")


@command("diff", example="opwalker diff vllm==0.10.2 vllm==0.30.0")
def diff(
    session: Session,
    old: Annotated[str, typer.Argument(metavar="OLD", help="A folder, archive, NAME==VERSION or git revision.")],
    new: Annotated[
        str | None, typer.Argument(metavar="[NEW]", help="The same; default: the source around here, or --source.")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="How the answer is written.")
    ] = FORMATS[0],
) -> int:
    """Compare two versions: ops, schemas, keys, kernels, instances, launches. Exit code 1: a change breaks callers."""
    one_of(form, FORMATS, "--format")
    result = session.ask(lambda flow: flow.diff, old, new)
    if form == "json" and not session.as_json:
        session.show_json(result)
    elif form == "markdown" and not session.as_json:
        from opwalker.serve.render.diff import markdown

        session.write(markdown(result))
    else:
        session.show(result)
    return 1 if result.breaking else 0
