"""All methods on annotated series, printed: python -m tasks.workloads.changepoints.evaluate_tcpd FOLDER."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.changepoints.comparison import Finder, by_setting, paired_difference, score, table_of
from tasks.workloads.changepoints.params import ChangePointParams
from tasks.workloads.changepoints.plain import PLAIN
from tasks.workloads.changepoints.published_defaults import binary_segmentation
from tasks.workloads.changepoints.tcpd import AnnotatedSeries, read_annotated
from tasks.workloads.identify.phases import OF_PHASES

Floats = NDArray[np.float64]
TINY = 1e-12  # squares of a constant series


def rivals() -> dict[str, Finder]:
    """The methods that ours is held against, each in one setting."""
    offline = {
        f"{name} (ruptures)": by_setting(ChangePointParams(method=name, outlier_deviations=0))
        for name in ("pelt", "kernel", "binseg")
    }
    return {
        "finds nothing": lambda _: [],
        "BOCPD, default": by_setting(PLAIN),
        "binary segmentation, default": lambda values: binary_segmentation(values[:, 0]),
        **offline,
        "PELT, AR(1) innovations": lambda values: pelt_of_innovations(values[:, 0]),
        "levels and lines, independent noise": by_setting(OF_PHASES),
    }


def pelt_of_innovations(values: Floats) -> list[int]:
    """Changes of mean by PELT after the first autocorrelation is taken out: penalty 3 log n, as BIC for two values."""
    apart = values - values.mean()
    correlation = float((apart[1:] * apart[:-1]).sum() / max((apart**2).sum(), TINY))
    innovations = (values[1:] - correlation * values[:-1])[:, None]
    pelt = by_setting(ChangePointParams(method="pelt", outlier_deviations=0))
    return [index + 1 for index in pelt(innovations)]


def compare(series: Sequence[AnnotatedSeries]) -> dict[str, Floats]:
    """Scores (n_series, 2) of ours and of its rivals."""
    return {
        name: score(finder, series) for name, finder in {"ours": by_setting(ChangePointParams()), **rivals()}.items()
    }


def report(scores: dict[str, Floats], names: Sequence[str]) -> str:
    """The scores as a table, and what ours gains on each rival."""
    lines = [table_of(names, scores), "", "ours less: mean over series and 95 % interval, F1 and covering"]
    for name in rivals():
        theirs = scores[name]
        gains = [paired_difference(scores["ours"][:, i], theirs[:, i], np.random.default_rng(0)) for i in (0, 1)]
        lines.append(f"{name}: " + ", ".join(f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]" for gain in gains))
    return "\n".join(lines)


if __name__ == "__main__":
    found = read_annotated(Path(sys.argv[1]))
    print(report(compare(found), [one.name for one in found]))
