"""Searches replayed on runs that are there: what a method would have found, and what finding it would have cost.

A job's runs on all configurations are looked up instead of run. Each method searches each job from many seeds; the
cost of the best valid configuration so far stands as a multiple of the optimum. A search that has found nothing valid
counts as infinite, so that no method gains by failing. Where something is learned (kernel, portfolio), all jobs of the
application are left out."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from tasks.advice.baselines import VCPU_ONLY, arrow, cherrypick, cherrypick_with, portfolio, ruya
from tasks.advice.machines import Configurations, Floats, MachineType, MemoryNeed, configurations
from tasks.advice.params import ReplayParams
from tasks.advice.search import CandidateOutcomes, Method, Problem, at_random, by_improvement, portfolio_order, search
from tasks.advice.surrogate import FIXED, LEARNED, Bools, SurrogateParams, TrialRuns, learned
from tasks.errors import BadInput, report_progress
from tasks.storage import whole

logger = logging.getLogger(__name__)
CandidateSet = Literal["completed", "all"]
CHECKPOINTS = (1, 3, 6, 9, 12)
PORTFOLIO_SIZE = 12
N_RESAMPLES = 2_000
INTERVAL = (0.05, 0.95)
OPTIMAL = 1 + 1e-9


@dataclass(frozen=True)
class ReplayedJob:
    """A job with one run on each candidate. runtime_s: (n,), of a failed run until it ended, NaN where nobody knows."""

    name: str
    application: str
    family: str
    candidates: Configurations
    runtime_s: Floats
    is_completed: Bools
    need: MemoryNeed | None = None

    @cached_property
    def outcome(self) -> CandidateOutcomes:
        """What searches get to see."""
        log_cost = np.nan_to_num(np.log(self.candidates.cost(self.runtime_s)), nan=-np.inf)
        return CandidateOutcomes(log_cost, self.is_completed)

    def only_completed(self) -> "ReplayedJob":
        """Without the candidates whose run failed."""
        rows = np.flatnonzero(self.is_completed)
        return replace(
            self,
            candidates=self.candidates.subset(rows),
            runtime_s=self.runtime_s[rows],
            is_completed=self.is_completed[rows],
        )


def jobs_of(
    runs: pd.DataFrame, machines: Mapping[str, MachineType], needs: Mapping[str, MemoryNeed]
) -> list[ReplayedJob]:
    """Jobs from rows of runs, repeats by their median; those with fewer than two completed configurations are left out.

    Raises BadInput for a machine type without a description, and where no job is left."""
    unknown = sorted(set(runs["machine_type"]) - set(machines))
    if unknown:
        raise BadInput("machines", f"nothing about {', '.join(unknown[:5])}", "a row for each machine type of the runs")
    jobs = []
    for name, rows in runs.groupby("job", sort=True):
        medians: pd.DataFrame = rows.groupby(["machine_type", "nodes", "completed"])["runtime_s"].median().reset_index()
        medians = medians.sort_values("completed").drop_duplicates(["machine_type", "nodes"], keep="last")
        medians = medians.sort_values(["machine_type", "nodes"])
        if medians["completed"].sum() < 2:
            logger.warning("job %s is left out: fewer than two of its configurations completed", name)
            continue
        pairs = zip(medians["machine_type"], medians["nodes"], strict=True)
        jobs.append(
            ReplayedJob(
                str(name),
                str(rows["application"].iloc[0]),
                str(rows["family"].iloc[0]),
                configurations([(machines[kind], int(n)) for kind, n in pairs]),
                medians["runtime_s"].to_numpy(dtype=float),
                medians["completed"].to_numpy(dtype=bool),
                needs.get(str(name)),
            )
        )
    if not jobs:
        problem = "no job with two configurations that completed"
        raise BadInput("runs", problem, "jobs with a run on each of many configurations", "record more runs")
    return jobs


@dataclass
class LearnableRuns:
    """What may be learned for a job: the jobs of other applications, and runs of its own with other inputs.

    scores: of machine types, by aspect."""

    jobs: Sequence[ReplayedJob]
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    kernels: dict[str, SurrogateParams] = field(default_factory=dict)

    def kernel(self, application: str) -> SurrogateParams:
        """Kernel parameters learned on all other applications; those that ship where there is none."""
        if application not in self.kernels:
            others = [job for job in self.jobs if job.application != application]
            examples = [(job.candidates, job.outcome.runs(range(len(job.candidates)))) for job in others]
            self.kernels[application] = learned(examples) if examples else LEARNED
        return self.kernels[application]

    def other_costs(self, job: ReplayedJob) -> tuple[Floats, ...]:
        """Costs of jobs of other applications on the job's candidates, as multiples of their optimum; infinite where
        they did not complete."""
        costs = []
        for other in self.jobs:
            if other.application != job.application:
                log_cost, at = np.where(other.is_completed, other.outcome.log_cost, np.inf), other.candidates.places
                there = np.array([log_cost[at[pair]] if pair in at else np.inf for pair in job.candidates.places])
                costs.append(np.exp(there - log_cost.min()))
        return tuple(costs)

    def other_inputs(self, job: ReplayedJob) -> tuple[TrialRuns, ...]:
        """Runs of the same application and framework with other inputs, on the job's candidates."""
        runs = []
        for other in self.jobs:
            if other.family != job.family or other.name == job.name:
                continue
            places = other.candidates.places
            shared = [pair for pair in places if pair in job.candidates.places]
            rows, there = [places[pair] for pair in shared], [job.candidates.places[pair] for pair in shared]
            runs.append(
                TrialRuns(np.array(there, dtype=np.int64), other.outcome.log_cost[rows], other.is_completed[rows])
            )
        return tuple(runs)


@dataclass(frozen=True)
class Way:
    """How a method searches a job. kernel: None: learned on other applications. uses: any of memory (the job's need),
    inputs (runs with others), starts (of the portfolio), scores (of machine types)."""

    words: str
    method: Callable[[ReplayedJob, LearnableRuns], Method]
    kernel: SurrogateParams | None = FIXED
    uses: tuple[str, ...] = ()

    def problem(self, job: ReplayedJob, training: LearnableRuns) -> Problem:
        """What is searched."""
        return Problem(
            job.candidates,
            job.need if "memory" in self.uses else None,
            params=training.kernel(job.application) if self.kernel is None else self.kernel,
            others=training.other_inputs(job) if "inputs" in self.uses else (),
            other_costs=training.other_costs(job) if "starts" in self.uses else (),
        )


def _always(method: Method) -> Callable[[ReplayedJob, LearnableRuns], Method]:
    return lambda _job, _training: method


def _portfolio(job: ReplayedJob, training: LearnableRuns) -> Method:
    costs = training.other_costs(job)
    return portfolio(portfolio_order(costs, PORTFOLIO_SIZE) if costs else [])


_CHERRYPICK, _OURS = _always(cherrypick), _always(by_improvement)
WAYS = {
    "random": Way("random", _always(at_random)),
    "portfolio": Way("portfolio of other applications", _portfolio),
    "cherrypick": Way("CherryPick", _CHERRYPICK),
    "arrow": Way("Arrow (no metrics)", _always(arrow())),
    "cherrypick_scores": Way(
        "CherryPick, at candidates, weighed by scores", lambda _, of: cherrypick_with(of.scores), uses=("scores",)
    ),
    "arrow_scores": Way("Arrow, weighed by scores", lambda _, of: arrow(of.scores), uses=("scores",)),
    "vcpu": Way("processors alone", _OURS, VCPU_ONLY),
    "fixed": Way("ours, fixed kernel", _OURS),
    "learned": Way("ours", _OURS, None),
    "started": Way("ours, started by the portfolio", _OURS, None, ("starts",)),
    "ruya": Way("Ruya (memory need)", _always(ruya), uses=("memory",)),
    "portfolio_memory": Way("portfolio (memory need)", _portfolio, uses=("memory",)),
    "learned_memory": Way("ours (memory need)", _OURS, None, ("memory",)),
    "started_memory": Way("ours, started so (memory need)", _OURS, None, ("starts", "memory")),
    "other_inputs": Way("ours, after runs with another input", _OURS, None, ("inputs",)),
}
WORDS = {name: way.words for name, way in WAYS.items()}
METHODS = tuple(name for name, way in WAYS.items() if "scores" not in way.uses)
OURS = {False: "learned", True: "learned_memory"}  # what `whorl advice search` does, without and with a memory need
SLOW = ("arrow", "arrow_scores")  # a twentieth of the searches, and no runtime targets


def replay(
    job: ReplayedJob, training: LearnableRuns, method: str, candidates: CandidateSet, params: ReplayParams
) -> pd.DataFrame:
    """The searches of one method for one job: a row for each and run of it.

    Columns: method, job, candidates, percentile (NaN without a target), seed, run (from 1), ratio (best valid so far to
    the optimum, infinite before any), spent (cost of all runs so far, to the optimum; NaN once nobody knows how
    long one took), is_failed, is_late, cpu_s (of the whole search)."""
    subject = job.only_completed() if candidates == "completed" else job
    way = WAYS[method]
    problem, choose = way.problem(subject, training), way.method(subject, training)
    n_plain = max(1, params.searches // 20) if method in SLOW else params.searches
    cost = subject.candidates.cost(subject.runtime_s)
    targets: list[tuple[float, float | None, int]] = [(np.nan, None, n_plain)]
    for percentile in () if method in SLOW else params.target_percentiles:
        longest_s = float(np.percentile(subject.runtime_s[subject.is_completed], percentile))
        targets.append((percentile, longest_s, max(1, n_plain // len(params.target_percentiles))))
    frames = []
    for percentile, limit, n_searches in targets:
        stated = replace(problem, max_runtime_s=limit)
        is_late = np.zeros(len(cost), dtype=bool) if limit is None else subject.runtime_s > limit
        valid_cost = np.where(subject.is_completed & ~is_late, cost, np.inf)
        for seed in range(n_searches):
            began = time.process_time()
            rng = np.random.default_rng([params.seed, seed])
            tried = search(stated, subject.outcome, params.runs, choose, rng)
            frames.append(
                {
                    "percentile": percentile,
                    "seed": seed,
                    "ratio": np.minimum.accumulate(valid_cost[tried]) / valid_cost.min(),
                    "spent": np.cumsum(cost[tried]) / valid_cost.min(),
                    "is_failed": ~subject.is_completed[tried],
                    "is_late": is_late[tried],
                    "cpu_s": time.process_time() - began,
                }
            )
    table = pd.DataFrame(frames)
    table["run"] = [list(range(1, len(ratio) + 1)) for ratio in table["ratio"]]
    table = table.explode(["ratio", "spent", "is_failed", "is_late", "run"], ignore_index=True)
    table = table.astype({"ratio": float, "spent": float, "is_failed": bool, "is_late": bool, "run": int})
    return table.assign(method=method, job=job.name, application=job.application, candidates=candidates)


@dataclass(frozen=True)
class SearchPart:
    """Searches of one method for one job, which are done, and kept, together."""

    method: str
    job: str
    candidates: CandidateSet

    @property
    def file(self) -> str:
        """The name of its table."""
        return f"{self.candidates}-{self.method}-{self.job}.parquet".replace("/", "_")


def parts_of(jobs: Sequence[ReplayedJob], methods: Sequence[str]) -> list[SearchPart]:
    """All that is replayed; methods that rest on a memory need, or on other inputs, not for jobs without."""
    families = pd.Series([job.family for job in jobs]).value_counts()
    sets: tuple[CandidateSet, ...] = ("completed", "all")
    if all(job.is_completed.all() for job in jobs):
        sets = ("completed",)
    parts = []
    for job in jobs:
        for method in methods:
            uses = WAYS[method].uses
            if ("memory" in uses and job.need is None) or ("inputs" in uses and families[job.family] < 2):
                continue
            parts += [SearchPart(method, job.name, candidates) for candidates in sets]
    return parts


def replay_all(
    jobs: Sequence[ReplayedJob],
    params: ReplayParams,
    folder: Path | None = None,
    methods: Sequence[str] = METHODS,
    scores: Mapping[str, Mapping[str, float]] | None = None,
) -> pd.DataFrame:
    """The searches of all methods for all jobs; those whose table is in the folder already are not done again.

    scores: of machine types, by aspect; with them the methods that use scores stand beside the others."""
    training, by_name = LearnableRuns(jobs, scores or {}), {job.name: job for job in jobs}
    parts = parts_of(jobs, [*methods, *(name for name, way in WAYS.items() if "scores" in way.uses and scores)])
    there = {part for part in parts if folder is not None and (folder / part.file).exists()}
    tables = [pd.read_parquet(folder / part.file) for part in parts if folder is not None and part in there]
    waiting = [part for part in parts if part not in there]
    for at, part in enumerate(waiting, len(there) + 1):
        table = replay(by_name[part.job], training, part.method, part.candidates, params)
        tables.append(table)
        if folder is not None:
            with whole(folder / part.file) as draft:
                table.to_parquet(draft)
        report_progress("searches", at, len(parts))
    return pd.concat(tables, ignore_index=True)


def figures_of(table: pd.DataFrame, params: ReplayParams) -> dict[str, Any]:
    """The measures `<candidates>.<method>.<measure>[.<runs>]`, and with a target `<candidates>.target.<method>…`.

    measures: mean, median, hit (share that found the optimum), valid (share that found anything valid), spent (cost of
    the runs, as a multiple of the optimum's), cpu_s of a search, failed and late (shares of runs); minus_ours: mean
    difference from ours, with a 90 % interval over jobs. A mean over searches that found nothing is null, and so is
    spent where nobody knows how long some failed runs took."""
    figures: dict[str, Any] = {}
    table = table.reset_index(drop=True)
    for (candidates, has_target), half in table.groupby(["candidates", table["percentile"].notna()]):
        prefix = f"{candidates}.target" if has_target else str(candidates)
        for method, rows in half.groupby("method"):
            figures |= _measures(rows, f"{prefix}.{method}", params)
            ours = OURS["memory" in WAYS[str(method)].uses]
            if method != ours and (half["method"] == ours).any():
                figures |= _difference(rows, half[half["method"] == ours], f"{prefix}.{method}", params)
    return figures


def _measures(rows: pd.DataFrame, prefix: str, params: ReplayParams) -> dict[str, Any]:
    figures: dict[str, Any] = {f"{prefix}.n": len(rows.groupby(["job", "percentile", "seed"], dropna=False))}
    for n in (n for n in CHECKPOINTS if n <= params.runs):
        at = rows[rows["run"] == n]
        if at.empty:
            for key in (f"{prefix}.{measure}.{n}" for measure in ("mean", "median", "hit", "valid", "spent")):
                figures |= {key: None, f"{key}.reason": "no job has so many configurations"}
            continue
        is_valid = np.isfinite(at["ratio"])
        median = float(at["ratio"].median())
        figures[f"{prefix}.mean.{n}"] = float(at["ratio"].mean()) if is_valid.all() else None
        if not is_valid.all():
            figures[f"{prefix}.mean.{n}.reason"] = f"{(~is_valid).mean():.1%} of the searches had found nothing valid"
        figures[f"{prefix}.median.{n}"] = median if np.isfinite(median) else None
        figures[f"{prefix}.hit.{n}"] = float((at["ratio"] < OPTIMAL).mean())
        figures[f"{prefix}.valid.{n}"] = float(is_valid.mean())
        is_known = at["spent"].notna()
        figures[f"{prefix}.spent.{n}"] = float(at["spent"].mean()) if is_known.all() else None
        if not is_known.all():
            reason = f"{(~is_known).mean():.1%} of the searches had failed runs of unknown time"
            figures[f"{prefix}.spent.{n}.reason"] = reason
    searches = rows[rows["run"] == 1]
    return figures | {
        f"{prefix}.cpu_s": float(searches["cpu_s"].mean()),
        f"{prefix}.failed": float(rows["is_failed"].mean()),
        f"{prefix}.late": float(rows["is_late"].mean()),
    }


def _difference(rows: pd.DataFrame, ours: pd.DataFrame, prefix: str, params: ReplayParams) -> dict[str, Any]:
    """Mean of the logarithms' difference from ours after each number of runs, by job, with an interval over jobs."""
    figures: dict[str, Any] = {}
    for n in (n for n in CHECKPOINTS if n <= params.runs):
        means = [
            np.log(frame[frame["run"] == n]["ratio"].clip(upper=1e3)).groupby(frame["job"]).mean()
            for frame in (rows, ours)
        ]
        differences = (means[0] - means[1]).dropna().to_numpy()
        if not len(differences):
            continue
        rng = np.random.default_rng(params.seed)
        resampled = rng.choice(differences, (N_RESAMPLES, len(differences))).mean(1)
        low, high = np.quantile(resampled, INTERVAL)
        figures |= {
            f"{prefix}.minus_ours.{n}": float(differences.mean()),
            f"{prefix}.minus_ours.{n}.low": float(low),
            f"{prefix}.minus_ours.{n}.high": float(high),
        }
    return figures
