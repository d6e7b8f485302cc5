"""The plain answers about the nodes of a source: a ranking, which stand out, and how much a rerun differs.

What they rest on, the preprocessing and the reference fleet, is learned here and kept as one model; answers are written
as a whole for a source, and read back. What computes is imported where it does: most who import this read alone."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

import numpy as np
import pandas as pd

from tasks.nodes.history import History, emulated_nodes, history_of, version_of
from tasks.nodes.node_words import EMULATED, IS_EMULATED, KIND, WORD, called, no_model
from tasks.nodes.params import SEED, PreprocessParams, ScoreParams
from tasks.nodes.type_tables import is_unstressed
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import folder_of, new_card, promote, register, require_champion
from tasks.warehouse.sources import code_version, key_of, now, read_row, replace_rows

if TYPE_CHECKING:
    from tasks.nodes.preprocess.fitting import Preprocessor
    from tasks.nodes.ranking.node_scores import ReferenceFleet
    from tasks.nodes.ranking.repeatability import Repeatability
    from tasks.nodes.type_tables import NodeTables

logger = logging.getLogger(__name__)
SCORE_COLUMNS = ["node", "machine_type", "aspect", "score"]
MOST_NAMED = 3  # nodes of a reference, by their names
PREPROCESSOR, REFERENCE = "preprocessor.json", "reference.json"
TYPE = {"type": "benchmark_type"}


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
    from tasks.nodes.preprocess.fitting import decisions, save_preprocessor
    from tasks.nodes.ranking.node_scores import save_reference

    history, version = history_of(warehouse, source)
    preprocessor, reference = learn(history, preprocess, score)
    table, n_recorded, n_kept = decisions(preprocessor), len(preprocessor.metrics), len(preprocessor.kept)
    parameters = {"preprocess": preprocess.model_dump(mode="json"), "score": score.model_dump(mode="json")}
    n_disagree = int((~table["agrees"].fillna(True).astype(bool)).sum())
    card = new_card(
        word=WORD, source=source, kind=KIND, run_id=run_id, data_version=version, seed=SEED,
        parameters=parameters | {"reference": reference.stated},
        figures={"recorded": n_recorded, "kept": n_kept, "disagree": n_disagree},
        identity=f"{parameters}{code_version()}",
    )  # fmt: skip

    def save(folder: Path) -> None:
        save_preprocessor(preprocessor, folder / PREPROCESSOR)
        save_reference(reference, folder / REFERENCE)

    register(warehouse, card, save)
    about = {"source": source, "model_id": card.model_id}
    replace_rows(warehouse, WORD, about, {"decisions": table.rename(columns=TYPE)}, within=("source", "model_id"))
    promote(warehouse, WORD, card.model_id, f"{n_kept} of {n_recorded} metrics of data version {version}")
    logger.info("kept %d of %d metrics of source %s by %s", n_kept, n_recorded, source, card.model_id)
    return Preprocessed(
        model_id=card.model_id,
        data_version=version,
        n_executions=len(history.executions),
        n_recorded=n_recorded,
        n_kept=n_kept,
        n_disagree=n_disagree,
        reference=reference.stated,
    )


def require_model(warehouse: Warehouse, source: str) -> str:
    """The id of the preprocessing in use for a source. Raises NotFound before the first one."""
    return require_champion(warehouse.models, WORD, source, KIND, no_model(source)).model_id


def rank(warehouse: Warehouse, source: str, score: ScoreParams, after: str) -> Ranked:
    """Rank the nodes of a source, measure reruns, and keep all of it in place of what was there.

    With the same data, model, parameters and code the answers that stand there are given again.
    The reference of the preprocessing in use stays as it was frozen, so a node that joined moves no other. after: what
    the answers rest on; a continued run with another asks again."""
    model_id, version = require_model(warehouse, source), version_of(warehouse, source)
    key = key_of(version, model_id, score.model_dump(mode="json"))
    if (read_row(warehouse, "nodes.rankings", source) or {}).get("key") != key:
        preprocessor, reference = load_model(warehouse, model_id)
        answers = answer(history_of(warehouse, source)[0], preprocessor, reference, score)
        replace_rows(
            warehouse, WORD, {"source": source, "model_id": model_id}, _tables(answers, reference.counted, key, version)
        )
    overview = read_overview(warehouse, source)
    logger.info("ranked %d nodes of source %s by %s after %s", overview["n_nodes"], source, model_id, after)
    return cast(Ranked, {"model_id": model_id, **overview})


@dataclass(frozen=True)
class Answers:
    """ranking: nodes by score; watched: nodes by their slow executions (`suspicious_nodes`), with first_at and last_at.

    calm: the tables of the executions that were neither stressed nor disturbed, which all of this rests on."""

    ranking: pd.DataFrame
    watched: pd.DataFrame
    repeated: "Repeatability"
    calm: "NodeTables"


def learn(history: History, params: PreprocessParams, score: ScoreParams) -> "tuple[Preprocessor, ReferenceFleet]":
    """What becomes of each metric, learned from all executions, and the fleet that nodes are measured against.

    The fleet are all nodes, by their executions that were neither stressed nor disturbed."""
    from tasks.nodes.preprocess.fitting import fit, tables_of
    from tasks.nodes.ranking.node_scores import learn_reference

    preprocessor = fit(history, params)
    calm = is_unstressed(history.executions).to_numpy(dtype=bool)
    nodes = sorted(history.executions.loc[calm, "node"].astype(str).unique())
    stated = _stated(nodes, emulated_nodes(history))
    return preprocessor, learn_reference(tables_of(history, preprocessor), calm, score, stated)


def answer(history: History, preprocessor: "Preprocessor", reference: "ReferenceFleet", score: ScoreParams) -> Answers:
    """Rank nodes by executions that were neither stressed nor disturbed, and say which stand out by slow ones."""
    from tasks.nodes.preprocess.fitting import tables_of
    from tasks.nodes.ranking.places import rank_by_threads, rank_nodes
    from tasks.nodes.ranking.repeatability import repeatability_of
    from tasks.nodes.ranking.suspicion import suspicious_nodes

    tables = tables_of(history, preprocessor)
    is_calm = is_unstressed(history.executions).to_numpy(dtype=bool)
    calm = tables.of_executions(is_calm)
    ranked = [rank_nodes(calm, reference, score), rank_by_threads(calm, history, reference, score)]
    return Answers(
        ranking=pd.concat([ranking for ranking in ranked if len(ranking)] or ranked[:1], ignore_index=True),
        watched=_timed(suspicious_nodes(calm, reference, score), history),
        repeated=repeatability_of(tables, is_calm),
        calm=calm,
    )


def load_model(warehouse: Warehouse, model_id: str) -> "tuple[Preprocessor, ReferenceFleet]":
    """What became of each metric, and what nodes are measured against. Raises BadInput for broken files."""
    from tasks.nodes.preprocess.fitting import load_preprocessor
    from tasks.nodes.ranking.node_scores import load_reference

    folder = folder_of(warehouse.models, WORD, model_id)
    return load_preprocessor(folder / PREPROCESSOR), load_reference(folder / REFERENCE)


def read_scores(
    warehouse: Warehouse, source: str, table: Literal["scores", "fingerprint_scores"] = "scores"
) -> pd.DataFrame:
    """The latest ranking of a source, by aspect (`all` first), the best first; is_emulated of each node beside it.

    table: plain scores, or those by fingerprints."""
    return fetch(
        warehouse,
        f"SELECT *, {IS_EMULATED} FROM nodes.{table} WHERE source = $source "
        "ORDER BY aspect <> 'all', aspect, rank, score DESC, node",
        {"source": source},
    )


def read_watched(warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The nodes of a source, those that stand out by slow executions first."""
    return fetch(warehouse, "SELECT * FROM nodes.watched WHERE source = $source ORDER BY place", {"source": source})


def read_overview(warehouse: Warehouse, source: str) -> dict[str, Any]:
    """What the answers about a source come to, by the names of `Ranked`, without its model."""
    sql = """
    SELECT (SELECT count(*) FROM nodes.scores WHERE source = $source AND aspect = 'all') AS n_nodes,
        (SELECT count(*) FROM nodes.executions WHERE source = $source) AS n_executions,
        coalesce((SELECT n_left_out FROM nodes.rankings WHERE source = $source), 0) AS n_left_out,
        coalesce((SELECT list(node ORDER BY score DESC, node) FROM nodes.scores
            WHERE source = $source AND aspect = 'all' AND rank = 1), []) AS best,
        coalesce((SELECT arg_min(node, place) FROM nodes.watched WHERE source = $source AND stands_out), '')
            AS most_suspicious
    """
    row = fetch(warehouse, sql, {"source": source}).iloc[0]
    counts = {name: int(row[name]) for name in ("n_nodes", "n_executions", "n_left_out")}
    return counts | {"best": [str(node) for node in row["best"]], "most_suspicious": str(row["most_suspicious"])}


def read_decisions(warehouse: Warehouse, source: str, model_id: str) -> pd.DataFrame:
    """What a model made of each metric, by benchmark type and name."""
    return fetch(
        warehouse,
        "SELECT * FROM nodes.decisions WHERE source = $source AND model_id = $model_id ORDER BY benchmark_type, metric",
        {"source": source, "model_id": model_id},
    )


def _tables(
    answers: Answers, counted: frozenset[tuple[str, str]], key: str, data_version: str
) -> dict[str, pd.DataFrame]:
    """The rows of answers. counted: the types and metrics that count in these scores. key: of what they rest on."""
    ranked = answers.ranking.rename(columns={"place": "rank"})
    ranked = ranked.assign(shared_place=ranked["shared_place"].astype("Int64"))
    rests_on = {"key": key, "data_version": data_version, "n_executions": answers.calm.n_executions}
    return {
        "rankings": pd.DataFrame([{**rests_on, "n_left_out": answers.calm.n_left_out, "ranked_at": now()}]),
        "scores": ranked.assign(is_tied=ranked["n_tied"] > 1, scored_at=now(), key=key).drop(columns="n_tied"),
        "watched": answers.watched.assign(place=np.arange(1, len(answers.watched) + 1)),
        "repeatability": _marked(answers.repeated.metrics, counted, ("runs_for_5", "runs_for_10")),
        "pairs": _marked(answers.repeated.pairs, counted, ("n_runs",)),
    }


def thread_scores_of(history: History) -> pd.DataFrame:
    """Scores of each node for one thread and for all: node, machine_type, aspect, score; 1 is the mean of all nodes.

    From executions that completed, neither stressed nor disturbed; all nodes are the reference. As in `node_scores`:
    geometric means over metrics, the median over executions, the mean over benchmark types. A node without a metric of
    one kind has no row of it."""
    from tasks.nodes.preprocess.fitting import tables_of
    from tasks.nodes.ranking.node_scores import score_nodes
    from tasks.nodes.ranking.places import ASPECTS, by_threads

    score = ScoreParams()
    preprocessor, reference = learn(history, PreprocessParams(), score)
    calm = is_unstressed(history.executions).to_numpy(dtype=bool)
    tables = by_threads(tables_of(history, preprocessor).of_executions(calm), history)
    scores = score_nodes(tables, reference, score)
    frame = pd.DataFrame(scores.by_aspect(), columns=list(scores.levels.aspects)).reindex(
        columns=list(ASPECTS.values())
    )
    frame = frame.assign(node=tables.nodes, machine_type=tables.machine_types)
    return frame.melt(["node", "machine_type"], var_name="aspect", value_name="score").dropna(subset="score")[
        SCORE_COLUMNS
    ]


def _stated(nodes: Sequence[str], emulated: Collection[str]) -> str:
    """Some nodes in words: their names, of many how many; emulated ones are called so."""
    if len(nodes) <= MOST_NAMED:
        return ", ".join(called(node, node in emulated) for node in nodes)
    n_emulated = sum(node in emulated for node in nodes)
    return f"{len(nodes)} nodes" + (f", {n_emulated} of them {EMULATED}" if n_emulated else "")


def _timed(watched: pd.DataFrame, history: History) -> pd.DataFrame:
    """With the starts of executions in place of their rows."""
    at = history.executions["started_at"].reset_index(drop=True)
    return watched.drop(columns=["first", "last"]).assign(
        **{f"{end}_at": watched[end].map(at).astype("datetime64[us]") for end in ("first", "last")}
    )


def _marked(rows: pd.DataFrame, counted: frozenset[tuple[str, str]], may_be_endless: tuple[str, ...]) -> pd.DataFrame:
    """With is_counted, and endless numbers of executions as missing ones."""
    if rows.empty:
        return rows
    endless = {name: rows[name].astype(np.float64).replace([np.inf, -np.inf], np.nan) for name in may_be_endless}
    pairs = zip(rows["type"], rows["metric"], strict=True)
    return rows.assign(is_counted=[pair in counted for pair in pairs], **endless).rename(columns=TYPE)
