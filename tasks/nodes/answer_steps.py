"""The steps of answers about nodes: keys in, keys and figures out. Flows wrap them, and commands that ask call them."""

import logging
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from tasks.errors import BadInput, NotFound
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.node_words import KIND, WORD, no_model
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.reading_history import is_simulated_source
from tasks.nodes.reading_params import ReadParams
from tasks.nodes.score_params import ScoreParams
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, promote, register
from tasks.warehouse.versions import code_version, data_version

if TYPE_CHECKING:
    from tasks.nodes.evaluate.protocol import Evaluation
    from tasks.nodes.history import History
    from tasks.nodes.type_tables import Bools

logger = logging.getLogger(__name__)


class Preprocessed(TypedDict):
    """model_id: in use now. n_recorded, n_kept: metrics, a metric of two benchmark types counted twice.

    n_disagree: metrics where the paper's orientation rule says the opposite of what is declared; reference: which
    nodes others are measured against."""

    model_id: str
    data_version: str
    n_executions: int
    n_recorded: int
    n_kept: int
    n_disagree: int
    reference: str


class Ranked(TypedDict):
    """best: the node at the first place, or those that share it; most_suspicious: that stands out most, or empty.

    n_executions: of the source; n_left_out: of them those of which the preprocessing knows no metric, such as of a new
    benchmark or template: they are in no answer until it is made anew."""

    model_id: str
    n_nodes: int
    n_executions: int
    n_left_out: int
    best: list[str]
    most_suspicious: str


def preprocess(
    warehouse: Warehouse, source: str, preprocess: PreprocessParams, score: ScoreParams, run_id: str
) -> Preprocessed:
    """Decide what counts of each metric of a source, and freeze the reference that its nodes are measured against.

    The same data and parameters make the same model once. run_id: of the flow run, for the model's card."""
    from tasks.nodes.answer_rows import write_decisions
    from tasks.nodes.answering import learn, save
    from tasks.nodes.preprocess.fitting import count_metrics, decisions

    history, version = history_of(warehouse, source)
    preprocessor, reference = learn(history, preprocess, score)
    counts, table = count_metrics(preprocessor), decisions(preprocessor)
    parameters = {"preprocess": preprocess.model_dump(mode="json"), "score": score.model_dump(mode="json")}
    identity = uuid.uuid5(uuid.NAMESPACE_OID, f"{parameters}{code_version()}").hex[:8]
    n_disagree = int((~table["agrees"].fillna(True).astype(bool)).sum())
    card = ModelCard(
        model_id=f"{KIND}-{version}-{identity}",
        word=WORD,
        source=source,
        kind=KIND,
        trained_at=datetime.now(UTC).replace(tzinfo=None),
        run_id=run_id,
        data_version=version,
        code_version=code_version(),
        seed=score.seed,
        parameters=parameters | {"reference": reference.stated},
        metrics={"recorded": float(counts.recorded), "kept": float(counts.kept), "disagree": float(n_disagree)},
    )
    register(warehouse, card, lambda folder: save(preprocessor, reference, folder))
    write_decisions(warehouse, source, card.model_id, table)
    promote(warehouse, WORD, card.model_id, f"{counts.kept} of {counts.recorded} metrics of data version {version}")
    logger.info("kept %d of %d metrics of source %s by %s", counts.kept, counts.recorded, source, card.model_id)
    return Preprocessed(
        model_id=card.model_id,
        data_version=version,
        n_executions=len(history.executions),
        n_recorded=counts.recorded,
        n_kept=counts.kept,
        n_disagree=n_disagree,
        reference=reference.stated,
    )


def preprocess_once(warehouse: Warehouse, source: str, params: PreprocessParams, score: ScoreParams) -> str:
    """The id of the preprocessing in use for a source, which is made now if there is none yet."""
    card = champion(warehouse.models, WORD, source, KIND)
    if card is not None:
        return card.model_id
    return preprocess(warehouse, source, params, score, "")["model_id"]


def require_model(warehouse: Warehouse, source: str) -> str:
    """The id of the preprocessing in use for a source. Raises NotFound before the first one."""
    card = champion(warehouse.models, WORD, source, KIND)
    if card is None:
        raise NotFound(no_model(source))
    return card.model_id


def rank(warehouse: Warehouse, source: str, score: ScoreParams, after: str) -> Ranked:
    """Rank the nodes of a source, measure reruns, and keep all of it in place of what was there.

    With the same data, model, parameters and code the answers that stand there are given again.
    The reference of the preprocessing in use stays as it was frozen, so a node that joined moves no other. after: what
    the answers rest on; a continued run with another asks again."""
    from tasks.nodes.answer_rows import Basis, has_answers, read_overview, write_answers
    from tasks.nodes.answering import champion_of

    card = champion(warehouse.models, WORD, source, KIND)
    if card is None:
        raise NotFound(no_model(source))
    identity = f"{version_of(warehouse, source)}{card.model_id}{score.model_dump(mode='json')}{code_version()}"
    key = uuid.uuid5(uuid.NAMESPACE_OID, identity).hex
    if not has_answers(warehouse, source, key) and (used := champion_of(warehouse, source)):
        from tasks.nodes.answering import answer

        history, version = history_of(warehouse, source)
        found = answer(history, used.preprocessor, used.reference, score)
        write_answers(warehouse, source, Basis(card.model_id, key, version), found, used.reference.counted)
    overview = read_overview(warehouse, source)
    logger.info("ranked %d nodes of source %s by %s after %s", overview["n_nodes"], source, card.model_id, after)
    return Ranked(
        model_id=card.model_id,
        n_nodes=overview["n_nodes"],
        n_executions=overview["n_executions"],
        n_left_out=overview["n_left_out"],
        best=overview["best"],
        most_suspicious=overview["most_suspicious"],
    )


def evaluate_files(
    paths: list[str], reader: str, read: ReadParams, evaluate: EvaluateParams, folder: str, both: bool = False
) -> dict[str, Any]:
    """The figures of an evaluation of results in files; `report`: path of its page.

    folder: where the page and the tables behind it are written. both: see evaluate_results."""
    found, name, emulated = evaluate_results(paths, reader, read, evaluate, both=both)
    return {**found.figures, "report": write_evaluation(found, name, folder, emulated)}


def evaluate_results(
    paths: list[str],
    reader: str,
    read: ReadParams,
    evaluate: EvaluateParams,
    *,
    both: bool = False,
    train: Sequence[str] = (),
) -> "tuple[Evaluation, str, frozenset[str]]":
    """An evaluation of results in files, what to call it, and which of its nodes are emulated.

    Its figures n_refused, n_values_refused and n_replaced count the rows of the files that no execution could be made
    of, single values of others that could not be used, and executions that a later file or row gives again. both:
    whichever variant of preprocessing is asked for, ours and beside it the paper's. train: files or folders of another
    recording, which detectors learn from alone; those of `paths` are tested. Raises BadInput where a name or id of one
    is called otherwise beside the other."""
    from tasks.nodes.reading_history import read_results

    read_now = read_results([*train, *paths], read, reader)
    taught = None
    if train:
        own = read_results(list(train), read, reader).history.executions["execution_id"]
        taught = read_now.history.executions["execution_id"].isin(own).to_numpy(dtype=bool)
        if taught.sum() != len(own) or taught.all():
            problem = "executions of what is learned from are not told from those that are tested by their ids"
            raise BadInput(", ".join(train), problem, "recordings with ids of their own", "give other paths")
    found, emulated = _evaluated(read_now.history, evaluate, both=both, taught=taught)
    found.figures["n_refused"] = read_now.n_refused
    found.figures["n_values_refused"] = read_now.n_values_refused
    found.figures["n_replaced"] = read_now.n_replaced
    name = ", ".join(Path(path).name for path in paths[:3]) or Path(read.manifest).name
    return found, name or "results", emulated


def evaluate_source(
    warehouse: Warehouse, source: str, evaluate: EvaluateParams, folder: str, both: bool = False
) -> dict[str, Any]:
    """The figures of an evaluation of the executions of a source, which are kept; the rest is as for files."""
    from tasks.nodes.answer_rows import write_evaluation as write_figures

    history, version = history_of(warehouse, source, with_telemetry=bool(evaluate.learned.variants))
    found, emulated = _evaluated(history, evaluate, both=both)
    write_figures(warehouse, source, found.figures, version)
    page = write_evaluation(found, f"source {source}", folder, emulated)
    return {**found.figures, "report": page}


def _evaluated(
    history: "History", evaluate: EvaluateParams, *, both: bool, taught: "Bools | None" = None
) -> "tuple[Evaluation, frozenset[str]]":
    """An evaluation and the emulated nodes, which its figure nodes.emulated names where there are any."""
    from tasks.nodes.evaluate.protocol import evaluate_both, evaluate_history
    from tasks.nodes.history import emulated_nodes

    found = evaluate_both(history, evaluate, taught) if both else evaluate_history(history, evaluate, taught=taught)
    emulated = emulated_nodes(history)
    if emulated:
        found.figures["nodes.emulated"] = ", ".join(sorted(emulated))
    return found, emulated


def write_evaluation(found: "Evaluation", name: str, folder: str, emulated: frozenset[str]) -> str:
    """Write the tables of an evaluation as Parquet, and a page with its figures; returns the path of the page.

    emulated: nodes that are, and are called so on the page."""
    from tasks.nodes.evaluate.protocol import write_tables
    from tasks.report.nodes_evaluation_page import render_nodes_evaluation

    write_tables(found, Path(folder))
    return str(render_nodes_evaluation(found, name, Path(folder), emulated))


def history_of(warehouse: Warehouse, source: str, *, with_telemetry: bool = False) -> "tuple[History, str]":
    """The executions of a source, and the version of its data. Raises as version_of.

    with_telemetry: with the nodes' own metrics, which the learned model alone looks at."""
    from tasks.nodes.reading_history import load_history

    version = version_of(warehouse, source)
    return load_history(warehouse, source, with_telemetry=with_telemetry), version


def version_of(warehouse: Warehouse, source: str) -> str:
    """The version of the data of a source. Raises as is_simulated_source."""
    with reading(warehouse) as connection:
        is_simulated_source(connection, source)
        return data_version(connection, WORD, source)
