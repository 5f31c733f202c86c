"""Comes in: a ``VerifyReport``. Goes out: its page: an op a line, every refutation in full, times as a table."""

from __future__ import annotations

from collections.abc import Iterable

from opwalker.model.verify import Device, VerifyReport, VerifyResult, WrongVariant
from opwalker.serve.render.page import Page, Row, Section, Spans
from opwalker.serve.render.words import Reading, count, titled

_STYLES = {"confirmed": "proved", "refuted": "warn", "not_run": "gap"}


def verify_page(report: VerifyReport, reading: Reading) -> Page:
    """Ops with their verdicts; then what was refuted or not run, with the reasons; then times."""
    sections = [_title(report)]
    checked = [one for one in report.results if one.time_us is None]
    if report.device is not None:
        sections.append(_verdicts(checked, report.wrong_variants))
    sections += _details(checked)
    sections += _remarks(checked)
    sections += _toothless(report.wrong_variants)
    sections += _times(report)
    return Page(tuple(sections))


def _title(report: VerifyReport) -> Section:
    if report.device is None:
        summary = f"{count(len(report.built), 'file')} compiled, {len(report.results)} failed, none run"
    else:
        summary = _device(report.device)
    paragraphs = tuple(((note, "quiet"),) for note in report.notes)
    return Section(titled((("Reference kernels", "title"),), ((summary, "quiet"),)), paragraphs=paragraphs)


def _device(device: Device) -> str:
    words = [device.kind, device.name, device.compute_capability or "", device.software or ""]
    return " · ".join(word for word in words if word)


def _verdicts(results: list[VerifyResult], variants: tuple[WrongVariant, ...]) -> Section:
    rows = []
    for op, implementation in dict.fromkeys((one.op, one.implementation) for one in results):
        mine = [one for one in results if (one.op, one.implementation) == (op, implementation)]
        wrong = [one for one in variants if one.op == op] if implementation == "reference" else []
        name = op if implementation == "reference" else f"{op} ({implementation})"
        rows.append(Row((((name, "name"),), _counts(mine), _errors(mine), _refuted(wrong), _shapes(mine))))
    return Section((("Verdicts", "heading"),), rows=tuple(rows))


def _counts(results: list[VerifyResult]) -> Spans:
    pieces: list[tuple[str, str]] = []
    for verdict, style in _STYLES.items():
        number = sum(1 for one in results if one.verdict == verdict)
        if number:
            pieces += [(", ", "")] if pieces else []
            pieces.append((f"{number} {verdict.replace('_', ' ')}", style))
    return tuple(pieces)


def _errors(results: list[VerifyResult]) -> Spans:
    worst = max((one.max_error for one in results if one.max_error is not None), default=None)
    return ((f"largest error {worst:.3g}" if worst else "no error", "quiet"),) if worst is not None else (("", ""),)


def _refuted(variants: Iterable[WrongVariant]) -> Spans:
    known = list(variants)
    if not known:
        return (("", ""),)
    seen = sum(1 for one in known if one.refuted)
    return ((f"{seen} of {count(len(known), 'wrong variant')} refuted", "quiet" if seen == len(known) else "warn"),)


def _shapes(results: list[VerifyResult]) -> Spans:
    """How many of the shapes that the source documents are those of the contract."""
    known = [one for one in results[0].documented_shapes if one.agrees is not None]
    if not known:
        return (("", ""),)
    agreeing = sum(1 for one in known if one.agrees)
    said = f"{agreeing} of {count(len(known), 'documented shape')} agree"
    return ((said, "quiet" if agreeing == len(known) else "warn"),)


def _details(results: list[VerifyResult]) -> list[Section]:
    out = []
    for verdict, heading in (("refuted", "Refuted"), ("not_run", "Not run")):
        rows = []
        for one in results:
            if one.verdict == verdict:
                seed = f"seed {one.seed}" if one.seed is not None else ""
                name = one.op if one.implementation == "reference" else f"{one.op} ({one.implementation})"
                rows.append(Row((((name, "name"),), ((one.case, ""),), ((seed, "quiet"),))))
                rows += [Row((((reason, _STYLES[verdict]),),), indent=2) for reason in one.reasons]
        if rows:
            out.append(Section(((heading, "heading"),), rows=tuple(rows)))
    return out


def _remarks(results: list[VerifyResult]) -> list[Section]:
    rows = [
        Row((((one.op, "name"),), ((one.case, ""),), ((one.verdict.replace("_", " "), ""),), ((one.remark, "quiet"),)))
        for one in results
        if one.remark
    ]
    return [Section((("Remarks", "heading"),), rows=tuple(rows))] if rows else []


def _toothless(variants: Iterable[WrongVariant]) -> list[Section]:
    rows = []
    for one in variants:
        if not one.refuted:
            said = one.reason or "no case noticed it"
            rows.append(Row((((one.op, "name"),), ((one.variant, ""),), ((one.what, ""),), ((said, "warn"),))))
    return [Section((("Wrong variants that were not refuted", "heading"),), rows=tuple(rows))] if rows else []


def _times(report: VerifyReport) -> list[Section]:
    rows = []
    for one in report.results:
        if one.time_us is None:
            continue
        rate = f"{one.gb_per_s:,.0f} GB/s" if one.gb_per_s else ""
        share = f"{one.share_of_copy:.2f} of a copy" if one.share_of_copy else ""
        rows.append(
            Row(
                (
                    ((one.op, "name"),),
                    ((one.case, ""),),
                    ((one.implementation, "quiet"),),
                    ((f"{one.time_us:,.1f} us", ""),),
                    ((rate, ""),),
                    ((share, ""),),
                )
            )
        )
    if not rows:
        return []
    told = f"a copy moves {report.copy_gb_per_s:,.0f} GB/s" if report.copy_gb_per_s else ""
    return [Section(titled((("Times", "heading"),), ((told, "quiet"),)), rows=tuple(rows))]
