"""The word `workloads` as flows: telemetry in, phases, models, what ran, watch, recording."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal

import pandas as pd
from prefect import Task
from prefect.runtime import flow_run
from pydantic import Field

from flows.cli.output import runs_or_windows
from flows.engine import artifacts, forms
from flows.engine.forms import flow
from flows.engine.steps import files_or_inbox, load_each, step, unless_refused
from tasks.choices import DEFAULT_SOURCE, ONLY_SOURCE, TelemetryReader, intake_reader
from tasks.errors import BadInput, MissingTool
from tasks.params import Params
from tasks.quantities import counted, plain, share
from tasks.report.result import count
from tasks.workloads import fingerprint_steps, steps
from tasks.workloads import params as of_workloads
from tasks.workloads.identifications import read_identifications
from tasks.workloads.models import read_figures
from tasks.workloads.steps import IdentifiedRuns

WORD = "workloads"
INBOX = "inbox-workloads"  # in the home folder; job logs have one of their own
RECORDED_AS = "wide"
NO_ALARM = "Nothing runs that should not and was not reported before."
MOST_REFUSED = 50

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
announce_alarms = step(artifacts.announce)


class WorkloadRecordParams(Params):
    """A recording of real workloads on the machine of the worker."""

    FIRST: ClassVar = "record.minutes record.workloads record.rounds record.runs record.conditions record.seed"
    folder: forms.Folder
    record: of_workloads.RecordParams = of_workloads.RecordParams()


@flow(lambda: f"record workloads for {flow_run.parameters['minutes']:g} minutes")
def workloads_record(params: WorkloadRecordParams) -> dict[str, Any]:
    """Run real workloads on the worker's machine and record its telemetry; a run that is continued goes on."""
    return {**record(params.record, params.folder.replace("{run}", str(flow_run.id)[:8]))}


class WorkloadIngestParams(forms.InHomeParams):
    """Telemetry into the warehouse."""

    FIRST: ClassVar = f"{forms.LABELLED} read.pseudonymise"
    telemetry: list[str] = Field(
        [],
        description="Telemetry to read: files, folders of them, or the address of a Prometheus server; empty: the "
        f"files of read.manifest, or without one the folder {INBOX} in the home folder",
    )
    source: forms.Source = Field(DEFAULT_SOURCE, description=forms.SOURCE)
    reader: TelemetryReader = Field("auto", description="Format of the files; auto looks into each")
    read: of_workloads.ReadParams = of_workloads.ReadParams()


@flow(lambda: forms.of_ingest("telemetry", "the inbox"))
def workloads_ingest(params: WorkloadIngestParams) -> dict[str, Any]:
    """Read telemetry into the warehouse.

    Files that were read before add nothing. A file that cannot be read does not hold up the others: they are loaded,
    and the run fails at its end with a line that says which file and why. Single bad rows go to the quarantine."""
    warehouse, source, read, reader = params.warehouse, params.source, params.read, intake_reader(params.reader)
    is_named, find = bool(params.telemetry or read.manifest), lambda paths: find_files(paths, read)
    files = files_or_inbox(warehouse, INBOX, params.telemetry, is_named=is_named, find=find)
    ids, refused = load_each(
        files, lambda path: ingest_batch(warehouse, land_telemetry(warehouse, path, source, reader, read))
    )
    tables = {"runs": "run", "counters": "counter of a run"}
    batches = artifacts.show_ingest(warehouse, WORD, source, "Telemetry", ids, tables, refused)
    result = {
        "batches": ids,
        "n_runs": sum(batch.tables["runs"].n_rows for batch in batches),
        "n_quarantined": sum(batch.n_quarantined for batch in batches),
        "data_version": source_version(warehouse, source, ids) if ids else "",
    }
    return unless_refused(result, refused, len(files), "telemetry")


class FingerprintFlowParams(forms.OfSourceParams):
    """The phases of the runs of a source."""

    FIRST: ClassVar = "fan_out.ray_address"
    fan_out: of_workloads.FanOutParams = of_workloads.FanOutParams()


@flow(lambda: forms.of_source("fingerprint the runs of"))
def workloads_fingerprint(params: FingerprintFlowParams) -> dict[str, Any]:
    """Find the phases of every run of a source, and write them to the warehouse.

    A run whose samples and parameters have not changed is not done again. The work is shared out in parts, which are
    tried again on their own, and run on Ray where an address is set; a run that is continued goes on with the parts
    that are missing."""
    warehouse, source = params.warehouse, params.source
    plan = plan_fingerprints(warehouse, source, params.fan_out)
    n_new = sum(keep_phases(warehouse, source, path) for path in fanned_out(cut_phases, plan["parts"], params.fan_out))
    clear_parts(plan["parts"])
    title, n_parts = f"The phases of the runs of source {source}", len(plan["parts"])
    done = (
        f"{counted(n_new, 'run')} of {plan['n_runs']:,} cut now, in {counted(n_parts, 'part')}; "
        f"{plan['n_done']:,} had their phases."
    )
    answer: dict[str, Any] = {"n_runs": plan["n_runs"], "n_new": n_new, "n_done": plan["n_done"], "n_parts": n_parts}
    answer["data_version"] = plan["data_version"]
    sections = ("Runs by workload and input", "When a run changes")
    return artifacts.reported(WORD, params, answer, "fingerprints", title, done, sections=sections, is_summarised=True)


class WorkloadTrainParams(forms.OfSourceParams):
    """The training of a model of the workloads of a source."""

    FIRST: ClassVar = "train.hold_out identify.known_recall identify.seed"
    identify: of_workloads.IdentifyParams = of_workloads.IdentifyParams()
    train: of_workloads.TrainParams = of_workloads.TrainParams()
    left_out: list[str] = Field([], description="Ids of runs that are neither learned nor measured")


@flow(lambda: forms.of_source("train on workloads of"))
def workloads_train(params: WorkloadTrainParams) -> dict[str, Any]:
    """Train a model of the workloads of a source, and put it into use if it is better than the one before.

    It is measured on labelled runs that are held out, the last round or the later part of each workload, and learns
    them as well in the end. Better: more of the very same held-out runs identified. Models stay until they are pruned,
    so 'whorl models rollback' brings the former one back."""
    warehouse, source = params.warehouse, params.source
    training = train(warehouse, source, params.identify, params.train, params.left_out, str(flow_run.id))
    figures = read_figures(warehouse, source, training["model_id"])
    parts = (
        f"# A model of the workloads of source {plain(source)}",
        artifacts.facts_part(training_facts(training, figures), "of the model"),
        "## On what was held out",
        artifacts.figures_part({key: value for key, value in figures.items() if key.startswith("held_out.")}),
    )
    title, sections = f"The model of the workloads of source {source}", ("What runs were taken for",)
    return artifacts.reported(WORD, params, {**training}, "model", title, *parts, sections=sections)


SHARES = {
    "held_out.accuracy": "identified",
    "held_out.macro_f1": "macro F1",
    "held_out.false_unknown": "called unknown",
}


def training_facts(training: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, str]:
    """What a training came to, in words. figures: of its model."""
    learned, held_out = (
        runs_or_windows(figures[f"{part}.n"], figures.get(f"{part}.n_windows")) for part in ("trained", "held_out")
    )
    return {
        "model": training["model_id"],
        "in use": forms.in_use(training, "no worse on the same runs, so it stays in use"),
        "learned": f"{learned} of {count(figures['trained.classes'])} workloads",
        "held out": f"{held_out} ({training['held_out']}) at first, which the figures below are of",
        **{words: share(figures[key]) for key, words in SHARES.items()},
        "data version": training["data_version"],
    }


class WorkloadIdentifyParams(forms.OfSourceParams):
    """The identification of runs of a source by its model in use."""

    run_ids: list[str] = Field([], description="Ids of the runs to identify; empty: those that the next field names")
    which: Literal["new", "unlabelled", "all"] = Field(
        "new", description="new: runs that the model in use has not identified; unlabelled: those without a label; all"
    )


@flow(lambda: forms.of_source("identify workloads of"))
def workloads_identify(params: WorkloadIdentifyParams) -> dict[str, Any]:
    """Say what ran, run by run, by the model in use, and keep it; an unknown workload is told with its nearest.

    A run that lacks the counters of the model is listed, and does not hold up the others."""
    warehouse, source = params.warehouse, params.source
    identified = identify(warehouse, source, params.run_ids or None, params.which)
    rows = read_identifications(warehouse, source, identified["run_ids"])
    done = (
        f"{counted(identified['n_runs'], 'run')} identified by {plain(identified['model_id'])}: "
        f"{identified['n_known']:,} known, {identified['n_unknown']:,} unknown."
    )
    parts = (
        f"# What ran in source {plain(source)}",
        done if identified["n_runs"] else "No run that had not been identified before.",
        *_identified(rows, identified["refused"]),
    )
    title, sections = f"What ran in source {source}", ("What ran when",) if len(rows) else ()
    return artifacts.reported(
        WORD, params, {**identified}, "identifications", title, *parts, sections=sections, is_summarised=True
    )


class WorkloadEvaluateParams(forms.InHomeParams):
    """An experiment: how well workloads of a source, or of telemetry in files, are told apart."""

    FIRST: ClassVar = f"{forms.LABELLED} window_s=evaluate.windows.width_s"
    source: forms.OfSource = Field(
        ONLY_SOURCE, description=f"{forms.OF_SOURCE}; not looked at where telemetry is named"
    )
    telemetry: list[str] = Field(
        [], description="Labelled telemetry to evaluate instead of the source: files or folders; it is not kept"
    )
    reader: TelemetryReader = Field("auto", description="Format of these files; auto looks into each")
    read: of_workloads.ReadParams = of_workloads.ReadParams()
    evaluate: of_workloads.EvaluateParams = of_workloads.EvaluateParams()
    identify: of_workloads.IdentifyParams = of_workloads.IdentifyParams()


@flow(lambda: forms.of_evaluation("telemetry"))
def workloads_evaluate(params: WorkloadEvaluateParams) -> dict[str, Any]:
    """Measure how well workloads are told apart, and known from unknown; figures, tables and a page are kept, no model.

    The figures are the result of the run, so 'whorl runs compare A B' shows two experiments beside each other; the page
    of a source shows the last ones."""
    warehouse, source, folder = params.warehouse, params.source, forms.evaluation_folder(params.warehouse, WORD)
    if params.telemetry or params.read.manifest:
        reader = intake_reader(params.reader)
        figures = evaluate_files(params.telemetry, reader, params.read, params.evaluate, params.identify, folder)
        what, about = forms.files_or_source("telemetry"), "files"
    else:
        figures = evaluate_source(warehouse, source, params.evaluate, params.identify, folder)
        artifacts.write_report(warehouse, WORD, source, str(flow_run.id))
        what, about = f"source {source}", source
    parts = (steps.drawn_evaluation(folder).rstrip(), "## All figures", artifacts.figures_part(figures))
    artifacts.show(warehouse, WORD, about, "evaluation", f"Evaluation of {what}", *parts, path=figures["report"])
    return figures


class WorkloadWatchParams(forms.InHomeParams):
    """The check of what runs against what should run."""

    FIRST: ClassVar = "watch.look_at watch.expected watch.seconds watch.subject watch.newest"
    source: forms.OfSource = Field(ONLY_SOURCE, description=f"{forms.OF_SOURCE}; its model in use says what runs")
    watch: of_workloads.WatchParams = of_workloads.WatchParams()
    record: of_workloads.RecordParams = of_workloads.RecordParams()


@flow(lambda: forms.of_source("watch the workloads of"))
def workloads_watch(params: WorkloadWatchParams) -> dict[str, Any]:
    """Look at what runs, and raise an alarm where it is not what should run, or is unknown; the same going on is told
    once.

    What runs now is recorded for a while and kept in the source without a label; or the latest runs of the source are
    looked at. Alarms stand in ops.alarms, and each is an event whorl.workloads.alarm that an automation can send on."""
    warehouse, source = params.warehouse, params.source
    require_model(warehouse, source)
    seen = identify(warehouse, source, _looked_at(params), "all")
    _require_sight(source, seen)
    ids = watch(warehouse, source, seen["run_ids"], params.watch)
    announce_alarms(warehouse, ids)
    rows = read_identifications(warehouse, source, seen["run_ids"])
    title = f"What runs in source {source}, and what should not"
    parts = (
        artifacts.alarms_part(title, warehouse, ids, NO_ALARM),
        "## Looked at",
        *(_identified(rows, seen["refused"]) if len(rows) else ("No run.",)),
    )
    answer = {"run_ids": seen["run_ids"], "model_id": seen["model_id"], "alarms": ids, "n_alarms": len(ids)}
    sections = ("What ran when",)
    return artifacts.reported(WORD, params, answer, "alarms", title, *parts, sections=sections, has_page=bool(ids))


def _identified(rows: pd.DataFrame, refused: Sequence[str]) -> tuple[str, str]:
    """What each run was, how sure and why; and why others could not be compared. rows: of read_identifications."""
    from tasks.report.result import table_markdown
    from tasks.report.workloads import identified_table

    lines = [f"- {plain(line)}" for line in refused[:MOST_REFUSED]]
    none = "\n".join(["## Runs that cannot be compared with the model", *lines]) if lines else ""
    return table_markdown(identified_table(rows)) if len(rows) else "", none


def _looked_at(params: WorkloadWatchParams) -> list[str]:
    """The runs to look at: one that is recorded now, or the latest of the source."""
    warehouse, source, settings = params.warehouse, params.source, params.watch
    if settings.look_at == "newest":
        return newest(warehouse, source, settings.newest)
    path = record_live(warehouse, settings.subject, settings.seconds, params.record, str(flow_run.id))
    batch_id = ingest_batch(warehouse, land_telemetry(warehouse, path, source, RECORDED_AS, of_workloads.ReadParams()))
    run_ids = runs_of_batch(warehouse, source, batch_id)
    if not run_ids:
        raise BadInput(path, "no run in it that can be used", "what was just recorded", "ops.quarantine says why")
    return run_ids


def _require_sight(source: str, identified: IdentifiedRuns) -> None:
    """Raise BadInput if nothing that was looked at could be identified: silence would pass for all being well."""
    if identified["refused"] and not identified["run_ids"]:
        raise BadInput(
            f"source {source!r}",
            f"the model in use cannot see what runs: {identified['refused'][0]}",
            "the counters that it was trained on",
            "train on what is recorded here",
        )


LOCAL = "local"
QUIET: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False}
OBJECT_STORE_BYTES = 200 * 2**20  # parts are handed over as paths


def fanned_out(work: Task[[str], str], parts: Sequence[str], fan_out: of_workloads.FanOutParams) -> Iterator[str]:
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
            for future in futures:  # all parts end before Ray goes, also when one has failed: what they made is kept
                with suppress(Exception):
                    future.wait()


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
