"""All methods on annotated series, printed: python -m tasks.workloads.changepoints.evaluate_tcpd FOLDER."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.changepoints.comparison import (
    Finder,
    by_setting,
    leave_one_out,
    paired_difference,
    score,
    score_settings,
    settings_grid,
    table_of,
)
from tasks.workloads.changepoints.params import ChangePointParams
from tasks.workloads.changepoints.plain import PLAIN
from tasks.workloads.changepoints.published_defaults import binary_segmentation
from tasks.workloads.changepoints.synthetic import draw_all
from tasks.workloads.changepoints.tcpd import AnnotatedSeries, read_annotated

Floats = NDArray[np.float64]


N_DRAWN, SEED = 2, 5  # series of each kind of known truth that the setting is chosen on as well


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
    }


def compare(series: Sequence[AnnotatedSeries]) -> dict[str, Floats]:
    """Scores (n_series, 2) of ours, setting left-one-out and default, and of its rivals."""
    settings, drawn = settings_grid(), draw_all(N_DRAWN, np.random.default_rng(SEED))
    left_out, _ = leave_one_out(score_settings(settings, series), score_settings(settings, drawn))
    ours = {"ours, left out": left_out, "ours, default": score(by_setting(ChangePointParams()), series)}
    return ours | {name: score(finder, series) for name, finder in rivals().items()}


def report(scores: dict[str, Floats], names: Sequence[str]) -> str:
    """The scores as a table, and what ours gains on each rival."""
    lines = [table_of(names, scores), "", "ours, left out, less: mean over series and 95 % interval, F1 and covering"]
    for name in rivals():
        theirs = scores[name]
        gains = [
            paired_difference(scores["ours, left out"][:, i], theirs[:, i], np.random.default_rng(0)) for i in (0, 1)
        ]
        lines.append(f"{name}: " + ", ".join(f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]" for gain in gains))
    return "\n".join(lines)


if __name__ == "__main__":
    found = read_annotated(Path(sys.argv[1]))
    print(report(compare(found), [one.name for one in found]))
