"""Figure 4(b) of the paper for any log: the COV of a job's past runs says little about the COV of its new ones."""

import math
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from tasks.report.density import Density, draw_density, draw_diagonal, fetch_density
from tasks.report.style import MUTED, is_narrow, new_figure, spaced_ticks, whorl_style
from tasks.warehouse.connection import Connection

FLOOR = 0.01  # smaller COVs, and those of constant runtimes, are drawn here
TICKS = ((0.01, 0.1, 1, 10, 100), (0.03, 0.3, 3, 30), (0.02, 0.05, 0.2, 0.5, 2, 5, 20, 50))
N_TICKS = {False: 7, True: 4}  # by whether the figure is narrow
HEIGHT_IN = {False: 5.0, True: 4.0}
POINTS = """
    SELECT greatest(new_cov, $floor) AS x, greatest(history_cov, $floor) AS y
    FROM jobs.groups WHERE source = $source AND new_cov IS NOT NULL AND history_cov IS NOT NULL
"""
RANKS = """
WITH ranks AS (
    SELECT
        rank() OVER (ORDER BY new_cov) + count(*) OVER (PARTITION BY new_cov) / 2 AS new_rank,
        rank() OVER (ORDER BY history_cov) + count(*) OVER (PARTITION BY history_cov) / 2 AS history_rank
    FROM jobs.groups WHERE source = $source AND new_cov IS NOT NULL AND history_cov IS NOT NULL
),
final AS (SELECT corr(new_rank, history_rank ORDER BY new_rank, history_rank) AS rank_correlation FROM ranks)
SELECT * FROM final
"""


@dataclass(frozen=True)
class CovComparison:
    """density: x COV of new runs, y COV of historic runs, one mark a job.

    rank_correlation: Spearman's, None if one side is constant."""

    density: Density
    rank_correlation: float | None


def fetch_cov_drift(connection: Connection, source: str, *, max_points: int) -> CovComparison | None:
    """What the figure shows; None if no job has the minimum support both in the past and after it."""
    density = fetch_density(connection, POINTS, {"source": source, "floor": FLOOR}, max_points)
    if density is None:
        return None
    found = connection.execute(RANKS, {"source": source}).fetchone()
    correlation = float("nan") if not found or found[0] is None else float(found[0])
    return CovComparison(density, None if math.isnan(correlation) else correlation)


def draw_cov_drift(comparison: CovComparison, width_in: float) -> Figure:
    """Historic COV over the COV of new runs, as in the paper, with the diagonal."""
    narrow = is_narrow(width_in)
    density = comparison.density
    with whorl_style():
        figure = new_figure(width_in, HEIGHT_IN[narrow])
        axes = figure.subplots()
        axes.set(xscale="log", yscale="log", xlim=density.x_limits, ylim=density.y_limits)
        for axis, limits in ((axes.xaxis, density.x_limits), (axes.yaxis, density.y_limits)):
            axis.set_major_locator(FixedLocator(spaced_ticks(*limits, N_TICKS[narrow], TICKS)))
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"≤ {FLOOR}" if value == FLOOR else f"{value:g}"))
        axes.grid(True)
        axes.set_axisbelow(True)
        draw_density(axes, density)
        draw_diagonal(axes, "as before", MUTED, "-")
        axes.set_xlabel("COV of the new runs of a job")
        axes.set_ylabel("COV of its historic runs")
    return figure
