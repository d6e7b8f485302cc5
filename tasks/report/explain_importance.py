"""What the model looks at over all jobs: the share of each feature, in words."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tasks.quantities import share
from tasks.report.bar_rows import row_axes
from tasks.report.direct_labels import write
from tasks.report.style import BLUE, DENSITY, GRID, INK, MUTED, whorl_style

COLUMNS = ["words", "importance"]
N_SHOWN = 15
HEAD_IN, FOOT_IN, RIGHT_IN = 0.15, 0.52, 0.3
ROOM = 1.2  # right of the longest bar, for its number


@dataclass(frozen=True)
class Importances:
    """table: words, importance (0 or more, any unit), the largest first or not; of: what it is, such as Gini.

    n_rows: that the model was trained on."""

    table: pd.DataFrame
    of: str
    n_rows: int

    @property
    def shares(self) -> pd.Series:
        """Share of each feature in the sum, the largest first, by its words."""
        values = self.table.set_index("words")["importance"].clip(lower=0).astype(float)
        total = float(values.sum())
        return (values / total if total > 0 else values).sort_values(ascending=False, kind="stable")

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        shown, all_ = min(N_SHOWN, len(self.table)), len(self.table)
        return f"n = {self.n_rows:,} runs; {shown} of {all_} features hold {share(self.shares[:shown].sum())}"


def draw_importance(importances: Importances, width_in: float) -> Figure | None:
    """A bar a feature with its share of the whole; None without any feature that counts."""
    shares = importances.shares.head(N_SHOWN)
    if not len(shares) or not shares.iloc[0] > 0:
        return None
    with whorl_style():
        names = [str(words) for words in shares.index]
        figure, axes, middle, thickness = row_axes(names, width_in, head_in=HEAD_IN, foot_in=FOOT_IN, right_in=RIGHT_IN)
        rows = np.arange(len(shares)) + middle
        axes.barh(rows, shares, thickness, color=[BLUE, *[DENSITY[3]] * (len(shares) - 1)])
        for row, value in zip(rows, shares, strict=True):
            write(axes, share(value), (value, row), (4, 0), INK)
        axes.set_xlim(0, ROOM * float(shares.iloc[0]))
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
        axes.locator_params(axis="x", nbins=4)
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=GRID)
        axes.set_xlabel(f"share of all {importances.of}", color=MUTED)
    return figure
