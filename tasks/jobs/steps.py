"""The steps of `jobs`: keys in, keys and figures out. Flows wrap them; the command line may call those that only ask.

What needs trees, charts or a recorder is imported where it is used: seconds that other steps need not pay."""

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from tasks.errors import BadInput, report_progress
from tasks.jobs import intake
from tasks.jobs.params import (
    CharacteriseParams,
    DriftParams,
    EvaluateParams,
    ExplainParams,
    GroupParams,
    ReadParams,
    RecordParams,
    SummaryParams,
    WatchParams,
    WhatIfParams,
)
from tasks.jobs.summary import summarise as summarise_source
from tasks.jobs.summary import tell_simulated
from tasks.jobs.watch import watch_source
from tasks.warehouse import ingest
from tasks.warehouse.alarms import unannounced
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import folder_of

if TYPE_CHECKING:
    from tasks.jobs.characterise import Characterised
    from tasks.jobs.evaluate import Evaluation
    from tasks.jobs.predict.predicting import Predicted

logger = logging.getLogger(__name__)
NOT_SET = GroupParams()


class Recording(TypedDict):
    """Where a recording is, and what the call added. isolation: what held vertices to their tokens, or `none`.

    own_cores_ratio: CPU time of the recorder itself over the time that it took, in cores."""

    folder: str
    isolation: str
    n_runs: int
    own_cores_ratio: float


class Grouped(TypedDict):
    """What a job is in a source. parts: of its key; key: why, as a sentence; better: what would predict better by now,
    and the command that changes it; batches: ids of the files that were read, which grouping anew changes."""

    parts: list[str]
    key: str
    better: str
    batches: list[str]


class TrainedModel(TypedDict):
    """model_id: of the new model; champion_id: of the one in use now; crps: of the new one on held-out runs, seconds.

    shapes: by normalisation the name of the shapes that it used; key, better: as of Grouped; own: the figures that say
    which columns of one's own table it uses, and which not and why."""

    model_id: str
    champion_id: str
    data_version: str
    crps: float
    shapes: dict[str, str]
    key: str
    better: str
    own: dict[str, Any]


class WhatIfAnswers(TypedDict):
    """What stands in jobs.what_ifs now. scenarios: their names; refused: line by name of those that the log has not."""

    model_id: str
    scenarios: list[str]
    refused: dict[str, str]
    right_share: dict[str, float | None]


def land_log(warehouse: Warehouse, path: str, source: str, reader: str, read: ReadParams, group: GroupParams) -> str:
    """Read one log into the landing folder, grouped as the source is; returns the batch id."""
    from tasks.jobs.job_keys import in_use

    batch = intake.land_log(warehouse, path, intake.Intake(source, reader, read, in_use(warehouse, source, group)))
    n_rows, n_refused = batch.tables["runs"].n_rows, batch.n_quarantined
    logger.info("read %s with %s: %d rows, %d refused", path, batch.origin.reader, n_rows, n_refused)
    return batch.batch_id


def ingest_batch(warehouse: Warehouse, batch_id: str) -> str:
    """Load a landed batch into the warehouse; returns its id."""
    is_new = ingest.ingest(warehouse, intake.WORD, batch_id)
    logger.info("batch %s %s", batch_id, "loaded" if is_new else "was in the warehouse already")
    return batch_id


def group_source(warehouse: Warehouse, source: str, group: GroupParams, batches: list[str]) -> Grouped:
    """Decide what a job is in a source, where it is not decided, and group its runs by it.

    batches: read just now; without any there is nothing to decide."""
    from tasks.jobs.job_keys import ids_now, settle_key

    if not batches:
        return Grouped(parts=[], key="", better="", batches=[])
    key = settle_key(warehouse, source, group)
    return Grouped(parts=[*key.by], key=key.reason, better=key.better, batches=ids_now(warehouse, batches))


def summarise(warehouse: Warehouse, source: str, summary: SummaryParams, after: Sequence[str] = ()) -> str:
    """Write jobs.groups anew; returns the data version that it saw.

    after: keys of what this rests on (batch ids): a continued run with other keys does the step again."""
    logger.debug("summarising %s after %s", source, after)
    data_version = summarise_source(warehouse, source, summary)
    tell_simulated(warehouse, source)
    return data_version


def watch(warehouse: Warehouse, source: str, watch: WatchParams, drift: DriftParams) -> list[str]:
    """Raise an alarm for every slow run, stopped and drifted job; returns the ids of those nobody was told of yet.

    These are the new ones, and the ones of an earlier run that was killed before it could announce them."""
    watch_source(warehouse, source, watch, drift)
    return unannounced(warehouse, intake.WORD, source) if warehouse.file.exists() else []


def record(params: RecordParams, out_dir: str) -> Recording:
    """Run and record recurring jobs on this machine; returns the folder of the recording, and figures."""
    from tasks.jobs.record.campaign import record_jobs

    summary = record_jobs(params, Path(out_dir), partial(report_progress, "recording jobs"))
    logger.info("recorded %s", summary)
    return Recording(
        folder=out_dir,
        isolation=summary.isolation,
        n_runs=sum(summary.recorded.values()),
        own_cores_ratio=summary.more["own_cores_ratio"],
    )


def train(
    warehouse: Warehouse, source: str, evaluate: EvaluateParams, run_id: str, group: GroupParams = NOT_SET
) -> TrainedModel:
    """Train a model on a source, measure it on held-out runs, and put it into use if it is the better one.

    run_id: of the flow run; the same run, data and parameters make the same model once. What a job is has been decided
    by then; group.by, if set, changes it."""
    from tasks.jobs.job_keys import settle_key
    from tasks.jobs.predict.trained import load_trained, shape_names
    from tasks.jobs.predict.training import METRIC, train_source, write_figures

    tell_simulated(warehouse, source)
    key = settle_key(warehouse, source, group, is_final=True)
    training = train_source(warehouse, source, evaluate, run_id=run_id)
    write_figures(warehouse, source, training.model_id, training.figures)
    return TrainedModel(
        model_id=training.model_id,
        champion_id=training.champion_id,
        data_version=training.data_version,
        crps=float(training.figures[METRIC]),
        shapes=shape_names(load_trained(folder_of(warehouse.models, intake.WORD, training.model_id)).shapes),
        key=key.reason,
        better=key.better,
        own={name: value for name, value in training.figures.items() if name.startswith("own.")},
    )


def predict(warehouse: Warehouse, source: str) -> "Predicted":
    """Write the next run of every job of a source, as its champion predicts it, to jobs.predictions."""
    from tasks.jobs.predict.predicting import predict_source

    predicted = predict_source(warehouse, source)
    n_jobs, model_id = predicted["n_jobs"], predicted["model_id"]
    logger.info("predicted the next run of %d jobs of source %s by %s", n_jobs, source, model_id)
    return predicted


def characterise(warehouse: Warehouse, source: str, params: CharacteriseParams) -> "Characterised":
    """Find the typical runtime distributions of a source, and the shape of each of its jobs."""
    from tasks.jobs import characterise as characterising

    return characterising.characterise(warehouse, source, params)


def evaluate_logs(
    logs: list[str],
    reader: str,
    read: ReadParams,
    group: GroupParams,
    evaluate: EvaluateParams,
    memory_mb: int,
    folder: str,
) -> dict[str, Any]:
    """The figures of an evaluation of job logs, read into a temporary warehouse; `report`: path of its page.

    folder: where the page and the tables behind it are written."""
    from tasks.jobs import evaluate as evaluating

    evaluation = evaluating.evaluate_logs(
        logs, intake.Intake(evaluating.SOURCE, reader, read, group), evaluate, memory_mb
    )
    return {
        **evaluation.figures,
        "report": write_evaluation(evaluation, ", ".join(Path(log).name for log in logs[:3]), folder),
    }


def evaluate_source(warehouse: Warehouse, source: str, evaluate: EvaluateParams, folder: str) -> dict[str, Any]:
    """The figures of an evaluation of the runs of a source; no model is kept. folder, `report`: as for logs."""
    from tasks.jobs.predict import training

    evaluation = training.evaluate_source(warehouse, source, evaluate)
    return {**evaluation.figures, "report": write_evaluation(evaluation, f"source {source}", folder)}


def write_evaluation(evaluation: "Evaluation", name: str, folder: str) -> str:
    """Write the tables of an evaluation as Parquet, and a page with its figures; returns the path of the page."""
    from tasks.jobs.evaluate import write_tables
    from tasks.report.jobs_evaluation import evaluation_result
    from tasks.report.page import write_result

    write_tables(evaluation, Path(folder))
    return str(write_result(Path(folder), "jobs-evaluation", evaluation_result(evaluation, name)))


def explain_source(warehouse: Warehouse, source: str, explain: ExplainParams) -> str:
    """Write jobs.cause_families and jobs.insights of a source anew; returns the id of the model.

    Raises NotFound for a source without runs or model, BadInput where the model has seen all runs."""
    from tasks.jobs.explain.reasons import load_explainer
    from tasks.jobs.explain.whole_source import explain_source as explained
    from tasks.jobs.explain.whole_source import write_source

    reasons = explained(load_explainer(warehouse, source))
    write_source(warehouse, source, reasons, explain)
    n_runs = int(reasons.families["n_runs"].max())
    logger.info("explained %d held-out runs of source %s by model %s", n_runs, source, reasons.model_id)
    return reasons.model_id


def explain_runs(warehouse: Warehouse, source: str, explain: ExplainParams, after: str = "") -> int:
    """Write jobs.reasons of a source anew: of its longest recent runs and of the next runs of its riskiest jobs.

    Returns the number of rows. after: key of what this rests on (the model): a continued run with another key does
    the step again. Raises NotFound for a source without runs or model."""
    from tasks.jobs.explain.reasons import explain_notable_runs, load_explainer
    from tasks.jobs.explain.whole_source import write_reasons

    logger.debug("reasons of %s after %s", source, after)
    explanations = explain_notable_runs(load_explainer(warehouse, source), explain)
    n_rows = write_reasons(warehouse, source, explanations)
    logger.info("wrote %d reasons of %d runs of source %s", n_rows, len(explanations), source)
    return n_rows


def ask_what_ifs(
    warehouse: Warehouse,
    source: str,
    scenarios: list[str],
    sets: list[str],
    shifts: list[str],
    stds: list[str],
    whatif: WhatIfParams,
) -> WhatIfAnswers:
    """Answer named scenarios, and one of the free-form changes together, and write the answers.

    A scenario that the log does not have the features for is refused with a line, and does not hold up the others.
    Raises BadInput if none is left, and as ask_source does."""
    from tasks.jobs.control.answering import ask_source, write_answer
    from tasks.jobs.control.scenarios import parse_scenario

    parsed = [parse_scenario(scenario=name) for name in scenarios]
    parsed += [parse_scenario(sets=sets, shifts=shifts, stds=stds)] if [*sets, *shifts, *stds] else []
    ground = ask_source(warehouse, source)
    summary = WhatIfAnswers(model_id=ground.model_id, scenarios=[], refused={}, right_share={})
    errors: list[BadInput] = []
    for scenario in parsed:
        try:
            answer = ground.answer(scenario, whatif)
        except BadInput as error:
            summary["refused"][scenario.name] = str(error)
            errors.append(error)
            continue
        write_answer(warehouse, source, ground.model_id, answer, whatif)
        summary["scenarios"].append(scenario.name)
        directions = answer.measured.score.directions if answer.measured else None
        right = summary["right_share"][scenario.name] = directions.share if directions else None
        accuracy = "not measured" if right is None else f"{100 * right:.0f} % of the measured directions right"
        logger.info("what if %s in source %s: %s", scenario.name, source, accuracy)
    if errors and not summary["scenarios"]:
        raise errors[0]
    return summary
