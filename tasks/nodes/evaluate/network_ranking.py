"""Scores of nodes by an encoder that was fitted to the microbenchmarks of other nodes.

The encoder needs neither labels nor history. Millions of executions fit: of a node that ran one benchmark very often
some are drawn, so that it teaches no more than others do; of those to learn from some, and all are scored in parts."""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.nodes.aspects import APPLICATION, type_names
from tasks.nodes.evaluate.applications import (
    NodeMatrix,
    first_component,
    geometric_mean,
    is_second_half,
    spearman,
    standardised_mean,
    typical,
    why_not_compared,
)
from tasks.nodes.evaluate.measures import Figures, put_seeds
from tasks.nodes.evaluate.network import Prepared, fit_prepared, known_graphs, n_drawn, training_alone, why_not
from tasks.nodes.evaluate.params import NAMES, EvaluateParams
from tasks.nodes.history import History
from tasks.nodes.perona.fingerprints import fingerprints_of
from tasks.nodes.perona.inputs import NO_TYPE, InputScales, Ints, inputs_of, learn_inputs
from tasks.nodes.perona.judging import undisturbed
from tasks.nodes.perona.network import PeronaNetwork
from tasks.nodes.perona.params import SMALL_BATCH, ModelParams
from tasks.nodes.perona.training import Diverged
from tasks.nodes.scores import Levels
from tasks.nodes.shared_component import shared_score
from tasks.nodes.type_tables import (
    Bools,
    Floats,
    group_medians,
)
from tasks.progress import report_progress

MINED = 4  # vectors of each type that triplets are mined from, where all would be too many
LEAST_STEPS = 20  # of an epoch
SMALL_STEPS = 0.003  # learning rate: the order within a type is that of differences of 0.001 in log norm
ONE_IN = 5  # nodes of the half that is fitted to choose the best epoch
DRAWS, SERIES = 8, 10  # streams of the seed: which executions are looked at to learn from, and of each series
MOST_OF_SERIES = 30  # executions of one node and type: their median is as good as that of thousands
LOOKED_AT = 4  # times learned.most_graphs: so many of them, and so many to choose the best epoch by
AT_ONCE = 100_000  # executions that are scored together


def for_many_types(model: ModelParams) -> ModelParams:
    """The parameters of a fit for ranking, without the terms that need stressed executions: nothing here is labelled.

    Norms are all that is asked. So ours learns by the term that teaches them alone, in small steps and without dropout:
    beside the others, types that hardly vary (by 0.1 %) come out of order or turned round. A learning rate that was
    asked for stays."""
    asked = model.loss.mined_per_type
    loss = {"detection": False, "stressed_ranking": False, "mined_per_type": asked if asked > 0 else MINED}
    if model.variant == "paper":
        return model.model_copy(update={"loss": model.loss.model_copy(update=loss)})
    loss |= {"reconstruction": False, "clustering": False, "classification": False}
    fit = {"learning_rate": model.fit.learning_rate or SMALL_STEPS, "weight_decay": 0.0}
    return model.model_copy(
        update={
            "loss": model.loss.model_copy(update=loss),
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


def node_scores(history: History, matrix: NodeMatrix, half: int, model: ModelParams, params: EvaluateParams) -> Floats:
    """Log norm of each node and type by a network that saw nothing of the tested half: (n_nodes, n_types), medians over
    executions. half: 0 tests the second half. Raises ValueError with a reason where none can be fitted, or Diverged."""
    node = history.executions["node"].astype(str)
    is_test = is_second_half(tuple(node)) == (half == 0)
    is_validation = node.isin(choosing_nodes(node[~is_test])).to_numpy(dtype=bool)
    is_train = ~is_test & ~is_validation
    scales = learn_inputs(history, is_train, model, params.preprocess, params.score)
    prepared = looked_at(history, scales, is_train, is_validation, model, params)
    if reason := why_not(prepared):
        raise ValueError(reason)
    n_graphs = n_drawn(len(prepared.train), params.learned.share, params.learned.most_graphs)
    network = fit_prepared(prepared, in_batches(model, n_graphs, params), params.learned).network
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
    inputs, calm = inputs_of(own, scales, model), undisturbed(own.executions)
    taught = known_graphs(training_alone(inputs, train), train, train & calm, model)
    return Prepared(scales, inputs, calm, taught, known_graphs(inputs, validation, calm, model))


def drawn_from(is_there: Bools, most: int, rng: np.random.Generator) -> Bools:
    """The mask (n,), of more than so many a draw."""
    rows = np.flatnonzero(is_there)
    if len(rows) <= most:
        return is_there
    found = np.zeros(len(is_there), dtype=bool)
    found[rng.choice(rows, size=most, replace=False)] = True
    return found


def log_norms_of(history: History, scales: InputScales, network: PeronaNetwork) -> tuple[Floats, Ints]:
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


METHODS = ("spearman", "geometric", "standardised", "pc1")  # spearman: the score; the others as of measured ones
COLUMNS = ["machine_type", "half", "detector", "seed", "method", "series", "spearman"]
NO_SERIES = "no machine type has applications on enough nodes"


@dataclass(frozen=True)
class LearnedRanks:
    """correlations: COLUMNS, one row a machine type, half, variant, seed, method and series. reasons: by variant, empty
    where there are any. machine_types: those that are compared, with why not where they are not."""

    correlations: pd.DataFrame
    reasons: dict[str, str]
    machine_types: dict[str, str]


def rank_learned(history: History, is_calm: Bools, matrix: NodeMatrix, params: EvaluateParams) -> LearnedRanks:
    """Score nodes by each variant and compare with applications. matrix: of the same history.

    is_calm: (n_executions,) executions without known stress; no other is looked at."""
    names = sorted({str(one) for one in matrix.machine_types})
    each = {name: why_not_compared(_of_machine_type(matrix, name), params) for name in names}
    variants = params.learned.variants
    if all(each.values()):
        reason = "; ".join(dict.fromkeys(each.values())) or NO_SERIES
        return LearnedRanks(pd.DataFrame(columns=COLUMNS), {NAMES[one]: reason for one in variants}, each)
    micro = is_calm & (history.executions["aspect"] != APPLICATION).to_numpy(dtype=bool)
    own = history.where(micro)
    own = own.where(drawn_of_series(own.executions, params.seed))
    rows: list[dict[str, object]] = []
    reasons = {NAMES[one]: "" for one in variants}
    for variant in variants:
        for seed in range(params.learned.rank_seeds):
            model = for_many_types(params.learned.asked(variant, params.learned.model.fit.seed + seed))
            try:
                rows += list(_both_halves(own, matrix, [one for one, why in each.items() if not why], model, params))
            except (ValueError, Diverged) as error:
                reasons[NAMES[variant]] = str(error)
    return LearnedRanks(pd.DataFrame(rows, columns=COLUMNS), reasons, each)


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
            for method, correlations in compared(own, half).items():
                for series, value in zip(own.series, correlations, strict=True):
                    yield {**about, "method": method, "series": series, "spearman": value}


def compared(own: NodeMatrix, half: int) -> dict[str, Floats]:
    """Correlation of each method with each application of the tested half: (n_series,) by method.

    own: one machine type, micro holding the scores by the encoder. half: 0 tests the second half, as elsewhere."""
    is_test = is_second_half(own.nodes) == (half == 0)
    train, test = own.where(~is_test), own.where(is_test)
    nothing = np.full(len(test.nodes), np.nan)
    told = {
        "spearman": nothing,
        "geometric": geometric_mean(train.micro, test.micro, own.levels),
        "standardised": standardised_mean(train.micro, test.micro, own.levels),
        "pc1": nothing,
    }
    with suppress(ValueError):  # nothing varies
        told["pc1"] = first_component(train.micro, test.micro)
        told["spearman"] = shared_score(train.micro, test.micro, own.levels)
    return {method: spearman(scores, test.applications) for method, scores in told.items()}


def rank_learned_figures(found: LearnedRanks) -> Figures:
    """The median over series of the absolute correlation, mean over both halves; without a machine type over the series
    of all of them, and with `.mean` the mean of the machine types. Spread over seeds."""
    figures: Figures = {}
    for name, reason in found.reasons.items():
        own = found.correlations[found.correlations["detector"] == name]
        for method in METHODS:
            rows = own[own["method"] == method]
            by_kind = {kind: typical_by_seed(rows[rows["machine_type"] == kind]) for kind in found.machine_types}
            for kind, values in by_kind.items():
                why = found.machine_types[kind] or reason
                put_seeds(figures, f"rank.{method}.{kind}.{name}", values, why)
            put_seeds(figures, f"rank.{method}.{name}", typical_by_seed(rows), reason or NO_SERIES)
            known = [values for values in by_kind.values() if values]
            means = [float(np.mean(each)) for each in zip(*known, strict=True)] if known else []
            put_seeds(figures, f"rank.{method}.mean.{name}", means, reason or NO_SERIES)
    return figures


def typical_by_seed(rows: pd.DataFrame) -> list[float]:
    """For each seed the median over series of the absolute correlation, mean over halves."""
    halves = rows.groupby(["seed", "half"])["spearman"].agg(lambda values: typical(values.to_numpy()))
    return [float(value) for value in halves.groupby(level="seed").mean()] if len(rows) else []
