"""The steps of `nodes` about results themselves (recorded, landed, ingested, evaluated) and Perona's model of them.

Keys in, keys and figures out. Flows wrap them, and commands that ask call them."""

import logging
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import pandas as pd
from pydantic import ValidationError

from tasks.errors import BadInput, report_progress
from tasks.nodes import intake
from tasks.nodes.answers import read_scores
from tasks.nodes.history import History, benchmarks_of, emulated_nodes, history_of, read_results, version_of
from tasks.nodes.node_words import NETWORK, WORD, no_trained_model
from tasks.nodes.params import (
    EvaluateParams,
    ModelParams,
    NetworkSearchParams,
    PreprocessParams,
    ReadParams,
    ScoreParams,
)
from tasks.nodes.record.params import SHORT, RecordParams
from tasks.nodes.verdict_steps import read_flagged
from tasks.params import first_fault
from tasks.report.evaluation import Evaluation, rows_of, write_tables
from tasks.storage import whole
from tasks.warehouse import ingest, landing
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.faults import storage_faults
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, folder_of, require_champion
from tasks.warehouse.sources import data_version, key_of, now, read_row, replace_rows

if TYPE_CHECKING:
    from tasks.nodes.record.params import BenchmarkTemplate
    from tasks.nodes.type_tables import Bools

logger = logging.getLogger(__name__)
JOURNALS = "searches"  # below the home folder
SCORE_COLUMNS = ["aspect", "node", "machine_type", "score", "low", "high", "rank", "n_executions", "n_types"]
EMULATED = "SELECT count(DISTINCT node) AS n FROM nodes.executions WHERE source = $source AND is_emulated"


def find_files(paths: list[str], read: ReadParams) -> list[str]:
    """The files and folders of results behind files, folders and the manifest."""
    return intake.find_files(paths, read.manifest)


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
    rows = fetch(warehouse, EMULATED, {"source": source})
    logger.debug("counted emulated nodes of source %s after %d batches", source, len(after))
    return int(rows["n"].iloc[0])


Turn = Callable[["BenchmarkTemplate"], AbstractContextManager[object]]

PARTS = "executions-*.parquet"  # disturbed executions stand in flagged-*.parquet, and are repeated
RECORDED_AS = "recorded"


def record(params: RecordParams, out_dir: str, turn: Turn = nullcontext) -> dict[str, Any]:
    """Run and record benchmarks on this machine; returns the folder of the recording, and figures.

    turn: entered around each execution, so that those that need the network can wait for each other. n_planned,
    n_clean: executions of the campaign, and those of them that were recorded undisturbed so far (of this call where
    there is no campaign); n_new, n_failed: of this call; unavailable: what of a node does not work on this machine;
    sampler_cores: CPU time of the sampler over time."""
    from tasks.nodes.record.campaign import record_nodes

    recorded = record_nodes(params, Path(out_dir), partial(report_progress, "recording benchmarks"), turn=turn)
    logger.info("recorded %s", recorded)
    return recorded.as_result(out_dir)


def land_recording(folder: str, landing_folder: str, source: str, after: int) -> list[str]:
    """Put the parts of a recording into a landing folder, which any number of nodes may share; returns the batch ids.

    Parts that were put there before stay as they are. after: executions recorded so far: with more it is done again."""
    logger.debug("landing after %d executions", after)
    settings = intake.Intake(source, RECORDED_AS, ReadParams())
    with tempfile.TemporaryDirectory(prefix="whorl-landing-") as home:  # this machine needs no warehouse
        place = Warehouse(home=Path(home), landing=landing_folder)
        with storage_faults(place.landing_folder):
            known = landing.batches(place.landing_folder, WORD)  # once, and not for each part: they become many
        batches: list[landing.Batch] = []
        for part in sorted(Path(folder).glob(PARTS), key=lambda path: (len(path.name), path.name)):
            batches.append(intake.land_executions(place, str(part), settings, [*known, *batches]))
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
    rows = fetch(
        warehouse,
        "SELECT DISTINCT benchmark FROM nodes.executions "
        "WHERE source = $source AND node = $node AND coalesce(aspect, 'unknown') = $aspect ORDER BY benchmark",
        {"source": source, "node": node, "aspect": aspect},
    )
    ours = {template.benchmark for template in SHORT}
    return [str(name) for name in rows["benchmark"] if name in ours]


def evaluate_files(
    paths: list[str], reader: str, read: ReadParams, evaluate: EvaluateParams, folder: str
) -> dict[str, Any]:
    """The figures of an evaluation of results in files; `report`: path of its page.

    folder: where the page and the tables behind it are written."""
    evaluation, name, emulated = evaluate_results(paths, reader, read, evaluate)
    return {**evaluation.figures, "report": write_page(evaluation, name, folder, emulated)}


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
        train_ids = read_results(list(train), read, reader).history.executions["execution_id"]
        taught = read_now.history.executions["execution_id"].isin(train_ids).to_numpy(dtype=bool)
        if taught.sum() != len(train_ids) or taught.all():
            problem = "executions of what is learned from are not told from those that are tested by their ids"
            raise BadInput(", ".join(train), problem, "recordings with ids of their own", "give other paths")
    evaluation, emulated = _evaluated(read_now.history, evaluate, taught)
    for name in ("n_refused", "n_values_refused", "n_replaced"):
        evaluation.figures[name] = getattr(read_now, name)
    name = ", ".join(Path(path).name for path in paths[:3]) or Path(read.manifest).name
    return evaluation, name or "results", emulated


def evaluate_source(warehouse: Warehouse, source: str, evaluate: EvaluateParams, folder: str) -> dict[str, Any]:
    """The figures of an evaluation of the executions of a source, which are kept; the rest is as for files."""
    history, version = history_of(warehouse, source, with_telemetry=bool(evaluate.learned.variants))
    evaluation, emulated = _evaluated(history, evaluate)
    about = {"source": source, "data_version": version, "evaluated_at": now()}
    replace_rows(warehouse, WORD, about, {"evaluation_figures": rows_of(evaluation.figures)})
    page = write_page(evaluation, f"source {source}", folder, emulated)
    return {**evaluation.figures, "report": page}


def _evaluated(
    history: History, evaluate: EvaluateParams, taught: "Bools | None" = None
) -> tuple[Evaluation, frozenset[str]]:
    """An evaluation and the emulated nodes, which its figure nodes.emulated names where there are any."""
    from tasks.nodes.evaluate.protocol import evaluate_history

    evaluation = evaluate_history(history, evaluate, taught=taught)
    emulated = emulated_nodes(history)
    if emulated:
        evaluation.figures["nodes.emulated"] = ", ".join(sorted(emulated))
    return evaluation, emulated


def write_page(evaluation: Evaluation, name: str, folder: str, emulated: frozenset[str]) -> str:
    """Write the tables of an evaluation as Parquet, and a page with its figures; returns the path of the page.

    emulated: nodes that are, and are called so on the page."""
    from tasks.report.nodes_evaluation import evaluation_result
    from tasks.report.page import write_result

    write_tables(evaluation.tables, Path(folder))
    return str(write_result(Path(folder), "nodes-evaluation", evaluation_result(evaluation, name, emulated)))


class TrainedNodes(TypedDict):
    """model_id: of the new model; champion_id: of the one in use now. metric: by which the better one is chosen.

    figures: of the new one, on the executions that were held out. n_learned, n_tested: executions. is_from_before: the
    same data, parameters and code had made the model in use already, and nothing was learned."""

    model_id: str
    champion_id: str
    data_version: str
    metric: str
    figures: dict[str, float]
    n_learned: int
    n_tested: int
    is_from_before: bool


class TunedNodes(TypedDict):
    """best: the parameters that were found, to train with. n_trials: finished, of which n_resumed from before."""

    best: dict[str, Any]
    validation_loss: float
    n_trials: int
    n_resumed: int
    trials: str


class FingerprintedNodes(TypedDict):
    """n_executions: of benchmarks; n_fingerprints: of them. best: first place by fingerprints."""

    model_id: str
    n_executions: int
    n_fingerprints: int
    best: list[str]


def train(
    warehouse: Warehouse,
    source: str,
    model: ModelParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
    run_id: str,
    *,
    again: bool = False,
) -> TrainedNodes:
    """Train a model on the executions of a source, measure it on the latest ones, and use it if it is the better one.

    run_id: of the flow run; the same run, data and parameters make the same model once. Where the model in use is of
    the same data, parameters and code it is given again, unless `again` says to train all the same."""
    from tasks.nodes.perona.fingerprints import train_source

    version = version_of(warehouse, source)
    key = key_of(source, version, [params.model_dump(mode="json") for params in (model, preprocess, score)])
    present = champion(warehouse.models, WORD, source, NETWORK)
    if present is not None and present.parameters.get("key") == key and not again:
        with suppress(BadInput):  # a model that cannot be read is mended by a training
            trained = _trained_summary(warehouse, present, present.model_id, is_from_before=True)
            logger.info("%s was made of the same data, parameters and code: nothing to learn", present.model_id)
            return trained
    history, version = benchmarks_of(warehouse, source, score, with_telemetry=True)
    given = (history, version, model, preprocess, score)
    card, in_use = train_source(warehouse, source, *given, run_id=run_id, key=key)
    return _trained_summary(warehouse, card, in_use, is_from_before=False)


def _trained_summary(warehouse: Warehouse, card: ModelCard, in_use: str, *, is_from_before: bool) -> TrainedNodes:
    """What a training came to. Raises BadInput for a model that cannot be read."""
    from tasks.nodes.perona.fingerprints import METRIC, load_trained

    return TrainedNodes(
        model_id=card.model_id,
        champion_id=in_use,
        data_version=card.data_version,
        metric=METRIC,
        figures=dict(card.metrics),
        n_learned=len(load_trained(folder_of(warehouse.models, WORD, card.model_id)).learned),
        n_tested=int(card.parameters["n_tested"]),
        is_from_before=is_from_before,
    )


def tune(
    warehouse: Warehouse,
    source: str,
    model: ModelParams,
    preprocess: PreprocessParams,
    score: ScoreParams,
    search: NetworkSearchParams,
) -> TunedNodes:
    """Search the parameters of a source's model; a search of the same data and settings that was stopped goes on.

    `trials`: path of a table of them, beside the journal."""
    from tasks.nodes.perona.fingerprints import tune as searched

    history, version = benchmarks_of(warehouse, source, score, with_telemetry=True)
    journal = warehouse.home / JOURNALS / f"nodes-{source}.journal"
    tuned = searched(history, model, preprocess, score, search, journal)
    table = journal.with_name(f"nodes-{source}-{version}-trials.parquet")
    with whole(table) as draft:
        tuned.trials.to_parquet(draft, index=False)
    logger.info("best of %d trials: validation loss %.4f", len(tuned.trials), tuned.validation_loss)
    return TunedNodes(
        best=tuned.best.model_dump(mode="json"), validation_loss=tuned.validation_loss, n_trials=len(tuned.trials),
        n_resumed=tuned.n_resumed, trials=str(table),
    )  # fmt: skip


def in_use(warehouse: Warehouse, source: str) -> dict[str, Any] | None:
    """The parameters of the model in use for a source; None before the first training.

    Raises BadInput for those of a version of whorl that had others."""
    card = champion(warehouse.models, WORD, source, NETWORK)
    if card is None:
        return None
    try:
        return ModelParams.model_validate(card.parameters.get("model")).model_dump(mode="json")
    except ValidationError as error:
        problem = f"parameters that are none of this version ({first_fault(error)})"
        fix = "train with 'whorl nodes train --fresh'"
        raise BadInput(warehouse.models / WORD / card.model_id, problem, "those of a model", fix) from error


def fingerprint(warehouse: Warehouse, source: str, score: ScoreParams) -> FingerprintedNodes:
    """Fingerprints and scores of a source by the network in use, in place of what was there.

    Nodes are ranked by executions that are not flagged (nodes.verdicts). With the same data, verdicts, network,
    parameters and code what stands there is given again. Raises NotFound without executions, and without a network."""
    version = version_of(warehouse, source)
    model_id = require_champion(warehouse.models, WORD, source, NETWORK, no_trained_model(source)).model_id
    verdicts = (read_row(warehouse, "nodes.judgings", source) or {}).get("key")
    key = key_of(version, model_id, verdicts, score.model_dump(mode="json"))
    row = read_row(warehouse, "nodes.fingerprintings", source)
    if row is None or row["key"] != key:
        from tasks.nodes.perona.fingerprints import fingerprint as ask
        from tasks.nodes.perona.fingerprints import load_trained

        model = load_trained(folder_of(warehouse.models, WORD, model_id))
        history, version = benchmarks_of(warehouse, source, score, with_telemetry=True)
        flagged = history.executions["execution_id"].astype(str).isin(read_flagged(warehouse, source))
        prints, ranking = ask(history, model, flagged.to_numpy(dtype=bool), score)
        row = {"key": key, "data_version": version, "n_executions": len(history.executions)}
        row |= {"n_fingerprints": len(prints), "fingerprinted_at": now()}
        ranked = ranking.rename(columns={"place": "rank"})
        frames = {
            "fingerprints": prints,
            "fingerprint_scores": ranked[SCORE_COLUMNS].assign(is_tied=ranked["n_tied"] > 1),
            "fingerprintings": pd.DataFrame([row]),
        }
        replace_rows(warehouse, WORD, {"source": source, "model_id": model_id}, frames)
    scores = read_scores(warehouse, source, "fingerprint_scores")
    first = scores[(scores["aspect"] == "all") & (scores["rank"] == 1)]
    return FingerprintedNodes(
        model_id=model_id,
        n_executions=int(row["n_executions"]),
        n_fingerprints=int(row["n_fingerprints"]),
        best=[str(node) for node in first["node"]],
    )


def has_network(warehouse: Warehouse, source: str) -> bool:
    """Whether a network is in use for a source, so that its executions have fingerprints."""
    return champion(warehouse.models, WORD, source, NETWORK) is not None
