"""Next runs that are likely to be late: how likely, what that costs a day, why, and which change would help.

Reason and help are those of `explain` and `whatif` for the same job: of the same distributions of its next run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.choices import Named
from tasks.errors import BadInput
from tasks.jobs.control.answering import Subjects, placement_of
from tasks.jobs.control.scenarios import apply, named_scenario
from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Family
from tasks.jobs.explain.reasons import Explainer, RunReasons, explain_next_runs, load_explainer
from tasks.jobs.predict.predicting import NextRuns, pooled, predict_next
from tasks.jobs.scores import wilson
from tasks.quantities import duration, share
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

RHYTHM = Path(__file__).with_name("lateness.sql")
GAPS, IDLE = 20, 3.0  # idle: without a run for so many times the longest of the job's last gaps, and for a day
HISTORY: Family = "history"
LEVEL = 0.95  # of the quantile that a change should lower
LEAST_HELP = 0.01  # of that quantile: what takes less off is said to be no help
CHANGES: dict[Named, str] = {
    "newest_sku": "running it on the newest machines",
    "no_spare": "giving it no spare tokens",
    "steady_load": "steadier load",
}
NO_REASON = "no single cause that is known before it starts makes it 5 % longer"
FEW_RUNS = "the {n} runs of the job count little beside others, of its user, its request and the log, which took longer"
LEAST_STOPPED = 0.05  # chance to be stopped that is worth a word
MANY, FAR = 20, 2.0  # runs by which a job is known; times the usual from which that has to be said
CHANGED = "its last {n} runs took {last}, in the median: it takes longer than it used to"
LONGER, SURE = 1.05, 0.99  # times the usual; that more than half of such runs take longer than the usual
NO_HELP = "none of the changes that were tried, by the model"
NOT_KNOWN = "not known: the log tells nothing of machines, spare tokens or load"


def with_costs(warehouse: Warehouse, source: str, predictions: pd.DataFrame) -> pd.DataFrame:
    """Rows of jobs.predictions of one model with runs_per_day, cost_s_per_day and is_idle.

    is_idle: the job has not run for long, so no next run is due."""
    if predictions.empty:
        return predictions
    parameters = {"source": source, "now": predictions["predicted_at"].iloc[0], "gaps": GAPS, "idle": IDLE}
    rows = predictions.merge(fetch(warehouse, RHYTHM.read_text(), parameters), on="group_key", how="left")
    return rows.assign(cost_s_per_day=rows["expected_excess_s"] * rows["runs_per_day"])


def with_answers(warehouse: Warehouse, source: str, rows: pd.DataFrame, *, most: int) -> pd.DataFrame:
    """Rows of with_costs with reason, help, help_share, help_p95_s, would_help and answer.

    reason, would_help: words; help: name of the change of CHANGES that takes most off the time that 95 % stay under,
    None if none does; help_share: by how much, as a share below 0; help_p95_s: what it would be; answer: all of it in
    one sentence. They are found for the first `most` rows, and missing in others. Raises NotFound without a model."""
    if rows.empty:
        return rows
    explainer = load_explainer(warehouse, source)
    with threadpool_limits(1):
        next_runs = predict_next(explainer.trained, explainer.runs, keys=rows["group_key"].iloc[:most].tolist())
        reasons = [reason_of(found) or without_reason(found) for found in explain_next_runs(explainer, next_runs)]
        helps = helps_of(explainer, next_runs)
    rows = rows.merge(helps.assign(group_key=next_runs.jobs["group_key"], reason=reasons), on="group_key", how="left")
    return rows.assign(answer=[next_words(row) for row in rows.to_dict("records")])


def reason_of(run_reasons: RunReasons) -> str | None:
    """The first cause that makes a run longer, else its job more variable, in words; None without one.

    What earlier runs took is a cause of neither: it comes last, and of the run alone. Of a run that is expected to take
    FAR times its usual no variation says why."""
    is_far = run_reasons.expected_s > FAR * run_reasons.usual_s > 0
    variation = run_reasons.variation.reasons if run_reasons.variation and not is_far else ()
    history = [reason for reason in run_reasons.runtime.reasons if reason.family == HISTORY]
    both = [*run_reasons.runtime.reasons, *variation]
    ordered = [*(reason for reason in both if reason.family != HISTORY), *history]
    return next((reason.text for reason in ordered if reason.contribution > 0), None)


def without_reason(run_reasons: RunReasons) -> str:
    """What is said where no cause makes a run longer: that its job has changed, has few runs, or none of both."""
    expected_s, usual_s, n = run_reasons.expected_s, run_reasons.usual_s, run_reasons.n_usual
    has_changed = n > 0 and wilson(run_reasons.n_longer, n, SURE)[0] > 0.5  # half of all runs are above the median
    if has_changed and expected_s > LONGER * usual_s > 0:
        return CHANGED.format(n=n, last=duration(run_reasons.last_s))
    is_outweighed = n < MANY and expected_s > FAR * usual_s > 0  # without a usual time there is no run at all
    return FEW_RUNS.format(n=n or "one or two") if is_outweighed else NO_REASON


def helps_of(explainer: Explainer, next_runs: NextRuns) -> pd.DataFrame:
    """Of each job in `next_runs` the change of CHANGES that helps its next run most: the columns of with_answers."""
    job, features = next_runs.conditions["job"].to_numpy(dtype=np.int64), next_runs.features
    unknown = np.full(len(features), np.nan)  # a quantile needs no historic median
    placement = placement_of(explainer.trained, explainer.runs)
    subjects = Subjects(explainer.trained, next_runs.conditions, features, next_runs.known, unknown, placement)
    before_s, after_s = next_runs.predicted.quantile(LEVEL), dict[Named, Floats]()
    for name in CHANGES:
        try:  # each job by itself: what one knew of a machine, others need not know
            edited = [apply(named_scenario(name), features[job == number]) for number in range(len(next_runs.jobs))]
        except BadInput:  # the log does not have what is changed
            continue
        after_s[name] = pooled(subjects.predict(pd.concat(edited)), job).quantile(LEVEL)
    changed_s = ({name: float(times[at]) for name, times in after_s.items()} for at in range(len(before_s)))
    return pd.DataFrame([_help(before, after) for before, after in zip(before_s.tolist(), changed_s, strict=True)])


def _help(before_s: float, after_s: Mapping[Named, float]) -> dict[str, Any]:
    nothing = {"help": None, "help_share": np.nan, "help_p95_s": np.nan}
    if not after_s:
        return nothing | {"would_help": NOT_KNOWN}
    best = min(after_s, key=lambda name: after_s[name])
    if not after_s[best] < (1 - LEAST_HELP) * before_s:
        return nothing | {"would_help": NO_HELP}
    words = f"{CHANGES[best]}: 95 % under {duration(after_s[best])} in place of {duration(before_s)}, by the model"
    change = (after_s[best] - before_s) / before_s
    return {"help": best, "help_share": change, "help_p95_s": after_s[best], "would_help": words}


def next_words(row: Mapping[Any, Any]) -> str:
    """One row of with_answers as a sentence."""
    parts = [f"95 % sure to end within {duration(row['p95_s'])}"]
    if not pd.isna(row["exceeds_2x_share"]):
        chance = f"{share(row['exceeds_2x_share'])} chance to take twice its usual {duration(row['usual_s'])}"
        parts = [f"{chance}; {parts[0]}"]
    if row.get("at_limit_share", 0.0) >= LEAST_STOPPED:  # NaN without a limit
        parts.insert(0, f"{share(row['at_limit_share'])} chance to be stopped at its time limit")
    cost = f"expected beyond the usual: {duration(row['expected_excess_s'])} a run"
    parts.append(cost if pd.isna(row["cost_s_per_day"]) else f"{cost}, {duration(row['cost_s_per_day'])} a day")
    if not pd.isna(row["reason"]):
        parts += [f"why: {row['reason']}", f"what would help: {row['would_help']}"]
    return f"{row['group_key']}: {'; '.join(parts)}"
