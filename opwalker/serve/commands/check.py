"""``opwalker check``: the rules run over a source, and their findings in the form that was asked for."""

from __future__ import annotations

from typing import Annotated

import typer

from opwalker.errors import UsageError
from opwalker.serve.app import command
from opwalker.serve.session import Session, one_of

FORMATS = ("text", "json", "sarif", "github")


@command("check", example="opwalker check csrc --source ./vllm --format sarif")
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
    baseline: Annotated[
        str | None, typer.Option("--baseline", metavar="FILE", help="Hold back what this file holds.")
    ] = None,
    write_baseline: Annotated[
        str | None, typer.Option("--write-baseline", metavar="FILE", help="Write what is found as a baseline.")
    ] = None,
    changed_since: Annotated[
        str | None, typer.Option("--changed-since", metavar="REV", help="Only findings on lines changed since then.")
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules, or with --select show their pages.")] = False,
) -> int:
    """Check kernel code: schemas, fakes, guards, streams, launches, offsets, barriers. Exit code 1: something found."""
    from opwalker.model.check import CheckOptions

    one_of(form, FORMATS, "--format")
    if rules:
        return _rules(session, _ids(select))
    if session.as_json and form not in ("text", "json"):
        raise UsageError(f"--json and --format {form} are two forms", "give one of them")
    chosen = CheckOptions(
        tuple(paths or ()),
        _ids(select),
        _ids(ignore),
        baseline,
        write_baseline,
        changed_since,
    )
    result, text = session.ask(lambda flow: flow.check, chosen)
    if session.as_json or form == "json":
        session.show_json(result)
    elif form == "sarif":
        from opwalker.serve.render.sarif import to_sarif

        session.write(to_sarif(result).decode("utf-8"))
    elif form == "github":
        from opwalker.serve.render.findings import to_annotations

        session.write(to_annotations(result))
    else:
        from opwalker.serve.render.findings import to_text

        session.write(to_text(result, text))
    return 1 if result.findings else 0


def _rules(session: Session, chosen: tuple[str, ...]) -> int:
    """The list of rules, or the pages of those chosen."""
    from opwalker import pipeline
    from opwalker.views.check.run import rule_info

    held = [rule_info(rule, page) for rule, page in pipeline.load_rules()]
    unknown = [name for name in chosen if name not in {one.id for one in held}]
    if unknown:
        raise UsageError(f"no rule is called {unknown[0]!r}", "see 'opwalker check --rules'")
    if session.as_json:
        session.show_json([one for one in held if not chosen or one.id in chosen])
    elif chosen:
        session.write("\n\n".join(f"# {one.id}\n\n{one.help}" for one in held if one.id in chosen) + "\n")
    else:
        width = max(len(one.id) for one in held)
        lines = [
            f"{one.id:<{width}}  {one.severity:<7}  {'on ' if one.default else 'off'}  {one.summary}" for one in held
        ]
        session.write("\n".join(lines) + "\n")
    return 0


def _ids(words: list[str] | None) -> tuple[str, ...]:
    """Rule ids from options that may be repeated or joined by commas."""
    return tuple(name.strip() for word in words or () for name in word.split(",") if name.strip())
