"""The word `jobs` as flows: logs in, summary, shapes, models, reasons, what-ifs, watch, recording."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

import pandas as pd
from prefect.runtime import flow_run

from flows.cli.output import counted, predictor_rows
from flows.engine.alarms import announce
from flows.engine.artifacts import artifact_key, joined, publish, publish_summary, report_part, table, write_report
from flows.engine.file_intake import files_or_inbox, load_each, not_all_read
from flows.engine.forms import flow
from flows.engine.kept_runs import files_or_source, of_evaluation, of_ingest, of_source
from flows.engine.steps import step
from flows.parameters import (
    CharacteriseFlowParams,
    EvaluateFlowParams,
    ExplainFlowParams,
    IngestParams,
    PredictFlowParams,
    ReasonsFound,
    RecordFlowParams,
    SummaryFlowParams,
    TrainFlowParams,
    WatchFlowParams,
    WhatIfFlowParams,
)
from tasks.jobs import intake, steps
from tasks.jobs.explain.params import ExplainParams
from tasks.jobs.offered_names import reader_asked_for
from tasks.jobs.params import SummaryParams
from tasks.jobs.steps import AskedWhatIf, Characterised, Predicted, TrainedModel
from tasks.jobs.summary import read_summary
from tasks.markdown import plain
from tasks.quantities import MISSING, duration, number, ratio, share
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.landing import Batch, find_batch
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    from tasks.jobs.predict.trained import Trained
    from tasks.report.jobs import AnsweredWhatIf


class Ingested(TypedDict):
    """What an ingest found. batches: their ids; report: path of the page, empty without a summary."""

    batches: list[str]
    n_rows: int
    n_quarantined: int
    data_version: str
    report: str


class Summarised(TypedDict):
    """What a summary found. data_version: the files that it saw; report: as for an ingest."""

    data_version: str
    n_runs: int
    n_groups: int
    report: str


class TrainedAndShown(TrainedModel):
    """What a training found. report: path of the page of the source, empty without a summary."""

    report: str


class PredictedAndShown(Predicted):
    """What a prediction found. report: path of the page of the source, empty without a summary."""

    report: str


class CharacterisedAndShown(Characterised):
    """What a characterisation found. report: path of the page of the source, empty without a summary."""

    report: str


class AskedAndShown(AskedWhatIf):
    """What a what-if question found. report: path of the page of the source, empty without a summary."""

    report: str


class Watched(TypedDict):
    """The ids of the new alarms. report: path of the page that shows them, "" where it was not written anew."""

    alarms: list[str]
    n_alarms: int
    report: str


class Recorded(TypedDict):
    """The folder of a recording, the runs that were added, and the recorder's own cost in cores.

    isolation: what held vertices to their tokens: cgroups or threads; none where nothing was left to run."""

    folder: str
    isolation: str
    n_runs: int
    own_cores_ratio: float


MAX_ROWS = 50
MINUTE_CHARS = 16  # 2026-01-31T12:00


def ingest_page(source: str, batches: Sequence[Batch], refused: Sequence[str]) -> str:
    """What was read from each file, and which files were refused."""
    n_rows = sum(batch.tables["runs"].n_rows for batch in batches)
    n_refused = sum(batch.n_quarantined for batch in batches)
    rows = [
        (
            batch.origin.path,
            batch.origin.reader,
            batch.tables["runs"].n_rows,
            batch.n_quarantined,
            batch.batch_id,
        )
        for batch in batches[:MAX_ROWS]
    ]
    parts = [
        f"# Job logs of source {plain(source)}",
        f"{counted(len(batches), 'file')}, {counted(n_rows, 'run')} and {counted(n_refused, 'row')} in quarantine.",
        table(("file", "reader", "runs", "quarantine", "batch"), rows) + _rest(len(batches)) if rows else "",
        "\n".join(["## Files that could not be read", *(f"- {plain(line)}" for line in refused)]) if refused else "",
    ]
    return "\n\n".join(part for part in parts if part)


def alarms_page(source: str, alarms: pd.DataFrame) -> str:
    """The alarms that one watch raised, or that there was none."""
    title = f"# Slow runs, stopped and drifting jobs of source {plain(source)}"
    if alarms.empty:
        return f"{title}\n\nNo run was slow, and no job stopped or drifted, that had not been reported before."
    rows = []
    for kind, message, evidence in alarms[["kind", "message", "evidence"]].head(MAX_ROWS).itertuples(index=False):
        found = json.loads(evidence)
        as_of = found.get("ended_at") or found.get("known_at") or found.get("overdue_at") or found.get("until_at") or ""
        took_s = found.get("elapsed_s", found.get("gap_s", found.get("median_after_s")))
        rows.append((message, kind, str(as_of)[:MINUTE_CHARS].replace("T", " "), duration(took_s)))
    body = table(("alarm", "kind", "as of (UTC)", "runtime or gap"), rows)
    return f"{title}\n\n{counted(len(alarms), 'new alarm')}.\n\n{body}{_rest(len(alarms))}"


def _rest(n_all: int) -> str:
    more = n_all - MAX_ROWS
    return f"\n\n{more:,} more are in the warehouse." if more > 0 else ""


logger = logging.getLogger(__name__)
WORD = "jobs"
TAGS = [WORD]
INBOX = "inbox"  # in the home folder

find_logs = step(intake.find_logs)
land_log = step(steps.land_log)
ingest_batch = step(steps.ingest_batch)
watch = step(steps.watch)
announce_alarms = step(announce)
record = step(steps.record)


@step
def summarise(warehouse: Warehouse, source: str, summary: SummaryParams, batches: list[str]) -> str:
    """Summarise a source. batches: what the run has loaded; a continued run that loaded more does it again."""
    logger.info("summarising %s after %d batches", source, len(batches))
    return steps.summarise(warehouse, source, summary)


@flow(name="jobs-ingest", run_name=lambda: of_ingest("paths", "the inbox"), tags=TAGS)
def jobs_ingest(params: IngestParams) -> Ingested:
    """Read job logs into the warehouse, and summarise their recurring jobs.

    Files that were read before add nothing. A file that cannot be read does not hold up the others: they are loaded,
    and the run fails at its end with a line that says which file and why. Single bad rows go to the quarantine."""
    warehouse, source = params.warehouse, params.source
    reader = reader_asked_for(params.reader)
    is_named = bool(params.paths) and params.paths != [str(warehouse.home / INBOX)]
    logs = files_or_inbox(warehouse, INBOX, params.paths, is_named=is_named, find=find_logs)
    ids, refused = load_each(
        logs,
        lambda path: ingest_batch(warehouse, land_log(warehouse, path, source, reader, params.read, params.group)),
    )
    batches = [find_batch(warehouse.landing_folder, WORD, batch_id) for batch_id in ids]
    page = ingest_page(source, batches, [str(error) for error in refused])
    publish(artifact_key(WORD, source, "ingest"), page, f"Job logs read into source {source}")
    has_rows = any(batch.tables["runs"].n_rows for batch in batches)
    is_wanted = params.with_summary and has_rows
    found = _summary(warehouse, source, params.summary, ids) if is_wanted else None
    result = Ingested(
        batches=ids,
        n_rows=sum(batch.tables["runs"].n_rows for batch in batches),
        n_quarantined=sum(batch.n_quarantined for batch in batches),
        data_version=found["data_version"] if found else "",
        report=found["report"] if found else "",
    )
    if refused:
        raise not_all_read(refused, len(logs), "job logs", result)
    return result


@flow(name="jobs-summary", run_name=lambda: of_source("summarise"), tags=TAGS)
def jobs_summary(params: SummaryFlowParams) -> Summarised:
    """Summarise the recurring jobs of a source: how often each runs and how much its runtime varies."""
    return _summary(params.warehouse, params.source, params.summary, [])


@flow(name="jobs-watch", run_name=lambda: of_source("watch"), tags=TAGS)
def jobs_watch(params: WatchFlowParams) -> Watched:
    """Look for runs longer than predicted, also while they go on, and jobs that stopped or drift; alarm of each, once.

    Alarms stand in ops.alarms, and each is an event whorl.jobs.alarm that an automation can mail or send on."""
    ids = watch(params.warehouse, params.source, params.watch, params.drift)
    announce_alarms(params.warehouse, ids)
    alarms = read_alarms(params.warehouse, ids=ids, limit=max(1, len(ids)))
    path = _page_with_alarms(params.warehouse, params.source, ids)
    publish(
        artifact_key(WORD, params.source, "alarms"),
        joined([alarms_page(params.source, alarms), report_part(path) if path else ""]),
        f"Slow runs, stopped and drifting jobs of source {params.source}",
    )
    return Watched(alarms=ids, n_alarms=len(ids), report=path)


@flow(
    name="jobs-record",
    run_name=lambda: f"record {flow_run.parameters['minutes']:g} minutes",
    tags=TAGS,
)
def jobs_record(params: RecordFlowParams) -> Recorded:
    """Run real recurring jobs on the worker's machine and record them; a run that is continued goes on where it was."""
    return Recorded(**record(params.record, params.folder.replace("{run}", str(flow_run.id)[:8])))


def _summary(warehouse: Warehouse, source: str, summary: SummaryParams, batches: list[str]) -> Summarised:
    version = summarise(warehouse, source, summary, batches)
    path = write_report(warehouse, WORD, source, version)
    publish_summary(warehouse, WORD, source, path)
    totals = read_summary(warehouse, source)
    return Summarised(data_version=version, n_runs=totals["n_runs"], n_groups=totals["n_groups"], report=path)


def _page_with_alarms(warehouse: Warehouse, source: str, ids: list[str]) -> str:
    """The page of a source, written anew if there are new alarms to stand on it; "" without any, or a summary."""
    return write_report(warehouse, WORD, source, ", ".join(ids)) if ids else ""


characterise = step(steps.characterise)


@flow(name="jobs-characterise", run_name=lambda: of_source("characterise"), tags=TAGS)
def jobs_characterise(params: CharacteriseFlowParams) -> CharacterisedAndShown:
    """Find the few typical runtime distributions of the first part of a source, and which of them each job follows."""
    warehouse, source = params.warehouse, params.source
    found = characterise(warehouse, source, params.evaluate.predict.characterise)
    from tasks.jobs.characterise import read_characterised
    from tasks.report.jobs_shapes import shapes_result
    from tasks.report.result import as_markdown

    path = write_report(warehouse, WORD, source, f"{found}")
    shown = shapes_result(source, read_characterised(warehouse, source), "")
    drawn = [f"{what}-{kind}" for kind in ("ratio", "delta") for what in ("shapes", "inertia")]
    text = f"{as_markdown(shown, pictures=drawn)}\n{report_part(path)}\n"
    publish(artifact_key(WORD, source, "shapes"), text, f"The typical runtime distributions of source {source}")
    return CharacterisedAndShown(**found, report=path)


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
    from tasks.jobs.predict.rows import fetch_runs
    from tasks.report.jobs_evaluation import COLUMNS, fan_figure, fan_of
    from tasks.report.result import figure_markdown, one_line

    with reading(warehouse) as connection:
        past = fetch_runs(connection, source, group_key=job)
    is_new = ~past["run_id"].isin(trained.seen["run_id"])
    rows = past[is_new].tail(MOST_RUNS).reset_index(drop=True)
    if rows.empty:
        return ""
    before = past[~is_new][["submitted_at", "runtime_s"]]
    fan = fan_of(one_line(job, NAME_CHARS), rows, predict_rows(trained, rows, past), before)
    told = f"The job: {job}."
    if next_run is not None:
        last = next_run.assign(submitted_at=next_run["predicted_at"], runtime_s=float("nan"))
        fan = replace(fan, runs=pd.concat([fan.runs, last[COLUMNS]], ignore_index=True))
        told += f" {NEXT}"
    return figure_markdown(fan_figure(fan), f"{told} {NOT_LEARNT}")


MAX_JOBS = 20
PREDICTOR_HEADER = ("predictor", "CRPS", "log-score", "in 90 % interval", "KS by job", "KS pooled")
RISKIEST = ("job", "runs", "usual", "predicted median", "95 % stay under", "99 % stay under", "takes twice the usual")


def training_page(source: str, found: TrainedModel, figures: Mapping[str, Any]) -> str:
    """Which model was trained on what, whether it is in use, and how it did beside its baselines."""
    in_use = "It is in use now." if found["champion_id"] == found["model_id"] else _kept(found["champion_id"])
    shapes = ", ".join(found["shapes"].values())
    parts = [
        f"# A model of the jobs of source {plain(source)}",
        f"{plain(found['model_id'])}, trained on data version {found['data_version']}, with the shapes {shapes}. "
        f"{in_use}",
        figures_part(figures),
    ]
    return "\n\n".join(parts)


def evaluation_page(what: str, figures: Mapping[str, Any]) -> str:
    """How well the runtimes of a log were predicted."""
    return "\n\n".join([f"# How well the runtimes of {plain(what)} are predicted", figures_part(figures)])


def figures_part(figures: Mapping[str, Any]) -> str:
    """The figures of the held-out runs: predictors beside each other, and labels beside their references."""
    rows = [
        (
            row["name"],
            duration(row["crps"]),
            number(row["log_score"]),
            share(row["coverage90"]),
            number(row["ks_group"]),
            number(row["ks_pooled"]),
        )
        for row in predictor_rows(figures)
    ]
    labels = [
        f"- Shapes ({kind}): right for {share(figures[f'label.accuracy.{kind}'])} of the runs; an oracle would be for "
        f"{share(figures.get(f'label.ceiling.{kind}'))}, the job's history is for "
        f"{share(figures.get(f'label.history_baseline.{kind}'))}."
        for kind in ("ratio", "delta")
        if figures.get(f"label.accuracy.{kind}") is not None
    ]
    n = figures.get("predict.n") or 0
    return "\n\n".join(
        [
            f"## On {counted(int(n), 'later run')} that were held out",
            table(PREDICTOR_HEADER, rows),
            "A smaller CRPS, a larger log-score and a smaller KS are better; 90 % intervals should hold 90 % of the "
            "runs.",
            *(["\n".join(labels)] if labels else []),
        ]
    )


def predictions_page(source: str, found: Predicted, riskiest: pd.DataFrame, n_listed: int, least: int) -> str:
    """The jobs whose next run is most likely to take twice the usual time or longer.

    riskiest: rows of jobs.predictions; n_listed: jobs with at least `least` finished runs."""
    title = f"# The next runs of source {plain(source)}"
    told = (
        f"{counted(found['n_jobs'], 'job')}, predicted by {plain(found['model_id'])} as if submitted at "
        f"{found['predicted_at'][:16].replace('T', ' ')} UTC, the end of the log."
    )
    if riskiest.empty:
        return f"{title}\n\n{told} None of them has {least} finished runs yet."
    rows = [
        (
            job["group_key"],
            job["n_before"],
            duration(job["usual_s"]),
            duration(job["p50_s"]),
            duration(job["p95_s"]),
            duration(job["p99_s"]),
            share(job["exceeds_2x_share"]),
        )
        for job in riskiest.head(MAX_JOBS).to_dict("records")
    ]
    more = n_listed - len(rows)
    rest = f"\n\n{more:,} more are in jobs.predictions." if more > 0 else ""
    asked = f"Of the {counted(n_listed, 'job')} with at least {least} finished runs, the riskiest first."
    return f"{title}\n\n{told}\n\n{asked}\n\n{table(RISKIEST, rows)}{rest}"


def _kept(champion_id: str) -> str:
    return f"{plain(champion_id)} stays in use: on the same held-out runs it is no worse."


train = step(steps.train)
predict = step(steps.predict)
evaluate_logs = step(steps.evaluate_logs)
evaluate_source = step(steps.evaluate_source)


@flow(name="jobs-train", run_name=lambda: of_source("train on"), tags=TAGS)
def jobs_train(params: TrainFlowParams) -> TrainedAndShown:
    """Train a model of the runtimes of a source, and put it into use if it is better than the one before.

    It learns from the earlier runs and is measured on the later ones, beside its baselines; better is a lower CRPS on
    the very same runs. Models stay until they are pruned, so 'whorl models rollback' brings the former one back."""
    warehouse, source = params.warehouse, params.source
    found = train(warehouse, source, params.evaluate, str(flow_run.id))
    path = write_report(warehouse, WORD, source, f"{found}")
    from tasks.jobs.predict.training import read_figures  # not above: a second that other flows need not pay

    page = training_page(source, found, read_figures(warehouse, source, found["model_id"]))
    parts = [page, draw_largest_job(warehouse, source, found["model_id"]), report_part(path)]
    publish(artifact_key(WORD, source, "model"), joined(parts), f"The model of the jobs of source {source}")
    return TrainedAndShown(**found, report=path)


@flow(name="jobs-predict", run_name=lambda: of_source("predict"), tags=TAGS)
def jobs_predict(params: PredictFlowParams) -> PredictedAndShown:
    """Predict the next run of every job of a source by the model in use; the riskiest jobs are listed first."""
    from tasks.jobs.predict.predicting import read_predictions

    warehouse, source, least = params.warehouse, params.source, params.summary.min_support
    found = predict(warehouse, source)
    path = write_report(warehouse, WORD, source, f"{found}")
    riskiest = read_predictions(warehouse, source, min_before=least)
    page = predictions_page(source, found, riskiest, len(riskiest), least)
    figure = draw_riskiest_job(warehouse, source, found["model_id"], least, found["data_version"])
    page = joined([page, figure, report_part(path)])
    publish(artifact_key(WORD, source, "predictions"), page, f"The next runs of source {source}")
    return PredictedAndShown(**found, report=path)


@flow(name="jobs-evaluate", run_name=lambda: of_evaluation("logs", "logs"), tags=TAGS)
def jobs_evaluate(params: EvaluateFlowParams) -> dict[str, Any]:
    """Measure how well runtimes are predicted with these parameters; figures, tables and a page are kept, no model.

    The figures are the result of the run, so 'whorl runs compare A B' shows two experiments beside each other."""
    folder = str(params.warehouse.home / "reports" / f"jobs-evaluation-{str(flow_run.id)[:8]}")
    if params.logs:
        reader, memory_mb = reader_asked_for(params.reader), params.warehouse.memory_mb
        figures = evaluate_logs(params.logs, reader, params.read, params.group, params.evaluate, memory_mb, folder)
        what = "job logs"
    else:
        figures = evaluate_source(params.warehouse, params.source, params.evaluate, folder)
        what = f"source {params.source}"
    shown = files_or_source("logs", "logs") if params.logs else what
    page = joined([evaluation_page(shown, figures), report_part(figures["report"])])
    publish(artifact_key(WORD, "logs" if params.logs else params.source, "evaluation"), page, f"Evaluation of {what}")
    return figures


MAX_RUNS = 30
NONE = "nothing that was known at submission"
NOT_CAUSES = "These are reasons of the model's predictions, which need not be causes of the runtimes."


def reasons_page(
    source: str, reasons: pd.DataFrame, families: pd.DataFrame, checks: pd.DataFrame, insights: pd.DataFrame
) -> str:
    """Rows of jobs.reasons, jobs.cause_families, jobs.cause_checks and jobs.insights of one source, in words."""
    parts = [
        f"# Why runs of source {plain(source)} take long",
        NOT_CAUSES,
        _past(reasons),
        _next(reasons),
        _families(families),
        _checks(checks),
        _insights(insights),
    ]
    return "\n\n".join(part for part in parts if part)


def _past(reasons: pd.DataFrame) -> str:
    """The longest runs, each with the largest reason to be long; some have none that was known at submission."""
    rows = []
    of_runtime = reasons[(reasons["question"] == "runtime") & reasons["run_id"].notna()]
    by_run = of_runtime.assign(times=of_runtime["runtime_s"] / of_runtime["usual_s"])
    for _, mine in by_run.sort_values(["times", "run_id", "rank"], ascending=[False, True, True]).groupby(
        ["times", "run_id"], sort=False
    ):
        first = mine.iloc[0]
        longer = mine[mine["factor"] > 1]["words"]
        times_s = (duration(first[name]) for name in ("runtime_s", "usual_s", "expected_s"))
        rows.append((f"{first['group_key']}: run {first['run_id']}", *times_s, next(iter(longer), NONE)))
    head = ("run", "took", "usual", "expected", "first reason to be longer")
    return _section("Longest runs of the last days", head, rows)


def _next(reasons: pd.DataFrame) -> str:
    """The next runs of the riskiest jobs, each with the first reason of its job to vary."""
    first = reasons[reasons["run_id"].isna() & (reasons["question"] == "variation") & (reasons["rank"] == 1)]
    rows = [
        (row["group_key"], duration(row["usual_s"]), duration(row["expected_s"]), row["words"])
        for row in first.to_dict("records")
    ]
    return _section("Next runs of the riskiest jobs", ("job", "usual", "expected", "first reason to vary"), rows)


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    if not rows:
        return ""
    more = f"\n\n{counted(len(rows) - MAX_RUNS, 'more run')} in jobs.reasons." if len(rows) > MAX_RUNS else ""
    return f"## {title}\n\n{table(head, rows[:MAX_RUNS])}{more}"


def _families(families: pd.DataFrame) -> str:
    of_runtime = families[families["question"] == "runtime"].sort_values("rank")
    if of_runtime.empty:
        return ""
    rows = [
        (row["family"], share(row["share"]), f"{ratio(row['typical_factor'])} ×", share(row["first_share"]))
        for row in of_runtime.to_dict("records")
    ]
    head = ("reason", "share", "on average", "first reason of long runs")
    n_runs, n_long = int(of_runtime["n_runs"].max()), int(of_runtime["n_long"].max())
    return (
        f"## What makes runs long or short\n\n{counted(n_runs, 'held-out run')}, {n_long:,} of them at least twice "
        f"as long as usual.\n\n{table(head, rows)}"
    )


def _checks(checks: pd.DataFrame) -> str:
    of_all = checks[checks["cause"] == "all"]
    if of_all.empty:
        return ""
    rows = [(row["order_name"], ratio(row["mrr"])) for row in of_all.sort_values("mrr").to_dict("records")]
    n = int(of_all["n"].iloc[0])
    return (
        f"## The recorded cause among the reasons\n\nMean reciprocal rank over {counted(n, 'held-out run')}, 1 if it "
        f"is always the first, beside orders that look at no run.\n\n{table(('order', 'MRR'), rows)}"
    )


def _insights(insights: pd.DataFrame) -> str:
    if insights.empty:
        return ""
    rows = [
        (row["words"], row["kind"], row["verdict"], ratio(row["rho"]), ratio(row["measured_rho"]))
        for row in insights.sort_values(["kind", "rank"], ascending=[False, True]).to_dict("records")
    ]
    return "## The paper's insights\n\n" + table(("insight", "shapes", "verdict", "rho", "measured rho"), rows)


explain_source = step(steps.explain_source)


@step
def explain_runs(warehouse: Warehouse, source: str, explain: ExplainParams, model_id: str) -> int:
    """Reasons of single runs. model_id: what they are by; a continued run with another model finds them again."""
    return steps.explain_runs(warehouse, source, explain, model_id)


@flow(name="jobs-explain", run_name=lambda: of_source("explain"), tags=TAGS)
def jobs_explain(params: ExplainFlowParams) -> ReasonsFound:
    """Say why the longest runs of the last days took so long, why the next runs of the riskiest jobs may, and what
    makes runs of this source long and its jobs variable; and check these reasons where causes were recorded."""
    warehouse, source = params.warehouse, params.source
    model_id = explain_source(warehouse, source, params.explain)
    n_reasons = explain_runs(warehouse, source, params.explain, model_id)
    asked = {"source": source}
    tables = {
        name: fetch(warehouse, f"SELECT * FROM jobs.{name} WHERE source = $source ORDER BY ALL", asked)
        for name in ("cause_families", "cause_checks", "insights")
    }
    reasons = fetch(warehouse, "SELECT * FROM jobs.reasons WHERE source = $source ORDER BY runtime_s DESC, rank", asked)
    path = write_report(warehouse, WORD, source, f"{model_id} {n_reasons}")
    page = reasons_page(source, reasons, tables["cause_families"], tables["cause_checks"], tables["insights"])
    publish(artifact_key(WORD, source, "reasons"), joined([page, report_part(path)]), f"Why runs of {source} take long")
    checks = tables["cause_checks"]
    ours = checks[(checks["order_name"] == "reasons") & (checks["cause"] == "all")]["mrr"]
    return ReasonsFound(
        model_id=model_id,
        n_runs=int(reasons["run_id"].nunique()),
        n_next=int(reasons["group_key"][reasons["run_id"].isna()].nunique()),
        n_reasons=n_reasons,
        mrr=float(ours.iloc[0]) if len(ours) else None,
        report=path,
    )


PARTS = {
    "move_ratio": "Moves between shapes (ratio to the historic median)",
    "move_delta": "Moves between shapes (seconds from the historic median)",
    "can": "What the figures support",
    "cannot": "What they do not",
}
CHANGE_HEADER = ("measure", "before", "after", "change", "interval")
PAIRS = (
    "scenario",
    "pairs",
    "right direction",
    "as other jobs",
    "error of the log ratio",
    "of no change",
    "of the mean",
)


def whatif_page(source: str, answers: Sequence["AnsweredWhatIf"], refused: Mapping[str, str]) -> str:
    """All answers of a run: how they were measured, then each by itself, then what could not be asked."""
    title = f"# What if: source {plain(source)}"
    pairs = [(one.scenario, *pair_rows(one.pairs)) for one in answers]
    parts = [title, "## On runs that were done again with the change", table(PAIRS, pairs) if pairs else "None."]
    parts += [_scenario_part(one) for one in answers]
    if refused:
        lines = [f"- {plain(name)}: {plain(line)}" for name, line in refused.items()]
        parts.append("\n".join(["## What this log cannot answer", *lines]))
    return joined(parts)


def _scenario_part(one: "AnsweredWhatIf") -> str:
    from tasks.report.jobs import change_rows

    body = table(CHANGE_HEADER, [tuple(row.values()) for row in change_rows(one.changes)])
    parts = [f"## {plain(one.scenario)}", f"{plain(one.edits)}, by model {plain(one.model_id)}", body, _moves(one)]
    for about, words in PARTS.items():
        if lines := one.claims.get(about):
            parts.append("\n".join([f"### {words}", "", *(f"- {plain(line)}" for line in lines)]))
    return joined(parts)


def _moves(one: "AnsweredWhatIf") -> str:
    """From which shape to which the held-out runs move, as a figure; "" where shapes are not predicted."""
    if not one.moves.any():
        return ""
    from tasks.report.jobs_reasons import MigrationMap, migration_figure
    from tasks.report.result import figure_markdown

    return figure_markdown(migration_figure(MigrationMap(one.moves, one.scenario)), level=3)


def pair_rows(pairs: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Pairs, share of right directions with its interval and that of the mean change, and the three errors."""
    if not pairs or not pairs["n_pairs"]:
        return (f"none: {(pairs or {}).get('reason') or 'not measured'}", *[MISSING] * 5)
    right = f"{share(pairs['right_share'])} ({share(pairs['low'])} to {share(pairs['high'])})"
    errors = (number(pairs[f"mae_log_{name}"]) for name in ("model", "no_change", "mean_change"))
    return (f"{pairs['n_pairs']:,}", right, share(pairs["right_share_mean_change"]), *errors)


ask_what_ifs = step(steps.ask_what_ifs)


@flow(name="jobs-whatif", run_name=lambda: of_source("what if in"), tags=TAGS)
def jobs_whatif(params: WhatIfFlowParams) -> AskedAndShown:
    """Say what would follow from changes of the jobs of a source, by the model in use, and what must not be concluded.

    Where runs were done again with a change, the predicted effect is held against the measured one."""
    from tasks.report.jobs import fetch_what_ifs

    warehouse, source = params.warehouse, params.source
    names: list[str] = list(params.scenarios)
    found = ask_what_ifs(warehouse, source, names, params.sets, params.shifts, params.stds, params.whatif)
    answers = [one for one in fetch_what_ifs(warehouse, source) if one.scenario in found["scenarios"]]
    path = write_report(warehouse, WORD, source, f"{found}")
    page = joined([whatif_page(source, answers, found["refused"]), report_part(path)])
    publish(artifact_key(WORD, source, "whatif"), page, f"What would change the runtimes of the jobs of {source}")
    return AskedAndShown(**found, report=path)
