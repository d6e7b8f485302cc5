"""The word `jobs` as flows: logs in, summary, shapes, models, reasons, what-ifs, watch, recording."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
from prefect.runtime import flow_run

from flows.engine.artifacts import (
    alarms_part,
    announce,
    facts_part,
    ingest_part,
    joined,
    publish_summary,
    show,
    site_address,
    write_report,
)
from flows.engine.forms import files_or_source, flow, of_evaluation, of_ingest, of_source
from flows.engine.steps import files_or_inbox, load_each, not_all_read, step
from flows.parameters import (
    CharacteriseFlowParams,
    EvaluateFlowParams,
    ExplainFlowParams,
    IngestParams,
    PredictFlowParams,
    RecordFlowParams,
    SummaryFlowParams,
    TrainFlowParams,
    WatchFlowParams,
    WhatIfFlowParams,
)
from tasks.choices import reader_asked_for
from tasks.jobs import intake, steps
from tasks.jobs.params import ExplainParams, SummaryParams
from tasks.jobs.summary import read_summary
from tasks.quantities import plain
from tasks.report.result import count
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.landing import find_batch
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    from tasks.jobs.predict.trained import Trained

logger = logging.getLogger(__name__)
WORD = "jobs"
TAGS = [WORD]
INBOX = "inbox"  # in the home folder
NO_ALARM = "No run was slow, and no job stopped or drifted, that had not been reported before."

find_logs = step(intake.find_logs)
land_log = step(steps.land_log)
ingest_batch = step(steps.ingest_batch)
watch = step(steps.watch)
announce_alarms = step(announce)
record = step(steps.record)
characterise = step(steps.characterise)
train = step(steps.train)
predict = step(steps.predict)
evaluate_logs = step(steps.evaluate_logs)
evaluate_source = step(steps.evaluate_source)
explain_source = step(steps.explain_source)
ask_what_ifs = step(steps.ask_what_ifs)


@step
def summarise(warehouse: Warehouse, source: str, summary: SummaryParams, batches: list[str]) -> str:
    """Summarise a source. batches: what the run has loaded; a continued run that loaded more does it again."""
    logger.info("summarising %s after %d batches", source, len(batches))
    return steps.summarise(warehouse, source, summary)


@flow(name="jobs-ingest", run_name=lambda: of_ingest("paths", "the inbox"), tags=TAGS)
def jobs_ingest(params: IngestParams) -> dict[str, Any]:
    """Read job logs into the warehouse, and summarise their recurring jobs.

    Files that were read before add nothing. A file that cannot be read does not hold up the others: they are loaded,
    and the run fails at its end with a line that says which file and why. Single bad rows go to the quarantine."""
    warehouse, source = params.warehouse, params.source
    reader = reader_asked_for(params.reader)
    is_named = bool(params.paths) and params.paths != [str(warehouse.home / INBOX)]
    logs = files_or_inbox(warehouse, INBOX, params.paths, is_named=is_named, find=find_logs)
    ids, refused = load_each(
        logs, lambda path: ingest_batch(warehouse, land_log(warehouse, path, source, reader, params.read, params.group))
    )
    batches = [find_batch(warehouse.landing_folder, WORD, batch_id) for batch_id in ids]
    part = ingest_part(f"Job logs of source {source}", batches, {"runs": "run"}, refused)
    show(warehouse, WORD, source, "ingest", f"Job logs read into source {source}", part)
    n_rows = sum(batch.tables["runs"].n_rows for batch in batches)
    found = _summary(warehouse, source, params.summary, ids) if params.with_summary and n_rows else {}
    result = {
        "batches": ids,
        "n_rows": n_rows,
        "n_quarantined": sum(batch.n_quarantined for batch in batches),
        "data_version": found.get("data_version", ""),
        "report": found.get("report", ""),
    }
    if refused:
        raise not_all_read(refused, len(logs), "job logs", result)
    return result


@flow(name="jobs-summary", run_name=lambda: of_source("summarise"), tags=TAGS)
def jobs_summary(params: SummaryFlowParams) -> dict[str, Any]:
    """Summarise the recurring jobs of a source: how often each runs and how much its runtime varies."""
    return _summary(params.warehouse, params.source, params.summary, [])


@flow(name="jobs-watch", run_name=lambda: of_source("watch"), tags=TAGS)
def jobs_watch(params: WatchFlowParams) -> dict[str, Any]:
    """Look for runs longer than predicted, also while they go on, and jobs that stopped or drift; alarm of each, once.

    Alarms stand in ops.alarms, and each is an event whorl.jobs.alarm that an automation can mail or send on."""
    warehouse, source = params.warehouse, params.source
    ids = watch(warehouse, source, params.watch, params.drift)
    announce_alarms(warehouse, ids)
    path = write_report(warehouse, WORD, source, ", ".join(ids)) if ids else ""
    title = f"Slow runs, stopped and drifting jobs of source {source}"
    alarms = read_alarms(warehouse, ids=ids, limit=max(1, len(ids)))
    part = alarms_part(title, alarms, NO_ALARM, site_address(warehouse))
    show(warehouse, WORD, source, "alarms", title, part, path=path)
    return {"alarms": ids, "n_alarms": len(ids), "report": path}


@flow(name="jobs-record", run_name=lambda: f"record {flow_run.parameters['minutes']:g} minutes", tags=TAGS)
def jobs_record(params: RecordFlowParams) -> dict[str, Any]:
    """Run real recurring jobs on the worker's machine and record them; a run that is continued goes on where it was."""
    return {**record(params.record, params.folder.replace("{run}", str(flow_run.id)[:8]))}


@flow(name="jobs-characterise", run_name=lambda: of_source("characterise"), tags=TAGS)
def jobs_characterise(params: CharacteriseFlowParams) -> dict[str, Any]:
    """Find the few typical runtime distributions of the first part of a source, and which of them each job follows."""
    from tasks.jobs.characterise import read_characterised
    from tasks.report.jobs_shapes import shapes_result
    from tasks.report.result import as_markdown

    warehouse, source = params.warehouse, params.source
    found = characterise(warehouse, source, params.evaluate.predict.characterise)
    path = write_report(warehouse, WORD, source, f"{found}")
    drawn = [f"{what}-{kind}" for kind in ("ratio", "delta") for what in ("shapes", "inertia")]
    part = as_markdown(shapes_result(source, read_characterised(warehouse, source), ""), pictures=drawn)
    show(warehouse, WORD, source, "shapes", f"The typical runtime distributions of source {source}", part, path=path)
    return {**found, "report": path}


@flow(name="jobs-train", run_name=lambda: of_source("train on"), tags=TAGS)
def jobs_train(params: TrainFlowParams) -> dict[str, Any]:
    """Train a model of the runtimes of a source, and put it into use if it is better than the one before.

    It learns from the earlier runs and is measured on the later ones, beside its baselines; better is a lower CRPS on
    the very same runs. Models stay until they are pruned, so 'whorl models rollback' brings the former one back."""
    from tasks.jobs.predict.training import read_figures  # not above: a second that other flows need not pay

    warehouse, source = params.warehouse, params.source
    found = train(warehouse, source, params.evaluate, str(flow_run.id))
    path = write_report(warehouse, WORD, source, f"{found}")
    figures = read_figures(warehouse, source, found["model_id"])
    parts = (
        f"# A model of the jobs of source {plain(source)}",
        facts_part(training_facts(found, figures), "of the model"),
        _measured(figures),
        draw_largest_job(warehouse, source, found["model_id"]),
    )
    show(warehouse, WORD, source, "model", f"The model of the jobs of source {source}", *parts, path=path)
    return {**found, "report": path}


def training_facts(found: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, str]:
    """What a training came to, in words. figures: of its model."""
    champion = found["champion_id"]
    in_use = (
        "this model" if champion == found["model_id"] else f"{champion}: no worse on the same runs, so it stays in use"
    )
    return {
        "model": found["model_id"],
        "in use": in_use,
        "shapes": ", ".join(found["shapes"].values()),
        "held out": f"{count(figures['predict.n'])} later runs, which the figures below are of",
        "data version": found["data_version"],
    }


@flow(name="jobs-predict", run_name=lambda: of_source("predict"), tags=TAGS)
def jobs_predict(params: PredictFlowParams) -> dict[str, Any]:
    """Predict the next run of every job of a source by the model in use; the riskiest jobs are listed first."""
    warehouse, source, least = params.warehouse, params.source, params.summary.min_support
    found = predict(warehouse, source)
    path = write_report(warehouse, WORD, source, f"{found}")
    figure = draw_riskiest_job(warehouse, source, found["model_id"], least, found["data_version"])
    title, sections = f"The next runs of source {source}", ("Jobs and their next runs",)
    show(warehouse, WORD, source, "predictions", title, figure, path=path, sections=sections)
    return {**found, "report": path}


@flow(name="jobs-evaluate", run_name=lambda: of_evaluation("logs", "logs"), tags=TAGS)
def jobs_evaluate(params: EvaluateFlowParams) -> dict[str, Any]:
    """Measure how well runtimes are predicted with these parameters; figures, tables and a page are kept, no model.

    The figures are the result of the run, so 'whorl runs compare A B' shows two experiments beside each other."""
    folder = str(params.warehouse.home / "reports" / f"jobs-evaluation-{str(flow_run.id)[:8]}")
    if params.logs:
        reader, memory_mb = reader_asked_for(params.reader), params.warehouse.memory_mb
        figures = evaluate_logs(params.logs, reader, params.read, params.group, params.evaluate, memory_mb, folder)
        what, about = files_or_source("logs", "logs"), "logs"
    else:
        figures = evaluate_source(params.warehouse, params.source, params.evaluate, folder)
        what, about = f"source {params.source}", params.source
    parts = (f"# How well the runtimes of {plain(what)} are predicted", _measured(figures))
    show(params.warehouse, WORD, about, "evaluation", f"Evaluation of {what}", *parts, path=figures["report"])
    return figures


@step
def explain_runs(warehouse: Warehouse, source: str, explain: ExplainParams, model_id: str) -> int:
    """Reasons of single runs. model_id: what they are by; a continued run with another model finds them again."""
    return steps.explain_runs(warehouse, source, explain, model_id)


COUNTS = """
SELECT count(DISTINCT run_id) AS n_runs, count(DISTINCT group_key) FILTER (run_id IS NULL) AS n_next
FROM jobs.reasons WHERE source = $source
"""
REASONS = ("What makes runs long", "Why single runs were long", "The paper's insights here")


@flow(name="jobs-explain", run_name=lambda: of_source("explain"), tags=TAGS)
def jobs_explain(params: ExplainFlowParams) -> dict[str, Any]:
    """Say why the longest runs of the last days took so long, why the next runs of the riskiest jobs may, and what
    makes runs of this source long and its jobs variable."""
    warehouse, source = params.warehouse, params.source
    model_id = explain_source(warehouse, source, params.explain)
    n_reasons = explain_runs(warehouse, source, params.explain, model_id)
    path = write_report(warehouse, WORD, source, f"{model_id} {n_reasons}")
    show(warehouse, WORD, source, "reasons", f"Why runs of {source} take long", path=path, sections=REASONS)
    [counts] = fetch(warehouse, COUNTS, {"source": source}).to_dict("records")
    counted = {str(name): int(n) for name, n in counts.items()}
    return {"model_id": model_id, **counted, "n_reasons": n_reasons, "report": path}


@flow(name="jobs-whatif", run_name=lambda: of_source("what if in"), tags=TAGS)
def jobs_whatif(params: WhatIfFlowParams) -> dict[str, Any]:
    """Say what would follow from changes of the jobs of a source, by the model in use, and what must not be concluded.

    Where runs were done again with a change, the predicted effect is held against the measured one."""
    warehouse, source, names = params.warehouse, params.source, [str(name) for name in params.scenarios]
    found = ask_what_ifs(warehouse, source, names, params.sets, params.shifts, params.stds, params.whatif)
    path = write_report(warehouse, WORD, source, f"{found}")
    refused = [f"- {plain(name)}: {plain(line)}" for name, line in found["refused"].items()]
    part = "\n".join(["## What this log cannot answer", *refused]) if refused else ""
    sections = ("What a change would do", *(f"What if: {name}" for name in found["scenarios"]))
    title = f"What would change the runtimes of the jobs of {source}"
    show(warehouse, WORD, source, "whatif", title, part, path=path, sections=sections)
    return {**found, "report": path}


def _summary(warehouse: Warehouse, source: str, summary: SummaryParams, batches: list[str]) -> dict[str, Any]:
    version = summarise(warehouse, source, summary, batches)
    path = write_report(warehouse, WORD, source, version)
    publish_summary(warehouse, WORD, source, path)
    totals = read_summary(warehouse, source)
    return {"data_version": version, "n_runs": totals["n_runs"], "n_groups": totals["n_groups"], "report": path}


def _measured(figures: dict[str, Any]) -> str:
    """The figures of held-out runs: predictors beside each other, and shapes beside their references."""
    from tasks.report.jobs_evaluation import labels_table, predictor_rows, predictors_table
    from tasks.report.result import table_markdown

    parts = [f"## On {int(figures.get('predict.n') or 0):,} later runs that were held out"]
    parts.append(table_markdown(predictors_table(predictor_rows(figures))))
    labels = labels_table(figures)
    return joined([*parts, *((labels.words, table_markdown(labels)) if len(labels.rows) else ())])


MOST_RUNS = 150  # of the job in the figure, the latest
NAME_CHARS = 32  # of its name there, so that it leaves room for what stands beside it
ENOUGH_RUNS = 20
NOT_LEARNT = "The model did not learn from these runs; only the width of its intervals was set by the latest of all."
NEXT = "The last interval is that of the next run."
FINISHED = """
    SELECT run_id, group_key, runtime_s FROM jobs.runs
    WHERE source = $source AND what_if IS NULL AND status IN ('completed', 'unknown') AND runtime_s IS NOT NULL
"""


@step
def draw_largest_job(warehouse: Warehouse, source: str, model_id: str) -> str:
    """The job that took most time since what the model has learnt from, of those with enough runs; "" without any."""
    trained = _load(warehouse, model_id)
    runs = fetch(warehouse, FINISHED, {"source": source})
    of_jobs = runs[~runs["run_id"].isin(trained.seen["run_id"])].groupby("group_key")["runtime_s"]
    sums, sizes = of_jobs.sum(), of_jobs.size()
    enough = sums[sizes >= min(ENOUGH_RUNS, sizes.max())]
    return "" if enough.empty else _part(warehouse, source, trained, str(enough.idxmax()), None)


@step
def draw_riskiest_job(warehouse: Warehouse, source: str, model_id: str, least: int, after: str) -> str:
    """The latest runs and the next one of the job that is listed first; "" without a job or a new run of it.

    least: finished runs that a job needs to be listed; after: data version that was predicted from; a continued run
    with another one draws it again."""
    from tasks.jobs.predict.predicting import read_predictions

    logger.debug("following the riskiest job of %s after %s", source, after)
    first = read_predictions(warehouse, source, min_before=least, limit=1)
    if first.empty:
        return ""
    return _part(warehouse, source, _load(warehouse, model_id), str(first["group_key"].iloc[0]), first)


def _load(warehouse: Warehouse, model_id: str) -> "Trained":
    from tasks.jobs.predict.trained import load_trained
    from tasks.warehouse.registry import folder_of

    return load_trained(folder_of(warehouse.models, WORD, model_id))


def _part(warehouse: Warehouse, source: str, trained: "Trained", job: str, next_run: pd.DataFrame | None) -> str:
    from tasks.jobs.predict.predicting import predict_rows
    from tasks.jobs.predict.preparation import fetch_runs
    from tasks.report.jobs_evaluation import COLUMNS, fan_figure, fan_rows
    from tasks.report.result import figure_markdown, one_line

    with reading(warehouse) as connection:
        past = fetch_runs(connection, source, group_key=job)
    is_new = ~past["run_id"].isin(trained.seen["run_id"])
    rows = past[is_new].tail(MOST_RUNS).reset_index(drop=True)
    if rows.empty:
        return ""
    before = past[~is_new][["submitted_at", "runtime_s"]]
    fan = fan_rows(rows, predict_rows(trained, rows, past))
    told = f"The job: {job}."
    if next_run is not None:
        last = next_run.assign(submitted_at=next_run["predicted_at"], runtime_s=float("nan"))
        fan = pd.concat([fan, last[COLUMNS]], ignore_index=True)
        told += f" {NEXT}"
    return figure_markdown(fan_figure(one_line(job, NAME_CHARS), fan, before), f"{told} {NOT_LEARNT}")
