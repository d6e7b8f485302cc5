"""The word `jobs` as flows: logs in, summary, shapes, models, reasons, what-ifs, watch, recording."""

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

from prefect.runtime import flow_run
from pydantic import Field

from flows.engine import artifacts, forms
from flows.engine.forms import flow
from flows.engine.steps import files_or_inbox, load_each, step, unless_refused
from tasks.choices import DEFAULT_SOURCE, ONLY_SOURCE, Named, ReaderName, intake_reader
from tasks.jobs import intake, steps
from tasks.jobs import params as of_jobs
from tasks.jobs.summary import read_summary
from tasks.params import Params
from tasks.quantities import plain
from tasks.report.result import count
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)
WORD = "jobs"
INBOX = "inbox"  # in the home folder
NO_ALARM = "No run was slow, and no job stopped or drifted, that had not been reported before."

find_logs = step(intake.find_logs)
land_log = step(steps.land_log)
ingest_batch = step(steps.ingest_batch)
group_source = step(steps.group_source)
watch = step(steps.watch)
announce_alarms = step(artifacts.announce)
record = step(steps.record)
characterise = step(steps.characterise)
train = step(steps.train)
predict = step(steps.predict)
evaluate_logs = step(steps.evaluate_logs)
evaluate_source = step(steps.evaluate_source)
explain_source = step(steps.explain_source)
ask_what_ifs = step(steps.ask_what_ifs)


@step
def summarise(warehouse: Warehouse, source: str, summary: of_jobs.SummaryParams, batches: list[str]) -> str:
    """Summarise a source. batches: what the run has loaded; a continued run that loaded more does it again."""
    logger.info("summarising %s after %d batches", source, len(batches))
    return steps.summarise(warehouse, source, summary)


def _summary(warehouse: Warehouse, source: str, summary: of_jobs.SummaryParams, batches: list[str]) -> dict[str, Any]:
    version = summarise(warehouse, source, summary, batches)
    path = artifacts.write_report(warehouse, WORD, source, version)
    artifacts.publish_summary(warehouse, WORD, source, path)
    totals = read_summary(warehouse, source)
    return {"data_version": version, "n_runs": totals["n_runs"], "n_groups": totals["n_groups"], "report": path}


class IngestParams(forms.InHomeParams):
    """Job logs into the warehouse."""

    FIRST: ClassVar = "read.time_zone read.columns read.pseudonymise"
    LATER: ClassVar = ("with_summary",)
    paths: list[str] = Field(
        [],
        description="Job logs to read: files, folders of them, or the address of a Prefect API; "
        "empty: the inbox folder in the home folder",
    )
    source: forms.Source = Field(DEFAULT_SOURCE, description=forms.SOURCE)
    reader: ReaderName = Field("auto", description="Format of the logs; auto looks into each file")
    with_summary: bool = Field(
        True, description="Summarise the recurring jobs of the source afterwards, and write its report"
    )
    read: of_jobs.ReadParams = of_jobs.ReadParams()
    summary: of_jobs.SummaryParams = of_jobs.SummaryParams()
    group: of_jobs.GroupParams = of_jobs.GroupParams()


@flow(lambda: forms.of_ingest("paths", "the inbox"))
def jobs_ingest(params: IngestParams) -> dict[str, Any]:
    """Read job logs into the warehouse, and summarise their recurring jobs.

    Files that were read before add nothing. A file that cannot be read does not hold up the others: they are loaded,
    and the run fails at its end with a line that says which file and why. Single bad rows go to the quarantine."""
    warehouse, source, reader = params.warehouse, params.source, intake_reader(params.reader)
    is_named = bool(params.paths) and params.paths != [str(warehouse.home / INBOX)]
    logs = files_or_inbox(warehouse, INBOX, params.paths, is_named=is_named, find=find_logs)
    ids, refused = load_each(
        logs, lambda path: ingest_batch(warehouse, land_log(warehouse, path, source, reader, params.read, params.group))
    )
    grouped = group_source(warehouse, source, params.group, ids)
    ids, notice = grouped["batches"], plain("; ".join(filter(None, (grouped["key"], grouped["better"]))))
    batches = artifacts.show_ingest(warehouse, WORD, source, "Job logs", ids, {"runs": "run"}, refused, notice)
    n_rows = sum(batch.tables["runs"].n_rows for batch in batches)
    summary = _summary(warehouse, source, params.summary, ids) if params.with_summary and n_rows else {}
    result = {
        "batches": ids,
        "group_by": grouped["parts"],
        "key": grouped["key"],
        "better": grouped["better"],
        "n_rows": n_rows,
        "n_quarantined": sum(batch.n_quarantined for batch in batches),
        "data_version": summary.get("data_version", ""),
        "report": summary.get("report", ""),
    }
    return unless_refused(result, refused, len(logs), "job logs")


class SummaryFlowParams(forms.OfSourceParams):
    """The summary of a source, its artifact and its report."""

    FIRST: ClassVar = "summary.min_support"
    summary: of_jobs.SummaryParams = of_jobs.SummaryParams()


@flow(lambda: forms.of_source("summarise"))
def jobs_summary(params: SummaryFlowParams) -> dict[str, Any]:
    """Summarise the recurring jobs of a source: how often each runs and how much its runtime varies."""
    return _summary(params.warehouse, params.source, params.summary, [])


class WatchFlowParams(forms.OfSourceParams):
    """The check for runs that take longer than was predicted, and for jobs that have stopped or drift."""

    FIRST: ClassVar = "watch.alarms_per_day watch.look_back_days watches_drift=drift.is_watched"
    watch: of_jobs.WatchParams = of_jobs.WatchParams()
    drift: of_jobs.DriftParams = of_jobs.DriftParams()


@flow(lambda: forms.of_source("watch"))
def jobs_watch(params: WatchFlowParams) -> dict[str, Any]:
    """Look for runs longer than predicted, also while they go on, and jobs that stopped or drift; alarm of each, once.

    Alarms stand in ops.alarms, and each is an event whorl.jobs.alarm that an automation can mail or send on."""
    warehouse, source = params.warehouse, params.source
    ids = watch(warehouse, source, params.watch, params.drift)
    announce_alarms(warehouse, ids)
    title = f"Slow runs, stopped and drifting jobs of source {source}"
    answer = {"alarms": ids, "n_alarms": len(ids)}
    part = artifacts.alarms_part(title, warehouse, ids, NO_ALARM)
    return artifacts.reported(WORD, params, answer, "alarms", title, part, has_page=bool(ids))


class RecordFlowParams(Params):
    """A recording of real recurring jobs on the machine of the worker."""

    FIRST: ClassVar = "record.minutes record.jobs record.seed record.isolation"
    folder: forms.Folder
    record: of_jobs.RecordParams = of_jobs.RecordParams()


@flow(lambda: f"record {flow_run.parameters['minutes']:g} minutes")
def jobs_record(params: RecordFlowParams) -> dict[str, Any]:
    """Run real recurring jobs on the worker's machine and record them; a run that is continued goes on where it was."""
    return {**record(params.record, params.folder.replace("{run}", str(flow_run.id)[:8]))}


class CharacteriseFlowParams(forms.OfSourceParams):
    """The typical runtime distributions of a source."""

    FIRST: ClassVar = "evaluate.predict.characterise.shapes.min_support"
    evaluate: of_jobs.EvaluateParams = of_jobs.EvaluateParams()


@flow(lambda: forms.of_source("characterise"))
def jobs_characterise(params: CharacteriseFlowParams) -> dict[str, Any]:
    """Find the few typical runtime distributions of the first part of a source, and which of them each job follows."""
    from tasks.jobs.characterise import read_characterised
    from tasks.report.jobs_variation import shapes_result
    from tasks.report.result import as_markdown

    warehouse, source = params.warehouse, params.source
    answer = characterise(warehouse, source, params.evaluate.predict.characterise)
    drawn = [f"shapes-{kind}" for kind in ("ratio", "delta")]
    part = as_markdown(shapes_result(source, read_characterised(warehouse, source)), pictures=drawn)
    return artifacts.reported(
        WORD, params, answer, "shapes", f"The typical runtime distributions of source {source}", part
    )


class TrainFlowParams(forms.OfSourceParams):
    """The training of a model on a source."""

    FIRST: ClassVar = "group_by=group.by evaluate.predict.known_before evaluate.max_training_runs evaluate.seed"
    group: of_jobs.GroupParams = of_jobs.GroupParams()
    evaluate: of_jobs.EvaluateParams = of_jobs.EvaluateParams()


@flow(lambda: forms.of_source("train on"))
def jobs_train(params: TrainFlowParams) -> dict[str, Any]:
    """Train a model of the runtimes of a source, and put it into use if it is better than the one before.

    It learns from the earlier runs and is measured on the later ones, beside its baselines; better is a lower CRPS on
    the very same runs. Models stay until they are pruned, so 'whorl models rollback' brings the former one back."""
    from tasks.jobs.predict.training import read_figures  # not above: a second that other flows need not pay

    training = train(params.warehouse, params.source, params.evaluate, str(flow_run.id), params.group)
    predict(params.warehouse, params.source)  # the page answers from now on
    figures = read_figures(params.warehouse, params.source, training["model_id"])
    parts = (
        f"# A model of the jobs of source {plain(params.source)}",
        artifacts.facts_part(training_facts(training, figures), "of the model"),
        _measured(figures),
    )
    return artifacts.reported(
        WORD, params, training, "model", f"The model of the jobs of source {params.source}", *parts
    )


def training_facts(training: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, str]:
    """What a training came to, in words. figures: of its model."""
    from tasks.report.jobs_evaluation import own_facts

    return {
        "model": training["model_id"],
        "in use": forms.in_use(training, "no worse on the same runs, so it stays in use"),
        "a job": training["key"],
        **({"better": training["better"]} if training["better"] else {}),
        **own_facts(training["own"]),
        "shapes": ", ".join(training["shapes"].values()),
        "held out": f"{count(figures['predict.n'])} later runs, which the figures below are of",
        "data version": training["data_version"],
    }


@flow(lambda: forms.of_source("predict"))
def jobs_predict(params: forms.OfSourceParams) -> dict[str, Any]:
    """Predict the next run of every job of a source by the model in use; the riskiest jobs are listed first."""
    predictions, title = predict(params.warehouse, params.source), f"The next runs of source {params.source}"
    return artifacts.reported(WORD, params, predictions, "predictions", title, sections=("Jobs and their next runs",))


class EvaluateFlowParams(forms.InHomeParams):
    """An experiment: how well runtimes of a source, or of job logs, are predicted with these parameters."""

    FIRST: ClassVar = "read.time_zone group_by=group.by evaluate.seed"
    source: forms.OfSource = Field(ONLY_SOURCE, description=f"{forms.OF_SOURCE}; not looked at where logs are named")
    logs: list[str] = Field(
        [], description="Job logs to evaluate instead of the source: files or folders; they are not kept"
    )
    reader: ReaderName = Field("auto", description="Format of these logs; auto looks into each file")
    read: of_jobs.ReadParams = of_jobs.ReadParams()
    group: of_jobs.GroupParams = of_jobs.GroupParams()
    evaluate: of_jobs.EvaluateParams = of_jobs.EvaluateParams()


@flow(lambda: forms.of_evaluation("logs", "logs"))
def jobs_evaluate(params: EvaluateFlowParams) -> dict[str, Any]:
    """Measure how well runtimes are predicted with these parameters; figures, tables and a page are kept, no model.

    The figures are the result of the run, so 'whorl runs compare A B' shows two experiments beside each other."""
    folder = forms.evaluation_folder(params.warehouse, WORD)
    if params.logs:
        reader, memory_mb = intake_reader(params.reader), params.warehouse.memory_mb
        figures = evaluate_logs(params.logs, reader, params.read, params.group, params.evaluate, memory_mb, folder)
        what, about = forms.files_or_source("logs", "logs"), "logs"
    else:
        figures = evaluate_source(params.warehouse, params.source, params.evaluate, folder)
        what, about = f"source {params.source}", params.source
    parts = (f"# How well the runtimes of {plain(what)} are predicted", _measured(figures))
    artifacts.show(params.warehouse, WORD, about, "evaluation", f"Evaluation of {what}", *parts, path=figures["report"])
    return figures


def _measured(figures: dict[str, Any]) -> str:
    """The figures of held-out runs: predictors beside each other, and shapes beside their references."""
    from tasks.report.jobs_evaluation import labels_table, predictors_table
    from tasks.report.result import table_markdown

    parts = [f"## On {int(figures.get('predict.n') or 0):,} later runs that were held out"]
    parts.append(table_markdown(predictors_table(figures)))
    labels = labels_table(figures)
    return artifacts.joined([*parts, *((labels.words, table_markdown(labels)) if len(labels.rows) else ())])


@step
def explain_runs(warehouse: Warehouse, source: str, explain: of_jobs.ExplainParams, model_id: str) -> int:
    """Reasons of single runs. model_id: what they are by; a continued run with another model finds them again."""
    return steps.explain_runs(warehouse, source, explain, model_id)


COUNTS = """
SELECT count(DISTINCT run_id) AS n_runs, count(DISTINCT group_key) FILTER (run_id IS NULL) AS n_next
FROM jobs.reasons WHERE source = $source
"""
REASONS = ("What makes runs long", "Why single runs were long", "The paper's insights here")


class ExplainFlowParams(forms.OfSourceParams):
    """The reasons of the runs of a source, and how far they can be trusted."""

    FIRST: ClassVar = "explain.look_back_days explain.n_longest explain.n_riskiest"
    explain: of_jobs.ExplainParams = of_jobs.ExplainParams()


@flow(lambda: forms.of_source("explain"))
def jobs_explain(params: ExplainFlowParams) -> dict[str, Any]:
    """Say why the longest runs of the last days took so long, why the next runs of the riskiest jobs may, and what
    makes runs of this source long and its jobs variable."""
    warehouse, source = params.warehouse, params.source
    model_id = explain_source(warehouse, source, params.explain)
    n_reasons = explain_runs(warehouse, source, params.explain, model_id)
    [counts] = fetch(warehouse, COUNTS, {"source": source}).to_dict("records")
    answer = {"model_id": model_id, **{str(name): int(n) for name, n in counts.items()}, "n_reasons": n_reasons}
    return artifacts.reported(WORD, params, answer, "reasons", f"Why runs of {source} take long", sections=REASONS)


class WhatIfFlowParams(forms.OfSourceParams):
    """Changes of the features of held-out runs, and what the model in use predicts to follow."""

    scenarios: list[Named] = Field(
        ["no_spare", "newest_sku", "steady_load"],
        description="Changes, each by itself. no_spare: no more cores than were asked for; newest_sku: the newest "
        "kind of machine; steady_load: load that does not vary; even_load: the same load on all machines",
    )
    sets: list[str] = Field(
        [],
        description="Causes that get a value, NAME=VALUE or NAME=xFACTOR, such as tokens=x2: twice the cores",
    )
    shifts: list[str] = Field([], description="Kinds of machine (SKUs) whose work moves to another, FROM:TO")
    stds: list[str] = Field(
        [], description="Loads whose deviation gets a value, such as cpu_load=0: one that does not vary"
    )
    whatif: of_jobs.WhatIfParams = of_jobs.WhatIfParams()


@flow(lambda: forms.of_source("what if in"))
def jobs_whatif(params: WhatIfFlowParams) -> dict[str, Any]:
    """Say what would follow from changes of the jobs of a source, by the model in use, and what must not be concluded.

    Where runs were done again with a change, the predicted effect is held against the measured one."""
    warehouse, source, names = params.warehouse, params.source, [str(name) for name in params.scenarios]
    answer = ask_what_ifs(warehouse, source, names, params.sets, params.shifts, params.stds, params.whatif)
    refused = [f"- {plain(name)}: {plain(line)}" for name, line in answer["refused"].items()]
    part = "\n".join(["## What this log cannot answer", *refused]) if refused else ""
    sections = ("What a change would do", *(f"What if: {name}" for name in answer["scenarios"]))
    title = f"What would change the runtimes of the jobs of {source}"
    return artifacts.reported(WORD, params, answer, "whatif", title, part, sections=sections)
