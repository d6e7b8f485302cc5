"""Does a score from microbenchmarks order nodes as applications do? Asked within each machine type."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.evaluate.agreement import agreement_of
from tasks.nodes.evaluate.correlation import signed_interval, spearman
from tasks.nodes.evaluate.matrices import NodeMatrix
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.rivals import best_single, first_component, geometric_mean, standardised_mean
from tasks.nodes.evaluate.shared_component import shared_score
from tasks.nodes.type_tables import Bools

METHODS = ("spearman", "standardised", "pc1", "shared", "best_single", "best_oracle")  # spearman: our score
COLUMNS = ["machine_type", "half", "method", "series", "spearman", "chosen"]


@dataclass(frozen=True)
class OfMachineType:
    """One machine type. correlations: one row a half, method and series: machine_type, half (that was tested), method,
    series, spearman (signed), chosen (the single microbenchmark, else empty). signed: median over series, low, high, of
    our score over all nodes. agreement: mean, low, high, or None. n_nodes: with a microbenchmark."""

    machine_type: str
    n_nodes: int
    correlations: pd.DataFrame
    signed: tuple[float, float, float]
    agreement: tuple[float, float, float] | None
    reason: str = ""


def is_second_half(nodes: tuple[str, ...]) -> Bools:
    """Which nodes are of the second half: by the hash of their names, so that a new node moves no other. (n,)"""
    return np.array([zlib.crc32(node.encode()) % 2 == 1 for node in nodes], dtype=bool)


def compare_by_machine_type(matrix: NodeMatrix, params: EvaluateParams) -> list[OfMachineType]:
    """Compare scores with applications within each machine type, in order of name."""
    found = []
    for machine_type in sorted({str(one) for one in matrix.machine_types}):
        own = matrix.where((matrix.machine_types == machine_type) & ~np.isnan(matrix.micro).all(axis=1))
        found.append(_compare(machine_type, own, params))
    return found


def _compare(machine_type: str, own: NodeMatrix, params: EvaluateParams) -> OfMachineType:
    unknown = (np.nan, np.nan, np.nan)
    agreement = None
    if len(own.nodes) >= params.least_nodes:
        agreement = agreement_of(own.micro, own.levels, params.resamples, params.score.confidence, params.seed)
    nothing = pd.DataFrame(columns=COLUMNS)
    reason = why_not_compared(own, params)
    if reason:
        return OfMachineType(machine_type, len(own.nodes), nothing, unknown, agreement, reason)
    try:
        rows = pd.DataFrame(list(_halves(machine_type, own)), columns=COLUMNS)
    except ValueError as error:  # nothing varies: there is nothing to choose from
        return OfMachineType(machine_type, len(own.nodes), nothing, unknown, agreement, str(error))
    score = geometric_mean(own.micro, own.micro, own.levels)
    rng = np.random.default_rng([params.seed, zlib.crc32(machine_type.encode())])
    signed = signed_interval(score, own.applications, params.resamples, params.score.confidence, rng)
    return OfMachineType(machine_type, len(own.nodes), rows, signed, agreement)


def why_not_compared(own: NodeMatrix, params: EvaluateParams) -> str:
    """Why nodes of one machine type cannot be compared with applications; empty where they can."""
    if not own.series:
        return "no application (aspect application) ran on these nodes"
    if not own.levels.types:
        return "no microbenchmark ran on these nodes"
    is_second = is_second_half(own.nodes)
    n_each = min(int(is_second.sum()), int((~is_second).sum()))
    if n_each < params.least_nodes / 2:
        return f"{len(own.nodes)} nodes, {n_each} in the smaller half; at least {params.least_nodes} are needed"
    if np.isnan(own.applications).all():
        return "no application (aspect application) ran on these nodes"
    return ""


def _halves(machine_type: str, own: NodeMatrix) -> Iterator[dict[str, object]]:
    """Learn from one half and ask the other, both ways round."""
    is_second = is_second_half(own.nodes)
    for half, is_test in enumerate((is_second, ~is_second)):
        train, test = own.where(~is_test), own.where(is_test)
        chosen = {
            "best_single": best_single(train.micro, train.applications),
            "best_oracle": best_single(test.micro, test.applications),
        }
        told = {
            "spearman": geometric_mean(train.micro, test.micro, own.levels),
            "standardised": standardised_mean(train.micro, test.micro, own.levels),
            "pc1": first_component(train.micro, test.micro),
            "shared": shared_score(train.micro, test.micro, own.levels),
            **{method: test.micro[:, at] for method, at in chosen.items()},
        }
        for method, scores in told.items():
            single = own.levels.types[chosen[method]] if method in chosen else ""
            about = {"machine_type": machine_type, "half": half, "method": method, "chosen": single}
            for series, value in zip(own.series, spearman(scores, test.applications), strict=True):
                yield {**about, "series": series, "spearman": value}
