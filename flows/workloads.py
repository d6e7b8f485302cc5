"""The word `workloads` as flows: telemetry in, phases, models, what ran, watch, recording."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypedDict

import pandas as pd
from prefect import Task
from prefect.runtime import flow_run

from flows.cli.output import counted, runs_or_windows
from flows.engine.alarms import announce
from flows.engine.artifacts import (
    artifact_key,
    confusion_part,
    joined,
    publish,
    publish_summary,
    report_part,
    table,
    timeline_part,
    watched_part,
    write_report,
)
from flows.engine.file_intake import files_or_inbox, load_each, not_all_read
from flows.engine.forms import flow
from flows.engine.kept_runs import files_or_source, of_evaluation, of_ingest, of_source
from flows.engine.steps import step
from flows.parameters import (
    WORKLOADS_INBOX,
    FingerprintFlowParams,
    WorkloadEvaluateParams,
    WorkloadIdentifyParams,
    WorkloadIngestParams,
    WorkloadRecordParams,
    WorkloadTrainParams,
    WorkloadWatchParams,
)
from tasks.errors import BadInput, MissingTool
from tasks.markdown import plain
from tasks.quantities import digits, number, share
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import fetch
from tasks.warehouse.landing import Batch, find_batch
from tasks.warehouse.place import Warehouse
from tasks.workloads import fingerprint_steps, model_steps, steps, watch_steps
from tasks.workloads.choices import said
from tasks.workloads.fan_out_params import FanOutParams
from tasks.workloads.figure_rows import read_confusion, read_figures
from tasks.workloads.identification_rows import read_identifications
from tasks.workloads.model_steps import IdentifiedRuns, TrainedModel
from tasks.workloads.reader_names import reader_asked_for
from tasks.workloads.reading_params import ReadParams
from tasks.workloads.steps import Recording


class TelemetryIngested(TypedDict):
    """What an ingest found. batches: their ids; n_quarantined: rows of the files that no run could be made of.

    data_version: of the source, empty where nothing was read."""

    batches: list[str]
    n_runs: int
    n_quarantined: int
    data_version: str


class Fingerprinted(TypedDict):
    """What a fingerprinting found. n_new: runs that were cut; n_done: that had the same phases already.

    report: path of the page."""

    n_runs: int
    n_new: int
    n_done: int
    n_parts: int
    data_version: str
    report: str


class WorkloadTrained(TrainedModel):
    """What a training found. report: path of the page."""

    report: str


class WorkloadsIdentified(IdentifiedRuns):
    """What was identified. report: path of the page."""

    report: str


class WorkloadsWatched(TypedDict):
    """What a watch looked at, and the ids of the alarms that nobody was told of before. model_id: in use.

    report: path of the page that shows them, empty where there is no new alarm."""

    run_ids: list[str]
    model_id: str
    alarms: list[str]
    n_alarms: int
    report: str


MAX_ROWS = 50
PHASES = """
WITH cut AS (SELECT run_id, count(*) AS n_phases FROM workloads.run_phases WHERE source = $source GROUP BY run_id),
counted AS (
    SELECT run_id, count(DISTINCT counter) AS n_counters, count(*) AS n_counter_phases
    FROM workloads.phases WHERE source = $source GROUP BY run_id
)
SELECT coalesce(workload, '(no label)') AS workload, count(*) AS n_runs, median(n_phases) AS n_phases,
    median(n_counter_phases / n_counters) AS per_counter, median(n_counters)::BIGINT AS n_counters
FROM workloads.runs JOIN cut USING (run_id) JOIN counted USING (run_id) WHERE source = $source
GROUP BY ALL ORDER BY workload
"""


def telemetry_page(source: str, batches: Sequence[Batch], refused: Sequence[str]) -> str:
    """What was read from each file, and which files were refused."""
    n_runs = sum(batch.tables["runs"].n_rows for batch in batches)
    n_refused = sum(batch.n_quarantined for batch in batches)
    rows = [
        (
            batch.origin.path,
            batch.origin.reader,
            batch.tables["runs"].n_rows,
            batch.tables["counters"].n_rows,
            batch.n_quarantined,
            batch.batch_id,
        )
        for batch in batches[:MAX_ROWS]
    ]
    header = ("file", "reader", "runs", "counters of runs", "rows in quarantine", "batch")
    return joined(
        [
            f"# Telemetry of source {plain(source)}",
            f"{counted(len(batches), 'file')}, {counted(n_runs, 'run')} and {counted(n_refused, 'row')} in quarantine.",
            table(header, rows) + rest(len(batches)) if rows else "",
            "\n".join(["## Files that could not be read", *(f"- {plain(line)}" for line in refused)])
            if refused
            else "",
        ]
    )


def fingerprints_page(warehouse: Warehouse, source: str, found: Fingerprinted) -> str:
    """How many runs were cut, and the phases by workload."""
    rows = [
        (workload, int(n_runs), number(n_phases), number(per_counter), int(n_counters))
        for workload, n_runs, n_phases, per_counter, n_counters in fetch(
            warehouse, PHASES, {"source": source}
        ).itertuples(index=False)
    ]
    header = ("workload", "runs", "phases of the workload (median)", "phases of a counter (median)", "counters")
    return joined(
        [
            f"# The phases of the runs of source {plain(source)}",
            f"{counted(found['n_new'], 'run')} of {found['n_runs']:,} cut now, in {counted(found['n_parts'], 'part')}; "
            f"{found['n_done']:,} had their phases.",
            table(header, rows[:MAX_ROWS]) + rest(len(rows)) if rows else "",
            report_part(found["report"]),
        ]
    )


def rest(n_all: int) -> str:
    """How many rows a table leaves out."""
    more = n_all - MAX_ROWS
    return f"\n\n{more:,} more are in the warehouse." if more > 0 else ""


WORD = "workloads"
TAGS = [WORD]

record = step(steps.record)
find_files = step(steps.find_files)
land_telemetry = step(steps.land_telemetry)
ingest_batch = step(steps.ingest_batch)
source_version = step(steps.source_version)


@flow(
    name="workloads-record",
    run_name=lambda: f"record workloads for {flow_run.parameters['minutes']:g} minutes",
    tags=TAGS,
)
def workloads_record(params: WorkloadRecordParams) -> Recording:
    """Run real workloads on the worker's machine and record its telemetry; a run that is continued goes on."""
    return Recording(**record(params.record, params.folder.replace("{run}", str(flow_run.id)[:8])))


@flow(name="workloads-ingest", run_name=lambda: of_ingest("telemetry", "the inbox"), tags=TAGS)
def workloads_ingest(params: WorkloadIngestParams) -> TelemetryIngested:
    """Read telemetry into the warehouse.

    Files that were read before add nothing. A file that cannot be read does not hold up the others: they are loaded,
    and the run fails at its end with a line that says which file and why. Single bad rows go to the quarantine."""
    warehouse, source = params.warehouse, params.source
    reader = reader_asked_for(params.reader)
    files = files_or_inbox(
        warehouse,
        WORKLOADS_INBOX,
        params.telemetry,
        is_named=bool(params.telemetry or params.read.manifest),
        find=lambda paths: find_files(paths, params.read),
    )
    ids, refused = load_each(
        files, lambda path: ingest_batch(warehouse, land_telemetry(warehouse, path, source, reader, params.read))
    )
    batches = [find_batch(warehouse.landing_folder, WORD, batch_id) for batch_id in ids]
    page = telemetry_page(source, batches, [str(error) for error in refused])
    publish(artifact_key(WORD, source, "ingest"), page, f"Telemetry read into source {source}")
    result = TelemetryIngested(
        batches=ids,
        n_runs=sum(batch.tables["runs"].n_rows for batch in batches),
        n_quarantined=sum(batch.n_quarantined for batch in batches),
        data_version=source_version(warehouse, source, ids) if ids else "",
    )
    if refused:
        raise not_all_read(refused, len(files), "telemetry", result)
    return result


LOCAL = "local"
QUIET: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False}
OBJECT_STORE_BYTES = 200 * 2**20  # parts are handed over as paths


def fanned_out(work: Task[[str], str], parts: Sequence[str], fan_out: FanOutParams) -> Iterator[str]:
    """What the task gives for each part, in their order, as soon as it is there.

    Each part is a task run of its own: retried on its own, and skipped by a continued run. The machines of Ray must
    reach the landing folder, Prefect's server and its results. Raises MissingTool if prefect-ray is not installed."""
    if not fan_out.ray_address or not parts:
        yield from (work(part) for part in parts)
        return
    with _runner(fan_out.ray_address) as runner:
        futures = [runner.submit(work, parameters={"part": part}) for part in parts]
        try:
            yield from (future.result() for future in futures)
        finally:
            _wait(futures)


def _runner(address: str) -> Any:
    try:
        from prefect_ray import RayTaskRunner  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as error:
        raise MissingTool(
            f"workloads.fan_out.ray_address is {address!r}, and the Python package prefect-ray is not installed; "
            "install it in the checkout (pip install -c constraints.txt '.[ray]'), or leave the address empty"
        ) from error
    if address == LOCAL:
        return RayTaskRunner(init_kwargs=QUIET | {"object_store_memory": OBJECT_STORE_BYTES})
    return RayTaskRunner(address=address, init_kwargs={"log_to_driver": False})


def _wait(futures: Sequence[Any]) -> None:
    """Let all parts end before Ray goes, also when one has failed: what they made is kept."""
    for future in futures:
        wait: Callable[[], None] = future.wait
        with suppress(Exception):
            wait()


plan_fingerprints = step(fingerprint_steps.plan_fingerprints)
cut_phases = step(fingerprint_steps.cut_phases)
keep_phases = step(fingerprint_steps.keep_phases)
clear_parts = step(fingerprint_steps.clear_parts)


@flow(
    name="workloads-fingerprint",
    run_name=lambda: of_source("fingerprint the runs of"),
    tags=TAGS,
)
def workloads_fingerprint(params: FingerprintFlowParams) -> Fingerprinted:
    """Find the phases of every run of a source, and write them to the warehouse.

    A run whose samples and parameters have not changed is not done again. The work is shared out in parts, which are
    tried again on their own, and run on Ray where an address is set; a run that is continued goes on with the parts
    that are missing."""
    warehouse, source = params.warehouse, params.source
    plan = plan_fingerprints(warehouse, source, params.identify.fingerprint, params.fan_out)
    n_new = sum(keep_phases(warehouse, source, path) for path in fanned_out(cut_phases, plan["parts"], params.fan_out))
    clear_parts(plan["parts"])
    found = Fingerprinted(
        n_runs=plan["n_runs"],
        n_new=n_new,
        n_done=plan["n_done"],
        n_parts=len(plan["parts"]),
        data_version=plan["data_version"],
        report=write_report(warehouse, WORD, source, f"{plan['data_version']} {plan['parts']}"),
    )
    publish_summary(warehouse, WORD, source, found["report"])
    publish(artifact_key(WORD, source, "fingerprints"), fingerprints_page(warehouse, source, found), _title(source))
    return found


def _title(source: str) -> str:
    return f"The phases of the runs of source {source}"


SHARES = (
    ("held_out.accuracy", "identified"),
    ("held_out.macro_f1", "macro F1, over workloads"),
    ("held_out.nearest_accuracy", "nearest run is of the same workload"),
    ("held_out.false_unknown", "known, but called unknown"),
)
FOUND = ("run", "what ran", "how sure", "nearest", "distance", "label", "why")
MINUTE_CHARS = 16  # 2026-01-31T12:00


def training_page(source: str, found: TrainedModel, figures: Mapping[str, Any], confusion: pd.DataFrame) -> str:
    """Which model was trained on what, whether it is in use, and what it made of the held-out runs."""
    is_used = found["champion_id"] == found["model_id"]
    in_use = "It is in use now." if is_used else f"{plain(found['champion_id'])} stays in use: it is no worse."
    learned, held_out = (
        runs_or_windows(figures.get(f"{part}.n"), figures.get(f"{part}.n_windows")) for part in ("trained", "held_out")
    )
    rows = [(words, share(figures.get(key))) for key, words in SHARES]
    wrong = confusion[confusion["workload"] != confusion["identified_as"]]
    rows_of_wrong = wrong[["workload", "identified_as", "n_runs"]].to_numpy().tolist()
    taken = [(workload, taken_for or "unknown", int(n_runs)) for workload, taken_for, n_runs in rows_of_wrong]
    return joined(
        [
            f"# A model of the workloads of source {plain(source)}",
            f"{plain(found['model_id'])}, trained on data version {found['data_version']}: "
            f"{learned} of {int(figures.get('trained.classes') or 0)} workloads. {in_use}",
            f"## On {held_out} that were held out ({plain(found['held_out'])})",
            table(("measure", "share of them"), rows),
            _new_workloads(figures),
            "## Taken for something else" if taken else "",
            table(("what ran", "taken for", "runs"), taken[:MAX_ROWS]) + rest(len(taken)) if taken else "",
        ]
    )


def identifications_page(source: str, found: IdentifiedRuns, rows: pd.DataFrame) -> str:
    """What each run was, how sure, and why."""
    title = f"# What ran in source {plain(source)}"
    refused = [f"- {plain(line)}" for line in found["refused"][:MAX_ROWS]]
    told = (
        f"{counted(found['n_runs'], 'run')} identified by {plain(found['model_id'])}: {found['n_known']:,} known, "
        f"{found['n_unknown']:,} unknown."
    )
    return joined(
        [
            title,
            told if found["n_runs"] else "No run that had not been identified before.",
            _table_of(rows) if len(rows) else "",
            "\n".join(["## Runs that cannot be compared with the model", *refused]) + rest(len(found["refused"]))
            if refused
            else "",
        ]
    )


def watch_page(source: str, found: IdentifiedRuns, rows: pd.DataFrame, alarms: pd.DataFrame) -> str:
    """What was looked at, and the alarms that nobody was told of before."""
    new = [
        (message, kind, str(raised_at)[:MINUTE_CHARS])
        for message, kind, raised_at in alarms[["message", "kind", "raised_at"]].itertuples(index=False)
    ]
    return joined(
        [
            f"# What runs in source {plain(source)}",
            f"{counted(len(new), 'new alarm')}."
            if new
            else "Nothing runs that should not and was not reported before.",
            table(("alarm", "kind", "raised (UTC)"), new[:MAX_ROWS]) + rest(len(new)) if new else "",
            "## Looked at",
            _table_of(rows) if len(rows) else "No run.",
            "\n".join(f"- {plain(line)}" for line in found["refused"][:MAX_ROWS]),
        ]
    )


def evaluation_page(what: str, figures: Mapping[str, Any], drawn: str = "") -> str:
    """All figures of an evaluation, and why some cannot be had. drawn: its tables and pictures, which come first."""
    keys = [key for key in figures if not key.endswith(".reason") and key != "report"]
    rows = [(key, _figure(figures[key]) or figures.get(f"{key}.reason") or "") for key in keys]
    title = f"# How well the workloads of {plain(what)} are told apart"
    head = [drawn.rstrip(), "## All figures"] if drawn else [title]
    return joined([*head, table(("figure", "value"), rows)])


def _figure(value: Any) -> str:
    if value is None:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number(value) if is_number else str(value)


def _new_workloads(figures: Mapping[str, Any]) -> str:
    n_new, n_told = int(figures.get("held_out.n_new") or 0), int(figures.get("held_out.n_new_unknown") or 0)
    if not n_new:
        return ""
    return f"{counted(n_new, 'held-out run')} of workloads that were not learned: {n_told:,} called unknown."


def _table_of(rows: pd.DataFrame) -> str:
    cells = [
        (
            row["run_id"],
            said(row),
            share(row["confidence"]),
            row["nearest"],
            digits(row["nearest_distance"], 3),
            "" if pd.isna(row["label"]) else row["label"],
            "; ".join(list(row["reasons"])[:2]),
        )
        for row in rows.head(MAX_ROWS).to_dict("records")
    ]
    return table(FOUND, cells) + rest(len(rows))


train = step(model_steps.train)
identify = step(model_steps.identify)
evaluate_files = step(model_steps.evaluate_files)
evaluate_source = step(model_steps.evaluate_source)


@flow(name="workloads-train", run_name=lambda: of_source("train on workloads of"), tags=TAGS)
def workloads_train(params: WorkloadTrainParams) -> WorkloadTrained:
    """Train a model of the workloads of a source, and put it into use if it is better than the one before.

    It learns from labelled runs and is measured on those that were held out: the last round, or the later part of each
    workload. Better: more of the very same held-out runs identified. Models stay until they are pruned, so
    'whorl models rollback' brings the former one back."""
    warehouse, source = params.warehouse, params.source
    found = train(warehouse, source, params.identify, params.train, params.left_out, str(flow_run.id))
    path = write_report(warehouse, WORD, source, found["model_id"])
    figures = read_figures(warehouse, source, found["model_id"])
    confusion = read_confusion(warehouse, source, found["model_id"])
    told = training_page(source, found, figures, confusion)
    parts = [told, confusion_part(confusion, found["model_id"]), report_part(path)]
    publish(artifact_key(WORD, source, "model"), joined(parts), f"The model of the workloads of source {source}")
    return WorkloadTrained(**found, report=path)


@flow(name="workloads-identify", run_name=lambda: of_source("identify workloads of"), tags=TAGS)
def workloads_identify(params: WorkloadIdentifyParams) -> WorkloadsIdentified:
    """Say what ran, run by run, by the model in use, and keep it; an unknown workload is told with its nearest.

    A run that lacks the counters of the model is listed, and does not hold up the others."""
    warehouse, source = params.warehouse, params.source
    found = identify(warehouse, source, params.run_ids or None, params.which)
    path = write_report(warehouse, WORD, source, f"{found['model_id']} {found['run_ids']}")
    rows = read_identifications(warehouse, source, found["run_ids"])
    parts = [identifications_page(source, found, rows), timeline_part(rows), report_part(path)]
    publish_summary(warehouse, WORD, source, path)
    publish(artifact_key(WORD, source, "identifications"), joined(parts), f"What ran in source {source}")
    return WorkloadsIdentified(**found, report=path)


@flow(name="workloads-evaluate", run_name=lambda: of_evaluation("telemetry"), tags=TAGS)
def workloads_evaluate(params: WorkloadEvaluateParams) -> dict[str, Any]:
    """Measure how well workloads are told apart, and known from unknown; figures, tables and a page are kept, no model.

    The figures are the result of the run, so 'whorl runs compare A B' shows two experiments beside each other; the page
    of a source shows the last ones."""
    warehouse, source = params.warehouse, params.source
    folder = str(warehouse.home / "reports" / f"workloads-evaluation-{str(flow_run.id)[:8]}")
    if params.telemetry or params.read.manifest:
        reader = reader_asked_for(params.reader)
        figures = evaluate_files(params.telemetry, reader, params.read, params.evaluate, params.identify, folder)
        what, key = files_or_source("telemetry"), "files"
    else:
        figures = evaluate_source(warehouse, source, params.evaluate, params.identify, folder)
        write_report(warehouse, WORD, source, str(flow_run.id))
        what, key = f"source {source}", source
    page = joined(
        [evaluation_page(what, figures, model_steps.drawn_evaluation(folder)), report_part(figures["report"])]
    )
    publish(artifact_key(WORD, key, "evaluation"), page, f"Evaluation of {what}")
    return figures


RECORDED_AS = "wide"

record_live = step(watch_steps.record_live)
runs_of_batch = step(watch_steps.runs_of_batch)
newest = step(model_steps.newest)
require_model = step(model_steps.require_model)
watch = step(watch_steps.watch)
announce_alarms = step(announce)


@flow(
    name="workloads-watch",
    run_name=lambda: of_source("watch the workloads of"),
    tags=TAGS,
)
def workloads_watch(params: WorkloadWatchParams) -> WorkloadsWatched:
    """Look at what runs, and raise an alarm where it is not what should run, or is unknown; the same going on is told
    once.

    What runs now is recorded for a while and kept in the source without a label; or the latest runs of the source are
    looked at. Alarms stand in ops.alarms, and each is an event whorl.workloads.alarm that an automation can send on."""
    warehouse, source = params.warehouse, params.source
    require_model(warehouse, source)
    found = identify(warehouse, source, _looked_at(params), "all")
    _require_sight(source, found)
    ids = watch(warehouse, source, found["run_ids"], params.watch)
    announce_alarms(warehouse, ids)
    alarms = read_alarms(warehouse, ids=ids, limit=max(1, len(ids)))
    rows = read_identifications(warehouse, source, found["run_ids"])
    path = write_report(warehouse, WORD, source, ", ".join(ids)) if ids else ""
    picture = watched_part(warehouse, source, rows, params.watch.expected)
    parts = [watch_page(source, found, rows, alarms), picture, report_part(path)]
    publish(artifact_key(WORD, source, "alarms"), joined(parts), f"What runs in source {source}, and what should not")
    return WorkloadsWatched(
        run_ids=found["run_ids"], model_id=found["model_id"], alarms=ids, n_alarms=len(ids), report=path
    )


def _looked_at(params: WorkloadWatchParams) -> list[str]:
    """The runs to look at: one that is recorded now, or the latest of the source."""
    warehouse, source, asked = params.warehouse, params.source, params.watch
    if asked.look_at == "newest":
        return newest(warehouse, source, asked.newest)
    path = record_live(warehouse, asked.subject, asked.seconds, params.record, str(flow_run.id))
    batch_id = ingest_batch(warehouse, land_telemetry(warehouse, path, source, RECORDED_AS, ReadParams()))
    found = runs_of_batch(warehouse, source, batch_id)
    if not found:
        raise BadInput(path, "no run in it that can be used", "what was just recorded", "ops.quarantine says why")
    return found


def _require_sight(source: str, found: IdentifiedRuns) -> None:
    """Raise BadInput if nothing that was looked at could be identified: silence would pass for all being well."""
    if found["refused"] and not found["run_ids"]:
        raise BadInput(
            f"source {source!r}",
            f"the model in use cannot see what runs: {found['refused'][0]}",
            "the counters that it was trained on",
            "train on what is recorded here",
        )
