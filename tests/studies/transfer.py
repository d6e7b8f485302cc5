"""How well runtimes on another machine type are told from recorded jobs, beside plain ways; a job's own runs left out.

    python -m tests.studies.transfer data/recorded/jobs

prints what the first day of the recording says of a machine type against what the later ones were there, for stages
and for whole runs."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from tasks.advice.machines import Floats
from tasks.advice.params import EstimateParams
from tasks.advice.transfer import (
    LEAST_RUNS,
    Basis,
    basis_of,
    habit_without,
    runs_on,
    stage_interval,
    transfer_job,
    transfer_stage,
    widening_without,
    with_slowdowns,
)
from tasks.errors import BadInput

VERTEX_COLUMNS = ["run_id", "job", "stage", "machine_type", "submitted_at", "duration_s", "cpu_s", "tokens"]


def vertices_of(runs: pd.DataFrame) -> pd.DataFrame:
    """One row a vertex of completed runs: VERTEX_COLUMNS, of runs as jobs.runs has them.

    runs: run_id, group_key, submitted_at, status and vertices (lists). job: the group_key. Vertices without a positive
    duration or a machine type are left out."""
    kept = runs[(runs["status"] == "completed") & runs["vertices"].map(lambda one: one is not None and len(one) > 0)]
    long = kept[["run_id", "group_key", "submitted_at", "vertices"]].explode("vertices", ignore_index=True)
    if long.empty:
        return pd.DataFrame(columns=VERTEX_COLUMNS)
    each = pd.DataFrame(long["vertices"].tolist())
    found = pd.DataFrame(
        {
            "run_id": long["run_id"],
            "job": long["group_key"],
            "stage": each["stage"],
            "machine_type": each["sku"],
            "submitted_at": long["submitted_at"],
            "duration_s": (each["ended_at"] - each["started_at"]).dt.total_seconds(),
            "cpu_s": each["cpu_s"].astype(float),
            "tokens": each["mean_tokens"].astype(float),
        }
    )
    return found[(found["duration_s"] > 0) & found["machine_type"].notna()].reset_index(drop=True)


StageMethod = Callable[[pd.DataFrame, str], Floats]  # a stage's vertices on the source, its job -> durations there


def stage_methods(basis: Basis, speed_ratio: float) -> Mapping[str, StageMethod]:
    """What a stage may take on the target: the history as it is, times a ratio of speeds, times the median ratio of
    other jobs' stages that ran on both, and ours. speed_ratio: of the source to the target."""
    source, target = basis.pools.source, basis.pools.target
    wide = basis.history.pivot_table(
        index=["job", "stage"], columns="machine_type", values="duration_s", aggfunc="median"
    )
    ratios = (wide[target] / wide[source]).dropna()
    jobs = ratios.index.get_level_values("job")

    def of_others(stage: pd.DataFrame, job: str) -> Floats:
        return stage["duration_s"].to_numpy(float) * float(ratios[jobs != job].median())

    def ours(stage: pd.DataFrame, job: str) -> Floats:
        return transfer_stage(stage, *basis.pools.without(job), habit_without(basis.stages, job)).ravel()

    return {
        "as it is": lambda stage, _: stage["duration_s"].to_numpy(float),
        "× speed": lambda stage, _: stage["duration_s"].to_numpy(float) * speed_ratio,
        "× ratio of other jobs": of_others,
        "ours": ours,
    }


@dataclass(frozen=True)
class StageMinima:
    """How many vertices a stage needs to be measured: on the source, on the target before and after."""

    source: int = 30
    before: int = 10
    after: int = 10


def evaluate_stages(
    basis: Basis, truth: pd.DataFrame, speed_ratio: float, params: EstimateParams, minima: StageMinima = StageMinima()
) -> pd.DataFrame:
    """Methods on the same stages, one row each: n, ks (Kolmogorov and Smirnov's statistic, mean over stages), coverage
    and width (ratio of the ends) of intervals, risk_error (mean |said - true| share of vertices that miss a deadline,
    at deadlines that a half, a quarter and a tenth of them miss), risk_error_quarter (at the middle one alone).

    truth: with_slowdowns, later vertices of all jobs. `own history there`: what the job's earlier vertices on the
    target say, for comparison; no method has it. Ours has two rows: with plain and with calibrated intervals."""
    source, target, history = basis.pools.source, basis.pools.target, basis.history
    of_truth = dict(list(truth[truth["machine_type"] == target].groupby(["job", "stage"])))
    there = dict(list(history[history["machine_type"] == target].groupby(["job", "stage"])))
    methods = stage_methods(basis, speed_ratio)
    rows = []
    for key, stage in history[history["machine_type"] == source].groupby(["job", "stage"]):
        counts = (len(stage), *(len(one[key]) if key in one else 0 for one in (there, of_truth)))
        if any(n < least for n, least in zip(counts, (minima.source, minima.before, minima.after), strict=True)):
            continue
        job, true_s = str(key[0]), of_truth[key]["duration_s"].to_numpy(float)
        said = {name: method(stage, job) for name, method in methods.items()}
        said["own history there"] = there[key]["duration_s"].to_numpy(float)
        rows += [{"method": name, **stage_figures(draws, true_s, params.confidence)} for name, draws in said.items()]
        wide = widening_without(basis.scores, job, params.confidence).interval
        rows.append({"method": "ours, calibrated", **stage_figures(said["ours"], true_s, params.confidence, wide)})
    return _means(rows)


def evaluate_runs(
    basis: Basis, runtimes_s: pd.Series, truth: pd.DataFrame, speed_ratio: float, params: EstimateParams
) -> pd.DataFrame:
    """The same for whole runs of jobs with LEAST_RUNS of them on each machine type alone, before and after.

    runtimes_s: of runs of both times, by run_id. truth: with_slowdowns, later vertices of all jobs."""
    source, target = basis.pools.source, basis.pools.target
    rows = []
    for job in sorted(basis.history["job"].unique()):
        when = ((basis.history, source), (basis.history, target), (truth, target))
        here, there, later = (
            runtimes_s.reindex(runs_on(one, job, kind)["run_id"].unique()).dropna() for one, kind in when
        )
        if min(len(here), len(there), len(later)) < LEAST_RUNS:
            continue
        told, true_s = transfer_job(basis, here, job, params), later.to_numpy(float)
        said = {
            "as it is": here.to_numpy(float),
            "× speed": here.to_numpy(float) * speed_ratio,
            "ours": told.draws,
            "own history there": there.to_numpy(float),
        }
        rows += [{"method": name, **stage_figures(draws, true_s, params.confidence)} for name, draws in said.items()]
        wide = stage_figures(told.draws, true_s, params.confidence, told.widening.interval)
        rows.append({"method": "ours, calibrated", **wide})
    return _means(rows)


def _means(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    if not rows:
        raise BadInput("history", "nothing ran often enough on both machine types", "a longer history", "")
    found = pd.DataFrame(list(rows))
    by_method = found.groupby("method", sort=False)
    return by_method.mean().assign(n=by_method.size()).reset_index()


DEADLINES = (0.5, 0.75, 0.9)  # quantiles of the truth


def stage_figures(draws: Floats, truth_s: Floats, confidence: float, widening: float = 0.0) -> dict[str, float]:
    """How well draws agree with what happened; see evaluate_stages."""
    low, high = stage_interval(draws, confidence, widening)
    deadlines = np.quantile(truth_s, DEADLINES)
    risks: Sequence[float] = [abs(float((draws > one).mean()) - float((truth_s > one).mean())) for one in deadlines]
    return {
        "ks": float(stats.ks_2samp(draws, truth_s, method="asymp").statistic),
        "coverage": float(((truth_s >= low) & (truth_s <= high)).mean()),
        "width": high / low,
        "risk_error": float(np.mean(risks)),
        "risk_error_quarter": risks[1],
    }


# what a token is worth there, in cores: data/recorded/jobs/README.md
RECORDED_SPEEDS = {"gen3": 0.06, "gen4": 0.08, "gen5": 0.1}
EARLIER, LATER = "D1", ("D2", "D3")


def main(folder: str) -> None:
    """Print the evaluation on recorded jobs: `python -m tests.studies.transfer data/recorded/jobs`.

    What D1 says of a machine type against what D2 and D3 were there, for stages and for whole runs."""
    names = ["run_id", "job", "plan_signature", "submitted_at", "status", "period", "vertices", "runtime_s"]
    paths = sorted(Path(folder).glob("runs-*.parquet"))
    runs = pd.concat([pd.read_parquet(path, columns=names) for path in paths], ignore_index=True)
    runs = runs.assign(group_key=runs["job"] + "#" + runs["plan_signature"])
    vertices = with_slowdowns(vertices_of(runs).merge(runs[["run_id", "period"]], on="run_id"))
    runtimes_s, params = runs.set_index("run_id")["runtime_s"], EstimateParams()
    history, truth = vertices[vertices["period"] == EARLIER], vertices[vertices["period"].isin(LATER)]
    for source, target in (("gen5", "gen3"), ("gen3", "gen5")):
        basis, ratio = basis_of(history, source, target, params), RECORDED_SPEEDS[source] / RECORDED_SPEEDS[target]
        for what, table in (
            ("stages", evaluate_stages(basis, truth, ratio, params)),
            ("runs", evaluate_runs(basis, runtimes_s, truth, ratio, params)),
        ):
            print(f"{source} to {target}, {what}\n{table.to_string(index=False, float_format='{:.3f}'.format)}\n")


if __name__ == "__main__":
    main(sys.argv[1])
