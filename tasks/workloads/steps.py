"""The steps of `workloads`: keys in, keys and figures out. Flows wrap them, and commands that ask."""

import logging
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from tasks.errors import report_progress
from tasks.report.evaluation import Evaluation, write_tables
from tasks.warehouse import ingest
from tasks.warehouse.alarms import unannounced
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.pruning import live_folder
from tasks.warehouse.sources import data_version
from tasks.workloads import intake
from tasks.workloads.identifications import Which
from tasks.workloads.models import TrainedModel, model_in_use
from tasks.workloads.params import EvaluateParams, IdentifyParams, ReadParams, RecordParams, TrainParams, WatchParams

logger = logging.getLogger(__name__)


def record(params: RecordParams, out_dir: str) -> dict[str, Any]:
    """Run and record workloads on this machine; returns the folder of the recording, and figures.

    n_planned, n_clean: runs of the campaign, and those of them that were recorded undisturbed so far; n_new, n_failed:
    of this call; isolation: cgroups, or none; sampler_cores: CPU time of the sampler over that of the runs, mean."""
    from tasks.workloads.record.campaign import record_workloads

    recording = record_workloads(params, Path(out_dir), partial(report_progress, "recording workloads"))
    logger.info("recorded %s", recording)
    return recording.as_result(out_dir)


def find_files(paths: list[str], read: ReadParams) -> list[str]:
    """The files and addresses of telemetry behind files, folders, addresses and the manifest."""
    return intake.find_files(paths, read.manifest)


def land_telemetry(warehouse: Warehouse, path: str, source: str, reader: str, read: ReadParams) -> str:
    """Read one file or address into the landing folder; returns the batch id."""
    batch = intake.land_telemetry(warehouse, path, intake.Intake(source, reader, read))
    n_runs, n_refused = batch.tables["runs"].n_rows, batch.n_quarantined
    logger.info("read %s with %s: %d runs, %d rows refused", path, batch.origin.reader, n_runs, n_refused)
    return batch.batch_id


def ingest_batch(warehouse: Warehouse, batch_id: str) -> str:
    """Load a landed batch into the warehouse; returns its id."""
    is_new = ingest.ingest(warehouse, intake.WORD, batch_id)
    logger.info("batch %s %s", batch_id, "loaded" if is_new else "was in the warehouse already")
    return batch_id


def source_version(warehouse: Warehouse, source: str, after: list[str]) -> str:
    """The version of the files of a source. after: batches that it rests on; a continued run with others asks again."""
    with reading(warehouse) as connection:
        version = data_version(connection, intake.WORD, source)
    logger.info("source %s has data version %s after %d batches", source, version, len(after))
    return version


class IdentifiedRuns(TypedDict):
    """What was identified. run_ids: of the runs; refused: those that cannot be compared with the model, and why."""

    model_id: str
    run_ids: list[str]
    n_runs: int
    n_known: int
    n_unknown: int
    refused: list[str]


def train(
    warehouse: Warehouse, source: str, identify: IdentifyParams, train: TrainParams, left_out: list[str], run_id: str
) -> TrainedModel:
    """Train a model on the labelled runs of a source, measure it on held-out ones, and use it if it is the better one.

    left_out: runs that it must not see. run_id: of the flow run; the same run, data and parameters make the same model
    once."""
    from tasks.workloads.training import train_source

    return train_source(warehouse, source, identify, train, run_id=run_id, left_out=left_out)


def identify(warehouse: Warehouse, source: str, run_ids: list[str] | None, which: Which) -> IdentifiedRuns:
    """Identify runs of a source by its model in use, and write workloads.identifications; twice changes nothing.

    run_ids: None or empty for those that `which` says. A run that lacks the counters of the model is listed, and does
    not hold up the others. Raises NotFound without a model or for a run that is not there, BadInput for a broken
    model."""
    from tasks.workloads.identifications import identify_each, runs_to_identify, write_identifications

    card, model = model_in_use(warehouse, source)
    wanted = runs_to_identify(warehouse, source, card.model_id, run_ids, which)
    identified = identify_each(intake.fetch_runs(warehouse, source, wanted) if wanted else [], card, model)
    for error in identified.refused:
        logger.warning("not identified: %s", error)
    said = identified.identifications
    if said:
        write_identifications(warehouse, source, card.model_id, said)
    n_known = sum(identification.is_known for identification in said)
    logger.info("identified %d runs of source %s by %s, %d known", len(said), source, card.model_id, n_known)
    return IdentifiedRuns(
        model_id=card.model_id,
        run_ids=[identification.run_id for identification in said],
        n_runs=len(said),
        n_known=n_known,
        n_unknown=len(said) - n_known,
        refused=[str(error) for error in identified.refused],
    )


def newest(warehouse: Warehouse, source: str, n: int) -> list[str]:
    """The ids of the latest runs of a source, the last one first. Raises NotFound for a source without runs."""
    from tasks.errors import NotFound
    from tasks.workloads.fingerprint_steps import no_runs

    rows = fetch(
        warehouse,
        "SELECT run_id FROM workloads.runs WHERE source = $source "
        "ORDER BY started_at DESC NULLS LAST, run_id DESC LIMIT $n",
        {"source": source, "n": n},
    )
    if rows.empty:
        raise NotFound(no_runs(warehouse, source))
    return [str(run_id) for run_id in rows["run_id"]]


def require_model(warehouse: Warehouse, source: str) -> str:
    """The id of the model in use for a source. Raises NotFound: nothing is to be recorded that nobody can identify."""
    from tasks.warehouse.registry import require_champion
    from tasks.workloads.models import KIND, WORD, no_model

    return require_champion(warehouse.models, WORD, source, KIND, no_model(source)).model_id


def evaluate_files(
    paths: list[str], reader: str, read: ReadParams, evaluate: EvaluateParams, identify: IdentifyParams, folder: str
) -> dict[str, Any]:
    """The figures of an evaluation of labelled telemetry in files; `report`: path of its page.

    folder: where the page and the tables behind it are written."""
    from tasks.workloads.evaluate.protocol import evaluate_read

    evaluation = evaluate_read(paths, read, evaluate, identify, reader)
    name = ", ".join(Path(path).name for path in paths[:3]) or Path(read.manifest).name
    report = write_evaluation(evaluation, name, folder)
    return {**evaluation.figures, "report": report}


def evaluate_source(
    warehouse: Warehouse, source: str, evaluate: EvaluateParams, identify: IdentifyParams, folder: str
) -> dict[str, Any]:
    """The figures of an evaluation of the labelled runs of a source, which are kept. folder, `report`: as for files."""
    from tasks.warehouse.sources import code_version
    from tasks.workloads.evaluate.protocol import evaluate_runs
    from tasks.workloads.models import write_evaluation as write_figures
    from tasks.workloads.training import labelled_runs

    runs, data_version = labelled_runs(warehouse, source)
    evaluation = evaluate_runs(runs, evaluate, identify)
    evaluation.figures.update(data_sha256=data_version, version=code_version())
    write_figures(warehouse, source, evaluation.figures, data_version)
    report = write_evaluation(evaluation, f"source {source}", folder)
    return {**evaluation.figures, "report": report}


def write_evaluation(evaluation: Evaluation, name: str, folder: str) -> str:
    """Write the tables of an evaluation as Parquet, a page with its figures, and the same as markdown; returns the
    path of the page."""
    from tasks.report.page import write_result
    from tasks.report.result import as_markdown
    from tasks.report.workloads_evaluation import evaluation_result

    write_tables(evaluation.tables, Path(folder))
    result = evaluation_result(evaluation, name)
    drawn = [figure.name for part in result.sections for figure in part.figures]
    (Path(folder) / MARKDOWN).write_text(as_markdown(result, pictures=drawn), encoding="utf-8")
    return str(write_result(Path(folder), "workloads-evaluation", result))


MARKDOWN = "workloads-evaluation.md"


def drawn_evaluation(folder: str) -> str:
    """The tables and figures of an evaluation, as its step has written them; "" where the folder is elsewhere."""
    path = Path(folder) / MARKDOWN
    return path.read_text(encoding="utf-8") if path.exists() else ""


def record_live(warehouse: Warehouse, subject: str, seconds: float, record: RecordParams, name: str) -> str:
    """Record what runs now into a file of the home folder; returns its path. name: tells it from other recordings.

    A file that is there already is not recorded again. Raises NotFound for a subject that is not there."""
    from tasks.record.parts import write_table
    from tasks.workloads.record.bench import record_live as sampled
    from tasks.workloads.record.parts import table_of

    path = live_folder(warehouse) / f"live-{name}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        run = sampled(subject, seconds, record)
        facts = {"subject": subject, "seconds": seconds, "params": record.model_dump(mode="json")}
        write_table(path, table_of(run), facts)
        logger.info("recorded %d counters of %s for %g s", len(run.counters), subject, seconds)
    return str(path)


def runs_of_batch(warehouse: Warehouse, source: str, batch_id: str) -> list[str]:
    """The runs that a file gave."""
    rows = fetch(
        warehouse,
        "SELECT run_id FROM workloads.runs WHERE source = $source AND batch_id = $batch_id ORDER BY run_id",
        {"source": source, "batch_id": batch_id},
    )
    return [str(run_id) for run_id in rows["run_id"]]


def watch(warehouse: Warehouse, source: str, run_ids: list[str], watch: WatchParams) -> list[str]:
    """Raise an alarm for those of these runs that are not what should run; returns the ids of those nobody was told of.

    These are the new ones, and the ones of an earlier run that was killed before it could announce them."""
    from tasks.workloads.identifications import WORD, watch_runs

    watch_runs(warehouse, source, run_ids, watch)
    return unannounced(warehouse, WORD, source)
