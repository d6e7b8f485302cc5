"""Perona's network in an evaluation: what its fits are worth, what the paper's variant flags, and nodes by its norms.

chronological: by time; the paper's variant judges one execution after another, each beside the latest earlier ones that
it did not flag itself, as nobody knows labels in use. paper: as its authors do: a random split, graphs within each part
by labels, three predecessors or no verdict, flagged from probability 0.5 on. Ours gives no verdicts. Labels are hidden
outside training and validation before anything is made of the history."""

import logging
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch

from tasks.errors import BadInput
from tasks.nodes.aspects import APPLICATION, is_stressed, type_names
from tasks.nodes.evaluate.applications import NodeMatrix, is_second_half, spearman, typical, why_not_compared
from tasks.nodes.evaluate.detection import COLUMNS, judged_rows, labels_reason
from tasks.nodes.evaluate.measures import Figures, LearnedResults, fits_table, put_seeds
from tasks.nodes.evaluate.params import NAMES, EvaluateParams, LearnedProtocol
from tasks.nodes.evaluate.splits import Split, as_told, choose_threshold, splits_of
from tasks.nodes.history import History
from tasks.nodes.perona.fingerprints import fingerprints_of
from tasks.nodes.perona.fitting import WITHOUT_STRESS, Prepared, fit_prepared, known_graphs, measures_of, prepare
from tasks.nodes.perona.graph import ABSENT, Batches, GraphSet, graphs_of, predecessors_of
from tasks.nodes.perona.inputs import (
    NO_TYPE,
    STRESSED,
    UNKNOWN,
    UNSTRESSED,
    Inputs,
    InputScales,
    Labels,
    inputs_of,
    learn_inputs,
)
from tasks.nodes.perona.network import Encoder, PeronaNetwork
from tasks.nodes.perona.params import SMALL_BATCH, ModelParams, Variant
from tasks.nodes.ranking.scores import Levels
from tasks.nodes.ranking.shared_component import shared_score
from tasks.nodes.type_tables import Bools, Floats, Ints, group_medians
from tasks.progress import report_progress

EVEN_ODDS = 0.0  # the logit of probability 0.5: the authors' threshold, and by which predecessors are chosen at first
BY_LABELS = "the paper's protocol makes its graphs by labels, which are hidden"
NO_STRESS = "no training execution is known to be stressed, so the network learns no verdicts"

logger = logging.getLogger(__name__)


def fit_variants(history: History, params: EvaluateParams) -> LearnedResults:
    """Fit and measure every variant that params.learned names, under every protocol that it names."""
    asked = params.learned
    reasons = dict.fromkeys(
        ((str(protocol), NAMES[one]) for protocol in asked.protocols for one in asked.variants),
        labels_reason(history.executions),
    )
    judged: list[pd.DataFrame] = []
    fits: list[dict[str, Any]] = []
    told = as_told(history, params)
    planned = [] if any(reasons.values()) else list(_planned(history, params))
    for at, (protocol, number, seed, split) in enumerate(planned):
        prepared: dict[Variant, Prepared] = {}
        for variant in asked.variants:
            name, model = NAMES[variant], asked.asked(variant, seed)
            report_progress(f"fitting {name}, {protocol}", at, len(planned))
            try:
                if protocol == "paper" and model.is_paper and params.without_labels:
                    raise BadInput("protocol paper", BY_LABELS, "labels", "ask for another")
                given = (split.is_train, split.is_validation, model, params.preprocess, params.score)
                prepared[variant] = prepare(told, *given)
                rows, measured = _fit(history, told, prepared[variant], protocol, split, model, params)
            except BadInput as error:
                logger.info("no fit of %s, %s: %s", name, protocol, error)
                reasons[protocol, name] = str(error)
                continue
            about = {"protocol": protocol, "round": number, "detector": name, "split": split.name, "seed": seed}
            judged.append(rows.assign(protocol=protocol, round=number))
            fits.append({**about, **measured})
    fitted = {(one["protocol"], one["detector"]) for one in fits}
    found = pd.concat(judged, ignore_index=True)[COLUMNS] if judged else pd.DataFrame(columns=COLUMNS)
    return LearnedResults(found, fits_table(fits), {key: "" if key in fitted else why for key, why in reasons.items()})


def _planned(history: History, params: EvaluateParams) -> Iterator[tuple[LearnedProtocol, int, int, Split]]:
    """Protocol, round, seed and split of each fit: a round a seed. At random a split of its own, of as many as
    params.repeats says."""
    types = type_names(history.executions).tolist()
    first = params.learned.model.fit.seed
    for protocol, at in product(params.learned.protocols, range(params.learned.seeds)):
        rounds = splits_of(history.executions, types, "random" if protocol == "paper" else protocol, params).rounds
        yield protocol, at, first + at, rounds[at % len(rounds)][0]


def _fit(
    history: History,
    told: History,
    prepared: Prepared,
    protocol: LearnedProtocol,
    split: Split,
    model: ModelParams,
    params: EvaluateParams,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The judged executions of one fit, none of ours, and its measures. history: with all labels, to measure by; told:
    as learning knows them. Raises BadInput where there is too little to learn from."""
    if protocol == "paper" and model.is_paper:
        train = part_graphs(prepared.train.inputs, split.is_train, model)
        validation = part_graphs(prepared.inputs, split.is_validation, model)
        prepared = replace(prepared, train=train, validation=validation)
    fitted = fit_prepared(prepared, model, params.learned.most_graphs)
    network, is_tested = fitted.network, split.is_test
    rows = pd.DataFrame(columns=COLUMNS)
    if isinstance(network, PeronaNetwork):
        if "detection" not in network.params.loss.terms:
            raise BadInput("training", NO_STRESS, "labels of both classes", "record stress")
        logits, threshold = _verdicts(told, prepared, protocol, split, network, params)
        rows = judged_rows(history, split, NAMES["paper"], logits, params.false_alarm_share, threshold=threshold)
        is_tested = np.zeros(len(logits), dtype=bool)
        is_tested[rows["execution"].to_numpy(dtype=np.int64)] = True
    measured: dict[str, Any] = measures_of(prepared.inputs, network, split.is_train, is_tested)
    n_graphs = min(len(prepared.train), params.learned.most_graphs)
    measured |= {"best_epoch": float(fitted.best_epoch), "n_graphs": float(n_graphs)}
    measured |= {"validation_loss": fitted.validation_loss, "seconds": float(fitted.history["seconds"].iloc[-1])}
    return rows, measured


def _verdicts(
    told: History,
    prepared: Prepared,
    protocol: LearnedProtocol,
    split: Split,
    network: PeronaNetwork,
    params: EvaluateParams,
) -> tuple[Floats, float]:
    """The logit of each execution, NaN where nothing can be said, and the threshold.

    By time all are judged by even odds first, which gives the validation executions that a threshold is chosen on; then
    again by that. The paper's protocol may see the labels of what it tests."""
    inputs = prepared.inputs
    if protocol == "paper":
        known = replace(inputs, labels=known_labels(told))
        graphs = part_graphs(known, split.is_test, network.params)
        logits = np.full(len(inputs), np.nan)
        logits[graphs.targets] = logits_of(network, graphs)
        return logits, EVEN_ODDS
    guessed = judge_in_time(inputs, network, EVEN_ODDS, prepared.is_calm)
    chosen = split.is_validation & np.isfinite(guessed) & (inputs.labels != UNKNOWN)
    stressed = inputs.labels[chosen] == STRESSED
    limit = choose_threshold(guessed[chosen], stressed, params.false_alarm_share)
    return judge_in_time(inputs, network, limit, prepared.is_calm), limit


def part_graphs(inputs: Inputs, is_part: Bools, model: ModelParams) -> GraphSet:
    """The paper's graphs: of the executions of one part of a split, each beside the last ones of the same part that are
    labelled unstressed. is_part: (n,)."""
    measured = is_part & inputs.is_measured
    beside = predecessors_of(inputs, measured & (inputs.labels == UNSTRESSED), model.n_predecessors)
    return graphs_of(inputs, np.flatnonzero(measured), beside)


def known_labels(history: History) -> Labels:
    """1 stressed, 0 not, -1 nobody says, of all executions: what the paper's protocol is allowed to see. (n,)"""
    executions = history.executions
    known = np.where(is_stressed(executions).to_numpy(dtype=bool), STRESSED, UNSTRESSED)
    return np.where(executions["is_stressed"].isna().to_numpy(), UNKNOWN, known).astype(np.int8)


def logits_of(network: PeronaNetwork, graphs: GraphSet) -> Floats:
    """The logits of the targets of graphs: (g,). The network is in evaluation mode."""
    if not len(graphs):
        return np.empty(0)
    n_slots = graphs.predecessors.shape[1] + 1
    with torch.no_grad():
        logit = network(Batches(graphs, network.params).of(np.arange(len(graphs)))).logit
    return np.asarray(logit.numpy(), dtype=np.float64)[n_slots - 1 :: n_slots]  # the target is the last of a graph


def judge_in_time(inputs: Inputs, network: PeronaNetwork, limit: float, may_precede: Bools) -> Floats:
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
        is_told = (latest[of] != ABSENT).all(axis=1)
        logits[now[is_told]] = logits_of(network, GraphSet(inputs, now[is_told], latest[of][is_told]))
        is_next = may_precede[now] & ~(logits[now] > limit)
        latest[of[is_next]] = np.column_stack([latest[of[is_next], 1:], now[is_next]])
    return logits


MINED = 4  # vectors of each type that triplets are mined from, where all would be too many
LEAST_STEPS = 20  # of an epoch
SMALL_STEPS = 0.003  # learning rate: the order within a type is that of differences of 0.001 in log norm
ONE_IN = 5  # nodes of the half that is fitted to choose the best epoch
DRAWS, SERIES = 8, 10  # streams of the seed: which executions are looked at to learn from, and of each series
MOST_OF_SERIES = 30  # executions of one node and type: their median is as good as that of thousands
LOOKED_AT = 4  # times learned.most_graphs: so many of them, and so many to choose the best epoch by
AT_ONCE = 100_000  # executions that are scored together
RANK_COLUMNS = ["machine_type", "half", "detector", "seed", "series", "spearman"]
NO_SERIES = "no machine type has applications on enough nodes"


@dataclass(frozen=True)
class LearnedRanks:
    """correlations: RANK_COLUMNS, one row a machine type, half, variant, seed and series. reasons: by variant, empty
    where there are any. machine_types: those that are compared, with why not where they are not."""

    correlations: pd.DataFrame
    reasons: dict[str, str]
    machine_types: dict[str, str]


def rank_learned(history: History, is_calm: Bools, matrix: NodeMatrix, params: EvaluateParams) -> LearnedRanks:
    """Score nodes by an encoder that was fitted to the microbenchmarks of other nodes, and compare with applications.

    It needs neither labels nor history: is_calm, (n_executions,), are executions without known stress, and no other is
    looked at. matrix: of the same history. Of a node that ran one benchmark very often some are drawn, so that it
    teaches no more than others do; of those to learn from some, and all are scored in parts."""
    names = sorted({str(one) for one in matrix.machine_types})
    each = {name: why_not_compared(_of_machine_type(matrix, name), params) for name in names}
    variants = params.learned.variants
    if all(each.values()):
        reason = "; ".join(dict.fromkeys(each.values())) or NO_SERIES
        return LearnedRanks(pd.DataFrame(columns=RANK_COLUMNS), {NAMES[one]: reason for one in variants}, each)
    micro = is_calm & (history.executions["aspect"] != APPLICATION).to_numpy(dtype=bool)
    own = history.where(micro)
    own = own.where(drawn_of_series(own.executions, params.seed))
    rows: list[dict[str, object]] = []
    reasons = {NAMES[one]: "" for one in variants}
    for variant, at in product(variants, range(params.learned.rank_seeds)):
        model = for_many_types(params.learned.asked(variant, params.learned.model.fit.seed + at))
        try:
            rows += list(_both_halves(own, matrix, [one for one, why in each.items() if not why], model, params))
        except BadInput as error:
            reasons[NAMES[variant]] = str(error)
    return LearnedRanks(pd.DataFrame(rows, columns=RANK_COLUMNS), reasons, each)


def for_many_types(model: ModelParams) -> ModelParams:
    """The parameters of a fit for ranking, without the terms that need stressed executions: nothing here is labelled.

    Norms are all that is asked. So ours learns by the term that teaches them alone, in small steps and without dropout:
    beside the others, types that hardly vary (by 0.1 %) come out of order or turned round. A learning rate that was
    asked for stays."""
    if model.is_paper:
        mined = model.loss.model_copy(update={"mined_per_type": model.loss.mined_per_type or MINED})
        return model.model_copy(update={"loss": mined}).with_terms(*WITHOUT_STRESS)
    fit = {"learning_rate": model.fit.learning_rate or SMALL_STEPS, "weight_decay": 0.0}
    return model.with_terms("ranking").model_copy(
        update={
            "network": model.network.model_copy(update={"dropout": 0.0}),
            "fit": model.fit.model_copy(update=fit),
        }
    )


def in_batches(model: ModelParams, n_graphs: int, params: EvaluateParams) -> ModelParams:
    """The parameters with batches that hold several executions of each type, as pairs of one type are what norms are
    taught by; an epoch still has some steps."""
    most = min(params.learned.rank_batch, n_graphs // LEAST_STEPS)
    fit = {"batch_size": max(model.fit.batch_size or SMALL_BATCH, most)}
    return model.model_copy(update={"fit": model.fit.model_copy(update=fit)})


def _of_machine_type(matrix: NodeMatrix, name: str) -> NodeMatrix:
    return matrix.where((matrix.machine_types == name) & ~np.isnan(matrix.micro).all(axis=1))


def _both_halves(
    history: History, matrix: NodeMatrix, machine_types: list[str], model: ModelParams, params: EvaluateParams
) -> Iterator[dict[str, object]]:
    for half in (0, 1):
        report_progress(f"fitting {NAMES[model.variant]} to half of the nodes", half, 2)
        scores = node_scores(history, matrix, half, model, params)  # of all nodes, (n_nodes, n_types)
        for name in machine_types:
            is_own = (matrix.machine_types == name) & ~np.isnan(matrix.micro).all(axis=1)
            own = replace(matrix, micro=scores).where(is_own)
            about = {"machine_type": name, "half": half, "detector": NAMES[model.variant], "seed": model.fit.seed}
            for series, value in zip(own.series, compared(own, half), strict=True):
                yield {**about, "series": series, "spearman": value}


def compared(own: NodeMatrix, half: int) -> Floats:
    """Correlation of the shared component of norms with each application of the tested half: (n_series,).

    own: one machine type, micro holding the scores by the encoder. half: 0 tests the second half, as elsewhere."""
    is_test = is_second_half(own.nodes) == (half == 0)
    train, test = own.where(~is_test), own.where(is_test)
    with suppress(ValueError):  # nothing varies
        return spearman(shared_score(train.micro, test.micro, train.levels), test.applications)
    return np.full(len(own.series), np.nan)


def node_scores(history: History, matrix: NodeMatrix, half: int, model: ModelParams, params: EvaluateParams) -> Floats:
    """Log norm of each node and type by a network that saw nothing of the tested half: (n_nodes, n_types), medians over
    executions. half: 0 tests the second half. Raises BadInput with a reason where none can be fitted."""
    node = history.executions["node"].astype(str)
    is_test = is_second_half(tuple(node)) == (half == 0)
    is_validation = node.isin(choosing_nodes(node[~is_test])).to_numpy(dtype=bool)
    is_train = ~is_test & ~is_validation
    scales = learn_inputs(history, is_train, model, params.preprocess, params.score)
    prepared = looked_at(history, scales, is_train, is_validation, model, params)
    n_graphs = min(len(prepared.train), params.learned.most_graphs)
    network = fit_prepared(prepared, in_batches(model, n_graphs, params), params.learned.most_graphs).network
    log_norm, type_of = log_norms_of(history, scales, network)
    place = pd.Index(matrix.nodes, dtype=object).get_indexer(pd.Index(node, dtype=object))
    return by_node(log_norm, type_of, np.asarray(place, dtype=np.int64), scales.types, matrix.levels, len(matrix.nodes))


def drawn_of_series(executions: pd.DataFrame, seed: int) -> Bools:
    """The executions (n,), of more than MOST_OF_SERIES of one node and type a draw."""
    order = pd.Series(np.random.default_rng([SERIES, seed]).random(len(executions)))
    keys = [executions["node"].astype(str).to_numpy(dtype=object), type_names(executions).to_numpy(dtype=object)]
    return np.asarray(order.groupby(keys).rank(method="first").to_numpy() <= MOST_OF_SERIES, dtype=bool)


def choosing_nodes(nodes: pd.Series) -> list[str]:
    """One in five of the nodes, at least one, by the hash of their names: the best epoch is chosen by them."""
    ordered = sorted(set(nodes), key=lambda one: zlib.crc32(f"{one}/".encode()))
    return ordered[: max(1, len(ordered) // ONE_IN)]


def looked_at(
    history: History,
    scales: InputScales,
    is_train: Bools,
    is_validation: Bools,
    model: ModelParams,
    params: EvaluateParams,
) -> Prepared:
    """What a fit is given: executions of the masks (n,), of many a draw, beside earlier ones of their own part that
    were drawn as well; a validation execution also beside training ones of its node."""
    rng = np.random.default_rng([DRAWS, model.fit.seed])
    most = LOOKED_AT * params.learned.most_graphs
    is_kept = drawn_from(is_train, most, rng) | drawn_from(is_validation, most, rng)
    own, train, validation = history.where(is_kept), is_train[is_kept], is_validation[is_kept]
    inputs = inputs_of(own, scales, model)
    calm = np.ones(len(inputs), dtype=bool)  # those that are not were left out before
    return Prepared(
        scales, inputs, calm, known_graphs(inputs, train, train, model), known_graphs(inputs, validation, calm, model)
    )


def drawn_from(is_there: Bools, most: int, rng: np.random.Generator) -> Bools:
    """The mask (n,), of more than so many a draw."""
    rows = np.flatnonzero(is_there)
    if len(rows) <= most:
        return is_there
    found = np.zeros(len(is_there), dtype=bool)
    found[rng.choice(rows, size=most, replace=False)] = True
    return found


def log_norms_of(history: History, scales: InputScales, network: Encoder) -> tuple[Floats, Ints]:
    """The log norm of each execution's fingerprint, NaN where it has none, and the number of its type: (n,) each."""
    n = len(history.executions)
    log_norm, type_of = np.full(n, np.nan), np.full(n, NO_TYPE, dtype=np.int64)
    for first in range(0, n, AT_ONCE):
        report_progress("scoring executions", first, n)
        is_part = np.zeros(n, dtype=bool)
        is_part[first : first + AT_ONCE] = True
        inputs = inputs_of(history.where(is_part), scales, network.params)
        log_norm[is_part], type_of[is_part] = fingerprints_of(inputs, network).log_norm, inputs.type_of
    return log_norm, type_of


def by_node(
    log_norm: Floats, type_of: Ints, node_of: Ints, types: tuple[str, ...], levels: Levels, n_nodes: int
) -> Floats:
    """Medians of log norms over the executions of each node and type: (n_nodes, n_types), NaN where there is none.

    log_norm, type_of, node_of: (n,). types: whose numbers are in type_of; those of levels are the columns."""
    found = np.full((n_nodes, len(levels.types)), np.nan)
    for at, name in enumerate(levels.types):
        if name not in types:
            continue
        rows = np.flatnonzero((type_of == types.index(name)) & (node_of >= 0) & np.isfinite(log_norm))
        found[:, at] = group_medians(log_norm[rows, None], node_of[rows], n_nodes)[:, 0]
    return found


def rank_learned_figures(found: LearnedRanks) -> Figures:
    """The median over series of the absolute correlation, mean over both halves; without a machine type over the series
    of all of them, and with `.mean` the mean of the machine types. Spread over seeds."""
    figures: Figures = {}
    for name, reason in found.reasons.items():
        own = found.correlations[found.correlations["detector"] == name]
        by_kind = {kind: typical_by_seed(own[own["machine_type"] == kind]) for kind in found.machine_types}
        for kind, values in by_kind.items():
            put_seeds(figures, f"rank.spearman.{kind}.{name}", values, found.machine_types[kind] or reason)
        put_seeds(figures, f"rank.spearman.{name}", typical_by_seed(own), reason or NO_SERIES)
        known = [values for values in by_kind.values() if values]
        means = [float(np.mean(each)) for each in zip(*known, strict=True)] if known else []
        put_seeds(figures, f"rank.spearman.mean.{name}", means, reason or NO_SERIES)
    return figures


def typical_by_seed(rows: pd.DataFrame) -> list[float]:
    """For each seed the median over series of the absolute correlation, mean over halves."""
    halves = rows.groupby(["seed", "half"])["spearman"].agg(lambda values: typical(values.to_numpy()))
    return [float(value) for value in halves.groupby(level="seed").mean()] if len(rows) else []
