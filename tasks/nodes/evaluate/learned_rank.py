"""`rank.<method>[.<machine type>].<variant>`: scores by the encoder against applications on nodes it was not fitted to.

As in against_applications, nodes are split in halves by the hash of their names. A network is fitted to the
microbenchmarks of one half alone; then the executions of the other half are scored by the encoder, which needs no
history, and its scores are compared with the applications of that half; both ways round. No application is ever seen.
A node's score is what its tools' log norms say in common (shared_component.py), learned from the nodes fitted to."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tasks.nodes.aspects import APPLICATION
from tasks.nodes.evaluate.against_applications import is_second_half, why_not_compared
from tasks.nodes.evaluate.correlation import spearman, typical
from tasks.nodes.evaluate.figures import Figures
from tasks.nodes.evaluate.learned_figures import put_seeds
from tasks.nodes.evaluate.learned_node_scores import drawn_of_series, for_many_types, node_scores
from tasks.nodes.evaluate.learned_params import NAMES
from tasks.nodes.evaluate.matrices import NodeMatrix
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.rivals import first_component, geometric_mean, standardised_mean
from tasks.nodes.evaluate.shared_component import shared_score
from tasks.nodes.history import History
from tasks.nodes.perona.params import ModelParams
from tasks.nodes.perona.training import Diverged
from tasks.nodes.type_tables import Bools, Floats
from tasks.progress import report_progress

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
