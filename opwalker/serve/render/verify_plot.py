"""Comes in: a ``VerifyReport`` with times. Goes out: a PNG of each op's share of the copy rate, beside a library's."""

from __future__ import annotations

from opwalker.errors import EnvironmentMissing, InputError
from opwalker.model.verify import VerifyReport


def draw(report: VerifyReport, path: str) -> None:
    """Writes the picture. EnvironmentMissing without matplotlib, InputError where nothing was measured."""
    try:
        import matplotlib

        matplotlib.use("agg")
        from matplotlib import pyplot
    except ImportError as error:
        raise EnvironmentMissing("matplotlib is missing", "pip install matplotlib") from error
    measured = [one for one in report.results if one.share_of_copy is not None]
    if not measured:
        raise InputError("there are no times to draw")
    labels = list(dict.fromkeys(f"{one.op}\n{one.case}" for one in measured))
    kinds = list(dict.fromkeys(one.implementation for one in measured))
    height = 0.8 / len(kinds)
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.45 * len(labels)), layout="constrained")
    for number, kind in enumerate(kinds):
        mine = [one for one in measured if one.implementation == kind]
        places = [labels.index(f"{one.op}\n{one.case}") + (number - (len(kinds) - 1) / 2) * height for one in mine]
        axes.barh(places, [one.share_of_copy for one in mine], height, label=kind)
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set_yticks(range(len(labels)), labels, fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(f"share of the copy rate ({report.copy_gb_per_s:,.0f} GB/s, {report.device.name})")
    axes.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
