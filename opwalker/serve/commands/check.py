"""``opwalker check``: the rules run over a source."""

from __future__ import annotations

from typing import Annotated

import typer

from opwalker.serve.app import command
from opwalker.serve.session import Session, one_of

FORMATS = ("text", "json")


@command("check", example="opwalker check csrc --source ./vllm")
def check(
    session: Session,
    paths: Annotated[list[str] | None, typer.Argument(metavar="[PATH]…", help="Only findings below these.")] = None,
    form: Annotated[
        str, typer.Option("--format", metavar="|".join(FORMATS), help="How the findings are written.")
    ] = FORMATS[0],
    select: Annotated[
        list[str] | None, typer.Option("--select", metavar="RULE", help="Run these rules alone; ALL is every rule.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option("--ignore", metavar="RULE", help="Do not run these.")] = None,
) -> int:
    """Check kernel code: schemas against functions, guards, streams, launches, narrow offsets, flags, barriers."""
    from opwalker.model.check import CheckOptions

    one_of(form, FORMATS, "--format")
    chosen = CheckOptions(tuple(paths or ()), _ids(select), _ids(ignore))
    result = session.ask(lambda flow: flow.check, chosen)
    if form == "json" and not session.as_json:
        session.show_json(result)
    else:
        session.show(result)
    return 1 if result.findings else 0


def _ids(words: list[str] | None) -> tuple[str, ...]:
    """Rule ids from options that may be repeated or joined by commas."""
    return tuple(name.strip() for word in words or () for name in word.split(",") if name.strip())
