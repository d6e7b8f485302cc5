"""Perona's network in an evaluation: what its fits are worth, and what the paper's variant flags.

chronological: by time; the paper's variant judges one execution after another, each beside the latest earlier ones that
it did not flag itself, as nobody knows labels in use. paper: as its authors do: a random split, graphs within each part
by labels, three predecessors or no verdict, flagged from probability 0.5 on. Ours gives no verdicts. Labels are hidden
outside training and validation before anything is made of the history."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch

from tasks.errors import BadInput, report_progress
from tasks.nodes.detect.detector import EVEN_ODDS
from tasks.nodes.evaluate.detection import (
    BY_TIME,
    COLUMNS,
    LearnedResults,
    Split,
    choose_threshold,
    judged_rows,
    labels_reason,
    splits_of,
    visible_history,
)
from tasks.nodes.evaluate.measures import put_seeds
from tasks.nodes.history import History
from tasks.nodes.params import NAMES, EvaluateParams, LearnedProtocol, ModelParams
from tasks.nodes.perona.inputs import (
    ABSENT,
    STRESSED,
    UNKNOWN,
    UNSTRESSED,
    Batches,
    GraphSet,
    NetworkInputs,
    graphs_of,
    labels_of,
    predecessors_of,
)
from tasks.nodes.perona.network import PeronaNetwork
from tasks.nodes.perona.training import MOST_GRAPHS, PreparedInputs, fit_prepared, measures_of, prepare
from tasks.nodes.type_tables import Bools, Floats
from tasks.report.evaluation import Figures, put

BY_LABELS = "the paper's protocol makes its graphs by labels, which are hidden"
NO_STRESS = "no training execution is known to be stressed, so the network learns no verdicts"
FIT_MEASURES = {
    "mse": "reconstruction.mse.{name}",
    "mse_mean_predictor": "reconstruction.mse.{name}.mean_predictor",
    "mse_own": "reconstruction.mse.own.{name}",
    "mse_own_mean_predictor": "reconstruction.mse.own.{name}.mean_predictor",
    "type_accuracy": "type.accuracy.{name}",
    "score_spearman": "score.spearman.{name}",
    "score_deviation": "score.deviation.{name}",
    "best_epoch": "fit.best_epoch.{name}",
    "n_graphs": "fit.graphs.{name}",
}
FIT_COLUMNS = ["protocol", "round", "split", "detector", "seed", "validation_loss", "seconds", *FIT_MEASURES]

logger = logging.getLogger(__name__)


def fit_variants(history: History, params: EvaluateParams) -> LearnedResults:
    """Fit and measure every variant that params.learned names, under every protocol that it names."""
    learned, visible = params.learned, visible_history(history, params)
    why = labels_reason(history.executions)
    reasons = {(str(protocol), NAMES[variant]): why for protocol in learned.protocols for variant in learned.variants}
    judged: list[pd.DataFrame] = []
    fits: list[dict[str, Any]] = []
    planned = [] if why else list(_planned(history, params))
    for at, (protocol, number, seed, split) in enumerate(planned):
        for variant in learned.variants:
            name, model = NAMES[variant], learned.fit_params(variant, seed)
            report_progress(f"fitting {name}, {protocol}", at, len(planned))
            try:
                rows, measured = _fit(history, visible, protocol, split, model, params)
            except BadInput as error:
                logger.info("no fit of %s, %s: %s", name, protocol, error)
                reasons[protocol, name] = str(error)
                continue
            about = {"protocol": protocol, "round": number, "detector": name, "split": split.name, "seed": seed}
            judged.append(rows.assign(protocol=protocol, round=number))
            fits.append({**about, **measured})
    reasons |= {(fit["protocol"], fit["detector"]): "" for fit in fits}
    judgements = pd.concat(judged, ignore_index=True)[COLUMNS] if judged else pd.DataFrame(columns=COLUMNS)
    return LearnedResults(judgements, pd.DataFrame(fits, columns=FIT_COLUMNS), reasons)


def learned_figures(results: LearnedResults) -> Figures:
    """`reconstruction`, `type`, `score` and `fit` of each variant and protocol.

    A round is a fit with a seed of its own, and what the spread is over. fit.rounds says how many there are: one whose
    fit came to nothing is not among them."""
    figures: Figures = {}
    for (protocol, name), reason in results.reasons.items():
        fits = results.fits[(results.fits["protocol"] == protocol) & (results.fits["detector"] == name)]
        suffix = "" if protocol == BY_TIME else f".{protocol}"
        put(figures, f"fit.rounds.{name}{suffix}", len(fits) or None, reason)
        for measure, template in FIT_MEASURES.items():
            put_seeds(figures, f"{template.format(name=name)}{suffix}", fits[measure].tolist(), reason)
    return figures


def _planned(history: History, params: EvaluateParams) -> Iterator[tuple[LearnedProtocol, int, int, Split]]:
    """Protocol, round, seed and split of each fit: a round a seed. At random a split of its own, of as many as
    params.repeats says."""
    first = params.learned.model.fit.seed
    for protocol, at in product(params.learned.protocols, range(params.learned.seeds)):
        rounds = splits_of(history.executions, "random" if protocol == "paper" else protocol, params)
        yield protocol, at, first + at, rounds[at % len(rounds)][0]


def _fit(
    history: History,
    visible: History,
    protocol: LearnedProtocol,
    split: Split,
    model: ModelParams,
    params: EvaluateParams,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The judged executions of one fit, none of ours, and its measures. history: with all labels, to measure by;
    visible: as learning knows them. Raises BadInput where there is too little to learn from."""
    by_labels = protocol == "paper" and model.is_paper
    if by_labels and params.without_labels:
        raise BadInput("protocol paper", BY_LABELS, "labels", "ask for another")
    prepared = prepare(visible, split.is_train, split.is_validation, model, params.preprocess, params.score)
    if by_labels:
        train = part_graphs(prepared.train.inputs, split.is_train, model)
        validation = part_graphs(prepared.inputs, split.is_validation, model)
        prepared = replace(prepared, train=train, validation=validation)
    fitted = fit_prepared(prepared, model)
    network, is_tested = fitted.network, split.is_test
    rows = pd.DataFrame(columns=COLUMNS)
    if isinstance(network, PeronaNetwork):
        if "detection" not in network.params.loss.terms:
            raise BadInput("training", NO_STRESS, "labels of both classes", "record stress")
        logits, threshold = _verdicts(visible, prepared, protocol, split, network)
        rows = judged_rows(history, split, NAMES["paper"], logits, threshold)
        is_tested = np.zeros(len(logits), dtype=bool)
        is_tested[rows["execution"].to_numpy(dtype=np.int64)] = True
    measured: dict[str, Any] = measures_of(prepared.inputs, network, split.is_train, is_tested)
    n_graphs = min(len(prepared.train), MOST_GRAPHS)
    measured |= {"best_epoch": float(fitted.best_epoch), "n_graphs": float(n_graphs)}
    measured |= {"validation_loss": fitted.validation_loss, "seconds": float(fitted.history["seconds"].iloc[-1])}
    return rows, measured


def _verdicts(
    visible: History,
    prepared: PreparedInputs,
    protocol: LearnedProtocol,
    split: Split,
    network: PeronaNetwork,
) -> tuple[Floats, float]:
    """The logit of each execution, NaN where nothing can be said, and the threshold.

    By time all are judged by even odds first, which gives the validation executions that a threshold is chosen on; then
    again by that. The paper's protocol may see the labels of what it tests."""
    inputs = prepared.inputs
    if protocol == "paper":
        known = replace(inputs, labels=labels_of(visible.executions))
        graphs = part_graphs(known, split.is_test, network.params)
        logits = np.full(len(inputs), np.nan)
        logits[graphs.targets] = logits_of(network, graphs)
        return logits, EVEN_ODDS
    guessed = judge_in_time(inputs, network, EVEN_ODDS, prepared.is_calm)
    is_used = split.is_validation & np.isfinite(guessed) & (inputs.labels != UNKNOWN)
    stressed = inputs.labels[is_used] == STRESSED
    limit = choose_threshold(guessed[is_used], stressed)
    return judge_in_time(inputs, network, limit, prepared.is_calm), limit


def part_graphs(inputs: NetworkInputs, is_part: Bools, model: ModelParams) -> GraphSet:
    """The paper's graphs: of the executions of one part of a split, each beside the last ones of the same part that are
    labelled unstressed. is_part: (n,)."""
    measured = is_part & inputs.is_measured
    beside = predecessors_of(inputs, measured & (inputs.labels == UNSTRESSED), model.n_predecessors)
    return graphs_of(inputs, np.flatnonzero(measured), beside)


def logits_of(network: PeronaNetwork, graphs: GraphSet) -> Floats:
    """The logits of the targets of graphs: (g,). The network is in evaluation mode."""
    if not len(graphs):
        return np.empty(0)
    n_slots = graphs.predecessors.shape[1] + 1
    with torch.no_grad():
        logit = network(Batches(graphs, network.params).of(np.arange(len(graphs)))).logit
    return np.asarray(logit.numpy(), dtype=np.float64)[n_slots - 1 :: n_slots]  # the target is the last of a graph


def judge_in_time(inputs: NetworkInputs, network: PeronaNetwork, limit: float, may_precede: Bools) -> Floats:
    """The logit of each execution beside the latest earlier ones of its node and type that are not flagged, above the
    limit: (n,), NaN where nothing can be said.

    The paper takes its history for granted: an execution with too few predecessors has no verdict, and stands beside
    later ones as if it were calm. may_precede: (n,) those that may stand beside others. Executions at the same place of
    their nodes and types are judged together."""
    logits = np.full(len(inputs), np.nan)
    rows = np.flatnonzero(inputs.is_measured)
    names, number = np.unique(inputs.series[rows], return_inverse=True)
    place = pd.Series(number).groupby(number).cumcount().to_numpy()
    latest = np.full((len(names), network.params.n_predecessors), ABSENT, dtype=np.int64)
    for at in range(int(place.max(initial=-1)) + 1):
        now, of = rows[place == at], number[place == at]
        is_complete = (latest[of] != ABSENT).all(axis=1)
        logits[now[is_complete]] = logits_of(network, GraphSet(inputs, now[is_complete], latest[of][is_complete]))
        is_next = may_precede[now] & ~(logits[now] > limit)
        latest[of[is_next]] = np.column_stack([latest[of[is_next], 1:], now[is_next]])
    return logits
