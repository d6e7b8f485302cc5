"""Runtimes of tasks on a machine where they have not run: from their runs on one machine, and scores of both.

    runtime on the target = runtime on the source, at the size that is asked for  ×  score(source) / score(target)

On the source a task is taken to need a + b·size^c: c = 1 (a line, as in Lotaru: Bader et al. 2022) or c = 1/2 (it
levels off), whichever says the task's largest runs better from its smaller ones. A task whose runs have one size alone
needs their median. Unlike Lotaru, a task whose runs lie far from a line gets its line all the same, and a wider
interval: a median says nothing of a larger input, and is of the source whatever the target.

Intervals are split-conformal (Lei et al. 2018, section 5.2, with a spread of each task): errors that were made on other
workflows, as multiples of each task's own spread, say how far a new one may lie off."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.advice.machines import Floats
from tasks.advice.params import CPU_ONE_THREAD, EstimateParams
from tasks.errors import BadInput, BadSetting, NotFound, quoted

LINE, LEVELLING, MEDIAN = "line", "levelling off", "median"
POWERS = {LINE: 1.0, LEVELLING: 0.5}
N_TRIED = 3  # of a task's largest runs are predicted from the smaller ones
LEAST_BEFORE = 3  # so many smaller runs tell a line's error: two lie on every line
LEAST_RUNS = 2
LEAST_SPREAD = 0.1  # of every estimate, however well its runs lie on a line: machines differ by task
TINY = 1e-3  # of the shortest runtime: what an estimate below zero counts as where errors are compared
LEAST_ERRORS = 20  # of other workflows' runs on the target, to calibrate on them in place of what was published


@dataclass(frozen=True)
class Extrapolation:
    """What a task's runs on one machine say of a size. spread: of the logarithm of the runtime. n_runs: behind it."""

    runtime_s: float
    spread: float
    shape: str
    n_runs: int


@dataclass(frozen=True)
class EstimateSpread:
    """How far estimates lie off: |log(runtime / estimate)| of a share `confidence` of them is at most so many spreads.

    task, workflow: multiples, of the spread of a task, and of the mean spread of the tasks of a workflow, weighted by
    their runtimes. rests_on: in words."""

    confidence: float
    task: float
    workflow: float
    rests_on: str


@dataclass(frozen=True)
class Estimate:
    """tasks: workflow, task, size, runtime_s, low_s, high_s, shape, n_runs, n_target_runs; workflows: workflow,
    runtime_s (all its tasks one after the other, one run of each), low_s, high_s, n_tasks.

    score_ratio: what runtimes of the source were multiplied with."""

    source: str
    target: str
    score_ratio: float
    aspect: str
    calibration: EstimateSpread
    tasks: pd.DataFrame
    workflows: pd.DataFrame

    @property
    def rests_on(self) -> str:
        """One sentence: what the estimates rest on."""
        n_runs = int(self.tasks["n_runs"].sum())
        return (
            f"{n_runs} runs of {len(self.tasks)} tasks on {self.source}, times {self.score_ratio:.3f}: the score "
            f"{self.aspect} of {self.source} over that of {self.target}; intervals from {self.calibration.rests_on}"
        )


def fit_power(sizes: Floats, runtimes_s: Floats, size: float, power: float) -> tuple[float, float]:
    """Least squares of runtime on size^power: the runtime at a size, and the standard deviation of a new run there.

    sizes: (n,), two different ones at least. The deviation is NaN for two runs."""
    x, at = sizes**power, size**power
    centred = x - x.mean()
    slope = float(centred @ runtimes_s) / float(centred @ centred)
    residuals = runtimes_s - runtimes_s.mean() - slope * centred
    leverage = 1 + 1 / len(x) + (at - x.mean()) ** 2 / float(centred @ centred)
    variance = float(residuals @ residuals) / (len(x) - 2) if len(x) > 2 else np.nan
    return float(runtimes_s.mean() + slope * (at - x.mean())), float(np.sqrt(variance * leverage))


def backtest(sizes: Floats, runtimes_s: Floats, power: float) -> float:
    """Mean |log(prediction / runtime)| of the largest runs, each from all smaller ones; NaN with too few runs.

    sizes: (n,), rising."""
    tiny = TINY * float(runtimes_s.min())
    errors = []
    for k in range(max(len(sizes) - N_TRIED, 0), len(sizes)):
        n_smaller = int(np.searchsorted(sizes, sizes[k]))
        if n_smaller >= LEAST_BEFORE and sizes[n_smaller - 1] > sizes[0]:
            predicted, _ = fit_power(sizes[:n_smaller], runtimes_s[:n_smaller], float(sizes[k]), power)
            errors.append(abs(np.log(max(predicted, tiny) / runtimes_s[k])))
    return float(np.mean(errors)) if errors else np.nan


def extrapolate(sizes: Floats, runtimes_s: Floats, size: float) -> Extrapolation:
    """The runtime of a task at a size on the machine on which it ran, with its spread.

    sizes, runtimes_s: (n,) > 0, two at least, of any order. The shape with the smaller error on the largest runs, the
    line where none can be told; the median where sizes do not differ, or where the shape falls to 0 or less at that
    size."""
    order = np.argsort(sizes, kind="stable")
    x, y = sizes[order], runtimes_s[order]
    level = Extrapolation(float(np.median(y)), float(np.std(np.log(y), ddof=1)), MEDIAN, len(x))
    if x[-1] == x[0]:
        return level
    errors = {shape: backtest(x, y, power) for shape, power in POWERS.items()}
    shape = min(errors, key=lambda name: (np.nan_to_num(errors[name], nan=np.inf), list(POWERS).index(name)))
    predicted, deviation = fit_power(x, y, size, POWERS[shape])
    if predicted <= 0:
        return level
    noise = level.spread / len(x) if np.isnan(deviation) else deviation / predicted
    if np.isnan(errors[shape]):  # nothing says how well it is continued: as well as the shapes agree
        other, _ = fit_power(x, y, size, POWERS[LEVELLING])
        apart = abs(float(np.log(predicted / max(other, TINY * float(y.min())))))
        return Extrapolation(predicted, noise + apart, shape, len(x))
    return Extrapolation(predicted, noise + errors[shape], shape, len(x))


def score_ratio(scores: pd.DataFrame, source: str, target: str, aspect: str = CPU_ONE_THREAD) -> float:
    """Score of the source over that of the target: what its runtimes are multiplied with.

    scores: machine_type, aspect, score > 0; several rows of a machine count by their geometric mean.
    Raises NotFound for a machine without a score of that aspect, with those that have one."""
    rows = scores[scores["aspect"] == aspect]
    log_scores = np.log(rows["score"]).groupby(rows["machine_type"]).mean()
    for machine in (source, target):
        if machine not in log_scores.index:
            known = quoted(sorted(log_scores.index)) or "none"
            raise NotFound(f"machine {machine!r} has no score of {aspect!r}; known: {known}; add it with --scores")
    return float(np.exp(log_scores[source] - log_scores[target]))


def estimate(
    runs: pd.DataFrame,
    scores: pd.DataFrame,
    source: str,
    target: str,
    params: EstimateParams,
    *,
    size_ratio: float = 1.0,
) -> Estimate:
    """The runtime of each task and of whole workflows on a target, from their runs on a source.

    runs: workflow, task, machine, size (> 0), runtime_s (> 0), finished ones. The size that is asked for is each task's
    largest on the source, times size_ratio. Intervals are calibrated on other tasks' runs on both machines where there
    are at least LEAST_ERRORS, else on the workflows of Lotaru. Raises NotFound for a machine without runs or score,
    BadInput for a task with fewer than two finished runs, BadSetting for a size ratio that is not above 0."""
    if not size_ratio > 0:
        raise BadSetting(f"size ratio {size_ratio:g}: expected a number above 0")
    here = runs[runs["machine"] == source]
    if here.empty:
        known = quoted(sorted(runs["machine"].unique())) or "none"
        raise NotFound(f"no run on machine {source!r}; the traces have runs on {known}; name one of them with --from")
    n_there = runs[runs["machine"] == target].groupby(["workflow", "task"]).size()
    rows = []
    for (workflow, task), of_task in here.groupby(["workflow", "task"]):
        if len(of_task) < LEAST_RUNS:
            problem = f"task {quoted(str(task))} of {quoted(str(workflow))} has {len(of_task)} finished run on {source}"
            raise BadInput("traces", problem, f"at least {LEAST_RUNS}", "run it once more, also on a smaller input")
        size = float(of_task["size"].max()) * size_ratio
        said = extrapolate(of_task["size"].to_numpy(float), of_task["runtime_s"].to_numpy(float), size)
        spread, n_target_runs = said.spread + LEAST_SPREAD, int(n_there.get((workflow, task), 0))
        rows.append((workflow, task, size, said.runtime_s, spread, said.shape, said.n_runs, n_target_runs))
    ratio = score_ratio(scores, source, target, params.aspect)
    columns = ["workflow", "task", "size", "runtime_s", "spread", "shape", "n_runs", "n_target_runs"]
    tasks = pd.DataFrame(rows, columns=columns)
    tasks["runtime_s"] *= ratio
    spreads = _calibrated(runs, source, target, ratio, params.confidence)
    tasks = _with_interval(tasks, spreads.task)
    workflows = _with_interval(workflow_errors(tasks.assign(case="", truth_s=np.nan)), spreads.workflow)
    workflows = workflows.assign(n_tasks=tasks.groupby("workflow").size().to_numpy())
    shown = ["workflow", "runtime_s", "low_s", "high_s", "n_tasks"]
    return Estimate(source, target, ratio, params.aspect, spreads, tasks, workflows[shown])


def _with_interval(rows: pd.DataFrame, multiple: float) -> pd.DataFrame:
    """With low_s and high_s, so many spreads around runtime_s."""
    factor = np.exp(multiple * rows["spread"])
    return rows.assign(low_s=rows["runtime_s"] / factor, high_s=rows["runtime_s"] * factor)


# ---- calibration


def conformal_quantile(values: Floats, confidence: float) -> float:
    """The value that a new one does not exceed with the stated probability: the ⌈(n + 1)·confidence⌉-th smallest.

    values: (n,), exchangeable with the new one. Infinite where n is too small for that (Lei et al. 2018, 2.2)."""
    rank = int(np.ceil((len(values) + 1) * confidence))
    return float(np.sort(values)[rank - 1]) if rank <= len(values) else float("inf")


def calibrate(errors: pd.DataFrame, confidence: float, rests_on: str) -> EstimateSpread:
    """A calibration from estimates whose truth is known.

    errors: workflow, runtime_s, spread (with LEAST_SPREAD), truth_s, and `case`: rows of one workflow and case are
    added up for whole workflows (machine and input)."""
    off = np.abs(np.log(errors["truth_s"] / errors["runtime_s"])) / errors["spread"]
    sums = workflow_errors(errors)
    workflow = np.abs(np.log(sums["truth_s"] / sums["runtime_s"])) / sums["spread"]
    task, whole = (conformal_quantile(each.to_numpy(float), confidence) for each in (off, workflow))
    return EstimateSpread(confidence, task, whole, rests_on)


def workflow_errors(errors: pd.DataFrame) -> pd.DataFrame:
    """One row a workflow and case: runtime_s and truth_s added up, and their spread. errors: see calibrate."""
    weighted = errors.assign(spread=errors["spread"] * errors["runtime_s"])
    sums = weighted.groupby(["workflow", "case"], as_index=False)[["runtime_s", "truth_s", "spread"]].sum()
    return sums.assign(spread=sums["spread"] / sums["runtime_s"])


def lotaru_calibration(confidence: float) -> EstimateSpread:
    """Calibration on the workflows of Lotaru: multiples at some confidences, by linear interpolation between them.

    From 1,272 estimates of 53 tasks between n1, n2 and c2 of Google Cloud (`tests.studies.lotaru`, a test works them
    out again)."""
    at, of_task, of_workflow = zip(*LOTARU_MULTIPLES, strict=True)
    task, workflow = float(np.interp(confidence, at, of_task)), float(np.interp(confidence, at, of_workflow))
    return EstimateSpread(confidence, task, workflow, "five published workflows between three machines (Lotaru)")


# confidence, multiple of a task's spread, of a workflow's
LOTARU_MULTIPLES = (
    (0.5, 0.4597, 0.4096),
    (0.8, 1.1501, 0.8413),
    (0.9, 1.8644, 1.0825),
    (0.95, 2.8236, 1.2728),
    (0.99, 10.1656, 1.6822),
)


def errors_between(runs: pd.DataFrame, source: str, target: str, ratio: float) -> pd.DataFrame:
    """Estimates of the largest run on the target of each task that ran on both machines, with what it took.

    Columns as calibrate needs them; tasks with fewer than two runs on the source are left out."""
    rows = []
    for (workflow, task), task_runs in runs.groupby(["workflow", "task"]):
        here, there = task_runs[task_runs["machine"] == source], task_runs[task_runs["machine"] == target]
        if len(here) < LEAST_RUNS or there.empty:
            continue
        last = there.sort_values("size", kind="stable").iloc[-1]
        extrapolation = extrapolate(
            here["size"].to_numpy(float), here["runtime_s"].to_numpy(float), float(last["size"])
        )
        spread = extrapolation.spread + LEAST_SPREAD
        rows.append((workflow, task, target, extrapolation.runtime_s * ratio, spread, float(last["runtime_s"])))
    return pd.DataFrame(rows, columns=["workflow", "task", "case", "runtime_s", "spread", "truth_s"])


def _calibrated(runs: pd.DataFrame, source: str, target: str, ratio: float, confidence: float) -> EstimateSpread:
    """On what ran on both machines if that is enough; of whole workflows never fewer than what was published says."""
    published = lotaru_calibration(confidence)
    errors = errors_between(runs, source, target, ratio)
    if len(errors) < LEAST_ERRORS:
        return published
    on_these = calibrate(errors, confidence, f"{len(errors)} tasks that ran on both")
    return replace(on_these, workflow=max(published.workflow, float(np.nan_to_num(on_these.workflow, posinf=0.0))))
