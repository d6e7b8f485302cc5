"""Scores of nodes by an encoder that was fitted to the microbenchmarks of other nodes.

The encoder needs neither labels nor history. Millions of executions fit: of a node that ran one benchmark very often
some are drawn, so that it teaches no more than others do; of those to learn from some, and all are scored in parts."""

import zlib

import numpy as np
import pandas as pd

from tasks.nodes.aspects import type_names
from tasks.nodes.evaluate.against_applications import is_second_half
from tasks.nodes.evaluate.learned import Prepared, fit_prepared, known_graphs, n_drawn, training_alone, why_not
from tasks.nodes.evaluate.matrices import NodeMatrix
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.fingerprint.fingerprints import fingerprints_of
from tasks.nodes.fingerprint.judging import undisturbed
from tasks.nodes.group_medians import group_medians
from tasks.nodes.history import History
from tasks.nodes.perona.inputs import NO_TYPE, InputScales, Ints, inputs_of, learn_inputs
from tasks.nodes.perona.network import PeronaNetwork
from tasks.nodes.perona.params import SMALL_BATCH, ModelParams
from tasks.nodes.scores import Levels
from tasks.nodes.type_tables import Bools, Floats
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
