"""Which metrics say so: how far each lies from what the neighbourhood of an execution lets expect.

    deviation = (x - expected) / usual size of that difference

x is oriented, so what is below 0 is worse than expected. Expected is what the fingerprint that was inferred from the
predecessors decodes to; for the first executions of a node, the middle of its type. The usual size is the robust
deviation of the difference over calm training executions: a metric that always scatters is no reason."""

import numpy as np
import pandas as pd

from tasks.nodes.fingerprint.asking import targets_of
from tasks.nodes.fingerprint.fingerprint_params import AskingParams
from tasks.nodes.fingerprint.judging import is_metric
from tasks.nodes.group_medians import robust_deviation
from tasks.nodes.perona.inputs import Bools, Floats, Inputs, Ints
from tasks.nodes.perona.network import PeronaNetwork
from tasks.params import Params

COLUMNS = ["execution", "place", "metric", "deviation", "measured", "expected", "is_beside_others"]


class Usual(Params):
    """What training taught of each column of x: its middle, and the usual differences from what the neighbourhood lets
    expect (beside) and from the middle (alone). Frozen with the model."""

    columns: tuple[str, ...]
    centre: tuple[float, ...]
    beside: tuple[float, ...]
    alone: tuple[float, ...]


def learn_usual(
    inputs: Inputs, network: PeronaNetwork, predecessors: Ints, is_learned: Bools, params: AskingParams
) -> Usual:
    """The usual differences over some executions. predecessors: (n, p), of the verdicts. is_learned: (n,), calm ones.

    Where a difference was never seen, or never differed, the one from the middle stands for it, and 1 for that."""
    rows = np.flatnonzero(is_learned)
    x = np.where(inputs.is_own[rows] & is_metric(inputs), inputs.x[rows], np.nan).astype(np.float64)
    expected, is_inferred = _expected(inputs, network, rows, predecessors, params)
    alone = _or_else(robust_deviation(x), 1.0)
    beside = _or_else(robust_deviation((x - expected)[is_inferred]), alone)
    centre = _or_else(pd.DataFrame(x).median().to_numpy(dtype=np.float64), 0.0, least=-np.inf)
    return Usual(
        columns=inputs.columns,
        centre=tuple(centre.tolist()),
        beside=tuple(beside.tolist()),
        alone=tuple(alone.tolist()),
    )


def reasons_of(
    inputs: Inputs, network: PeronaNetwork, rows: Ints, predecessors: Ints, usual: Usual, params: AskingParams
) -> pd.DataFrame:
    """The metrics that are worse than expected, the worst first: one row an execution and metric.

    rows: (k,) executions that reasons are asked for. predecessors: (n, p), of the verdicts. Returns execution (row of
    the inputs), place (from 1), metric, deviation (negative), measured and expected (on the scale of x) and
    is_beside_others (False: expected is the middle of the type). Metrics of which neither more nor less is better are
    never named. An execution of which no metric is params.least_deviation worse has no row: no metric alone says so."""
    beside, is_inferred = _expected(inputs, network, rows, predecessors, params)
    expected = np.where(is_inferred[:, None], beside, np.array(usual.centre))
    size = np.where(is_inferred[:, None], np.array(usual.beside), np.array(usual.alone))
    is_told = inputs.is_own[rows] & is_metric(inputs) & inputs.has_direction
    deviation = np.where(is_told, (inputs.x[rows] - expected) / size, np.nan)  # (k, f)
    order = np.argsort(deviation, axis=1, kind="stable")[:, : params.most_reasons]  # NaN last
    worst = np.take_along_axis(deviation, order, axis=1)
    row, place = np.nonzero((worst <= -params.least_deviation) & (worst < 0))
    column = order[row, place]
    told = {
        "execution": np.asarray(rows, dtype=np.int64)[row],
        "place": place + 1,
        "metric": np.array(inputs.columns, dtype=object)[column],
        "deviation": worst[row, place],
        "measured": inputs.x[rows][row, column].astype(np.float64),
        "expected": expected[row, column],
        "is_beside_others": is_inferred[row],
    }
    return pd.DataFrame(told)[COLUMNS].astype({"metric": "str"})


def _expected(
    inputs: Inputs, network: PeronaNetwork, rows: Ints, predecessors: Ints, params: AskingParams
) -> tuple[Floats, Bools]:
    """What each execution's neighbourhood lets expect, (k, f), and whether it has one, (k,)."""
    found = list(targets_of(inputs, network, rows, predecessors[rows], params.graphs_at_once))
    if not found:
        return np.empty((0, len(inputs.columns))), np.empty(0, dtype=bool)
    return np.concatenate([one.expected for one in found]), np.concatenate([one.is_inferred for one in found])


def _or_else(values: Floats, other: Floats | float, *, least: float = 0.0) -> Floats:
    """The values; the others where there is none, or none above `least`. (m,)"""
    return np.asarray(np.where(np.isfinite(values) & (values > least), values, other), dtype=np.float64)
