"""The published estimators of task runtimes and ours on Lotaru's executions: Perona's Table III, to the last digit.

Five nf-core workflows ran on several machines, two inputs (partitions) each, both also down-sampled in halving steps.
Perona (Scheinert et al. 2022, IV-E) trains on what ran on n2 but the largest run of a partition, and tests on the
largest run of each partition on n1 and c2: 53 tasks × 2 partitions × 2 targets × 2 runs = 424 errors,
|estimate - runtime| / runtime, with percentiles at position p·(n + 1). All but the machines is Lotaru's protocol of
2022; its table says neither that the source is n2 nor that Lotaru's factor is half a ratio of disks that is 1."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.linear_model import BayesianRidge  # type: ignore[import-untyped]

from tasks.advice.estimate import (
    LEAST_SPREAD,
    MEDIAN,
    EstimateSpread,
    Floats,
    calibrate,
    extrapolate,
    fit_power,
    score_ratio,
    workflow_errors,
)
from tasks.advice.params import CPU_ONE_THREAD
from tasks.errors import BadInput, NotFound

Source = Literal["n2", "n1", "c2", "local", "asok01", "asok02"]
PUBLISHED_SOURCE, CLOUD = "n2", ("n1", "n2", "c2")  # Google Cloud's n1-, n2- and c2-standard-4
REGRESSION = "regression"
STRAIGHT_2022, STRAIGHT_HEAD = 0.8, 0.75  # correlation from which Lotaru draws a line: in 2022, and today
SAME_READS = 1e-3  # relative: a full-size run has twice the reads of a partition's run
COLUMNS = {
    "Label": "label", "Workflow": "workflow", "Task": "task", "NumberSequences": "reads",
    "TaskInputSizeUncompressed": "size", "Realtime": "runtime_ms",
}  # fmt: skip
MS = 1e-3
# what Lotaru's authors measured: linpack (flop/s), sysbench cpu of one thread (events/s), disk (MB/s)
LINPACK = {"n1": 3620426.0, "n2": 4045289.0, "c2": 4602096.0, "local": 3959800.0}
SYSBENCH = {"asok01": 223.0, "asok02": 223.0, "n1": 369.0, "n2": 467.0, "c2": 523.0, "local": 458.0}
SYSBENCH_TODAY = SYSBENCH | {"local": 437.0}  # as Lotaru-G has it
DISK = {"asok01": 303.0, "asok02": 339.0, "n1": 483.0, "n2": 483.0, "c2": 483.0, "local": 415.0}
SWAPPED = {"asok01": "asok02", "asok02": "asok01"}  # these microbenchmark files carry each other's machine inside
# critical statistics of Kolmogorov and Smirnov at 0.05 for 1, 2, … runs, which the code compares p-values with
CRITICAL = (
    0.950, 0.776, 0.636, 0.565, 0.510, 0.468, 0.436, 0.410, 0.387, 0.369, 0.352, 0.338, 0.325, 0.314, 0.304, 0.295,
    0.286, 0.279, 0.271, 0.265, 0.259, 0.253, 0.247, 0.242, 0.238,
)  # fmt: skip
CONFIDENCE = 0.9
SEED = 0


@dataclass(frozen=True)
class Case:
    """One estimate to make. sizes, runtimes_s: (n,), of a partition on the source; size, truth_s: of the target's run.

    tested: the partition of that run."""

    workflow: str
    task: str
    source: str
    target: str
    partition: int
    tested: int
    sizes: Floats
    runtimes_s: Floats
    size: float
    truth_s: float


@dataclass(frozen=True)
class Guess:
    """An estimate: runtime, what it was made by, and an interval at CONFIDENCE where a method has one of its own."""

    runtime_s: float
    branch: str
    low_s: float = np.nan
    high_s: float = np.nan
    spread: float = np.nan


Method = Callable[[Case, float], Guess]  # the case and the factor by which the target is slower


def read_executions(folder: str) -> pd.DataFrame:
    """All executions: machine, workflow, task, label (train-1, train-2, test), reads, size (bytes), runtime_s.

    folder: `execution_reports` of Lotaru, with a folder a machine. Raises BadInput if there is no report in it."""
    paths = sorted(Path(folder).glob("*/*/*.csv"))
    if not paths:
        raise BadInput(folder, "no execution report in it", "<machine>/results_<workflow>/*.csv", "check the path")
    frames = [
        pd.read_csv(path, usecols=list(COLUMNS)).rename(columns=COLUMNS).assign(machine=path.parts[-3])
        for path in paths
    ]
    rows = pd.concat(frames, ignore_index=True)
    return rows.assign(runtime_s=rows["runtime_ms"] * MS, size=rows["size"].astype(float)).drop(columns="runtime_ms")


def partitions(rows: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """The runs of a task on a machine by partition, by reads: its down-sampled runs, and the full-size run of twice as
    many reads as one of them."""
    found = {}
    full = rows[rows["label"] == "test"]
    for partition in (1, 2):
        train = rows[rows["label"] == f"train-{partition}"]
        reads = train["reads"].to_numpy(float)
        half = full["reads"].to_numpy(float)[:, None] / 2  # (n_full, 1)
        is_its = (np.abs(half - reads) / reads < SAME_READS).any(axis=1)
        found[partition] = pd.concat([train, full[is_its]]).sort_values("reads", kind="stable")
    return found


def cases(executions: pd.DataFrame, source: str, targets: Sequence[str]) -> list[Case]:
    """All estimates of Perona's protocol from one machine: of each target, task, partition of the source and run."""
    kept = executions[executions["machine"].isin({source, *targets})]
    keyed = kept.groupby(["machine", "workflow", "task"])
    each = {tuple(map(str, key)): partitions(rows) for key, rows in keyed}
    found = []
    for target in targets:
        for machine, workflow, task in sorted(each):
            if machine != source:
                continue
            here, there = each[machine, workflow, task], each[target, workflow, task]
            for partition in (1, 2):
                train = here[partition].iloc[:-1]
                x, y = train["size"].to_numpy(float), train["runtime_s"].to_numpy(float)
                for tested in (partition, 3 - partition):
                    last = there[tested].iloc[-1]
                    size, truth_s = float(last["size"]), float(last["runtime_s"])
                    found.append(Case(workflow, task, source, target, partition, tested, x, y, size, truth_s))
    return found


# ---- methods


def correlation(sizes: Floats, runtimes_s: Floats) -> float:
    """Pearson's correlation, NaN where one of them does not vary."""
    if np.ptp(sizes) == 0 or np.ptp(runtimes_s) == 0:
        return float("nan")
    return float(np.corrcoef(sizes, runtimes_s)[0, 1])


def naive(case: Case, _: float) -> Guess:
    """Mean runtime for each byte, times the bytes; the factor plays no part."""
    return Guess(float(np.mean(case.runtimes_s / case.sizes) * case.size), REGRESSION)


def online_m(case: Case, _: float) -> Guess:
    """The run of the nearest size in proportion where correlated above 0.8, else the median; no factor."""
    if not correlation(case.sizes, case.runtimes_s) > STRAIGHT_2022:
        return Guess(float(np.median(case.runtimes_s)), MEDIAN)
    nearest = int(np.argmin(np.abs(case.sizes - case.size)))
    return Guess(float(case.runtimes_s[nearest] / case.sizes[nearest] * case.size), REGRESSION)


def online_p(case: Case, factor: float) -> Guess:
    """As online_m, but in place of the median a draw from a normal or gamma distribution that seems to fit.

    As the authors' code has it: p-values are compared with critical statistics. Theirs draws without a seed; ours
    seeds by the task, so that the two runs of a partition share a draw."""
    told = online_m(case, factor)
    y = case.runtimes_s
    mean, deviation = float(np.mean(y)), float(np.std(y, ddof=1))
    if told.branch == REGRESSION or deviation == 0:
        return told
    critical = CRITICAL[min(len(y), len(CRITICAL)) - 1]
    rng = np.random.default_rng([SEED, case.partition, *f"{case.workflow} {case.task} {case.target}".encode()])
    if stats.kstest(y, stats.norm(mean, deviation).cdf).pvalue > critical:
        return Guess(float(rng.normal(mean, deviation)), MEDIAN)
    if stats.kstest(y / MS, stats.gamma(mean / MS).cdf).pvalue > critical:  # its scale is 1 ms
        return Guess(float(rng.gamma(mean / MS, mean / MS)) * MS, MEDIAN)
    return told


def lotaru(case: Case, factor: float) -> Guess:
    """Lotaru as of 2022: a line where correlated from 0.8 on, times the factor; else the median, without it."""
    return _lotaru(case, factor, STRAIGHT_2022)


def lotaru_today(case: Case, factor: float) -> Guess:
    """Lotaru as it is today (-G and -A, which differ in the factor): the line from a correlation of 0.75 on."""
    return _lotaru(case, factor, STRAIGHT_HEAD)


def _lotaru(case: Case, factor: float, straight_from: float) -> Guess:
    """Interval: of Bayesian ridge regression, as Lotaru has it; a median has the deviation of its runs."""
    z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
    x, y = case.sizes, case.runtimes_s
    if not correlation(x, y) >= straight_from:
        middle, off = float(np.median(y)), z * float(np.std(y, ddof=1))
        return Guess(middle, MEDIAN, middle - off, middle + off)
    middle, _ = fit_power(x, y, case.size, 1.0)
    ridge = BayesianRidge().fit(x[:, None] / case.size, y)
    off = z * float(ridge.predict(np.array([[1.0]]), return_std=True)[1][0])
    return Guess(middle * factor, REGRESSION, (middle - off) * factor, (middle + off) * factor)


def line_always(case: Case, factor: float) -> Guess:
    """The plain baseline: least squares whatever the correlation, times the factor."""
    if np.ptp(case.sizes) == 0:
        return Guess(float(np.median(case.runtimes_s)) * factor, MEDIAN)
    middle, _ = fit_power(case.sizes, case.runtimes_s, case.size, 1.0)
    return Guess(max(middle, 0.0) * factor, REGRESSION)


def ours(case: Case, factor: float) -> Guess:
    """`estimate.extrapolate`, times the factor."""
    told = extrapolate(case.sizes, case.runtimes_s, case.size)
    return Guess(told.runtime_s * factor, told.shape, spread=told.spread + LEAST_SPREAD)


# ---- factors: how much slower the target is, by (target, workflow, task)

Factors = Callable[[Case], float]


def published_factor(case: Case) -> float:
    """Perona's row of Lotaru: half the mean ratio of linpack and sysbench, half that of disks."""
    ratios = [
        each[case.source] / each[case.target] for each in (LINPACK, SYSBENCH) if {case.source, case.target} <= set(each)
    ]
    return 0.5 * float(np.mean(ratios)) + 0.5 * DISK[case.source] / DISK[case.target]


def general_factor(case: Case) -> float:
    """Lotaru-G: half the ratio of sysbench, half that of disks."""
    return 0.5 * SYSBENCH_TODAY[case.source] / SYSBENCH_TODAY[case.target] + 0.5 * DISK[case.source] / DISK[case.target]


def sysbench_factor(case: Case) -> float:
    """The ratio of what Lotaru's authors measured with sysbench, one thread."""
    return SYSBENCH[case.source] / SYSBENCH[case.target]


def score_factor(scores: pd.DataFrame, names: Mapping[str, str], aspect: str = CPU_ONE_THREAD) -> Factors:
    """The ratio of scores (machine_type, aspect, score). names: machine types by the machines of the reports."""
    found: dict[tuple[str, str], float] = {}

    def factor(case: Case) -> float:
        pair = (case.source, case.target)
        if pair not in found:
            found[pair] = score_ratio(scores, names.get(pair[0], pair[0]), names.get(pair[1], pair[1]), aspect)
        return found[pair]

    return factor


def task_factors(folder: str) -> Factors:
    """Lotaru-A: of each task the ratio of its own microbenchmark, the medians of three runs on both machines; where
    that says nothing (exactly 1) the median of the workflow's others. folder: `benchmarks` of Lotaru."""
    found: dict[str, pd.Series] = {}

    def of(machine: str) -> pd.Series:
        if machine not in found:
            path = Path(folder) / f"bio-bench-{SWAPPED.get(machine, machine)}.csv"
            rows = pd.read_csv(path)
            index = pd.MultiIndex.from_arrays([rows["Workflow"].str.lower(), rows["Task"]])
            each = rows[["Realtime1", "Realtime2", "Realtime3"]].median(axis=1).to_numpy(float)
            found[machine] = pd.Series(each, index=index)
        return found[machine]

    def factor(case: Case) -> float:
        ratios = of(case.target) / of(case.source)
        own = float(ratios[case.workflow, case.task])
        others = ratios[case.workflow]
        return own if own != 1 else float(others[others != 1].median())

    return factor


# ---- errors and the table


def errors_of(found: Sequence[Case], method: Method, factors: Factors) -> pd.DataFrame:
    """One row a case: workflow, task, target, case (target and partitions), branch, runtime_s, low_s, high_s, spread,
    truth_s, error (relative)."""
    guesses = [method(case, factors(case)) for case in found]
    rows = pd.DataFrame(
        {
            "workflow": [case.workflow for case in found],
            "task": [case.task for case in found],
            "target": [case.target for case in found],
            "case": [f"{case.source} {case.target} {case.partition} {case.tested}" for case in found],
            "branch": [guess.branch for guess in guesses],
            "runtime_s": [guess.runtime_s for guess in guesses],
            "low_s": [guess.low_s for guess in guesses],
            "high_s": [guess.high_s for guess in guesses],
            "spread": [guess.spread for guess in guesses],
            "truth_s": [case.truth_s for case in found],
        }
    )
    return rows.assign(error=(rows["runtime_s"] - rows["truth_s"]).abs() / rows["truth_s"])


def percentile(errors: pd.Series, q: float) -> float:
    """As Lotaru's code has it (commons-math): at position q·(n + 1)/100, between neighbours by proportion."""
    return float(np.percentile(errors.to_numpy(float), q, method="weibull"))


def with_intervals(errors: pd.DataFrame, confidence: float = CONFIDENCE) -> pd.DataFrame:
    """The same with low_s and high_s, each workflow calibrated on all others. errors: with spreads."""
    parts = []
    for workflow, own in errors.groupby("workflow"):
        known = calibrate(errors[errors["workflow"] != workflow], confidence, "the other workflows")
        factor = np.exp(known.task * own["spread"])
        parts.append(own.assign(low_s=own["runtime_s"] / factor, high_s=own["runtime_s"] * factor))
    return pd.concat(parts).sort_index()


def whole_workflows(errors: pd.DataFrame, confidence: float = CONFIDENCE) -> pd.DataFrame:
    """One row a workflow and case: runtime_s, truth_s, low_s, high_s, calibrated on the other workflows."""
    sums = workflow_errors(errors)
    parts = []
    for workflow, own in sums.groupby("workflow"):
        known = calibrate(errors[errors["workflow"] != workflow], confidence, "the other workflows")
        factor = np.exp(known.workflow * own["spread"])
        parts.append(own.assign(low_s=own["runtime_s"] / factor, high_s=own["runtime_s"] * factor))
    return pd.concat(parts).sort_index()


def coverage(rows: pd.DataFrame) -> tuple[float, float]:
    """Share of intervals that hold the truth, and the median of their widths over the estimate."""
    holds = (rows["truth_s"] >= rows["low_s"]) & (rows["truth_s"] <= rows["high_s"])
    return float(holds.mean()), float(((rows["high_s"] - rows["low_s"]) / rows["runtime_s"]).median())


def methods(folder: str, scores: Mapping[str, Factors]) -> dict[str, tuple[Method, Factors]]:
    """Every row of the table: method and factors. scores: further sources of scores, by what to call them."""
    rows: dict[str, tuple[Method, Factors]] = {
        "naive": (naive, published_factor),
        "online-m": (online_m, published_factor),
        "online-p": (online_p, published_factor),
        "lotaru": (lotaru, published_factor),
        "lotaru-g": (lotaru_today, general_factor),
        "lotaru-a": (lotaru_today, task_factors(str(Path(folder) / "benchmarks"))),
    }
    for name, factors in {"sysbench": sysbench_factor, **scores}.items():
        rows |= {f"{kind}, {name}": (method, factors) for kind, method in KINDS.items()}
    return rows


KINDS: Mapping[str, Method] = {"lotaru": lotaru, "line": line_always, "ours": ours}


def table(folder: str, scores: Mapping[str, Factors], sources: Sequence[str] = CLOUD) -> pd.DataFrame:
    """Every method and source: source, method, n, median, p90, p95 of the relative error, median_line and
    median_median (by branch, of what Lotaru calls so: the rows that its correlation sends there), coverage and width
    of its 90 % intervals, workflow_error, workflow_coverage and workflow_width of whole workflows (where calibrated).

    folder: of the data set, with execution_reports and benchmarks. Targets are the machines of CLOUD but the source.
    Methods whose scores do not know the source are left out."""
    executions = read_executions(str(Path(folder) / "execution_reports"))
    rows = []
    for source in sources:
        found = cases(executions, source, [name for name in CLOUD if name != source])
        is_straight = np.array([correlation(case.sizes, case.runtimes_s) >= STRAIGHT_2022 for case in found])
        for name, (method, factors) in methods(folder, scores).items():
            try:
                errors = errors_of(found, method, factors)
            except NotFound:
                continue
            rows.append({"source": source, "method": name, **_figures(errors, is_straight)})
    return pd.DataFrame(rows)


def _figures(errors: pd.DataFrame, is_straight: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> dict[str, float]:
    told: dict[str, float] = {"n": len(errors)}
    told |= {name: percentile(errors["error"], q) for name, q in (("median", 50), ("p90", 90), ("p95", 95))}
    told |= {
        "median_line": percentile(errors["error"][is_straight], 50),
        "median_median": percentile(errors["error"][~is_straight], 50),
    }
    if errors["spread"].notna().all():
        errors = with_intervals(errors)
        whole = whole_workflows(errors)
        told["workflow_error"] = float(((whole["runtime_s"] - whole["truth_s"]).abs() / whole["truth_s"]).median())
        told["workflow_coverage"], told["workflow_width"] = coverage(whole)
    if errors["low_s"].notna().all():
        told["coverage"], told["width"] = coverage(errors)
    return told


def multiples(errors: pd.DataFrame, confidences: Sequence[float]) -> list[EstimateSpread]:
    """Calibrations on all of some errors: what `estimate.LOTARU_MULTIPLES` was read off."""
    return [calibrate(errors, confidence, "the published workflows") for confidence in confidences]


def main(datasets: str) -> None:
    """Print the table for every machine with traces: `python -m tests.studies.lotaru FOLDER`.

    FOLDER has lotaru/ and sparecores/. Scores: whorl's of one thread from SpareCores' raw results, SpareCores' own of
    stress-ng, Lotaru's of sysbench."""
    from tasks.nodes.answers import thread_scores_of
    from tasks.nodes.history import read_results
    from tasks.nodes.params import ReadParams

    types = {name: f"{name}-standard-4" for name in CLOUD}
    rows = pd.read_csv(Path(datasets) / "sparecores" / "summary_scores.csv")
    rows = rows[rows["vendor"] == "gcp"].rename(columns={"instance": "machine_type", "stressng_1": "score"})
    recorded = read_results([str(Path(datasets) / "sparecores" / "gcp")], ReadParams()).history
    scores = {
        "whorl": score_factor(thread_scores_of(recorded), types),
        "stress-ng": score_factor(rows.assign(aspect=CPU_ONE_THREAD), types),
    }
    found = table(str(Path(datasets) / "lotaru"), scores, get_args(Source))
    print(found.to_string(index=False, float_format="{:.4f}".format, na_rep="–"))


if __name__ == "__main__":
    main(sys.argv[1])
