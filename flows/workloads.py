"""The word `workloads` as flows: telemetry in, phases, models, what ran, watch, recording."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd
from prefect import Task
from prefect.runtime import flow_run

from flows.cli.output import runs_or_windows
from flows.engine.artifacts import (
    alarms_part,
    announce,
    facts_part,
    figures_part,
    ingest_part,
    publish_summary,
    show,
    site_address,
    write_report,
)
from flows.engine.forms import files_or_source, flow, of_evaluation, of_ingest, of_source
from flows.engine.steps import files_or_inbox, load_each, not_all_read, step
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
from tasks.choices import reader_asked_for
from tasks.errors import BadInput, MissingTool
from tasks.quantities import counted, plain, share
from tasks.report.result import count
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.landing import find_batch
from tasks.warehouse.place import Warehouse
from tasks.workloads import fingerprint_steps, steps
from tasks.workloads.identifications import read_identifications
from tasks.workloads.models import read_confusion, read_figures
from tasks.workloads.params import FanOutParams, ReadParams
from tasks.workloads.steps import IdentifiedRuns

WORD = "workloads"
TAGS = [WORD]
RECORDED_AS = "wide"
NO_ALARM = "Nothing runs that should not and was not reported before."
MOST_ALARMS, MOST_REFUSED = 10_000, 50

record = step(steps.record)
find_files = step(steps.find_files)
land_telemetry = step(steps.land_telemetry)
ingest_batch = step(steps.ingest_batch)
source_version = step(steps.source_version)
plan_fingerprints = step(fingerprint_steps.plan_fingerprints)
cut_phases = step(fingerprint_steps.cut_phases)
keep_phases = step(fingerprint_steps.keep_phases)
clear_parts = step(fingerprint_steps.clear_parts)
train = step(steps.train)
identify = step(steps.identify)
evaluate_files = step(steps.evaluate_files)
evaluate_source = step(steps.evaluate_source)
newest = step(steps.newest)
require_model = step(steps.require_model)
record_live = step(steps.record_live)
runs_of_batch = step(steps.runs_of_batch)
watch = step(steps.watch)
announce_alarms = step(announce)


@flow(
    name="workloads-record",
    run_name=lambda: f"record workloads for {flow_run.parameters['minutes']:g} minutes",
    tags=TAGS,
)
def workloads_record(params: WorkloadRecordParams) -> dict[str, Any]:
    """Run real workloads on the worker's machine and record its telemetry; a run that is continued goes on."""
    return {**record(params.record, params.folder.replace("{run}", str(flow_run.id)[:8]))}


@flow(name="workloads-ingest", run_name=lambda: of_ingest("telemetry", "the inbox"), tags=TAGS)
def workloads_ingest(params: WorkloadIngestParams) -> dict[str, Any]:
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
    part = ingest_part(
        f"Telemetry of source {source}", batches, {"runs": "run", "counters": "counter of a run"}, refused
    )
    show(warehouse, WORD, source, "ingest", f"Telemetry read into source {source}", part)
    result = {
        "batches": ids,
        "n_runs": sum(batch.tables["runs"].n_rows for batch in batches),
        "n_quarantined": sum(batch.n_quarantined for batch in batches),
        "data_version": source_version(warehouse, source, ids) if ids else "",
    }
    if refused:
        raise not_all_read(refused, len(files), "telemetry", result)
    return result


@flow(name="workloads-fingerprint", run_name=lambda: of_source("fingerprint the runs of"), tags=TAGS)
def workloads_fingerprint(params: FingerprintFlowParams) -> dict[str, Any]:
    """Find the phases of every run of a source, and write them to the warehouse.

    A run whose samples and parameters have not changed is not done again. The work is shared out in parts, which are
    tried again on their own, and run on Ray where an address is set; a run that is continued goes on with the parts
    that are missing."""
    warehouse, source = params.warehouse, params.source
    plan = plan_fingerprints(warehouse, source, params.fan_out)
    n_new = sum(keep_phases(warehouse, source, path) for path in fanned_out(cut_phases, plan["parts"], params.fan_out))
    clear_parts(plan["parts"])
    path = write_report(warehouse, WORD, source, f"{plan['data_version']} {plan['parts']}")
    publish_summary(warehouse, WORD, source, path)
    title, n_parts = f"The phases of the runs of source {source}", len(plan["parts"])
    done = (
        f"{counted(n_new, 'run')} of {plan['n_runs']:,} cut now, in {counted(n_parts, 'part')}; "
        f"{plan['n_done']:,} had their phases."
    )
    sections = ("Runs by workload and input", "Phases side by side", "When a run changes")
    show(warehouse, WORD, source, "fingerprints", title, done, path=path, sections=sections)
    counts = {"n_runs": plan["n_runs"], "n_new": n_new, "n_done": plan["n_done"], "n_parts": n_parts}
    return {**counts, "data_version": plan["data_version"], "report": path}


@flow(name="workloads-train", run_name=lambda: of_source("train on workloads of"), tags=TAGS)
def workloads_train(params: WorkloadTrainParams) -> dict[str, Any]:
    """Train a model of the workloads of a source, and put it into use if it is better than the one before.

    It learns from labelled runs and is measured on those that were held out: the last round, or the later part of each
    workload. Better: more of the very same held-out runs identified. Models stay until they are pruned, so
    'whorl models rollback' brings the former one back."""
    warehouse, source = params.warehouse, params.source
    found = train(warehouse, source, params.identify, params.train, params.left_out, str(flow_run.id))
    path = write_report(warehouse, WORD, source, found["model_id"])
    figures = read_figures(warehouse, source, found["model_id"])
    parts = (
        f"# A model of the workloads of source {plain(source)}",
        facts_part(training_facts(found, figures), "of the model"),
        "## On what was held out",
        figures_part({key: value for key, value in figures.items() if key.startswith("held_out.")}),
        _confusion(read_confusion(warehouse, source, found["model_id"]), found["model_id"]),
    )
    show(warehouse, WORD, source, "model", f"The model of the workloads of source {source}", *parts, path=path)
    return {**found, "report": path}


SHARES = {
    "held_out.accuracy": "identified",
    "held_out.macro_f1": "macro F1",
    "held_out.false_unknown": "called unknown",
}


def training_facts(found: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, str]:
    """What a training came to, in words. figures: of its model."""
    learned, held_out = (
        runs_or_windows(figures[f"{part}.n"], figures.get(f"{part}.n_windows")) for part in ("trained", "held_out")
    )
    champion = found["champion_id"]
    in_use = "this model" if champion == found["model_id"] else f"{champion}: no worse on the same runs, so it stays"
    return {
        "model": found["model_id"],
        "in use": in_use,
        "learned": f"{learned} of {count(figures['trained.classes'])} workloads",
        "held out": f"{held_out} ({found['held_out']}), which the figures below are of",
        **{words: share(figures[key]) for key, words in SHARES.items()},
        "data version": found["data_version"],
    }


@flow(name="workloads-identify", run_name=lambda: of_source("identify workloads of"), tags=TAGS)
def workloads_identify(params: WorkloadIdentifyParams) -> dict[str, Any]:
    """Say what ran, run by run, by the model in use, and keep it; an unknown workload is told with its nearest.

    A run that lacks the counters of the model is listed, and does not hold up the others."""
    warehouse, source = params.warehouse, params.source
    found = identify(warehouse, source, params.run_ids or None, params.which)
    path = write_report(warehouse, WORD, source, f"{found['model_id']} {found['run_ids']}")
    rows = read_identifications(warehouse, source, found["run_ids"])
    done = (
        f"{counted(found['n_runs'], 'run')} identified by {plain(found['model_id'])}: {found['n_known']:,} known, "
        f"{found['n_unknown']:,} unknown."
    )
    parts = (
        f"# What ran in source {plain(source)}",
        done if found["n_runs"] else "No run that had not been identified before.",
        *_identified(rows, found["refused"]),
        _timeline(rows),
    )
    publish_summary(warehouse, WORD, source, path)
    show(warehouse, WORD, source, "identifications", f"What ran in source {source}", *parts, path=path)
    return {**found, "report": path}


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
        what, about = files_or_source("telemetry"), "files"
    else:
        figures = evaluate_source(warehouse, source, params.evaluate, params.identify, folder)
        write_report(warehouse, WORD, source, str(flow_run.id))
        what, about = f"source {source}", source
    parts = (steps.drawn_evaluation(folder).rstrip(), "## All figures", figures_part(figures))
    show(warehouse, WORD, about, "evaluation", f"Evaluation of {what}", *parts, path=figures["report"])
    return figures


@flow(name="workloads-watch", run_name=lambda: of_source("watch the workloads of"), tags=TAGS)
def workloads_watch(params: WorkloadWatchParams) -> dict[str, Any]:
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
    rows = read_identifications(warehouse, source, found["run_ids"])
    path = write_report(warehouse, WORD, source, ", ".join(ids)) if ids else ""
    title = f"What runs in source {source}, and what should not"
    alarms = read_alarms(warehouse, ids=ids, limit=max(1, len(ids)))
    parts = (
        alarms_part(title, alarms, NO_ALARM, site_address(warehouse)),
        "## Looked at",
        *(_identified(rows, found["refused"]) if len(rows) else ("No run.",)),
        _watched(warehouse, source, rows, params.watch.expected),
    )
    show(warehouse, WORD, source, "alarms", title, *parts, path=path)
    ended = {"run_ids": found["run_ids"], "model_id": found["model_id"]}
    return {**ended, "alarms": ids, "n_alarms": len(ids), "report": path}


def _identified(rows: pd.DataFrame, refused: Sequence[str]) -> tuple[str, str]:
    """What each run was, how sure and why; and why others could not be compared. rows: of read_identifications."""
    from tasks.report.result import table_markdown
    from tasks.report.workloads import identified_table

    lines = [f"- {plain(line)}" for line in refused[:MOST_REFUSED]]
    none = "\n".join(["## Runs that cannot be compared with the model", *lines]) if lines else ""
    return table_markdown(identified_table(rows)) if len(rows) else "", none


def _confusion(confusion: pd.DataFrame, model_id: str) -> str:
    """What the held-out runs were taken for. confusion: workload, identified_as, n_runs."""
    from tasks.report.result import figure_markdown
    from tasks.report.workloads_evaluation import confusion_figure

    named = {"workload": "actual", "identified_as": "predicted", "n_runs": "n"}
    return figure_markdown(confusion_figure(confusion.rename(columns=named), f"model {model_id}"))


def _timeline(rows: pd.DataFrame, odd: Sequence[str] = ()) -> str:
    """What ran when; "" without a run. rows: of read_identifications; odd: ids of runs that have raised an alarm."""
    from tasks.report.result import figure_markdown
    from tasks.report.workloads import timeline_figure

    return figure_markdown(timeline_figure(rows, odd)) if len(rows) else ""


def _watched(warehouse: Warehouse, source: str, looked_at: pd.DataFrame, expected: Sequence[str]) -> str:
    """What ran when on the machines of these runs, as far as it was identified.

    looked_at: of read_identifications; expected: workloads that may run, empty: those without an alarm."""
    known = read_identifications(warehouse, source)
    rows = known[known["machine"].isin(looked_at["machine"])]
    alarms = read_alarms(warehouse, source=source, limit=MOST_ALARMS)
    odd = [*alarms.loc[alarms["word"] == "workloads", "subject"]]
    if expected:
        odd += list(rows.loc[~rows["workload"].isin(list(expected)), "run_id"])
    return _timeline(rows, odd)


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
