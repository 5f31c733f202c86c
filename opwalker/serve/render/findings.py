"""Comes in: a ``CheckResult`` and the text of its files. Goes out: findings with a frame of code, or as annotations."""

from __future__ import annotations

from collections.abc import Callable

from opwalker.model.check import CheckResult, Finding
from opwalker.serve.voice import one_line

_AROUND = 1


def to_text(result: CheckResult, text: Callable[[str], str]) -> str:
    """Findings by file, each with the lines around it, what it rests on, and the counts at the end."""
    lines: list[str] = []
    cut: dict[str, list[str]] = {}
    for one in result.findings:
        if one.file not in cut:
            cut[one.file] = text(one.file).removesuffix("\n").split("\n")
        lines += _finding(one, cut[one.file])
    lines.append(_sum(result))
    lines += [f"note: {note}" for note in result.notes]
    return "\n".join(lines) + "\n"


def _finding(one: Finding, held: list[str]) -> list[str]:
    by = f"  {one.op}" if one.op else ""
    out = [f"{one.file}:{one.line}:{one.column} {one.severity} {one.rule}{by}", f"  {one_line(one.message)}"]
    width = len(str(one.line + _AROUND))
    for number in range(max(1, one.line - _AROUND), min(len(held), one.end_line + _AROUND) + 1):
        mark = ">" if one.line <= number <= one.end_line else " "
        out.append(f"  {mark} {number:>{width}} | {one_line(held[number - 1])}".rstrip())
        if number == one.line:
            out.append(f"    {'':>{width}} | {' ' * (len(one_line(held[number - 1][: one.column - 1])))}^")
    out += [f"    {at.file}:{at.line} {one_line(at.message)}" for at in one.related]
    out.append("")
    return out


def _sum(result: CheckResult) -> str:
    total = len(result.findings)
    rules = f"{len(result.rules)} rules"
    said = f"{total:,} findings of {rules}" if total != 1 else f"1 finding of {rules}"
    if not total:
        said = f"no finding of {rules}"
    parts = [f"{rule} {number}" for rule, number in sorted(result.counts.items(), key=lambda pair: -pair[1])]
    hidden = [f"{number} held back by {reason}" for reason, number in result.hidden.items() if number]
    return "; ".join([said + (": " + ", ".join(parts) if parts else ""), *hidden])


def to_annotations(result: CheckResult) -> str:
    """One workflow command a finding, as GitHub reads them from a log."""
    kinds = {"error": "error", "warning": "warning", "info": "notice"}
    return "".join(
        f"::{kinds[one.severity]} file={_property(one.file)},line={one.line},endLine={one.end_line},"
        f"col={one.column},title={_property(one.rule)}::{_data(one.message)}\n"
        for one in result.findings
    )


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
