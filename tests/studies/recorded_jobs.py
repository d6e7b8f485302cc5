"""What a recording holds, as a Markdown table: `python tests/studies/recorded_jobs.py FOLDER [PREDICTIONS]`.

PREDICTIONS, predictions.parquet of `whorl jobs evaluate FOLDER --out`, puts its error beside the least possible one."""

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.jobs.explain.variance import explain_variance
from tasks.jobs.record.run_rows import KINDS
from tasks.jobs.scores import bootstrap_difference
from tasks.record.parts import part_paths

Row = tuple[str, str]
LONG = (2, 3, 10)
KNOWN = "recorded_cause"
ALIKE_LOADS = (math.inf, 0.2, 0.1)  # largest difference of the mean load before the two


def read_recording(folder: Path) -> pd.DataFrame:
    """All runs of a recording; `group` is job and plan signature, `ratio` the runtime over its group's median.

    Medians are of completed runs that nobody changed on purpose. Raises FileNotFoundError where there are no parts."""
    paths = part_paths(folder, KINDS)
    if not paths:
        raise FileNotFoundError(f"{folder}: no part files of a recording")
    runs = pd.concat([pd.read_parquet(path) for path in paths], ignore_index=True)
    runs = runs.assign(group=runs["job"] + " #" + runs["plan_signature"].fillna("none"))
    usual = runs[(runs["status"] == "completed") & runs["what_if"].isna()]
    medians = usual.groupby("group")["runtime_s"].median()
    return runs.assign(ratio=runs["runtime_s"] / runs["group"].map(medians))


def _spread(values: pd.Series, *, digits: int = 2) -> str:
    low, middle, high = values.quantile([0.1, 0.5, 0.9])
    return f"{low:.{digits}f} / {middle:.{digits}f} / {high:.{digits}f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def periods(usual: pd.DataFrame) -> Iterator[Row]:
    """Table 1 of the paper: instances and groups of each period, and what all periods share."""
    counts = usual.groupby(["period", "group"]).size()
    for period, of_period in counts.groupby(level="period"):
        told = f"{of_period.sum():,} runs, {len(of_period)} groups: {(of_period >= 3).sum()} with at least 3 runs"
        yield str(period), f"{told}, {(of_period >= 20).sum()} with 20; median {of_period.median():.0f} runs a group"
    wide = usual.pivot_table(index="group", columns="period", values="run_id", aggfunc="size", fill_value=0)
    yield "in every period", f"{int((wide >= 3).all(axis=1).sum())} groups with at least 3 runs in each"
    by_plan = usual.groupby(["job", "group"]).size().groupby(level="job")
    outside = 1 - by_plan.max().sum() / len(usual)
    changed = f"{int((by_plan.size() > 1).sum())} of {len(by_plan)} jobs"
    yield "changed plans", f"in {changed}; {_percent(outside)} of the runs are outside their job's main plan"
    templates = f"{usual['template'].nunique()} templates, {usual['plan_signature'].nunique()} plan signatures"
    yield "templates", templates


def distributions(usual: pd.DataFrame) -> Iterator[Row]:
    """How runs and groups are spread: 10th, 50th and 90th percentile."""
    yield "runtime, s (10 / 50 / 90 %)", f"{_spread(usual['runtime_s'])}, largest {usual['runtime_s'].max():.1f}"
    yield "CPU of a run, core-seconds", f"{_spread(usual['cpu_s'])}, mean {usual['cpu_s'].mean():.2f}"
    yield "wait, s", _spread(usual["wait_s"])
    grouped = usual.groupby("group")
    large = usual[grouped["run_id"].transform("size") >= 20].groupby("group")
    cov = large["runtime_s"].std() / large["runtime_s"].mean()
    yield "COV of a group with 20 runs", f"{_spread(cov)}, from {cov.min():.2f} to {cov.max():.2f}"
    longer = ", ".join(f"{_percent((usual['ratio'] > times).mean())} over {times} times" for times in LONG)
    yield "long runs, over the group's median", longer
    by_job = usual.groupby("job")
    sizes = by_job["input_bytes"].max() / by_job["input_bytes"].min()
    tokens = by_job["peak_tokens"].max() / by_job["peak_tokens"].min().clip(lower=1)
    yield "largest over smallest input in a job", f"{_spread(sizes, digits=1)}, up to {sizes.max():.0f}"
    yield "largest over smallest peak tokens in a job", f"{_spread(tokens, digits=1)}, up to {tokens.max():.0f}"
    yield "vertices of a run", f"{_spread(usual['vertices'].str.len(), digits=0)}"
    yield "load of the SKUs offered, mean", _spread(usual["load_mean"])
    yield "cores used by other work", _spread(usual["foreign_cores"])


def _sku_shares(usual: pd.DataFrame) -> pd.DataFrame:
    vertices = usual[["run_id", "vertices"]].explode("vertices").dropna()
    flat = pd.DataFrame(list(vertices["vertices"])).assign(run_id=vertices["run_id"].to_numpy())
    seconds = (flat["ended_at"] - flat["started_at"]).dt.total_seconds()
    table = flat.assign(seconds=seconds).pivot_table(index="run_id", columns="sku", values="seconds", aggfunc="sum")
    table = table.fillna(0.0)
    return table.div(table.sum(axis=1), axis=0).reindex(usual["run_id"]).reset_index(drop=True)


def causes(usual: pd.DataFrame) -> Iterator[Row]:
    """What explains the variance inside groups, and the known causes of long runs."""
    done = usual[usual["status"] == "completed"].reset_index(drop=True)
    tokens = done[["requested_cpus", "spare_tokens_available", "spare_tokens_used"]]
    features: dict[str, pd.DataFrame] = {
        "input size": done[["input_bytes"]].transform(np.log1p), "tokens": tokens.transform(np.log1p),
        "SKU": _sku_shares(done), "load": done[["load_mean", "load_sd"]],
        "locks": (done[["lock_wait_s"]] * 10).transform(np.log1p), "cold input": done[["is_cold"]].astype(float),
    }  # fmt: skip
    shares = explain_variance(done["runtime_s"], done["group"], features)
    if shares is not None:
        told = ", ".join(f"{one.cause} {_percent(one.alone)} ({_percent(one.unique)})" for one in shares.causes)
        yield "variance inside groups explained alone (only by it)", f"{told}; together {_percent(shares.together)}"
    counts = done.loc[done["ratio"] > 3, KNOWN].value_counts()
    yield "known cause of runs over 3 times", ", ".join(f"{cause} {count}" for cause, count in counts.items())


def pairs(runs: pd.DataFrame) -> Iterator[Row]:
    """Each what-if against its baseline: the pairs, and the change of runtimes and of their spread."""
    baselines = runs[runs["what_if"] == "baseline"].set_index("run_id")
    for what_if, changed in runs[runs["what_if"].notna() & (runs["what_if"] != "baseline")].groupby("what_if"):
        both = changed[changed["matched_run_id"].isin(baselines.index) & (changed["status"] == "completed")]
        base = baselines.loc[both["matched_run_id"]]
        is_done = (base["status"] == "completed").to_numpy()
        times = both["runtime_s"].to_numpy()[is_done] / base["runtime_s"].to_numpy()[is_done]
        gaps = [np.subtract(*np.quantile(part["ratio"], [0.75, 0.25])) for part in (both, base)]
        told = f"{is_done.sum():,} pairs; runtime over that of the baseline {_spread(pd.Series(times))}"
        spread = f"25th to 75th percentile of the ratio to the median from {gaps[1]:.2f} to {gaps[0]:.2f}"
        yield f"what-if {what_if}", f"{told}; {spread}"


def repetitions(runs: pd.DataFrame, predictions: pd.DataFrame | None) -> Iterator[Row]:
    """Half the mean difference of a run and its unchanged repetition, in s, by how alike the load before them was.

    It is the CRPS of who knows the distribution of the request exactly: the expected score of the true distribution
    is half the mean difference of two draws (Gneiting and Raftery 2007, eq. 21). Less is possible only by what tells
    the two apart, the load. Beside it the CRPS of predictions (run_id, crps_s) of the same runs, and how far it lies
    above, with a 95 % interval over jobs."""
    again = runs[runs["what_if"] == "baseline"].merge(
        runs[runs["what_if"].isna()], left_on="matched_run_id", right_on="run_id", suffixes=("_again", "")
    )
    again = again.assign(half_s=(again["runtime_s_again"] - again["runtime_s"]).abs() / 2)
    if predictions is not None:
        again = again.merge(predictions[["run_id", "crps_s"]], on="run_id")
    for most in ALIKE_LOADS:
        alike = again[(again["load_mean_again"] - again["load_mean"]).abs() <= most]
        told = f"{len(alike):,} runs; half the mean difference {alike['half_s'].mean():.3f} s"
        if predictions is not None:
            beyond = bootstrap_difference(alike["crps_s"], alike["half_s"], alike["job"], np.random.default_rng(0))
            told += (
                f", CRPS {alike['crps_s'].mean():.3f} s, {beyond.value:+.3f} [{beyond.low:+.3f}, {beyond.high:+.3f}]"
            )
        yield "unchanged repetition" + (f", load within {most:g}" if most < math.inf else ""), told


def review(folder: Path, predictions: pd.DataFrame | None = None) -> list[Row]:
    """Every row of the table."""
    runs = read_recording(folder)
    usual = runs[runs["what_if"].isna()]
    statuses = ", ".join(f"{count:,} {status}" for status, count in runs["status"].value_counts().items())
    first, last = runs["submitted_at"].min(), runs["ended_at"].max()
    span = f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
    head = [("runs", f"{len(runs):,}: {statuses}; {span}")]
    return [
        *head,
        *periods(usual),
        *distributions(usual),
        *causes(usual),
        *pairs(runs),
        *repetitions(runs, predictions),
    ]


if __name__ == "__main__":
    print("| | |\n|---|---|")
    for name, told in review(Path(sys.argv[1]), *map(pd.read_parquet, sys.argv[2:3])):
        print(f"| {name} | {told} |")
