"""How the runtimes of a log's recurring jobs varied (Zhu et al.): Figures 1 and 4 for any log, what explains the
variation within jobs (3.2), typical distributions (section 4), and how one job is matched with a shape."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
import pandas as pd

from tasks.jobs import characterise
from tasks.jobs.characterise import Characterisation, shape_words
from tasks.jobs.explain.variance import VarianceShares, fetch_variance
from tasks.jobs.matching import JobAgainstShapes
from tasks.jobs.normalisation import Bins, Floats
from tasks.jobs.params import HISTORIC_SHARE, STALAGMITE_RATIO, Kind, SummaryParams
from tasks.jobs.shapes import ShapeSet
from tasks.quantities import duration, number, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Figure, Result, Section, Table, alone, count, one_line, plot, records, table
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
    connection: Connection, source: str, params: SummaryParams, slow_share: float | None, of: str
) -> Iterator[Section]:
    """The figures of a log with their words; few rows leave the database.

    slow_share: of the summary, which also counts runs that an axis cannot show; of: what the figures rest on."""
    yield alone(over_time_figure(connection, source, params, N_LINES, MOST_POINTS // N_LINES), of)
    against, bands = against_median(connection, source, params, MOST_POINTS, slow_share)
    yield Section(against.title, evidence=of, figures=(against,), tables=(bands,))
    if (shares := fetch_variance(connection, source, params)) is not None:
        yield causes_section(shares, of)


def over_time_figure(
    connection: Connection, source: str, params: SummaryParams, n_lines: int, max_points: int
) -> Figure:
    """Runtimes of n_lines jobs, from steady to varying, at most max_points marks each; chosen by a fixed rule."""
    nothing = f"No job has {params.min_support} finished runs and a runtime above 0, so there is no line to draw."
    support = {"min_support": params.min_support, "n_lines": n_lines, "good_support": GOOD_SUPPORT}
    jobs = connection.execute(LINES_CHOICE, {"source": source, **support}).df()
    if jobs.empty:
        return Figure("over-time", OVER_TIME, nothing, "n = 0")
    keys = {"keys": list(jobs["group_key"]), "statuses": list(params.statuses), "max_points": max_points}
    runs = jobs.merge(connection.execute(LINES_RUNS, {"source": source, **keys}).df(), on="group_key")
    names = {
        row["group_key"]: f"{one_line(row['group_key'], 60)} · median {duration(row['median_s'])}, COV "
        f"{ratio(row['cov'])}"
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
    connection: Connection, source: str, params: SummaryParams, max_points: int, slow_share: float | None
) -> tuple[Figure, Table]:
    """New runs against the median of their job's past, and the share of slow ones by that median."""
    past = f"the first {100 * HISTORIC_SHARE:g} % of the log"
    values = {"source": source, "statuses": list(params.statuses)}
    rows = connection.execute(DRAWN.format(points=MEDIAN_POINTS), {**values, "most": max_points}).df()
    n = int(rows.pop("n").max()) if len(rows) else 0
    by_band = {**values, "bands": list(BANDS_S), "slow_ratio": STALAGMITE_RATIO}
    band_rows = records(connection.execute(BAND_SHARES.format(points=MEDIAN_POINTS), by_band).df())
    labels = [f"under {duration(BANDS_S[0])}"]
    labels += [f"{duration(low)} to {duration(high)}" for low, high in pairwise(BANDS_S)]
    labels.append(f"{duration(BANDS_S[-1])} and more")
    slow = number(STALAGMITE_RATIO)
    bands = table(
        [row | {"label": labels[row["band"]]} for row in band_rows], ("label", "historic median"),
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
        nothing=f"No job has {params.min_support} finished runs in {past} and any after it, so there is no historic "
        "median to compare new runs with.",
    )  # fmt: skip
    return figure, bands


def causes_section(shares: VarianceShares, evidence: str) -> Section:
    """What explains the variation inside jobs."""
    together = max(0.0, shares.together)
    rows = [
        {"cause": cause.cause, "alone": max(cause.alone, 0.0), "unique": max(cause.unique, 0.0)}
        for cause in shares.causes
    ]
    shown = table(
        [*rows, {"cause": TOGETHER, "alone": together}],
        ("cause", "cause"), ("alone", "explained by it alone", share), ("unique", "only by it", share),
    )  # fmt: skip
    words = CAUSES_WORDS.format(n_folds=shares.n_folds, together=share(together))
    n = f"n = {shares.n_runs:,} runs of {shares.n_groups:,} jobs · {evidence}"
    return Section("What explains the variation inside jobs", words, n, tables=(shown,))


NORMALISED = {"ratio": "runtime over the historic median of the job", "delta": "runtime minus that median"}
NO_SHAPES = "No job has enough runs in the historic part of the log to take a shape from."
NOT_CAUSES = "These are reasons of the prediction, which need not be causes of the runtime."
METHOD = (
    "Method and figures after Zhu et al., Runtime Variation in Big Data Analytics, 2023; where they differ, "
    "tasks/jobs/README.md says why. Shapes are numbered by rising gap between the 25th and the 75th percentile, 0 the "
    "steadiest. COV: standard deviation over mean."
)
SHAPES_WORDS = (
    "Each row is a shape that many jobs share: the distribution of {what}. They are ranked by the gap between the "
    "25th and the 75th percentile, the steadiest first. Shares are logarithmic, so that rare slow runs are seen; "
    "orange bars hold the outliers beyond the end of the axis."
)
# Shares of jobs that have a label both in the history and in the last part of the log.
STAYED = """
    SELECT count(*) AS n_jobs, avg((before.label = after.label)::DOUBLE) AS same_share
    FROM jobs.group_shapes AS before JOIN jobs.group_shapes AS after USING (source, kind, group_key)
    WHERE source = $source AND kind = $kind AND before.part = 'D1' AND after.part = 'D3'
        AND before.label IS NOT NULL AND after.label IS NOT NULL
"""


def fetch_shapes(connection: Connection, source: str, kind: Kind) -> tuple[Characterisation, str] | None:
    """One normalisation over an open connection, and how many jobs kept their shape, empty where none has two; None if
    the source has no shapes of it."""
    characterisation = characterise.fetch_shapes(connection, source, kind)
    if characterisation is None:
        return None
    n_jobs, same_share = connection.execute(STAYED, {"source": source, "kind": kind}).fetchone() or (0, None)
    stayed = (
        f"Of n = {n_jobs:,} jobs with a shape both in the history and in the last part of the log, {share(same_share)} "
        "have the same in both"
    )
    return characterisation, stayed if n_jobs else ""


def version_of(characterisation: Characterisation) -> str:
    """The data version of the files that shapes were made from."""
    return str(characterisation.table["data_version"].iloc[0])


def shape_sections(by_kind: Mapping[Kind, tuple[Characterisation, str]], version_now: str) -> Iterator[Section]:
    """The shapes of each normalisation, and how many jobs kept theirs."""
    for kind, (characterisation, stayed) in by_kind.items():
        version = version_of(characterisation)
        yield Section(
            f"Typical distributions of runtimes ({kind})",
            evidence=f"data version {version}{'' if version == version_now else ', not of the files of now'}",
            lines=(shape_words(kind, characterisation), *([stayed] if stayed else [])),
            tables=(shapes_table(characterisation.table, kind),),
            figures=(shapes_figure(characterisation.shapes, characterisation.table, kind),),
        )


def shapes_result(source: str, by_kind: dict[Kind, Characterisation]) -> Result:
    """The shapes of a source that was characterised."""
    version = version_of(next(iter(by_kind.values())))
    words = "; ".join(f"{shape_words(kind, characterisation)}" for kind, characterisation in by_kind.items())
    return Result(
        f"Typical distributions of runtimes: {source}",
        f"{words}.",
        made_of=f"source {source}, data version {version}",
        sections=tuple(
            shape_sections({kind: (characterisation, "") for kind, characterisation in by_kind.items()}, version)
        ),
        method=METHOD,
    )


def shapes_table(shapes: pd.DataFrame, kind: Kind) -> Table:
    """Table 2 of the paper: a row a shape."""
    value = number if kind == "ratio" else duration
    return table(
        [row | {"outliers": row["outlier_percent"] / 100} for row in records(shapes)], ("shape", "shape", count),
        ("n_groups", "jobs", count), ("n_runs", "runs", count), ("outliers", "outliers", share),
        ("p25_p75", "25–75 % gap", value), ("p95", "95 %", value), ("std", "std", value),
    )  # fmt: skip


def bin_rows(bins: Bins, pmf: Floats) -> pd.DataFrame:
    """The bins of a distribution that hold anything: low, end, share, is_outlier; the open ones stand beside the
    others."""
    inner = np.asarray(bins.edges[1:-1], dtype=float)
    width = float(np.median(np.diff(inner)))
    low = np.r_[inner[0] - 2 * width, inner[:-1], inner[-1] + width]
    end = np.r_[inner[0] - width, inner[1:], inner[-1] + 2 * width]
    rows = pd.DataFrame({"low": low, "end": end, "share": np.asarray(pmf, dtype=float)})
    rows["is"] = np.where(np.isin(np.arange(len(rows)), (0, len(rows) - 1)), "outliers", "runs")
    return rows[rows["share"] >= charts.LEAST_SHARE]


def _value_axis(kind: str) -> Axis:
    return Axis("low", NORMALISED.get(kind, kind) + (", seconds" if kind == "delta" else ""), "number")


def shapes_figure(shapes: ShapeSet, sizes: pd.DataFrame | None, kind: str) -> Figure:
    """Figure 5 of the paper: the shapes of one normalisation, the steadiest first. sizes: n_runs, n_groups."""
    title = f"Shapes ({kind})"
    if sizes is None or sizes.empty:
        return Figure(f"shapes-{kind}", title, NO_SHAPES, "n = 0")
    rows = [
        bin_rows(shapes.bins, pmf).assign(panel=f"shape {at} · {int(n):,} jobs")
        for at, (pmf, n) in enumerate(zip(shapes.centres, sizes["n_groups"], strict=True))
    ]
    n_runs, n_jobs = int(sizes["n_runs"].sum()), int(sizes["n_groups"].sum())
    return plot(
        f"shapes-{kind}", title, SHAPES_WORDS.format(what=NORMALISED[kind]),
        f"n = {n_runs:,} runs of {n_jobs:,} jobs in {len(sizes)} shapes, {shapes.bins.n_bins} bins", charts.histogram,
        pd.concat(rows), _value_axis(kind), Axis("share", "share", "log"), panel="panel", series="is",
        colours={"runs": charts.BLUE, "outliers": charts.ORANGE}, height=46,
    )  # fmt: skip


def likelihood_figure(job: JobAgainstShapes, name: str = "likelihood") -> Figure:
    """Figure 6 of the paper: the runs of one job against two shapes."""
    (first, other), posteriors = job.numbers, job.posteriors
    words = (
        "Bars are the runs of one job, lines are two shapes. The log-likelihood adds up, over the runs, the "
        "logarithm of what the shape gives to their bin; the larger is the more probable: here shape "
        f"{max(job.numbers, key=job.log_likelihoods.__getitem__)}. Posterior probabilities among all shapes: "
        f"{share(float(posteriors[first]))} for {first}, {share(float(posteriors[other]))} for {other}."
    )
    pmf, parts = job.counts / job.counts.sum(), []
    for at in job.numbers:
        centre = np.asarray(job.shapes.centres[at])
        rows = bin_rows(job.shapes.bins, np.maximum(pmf, centre))
        rows["share"] = np.where(pmf[rows.index] > 0, pmf[rows.index], np.nan)
        rows["shape"] = np.maximum(centre[rows.index], charts.LEAST_SHARE)
        caption = f"log-likelihood {job.log_likelihoods[at]:,.1f}, posterior {share(float(posteriors[at]))}"
        parts.append(rows.assign(panel=f"shape {at}: {caption}"))
    axes = _value_axis(job.shapes.bins.kind), Axis("share", "share of the runs", "log")
    evidence = f"n = {job.n_runs:,} run{'' if job.n_runs == 1 else 's'} of one job, {job.shapes.bins.n_bins} bins"
    return plot(name, "How a job is matched with a shape", words, evidence, charts.histogram, pd.concat(parts), *axes,
                panel="panel", overlay="shape", height=120)  # fmt: skip
