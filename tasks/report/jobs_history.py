"""How the runtimes of a log's recurring jobs varied: Figures 1, 3 and 4 of Zhu et al. for any log, and what explains
the variation within jobs (3.2)."""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.explain.variance import VarianceShares, fetch_variance
from tasks.jobs.params import HISTORIC_SHARE, STALAGMITE_RATIO, SummaryParams
from tasks.quantities import duration, number, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Figure, Section, Table, alone, count, one_line, plot, records, table
from tasks.warehouse.connection import Connection

CELLS = 42  # hexagons along the longer side
LEAST_DECADES = 0.6  # of an axis
GOOD_SUPPORT = 20  # the paper's D1
BANDS_S = (0.01, 0.1, 1, 10, 60, 600, 3600, 36_000)
FLOOR = 0.01  # smaller COVs, and those of constant runtimes, are drawn here
MOST_STEPS = 600  # of a skyline
N_LINES, MOST_POINTS = 6, 1000  # jobs of the figure over time; marks drawn one by one, more are drawn as density
TOGETHER = "all together"
OVER_TIME = "Runtimes over time, from steady jobs to varying ones"
AGAINST_MEDIAN = "New runs against the median of their job's past"
COV_DRIFT = "Variation of each job in the past and after it"
LINES_WORDS = (
    "Each strip is one job with an axis of its own; the line is its median. Orange runs took at least {slow} times "
    "that. The jobs are not picked by hand: all jobs with enough runs are ordered by their variation and cut into "
    "equal parts, and of each part the job with the most runs is shown."
)
MEDIAN_WORDS = (
    "Each new run against the median that its job had in {past}. Runs on the grey line are as before; those above "
    "the orange one are the stalagmite of slow runs: {share} took at least {slow} times the historic median."
)
COV_WORDS = (
    "Coefficient of variation (standard deviation over mean) of each job before and after the split of the log; on "
    "the line it stayed what it was."
)
SKYLINE_WORDS = (
    "The tokens that one run held over time. Of the runs longer than the median run, in jobs with enough runs, "
    "it is the one whose peak is the largest multiple of its allocation"
)
CAUSES_WORDS = (
    "Share of the variance of log runtime around the mean of each job, measured on jobs that the linear fit has "
    "not seen ({n_folds} folds of jobs). By each cause alone, and what is lost when only this cause is left out. All "
    "together explain {together}; a share below 0 is shown as 0."
)
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
        pow(10, CASE WHEN is_even THEN round(u) ELSE floor(u) + 0.5 END * $width) AS x,
        pow(10, CASE WHEN is_even THEN round(v) ELSE floor(v) + 0.5 END * $height * sqrt(3)) AS y,
        count(*) AS n
    FROM nearest
    GROUP BY ALL
)
SELECT * FROM final ORDER BY x, y
"""
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


def history_sections(
    connection: Connection, source: str, asked: SummaryParams, slow_share: float | None, of: str
) -> Iterator[Section]:
    """The figures of a log with their words; at most MOST_POINTS rows a figure leave the database.

    slow_share: of the summary, which also counts runs that an axis cannot show; of: what the figures rest on."""
    yield alone(over_time_figure(connection, source, asked, N_LINES, MOST_POINTS // N_LINES), of)
    against, bands = against_median(connection, source, asked, MOST_POINTS, slow_share)
    yield Section(against.title, evidence=of, figures=(against,), tables=(bands,))
    yield alone(cov_drift_figure(connection, source, asked, MOST_POINTS), of)
    if (skyline := skyline_figure(connection, source, asked)) is not None:
        yield alone(skyline, of)
    if (shares := fetch_variance(connection, source, asked)) is not None:
        yield causes_section(shares, of)


def fetch_density(
    connection: Connection, points: str, values: Mapping[str, Any], max_points: int
) -> tuple[pd.DataFrame, int]:
    """Of the rows of a query with columns x and y those that are positive: x, y, n, and how many there are.

    Of more than max_points a row is a hexagon that counts n of them, equally large on logarithmic axes."""
    asked, positive = dict(values), f"FROM ({points}) WHERE x > 0 AND y > 0"
    extent = connection.execute(f"SELECT count(*), min(x), max(x), min(y), max(y) {positive}", asked).fetchone()
    n, *ends = extent or (0,)
    if n <= max_points:
        return connection.execute(f"SELECT x, y, 1 AS n {positive} ORDER BY ALL", asked).df(), int(n)
    width, height = (max(math.log10(b / a), LEAST_DECADES) / CELLS for a, b in (ends[:2], ends[2:]))
    counted = connection.execute(HEXAGONS.format(points=points), {**asked, "width": width, "height": height}).df()
    return counted, int(n)


def _marks(rows: pd.DataFrame, n: int) -> str:
    return "one dot each" if len(rows) == n else "stronger in colour where more of them lie"


def over_time_figure(
    connection: Connection, source: str, asked: SummaryParams, n_lines: int, max_points: int
) -> Figure:
    """Runtimes of n_lines jobs, from steady to varying, at most max_points marks each; chosen by a fixed rule."""
    nothing = f"No job has {asked.min_support} finished runs and a runtime above 0, so there is no line to draw."
    support = {"min_support": asked.min_support, "n_lines": n_lines, "good_support": GOOD_SUPPORT}
    jobs = connection.execute(LINES_CHOICE, {"source": source, **support}).df()
    if jobs.empty:
        return Figure("over-time", OVER_TIME, nothing, "n = 0")
    keys = {"keys": list(jobs["group_key"]), "statuses": list(asked.statuses), "max_points": max_points}
    runs = jobs.merge(connection.execute(LINES_RUNS, {"source": source, **keys}).df(), on="group_key")
    names = {
        row["group_key"]: f"{one_line(row['group_key'], 60)} · median {duration(row['median_s'])}, COV "
        f"{ratio(row['cov'])}, {row['n_finished']:,} runs"
        for row in records(jobs)
    }
    rows = pd.DataFrame(
        {
            "job": runs["group_key"].map(names),
            "submitted_at": runs["queued_at"],
            "runtime_s": runs["high_s"],
            "shortest_s": runs["low_s"],
            "median_s": runs["median_s"],
            "slow": runs["high_s"] >= STALAGMITE_RATIO * runs["median_s"],
        }
    )
    slow, has_slices = number(STALAGMITE_RATIO), bool((runs["n"] > 1).any())
    words = LINES_WORDS.format(slow=slow)
    if has_slices:
        words += " Where runs are dense, a bar joins the shortest and the longest of a slice of time."
    axes = Axis("submitted_at", "submitted (UTC)", "time"), Axis("runtime_s", "seconds", "count")
    return plot(
        "over-time", OVER_TIME, words, f"n = {int(runs['n'].sum()):,} runs of {len(jobs):,} jobs", charts.strips, rows,
        *axes, "job", marked="slow", words=("as usual", f"at least {slow} × the median"),
        high="shortest_s" if has_slices else "", level="median_s",
    )  # fmt: skip


def against_median(
    connection: Connection, source: str, asked: SummaryParams, max_points: int, slow_share: float | None
) -> tuple[Figure, Table]:
    """New runs against the median of their job's past, and the share of slow ones by that median."""
    past = f"the first {100 * HISTORIC_SHARE:g} % of the log"
    values = {"source": source, "statuses": list(asked.statuses)}
    rows, n = fetch_density(connection, MEDIAN_POINTS, values, max_points)
    by_band = {**values, "bands": list(BANDS_S), "slow_ratio": STALAGMITE_RATIO}
    found = records(connection.execute(BAND_SHARES.format(points=MEDIAN_POINTS), by_band).df())
    labels = [f"under {duration(BANDS_S[0])}"]
    labels += [f"{duration(low)} to {duration(high)}" for low, high in pairwise(BANDS_S)]
    labels.append(f"{duration(BANDS_S[-1])} and more")
    slow = number(STALAGMITE_RATIO)
    bands = table(
        [row | {"label": labels[row["band"]]} for row in found], ("label", "historic median"),
        ("n", "new runs", count), ("slow_share", "slow", share), title="Slow runs by length of job",
        words=f"New runs at least {slow} times the historic median of their job.",
    )  # fmt: skip
    n_all = connection.execute(f"SELECT count(*) FROM ({MEDIAN_POINTS})", values).fetchone() or (0,)
    words = MEDIAN_WORDS.format(past=past, share=share(slow_share), slow=slow)
    if n_all[0] > n:
        words += f" {n_all[0] - n:,} runs with a runtime or a median of 0 have no place on these axes."
    guides = {"= median": 1.0, f"{slow} × median": STALAGMITE_RATIO}
    axes = Axis("x", "historic median of the job", "seconds"), Axis("y", "runtime of a new run", "seconds")
    drawn = plot(
        "against-median", AGAINST_MEDIAN, words, f"n = {n:,} new runs, {_marks(rows, n)}", charts.scatter, rows, *axes,
        count="n", lines=guides,
        nothing=f"No job has {asked.min_support} finished runs in {past} and any after it, so there is no historic "
        "median to compare new runs with.",
    )  # fmt: skip
    return drawn, bands


def cov_drift_figure(connection: Connection, source: str, asked: SummaryParams, max_points: int) -> Figure:
    """Variation of each job in the past and after it, with Spearman's rank correlation."""
    rows, n = fetch_density(connection, COV_POINTS, {"source": source, "floor": FLOOR}, max_points)
    found = connection.execute(RANKS, {"source": source}).fetchone()
    told = "One side is the same for all jobs, so there is no rank correlation."
    if found and found[0] is not None and not math.isnan(found[0]):
        told = f"Rank correlation: {found[0]:.2f} (1: the order of the jobs stays, 0: it is lost)."
    axes = Axis("x", "COV of the new runs of a job", "log"), Axis("y", "COV of its historic runs", "log")
    nothing = f"No job has {asked.min_support} finished runs both in the historic part of the log and after it."
    return plot("cov-drift", COV_DRIFT, f"{COV_WORDS} {told}", f"n = {n:,} jobs, {_marks(rows, n)}", charts.scatter,
                rows, *axes, count="n", lines={"as before": 1.0}, nothing=nothing)  # fmt: skip


def skyline_figure(connection: Connection, source: str, asked: SummaryParams) -> Figure | None:
    """The tokens that one run held over time, chosen by a fixed rule; None if no run has a skyline."""
    values = {"source": source, "statuses": list(asked.statuses), "good_support": GOOD_SUPPORT}
    found = records(connection.execute(SKYLINE_CHOICE, values).df())
    if not found:
        return None
    [run] = found
    steps = connection.execute(STEPS, {"source": source, "run_id": run["run_id"]}).df().astype(float)
    steps = charts.sampled(steps, MOST_STEPS)
    steps = pd.concat([steps, steps.tail(1).assign(at_s=run["runtime_s"])], ignore_index=True)
    allocation = None if pd.isna(run["allocation"]) else float(run["allocation"])
    allocated = steps[["at_s"]].assign(tokens=steps["guaranteed"].fillna(allocation or np.nan), what="allocated")
    rows = pd.concat([steps[["at_s", "tokens"]].assign(what="held"), allocated.dropna()], ignore_index=True)
    words = f"{SKYLINE_WORDS}."
    if allocation:
        above = number(run["peak_tokens"] / allocation)
        words = f"{SKYLINE_WORDS}: {above} times. What lies above the allocation was spare."
    evidence = f"run {one_line(run['run_id'])}, one of {run['n_finished']:,} runs of its job"
    axes = Axis("at_s", "seconds after the start"), Axis("tokens", "tokens", "count")
    return plot("skyline", "Tokens of a run over time", words, evidence, charts.lines, rows, *axes, series="what",
                steps=True)  # fmt: skip


def causes_section(shares: VarianceShares, evidence: str) -> Section:
    """What explains the variation inside jobs, as figure and numbers."""
    together = max(0.0, shares.together)
    told: list[dict[str, Any]] = [
        {"cause": one.cause, "alone": max(one.alone, 0.0), "unique": max(one.unique, 0.0)} for one in shares.causes
    ]
    told.append({"cause": TOGETHER, "alone": together, "unique": None})
    tones = {"by it alone": charts.MIDDLE, "only by it": charts.BLUE}
    rows = [
        {"cause": row["cause"], "share": row[key], "explained": how}
        for row in told
        for key, how in zip(("alone", "unique"), tones, strict=True)
        if row[key] is not None
    ]
    drawn = plot(
        "causes", "What explains the variation inside jobs",
        CAUSES_WORDS.format(n_folds=shares.n_folds, together=share(together)),
        f"n = {shares.n_runs:,} runs of {shares.n_groups:,} jobs", charts.bars, pd.DataFrame(rows),
        Axis("share", "share of the variance", "share"), "cause", series="explained", colours=tones,
    )  # fmt: skip
    shown = table(told, ("cause", "cause"), ("alone", "explained by it alone", share), ("unique", "only by it", share))
    return Section(drawn.title, evidence=evidence, figures=(drawn,), tables=(shown,))
