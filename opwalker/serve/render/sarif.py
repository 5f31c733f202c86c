"""Comes in: a ``CheckResult``. Goes out: SARIF 2.1.0, as code-scanning services read it.

At most ``MOST`` results are written; how many are left out is said in the run's properties. Partial fingerprints stay
when lines move.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from opwalker import __version__
from opwalker.model.check import CheckResult, Finding, Related, RuleInfo

MOST = 5000
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def to_sarif(result: CheckResult) -> bytes:
    """One SARIF document."""
    order = {rule.id: number for number, rule in enumerate(result.rules)}
    shown = result.findings[:MOST]
    run = {
        "tool": {
            "driver": {"name": "opwalker", "version": __version__, "rules": [_rule(rule) for rule in result.rules]}
        },
        "columnKind": "utf16CodeUnits",
        "results": [_result(one, order) for one in shown],
        "properties": {"findings": len(result.findings), "leftOut": len(result.findings) - len(shown)},
    }
    # The version says which form it is: a "$schema" would only name another machine.
    document = {"version": "2.1.0", "runs": [run]}
    return json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8", "replace") + b"\n"


def _rule(rule: RuleInfo) -> dict[str, object]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.help, "markdown": rule.help},
        "defaultConfiguration": {"level": _LEVELS[rule.severity], "enabled": rule.default},
    }


def _result(one: Finding, order: dict[str, int]) -> dict[str, object]:
    made: dict[str, object] = {
        "ruleId": one.rule,
        "level": _LEVELS[one.severity],
        "message": {"text": one.message},
        "locations": [_location(one.file, one.line, one.end_line, one.column)],
        "partialFingerprints": {"opwalker/v1": one.fingerprint},
    }
    if one.rule in order:
        made["ruleIndex"] = order[one.rule]
    if one.related:
        made["relatedLocations"] = [_related(number, at) for number, at in enumerate(one.related)]
    if one.op:
        made["properties"] = {"op": one.op}
    return made


def _location(file: str, line: int, end_line: int, column: int | None) -> dict[str, object]:
    region: dict[str, int] = {"startLine": max(line, 1), "endLine": max(end_line, line, 1)}
    if column:
        region["startColumn"] = column
    return {"physicalLocation": {"artifactLocation": {"uri": quote(file)}, "region": region}}


def _related(number: int, at: Related) -> dict[str, object]:
    return {"id": number, **_location(at.file, at.line, at.line, None), "message": {"text": at.message}}
