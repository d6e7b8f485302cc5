"""How the runtimes of a log's recurring jobs varied: Figures 1, 3 and 4 of Zhu et al. for any log, and what explains
the variation within jobs (3.2)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.explain.variance import VarianceShares, explain_variance
from tasks.jobs.params import ReportParams, SummaryParams
from tasks.quantities import duration, number, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Column, Figure, Section, Table, count, figure, numbers, one_line
from tasks.warehouse.connection import Connection

MARGIN = 0.06  # of the span
CELLS = 42  # hexagons along the longer side
LEAST_DECADES = 0.6
# Two staggered lattices; a point belongs to the nearer centre (the rule of matplotlib's hexbin).
HEXAGONS = """
WITH points AS ({points}),
scaled AS (
    SELECT log10(x) / $width AS u, log10(y) / ($height * sqrt(3)) AS v FROM points WHERE x > 0 AND y > 0
),
nearest AS (
    SELECT u, v,
        pow(u - round(u), 2) + 3 * pow(v - round(v), 2)
            < pow(u - floor(u) - 0.5, 2) + 3 * pow(v - floor(v) - 0.5, 2) AS is_even
    FROM scaled
),
final AS (
    SELECT
        CASE WHEN is_even THEN round(u) ELSE floor(u) + 0.5 END * $width AS log_x,
        CASE WHEN is_even THEN round(v) ELSE floor(v) + 0.5 END * $height * sqrt(3) AS log_y,
        count(*) AS n
    FROM nearest
    GROUP BY ALL
)
SELECT * FROM final ORDER BY log_x, log_y
"""


@dataclass(frozen=True)
class Density:
    """Points in logarithmic coordinates (base 10), or the hexagons that count them.

    log_x, log_y, n: (n_marks,), n is 1 for a point; hexagon: width and height in decades, None for points;
    n_points: how many there are in all; x_limits, y_limits: that hold them, not logarithmic."""

    log_x: NDArray[np.float64]
    log_y: NDArray[np.float64]
    n: NDArray[np.int64]
    hexagon: tuple[float, float] | None
    n_points: int
    x_limits: tuple[float, float]
    y_limits: tuple[float, float]


def fetch_density(connection: Connection, points: str, values: Mapping[str, Any], max_points: int) -> Density | None:
    """Density of the rows of a query with columns x and y; those that are not positive are left out.

    None if nothing is left. No more than max_points rows, or the counted hexagons, leave the database."""
    extent = connection.execute(
        f"SELECT count(*), min(x), max(x), min(y), max(y) FROM ({points}) WHERE x > 0 AND y > 0", dict(values)
    ).fetchone()
    if not extent or not extent[0]:
        return None
    n_points, *ends = extent
    x_limits, y_limits = _limits(*ends[:2]), _limits(*ends[2:])
    hexagon = None
    if n_points <= max_points:
        marks = connection.execute(
            f"SELECT log10(x) AS log_x, log10(y) AS log_y, 1 AS n FROM ({points}) WHERE x > 0 AND y > 0 ORDER BY 1, 2",
            dict(values),
        ).df()
    else:
        hexagon = (_decades(x_limits) / CELLS, _decades(y_limits) / CELLS)
        marks = connection.execute(
            HEXAGONS.format(points=points), {**values, "width": hexagon[0], "height": hexagon[1]}
        ).df()
    return Density(
        log_x=marks["log_x"].to_numpy(dtype=np.float64),
        log_y=marks["log_y"].to_numpy(dtype=np.float64),
        n=marks["n"].to_numpy(dtype=np.int64),
        hexagon=hexagon,
        n_points=int(n_points),
        x_limits=x_limits,
        y_limits=y_limits,
    )


def _limits(low: float, high: float) -> tuple[float, float]:
    """Limits of a logarithmic axis with a margin, at least LEAST_DECADES wide."""
    span = math.log10(high / low)
    pad = 10 ** (max(LEAST_DECADES - span, 0) / 2 + MARGIN * span)
    return low / pad, high * pad


def _decades(limits: tuple[float, float]) -> float:
    return math.log10(limits[1] / limits[0])


GOOD_SUPPORT = 20  # the paper's D1
# Jobs with enough runs in order of their variation, cut into equal parts; the best supported job of each part.
LINES_CHOICE = """
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
LINES_RUNS = """
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
    jobs = [ShownJob(*row) for row in connection.execute(LINES_CHOICE, values).fetchall()]
    if not jobs:
        return None
    runs = connection.execute(
        LINES_RUNS,
        {
            "source": source,
            "keys": [job.group_key for job in jobs],
            "statuses": list(params.statuses),
            "max_points": max_points,
        },
    ).df()
    return JobLines(jobs, runs, params.slow_ratio)


BANDS_S = (0.01, 0.1, 1, 10, 60, 600, 3600, 36_000)
MEDIAN_POINTS = """
    SELECT history_median_s AS x, runtime_s AS y
    FROM jobs.runs JOIN jobs.groups USING (source, group_key), jobs.summaries
    WHERE runs.source = $source AND summaries.source = $source AND history_median_s IS NOT NULL
        AND isfinite(runtime_s) AND list_contains($statuses, status)
        AND what_if IS NULL AND coalesce(submitted_at, started_at, ended_at) > split_at
"""
BAND_SHARES = """
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
    density = fetch_density(connection, MEDIAN_POINTS, values, max_points)
    if density is None:
        return None
    rows = connection.execute(
        BAND_SHARES.format(points=MEDIAN_POINTS), {**values, "bands": list(BANDS_S), "slow_ratio": params.slow_ratio}
    ).fetchall()
    edges = (0.0, *BANDS_S, math.inf)
    bands = [Band(edges[band], edges[band + 1], n, slow_share) for band, n, slow_share in rows]
    count = connection.execute(f"SELECT count(*) FROM ({MEDIAN_POINTS})", values).fetchone()
    n_hidden = (count[0] if count else 0) - density.n_points
    return MedianComparison(density, bands, params.slow_ratio, n_hidden)


FLOOR = 0.01  # smaller COVs, and those of constant runtimes, are drawn here
COV_POINTS = """
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
    density = fetch_density(connection, COV_POINTS, {"source": source, "floor": FLOOR}, max_points)
    if density is None:
        return None
    found = connection.execute(RANKS, {"source": source}).fetchone()
    correlation = float("nan") if not found or found[0] is None else float(found[0])
    return CovComparison(density, None if math.isnan(correlation) else correlation)


MOST_RUNS = 200_000  # the latest; more would take memory and change nothing
MOST_SKUS = 20  # with the most vertex time; the others are told apart from them only
INPUT, TOKENS, SKU, LOAD = "input size", "tokens", "SKU", "load"
TOGETHER = "all together"
# Runs that were changed on purpose (what_if) show what somebody did and not how the job varies.
VARIANCE_RUNS = """
WITH finished AS (
    SELECT * FROM jobs.runs
    WHERE source = $source AND what_if IS NULL AND runtime_s > 0 AND isfinite(runtime_s)
        AND list_contains($statuses, status)
    QUALIFY count(*) OVER (PARTITION BY group_key) >= $min_support
),
final AS (
    SELECT run_id, group_key, runtime_s, input_bytes, requested_cpus, spare_tokens_available, spare_tokens_used,
        load_mean, load_sd
    FROM finished ORDER BY coalesce(submitted_at, started_at) DESC, run_id LIMIT $most
)
SELECT * FROM final ORDER BY run_id
"""
HAS_CONDITIONS = """
SELECT count(load_mean) + count(spare_tokens_used) + count(spare_tokens_available) + count(vertices) > 0
FROM jobs.runs WHERE source = $source
"""
SKU_TIMES = """
WITH timed AS (
    SELECT run_id, sku, date_diff('microsecond', started_at, ended_at) / 1e6 AS seconds
    FROM jobs.vertices WHERE source = $source AND sku IS NOT NULL
),
final AS (SELECT run_id, sku, sum(seconds) AS seconds FROM timed GROUP BY run_id, sku)
SELECT * FROM final WHERE seconds IS NOT NULL ORDER BY run_id, sku
"""


# Load of the SKUs that the vertices ran on; load_mean and load_sd of a run are of all SKUs offered.
SKU_LOADS = """
WITH used AS (
    SELECT run_id, sku, count(*) AS n FROM jobs.vertices WHERE source = $source GROUP BY run_id, sku
),
offered AS (SELECT run_id, sku, load_mean, load_sd FROM jobs.run_skus WHERE source = $source AND load_mean IS NOT NULL),
final AS (
    SELECT run_id, sum(n * load_mean) / sum(n) AS used_load_mean, sum(n * load_sd) / sum(n) AS used_load_sd
    FROM used JOIN offered USING (run_id, sku) GROUP BY run_id
)
SELECT * FROM final ORDER BY run_id
"""


def fetch_variance(connection: Connection, source: str, params: SummaryParams) -> VarianceShares | None:
    """Shares of the variance within jobs by cause; None for a log that has neither tokens nor load nor vertices."""
    has_any = connection.execute(HAS_CONDITIONS, {"source": source}).fetchone()
    if not has_any or not has_any[0]:
        return None
    asked = {"statuses": list(params.statuses), "min_support": params.min_support, "most": MOST_RUNS}
    runs = connection.execute(VARIANCE_RUNS, {"source": source, **asked}).df()
    sku_times = connection.execute(SKU_TIMES, {"source": source}).df()
    runs = runs.merge(connection.execute(SKU_LOADS, {"source": source}).df(), on="run_id", how="left")
    return explain_variance(runs["runtime_s"], runs["group_key"], causes_of(runs, sku_times))


def causes_of(runs: pd.DataFrame, sku_times: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The features of each cause, in the order of runs; sizes and tokens as logarithms.

    runs: columns of jobs.runs and of SKU_LOADS, one row a run_id. sku_times: run_id, sku, seconds of
    its vertices on that SKU."""
    tokens = ["requested_cpus", "spare_tokens_available", "spare_tokens_used"]
    return {
        INPUT: _logarithms(runs[["input_bytes"]]),
        TOKENS: _logarithms(runs[tokens]),
        SKU: sku_shares(runs["run_id"], sku_times),
        LOAD: runs[["load_mean", "load_sd", "used_load_mean", "used_load_sd"]].astype(float),
    }


def _logarithms(amounts: pd.DataFrame) -> pd.DataFrame:
    """log (1 + x), so that none is 0."""
    return pd.DataFrame(np.log1p(amounts.to_numpy(dtype=float, na_value=np.nan)), columns=amounts.columns)


def sku_shares(run_ids: pd.Series, sku_times: pd.DataFrame) -> pd.DataFrame:
    """Share of each run's vertex time by SKU, a column a SKU; missing for a run without vertices."""
    largest = sku_times.groupby("sku")["seconds"].sum().nlargest(MOST_SKUS).index.sort_values()
    seconds = sku_times.pivot_table(index="run_id", columns="sku", values="seconds", aggfunc="sum").fillna(0.0)
    shares = seconds.div(seconds.sum(axis=1).replace(0.0, np.nan), axis=0)
    return shares.reindex(index=run_ids, columns=largest).reset_index(drop=True)


# Of the runs longer than the median run of the log, in jobs with enough runs, the one whose peak is the largest
# multiple of its allocation; of several the one with the largest peak.
SKYLINE_CHOICE = """
WITH finished AS (
    SELECT run_id, group_key, runtime_s, requested_cpus, skyline,
        count(*) OVER (PARTITION BY group_key) AS n_finished, median(runtime_s) OVER () AS median_s
    FROM jobs.runs
    WHERE source = $source AND what_if IS NULL AND runtime_s > 0 AND isfinite(runtime_s)
        AND list_contains($statuses, status) AND len(skyline) > 1
),
peaks AS (
    SELECT *,
        list_max([step.tokens FOR step IN skyline]) AS peak_tokens,
        coalesce(list_max([step.guaranteed FOR step IN skyline]), requested_cpus) AS allocation,
        max(n_finished) OVER () >= $good_support AS has_good
    FROM finished
),
final AS (
    SELECT run_id, group_key, runtime_s, n_finished, peak_tokens, allocation FROM peaks
    WHERE runtime_s >= median_s AND (n_finished >= $good_support OR NOT has_good)
    ORDER BY peak_tokens / nullif(allocation, 0) DESC NULLS LAST, peak_tokens DESC, run_id LIMIT 1
)
SELECT * FROM final
"""
STEPS = """
SELECT at_s, tokens, guaranteed FROM jobs.skylines WHERE source = $source AND run_id = $run_id ORDER BY at_s
"""


@dataclass(frozen=True)
class Skyline:
    """One run. steps: at_s, tokens, guaranteed, each until the next step; the last until runtime_s.

    n_finished: finished runs of its job with a skyline. allocation: tokens guaranteed; None if the log does not
    say."""

    run_id: str
    group_key: str
    runtime_s: float
    n_finished: int
    peak_tokens: float
    allocation: float | None
    steps: pd.DataFrame


def fetch_skyline(connection: Connection, source: str, params: SummaryParams) -> Skyline | None:
    """The run that the figure shows, chosen by a fixed rule; None if no run has a skyline."""
    values = {"source": source, "statuses": list(params.statuses), "good_support": GOOD_SUPPORT}
    found = connection.execute(SKYLINE_CHOICE, values).fetchone()
    if found is None:
        return None
    steps = connection.execute(STEPS, {"source": source, "run_id": found[0]}).df().astype(float)
    run_id, group_key, runtime_s, n_finished, peak_tokens, allocation = found
    return Skyline(run_id, group_key, runtime_s, n_finished, peak_tokens, allocation, steps)


@dataclass(frozen=True)
class History:
    """The figures of a log; None where it cannot fill one."""

    lines: JobLines | None
    medians: MedianComparison | None
    covs: CovComparison | None
    skyline: Skyline | None
    variance: VarianceShares | None


def fetch_history(connection: Connection, source: str, asked: SummaryParams, params: ReportParams) -> History:
    """At most params.max_points rows a figure leave the database."""
    return History(
        fetch_lines(connection, source, asked, n_lines=params.n_lines, max_points=params.max_points // params.n_lines),
        fetch_against_median(connection, source, asked, max_points=params.max_points),
        fetch_cov_drift(connection, source, max_points=params.max_points),
        fetch_skyline(connection, source, asked),
        fetch_variance(connection, source, asked),
    )


def history_sections(
    found: History, asked: SummaryParams, slow_share: float | None, evidence: str
) -> Iterator[Section]:
    """The figures with their words. slow_share: of the summary, which also counts runs that an axis cannot show."""
    over_time = over_time_figure(found.lines, asked)
    yield Section(over_time.title, evidence=evidence, figures=(over_time,))
    against = against_median_figure(found.medians, asked, slow_share)
    bands = tuple(vars(band) | {"label": band.label} for band in found.medians.bands) if found.medians else ()
    columns = (Column("label", "historic median"), *numbers(("n", "new runs", count), ("slow_share", "slow", share)))
    words = f"New runs at least {number(asked.slow_ratio)} times the historic median of their job."
    table = Table("Slow runs by length of job", words, columns, bands)
    yield Section(against.title, evidence=evidence, figures=(against,), tables=(table,))
    drift = cov_drift_figure(found.covs, asked)
    yield Section(drift.title, evidence=evidence, figures=(drift,))
    if found.skyline:
        one = skyline_figure(found.skyline)
        yield Section(one.title, evidence=evidence, figures=(one,))
    if found.variance:
        yield causes_section(found.variance, evidence)


def over_time_figure(lines: JobLines | None, asked: SummaryParams) -> Figure:
    """Runtimes over time, from steady jobs to varying ones."""
    title = "Runtimes over time, from steady jobs to varying ones"
    nothing = f"No job has {asked.min_support} finished runs and a runtime above 0, so there is no line to draw."
    if lines is None:
        return figure("over-time", title, "", "", None, nothing)
    slices = (
        " Where runs are dense, a bar joins the shortest and the longest of a slice of time."
        if lines.has_slices
        else ""
    )
    words = (
        "Each strip is one job with an axis of its own; the line is its median. "
        f"Orange runs took at least {number(asked.slow_ratio)} times that. The jobs are not picked by hand: all jobs "
        "with enough runs are ordered by their variation and cut into equal parts, and of each part the job with the "
        f"most runs is shown.{slices}"
    )
    return Figure(
        "over-time", title, words, f"n = {lines.n_runs:,} runs of {len(lines.jobs):,} jobs", partial(_draw_lines, lines)
    )


def _draw_lines(lines: JobLines) -> charts.Chart:
    names = {}
    for job in lines.jobs:
        about = f"median {duration(job.median_s)}, COV {ratio(job.cov)}, {job.n_finished:,} runs"
        names[job.group_key] = f"{one_line(job.group_key, 60)} · {about}"
    medians = {job.group_key: job.median_s for job in lines.jobs}
    order = {job.group_key: at for at, job in enumerate(lines.jobs)}
    runs = lines.runs.sort_values("group_key", key=lambda keys: keys.map(order), kind="stable")
    median_s = runs["group_key"].map(medians).astype(float)
    rows = pd.DataFrame(
        {
            "job": runs["group_key"].map(names),
            "submitted_at": runs["queued_at"],
            "runtime_s": runs["high_s"],
            "shortest_s": runs["low_s"],
            "median_s": median_s,
            "slow": runs["high_s"] >= lines.slow_ratio * median_s,
        }
    )
    return charts.strips(
        rows,
        Axis("submitted_at", "submitted (UTC)", "time"),
        Axis("runtime_s", "seconds", "count"),
        "job",
        marked="slow",
        words=("as usual", f"at least {number(lines.slow_ratio)} × the median"),
        high="shortest_s" if lines.has_slices else "",
        level="median_s",
    )


def against_median_figure(medians: MedianComparison | None, asked: SummaryParams, slow_share: float | None) -> Figure:
    """New runs against the median of their job's past."""
    title = "New runs against the median of their job's past"
    past = f"the first {100 * asked.history_share:g} % of the log"
    if medians is None:
        nothing = (
            f"No job has {asked.min_support} finished runs in {past} and any after it, so there is no historic median "
            "to compare new runs with."
        )
        return figure("against-median", title, "", "", None, nothing)
    words = (
        f"Each new run against the median that its job had in {past}. Runs on the grey line are as before; those above "
        f"the orange one are the stalagmite of slow runs: {share(slow_share)} took at least {number(asked.slow_ratio)} "
        "times the historic median."
    )
    if medians.n_hidden:
        words += f" {medians.n_hidden:,} runs with a runtime or a median of 0 have no place on these axes."
    guides = {"= median": 1.0, f"{number(medians.slow_ratio)} × median": medians.slow_ratio}
    x, y = Axis("x", "historic median of the job", "seconds"), Axis("y", "runtime of a new run", "seconds")
    draw = partial(_draw_density, medians.density, x, y, guides)
    return Figure("against-median", title, words, f"n = {medians.n_points:,} new runs, {_marks(medians.density)}", draw)


def _draw_density(density: Density, x: Axis, y: Axis, guides: Mapping[str, float]) -> charts.Chart:
    rows = pd.DataFrame({x.field: 10**density.log_x, y.field: 10**density.log_y, "n": density.n})
    return charts.scatter(rows, x, y, count="n", lines=guides)


def _marks(density: Density) -> str:
    return "one dot each" if density.hexagon is None else "stronger in colour where more of them lie"


def cov_drift_figure(covs: CovComparison | None, asked: SummaryParams) -> Figure:
    """Variation of each job in the past and after it."""
    title = "Variation of each job in the past and after it"
    if covs is None:
        nothing = f"No job has {asked.min_support} finished runs both in the historic part of the log and after it."
        return figure("cov-drift", title, "", "", None, nothing)
    words = (
        "Coefficient of variation (standard deviation over mean) of each job before and after the split of the log; on "
        "the line it stayed what it was. "
    )
    words += (
        "One side is the same for all jobs, so there is no rank correlation."
        if covs.rank_correlation is None
        else f"Rank correlation: {covs.rank_correlation:.2f} (1: the order of the jobs stays, 0: it is lost)."
    )
    draw = partial(_draw_density, covs.density, Axis("x", "COV of the new runs of a job", "log"),
                   Axis("y", "COV of its historic runs", "log"), {"as before": 1.0})  # fmt: skip
    return Figure("cov-drift", title, words, f"n = {covs.density.n_points:,} jobs, {_marks(covs.density)}", draw)


def skyline_figure(skyline: Skyline) -> Figure:
    """The tokens that one run held over time."""
    words = (
        "The tokens that one run held over time. Of the runs longer than the median run, in jobs with enough runs, "
        "it is the one whose peak is the largest multiple of its allocation"
    )
    if skyline.allocation:
        words += f": {number(skyline.peak_tokens / skyline.allocation)} times. What lies above the allocation was spare"
    evidence = f"run {one_line(skyline.run_id)}, one of {skyline.n_finished:,} runs of its job"
    return Figure("skyline", "Tokens of a run over time", f"{words}.", evidence, partial(_draw_skyline, skyline))


def _draw_skyline(skyline: Skyline) -> charts.Chart:
    steps = charts.sampled(skyline.steps, MOST_STEPS)
    last = steps.tail(1).assign(at_s=skyline.runtime_s)
    steps = pd.concat([steps, last], ignore_index=True)
    held = steps[["at_s", "tokens"]].assign(what="held")
    allocated = steps[["at_s"]].assign(
        tokens=steps["guaranteed"].fillna(skyline.allocation or np.nan), what="allocated"
    )
    rows = pd.concat([held, allocated.dropna()], ignore_index=True)
    return charts.lines(
        rows, Axis("at_s", "seconds after the start"), Axis("tokens", "tokens", "count"), series="what", steps=True
    )


MOST_STEPS = 600  # of a skyline


def causes_section(shares: VarianceShares, evidence: str) -> Section:
    """What explains the variation inside jobs, as figure and numbers."""
    together = max(0.0, shares.together)
    words = (
        "Share of the variance of log runtime around the mean of each job, measured on jobs that the linear fit has "
        f"not seen ({shares.n_folds} folds of jobs). By each cause alone, and what is lost when only this cause is "
        f"left out. All together explain {share(together)}; a share below 0 is shown as 0."
    )
    rows = [
        {"cause": one.cause, "share": max(value, 0.0), "explained": how}
        for one in shares.causes
        for how, value in (("by it alone", one.alone), ("only by it", one.unique))
    ] + [{"cause": TOGETHER, "share": together, "explained": "by it alone"}]
    tones = {"by it alone": charts.MIDDLE, "only by it": charts.BLUE}
    draw = partial(charts.bars, pd.DataFrame(rows), Axis("share", "share of the variance", "share"), "cause",
                   series="explained", colours=tones)  # fmt: skip
    title, n = "What explains the variation inside jobs", f"n = {shares.n_runs:,} runs of {shares.n_groups:,} jobs"
    columns = (
        Column("cause", "cause"),
        *numbers(("alone", "explained by it alone", share), ("unique", "only by it", share)),
    )
    told = [
        {"cause": one.cause, "alone": max(one.alone, 0.0), "unique": max(one.unique, 0.0)} for one in shares.causes
    ] + [{"cause": TOGETHER, "alone": together, "unique": None}]
    table = Table("", "", columns, told)
    return Section(title, evidence=evidence, figures=(Figure("causes", title, words, n, draw),), tables=(table,))
