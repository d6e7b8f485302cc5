"""`whorl jobs evaluate`: the whole protocol on any readable job log: its figures by key, and the tables behind them.

A key is `<part>.<measure>[.<slice>]`; what cannot be had is None, with `<key>.reason` beside it."""

import hashlib
import logging
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.intake.files import open_plain
from tasks.jobs.intake import WORD, Intake, find_logs, land_log
from tasks.jobs.job_keys import AS_SET, GIVEN, KeyChoice, choose_key
from tasks.jobs.params import EvaluateParams, Kind
from tasks.jobs.predict.features import OWN
from tasks.jobs.predict.mixture import SUPPORT
from tasks.jobs.predict.outcomes import ENDED, Outcomes, evaluate_outcomes
from tasks.jobs.predict.preparation import KINDS, PreparedLog, named_columns, prepare, read_runs
from tasks.jobs.predict.runtime_evaluation import RuntimeEvaluation, evaluate_runtimes, table_of
from tasks.jobs.predict.shape_labels import LabelEvaluation, Reference, evaluate_labels
from tasks.jobs.scores import ENDS, Figures, known
from tasks.jobs.watch import excess_scores, history_quantiles, median_and_high, score_thresholds
from tasks.storage import storage_of
from tasks.warehouse.connection import reading
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import code_version

SOURCE = "evaluated"
CHUNK_BYTES = 1 << 20
REFERENCES = ("ceiling", "history_baseline")
NOT_SCORED = {  # what is compared with the model where the log allows it, and why it may not
    "user_request": "the log names no users",
    "stacked": "too few runs to choose weights by",
    "global": "no job has a median of more than 0 s",
    "paper_ratio": "there are no shapes of ratios",
    "paper_delta": "there are no shapes of differences",
}
TABLE_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
LEAST_ALARMS = 30  # that are expected in the test period, whatever its length: fewer say nothing of a rate
LONGER, LEAST_RUNS = 3.0, 20  # test runs of jobs with so many earlier ones are made so many times as long
MOST_ALARMED = 0.5  # of the runs, in a log with few runs a day
DAY = np.timedelta64(1, "D")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Evaluation:
    """figures: number, text or None by key, and `<key>.reason` beside a None; the rest for tables and figures.

    labels: by kind, without those that could not be learnt; outcomes: how runs end, None where no limit says."""

    figures: Figures
    prepared: PreparedLog
    labels: dict[Kind, LabelEvaluation]
    runtimes: RuntimeEvaluation
    outcomes: Outcomes | None


def evaluate_logs(paths: Sequence[str], intake: Intake, params: EvaluateParams, memory_mb: int) -> Evaluation:
    """Read the logs into a temporary warehouse and evaluate their runs.

    Raises BadInput for a path that is no job log, and for logs without enough runs."""
    logs = find_logs(list(paths))
    with tempfile.TemporaryDirectory(prefix="whorl-evaluate-") as folder:
        warehouse = Warehouse(home=Path(folder), memory_mb=memory_mb)
        for log in logs:
            ingest(warehouse, WORD, land_log(warehouse, log, intake).batch_id)
        runs, ended = read_runs(warehouse, SOURCE), read_runs(warehouse, SOURCE, statuses=ENDED)
        with reading(warehouse) as connection:
            named = named_columns(connection, SOURCE)
    if runs.empty:
        failed = f", {len(ended):,} that failed or were stopped" if len(ended) else ""
        problem = f"no finished run with a runtime{failed}"
        raise BadInput(", ".join(logs[:3]), problem, "runs that have completed", "give more of the log")
    with threadpool_limits(1):
        choice = None if intake.group.by else choose_key(runs, params.predict.characterise.split)
        if choice:
            runs, ended = choice.regrouped(runs), choice.regrouped(ended)
        evaluation = evaluate_runs(runs, params, ended, named)
    evaluation.figures.update(key_figures(choice, intake.group.by))
    evaluation.figures.update(data_sha256=_sha256(logs), version=code_version(), seed=params.seed)
    return evaluation


def evaluate_runs(
    runs: pd.DataFrame, params: EvaluateParams, ended: pd.DataFrame | None = None, named: Collection[str] = ()
) -> Evaluation:
    """Split the runs by time, learn from the earlier ones, score the later ones. runs: of read_runs; ended: the same
    with those that failed or were stopped (default: there are none), for the chances of how a run ends; named: own
    columns that may be features (`preparation.leaks`).

    Raises BadInput for a log with fewer than three times of submission."""
    predict_params = params.predict
    prepared = prepare(runs, predict_params.characterise, named=named, known_before=predict_params.known_before)
    figures = log_figures(prepared)
    labels: dict[Kind, LabelEvaluation] = {}
    for kind in KINDS:
        reason = ""
        try:
            labels[kind] = evaluate_labels(prepared, kind, params)
        except BadInput as error:  # no job with enough runs: runtimes are still predicted
            reason = str(error)
            logger.warning("%s: which shape a job will have is not predicted (%s)", kind, error)
        figures |= label_figures(prepared, kind, labels.get(kind), reason)
    runtimes = evaluate_runtimes(prepared, {kind: label.probabilities for kind, label in labels.items()}, params)
    of_outcomes, outcomes = evaluate_outcomes(runs if ended is None else ended, params.seed)
    figures |= runtime_figures(runtimes) | watch_figures(prepared, runtimes) | of_outcomes
    return Evaluation(figures, prepared, labels, runtimes, outcomes)


def key_figures(choice: KeyChoice | None, given: Sequence[str]) -> Figures:
    """What a job is in this evaluation, why, and what the history rule reaches by other keys; given: as it was set."""
    if choice is None:
        return {"group.by": ",".join(given), "group.reason": AS_SET}
    crps_s = {f"group.crps.{key}": value for key, value in choice.crps_s.items()}
    return {"group.by": ",".join(choice.by) or GIVEN, "group.reason": choice.reason} | crps_s


def log_figures(prepared: PreparedLog) -> Figures:
    """n, groups, recurring_share, and how the log was split."""
    runs = prepared.runs
    figures: Figures = {
        "n": len(runs),
        "groups": int(runs["group_key"].nunique()),
        "recurring_share": float(runs["group_key"].duplicated(keep=False).mean()),
    }
    used = [str(name).removeprefix(OWN) for name in prepared.features if str(name).startswith(OWN)]
    if used or prepared.left_out:
        figures |= {"own.used": used} | {f"own.left_out.{name}": why for name, why in prepared.left_out.items()}
    for part, part_runs in runs.groupby("part", observed=False):
        figures[f"split.n.{part}"] = len(part_runs)
        figures[f"split.groups.{part}"] = int(part_runs["group_key"].nunique())
    sources = runs["median_source"][prepared.is_part("D3")].value_counts(normalize=True)
    figures |= {f"median_source.share.{source}": float(value) for source, value in sources.items()}
    return figures


def label_figures(prepared: PreparedLog, kind: Kind, evaluation: LabelEvaluation | None, reason: str) -> Figures:
    """Shapes, and the accuracy of their labels beside its references, for one normalisation."""
    shapes = prepared.shapes.get(kind)
    of_shapes: dict[str, float | None] = {"k": 0, "inertia": None, "low": None, "high": None}
    if shapes:
        ends = {"low": shapes.bins.low, "high": shapes.bins.high}
        of_shapes = {"k": len(shapes.centres), "inertia": shapes.inertia, **ends}
    figures = known({f"shapes.{name}.{kind}": value for name, value in of_shapes.items()}, reason)
    if kind == "ratio":
        figures |= known({f"shapes.{name}": of_shapes[name] for name in ("k", "inertia")}, reason)
    why = reason or "no test run of a job with enough runs in the test period"
    report, measures = evaluation.report if evaluation else None, ("accuracy", "accuracy_group", "log_loss")
    figures |= known({f"label.{measure}.{kind}": getattr(report, measure, None) for measure in measures}, why)
    figures[f"label.n.{kind}"] = report.n if report else 0
    for name in REFERENCES:
        score = evaluation.references[name] if evaluation else Reference(None, None, 0, 0, why)
        both = {f"label.{name}.{kind}": score.by_run, f"label.{name}_group.{kind}": score.by_group}
        figures |= known(both, score.reason)
    for row in evaluation.occurrences.to_dict("records") if evaluation else []:
        by_history = {f"label.{name}_by_history.{kind}.{row['slice']}": row[name] for name in ("model", *REFERENCES)}
        figures |= known(by_history, "no such job has enough runs")
    return figures


def runtime_figures(evaluation: RuntimeEvaluation) -> Figures:
    """Scores of the predicted runtime distributions of each predictor."""
    figures: Figures = {"predict.n": len(evaluation.rows)}
    for part, weights in evaluation.model.weights.items():
        figures |= {
            f"model.weight.{part}.{least}": weight for least, weight in zip((0, *SUPPORT), weights, strict=True)
        }
    figures |= {f"model.{name}": getattr(evaluation.model, name) for name in ("is_relative", "is_one_enough", "ends")}
    figures |= known({"model.grace": evaluation.model.grace}, "time limits are not kept, or there are none")
    for name, scored in evaluation.scored.items():
        figures |= known({f"predict.{measure}.{name}": value for measure, value in scored.measures.items()})
        figures |= known({f"predict.ks_group.{name}": scored.ks_group.value}, scored.ks_group.reason)
        figures[f"predict.ks_group_n.{name}"] = scored.ks_group.n_groups
        figures |= {f"predict.coverage90_tenth.{name}.{at}": share for at, share in enumerate(scored.tenths, start=1)}
        figures |= known({f"unseen.crps.{name}": scored.unseen_crps}, "every tested job had run before")
    for name, reason in NOT_SCORED.items():
        if name not in evaluation.scored:
            measures = ("predict.crps", *(f"difference.crps{end}" for end in ENDS))
            figures |= known(dict.fromkeys(f"{measure}.{name}" for measure in measures), reason)
    figures["unseen.n"] = evaluation.scored["model"].n_unseen
    for name, difference in evaluation.differences.items():
        figures |= difference.figures("difference.crps", name)
    return figures


def watch_figures(prepared: PreparedLog, evaluation: RuntimeEvaluation) -> Figures:
    """Alarms for slow runs in the test period, by the model and by the job's own history, at one stated budget a day.

    The budget is one a day, or what gives LEAST_ALARMS in the test period. Every alarm counts, so a ratio near 1 says
    that the stated rate is kept. Tripled: the test runs of jobs with LEAST_RUNS earlier ones, LONGER times as long."""
    runs = prepared.runs.iloc[evaluation.seen]
    submitted_at, ended_at = runs["submitted_at"].to_numpy(), runs["ended_at"].to_numpy()
    is_test = np.arange(len(evaluation.seen)) >= len(evaluation.seen) - len(evaluation.rows)
    days = (submitted_at[is_test][-1] - submitted_at[is_test][0]) / DAY
    if not days > 0:
        return {"watch.budget": None, "watch.budget.reason": "the test runs were submitted at one moment"}
    log_s = np.log(np.maximum(runs["runtime_s"].to_numpy(dtype=float), evaluation.model.least_s))
    n_earlier = prepared.runs.groupby("group_key").cumcount().to_numpy()[evaluation.seen]
    is_longer = (n_earlier >= LEAST_RUNS)[is_test]
    budget = max(1.0, LEAST_ALARMS / days)
    figures: Figures = {"watch.budget": budget, "watch.days": float(days), "watch.tripled_n": int(is_longer.sum())}
    quantiles = {"": median_and_high(evaluation.quantiles), ".history": history_quantiles(runs, prepared.runs)[:2]}
    for name, (median, high) in quantiles.items():
        scores, longer = (excess_scores(median, high, log_s + more) for more in (0.0, np.log(LONGER)))
        known_at = np.where(np.isfinite(median), ended_at, np.datetime64("NaT"))
        limits = score_thresholds(scores, submitted_at, known_at, budget, most_share=MOST_ALARMED)
        n_alarms = int((scores > limits.score)[is_test].sum())
        figures |= {f"watch.n_alarms{name}": n_alarms, f"watch.alarms_per_day{name}": n_alarms / days}
        figures |= known({f"watch.budget_ratio{name}": n_alarms / (budget * days)})
        share = float((longer > limits.score)[is_test][is_longer].mean()) if is_longer.any() else None
        figures |= known({f"watch.tripled_found{name}": share}, f"no test run of a job with {LEAST_RUNS} earlier ones")
    return figures


def write_tables(evaluation: Evaluation, folder: Path) -> None:
    """predictors, predictions (a row a test run), and for each normalisation occurrences, importances and confusion."""
    folder.mkdir(parents=True, exist_ok=True)
    table_of(evaluation.runtimes).to_parquet(folder / "predictors.parquet", index=False)
    rows, predicted = evaluation.prepared.runs.iloc[evaluation.runtimes.rows], evaluation.runtimes.predicted
    predictions = rows[["run_id", "group_key", "submitted_at", "runtime_s"]].reset_index(drop=True)
    predictions = predictions.assign(
        **{f"p{round(100 * level):02d}_s": predicted.quantile(level) for level in TABLE_LEVELS},
        crps_s=evaluation.runtimes.scored["model"].crps_by_run,
    )
    predictions.to_parquet(folder / "predictions.parquet", index=False)
    for kind, label in evaluation.labels.items():
        label.occurrences.to_parquet(folder / f"occurrences-{kind}.parquet", index=False)
        label.importances.to_parquet(folder / f"importances-{kind}.parquet", index=False)
        confusion = pd.DataFrame(label.report.confusion).add_prefix("predicted_").rename_axis("actual").reset_index()
        confusion.to_parquet(folder / f"confusion-{kind}.parquet", index=False)


def _sha256(logs: Sequence[str]) -> str:
    """Of the files' contents in the order of their names; of its name for what is no file."""
    total = hashlib.sha256()
    for log in sorted(logs):
        if "://" in log:
            total.update(log.encode())
            continue
        files, name = storage_of(log)
        names = sorted(str(path) for path in files.find(name)) if files.isdir(name) else [name]
        for path in names:
            with open_plain(path) as content:
                while chunk := content.read(CHUNK_BYTES):
                    total.update(chunk)
    return total.hexdigest()
