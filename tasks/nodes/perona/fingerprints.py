"""Fingerprints: what the encoder makes of each execution alone, the scores of nodes that come of them, and their plane.

A fingerprint needs no history and no verdict: executions of a machine that was just set up have one as well.

    score of an execution = exp(log norm - log norm of its type at the reference)
    score of a node and aspect = exp(median over its calm executions), mean over the types of the aspect

Training makes ratios of norms follow ratios of measured performance, so a score of 2 is twice the reference. What
stands for the reference is learned once and frozen with the model: a machine that joins moves no other. No one-hot is
part of a norm: with one in it, as the authors have it, 0.1 against 0.9 becomes 1 against 1.14. Source: III-D."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from tasks.nodes.aspects import is_unstressed
from tasks.nodes.perona.inputs import NO_TYPE, UNSTRESSED, Bools, Floats, Inputs
from tasks.nodes.perona.network import Encoder, p_norms
from tasks.nodes.ranking.params import ScoreParams
from tasks.nodes.ranking.places import Ranking, rank_nodes
from tasks.nodes.reference_fleet import COLUMNS, ReferenceFleet
from tasks.nodes.type_tables import NodeTables, TypeTable
from tasks.params import Params

AT_ONCE = 65_536  # executions


@dataclass(frozen=True)
class Fingerprints:
    """enc: (n, h) codes. log_norm: (n,) natural logarithm of their p-norms, p being that of the model.

    NaN for executions of a type that training did not have, and for those without any measurement."""

    enc: Floats
    log_norm: Floats


def fingerprints_of(inputs: Inputs, network: Encoder) -> Fingerprints:
    """The fingerprints of all executions, row by row; the network is as it was afterwards. Source: Perona, III-D."""
    rows = np.flatnonzero(inputs.is_measured)
    enc = np.full((len(inputs), network.params.network.hidden), np.nan)
    log_norm = np.full(len(inputs), np.nan)
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            parts = [
                network.encode(torch.from_numpy(inputs.x[rows[first : first + AT_ONCE]])).double()
                for first in range(0, len(rows), AT_ONCE)
            ]
            if not parts:
                return Fingerprints(enc, log_norm)
            codes = torch.cat(parts)  # (k, h)
            norms = p_norms(codes, network.params.loss.norm_power)  # (k,)
    finally:
        network.train(was_training)
    enc[rows], log_norm[rows] = codes.numpy(), np.log(norms.numpy())
    return Fingerprints(enc, log_norm)


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
    series = np.unique(inputs.series, return_inverse=True)[1]
    has_calm = np.bincount(series[is_calm], minlength=len(inputs)) > 0
    return np.asarray(is_calm | (is_fair & ~has_calm[series]))


def rank_fingerprints(
    executions: pd.DataFrame, inputs: Inputs, log_scores: Floats, is_calm: Bools, params: ScoreParams
) -> Ranking:
    """Nodes by the scores of their calm executions: one number each and by aspect, with intervals and ties.

    The rules are those of ranking/places.py: medians, executions resampled within node and type. executions: of the
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


OF_POINTS = ["execution", "type", "node", "x", "y", "norm"]
SMALLEST = 1e-12  # length of a fingerprint that has a direction


@dataclass(frozen=True)
class Plane:
    """points: one row an execution with a fingerprint: execution (row of the inputs), type, node, x and y (from -1 to
    1), norm. shown: the share of the variance that the two dimensions hold, 0 without any."""

    points: pd.DataFrame
    shown: float


def plane_of(inputs: Inputs, prints: Fingerprints) -> Plane:
    """Directions of fingerprints on their first two principal components; types count alike, however often they ran.

    Types are clustered by direction (cosine similarity) and nodes are ranked by norm, so the place tells the type and
    the norm is told beside it. The same fingerprints always have the same places: signs are fixed."""
    rows = np.flatnonzero(np.isfinite(prints.log_norm) & (inputs.type_of != NO_TYPE))
    enc, type_of = prints.enc[rows], inputs.type_of[rows]
    length = np.linalg.norm(enc, axis=1, keepdims=True)
    direction = enc / np.maximum(length, SMALLEST)  # (k, h)
    sizes = np.bincount(type_of, minlength=len(inputs.types))
    weight = 1 / (sizes[type_of] * max(1, int((sizes > 0).sum())))  # sums to 1
    apart = direction - weight @ direction
    axes, shown = _first_two(apart, weight)
    place = apart @ axes  # (k, 2)
    told = {
        "execution": rows,
        "type": np.array(inputs.types, dtype=object)[type_of],
        "node": np.array(inputs.nodes, dtype=object)[inputs.node_of[rows]],
        "x": place[:, 0],
        "y": place[:, 1],
        "norm": np.exp(prints.log_norm[rows]),
    }
    return Plane(pd.DataFrame(told)[OF_POINTS].astype({"type": "str", "node": "str"}), shown)


def _first_two(apart: Floats, weight: Floats) -> tuple[Floats, float]:
    """The first two principal axes, (h, 2), and the share of the variance along them. apart: (k, h), of mean 0."""
    variance, axes = np.linalg.eigh((apart * weight[:, None]).T @ apart)  # rising
    chosen = axes[:, ::-1][:, :2]
    largest = chosen[np.abs(chosen).argmax(axis=0), np.arange(chosen.shape[1])]
    total = variance.sum()
    shown = float(variance[::-1][:2].sum() / total) if total > 0 else 0.0
    return chosen * np.where(largest < 0, -1.0, 1.0), shown
