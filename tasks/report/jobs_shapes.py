"""The typical runtime distributions of a source (Zhu et al., section 4): shapes, how their number and bins were
chosen, the faults of the COV, and how one job is matched with a shape."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd

from tasks.errors import BadSetting, NotFound
from tasks.jobs import characterise
from tasks.jobs.characterise import Characterisation, read_characterised, shape_words
from tasks.jobs.normalisation import Bins, Counts, Floats, historic_medians, normalise
from tasks.jobs.params import CharacteriseParams, Kind, PosteriorParams
from tasks.jobs.predict.preparation import fetch_runs
from tasks.jobs.shapes import InertiaCurve, ShapeSet, log_likelihood, log_posterior, prior_weights
from tasks.quantities import duration, number, ratio, share
from tasks.report import charts
from tasks.report.charts import Axis
from tasks.report.result import Figure, Result, Section, Table, count, figure, numbers, one_line, records
from tasks.warehouse.connection import Connection, fetch, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.versions import data_version

NORMALISED = {"ratio": "runtime over the historic median of the job", "delta": "runtime minus that median"}
NO_SHAPES = "No job has enough runs in the historic part of the log to take a shape from."
OURS = "k-means"
METHOD = (
    "Method and figures after Zhu et al., Runtime Variation in Big Data Analytics, 2023; where they differ, "
    "tasks/jobs/README.md says why. Shapes are numbered by rising gap between the 25th and the 75th percentile, 0 the "
    "steadiest."
)


MIN_RUNS = 20
SAME_COV = 0.05  # COVs that differ by no more than this share count as the same
N_BANDS = 4
MOST_PAIRED = 400  # jobs with the most runs that are compared with one another
FIRST = 10  # runs before the first COV of the second panel
GRID_POINTS = 64


@dataclass(frozen=True)
class Biased:
    """Bias. median_s, cov: (n_jobs,); bands: of jobs from short to long, alike in size: median_s, median COV."""

    median_s: Floats
    cov: Floats
    bands: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Unstable:
    """Instability. Of one job, after each of its runs from FIRST on: cov, and gap, the 25th-75th over the median.

    both: (n_runs - FIRST + 1,); jump_at: place of the run that changed the COV most; runtime_ratio: of that run over
    the median of the job."""

    group_key: str
    cov: Floats
    gap: Floats
    jump_at: int
    runtime_ratio: float


@dataclass(frozen=True)
class Coarse:
    """Coarseness. Two jobs whose COVs are the same and whose distributions differ most: runtimes over the mean."""

    keys: tuple[str, str]
    covs: tuple[float, float]
    ratios: tuple[Floats, Floats]


@dataclass(frozen=True)
class CovFaults:
    """What each panel shows; n_jobs with at least min_runs runs. A fault that the log cannot show is None."""

    n_jobs: int
    min_runs: int
    biased: Biased | None
    unstable: Unstable | None
    coarse: Coarse | None

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n_jobs:,} jobs with at least {self.min_runs} runs; the jobs shown are chosen by rule"


def find_cov_faults(runs: pd.DataFrame, *, min_runs: int = MIN_RUNS) -> CovFaults | None:
    """Where the log shows the faults, by fixed rules; None if no job has min_runs finished runs above 0 s.

    runs: group_key, submitted_at, runtime_s. Unstable: the job whose COV one run changed most, upwards. Coarse: of
    jobs next to one another in COV, the two whose runtimes over their mean differ most (Kolmogorov–Smirnov)."""
    runs = runs[np.isfinite(runs["runtime_s"].astype(float)) & (runs["runtime_s"] > 0)]
    runs = runs.sort_values(["group_key", "submitted_at", "runtime_s"], kind="stable")
    times = {
        str(key): group.to_numpy(dtype=float)
        for key, group in runs.groupby("group_key", sort=True)["runtime_s"]
        if len(group) >= max(min_runs, FIRST + 1)
    }
    if not times:
        return None
    return CovFaults(len(times), min_runs, _bias(times), _instability(times), _coarseness(times))


def _cov(values: Floats) -> float:
    return float(np.std(values, ddof=1) / np.mean(values))


def _bias(times: dict[str, Floats]) -> Biased | None:
    if len(times) < 2:
        return None
    medians = np.array([np.median(values) for values in times.values()])
    covs = np.array([_cov(values) for values in times.values()])
    parts = np.array_split(np.argsort(medians, kind="stable"), min(N_BANDS, len(times)))
    bands = tuple((float(np.median(medians[part])), float(np.median(covs[part]))) for part in parts)
    return Biased(medians, covs, bands)


def _running_cov(values: Floats) -> Floats:
    """COV of the first FIRST, FIRST + 1 … runs."""
    n = np.arange(1, len(values) + 1)
    mean = np.cumsum(values) / n
    centred = values - values.mean()
    variance = (np.cumsum(centred**2) - np.cumsum(centred) ** 2 / n) / np.maximum(n - 1, 1)
    return np.asarray((np.sqrt(np.maximum(variance, 0)) / mean)[FIRST - 1 :])


def _instability(times: dict[str, Floats]) -> Unstable | None:
    best: tuple[float, str, int] | None = None
    for key, values in times.items():
        steps = np.diff(_running_cov(values))
        place = int(steps.argmax())
        if steps[place] > 0 and (best is None or steps[place] > best[0]):
            best = (float(steps[place]), key, place + FIRST)
    if best is None:
        return None
    _, key, place = best
    values = times[key]
    quartiles = np.array([np.quantile(values[:n], [0.25, 0.5, 0.75]) for n in range(FIRST, len(values) + 1)])
    gap = (quartiles[:, 2] - quartiles[:, 0]) / quartiles[:, 1]
    return Unstable(key, _running_cov(values), gap, place, float(values[place] / np.median(values)))


def _coarseness(times: dict[str, Floats]) -> Coarse | None:
    most_first = sorted(times, key=lambda key: (-len(times[key]), key))[:MOST_PAIRED]
    covs = {key: _cov(times[key]) for key in most_first}
    ordered = sorted((key for key in most_first if covs[key] > 0), key=lambda key: (covs[key], key))
    levels = (np.arange(GRID_POINTS) + 0.5) / GRID_POINTS
    best: tuple[float, str, str] | None = None
    for one, other in pairwise(ordered):
        if covs[other] > (1 + SAME_COV) * covs[one]:
            continue
        a, b = (np.sort(times[key] / times[key].mean()) for key in (one, other))
        at = np.unique(np.quantile(np.r_[a, b], levels))
        distance = np.abs(
            np.searchsorted(a, at, side="right") / len(a) - np.searchsorted(b, at, side="right") / len(b)
        ).max()
        if best is None or distance > best[0]:
            best = (float(distance), one, other)
    if best is None:
        return None
    _, one, other = best
    ratios = (times[one] / times[one].mean(), times[other] / times[other].mean())
    return Coarse((one, other), (covs[one], covs[other]), ratios)


# Shares of jobs that have a label both in the history and in the last part of the log.
STAYED = """
    SELECT count(*) AS n_jobs, avg((before.label = after.label)::DOUBLE) AS same_share
    FROM jobs.group_shapes AS before JOIN jobs.group_shapes AS after USING (source, kind, group_key)
    WHERE source = $source AND kind = $kind AND before.part = 'D1' AND after.part = 'D3'
        AND before.label IS NOT NULL AND after.label IS NOT NULL
"""


@dataclass(frozen=True)
class KindOfShapes:
    """The shapes of one normalisation. n_jobs: with a shape in the history and in the last part of the log;
    same_share: of those, with the same; None without any."""

    found: Characterisation
    n_jobs: int
    same_share: float | None

    @property
    def data_version(self) -> str:
        """Of the files that the shapes were made from."""
        return str(self.found.table["data_version"].iloc[0])


def fetch_shapes(connection: Connection, source: str, kind: Kind) -> KindOfShapes | None:
    """One normalisation over an open connection; None if the source has no shapes of it."""
    found = characterise.fetch_shapes(connection, source, kind)
    if found is None:
        return None
    n_jobs, same_share = connection.execute(STAYED, {"source": source, "kind": kind}).fetchone() or (0, None)
    return KindOfShapes(found, int(n_jobs), same_share)


@dataclass(frozen=True)
class JobAgainstShapes:
    """counts: (n_bins,) runs of the job in each bin. numbers: of the two shapes compared.

    log_likelihoods, posteriors: of the two; all_log_likelihoods, all_posteriors: (k,) of every shape (equation 8)."""

    group_key: str
    shapes: ShapeSet
    counts: Counts
    numbers: tuple[int, int]
    all_log_likelihoods: Floats
    all_posteriors: Floats

    @property
    def log_likelihoods(self) -> tuple[float, float]:
        """Of the runs under each of the two shapes."""
        one, other = self.numbers
        return float(self.all_log_likelihoods[one]), float(self.all_log_likelihoods[other])

    @property
    def posteriors(self) -> tuple[float, float]:
        """Of the two shapes, among all."""
        one, other = self.numbers
        return float(self.all_posteriors[one]), float(self.all_posteriors[other])

    @property
    def n_runs(self) -> int:
        """Runs of the job."""
        return int(self.counts.sum())

    @property
    def evidence(self) -> str:
        """What the figure stands for."""
        return f"n = {self.n_runs:,} run{'' if self.n_runs == 1 else 's'} of one job, {self.shapes.bins.n_bins} bins"


def compare_with_shapes(
    group_key: str,
    counts: Counts,
    shapes: ShapeSet,
    *,
    empty_bin_prior: float,
    prior: Floats | None = None,
    numbers: tuple[int, int] | None = None,
) -> JobAgainstShapes | None:
    """The job against two shapes, by default the most likely and the second; None for a job without runs.

    counts: (n_bins,); prior: (k,) of the shapes, by default all alike. Raises BadSetting for a number that is no
    shape, or only one shape."""
    k = len(shapes.n_groups)
    if k < 2:
        raise BadSetting("shapes: there is only one, and so no two to compare")
    if numbers is not None and not (len(set(numbers)) == 2 and all(0 <= number < k for number in numbers)):
        shown = " and ".join(str(number) for number in numbers)
        raise BadSetting(f"shapes {shown}: expected two different ones of the {k} shapes, from 0 to {k - 1}")
    if not np.sum(counts):
        return None
    likelihoods = log_likelihood(counts, shapes.centres, empty_bin_prior=empty_bin_prior)[0]
    posteriors = np.exp(log_posterior(counts, shapes.centres, empty_bin_prior=empty_bin_prior, prior=prior))[0]
    if numbers is None:
        best, second = np.argsort(-likelihoods, kind="stable")[:2]
        numbers = (int(best), int(second))
    return JobAgainstShapes(group_key, shapes, np.asarray(counts), numbers, likelihoods, posteriors)


MADE_WITH = "SELECT parameters, data_version FROM jobs.shapes WHERE source = $source LIMIT 1"
MEDIAN = """SELECT median_s FROM jobs.group_shapes
    WHERE source = $source AND kind = $kind AND group_key = $job AND part = 'all'"""


def are_shapes_fresh(warehouse: Warehouse, source: str, params: CharacteriseParams) -> bool:
    """Whether the source has shapes that were made of its files of now, with these parameters."""
    with reading(warehouse) as connection:
        found = connection.execute(MADE_WITH, {"source": source}).fetchone()
        if found is None:
            return False
        version = data_version(connection, "jobs", source)
    return bool(json.loads(found[0]) == params.model_dump(mode="json") and found[1] == version)


def job_against_shapes(
    warehouse: Warehouse, source: str, job: str, kind: Kind, numbers: tuple[int, int] | None = None
) -> JobAgainstShapes:
    """All finished runs of a job against two shapes of its source, by default the two most likely.

    Raises NotFound without shapes of this kind, or a job without a run that has a median; BadSetting for a number
    that is no shape. Source: Zhu et al. 2023, equations 1 to 8 and Figure 6."""
    found = _of_kind(warehouse, source, kind)
    text = fetch(warehouse, MADE_WITH, {"source": source})["parameters"].iloc[0]
    posterior = PosteriorParams.model_validate(json.loads(str(text))["posterior"])
    with reading(warehouse) as connection:
        counts = _counts(connection, source, job, found.shapes.bins)
    against = None
    if counts is not None:
        against = compare_with_shapes(
            job,
            counts,
            found.shapes,
            empty_bin_prior=posterior.empty_bin_prior,
            prior=prior_weights(posterior.prior, found.shapes.n_groups),
            numbers=numbers,
        )
    if against is None:
        raise NotFound(f"job {job!r} of source {source!r}: no finished run has a median to be compared with ({kind})")
    return against


def _of_kind(warehouse: Warehouse, source: str, kind: Kind) -> Characterisation:
    found = read_characterised(warehouse, source).get(kind)
    if found is None:
        raise NotFound(f"source {source!r} has no {kind} shapes; ask for the other normalisation")
    return found


def _counts(connection: Connection, source: str, job: str, bins: Bins) -> Counts | None:
    """Runs of the job in each bin, (n_bins,); None if the characterisation knows no run of it with a median."""
    row = connection.execute(MEDIAN, {"source": source, "kind": bins.kind, "job": job}).fetchone()
    if row is None:
        return None
    history = {} if row[0] is None else {job: float(row[0])}
    runs = fetch_runs(connection, source, group_key=job)
    medians = historic_medians(runs, history)
    index = bins.index(normalise(runs["runtime_s"], medians["median_s"], bins.kind))
    return np.bincount(index[index >= 0], minlength=bins.n_bins).astype(np.int64)


def shape_sections(found: dict[Kind, KindOfShapes], version_now: str, nothing: str) -> Iterator[Section]:
    """The shapes of each normalisation, and how they were chosen. nothing: how to make them."""
    if not found:
        yield Section("Typical distributions of runtimes", nothing=nothing)
    for kind, one in found.items():
        old = "" if one.data_version == version_now else ", not of the files of now"
        stayed = (
            f"Of n = {one.n_jobs:,} jobs with a shape both in the history and in the last part of the log, "
            f"{share(one.same_share)} have the same in both"
        )
        lines = (shape_words(kind, one.found),) + ((stayed,) if one.n_jobs else ())
        yield Section(
            f"Typical distributions of runtimes ({kind})",
            evidence=f"data version {one.data_version}{old}",
            lines=lines,
            tables=(shapes_table(one.found.table, kind),),
            figures=figures_of_shapes(kind, one.found),
        )


def shapes_result(source: str, found: dict[Kind, Characterisation], again: str) -> Result:
    """The shapes of a source that was characterised."""
    version = str(next(iter(found.values())).table["data_version"].iloc[0])
    words = "; ".join(f"{shape_words(kind, one)}" for kind, one in found.items())
    by_kind = {kind: KindOfShapes(one, 0, None) for kind, one in found.items()}
    return Result(
        f"Typical distributions of runtimes: {source}",
        f"{words}.",
        made_of=f"source {source}, data version {version}",
        again=again,
        sections=tuple(shape_sections(by_kind, version, "")),
        method=METHOD,
    )


def shapes_table(table: pd.DataFrame, kind: Kind) -> Table:
    """Table 2 of the paper: a row a shape."""
    value = number if kind == "ratio" else duration
    columns = (
        *numbers(("shape", "shape", count), ("n_groups", "jobs", count), ("n_runs", "runs", count)),
        *numbers(("outliers", "outliers", share), ("p25_p75", "25–75 % gap", value), ("p95", "95 %", value)),
        *numbers(("std", "std", value)),
    )
    return Table("", "", columns, [row | {"outliers": row["outlier_percent"] / 100} for row in records(table)])


def figures_of_shapes(kind: Kind, found: Characterisation) -> tuple[Figure, ...]:
    """Shapes, their number, the number of bins, and other clusterings, in the order of a page."""
    n_jobs, k = int(found.table["n_groups"].sum()), len(found.table)
    return (
        shapes_figure(found.shapes, found.table, kind),
        inertia_figure(found.curve, k, n_jobs, kind),
        bins_figure(found.bins, found.shapes.bins.n_bins, kind),
        rivals_figure(found.rivals, k, kind),
    )


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


def shapes_figure(shapes: ShapeSet | None, table: pd.DataFrame | None, kind: str) -> Figure:
    """Figure 5 of the paper: the shapes of one normalisation, the steadiest first."""
    title = f"Shapes ({kind})"
    if shapes is None or table is None or table.empty:
        return figure(f"shapes-{kind}", title, "", "", None, NO_SHAPES)
    words = (
        f"Each row is a shape that many jobs share: the distribution of {NORMALISED.get(kind, kind)}. They are "
        "ranked by the gap between the 25th and the 75th percentile, the steadiest first. Shares are logarithmic, so "
        "that rare slow runs are seen; orange bars hold the outliers beyond the end of the axis."
    )
    n_runs, n_jobs = int(table["n_runs"].sum()), int(table["n_groups"].sum())
    evidence = f"n = {n_runs:,} runs of {n_jobs:,} jobs in {len(table)} shapes, {shapes.bins.n_bins} bins"
    return Figure(f"shapes-{kind}", title, words, evidence, partial(_draw_shapes, shapes, table, kind))


def _draw_shapes(shapes: ShapeSet, table: pd.DataFrame, kind: str) -> charts.Chart:
    parts = [
        bin_rows(shapes.bins, pmf).assign(panel=f"shape {at} · {int(n):,} jobs")
        for at, (pmf, n) in enumerate(zip(shapes.centres, table["n_groups"], strict=True))
    ]
    tones = {"runs": charts.BLUE, "outliers": charts.ORANGE}
    shown, high = _value_axis(kind), Axis("share", "share", "log")
    return charts.histogram(pd.concat(parts), shown, high, panel="panel", series="is", colours=tones, height=46)


def inertia_figure(curve: InertiaCurve, chosen: int, n_jobs: int, kind: str) -> Figure:
    """How many shapes there are."""
    title = f"How many shapes ({kind})"
    told = (
        "The curve has no elbow."
        if curve.elbow is None
        else f"The elbow, where the curve lies deepest below its chord, is at {curve.elbow}."
    )
    words = (
        "Inertia is the sum of squared distances of the jobs' distributions from their shape: what more shapes would "
        f"still explain. {told} {chosen} were chosen."
    )
    rows = pd.DataFrame({"shapes": list(curve.ks), "inertia": list(curve.inertias)})
    draw = partial(charts.lines, rows, Axis("shapes", "number of shapes"), Axis("inertia", "inertia", "count"),
                   rules={"chosen": chosen})  # fmt: skip
    evidence = f"n = {n_jobs:,} jobs, {len(rows)} numbers of shapes"
    return figure(f"inertia-{kind}", title, words, evidence, draw if len(rows) else None, NO_SHAPES)


def bins_figure(table: pd.DataFrame, chosen: int, kind: str) -> Figure:
    """How many bins. table: n_bins, stability, log_score, n_groups."""
    words = (
        "The runs of each job are dealt into two halves at random. The agreement says how far both halves of a job "
        "get the same shape: 1 always, 0 as by chance. The log-score says how probable the runs of one half are "
        "under the shape of the other; higher is better."
    )
    nothing = "Numbers of bins were not compared: no job has enough runs to be dealt into two halves."
    rows = pd.concat(
        [
            pd.DataFrame({"bins": table["n_bins"], "value": table[key].astype(float), "measure": name})
            for key, name in (("stability", "agreement"), ("log_score", "log-score"))
        ]
    ).dropna()
    n = int(table["n_groups"].max()) if len(table) else 0
    evidence = f"n = {n:,} jobs, their runs dealt into two halves; {len(table)} numbers of bins"
    draw = partial(charts.lines, rows, Axis("bins", "number of bins", "log"), Axis("value", ""), panel="measure",
                   rules={"chosen": chosen}, height=120)  # fmt: skip
    return figure(f"bins-{kind}", f"How many bins ({kind})", words, evidence, draw if len(rows) else None, nothing)


def rivals_figure(table: pd.DataFrame, k: int, kind: str) -> Figure:
    """How lopsided other clusterings are. table: method, largest_share, n_groups."""
    words = (
        "Each method puts the same distributions into the same number of clusters. A method that puts most jobs into "
        "one cluster, and the rest into tiny ones, tells them apart no more; the dashed line is where the largest "
        "would be if all were alike."
    )
    by = table.assign(is_rival=table["method"] != OURS).sort_values(
        ["is_rival", "largest_share", "method"], kind="stable"
    )
    n = int(table["n_groups"].max()) if len(table) else 0
    draw = partial(charts.bars, by[["method", "largest_share"]],
                   Axis("largest_share", "share of the jobs in the largest cluster", "share"), "method",
                   rule=("all alike", 1 / max(k, 1)))  # fmt: skip
    title, evidence = f"Other ways to cluster ({kind})", f"n = {n:,} jobs in {k:,} clusters each"
    return figure(f"rivals-{kind}", title, words, evidence, draw if len(table) else None, NO_SHAPES)


def likelihood_figure(job: JobAgainstShapes, name: str = "likelihood") -> Figure:
    """Figure 6 of the paper: the runs of one job against two shapes."""
    one, other = job.numbers
    likely = one if job.log_likelihoods[0] >= job.log_likelihoods[1] else other
    words = (
        "Bars are the runs of one job, lines are two shapes. The log-likelihood adds up, over the runs, the "
        f"logarithm of what the shape gives to their bin; the larger is the more probable: here shape {likely}. "
        f"Posterior probabilities among all shapes: {share(job.posteriors[0])} for {one}, {share(job.posteriors[1])} "
        f"for {other}."
    )
    return Figure(name, "How a job is matched with a shape", words, job.evidence, partial(_draw_likelihood, job))


def _draw_likelihood(job: JobAgainstShapes) -> charts.Chart:
    pmf, parts = job.counts / job.counts.sum(), []
    for number_, likelihood, posterior in zip(job.numbers, job.log_likelihoods, job.posteriors, strict=True):
        centre = np.asarray(job.shapes.centres[number_])
        rows = bin_rows(job.shapes.bins, np.maximum(pmf, centre))
        rows["share"] = np.where(pmf[rows.index] > 0, pmf[rows.index], np.nan)
        rows["shape"] = np.maximum(centre[rows.index], charts.LEAST_SHARE)
        parts.append(
            rows.assign(panel=f"shape {number_}: log-likelihood {likelihood:,.1f}, posterior {share(posterior)}")
        )
    shown, high = _value_axis(job.shapes.bins.kind), Axis("share", "share of the runs", "log")
    return charts.histogram(pd.concat(parts), shown, high, panel="panel", overlay="shape", height=120)


def cov_figure(faults: CovFaults | None) -> Figure:
    """The three faults of the COV."""
    words = (
        "The coefficient of variation of a job depends on how long its runs are, jumps with a single run, where the "
        "gap between the 25th and the 75th percentile stays, and is the same for jobs whose runtimes are distributed "
        "quite differently. The job that one run moved most, and the two neighbours in COV that differ most, are shown."
    )
    nothing = "No job of this log shows a fault of the COV: there are too few runs, or they all take the same time."
    is_there = faults is not None and bool(faults.biased or faults.unstable or faults.coarse)
    evidence = faults.evidence if faults else ""
    draw = partial(_draw_faults, faults) if faults and is_there else None
    return figure("cov-faults", "Three faults of the coefficient of variation", words, evidence, draw, nothing)


def _draw_faults(faults: CovFaults) -> charts.Chart:
    parts: list[charts.Chart] = []
    if faults.biased:
        rows = pd.DataFrame({"median_s": faults.biased.median_s, "cov": faults.biased.cov})
        rows = charts.sampled(rows[(rows > 0).all(axis=1)], MOST_DOTS)
        parts.append(charts.scatter(rows, Axis("median_s", "bias: median runtime of a job", "seconds"),
                                    Axis("cov", "COV", "log"), height=180))  # fmt: skip
    if faults.unstable:
        one = faults.unstable
        runs = np.arange(FIRST, FIRST + len(one.cov))
        both = [pd.DataFrame({"runs": runs, "value": values, "measure": name})
                for name, values in (("COV", one.cov), ("25th–75th gap over the median", one.gap))]  # fmt: skip
        title = f"instability: runs so far of {one_line(one.group_key, 40)}"
        rows = pd.concat([charts.sampled(part, MOST_DOTS) for part in both])
        parts.append(
            charts.lines(
                rows,
                Axis("runs", title),
                Axis("value", ""),
                series="measure",
                rules={f"a run of {ratio(one.runtime_ratio)} × the median": one.jump_at + 1},
                height=160,
            )
        )
    if faults.coarse:
        pair = faults.coarse
        top = float(np.quantile(np.concatenate(pair.ratios), 0.995))
        edges = np.linspace(0, top, N_BINS + 1)
        rows = pd.concat(
            [
                pd.DataFrame(
                    {"low": edges[:-1], "end": edges[1:], "share": np.histogram(values, edges)[0] / len(values)}
                ).assign(job=f"{one_line(key, 50)} · COV {ratio(cov)}")
                for key, cov, values in zip(pair.keys, pair.covs, pair.ratios, strict=True)
            ]
        )
        parts.append(charts.histogram(rows, Axis("low", "coarseness: runtime over the mean of the job"),
                                      Axis("share", "share", "share"), panel="job", height=60))  # fmt: skip
    return charts.beneath(*parts)


MOST_DOTS, N_BINS = 500, 30
