"""The typical runtime distributions of a source (Zhu et al., section 4), and how one job is matched with a shape."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from tasks.jobs import characterise
from tasks.jobs.characterise import Characterisation, shape_words
from tasks.jobs.matching import JobAgainstShapes
from tasks.jobs.normalisation import Bins, Floats
from tasks.jobs.params import Kind
from tasks.jobs.shapes import ShapeSet
from tasks.quantities import duration, number, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Figure, Result, Section, Table, count, plot, records, table
from tasks.warehouse.connection import Connection

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
    found = characterise.fetch_shapes(connection, source, kind)
    if found is None:
        return None
    n_jobs, same_share = connection.execute(STAYED, {"source": source, "kind": kind}).fetchone() or (0, None)
    stayed = (
        f"Of n = {n_jobs:,} jobs with a shape both in the history and in the last part of the log, {share(same_share)} "
        "have the same in both"
    )
    return found, stayed if n_jobs else ""


def version_of(found: Characterisation) -> str:
    """The data version of the files that shapes were made from."""
    return str(found.table["data_version"].iloc[0])


def shape_sections(found: Mapping[Kind, tuple[Characterisation, str]], version_now: str) -> Iterator[Section]:
    """The shapes of each normalisation, and how many jobs kept theirs."""
    for kind, (one, stayed) in found.items():
        version = version_of(one)
        yield Section(
            f"Typical distributions of runtimes ({kind})",
            evidence=f"data version {version}{'' if version == version_now else ', not of the files of now'}",
            lines=(shape_words(kind, one), *([stayed] if stayed else [])),
            tables=(shapes_table(one.table, kind),),
            figures=(shapes_figure(one.shapes, one.table, kind),),
        )


def shapes_result(source: str, found: dict[Kind, Characterisation], again: str) -> Result:
    """The shapes of a source that was characterised."""
    version = version_of(next(iter(found.values())))
    words = "; ".join(f"{shape_words(kind, one)}" for kind, one in found.items())
    return Result(
        f"Typical distributions of runtimes: {source}",
        f"{words}.",
        made_of=f"source {source}, data version {version}",
        again=again,
        sections=tuple(shape_sections({kind: (one, "") for kind, one in found.items()}, version)),
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


def shapes_figure(shapes: ShapeSet, found: pd.DataFrame | None, kind: str) -> Figure:
    """Figure 5 of the paper: the shapes of one normalisation, the steadiest first. found: their rows."""
    title = f"Shapes ({kind})"
    if found is None or found.empty:
        return Figure(f"shapes-{kind}", title, NO_SHAPES, "n = 0")
    rows = [
        bin_rows(shapes.bins, pmf).assign(panel=f"shape {at} · {int(n):,} jobs")
        for at, (pmf, n) in enumerate(zip(shapes.centres, found["n_groups"], strict=True))
    ]
    n_runs, n_jobs = int(found["n_runs"].sum()), int(found["n_groups"].sum())
    return plot(
        f"shapes-{kind}", title, SHAPES_WORDS.format(what=NORMALISED[kind]),
        f"n = {n_runs:,} runs of {n_jobs:,} jobs in {len(found)} shapes, {shapes.bins.n_bins} bins", charts.histogram,
        pd.concat(rows), _value_axis(kind), Axis("share", "share", "log"), panel="panel", series="is",
        colours={"runs": charts.BLUE, "outliers": charts.ORANGE}, height=46,
    )  # fmt: skip


def likelihood_figure(job: JobAgainstShapes, name: str = "likelihood") -> Figure:
    """Figure 6 of the paper: the runs of one job against two shapes."""
    (one, other), posteriors = job.numbers, job.posteriors
    words = (
        "Bars are the runs of one job, lines are two shapes. The log-likelihood adds up, over the runs, the "
        "logarithm of what the shape gives to their bin; the larger is the more probable: here shape "
        f"{max(job.numbers, key=job.log_likelihoods.__getitem__)}. Posterior probabilities among all shapes: "
        f"{share(float(posteriors[one]))} for {one}, {share(float(posteriors[other]))} for {other}."
    )
    pmf, parts = job.counts / job.counts.sum(), []
    for at in job.numbers:
        centre = np.asarray(job.shapes.centres[at])
        rows = bin_rows(job.shapes.bins, np.maximum(pmf, centre))
        rows["share"] = np.where(pmf[rows.index] > 0, pmf[rows.index], np.nan)
        rows["shape"] = np.maximum(centre[rows.index], charts.LEAST_SHARE)
        told = f"log-likelihood {job.log_likelihoods[at]:,.1f}, posterior {share(float(posteriors[at]))}"
        parts.append(rows.assign(panel=f"shape {at}: {told}"))
    axes = _value_axis(job.shapes.bins.kind), Axis("share", "share of the runs", "log")
    evidence = f"n = {job.n_runs:,} run{'' if job.n_runs == 1 else 's'} of one job, {job.shapes.bins.n_bins} bins"
    return plot(name, "How a job is matched with a shape", words, evidence, charts.histogram, pd.concat(parts), *axes,
                panel="panel", overlay="shape", height=120)  # fmt: skip
