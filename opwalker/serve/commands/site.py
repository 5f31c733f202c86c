"""``opwalker site``: the notes as static web pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opwalker.errors import UsageError
from opwalker.serve.app import command
from opwalker.serve.session import Session


@command("site", example="opwalker site -o site --source vllm==0.30.0")
def site(
    session: Session,
    names: Annotated[list[str] | None, typer.Argument(metavar="[OP]…", help="Only these; default: every op.")] = None,
    folder: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="The folder that is written.")] = "",
    serve: Annotated[bool, typer.Option("--serve", help="Then serve it on this machine and open it.")] = False,
) -> None:
    """Write static web pages: search over ops and kernels, each walk beside the code that it speaks of."""
    if not folder:
        raise UsageError("site needs a folder to write to", "write 'opwalker site -o DIR'")
    from opwalker.serve.site.folder import SiteFolder

    path = Path(folder).expanduser()
    target = SiteFolder(path)
    session.ask(lambda flow: flow.notes, names or [], not names, target.add)
    listed = session.ask(lambda flow: flow.kernels)
    session.show(target.finish(listed.source, listed.kernels))
    if serve:
        from opwalker.serve.site.server import serve_folder

        serve_folder(path, session.progress.say)
