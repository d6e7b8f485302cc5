"""How long a recurring job takes on a machine type on which it has not run, by its stages, with load taken apart.

A vertex does its work, measured in CPU seconds for each token that it holds, and takes longer than that by a slowdown:

    duration = work × slowdown          work = cpu_s / tokens,   a token being a stated share of a machine's cores

Work moves with a job. The slowdown belongs to the machine type: how much of a core its tokens are worth, and the load
of everybody else there. So a history on one type is taken apart, and put together again with the slowdowns that other
jobs had on the target with about as much work (short vertices are hit otherwise than long ones). What is a stage's own
is taken along: a share of how far it lies from other jobs' slowdowns on the source. How large that share is, and how
much work and tokens differ between the two types, is learned from the stages of other jobs that ran on both.

A ratio of speeds cannot do that: durations followed speed with an exponent of 1.4 where types also differed in load, of
1.03 where they were quiet (data/recorded/jobs)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from tasks.advice.machines import Floats
from tasks.advice.params import EstimateParams
from tasks.errors import BadInput, NotFound, quoted

LEAST_POOL = 200  # vertices of other jobs on a machine type that its slowdowns are told from
N_BINS = 10  # of work, alike in vertices, at most; each with LEAST_POOL of them at least
N_QUANTILES = 20  # of the slowdowns, for each vertex of a history
LEAST_SOURCE, LEAST_TRUTH = 10, 5  # vertices of a stage that calibration rests on, before and after
LEAST_STAGES = 20
LEAST_RUNS = 10  # of a job, from which it is answered
LEVEL_KEPT = 0.5  # of a learned level: it is in part load that was so at the time; chosen on D1 and D2 of the recording
LARGEST_SHARE = 2.0  # of a stage's deviation that is taken along: where types differ in load, more than all of it


@dataclass(frozen=True)
class Slowdowns:
    """What other jobs' vertices had on a machine type: quantiles of the log slowdown, by log work.

    edges: (n_bins - 1,) of log work. quantiles: (n_bins, N_QUANTILES), rising. n: vertices behind them."""

    edges: Floats
    quantiles: Floats
    n: int

    def at(self, log_work: Floats) -> Floats:
        """The quantiles for each vertex: (n, N_QUANTILES)."""
        return np.asarray(self.quantiles[np.searchsorted(self.edges, log_work)])


@dataclass(frozen=True)
class Widening:
    """How much wider than its plain quantiles an interval has to be, and how far medians lie off, as logarithms.

    n_stages: of other jobs, behind it."""

    interval: float
    median: float
    n_stages: int


@dataclass(frozen=True)
class TransferredRuns:
    """A job's runtimes on the target: draws (n,) in seconds, every one as likely as the others.

    low_s, high_s: interval of one run; stages: stage, n_runs, median_s, low_s, high_s. late_ratio(d) for a deadline."""

    job: str
    source: str
    target: str
    draws: Floats
    low_s: float
    high_s: float
    widening: Widening
    stages: pd.DataFrame
    rests_on: str

    def late_ratio(self, deadline_s: float) -> tuple[float, float, float]:
        """Chance that a run takes longer than a deadline, and its interval, from how far medians lay off elsewhere."""
        shift = np.exp(self.widening.median)
        return tuple(float((self.draws * by > deadline_s).mean()) for by in (1.0, 1 / shift, shift))  # type: ignore[return-value]


def with_slowdowns(vertices: pd.DataFrame) -> pd.DataFrame:
    """The vertices whose CPU time and tokens are known, with log_work and log_slowdown, by submission."""
    known = vertices[(vertices["cpu_s"] > 0) & (vertices["tokens"] > 0)]
    log_work = np.log(known["cpu_s"] / known["tokens"])
    slowdowns = known.assign(log_work=log_work, log_slowdown=np.log(known["duration_s"]) - log_work)
    return slowdowns.sort_values("submitted_at", kind="stable", ignore_index=True)


class Pool:
    """The vertices on one machine type (with_slowdowns), from which slowdowns without each of the jobs are told.

    Bins of work are those of all vertices; within a bin vertices stand by slowdown, so that leaving out a job is a
    mask."""

    def __init__(self, vertices: pd.DataFrame) -> None:
        log_work = vertices["log_work"].to_numpy(float)
        n_bins = max(1, min(N_BINS, len(vertices) // LEAST_POOL))
        self.edges = np.quantile(log_work, np.arange(1, n_bins) / n_bins) if len(vertices) else np.empty(0)
        bins, log_slowdown = np.searchsorted(self.edges, log_work), vertices["log_slowdown"].to_numpy(float)
        order = np.lexsort((log_slowdown, bins))
        codes, self.jobs = pd.factorize(vertices["job"])
        self.bins, self.log_slowdown, self.codes = bins[order], log_slowdown[order], codes[order]

    def without(self, job: str) -> Slowdowns:
        """The slowdowns of all other jobs. Raises BadInput for fewer than LEAST_POOL vertices."""
        code = self.jobs.get_loc(job) if job in self.jobs else -1
        is_other = self.codes != code
        bins, values = self.bins[is_other], self.log_slowdown[is_other]
        if len(values) < LEAST_POOL:
            problem = f"{len(values)} vertices of other jobs with CPU seconds and tokens on one of the machine types"
            fix = "give a longer history, or another machine type"
            raise BadInput("history", problem, f"at least {LEAST_POOL}", fix)
        at = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
        ends = np.searchsorted(bins, np.arange(len(self.edges) + 2))
        parts = [values[first:last] for first, last in pairwise(ends)]
        by_bin = [np.interp(at * (len(part) - 1), np.arange(len(part)), part) if len(part) else None for part in parts]
        usual = np.quantile(values, at)  # of a bin that held this job alone
        return Slowdowns(self.edges, np.stack([usual if part is None else part for part in by_bin]), len(values))


class Pools:
    """Slowdowns of all jobs but one on two machine types, made once for each job."""

    def __init__(self, history: pd.DataFrame, source: str, target: str) -> None:
        self.source, self.target = source, target
        self.here, self.there = (Pool(history[history["machine_type"] == name]) for name in (source, target))
        self.known: dict[str, tuple[Slowdowns, Slowdowns]] = {}

    def without(self, job: str) -> tuple[Slowdowns, Slowdowns]:
        """Slowdowns of the other jobs on source and target. Raises as Pool.without."""
        if job not in self.known:
            self.known[job] = (self.here.without(job), self.there.without(job))
        return self.known[job]


@dataclass(frozen=True)
class Habit:
    """What stages on the target lie above other jobs' slowdowns there, as a logarithm: level + share · deviation.

    deviation: how far the stage lies from other jobs' slowdowns on the source."""

    level: float
    share: float


NO_HABIT = Habit(0.0, 0.0)


def own_deviation(stage: pd.DataFrame, here: Slowdowns) -> float:
    """How far the slowdowns of a stage lie from those of other jobs on its machine type: median log ratio."""
    usual = np.median(here.at(stage["log_work"].to_numpy(float)), axis=1)
    return float(np.median(stage["log_slowdown"].to_numpy(float) - usual))


def transfer_stage(stage: pd.DataFrame, here: Slowdowns, there: Slowdowns, habit: Habit) -> Floats:
    """Durations of a stage's vertices on the target, in seconds: (n_vertices, N_QUANTILES), rising in each row.

    stage: its vertices on the source (with_slowdowns). here, there: slowdowns of other jobs on source and target."""
    log_work = stage["log_work"].to_numpy(float)
    shift = habit.level + habit.share * own_deviation(stage, here)
    return np.asarray(np.exp(log_work[:, None] + there.at(log_work) + shift))


def _on_both(
    earlier: pd.DataFrame, later: pd.DataFrame, pools: Pools
) -> Iterator[tuple[str, str, pd.DataFrame, pd.DataFrame]]:
    """The stages with enough earlier vertices on the source and later ones on the target: job, stage, both."""
    truths = dict(list(later[later["machine_type"] == pools.target].groupby(["job", "stage"])))
    for (job, stage), here in earlier[earlier["machine_type"] == pools.source].groupby(["job", "stage"]):
        truth = truths.get((job, stage))
        if truth is not None and len(here) >= LEAST_SOURCE and len(truth) >= LEAST_TRUTH:
            yield str(job), str(stage), here, truth


def stages_on_both(history: pd.DataFrame, pools: Pools) -> pd.DataFrame:
    """The stages that ran on source and target, one row each: job, stage, deviation on the source, residual on the
    target (log of its median over what work and other jobs' slowdowns say), and weight (harmonic, of the vertices)."""
    rows = []
    for job, name, stage, truth in _on_both(history, history, pools):
        here, there = pools.without(job)
        estimate_s = np.median(transfer_stage(stage, here, there, NO_HABIT))
        residual = float(np.log(truth["duration_s"].median() / estimate_s))
        weight = len(stage) * len(truth) / (len(stage) + len(truth))
        rows.append((job, name, own_deviation(stage, here), residual, weight))
    return pd.DataFrame(rows, columns=["job", "stage", "deviation", "residual", "weight"])


def habit_without(stages: pd.DataFrame, job: str) -> Habit:
    """The habit of the stages of all other jobs, by weighted least squares; none with fewer than LEAST_STAGES."""
    others = stages[stages["job"] != job]
    if len(others) < LEAST_STAGES:
        return NO_HABIT
    x, y, weight = (others[name].to_numpy(float) for name in ("deviation", "residual", "weight"))
    centred = x - np.average(x, weights=weight)
    spread = float(weight @ centred**2)
    share = float(np.clip(weight @ (centred * y) / spread, 0.0, LARGEST_SHARE)) if spread > 0 else 0.0
    level = LEVEL_KEPT * float(np.average(y - share * x, weights=weight))
    return Habit(level, share)


# ---- intervals that other jobs calibrate


def stage_interval(draws: Floats, confidence: float, widening: float = 0.0) -> tuple[float, float]:
    """The middle of some draws that holds a share `confidence`, wider by a factor exp(widening) on both sides."""
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low * np.exp(-widening)), float(high * np.exp(widening))


def calibration_scores(history: pd.DataFrame, source: str, target: str, confidence: float) -> pd.DataFrame:
    """How far durations of later vertices on the target lay outside of intervals from earlier ones on the source.

    history: with_slowdowns. One row a vertex: job, stage, score (log; negative inside), weight (of all vertices of a
    stage together 1), median (log ratio of truth to estimate, the same for all of a stage). The earlier half in time
    stands for the history, so that load that changes with time is in the scores."""
    middle = history["submitted_at"].quantile(0.5)
    earlier, later = history[history["submitted_at"] <= middle], history[history["submitted_at"] > middle]
    rows, pools = [], Pools(earlier, source, target)
    stages = stages_on_both(earlier, pools)
    for job, name, stage, truth in _on_both(earlier, later, pools):
        draws = transfer_stage(stage, *pools.without(job), habit_without(stages, job)).ravel()
        low, high = np.log(stage_interval(draws, confidence))
        log_truth = np.log(truth["duration_s"].to_numpy(float))
        off = float(np.median(log_truth) - np.log(np.median(draws)))
        score = np.maximum(low - log_truth, log_truth - high)
        rows.append((job, name, score, np.full(len(score), 1 / len(score)), off))
    columns = ["job", "stage", "score", "weight", "median"]
    return pd.DataFrame(rows, columns=columns).explode(["score", "weight"], ignore_index=True)


def widening_without(scores: pd.DataFrame, job: str, confidence: float) -> Widening:
    """The widening that other jobs' stages ask for; a stage counts once, however many vertices it has.

    Conformalised quantiles (Romano, Patterson and Candès 2019) with groups. Raises BadInput with fewer than
    LEAST_STAGES stages of other jobs that ran on both machine types."""
    others = scores[scores["job"] != job].astype({"score": float, "weight": float, "median": float})
    n_stages = round(float(others["weight"].sum())) if len(others) else 0
    if n_stages < LEAST_STAGES:
        problem = f"{n_stages} stages of other jobs ran on both machine types often enough to calibrate intervals"
        raise BadInput("history", problem, f"at least {LEAST_STAGES}", "give a longer history, or another machine type")
    ordered = others.sort_values("score")
    reached = ordered["weight"].cumsum().to_numpy(float) / (n_stages + 1)
    at = min(int(np.searchsorted(reached, confidence)), len(ordered) - 1)
    medians = others.drop_duplicates(["job", "stage"])["median"].abs()
    return Widening(float(ordered["score"].iloc[at]), float(np.quantile(medians, confidence)), n_stages)


# ---- a job


@dataclass(frozen=True)
class Basis:
    """What the jobs of a history say of two machine types: its vertices, their slowdowns without each of the jobs, the
    stages that ran on both, and how far earlier ones lay off (calibration_scores)."""

    history: pd.DataFrame
    pools: Pools
    stages: pd.DataFrame
    scores: pd.DataFrame


def basis_of(vertices: pd.DataFrame, source: str, target: str, params: EstimateParams) -> Basis:
    """What is learned once for all jobs. vertices: of all jobs, with run_id, job, stage, machine_type, submitted_at,
    duration_s, cpu_s and tokens.

    Raises NotFound for a machine type without vertices, BadInput for one type twice, and where nothing says CPU seconds
    and tokens."""
    known = sorted(vertices["machine_type"].unique())
    for name in (source, target):
        if name not in known:
            raise NotFound(f"no vertex ran on machine type {name!r}; known: {quoted(known) or 'none'}")
    if source == target:
        raise BadInput("machine types", f"runs on {source} are there already", "another machine type", "mend --onto")
    history = with_slowdowns(vertices)
    if history.empty:
        problem = "no vertex has CPU seconds and tokens"
        raise BadInput("history", problem, "logs that have both", "estimate from traces and scores instead (--traces)")
    pools = Pools(history, source, target)
    scores = calibration_scores(history, source, target, params.confidence)
    return Basis(history, pools, stages_on_both(history, pools), scores)


def runs_on(history: pd.DataFrame, job: str, machine_type: str) -> pd.DataFrame:
    """The vertices of a job's runs that touched no other machine type."""
    job_vertices = history[history["job"] == job]
    elsewhere = job_vertices.loc[job_vertices["machine_type"] != machine_type, "run_id"]
    return job_vertices[~job_vertices["run_id"].isin(elsewhere)]


def transfer_job(basis: Basis, runtimes_s: pd.Series, job: str, params: EstimateParams) -> TransferredRuns:
    """The runtimes of a job on the target, from its runs on the source and other jobs' runs on both.

    runtimes_s: of runs, by run_id. A run is put together from its stages, each as much longer as its longest vertex;
    all vertices of a run meet the same quantile of slowdown, since they run beside the same load. Raises NotFound for a
    job without vertices, BadInput for one with fewer than LEAST_RUNS runs on the source alone."""
    source, target = basis.pools.source, basis.pools.target
    if job not in set(basis.history["job"]):
        raise NotFound(f"job {job!r} has no completed run with vertices that say CPU seconds and tokens")
    vertices = runs_on(basis.history, job, source)
    vertices = vertices[vertices["run_id"].isin(runtimes_s.index)]
    n_runs = vertices["run_id"].nunique()
    if n_runs < LEAST_RUNS:
        problem = f"job {quoted(job)} has {n_runs} completed runs on {source} alone"
        raise BadInput("history", problem, f"at least {LEAST_RUNS}", "wait for more runs")
    here, there = basis.pools.without(job)
    habit = habit_without(basis.stages, job)
    widening = widening_without(basis.scores, job, params.confidence)
    durations = np.empty((len(vertices), N_QUANTILES))
    place = pd.Series(np.arange(len(vertices)), index=vertices.index)
    stages = []
    for stage, rows in vertices.groupby("stage"):
        there_s = transfer_stage(rows, here, there, habit)
        durations[place[rows.index]] = there_s
        interval = stage_interval(there_s.ravel(), params.confidence, widening.interval)
        stages.append((stage, rows["run_id"].nunique(), float(np.median(there_s)), *interval))
    draws = run_draws(vertices, durations, runtimes_s)
    low_s, high_s = stage_interval(draws, params.confidence, widening.interval)
    rests_on = (
        f"{n_runs} runs on {source}; slowdowns of {here.n:,} vertices of other jobs there and of {there.n:,} on "
        f"{target}; intervals from {widening.n_stages} of their stages"
    )
    table = pd.DataFrame(stages, columns=["stage", "n_runs", "median_s", "low_s", "high_s"])
    return TransferredRuns(job, source, target, draws, low_s, high_s, widening, table, rests_on)


def run_draws(vertices: pd.DataFrame, durations: Floats, runtimes_s: pd.Series) -> Floats:
    """Runtimes on the target, in seconds: (n_runs · N_QUANTILES,).

    vertices: of runs. durations: (n_vertices, N_QUANTILES) on the target. A run is longer by the ratio of its
    stages' longest vertices, added up over stages, there to here."""
    keys = [vertices["run_id"].to_numpy(), vertices["stage"].to_numpy()]
    there = pd.DataFrame(durations).groupby(keys).max().groupby(level=0).sum()  # (n_runs, N_QUANTILES)
    here = vertices["duration_s"].reset_index(drop=True).groupby(keys).max().groupby(level=0).sum()
    scaled = there.div(here, axis=0).mul(runtimes_s.reindex(there.index), axis=0)
    return np.asarray(scaled.to_numpy(float).ravel())
