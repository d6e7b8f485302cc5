"""The steps of `nodes` about results themselves: recorded, landed, ingested, evaluated. Keys in, keys out."""

import logging
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.errors import BadInput
from tasks.figures import Evaluation, rows_of, write_tables
from tasks.nodes import intake
from tasks.nodes.history import History, emulated_nodes, history_of, read_results
from tasks.nodes.node_words import WORD
from tasks.nodes.params import EvaluateParams, ReadParams
from tasks.nodes.record.params import SHORT, RecordParams
from tasks.progress import report_progress
from tasks.warehouse import ingest, landing
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.faults import told_clearly
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import data_version, now, replace_rows

if TYPE_CHECKING:
    from tasks.nodes.record.params import BenchmarkTemplate
    from tasks.nodes.type_tables import Bools

logger = logging.getLogger(__name__)
EMULATED = "SELECT count(DISTINCT node) AS n FROM nodes.executions WHERE source = $source AND is_emulated"


def find_files(paths: list[str], read: ReadParams) -> list[str]:
    """The files and folders of results behind files, folders and the manifest, databases of Perona last."""
    return intake.local_last(intake.find_files(paths, read.manifest))


def land_executions(warehouse: Warehouse, path: str, source: str, reader: str, read: ReadParams) -> str:
    """Read one file or folder into the landing folder; returns the batch id."""
    batch = intake.land_executions(warehouse, path, intake.Intake(source, reader, read))
    n_executions, n_refused = batch.tables["executions"].n_rows, batch.n_quarantined
    logger.info("read %s with %s: %d executions, %d rows refused", path, batch.origin.reader, n_executions, n_refused)
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


def count_emulated(warehouse: Warehouse, source: str, after: list[str]) -> int:
    """How many nodes of a source are emulated. after: batches that it rests on, as for source_version."""
    found = fetch(warehouse, EMULATED, {"source": source})
    logger.debug("counted emulated nodes of source %s after %d batches", source, len(after))
    return int(found["n"].iloc[0])


Turn = Callable[["BenchmarkTemplate"], AbstractContextManager[object]]

PARTS = "executions-*.parquet"  # disturbed executions stand in flagged-*.parquet, and are repeated
RECORDED_AS = "recorded"


def record(params: RecordParams, out_dir: str, turn: Turn | None = None) -> dict[str, Any]:
    """Run and record benchmarks on this machine; returns the folder of the recording, and figures.

    turn: entered around each execution, so that those that need the network can wait for each other. n_planned,
    n_clean: executions of the campaign, and those of them that were recorded undisturbed so far (of this call where
    there is no campaign); n_new, n_failed: of this call; unavailable: what of a node does not work on this machine;
    sampler_cores: CPU time of the sampler over time."""
    from tasks.nodes.record.campaign import record_nodes

    def tell(done: int, total: int) -> None:
        report_progress("recording benchmarks", done, total)

    found = record_nodes(params, Path(out_dir), tell, turn=turn)
    logger.info("recorded %s", found)
    unavailable = {node: list(faults) for node, faults in found.unavailable.items()}
    own = {"campaign": found.campaign, "nodes": list(found.nodes), "unavailable": unavailable}
    return found.told(out_dir, **own, sampler_cores=found.sampler_cores)


def land_recording(folder: str, landing_folder: str, source: str, after: int) -> list[str]:
    """Put the parts of a recording into a landing folder, which any number of nodes may share; returns the batch ids.

    Parts that were put there before stay as they are. after: executions recorded so far: with more it is done again."""
    logger.debug("landing after %d executions", after)
    asked = intake.Intake(source, RECORDED_AS, ReadParams())
    with tempfile.TemporaryDirectory(prefix="whorl-landing-") as home:  # this machine needs no warehouse
        place = Warehouse(home=Path(home), landing=landing_folder)
        with told_clearly(place.landing_folder):
            known = landing.batches(place.landing_folder, WORD)  # once, and not for each part: they become many
        batches: list[landing.Batch] = []
        for part in sorted(Path(folder).glob(PARTS), key=lambda path: (len(path.name), path.name)):
            batches.append(intake.land_executions(place, str(part), asked, [*known, *batches]))
    logger.info("%d parts of %s are in %s, source %s", len(batches), folder, landing_folder, source)
    return [batch.batch_id for batch in batches]


def landed_batches(warehouse: Warehouse, source: str) -> list[str]:
    """The ids of batches of a source that lie in the landing folder and are not in the warehouse yet, in order."""
    there = [batch for batch in landing.live_batches(warehouse.landing_folder, WORD) if batch.origin.source == source]
    if not there or not warehouse.file.exists():
        return [batch.batch_id for batch in there]
    known = set(fetch(warehouse, "SELECT batch_id FROM ops.files WHERE word = $word", {"word": WORD})["batch_id"])
    return [batch.batch_id for batch in there if batch.batch_id not in known]


def benchmarks_of_aspect(warehouse: Warehouse, source: str, node: str, aspect: str) -> list[str]:
    """The benchmarks of an aspect that a node has run and that our recorder can run, by name."""
    found = fetch(
        warehouse,
        "SELECT DISTINCT benchmark FROM nodes.executions "
        "WHERE source = $source AND node = $node AND coalesce(aspect, 'unknown') = $aspect ORDER BY benchmark",
        {"source": source, "node": node, "aspect": aspect},
    )
    ours = {template.benchmark for template in SHORT}
    return [str(name) for name in found["benchmark"] if name in ours]


def evaluate_files(
    paths: list[str], reader: str, read: ReadParams, evaluate: EvaluateParams, folder: str
) -> dict[str, Any]:
    """The figures of an evaluation of results in files; `report`: path of its page.

    folder: where the page and the tables behind it are written."""
    found, name, emulated = evaluate_results(paths, reader, read, evaluate)
    return {**found.figures, "report": write_page(found, name, folder, emulated)}


def evaluate_results(
    paths: list[str], reader: str, read: ReadParams, evaluate: EvaluateParams, *, train: Sequence[str] = ()
) -> tuple[Evaluation, str, frozenset[str]]:
    """An evaluation of results in files, what to call it, and which of its nodes are emulated.

    Its figures n_refused, n_values_refused and n_replaced count the rows of the files that no execution could be made
    of, single values of others that could not be used, and executions that a later file or row gives again.
    train: files or folders of another recording, which detectors learn from alone; those of `paths` are tested. Raises
    BadInput where a name or id of one is called otherwise beside the other."""
    read_now = read_results([*train, *paths], read, reader)
    taught = None
    if train:
        own = read_results(list(train), read, reader).history.executions["execution_id"]
        taught = read_now.history.executions["execution_id"].isin(own).to_numpy(dtype=bool)
        if taught.sum() != len(own) or taught.all():
            problem = "executions of what is learned from are not told from those that are tested by their ids"
            raise BadInput(", ".join(train), problem, "recordings with ids of their own", "give other paths")
    found, emulated = _evaluated(read_now.history, evaluate, taught)
    for name in ("n_refused", "n_values_refused", "n_replaced"):
        found.figures[name] = getattr(read_now, name)
    name = ", ".join(Path(path).name for path in paths[:3]) or Path(read.manifest).name
    return found, name or "results", emulated


def evaluate_source(warehouse: Warehouse, source: str, evaluate: EvaluateParams, folder: str) -> dict[str, Any]:
    """The figures of an evaluation of the executions of a source, which are kept; the rest is as for files."""
    history, version = history_of(warehouse, source, with_telemetry=bool(evaluate.learned.variants))
    found, emulated = _evaluated(history, evaluate)
    about = {"source": source, "data_version": version, "evaluated_at": now()}
    replace_rows(warehouse, WORD, about, {"evaluation_figures": rows_of(found.figures)})
    page = write_page(found, f"source {source}", folder, emulated)
    return {**found.figures, "report": page}


def _evaluated(
    history: History, evaluate: EvaluateParams, taught: "Bools | None" = None
) -> tuple[Evaluation, frozenset[str]]:
    """An evaluation and the emulated nodes, which its figure nodes.emulated names where there are any."""
    from tasks.nodes.evaluate.protocol import evaluate_history

    found = evaluate_history(history, evaluate, taught=taught)
    emulated = emulated_nodes(history)
    if emulated:
        found.figures["nodes.emulated"] = ", ".join(sorted(emulated))
    return found, emulated


def write_page(found: Evaluation, name: str, folder: str, emulated: frozenset[str]) -> str:
    """Write the tables of an evaluation as Parquet, and a page with its figures; returns the path of the page.

    emulated: nodes that are, and are called so on the page."""
    from tasks.report.nodes_evaluation import evaluation_result
    from tasks.report.page import write_result

    write_tables(found.tables, Path(folder))
    return str(write_result(Path(folder), "nodes-evaluation", evaluation_result(found, name, emulated)))
