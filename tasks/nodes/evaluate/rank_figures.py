"""Figures of ranking: `rank.<method>[.<machine type>]`, and whether there is anything to rank."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tasks.nodes.evaluate.against_applications import METHODS, SIGNED, OfMachineType
from tasks.nodes.evaluate.correlation import typical
from tasks.nodes.evaluate.figures import Figures, put
from tasks.nodes.evaluate.params import EvaluateParams

FEW_TYPES = "fewer than 4 microbenchmark types, or too few nodes"


def rank_figures(found: Sequence[OfMachineType], params: EvaluateParams) -> Figures:
    """For each machine type `rank.nodes`, `rank.<method>` (median over series of the absolute correlation, mean over
    the two halves), `rank.signed` with .low and .high, `rank.agreement` with .low and .high, `rank.almost_nothing`;
    without a machine type: the median over the series of all of them, and `.mean`, the mean of their values."""
    figures: Figures = {}
    for one in found:
        slice_ = one.machine_type
        figures[f"rank.nodes.{slice_}"] = one.n_nodes
        for method in METHODS:
            put(figures, f"rank.{method}.{slice_}", _typical([one], method), one.reasons.get(method, ""))
        chosen = one.correlations[one.correlations["method"] == "best_single"]["chosen"].unique()
        if len(chosen):
            figures[f"rank.best_single.{slice_}.chosen"] = ", ".join(map(str, chosen))
        for name, value in zip(("", ".low", ".high"), one.signed, strict=True):
            put(figures, f"rank.signed.{slice_}{name}", value, one.reasons.get(SIGNED, ""))
        for name, value in zip(("", ".low", ".high"), one.agreement or (np.nan, np.nan, np.nan), strict=True):
            put(figures, f"rank.agreement.{slice_}{name}", value, FEW_TYPES)
        figures |= _nothing(one, params)
    for method in METHODS:
        why = dict.fromkeys(one.reasons[method] for one in found if method in one.reasons)
        reason = "; ".join(why) or "no node"
        put(figures, f"rank.{method}", _typical(found, method), reason)
        each = [told for one in found if (told := _typical([one], method)) is not None]
        put(figures, f"rank.{method}.mean", float(np.mean(each)) if each else None, reason)
    figures["rank.series"] = max((one.correlations["series"].nunique() for one in found), default=0)
    return figures


def _typical(found: Sequence[OfMachineType], method: str) -> float | None:
    """The median over series, mean over halves."""
    kept = [one.correlations for one in found if method not in one.reasons]
    if not kept:
        return None
    rows = pd.concat(kept, ignore_index=True)
    own = rows[rows["method"] == method].groupby("half")["spearman"]
    return float(own.agg(lambda values: typical(values.to_numpy())).mean())


def _nothing(one: OfMachineType, params: EvaluateParams) -> Figures:
    """`rank.almost_nothing`: whether the score says little or nothing of these nodes, and `.why`.

    By the applications where they ran: the interval holds 0, or the correlation is below a stated size. Else by the
    agreement of the microbenchmarks with each other, in the same way."""
    key = f"rank.almost_nothing.{one.machine_type}"
    is_by_applications = SIGNED not in one.reasons
    value = one.signed if is_by_applications else one.agreement
    told = "correlation with applications" if is_by_applications else "agreement"
    if value is None or pd.isna(value[0]):
        return {key: None, f"{key}.reason": FEW_TYPES}
    middle, low, high = value
    if low <= 0 <= high:
        return {key: True, f"{key}.why": f"the interval of the {told} holds 0: {low:.3f} to {high:.3f}"}
    if abs(middle) < params.nothing_below:
        return {key: True, f"{key}.why": f"the {told} is {middle:.3f}, below {params.nothing_below:g}"}
    return {key: False, f"{key}.why": f"the {told} is {middle:.3f} ({low:.3f} to {high:.3f})"}
