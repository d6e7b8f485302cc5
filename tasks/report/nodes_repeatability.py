"""How much a rerun of a benchmark differs, on each node, for the metrics that count in scores."""

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tasks.quantities import share
from tasks.report.bar_rows import row_axes
from tasks.report.direct_labels import write
from tasks.report.nodes_words import node_name
from tasks.report.style import BLUE, GRID, INK, MUTED, is_narrow, whorl_style

HEAD_IN, FOOT_IN, RIGHT_IN = 0.15, 0.56, 0.2
MOST_ROWS = 24


@dataclass(frozen=True)
class Reruns:
    """rows: benchmark_type, metric, node, is_emulated, cv, n_runs; one row a metric that counts and node."""

    rows: pd.DataFrame

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        rows = self.rows
        most = rows.groupby(["benchmark_type", "node"])["n_runs"].max()
        n_types, n_nodes = rows["benchmark_type"].nunique(), rows["node"].nunique()
        return f"n = {int(most.sum()):,} executions of {n_types:,} benchmarks on {n_nodes:,} nodes"


def draw_reruns(data: Reruns, width_in: float) -> Figure | None:
    """A row a metric, a dot a node: the robust coefficient of variation of its executions. None without any."""
    rows = data.rows.dropna(subset="cv")
    if rows.empty:
        return None
    groups = list(rows.groupby(["benchmark_type", "metric"], sort=False))[:MOST_ROWS]
    names = [f"{str(own['benchmark_type'].iloc[0]).partition('@')[0]}: {own['metric'].iloc[0]}" for _, own in groups]
    with whorl_style():
        figure, axes, middle, _ = row_axes(names, width_in, head_in=HEAD_IN, foot_in=FOOT_IN, right_in=RIGHT_IN)
        largest = max(float(own["cv"].max()) for _, own in groups) or 1.0
        axes.set_xlim(0, 1.12 * largest)
        for at, (_, own) in enumerate(groups):
            low, high = float(own["cv"].min()), float(own["cv"].max())
            axes.plot([low, high], [at + middle] * 2, color=BLUE, linewidth=1.2, alpha=0.5)
            axes.plot(own["cv"], [at + middle] * len(own), "o", color=BLUE, markersize=5, alpha=0.8)
            if not is_narrow(width_in):
                [widest] = own.nlargest(1, "cv").to_dict("records")
                write(axes, node_name(widest), (high, at + middle), (7, 0), MUTED)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: share(value)))
        axes.set_axisbelow(True)
        axes.grid(axis="x", color=GRID)
        axes.set_xlabel("spread of executions of one node, share of the median", color=INK)
    return figure
