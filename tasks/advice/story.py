"""One story, measured end to end: a type for each job from its runs on one type, checked with runs that were held back.

choices = choose_all(history, machines, scores, multiples)      what an answer may see
story(choices, machines, scores, history, held_back)            beside plain rules, and what was true"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.advice.choice import (
    COMPLETED,
    MB,
    TINY,
    Capacity,
    Choice,
    SourceRuns,
    TypeEstimate,
    capacities,
    choose_type,
    runs_of,
)
from tasks.advice.machines import SECONDS_PER_HOUR, Floats
from tasks.advice.params import ChoiceParams
from tasks.errors import BadInput
from tasks.quantities import duration, share

OURS, STAY, ORACLE = "choose", "stay on the source", "oracle (held-back runs)"
THOUSAND = 1000
TYPE_COLUMNS = ["machine_type", "verdict", "late", "late_low", "late_high", "median_s", "p95_s", "cost_1000_runs",
                "bound", "lacks_memory"]  # fmt: skip
BINS = (0.0, 0.01, 0.05, 0.2, 0.5, 0.8, 1.0)  # of chances that were said
RESAMPLES, SEED, TAILS = 2000, 7, (0.05, 0.95)  # intervals of 90 %
SCORED = {  # aspect -> benchmark and metric of nodes
    "cpu_one_thread": ("cpu-sysbench-one", "events_per_second", 1.0),
    "cpu_all_threads": ("cpu-sysbench", "events_per_second", 1.0),
    "disk": ("disk-fio", "read_bw", 1 / MB),
}


def scores_of(executions: pd.DataFrame) -> pd.DataFrame:
    """Scores of machine types from their benchmarks: machine_type, aspect, score; medians over executions.

    executions: machine_type, benchmark, metric, value. Threads in events a second, disk in MB/s."""
    rows = []
    for aspect, (benchmark, metric, factor) in SCORED.items():
        ours = executions[(executions["benchmark"] == benchmark) & (executions["metric"] == metric)]
        medians = ours.groupby("machine_type")["value"].median() * factor
        rows += [{"machine_type": name, "aspect": aspect, "score": score} for name, score in medians.items()]
    return pd.DataFrame(rows, columns=["machine_type", "aspect", "score"])


def choose_all(
    history: pd.DataFrame,
    machines: pd.DataFrame,
    scores: pd.DataFrame,
    multiples: Mapping[str, float],
    params: ChoiceParams | None = None,
) -> tuple[Choice, ...]:
    """A choice for every job that has a multiple, in that order: its deadline over the median of its completed runs."""
    medians = history[history["status"] == COMPLETED].groupby("job")["runtime_s"].median()
    return tuple(
        choose_type(history, machines, scores, job, float(medians[job]) * multiple, params)
        for job, multiple in multiples.items()
    )


# plain rules: each says how a job's runtimes change from the source to a type


Ratio = Callable[
    [SourceRuns, Capacity, Capacity], Floats
]  # (n_runs,), of runtimes on the target to those on the source


def _ratio_of(of: Callable[[Capacity], float]) -> Ratio:
    return lambda runs, source, target: np.full(len(runs.runtime_s), of(source) / of(target))


def _sum_ratio(runs: SourceRuns, source: Capacity, target: Capacity) -> Floats:
    """CPU seconds by the score and bytes by the disk's rate, one after the other, over the same on the source."""
    there_s = np.nan_to_num(runs.read_bytes / source.disk_bytes_per_s)
    here_s = np.nan_to_num(runs.read_bytes / target.disk_bytes_per_s)
    ratio: Floats = (runs.cpu_s * source.cpu_all_threads / target.cpu_all_threads + here_s) / np.maximum(
        runs.cpu_s + there_s, TINY
    )
    return ratio


SCALINGS: Mapping[str, Ratio] = {
    "runtime × vCPU ratio": _ratio_of(lambda kind: kind.vcpu),
    "runtime × CPU score ratio (one thread)": _ratio_of(lambda kind: kind.cpu_one_thread),
    "runtime × (CPU s by score + bytes by disk)": _sum_ratio,
}
WITH_MEMORY = "no less memory"


def rule_choices(
    history: pd.DataFrame,
    machines: pd.DataFrame,
    scores: pd.DataFrame,
    deadlines: Mapping[str, float],
    late_share: float,
) -> dict[str, dict[str, str]]:
    """What plain rules choose: rule -> job -> type.

    A rule that scales the runtimes takes the cheapest type on which no more than late_share of them are late, or the
    one where fewest are; runs that failed are late."""
    kinds = capacities(machines, scores)
    choices: dict[str, dict[str, str]] = {}
    cheapest = min(kinds.values(), key=lambda kind: kind.price_per_h).machine_type
    largest = max(kinds.values(), key=lambda kind: (kind.vcpu, kind.memory_bytes, kind.price_per_h)).machine_type
    for job, deadline_s in deadlines.items():
        runs, name = runs_of(history, job)
        for rule, kind in ((STAY, name), ("cheapest an hour", cheapest), ("largest type", largest)):
            choices.setdefault(rule, {})[job] = kind
        roomy = [kind for kind in kinds.values() if kind.memory_bytes >= kinds[name].memory_bytes]
        for rule, ratio in SCALINGS.items():
            for label, able in ((rule, list(kinds.values())), (f"{rule}; {WITH_MEMORY}", roomy)):
                scaled = {kind: runs.runtime_s * ratio(runs, kinds[name], kind) for kind in able}
                choices.setdefault(label, {})[job] = _cheapest(scaled, runs.n_failed, deadline_s, late_share)
    return choices


def _cheapest(scaled: Mapping[Capacity, Floats], n_failed: int, deadline_s: float, late_share: float) -> str:
    """The cheapest type of those that meet the share. scaled: runtimes on each type, beside runs that failed."""
    late = {
        kind: ((took_s > deadline_s).sum() + n_failed) / (len(took_s) + n_failed) for kind, took_s in scaled.items()
    }
    least = min(late.values())
    meeting = [kind for kind in scaled if late[kind] <= max(late_share, least)]
    return min(meeting, key=lambda kind: scaled[kind].mean() * kind.price_per_h).machine_type


def truth_of(held_back: pd.DataFrame, machines: pd.DataFrame, deadlines: Mapping[str, float]) -> pd.DataFrame:
    """What was true of each job on each type, a row by (job, machine_type) in their order. Raises BadInput for a cell
    without a run.

    held_back: job, machine_type, runtime_s, status. Columns: late (share of the runs; what did not complete is late),
    cost (of a mean run), median_s (of those that completed, NaN if none did), runtimes_s (array of all, infinite where
    they did not), n_runs, price."""
    prices = dict(zip(machines["machine_type"].astype(str), machines["price_per_h"].astype(float), strict=True))
    runs = dict(list(held_back.groupby(["job", "machine_type"])))
    cells = {}
    for job, kind in itertools.product(deadlines, prices):
        if (job, kind) not in runs:
            problem = f"job {job} has no runs on {kind}"
            raise BadInput("held-back runs", problem, "every job on every type", "record them")
        rows = runs[job, kind]
        took_s, done = rows["runtime_s"].to_numpy(dtype=float), (rows["status"] == COMPLETED).to_numpy(dtype=bool)
        cells[job, kind] = {
            "late": float((~done | (took_s > deadlines[job])).mean()),
            "cost": float(took_s.mean()) * prices[kind] / SECONDS_PER_HOUR,
            "median_s": float(np.median(took_s[done])) if done.any() else math.nan,
            "runtimes_s": np.where(done, took_s, np.inf),
            "n_runs": len(took_s),
            "price": prices[kind],
        }
    return pd.DataFrame(cells.values(), index=pd.MultiIndex.from_tuples(cells, names=["job", "machine_type"]))


def best_type(truth: pd.DataFrame, job: str, late_share: float) -> str:
    """The cheapest type that meets the share; where none does, the cheapest of those that are late least often."""
    cells = truth.loc[job]
    return str(cells["cost"][cells["late"] <= max(late_share, cells["late"].min())].idxmin())


def compare(choices_by_rule: Mapping[str, Mapping[str, str]], truth: pd.DataFrame, late_share: float) -> pd.DataFrame:
    """Rules beside each other, one row each: what their choices cost and how often they were late in truth.

    regret: mean over jobs of the cost over that of the best type, 0 where the choice was cheaper but missed, with its
    interval over jobs; misses: share of jobs whose runs were late more often than they may be although some type meets
    it; charged: regret where a job that missed is charged the dearest type, to which it would have to go; late: pooled
    share."""
    jobs, prices = truth.index.unique("job"), truth["price"].groupby("machine_type", sort=False).first()
    best = {job: best_type(truth, job, late_share) for job in jobs}
    rows, rng = [], np.random.default_rng(SEED)
    at = rng.integers(len(jobs), size=(RESAMPLES, len(jobs)))  # the same jobs for every rule
    dearest = dict.fromkeys(jobs, prices.idxmax())
    least, largest = (truth.loc[[(job, of[job]) for job in jobs]] for of in (best, dearest))
    cost = least["cost"].to_numpy()
    for rule, choices in {**choices_by_rule, ORACLE: best}.items():
        cells = truth.loc[[(job, choices[job]) for job in jobs]]
        ratio, late = cells["cost"].to_numpy() / cost, cells["late"].to_numpy()
        regret = np.maximum(0.0, ratio - 1)
        misses = (least["late"].to_numpy() <= late_share) & (late > late_share)
        charged = np.where(misses, np.maximum(0.0, largest["cost"].to_numpy() / cost - 1), regret)
        low, high = np.quantile(regret[at].mean(axis=1), TAILS)
        figures = {
            "regret": regret.mean(), "regret_low": low, "regret_high": high, "regret_median": np.median(regret),
            "cost_ratio": ratio.mean(), "misses": misses.mean(), "charged": charged.mean(), "late": late.mean(),
        }  # fmt: skip
        rows.append({"rule": rule} | {name: float(value) for name, value in figures.items()} | {"n_jobs": len(jobs)})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class LateCheck:
    """Late runs of the types that were chosen, or of all, pooled over jobs. said: mean of the chances; said_low,
    said_high: where the share of so many runs should lie; late: their share in truth; late_low, late_high: its
    interval, with jobs as clusters; runs, jobs: how many."""

    said: float
    said_low: float
    said_high: float
    late: float
    late_low: float
    late_high: float
    runs: int
    jobs: int

    @property
    def is_inside(self) -> bool:
        """Whether the share lies where it was said to."""
        return self.said_low <= self.late <= self.said_high


def check_late(choices: Sequence[Choice], truth: pd.DataFrame, types: Mapping[str, Sequence[str]]) -> LateCheck:
    """The share of late runs against what was said. types: of each job, those to count."""
    rng = np.random.default_rng(SEED)
    drawn, expected, counts, late = [], [], [], []
    for choice in choices:
        cells = truth.loc[[(choice.job, kind) for kind in types[choice.job]]]
        n = cells["n_runs"].to_numpy()
        estimates = [choice.of(kind) for kind in types[choice.job]]
        drawn.append(sum(rng.binomial(k, estimate.late_draws) for estimate, k in zip(estimates, n, strict=True)))
        expected.append(sum(estimate.late * k for estimate, k in zip(estimates, n.tolist(), strict=True)))
        late.append(float(cells["late"].to_numpy() @ n))
        counts.append(int(n.sum()))
    total = sum(counts)
    predicted = np.sum([rng.permutation(sums) for sums in drawn], axis=0) / total  # jobs are independent of each other
    at = rng.integers(len(choices), size=(RESAMPLES, len(choices)))
    resampled = np.array(late)[at].sum(axis=1) / np.array(counts)[at].sum(axis=1)
    expected_low, expected_high, late_low, late_high = (
        float(end) for shares in (predicted, resampled) for end in np.quantile(shares, TAILS)
    )
    return LateCheck(
        sum(expected) / total, expected_low, expected_high, sum(late) / total, late_low, late_high, total, len(late)
    )


@dataclass(frozen=True)
class TypeAnswer:
    """The answer for one job in sentences, with the table of its types."""

    answer: str
    sureness: str
    reason: str
    next_run: str
    types: pd.DataFrame


@dataclass(frozen=True)
class Story(TypeAnswer):
    """What is told at the end: the answer for one job; jobs: every job's choice beside the best; rules: compare;
    chosen, everywhere: late shares pooled; runtimes: by type, error of the median and coverage; calibration: chances
    that were said beside what was."""

    jobs: pd.DataFrame
    rules: pd.DataFrame
    chosen: LateCheck
    everywhere: LateCheck
    runtimes: pd.DataFrame
    calibration: pd.DataFrame


def story_of(choice: Choice) -> TypeAnswer:
    """One job's answer in sentences, with the table of types."""
    sentences = (answer_of(choice), sureness_of(choice), reason_of(choice), next_run_of(choice))
    return TypeAnswer(*sentences, types_table(choice))


def story(
    choices: Sequence[Choice],
    machines: pd.DataFrame,
    scores: pd.DataFrame,
    history: pd.DataFrame,
    held_back: pd.DataFrame,
    about: str | None = None,
) -> Story:
    """The answer about one job (the first that would leave its source, if none is named) and the check over all."""
    deadlines = {choice.job: choice.deadline_s for choice in choices}
    truth = truth_of(held_back, machines, deadlines)
    late_share = choices[0].late_share
    ours = {choice.job: choice.machine_type for choice in choices}
    rules = {OURS: ours} | rule_choices(history, machines, scores, deadlines, late_share)
    moving = next((choice for choice in choices if choice.machine_type != choice.source), choices[0])
    answer = story_of(next((choice for choice in choices if choice.job == about), moving))
    return Story(
        **vars(answer),
        jobs=jobs_table(choices, truth),
        rules=compare(rules, truth, late_share),
        chosen=check_late(choices, truth, {job: [kind] for job, kind in ours.items()}),
        everywhere=check_late(
            choices, truth, {choice.job: [e.machine_type for e in choice.estimates] for choice in choices}
        ),
        runtimes=runtimes_table(choices, truth),
        calibration=calibration_table(choices, truth),
    )


def answer_of(choice: Choice) -> str:
    """The type, and what it means for lateness and cost."""
    estimate, source = choice.estimate, choice.of(choice.source)
    change = estimate.cost / source.cost - 1
    cost = "the source itself" if choice.machine_type == choice.source else (
        f"{share(abs(change))} {'cheaper' if change < 0 else 'dearer'} a run than {choice.source}"
    )  # fmt: skip
    if not choice.is_safe:
        return (
            f"No type is surely late in at most {share(choice.late_share)} of the runs of {choice.job}; least often "
            f"late is {choice.machine_type} ({share(estimate.late)}), {cost}."
        )
    sentence = f"Run {choice.job} on {choice.machine_type}: late in {share(estimate.late)} of its runs"
    return f"{sentence} (deadline {duration(choice.deadline_s)}), {cost}."


def sureness_of(choice: Choice) -> str:
    """The interval, and which cheaper types were left for it."""
    estimate = choice.estimate
    interval = " to ".join(dict.fromkeys((share(estimate.low), share(estimate.high))))  # not twice the same
    text = (
        f"{share(choice.level)} interval of the chance {interval}, from {choice.n_runs} "
        f"runs on {choice.source}; {share(estimate.meets)} sure that it is at most {share(choice.late_share)}"
    )
    unclear = [e.machine_type for e in choice.estimates if e.cost < estimate.cost and e.is_unclear(choice.late_share)]
    return text + (f"; {', '.join(unclear)} would be cheaper, but cannot be told to be safe" if unclear else "")


def reason_of(choice: Choice) -> str:
    """What bounds the job on its source and on the answer."""
    sentences = []
    for name in dict.fromkeys((choice.source, choice.machine_type)):
        estimate = choice.of(name)
        sentences.append(
            f"on {name} it is bound by {estimate.bound} "
            f"(CPU {duration(estimate.cpu_s)}, disk {duration(estimate.disk_s)} of {duration(estimate.median_s)}"
            + (
                f"; memory does not suffice for {share(estimate.lacks_memory)} of its runs)"
                if estimate.lacks_memory
                else ")"
            )
        )
    named = (choice.source, choice.machine_type)
    short = [e.machine_type for e in choice.estimates if e.lacks_memory > 0 and e.machine_type not in named]
    return "; ".join(sentences) + (f"; too little memory on {', '.join(short)}" if short else "")


def next_run_of(choice: Choice) -> str:
    """The run that would tell most."""
    if choice.next_type is None:
        return "nothing: no run on another type would change the answer"
    estimate = choice.of(choice.next_type)
    text = f"one run of usual size on {choice.next_type}: safe if it takes at most {duration(estimate.critical_s)}"
    text += f" ({duration(estimate.median_s)} are expected)"
    return text + (f", which is expected to save {share(choice.saving)} of the cost" if choice.saving > 0 else "")


def types_table(choice: Choice) -> pd.DataFrame:
    """One row a type, the answer first, then by cost."""
    table = pd.DataFrame([vars(e) for e in choice.estimates]).rename(columns={"low": "late_low", "high": "late_high"})
    verdicts = [_verdict(estimate, choice) for estimate in choice.estimates]
    table = table.assign(verdict=verdicts, cost_1000_runs=table["cost"] * THOUSAND).sort_values("cost_1000_runs")
    is_other = table["machine_type"] != choice.machine_type
    return table[TYPE_COLUMNS].loc[is_other.sort_values(kind="stable").index].reset_index(drop=True)


def _verdict(estimate: TypeEstimate, choice: Choice) -> str:
    if estimate.machine_type == choice.machine_type:
        return "answer"
    if estimate.is_safe(choice.late_share):
        return "safe, dearer"
    return "cannot be told" if estimate.is_unclear(choice.late_share) else "late too often"


def jobs_table(choices: Sequence[Choice], truth: pd.DataFrame) -> pd.DataFrame:
    """Every job: what was said of the answer, what was true, and the best type."""
    rows, cells = [], truth.to_dict("index")
    for choice in choices:
        estimate, best = choice.estimate, best_type(truth, choice.job, choice.late_share)
        was, least = cells[choice.job, choice.machine_type], cells[choice.job, best]
        rows.append(
            {
                "job": choice.job,
                "deadline_s": choice.deadline_s,
                "answer": choice.machine_type,
                "is_safe": choice.is_safe,
                "said_late": estimate.late,
                "said_low": estimate.low,
                "said_high": estimate.high,
                "late": was["late"],
                "best": best,
                "best_late": least["late"],
                "cost_ratio": was["cost"] / least["cost"],
                "bound": choice.of(choice.source).bound,
            }
        )
    return pd.DataFrame(rows)


def runtimes_table(choices: Sequence[Choice], truth: pd.DataFrame) -> pd.DataFrame:
    """By type over jobs: median absolute log error of the median runtime, and share of runs below the said p95."""
    rows = []
    for kind, cells in truth.groupby("machine_type", sort=False):
        estimates = [choice.of(str(kind)) for choice in choices]
        errors = np.abs(np.log([estimate.median_s for estimate in estimates] / cells["median_s"].to_numpy()))
        below = np.concatenate(
            [was <= estimate.p95_s for estimate, was in zip(estimates, cells["runtimes_s"], strict=True)]
        )
        measures = {"median_error": float(np.nanmedian(errors)), "below_p95": float(below.mean())}
        rows.append({"machine_type": kind} | measures)
    return pd.DataFrame(rows)


def calibration_table(choices: Sequence[Choice], truth: pd.DataFrame) -> pd.DataFrame:
    """All jobs on all types by the chance that was said: from, to, mean chance said, share late in truth, n of them."""
    pairs = [(choice, estimate) for choice in choices for estimate in choice.estimates]
    predicted = np.array([estimate.late for _, estimate in pairs])
    cells = truth["late"].to_dict()
    was = np.array([cells[choice.job, estimate.machine_type] for choice, estimate in pairs])
    at = np.digitize(predicted, BINS[1:-1])
    return pd.DataFrame(
        {
            "low": low,
            "high": high,
            "said": predicted[at == k].mean(),
            "late": was[at == k].mean(),
            "n": int((at == k).sum()),
        }
        for k, (low, high) in enumerate(itertools.pairwise(BINS))
        if (at == k).any()
    )
