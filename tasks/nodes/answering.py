"""The plain answers about the nodes of a source: a ranking, suspicions, and how much a rerun differs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed, is_unstressed
from tasks.nodes.detect.contenders import DETECTORS
from tasks.nodes.detect.plain import Case
from tasks.nodes.evaluate.thresholds import choose_threshold
from tasks.nodes.history import History, emulated_nodes
from tasks.nodes.node_words import EMULATED, called
from tasks.nodes.preprocess.fitted import Preprocessor
from tasks.nodes.preprocess.fitting import fit
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking import Ranking, rank_nodes
from tasks.nodes.reference_fleet import ReferenceFleet, learn_reference
from tasks.nodes.repeatability import Repeatability, repeatability_of
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.suspect_params import SuspectParams
from tasks.nodes.suspicion import suspicious_nodes
from tasks.nodes.tabulating import tables_of
from tasks.nodes.type_tables import Bools, NodeTables
from tasks.progress import report_progress

MOST_NAMED = 3  # nodes of a reference, by their names


@dataclass(frozen=True)
class Answers:
    """ranking: nodes by score; watched: nodes by their slow executions (`suspicious_nodes`), with first_at and last_at.

    suspicions: execution_id, detector, score, threshold, is_suspicious; one row an execution and detector that had
    something to say. calm: the tables of the executions that were neither stressed nor disturbed, which all but
    suspicions rest on."""

    ranking: Ranking
    watched: pd.DataFrame
    suspicions: pd.DataFrame
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
    suspect: SuspectParams,
) -> Answers:
    """Rank nodes by executions that were neither stressed nor disturbed, and judge every execution."""
    tables = tables_of(history, preprocessor)
    is_calm = is_unstressed(history.executions).to_numpy(dtype=bool)
    calm = tables.of_executions(is_calm)
    return Answers(
        ranking=rank_nodes(calm, reference, score),
        watched=_timed(suspicious_nodes(calm, reference, score), history),
        suspicions=judge(history, tables, suspect),
        repeated=repeatability_of(tables, is_calm, score.min_executions),
        calm=calm,
    )


def _timed(watched: pd.DataFrame, history: History) -> pd.DataFrame:
    """With the starts of executions in place of their rows."""
    at = history.executions["started_at"].reset_index(drop=True)
    return watched.drop(columns=["first", "last"]).assign(
        **{f"{end}_at": watched[end].map(at).astype("datetime64[us]") for end in ("first", "last")}
    )


def judge(history: History, tables: NodeTables, suspect: SuspectParams) -> pd.DataFrame:
    """The suspicion of each execution by each detector, which may learn from all that nothing is known against.

    Thresholds are chosen on these executions themselves (see `choose_threshold`): they are for looking at a source, not
    for saying how good a detector is."""
    executions = history.executions
    is_known, stressed = executions["is_stressed"].notna().to_numpy(), is_stressed(executions).to_numpy(dtype=bool)
    is_normal = is_unstressed(executions).to_numpy(dtype=bool)
    everything: Bools = np.ones(len(executions), dtype=bool)
    case = Case(history, tables, everything, is_normal, everything, suspect.seed)
    ids = executions["execution_id"].to_numpy(dtype=object)
    parts = [pd.DataFrame(columns=["execution_id", "detector", "score", "threshold", "is_suspicious"])]
    for at, name in enumerate(suspect.detectors):
        report_progress("judging executions", at, len(suspect.detectors))
        scores = DETECTORS[name](case)
        is_scored = ~np.isnan(scores)
        chosen = is_scored & is_known if (is_known & stressed).any() else is_scored
        threshold = choose_threshold(scores[chosen], stressed[chosen], suspect.false_alarm_share)
        rows = {"execution_id": ids[is_scored], "detector": name, "score": scores[is_scored], "threshold": threshold}
        parts.append(pd.DataFrame({**rows, "is_suspicious": scores[is_scored] > threshold}))
    return pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
