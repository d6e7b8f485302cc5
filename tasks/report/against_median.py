"""Figure 4(a) of the paper for any log: each new run against the historic median of its job, and the stalagmite."""

import math
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.jobs.params import SummaryParams
from tasks.quantities import duration, number, share
from tasks.report.density import Density, draw_density, draw_diagonal, fetch_density
from tasks.report.style import MUTED, ORANGE, is_narrow, log_time_axis, new_figure, whorl_style
from tasks.warehouse.connection import Connection

BANDS_S = (0.01, 0.1, 1, 10, 60, 600, 3600, 36_000)
LEAST_IN_BAND = 10  # new runs, for a share to be written down
LEAST_WIDTH = {False: 0.08, True: 0.19}  # of the axis, for a share to be written above a band; by whether it is narrow
HEIGHT_IN = {False: 5.4, True: 4.3}
POINTS = """
    SELECT history_median_s AS x, runtime_s AS y
    FROM jobs.runs JOIN jobs.groups USING (source, group_key), jobs.summaries
    WHERE runs.source = $source AND summaries.source = $source AND history_median_s IS NOT NULL
        AND isfinite(runtime_s) AND list_contains($statuses, status)
        AND what_if IS NULL AND coalesce(submitted_at, started_at, ended_at) > split_at
"""
SHARES = """
WITH points AS ({points}),
final AS (
    SELECT
        list_count(list_filter($bands::DOUBLE[], lambda edge: x >= edge)) AS band,
        count(*) AS n,
        avg((y >= $slow_ratio * x)::INT) AS slow_share
    FROM points
    WHERE x > 0
    GROUP BY ALL
)
SELECT * FROM final ORDER BY band
"""


@dataclass(frozen=True)
class Band:
    """The n new runs of jobs with a historic median from low_s to under high_s, and the share of them that are slow."""

    low_s: float
    high_s: float
    n: int
    slow_share: float

    @property
    def label(self) -> str:
        """The band in words."""
        if not self.low_s:
            return f"under {duration(self.high_s)}"
        if math.isinf(self.high_s):
            return f"{duration(self.low_s)} and more"
        return f"{duration(self.low_s)} to {duration(self.high_s)}"


@dataclass(frozen=True)
class MedianComparison:
    """density: x historic median, y runtime, in seconds. slow_ratio: of the dashed line.

    n_hidden: runs with a runtime or a historic median of 0, which a logarithmic axis cannot show."""

    density: Density
    bands: list[Band]
    slow_ratio: float
    n_hidden: int

    @property
    def n_points(self) -> int:
        """New runs that the figure stands for."""
        return self.density.n_points

    @property
    def slow_share(self) -> float:
        """Share of slow runs over all bands."""
        n = sum(band.n for band in self.bands)
        return sum(band.n * band.slow_share for band in self.bands) / n


def fetch_against_median(
    connection: Connection, source: str, params: SummaryParams, *, max_points: int
) -> MedianComparison | None:
    """What the figure shows; None if no job has enough runs in the historic part and any after it."""
    values = {"source": source, "statuses": list(params.statuses)}
    density = fetch_density(connection, POINTS, values, max_points)
    if density is None:
        return None
    rows = connection.execute(
        SHARES.format(points=POINTS), {**values, "bands": list(BANDS_S), "slow_ratio": params.slow_ratio}
    ).fetchall()
    edges = (0.0, *BANDS_S, math.inf)
    bands = [Band(edges[band], edges[band + 1], n, slow_share) for band, n, slow_share in rows]
    count = connection.execute(f"SELECT count(*) FROM ({POINTS})", values).fetchone()
    n_hidden = (count[0] if count else 0) - density.n_points
    return MedianComparison(density, bands, params.slow_ratio, n_hidden)


def draw_against_median(comparison: MedianComparison, width_in: float) -> Figure:
    """Runtime over historic median, both logarithmic, with the diagonal and the share of slow runs by band."""
    narrow = is_narrow(width_in)
    density = comparison.density
    with whorl_style():
        figure = new_figure(width_in, HEIGHT_IN[narrow], top_in=0.5)
        axes = figure.subplots()
        log_time_axis(axes, "x", *density.x_limits, n_ticks=4 if narrow else 7)
        log_time_axis(axes, "y", *density.y_limits, n_ticks=7)
        axes.grid(True)
        axes.set_axisbelow(True)
        draw_density(axes, density)
        draw_diagonal(axes, "= median", MUTED, "-")
        draw_diagonal(axes, f"{number(comparison.slow_ratio)} × median", ORANGE, "--", factor=comparison.slow_ratio)
        _draw_bands(axes, comparison.bands, density.x_limits, narrow)
        title = (
            "above the dashed line, by band" if narrow else "share of runs above the dashed line, by band of medians"
        )
        axes.set_title(title, loc="left", fontsize="medium", color=ORANGE, pad=18)
        axes.set_xlabel("historic median of the job")
        axes.set_ylabel("runtime of a new run")
    return figure


def _draw_bands(axes: Axes, bands: list[Band], limits: tuple[float, float], narrow: bool) -> None:
    """Above the plot: which share of the runs of each band of medians stands on the stalagmite."""
    low, high = limits
    least_ratio = (high / low) ** LEAST_WIDTH[narrow]
    for band in bands:
        left, right = max(band.low_s, low), min(band.high_s, high)
        axes.axvline(left, color=MUTED, linewidth=0.8, linestyle=":", zorder=0.5)
        if band.n < LEAST_IN_BAND or right / left < least_ratio:
            continue
        axes.annotate(
            share(band.slow_share),
            (math.sqrt(left * right), 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            color=ORANGE,
        )
