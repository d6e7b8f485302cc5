"""Scores from fingerprints: how much better than the reference fleet an execution, a node and an aspect are.

    score of an execution = exp(log norm - log norm of its type at the reference)
    score of a node and aspect = exp(median over its calm executions), mean over the types of the aspect

Training makes ratios of norms follow ratios of measured performance, so a score of 2 is twice the reference. What
stands for the reference is learned once and frozen with the model: a machine that joins moves no other. No one-hot is
part of a norm: with one in it, as the authors have it, 0.1 against 0.9 becomes 1 against 1.14."""

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_unstressed
from tasks.nodes.fingerprint.fingerprints import Fingerprints
from tasks.nodes.fingerprint.settling import series_of
from tasks.nodes.perona.inputs import UNSTRESSED, Bools, Floats, Inputs
from tasks.nodes.ranking import Ranking, rank_nodes
from tasks.nodes.reference_fleet import COLUMNS, ReferenceFleet
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.type_tables import NodeTables, TypeTable
from tasks.params import Params

SCORE = "fingerprint_score"  # stands where other tables have the names of metrics


class NormReference(Params):
    """log_norms: by type, the log norm of an execution that performs as the reference. n_nodes: behind each of them."""

    log_norms: dict[str, float]
    n_nodes: dict[str, int]


def learn_norm_reference(inputs: Inputs, prints: Fingerprints, is_learned: Bools) -> NormReference:
    """What log norm stands for the reference, by type; nodes count alike, however often they ran.

    is_learned: (n,) calm training executions. Where the performance of executions is known the reference performs at
    0, so that scores are on the scale of measured ones; else it is the middle of the nodes. A type without any of them
    has none."""
    log_norms: dict[str, float] = {}
    n_nodes: dict[str, int] = {}
    for number, name in enumerate(inputs.types):
        own = is_learned & (inputs.type_of == number) & np.isfinite(prints.log_norm)
        is_measured = own & np.isfinite(inputs.performance)
        rows = np.flatnonzero(is_measured if is_measured.any() else own)
        if not len(rows):
            continue
        at_zero = prints.log_norm[rows] - (inputs.performance[rows] if is_measured.any() else 0.0)
        medians = pd.Series(at_zero).groupby(inputs.node_of[rows]).median()
        log_norms[name], n_nodes[name] = float(medians.median()), len(medians)
    return NormReference(log_norms=log_norms, n_nodes=n_nodes)


def log_scores_of(inputs: Inputs, prints: Fingerprints, reference: NormReference) -> Floats:
    """Natural logarithm of the score of each execution: (n,), NaN without a fingerprint or a reference for its type."""
    levels = np.array([reference.log_norms.get(name, np.nan) for name in inputs.types] + [np.nan])
    return np.asarray(prints.log_norm - levels[inputs.type_of])  # NO_TYPE is -1: the last one, NaN


def calm_executions(executions: pd.DataFrame, inputs: Inputs, is_flagged: Bools) -> Bools:
    """The executions that a node's score is made of: (n,).

    Completed, neither disturbed nor known to be stressed, and not flagged unless known to be unstressed. A node and
    type of which every such execution is flagged is slow rather than stressed, and keeps them all."""
    is_fair = is_unstressed(executions).to_numpy(dtype=bool)
    is_calm = is_fair & (~is_flagged | (inputs.labels == UNSTRESSED))
    series = np.unique(series_of(inputs), return_inverse=True)[1]
    has_calm = np.bincount(series[is_calm], minlength=len(inputs)) > 0
    return np.asarray(is_calm | (is_fair & ~has_calm[series]))


def rank_fingerprints(
    executions: pd.DataFrame, inputs: Inputs, log_scores: Floats, is_calm: Bools, params: ScoreParams
) -> Ranking:
    """Nodes by the scores of their calm executions: one number each and by aspect, with intervals and ties.

    The rules are those of tasks.nodes.ranking: medians, executions resampled within node and type. executions: of the
    history, as rows of the inputs; aspect and machine_type are read. log_scores, is_calm: (n,)."""
    tables = score_tables(executions, inputs, log_scores).of_executions(is_calm)
    return rank_nodes(tables, _reference_of_scores(tables), params)


def score_tables(executions: pd.DataFrame, inputs: Inputs, log_scores: Floats) -> NodeTables:
    """Scores in the form that plain answers work on: one table a type, its only metric being the score itself."""
    aspects = executions["aspect"].fillna("unknown").astype(str).to_numpy(dtype=object)
    tables = []
    for number, name in enumerate(inputs.types):
        rows = np.flatnonzero((inputs.type_of == number) & np.isfinite(log_scores))
        if not len(rows):
            continue
        found = log_scores[rows, None]
        tables.append(
            TypeTable(
                name=name,
                aspect=str(aspects[rows[0]]),
                executions=rows,
                nodes=inputs.node_of[rows],
                metrics=(SCORE,),
                units=("",),
                natural=np.exp(found),
                orientation=np.ones(1),
                scaled=found,
            )
        )
    kinds = executions["machine_type"].fillna("").astype(str).to_numpy()
    first = pd.Series(kinds).groupby(inputs.node_of).first().reindex(range(len(inputs.nodes)), fill_value="")
    return NodeTables(inputs.nodes, tuple(str(kind) for kind in first), tuple(tables), len(inputs))


def _reference_of_scores(tables: NodeTables) -> ReferenceFleet:
    """Scores are ratios to the reference already: it is 1."""
    rows = [(table.name, table.aspect, SCORE, "", 1.0, 1.0, 1.0, 0, 0) for table in tables.tables]
    return ReferenceFleet(pd.DataFrame(rows, columns=COLUMNS), "frozen with the model")
