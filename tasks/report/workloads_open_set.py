"""How well the score tells unknown workloads from known ones: both distributions, and the line drawn between them."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.quantities import ratio, share
from tasks.report.direct_labels import INSIDE, write
from tasks.report.style import BLUE, INK, MUTED, ORANGE, is_narrow, new_figure, whorl_style
from tasks.workloads.telemetry import FloatArray

PANEL_IN, GAP_IN, HEAD_IN, FOOT_IN, LEFT_IN = 0.85, 0.46, 0.62, 0.56, 0.72
N_BINS = 30
LINE_IN = 0.2


@dataclass(frozen=True)
class OpenSetScores:
    """known, unknown: (n,), (m,) scores of runs, larger: less known. threshold: that so many known ones stay below.

    auroc: chance that an unknown run scores above a known one; n_held_out: choices of workloads held out."""

    known: FloatArray
    unknown: FloatArray
    threshold: float
    auroc: float | None
    n_held_out: int = 1

    @property
    def kept_share(self) -> float:
        """Share of the known runs that are called known."""
        return float(np.mean(self.known <= self.threshold))

    @property
    def false_known_share(self) -> float:
        """Share of the unknown runs that are called known."""
        return float(np.mean(self.unknown <= self.threshold))

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        times = "" if self.n_held_out == 1 else f", over {self.n_held_out:,} choices of held-out workloads"
        return f"n = {len(self.known):,} scores of known runs, {len(self.unknown):,} of unknown ones{times}"


def draw_open_set(data: OpenSetScores, width_in: float) -> Figure | None:
    """Two histograms over one axis, the threshold across both. None without scores of both kinds."""
    if not len(data.known) or not len(data.unknown):
        return None
    narrow = is_narrow(width_in)
    edges = np.linspace(*_range(data), N_BINS + 1)
    with whorl_style():
        height_in = HEAD_IN + 2 * PANEL_IN + GAP_IN + FOOT_IN
        figure = new_figure(width_in, height_in, top_in=HEAD_IN)
        figure.subplots_adjust(left=LEFT_IN / width_in, bottom=FOOT_IN / height_in, hspace=GAP_IN / PANEL_IN)
        upper, lower = figure.subplots(2, 1, sharex=True)
        join = "\n" if narrow else "; "
        told = (
            (upper, data.known, BLUE, f"known: {share(data.kept_share)} called known"),
            (lower, data.unknown, ORANGE, f"unknown: {share(data.false_known_share)} called known"),
        )
        for axes, scores, colour, words in told:
            _draw_histogram(axes, scores, edges, colour)
            axes.axvline(data.threshold, color=INK, linewidth=1.2, linestyle="--")
            axes.set_title(words, loc="left", color=colour, fontsize="medium", pad=4)
        lower.set_xlabel("score, the larger the less known", color=MUTED)
        upper.set_xlim(edges[0], edges[-1])
        words = f"AUROC {ratio(data.auroc)}{join}dashed: left of it a run is called known"
        figure.text(0.02, 1 - 0.05 / height_in, words, va="top", ha="left")
    return figure


def _range(data: OpenSetScores) -> tuple[float, float]:
    scores = np.concatenate([data.known, data.unknown, [data.threshold]])
    low, high = float(scores.min()), float(scores.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _draw_histogram(axes: Axes, scores: FloatArray, edges: FloatArray, colour: str) -> None:
    counts, _ = np.histogram(scores, edges)
    shares = counts / len(scores)
    axes.stairs(shares, edges, fill=True, color=colour, alpha=0.45)
    axes.stairs(shares, edges, baseline=None, color=colour, linewidth=1)
    top = float(shares.max())
    axes.set_ylim(0, 1.05 * top)
    axes.set_yticks([0, top], ["0 %", f"{100 * top:.0f} %"])
    write(axes, "of runs", (0, 0.5), (-6, 0), MUTED, at=INSIDE, ha="right")
