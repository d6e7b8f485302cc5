"""How the runtimes of a log's recurring jobs varied: Figures 1 and 4 of Zhu et al. for any log, and what explains the
variation within jobs (3.2)."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tasks.jobs.explain.variance import VarianceShares, fetch_variance
from tasks.jobs.params import HISTORIC_SHARE, STALAGMITE_RATIO, SummaryParams
from tasks.quantities import duration, number, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Figure, Section, Table, alone, count, one_line, plot, records, table
from tasks.warehouse.connection import Connection

GOOD_SUPPORT = 20  # the paper's D1
BANDS_S = (0.01, 0.1, 1, 10, 60, 600, 3600, 36_000)
N_LINES, MOST_POINTS = 6, 1000  # jobs of the figure over time; marks of a figure
TOGETHER = "all together"
OVER_TIME = "Runtimes over time, from steady jobs to varying ones"
AGAINST_MEDIAN = "New runs against the median of their job's past"
LINES_WORDS = (
    "Each strip is one job with an axis of its own; the line is its median. Orange runs took at least {slow} times "
    "that. The jobs are not picked by hand: all jobs with enough runs are ordered by their variation and cut into "
    "equal parts, and of each part the job with the most runs is shown, its latest {most} at most."
)
MEDIAN_WORDS = (
    "Each new run against the median that its job had in {past}. Runs on the grey line are as before; those above "
    "the orange one are the stalagmite of slow runs: {share} took at least {slow} times the historic median."
)
CAUSES_WORDS = (
    "Share of the variance of log runtime around the mean of each job, measured on jobs that the linear fit has "
    "not seen ({n_folds} folds of jobs). By each cause alone, and what is lost when only this cause is left out. All "
    "together explain {together}; a share below 0 is shown as 0."
)
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
LINES_RUNS = """
SELECT group_key, coalesce(submitted_at, started_at, ended_at) AS queued_at, runtime_s
FROM jobs.runs
WHERE source = $source AND what_if IS NULL AND list_contains($keys, group_key)
    AND isfinite(runtime_s) AND list_contains($statuses, status)
QUALIFY row_number() OVER (PARTITION BY group_key ORDER BY queued_at DESC NULLS LAST, run_id) <= $max_points
ORDER BY group_key, queued_at, run_id
"""
MEDIAN_POINTS = """
    SELECT run_id, history_median_s AS x, runtime_s AS y
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
# The first by a hash of their ids, so that the part that is drawn is spread over the log.
DRAWN = """
SELECT x, y, count(*) OVER () AS n FROM ({points}) WHERE x > 0 AND y > 0 ORDER BY md5(run_id), run_id LIMIT $most
"""


def history_sections(
    connection: Connection, source: str, asked: SummaryParams, slow_share: float | None, of: str
) -> Iterator[Section]:
    """The figures of a log with their words; few rows leave the database.

    slow_share: of the summary, which also counts runs that an axis cannot show; of: what the figures rest on."""
    yield alone(over_time_figure(connection, source, asked, N_LINES, MOST_POINTS // N_LINES), of)
    against, bands = against_median(connection, source, asked, MOST_POINTS, slow_share)
    yield Section(against.title, evidence=of, figures=(against,), tables=(bands,))
    if (shares := fetch_variance(connection, source, asked)) is not None:
        yield causes_section(shares, of)


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
    slow = number(STALAGMITE_RATIO)
    tones = {f"at least {slow} × the median": charts.ORANGE, "as usual": charts.BLUE}
    rows = runs[["runtime_s", "median_s"]].assign(
        job=runs["group_key"].map(names),
        submitted_at=runs["queued_at"],
        speed=np.where(runs["runtime_s"] >= STALAGMITE_RATIO * runs["median_s"], *tones),
    )
    axes = Axis("submitted_at", "submitted (UTC)", "time"), Axis("runtime_s", "seconds", "count")
    return plot(
        "over-time", OVER_TIME, LINES_WORDS.format(slow=slow, most=max_points),
        f"n = {len(runs):,} runs of {len(jobs):,} jobs", charts.strips, rows, *axes, "job",
        level="median_s", colour="speed", colours=tones,
    )  # fmt: skip


def against_median(
    connection: Connection, source: str, asked: SummaryParams, max_points: int, slow_share: float | None
) -> tuple[Figure, Table]:
    """New runs against the median of their job's past, and the share of slow ones by that median."""
    past = f"the first {100 * HISTORIC_SHARE:g} % of the log"
    values = {"source": source, "statuses": list(asked.statuses)}
    rows = connection.execute(DRAWN.format(points=MEDIAN_POINTS), {**values, "most": max_points}).df()
    n = int(rows.pop("n").max()) if len(rows) else 0
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
    drawn = f", {len(rows):,} of them drawn" if len(rows) < n else ""
    figure = plot(
        "against-median", AGAINST_MEDIAN, words, f"n = {n:,} new runs{drawn}", charts.scatter, rows, *axes,
        guides,
        nothing=f"No job has {asked.min_support} finished runs in {past} and any after it, so there is no historic "
        "median to compare new runs with.",
    )  # fmt: skip
    return figure, bands


def causes_section(shares: VarianceShares, evidence: str) -> Section:
    """What explains the variation inside jobs."""
    together = max(0.0, shares.together)
    rows = [{"cause": one.cause, "alone": max(one.alone, 0.0), "unique": max(one.unique, 0.0)} for one in shares.causes]
    shown = table(
        [*rows, {"cause": TOGETHER, "alone": together}],
        ("cause", "cause"), ("alone", "explained by it alone", share), ("unique", "only by it", share),
    )  # fmt: skip
    words = CAUSES_WORDS.format(n_folds=shares.n_folds, together=share(together))
    n = f"n = {shares.n_runs:,} runs of {shares.n_groups:,} jobs · {evidence}"
    return Section("What explains the variation inside jobs", words, n, tables=(shown,))
