"""The plain answers about the nodes of a source: a ranking, which stand out, and how much a rerun differs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pandas as pd

from tasks.nodes.aspects import is_unstressed
from tasks.nodes.history import History, emulated_nodes
from tasks.nodes.node_words import EMULATED, called
from tasks.nodes.preprocess.fitted import Preprocessor
from tasks.nodes.preprocess.fitting import fit
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking import Ranking, rank_nodes
from tasks.nodes.reference_fleet import ReferenceFleet, learn_reference
from tasks.nodes.repeatability import Repeatability, repeatability_of
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.suspicion import suspicious_nodes
from tasks.nodes.tabulating import tables_of
from tasks.nodes.type_tables import NodeTables

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
