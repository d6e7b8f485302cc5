"""`rank.<method>[.<machine type>].<variant>`: scores by the encoder against applications on nodes it was not fitted to.

As in against_applications, nodes are split in halves by the hash of their names. A network is fitted to the
microbenchmarks of one half alone; then the executions of the other half are scored by the encoder, which needs no
history, and its scores are compared with the applications of that half; both ways round. No application is ever seen.
What stands for the reference is the median of the nodes that were fitted to."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.nodes.aspects import APPLICATION
from tasks.nodes.evaluate.against_applications import is_second_half, why_not_compared
from tasks.nodes.evaluate.correlation import spearman, typical
from tasks.nodes.evaluate.figures import Figures
from tasks.nodes.evaluate.learned import fit_prepared, why_not
from tasks.nodes.evaluate.learned_figures import put_seeds
from tasks.nodes.evaluate.learned_inputs import Prepared, known_graphs, n_drawn, training_alone
from tasks.nodes.evaluate.learned_params import NAMES
from tasks.nodes.evaluate.matrices import NodeMatrix
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.rivals import first_component, geometric_mean, standardised_mean
from tasks.nodes.fingerprint.fingerprints import fingerprints_of
from tasks.nodes.fingerprint.judging import undisturbed
from tasks.nodes.graph.fitting import inputs_of, learn_inputs
from tasks.nodes.graph.inputs import Inputs
from tasks.nodes.group_medians import group_medians
from tasks.nodes.history import History
from tasks.nodes.model.params import ModelParams
from tasks.nodes.scores import Levels
from tasks.nodes.training.fitting import Diverged
from tasks.nodes.type_tables import Bools, Floats
from tasks.progress import report_progress

METHODS = ("spearman", "standardised", "pc1")
COLUMNS = ["machine_type", "half", "detector", "seed", "method", "series", "spearman"]
MINED = 4  # vectors of each type that triplets are mined from, where all would be too many
LEAST_STEPS = 20  # of an epoch
ONE_IN = 5  # nodes of the half that is fitted to choose the best epoch
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
    rows: list[dict[str, object]] = []
    reasons = {NAMES[one]: "" for one in variants}
    for variant in variants:
        for seed in range(params.learned.rank_seeds):
            model = for_many_types(params.learned.asked(variant, params.learned.model.fit.seed + seed))
            try:
                rows += _both_halves(own, matrix, [name for name, why in each.items() if not why], model, params)
            except (ValueError, Diverged) as error:
                reasons[NAMES[variant]] = str(error)
    return LearnedRanks(pd.DataFrame(rows, columns=COLUMNS), reasons, each)


def for_many_types(model: ModelParams) -> ModelParams:
    """The parameters without the terms that need stressed executions: nothing here is labelled."""
    mined = model.loss.mined_per_type or MINED
    loss = {"detection": False, "stressed_ranking": False, "mined_per_type": mined}
    return model.model_copy(update={"loss": model.loss.model_copy(update=loss)})


def in_batches(model: ModelParams, n_graphs: int, params: EvaluateParams) -> ModelParams:
    """The parameters with batches that hold several executions of each type, as pairs of one type are what norms are
    taught by; an epoch still has some steps."""
    most = min(params.learned.rank_batch, n_graphs // LEAST_STEPS)
    fit = {"batch_size": max(model.fit.batch_size, most)}
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
            for method, correlations in compared(own, half).items():
                for series, value in zip(own.series, correlations, strict=True):
                    yield {**about, "method": method, "series": series, "spearman": value}


def compared(own: NodeMatrix, half: int) -> dict[str, Floats]:
    """Correlation of each method with each application of the tested half: (n_series,) by method.

    own: one machine type, micro holding the scores by the encoder. half: 0 tests the second half, as elsewhere."""
    is_test = is_second_half(own.nodes) == (half == 0)
    train, test = own.where(~is_test), own.where(is_test)
    told = {
        "spearman": geometric_mean(train.micro, test.micro, own.levels),
        "standardised": standardised_mean(train.micro, test.micro, own.levels),
    }
    try:
        told["pc1"] = first_component(train.micro, test.micro)
    except ValueError:  # nothing varies
        told["pc1"] = np.full(len(test.nodes), np.nan)
    return {method: spearman(scores, test.applications) for method, scores in told.items()}


def node_scores(history: History, matrix: NodeMatrix, half: int, model: ModelParams, params: EvaluateParams) -> Floats:
    """Log norm of each node and type by a network that saw nothing of the tested half: (n_nodes, n_types), medians over
    executions. Raises ValueError with a reason where none can be fitted, or Diverged."""
    node = history.executions["node"].astype(str)
    is_test = is_second_half(tuple(node)) == (half == 0)
    is_validation = node.isin(choosing_nodes(node[~is_test])).to_numpy(dtype=bool)
    is_train = ~is_test & ~is_validation
    scales = learn_inputs(history, is_train, model, params.preprocess, params.score)
    inputs = inputs_of(history, scales, model)
    calm = undisturbed(history.executions)
    train = known_graphs(training_alone(inputs, is_train), is_train, is_train & calm, model)
    prepared = Prepared(scales, inputs, calm, train, known_graphs(inputs, is_validation, ~is_test & calm, model))
    if reason := why_not(prepared, model, params.learned):
        raise ValueError(reason)
    n_graphs = n_drawn(len(train), params.learned.share, params.learned.most_graphs)
    network = fit_prepared(prepared, in_batches(model, n_graphs, params), params.learned).network
    return by_node(inputs, fingerprints_of(inputs, network).log_norm, matrix.nodes, matrix.levels)


def choosing_nodes(nodes: pd.Series) -> list[str]:
    """One in five of the nodes, at least one, by the hash of their names: the best epoch is chosen by them."""
    ordered = sorted(set(nodes), key=lambda one: zlib.crc32(f"{one}/".encode()))
    return ordered[: max(1, len(ordered) // ONE_IN)]


def by_node(inputs: Inputs, log_norm: Floats, nodes: tuple[str, ...], levels: Levels) -> Floats:
    """Medians of log norms over the executions of each node and type: (n_nodes, n_types), NaN where there is none."""
    place = pd.Index(nodes, dtype=object).get_indexer(pd.Index(inputs.nodes, dtype=object))[inputs.node_of]
    found = np.full((len(nodes), len(levels.types)), np.nan)
    for at, name in enumerate(levels.types):
        if name not in inputs.types:
            continue
        rows = np.flatnonzero((inputs.type_of == inputs.types.index(name)) & (place >= 0) & np.isfinite(log_norm))
        found[:, at] = group_medians(log_norm[rows, None], place[rows], len(nodes))[:, 0]
    return found


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
