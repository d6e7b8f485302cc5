"""The plain answers about the nodes of a source: a ranking, which stand out, and how much a rerun differs.

What they rest on, the preprocessing and the reference fleet, is learned here and kept as one model."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from tasks.nodes.aspects import is_unstressed
from tasks.nodes.history import History, emulated_nodes
from tasks.nodes.node_words import EMULATED, KIND, WORD, called
from tasks.nodes.preprocess.fitting import Preprocessor, fit, load_preprocessor, save_preprocessor
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking import Ranking, rank_nodes
from tasks.nodes.reference_fleet import ReferenceFleet, learn_reference, load_reference, save_reference
from tasks.nodes.repeatability import Repeatability, repeatability_of
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.suspicion import suspicious_nodes
from tasks.nodes.tabulating import tables_of
from tasks.nodes.type_tables import NodeTables
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, folder_of

MOST_NAMED = 3  # nodes of a reference, by their names


@dataclass(frozen=True)
class Answers:
    """ranking: nodes by score; watched: nodes by their slow executions (`suspicious_nodes`), with first_at and last_at.

    calm: the tables of the executions that were neither stressed nor disturbed, which all of this rests on."""

    ranking: Ranking
    watched: pd.DataFrame
    repeated: Repeatability
    calm: NodeTables


def learn(history: History, params: PreprocessParams, score: ScoreParams) -> tuple[Preprocessor, ReferenceFleet]:
    """What becomes of each metric, learned from all executions, and the fleet that nodes are measured against.

    The fleet are all nodes, by their executions that were neither stressed nor disturbed."""
    preprocessor = fit(history, params)
    tables = tables_of(history, preprocessor)
    calm = is_unstressed(history.executions).to_numpy(dtype=bool)
    nodes = sorted(history.executions.loc[calm, "node"].astype(str).unique())
    stated = _stated(nodes, emulated_nodes(history))
    return preprocessor, learn_reference(tables, calm, score, stated)


def _stated(nodes: Sequence[str], emulated: Collection[str]) -> str:
    """Some nodes in words: their names, of many how many; emulated ones are called so."""
    if len(nodes) <= MOST_NAMED:
        return ", ".join(called(node, node in emulated) for node in nodes)
    n_emulated = sum(node in emulated for node in nodes)
    return f"{len(nodes)} nodes" + (f", {n_emulated} of them {EMULATED}" if n_emulated else "")


def answer(
    history: History,
    preprocessor: Preprocessor,
    reference: ReferenceFleet,
    score: ScoreParams,
) -> Answers:
    """Rank nodes by executions that were neither stressed nor disturbed, and say which stand out by slow ones."""
    tables = tables_of(history, preprocessor)
    is_calm = is_unstressed(history.executions).to_numpy(dtype=bool)
    calm = tables.of_executions(is_calm)
    return Answers(
        ranking=rank_nodes(calm, reference, score),
        watched=_timed(suspicious_nodes(calm, reference, score), history),
        repeated=repeatability_of(tables, is_calm, score.min_executions),
        calm=calm,
    )


def _timed(watched: pd.DataFrame, history: History) -> pd.DataFrame:
    """With the starts of executions in place of their rows."""
    at = history.executions["started_at"].reset_index(drop=True)
    return watched.drop(columns=["first", "last"]).assign(
        **{f"{end}_at": watched[end].map(at).astype("datetime64[us]") for end in ("first", "last")}
    )


PREPROCESSOR, REFERENCE = "preprocessor.json", "reference.json"


@dataclass(frozen=True)
class InUse:
    """A model: what became of each metric, and what nodes are measured against."""

    card: ModelCard
    preprocessor: Preprocessor
    reference: ReferenceFleet


def champion_of(warehouse: Warehouse, source: str) -> InUse | None:
    """The model in use for a source, loaded; None before the first preprocessing. Raises BadInput for broken files."""
    card = champion(warehouse.models, WORD, source, KIND)
    if card is None:
        return None
    folder = folder_of(warehouse.models, WORD, card.model_id)
    return InUse(card, load_preprocessor(folder / PREPROCESSOR), load_reference(folder / REFERENCE))


def save(preprocessor: Preprocessor, reference: ReferenceFleet, folder: Path) -> None:
    """Write the files of a model."""
    save_preprocessor(preprocessor, folder / PREPROCESSOR)
    save_reference(reference, folder / REFERENCE)
