"""Does a score from microbenchmarks order nodes as applications do? Asked within each machine type."""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.evaluate.agreement import agreement_of
from tasks.nodes.evaluate.correlation import signed_interval, spearman
from tasks.nodes.evaluate.matrices import NodeMatrix
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.rivals import best_single, first_component, geometric_mean, standardised_mean
from tasks.nodes.evaluate.shared_component import shared_score
from tasks.nodes.type_tables import Bools, Floats

COLUMNS = ["machine_type", "half", "method", "series", "spearman", "chosen"]
SIGNED = "signed"  # among the reasons: why the signed correlation of our score cannot be had
NO_CORRELATION = "the score and an application never both vary over 4 nodes or more"
Told = tuple[Floats, str]


def _single(by: NodeMatrix, test: NodeMatrix) -> Told:
    at = best_single(by.micro, by.applications)
    return test.micro[:, at], by.levels.types[at]


TELL: Mapping[str, Callable[[NodeMatrix, NodeMatrix], Told]] = {
    "spearman": lambda train, test: (geometric_mean(train.micro, test.micro, train.levels), ""),  # our score
    "standardised": lambda train, test: (standardised_mean(train.micro, test.micro, train.levels), ""),
    "pc1": lambda train, test: (first_component(train.micro, test.micro), ""),
    "shared": lambda train, test: (shared_score(train.micro, test.micro, train.levels), ""),
    "best_single": _single,
    "best_oracle": lambda _, test: _single(test, test),
}
"""From training and test nodes the scores of the test nodes (n,), and the single microbenchmark that was chosen."""
METHODS = tuple(TELL)


@dataclass(frozen=True)
class OfMachineType:
    """One machine type. correlations: one row a half, method and series: machine_type, half (that was tested), method,
    series, spearman (signed), chosen (the single microbenchmark, else empty). signed: median over series, low, high, of
    our score over all nodes. agreement: mean, low, high, or None. n_nodes: with a microbenchmark. reasons: by method,
    and by SIGNED, why it cannot be had; such a method has no row."""

    machine_type: str
    n_nodes: int
    correlations: pd.DataFrame
    signed: tuple[float, float, float]
    agreement: tuple[float, float, float] | None
    reasons: Mapping[str, str]


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
    if reason := why_not_compared(own, params):
        nothing, reasons = pd.DataFrame(columns=COLUMNS), dict.fromkeys((*METHODS, SIGNED), reason)
        return OfMachineType(machine_type, len(own.nodes), nothing, unknown, agreement, reasons)
    rows, reasons = _halves(machine_type, own)
    score = geometric_mean(own.micro, own.micro, own.levels)
    rng = np.random.default_rng([params.seed, zlib.crc32(machine_type.encode())])
    signed = signed_interval(score, own.applications, params.resamples, params.score.confidence, rng)
    if np.isnan(signed[0]):
        reasons = {**reasons, SIGNED: NO_CORRELATION}
    return OfMachineType(machine_type, len(own.nodes), rows, signed, agreement, reasons)


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


def _halves(machine_type: str, own: NodeMatrix) -> tuple[pd.DataFrame, dict[str, str]]:
    """Learn from one half and ask the other, both ways round: rows, and the reasons of methods without any."""
    is_second = is_second_half(own.nodes)
    found: list[dict[str, object]] = []
    reasons: dict[str, str] = {}
    for half, is_test in enumerate((is_second, ~is_second)):
        train, test = own.where(~is_test), own.where(is_test)
        for method, tell in TELL.items():
            try:
                scores, chosen = tell(train, test)
            except ValueError as error:  # nothing varies: there is nothing to learn or to choose from
                reasons[method] = str(error)
                continue
            about = {"machine_type": machine_type, "half": half, "method": method, "chosen": chosen}
            each = zip(own.series, spearman(scores, test.applications), strict=True)
            found += [{**about, "series": series, "spearman": value} for series, value in each]
    rows = pd.DataFrame(found, columns=COLUMNS)
    for method in METHODS:
        if rows.loc[rows["method"] == method, "spearman"].isna().all():
            reasons.setdefault(method, NO_CORRELATION)
    return rows[~rows["method"].isin(reasons)], reasons
