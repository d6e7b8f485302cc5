"""Figure 1 of the paper for any log: runtimes of some recurring jobs over submission time, from steady to varying."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.jobs.params import SummaryParams
from tasks.quantities import duration, ratio
from tasks.report.date_ticks import date_axis
from tasks.report.style import BLUE, BOTTOM_IN, GRID, MUTED, ORANGE, is_narrow, new_figure, plain_label, whorl_style
from tasks.warehouse.connection import Connection

GOOD_SUPPORT = 20  # the paper's D1
AXES_IN = 0.6
TITLE_IN = {False: 0.32, True: 0.46}  # above each strip; by whether the figure is narrow
NAME_CHARS = {False: 44, True: 34}  # by whether the figure is narrow
HEADROOM = 1.12
# Jobs with enough runs in order of their variation, cut into equal parts; the best supported job of each part.
CHOICE = """
WITH supported AS (
    SELECT *, count(*) FILTER (n_finished >= $good_support) OVER () >= $n_lines AS has_good
    FROM jobs.groups WHERE source = $source AND n_finished >= $min_support AND max_s > 0
),
ordered AS (
    SELECT *, ntile($n_lines) OVER (ORDER BY cov, group_key) AS part
    FROM supported WHERE n_finished >= $good_support OR NOT has_good
),
final AS (
    SELECT group_key, n_finished, median_s, cov FROM ordered
    QUALIFY row_number() OVER (PARTITION BY part ORDER BY n_finished DESC, group_key) = 1
)
SELECT * FROM final ORDER BY cov, group_key
"""
# All runs of a job, or the shortest and the longest of each slice of time when there are many.
RUNS = """
WITH runs AS (
    SELECT group_key, runtime_s, coalesce(submitted_at, started_at, ended_at) AS queued_at
    FROM jobs.runs
    WHERE source = $source AND what_if IS NULL AND list_contains($keys, group_key)
        AND isfinite(runtime_s) AND list_contains($statuses, status)
),
extent AS (
    SELECT min(queued_at) AS first_at, greatest(date_diff('microsecond', min(queued_at), max(queued_at)), 1) AS span
    FROM runs
),
sliced AS (
    SELECT runs.*,
        CASE WHEN count(*) OVER (PARTITION BY group_key) <= $max_points
            THEN row_number() OVER (PARTITION BY group_key ORDER BY queued_at, runtime_s)
            ELSE date_diff('microsecond', first_at, queued_at) * ($max_points // 2) // span END AS slice
    FROM runs, extent
),
final AS (
    SELECT group_key, min(queued_at) AS queued_at, min(runtime_s) AS low_s, max(runtime_s) AS high_s, count(*) AS n
    FROM sliced GROUP BY group_key, slice
)
SELECT * FROM final ORDER BY group_key, queued_at, high_s
"""


@dataclass(frozen=True)
class ShownJob:
    """A job of the figure with its support, its median in seconds and its coefficient of variation."""

    group_key: str
    n_finished: int
    median_s: float
    cov: float | None


@dataclass(frozen=True)
class JobLines:
    """jobs: the steadiest first. runs: group_key, queued_at, low_s, high_s, n.

    slow_ratio: runs at least this many times the median of their job are marked."""

    jobs: list[ShownJob]
    runs: pd.DataFrame
    slow_ratio: float

    @property
    def n_runs(self) -> int:
        """Runs that the figure stands for."""
        return int(self.runs["n"].sum())

    @property
    def has_slices(self) -> bool:
        """Whether some marks stand for more than one run."""
        return bool((self.runs["n"] > 1).any())


def fetch_lines(
    connection: Connection, source: str, params: SummaryParams, *, n_lines: int, max_points: int
) -> JobLines | None:
    """What the figure shows, chosen by a fixed rule; None if no job has the minimum support."""
    values = {"source": source, "min_support": params.min_support, "n_lines": n_lines, "good_support": GOOD_SUPPORT}
    jobs = [ShownJob(*row) for row in connection.execute(CHOICE, values).fetchall()]
    if not jobs:
        return None
    runs = connection.execute(
        RUNS,
        {
            "source": source,
            "keys": [job.group_key for job in jobs],
            "statuses": list(params.statuses),
            "max_points": max_points,
        },
    ).df()
    return JobLines(jobs, runs, params.slow_ratio)


def draw_lines(lines: JobLines, width_in: float) -> Figure:
    """One strip a job over a shared time axis, its name on it."""
    with whorl_style():
        narrow, n_jobs = is_narrow(width_in), len(lines.jobs)
        height_in = (AXES_IN + TITLE_IN[narrow]) * n_jobs + BOTTOM_IN
        figure = new_figure(width_in, height_in, top_in=TITLE_IN[narrow])
        gaps = {"hspace": TITLE_IN[narrow] / AXES_IN}
        strips = figure.subplots(n_jobs, 1, sharex=True, squeeze=False, gridspec_kw=gaps)[:, 0]
        for axes, job in zip(strips, lines.jobs, strict=True):
            runs = lines.runs[lines.runs["group_key"] == job.group_key]
            _draw_strip(axes, job, runs, lines.slow_ratio, narrow)
        _time_axis(strips[-1], lines.runs["queued_at"], narrow)
        figure.supylabel("runtime", x=0.002, ha="left", fontsize="medium")
    return figure


def _draw_strip(axes: Axes, job: ShownJob, runs: pd.DataFrame, slow_ratio: float, narrow: bool) -> None:
    top = runs["high_s"].max() * HEADROOM
    axes.axhline(job.median_s, color=GRID, linewidth=1.2, zorder=1)
    slices = runs[runs["n"] > 1]
    bars = np.column_stack([slices["low_s"], slices["high_s"], np.full(len(slices), np.nan)])  # nan lifts the pen
    axes.plot(np.repeat(slices["queued_at"], 3), bars.ravel(), color=GRID, linewidth=1, zorder=2)
    lows = slices[["queued_at", "low_s"]].rename(columns={"low_s": "high_s"})
    ends = pd.concat([runs[["queued_at", "high_s"]], lows])
    is_slow = (ends["high_s"] >= slow_ratio * job.median_s) & (ends["high_s"] > job.median_s)
    for shown, colour, size in ((ends[~is_slow], BLUE, 5.0), (ends[is_slow], ORANGE, 9.0)):
        axes.scatter(shown["queued_at"], shown["high_s"], s=size, color=colour, linewidths=0, zorder=3)
    axes.set_ylim(0, top)
    axes.set_yticks([0, runs["high_s"].max()], ["0", duration(runs["high_s"].max())])
    n_runs = f"n {job.n_finished:,}" if narrow else f"{job.n_finished:,} runs"
    facts = f"median {duration(job.median_s)} · COV {ratio(job.cov)} · {n_runs}"
    name = plain_label(job.group_key, NAME_CHARS[narrow])
    if narrow:
        axes.set_title(f"{name}\n{facts}", loc="left", fontsize="medium", pad=2)
    else:
        axes.set_title(name, loc="left", fontsize="medium", pad=2)
        axes.set_title(facts, loc="right", fontsize="medium", color=MUTED, pad=2)


def _time_axis(axes: Axes, times: pd.Series, narrow: bool) -> None:
    first, last = times.min(), times.max()
    pad = max((last - first) * 0.02, pd.Timedelta(minutes=1))
    date_axis(axes, first - pad, last + pad, most=4 if narrow else 8)
    axes.set_xlim(first - pad, last + pad)
