"""What lies behind one number of a plain detector: how far an execution deviates, and in few metrics or in many.

Both are in robust deviations from what the same node did before (zscore.py): of what the benchmark measured, positive
where it is worse, and of what the node itself did meanwhile, positive where it is more."""

from dataclasses import dataclass

import numpy as np

from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.detectors.spreads import Normal, learn_normal
from tasks.nodes.detectors.zscore import z_scores
from tasks.nodes.perona.inputs import node_metrics_of, sampled_metrics
from tasks.nodes.preprocess.fitting import durations
from tasks.nodes.type_tables import Floats, TypeTable

LARGEST = 5
COLUMNS = (*(f"largest_{place + 1}" for place in range(LARGEST)), "least", "mean", "median", "rms")


@dataclass(frozen=True)
class Deviations:
    """own: of the metrics of each table, (n, m) in the order of the tables. of_node: of the node's own metrics while an
    execution ran, (n_executions, c), None where these do not count. NaN where not measured; cut at `largest`.

    n_executions: of the history. rows: of each table in it."""

    own: tuple[Floats, ...]
    of_node: Floats | None
    rows: tuple[np.ndarray, ...]
    n_executions: int


def deviations_of(case: Case, params: DetectorParams, *, node_metrics: bool) -> Deviations:
    """How far executions deviate from the normal training executions of their node and type."""
    during = _node_metrics(case) if node_metrics else None
    of_node = None if during is None else np.full(during.shape, np.nan)
    own = []
    for table, normal in zip(case.tables.tables, case.normals, strict=True):
        own.append(_cut(table, normal, params))
        if during is not None and of_node is not None:
            of_node[table.executions] = _z(case, _table_of(table, during[table.executions]), params)
    rows = tuple(table.executions for table in case.tables.tables)
    return Deviations(tuple(own), of_node, rows, case.tables.n_executions)


def deviations_told(deviations: Deviations) -> Floats:
    """COLUMNS of an execution's own metrics, then of its node's: (n_executions, 18), NaN without any."""
    found = np.full((deviations.n_executions, 2 * len(COLUMNS)), np.nan)
    for rows, z in zip(deviations.rows, deviations.own, strict=True):
        found[rows, : len(COLUMNS)] = summary(z)
    if deviations.of_node is not None:
        found[:, len(COLUMNS) :] = summary(deviations.of_node)
    return found


def summary(z: Floats) -> Floats:
    """COLUMNS of the deviations of each row: (n, m) to (n, 9); NaN where there are too few."""
    found = np.full((len(z), len(COLUMNS)), np.nan)
    is_told = ~np.isnan(z).all(axis=1)
    told = z[is_told]
    if not told.size:
        return found
    falling = -np.sort(-told, axis=1)  # NaN last
    count = min(LARGEST, told.shape[1])
    found[is_told, :count] = falling[:, :count]
    rms = np.sqrt(np.nanmean(told**2, axis=1))
    about = (np.nanmin(told, axis=1), np.nanmean(told, axis=1), np.nanmedian(told, axis=1), rms)
    found[np.ix_(is_told, np.arange(LARGEST, len(COLUMNS)))] = np.column_stack(about)
    return found


def _z(case: Case, table: TypeTable, params: DetectorParams) -> Floats:
    if not table.natural.shape[1]:
        return np.empty(table.natural.shape)
    normal = learn_normal(table.natural, table.nodes, case.normal_rows(table), len(case.tables.nodes))
    return _cut(table, normal, params)


def _cut(table: TypeTable, normal: Normal, params: DetectorParams) -> Floats:
    return np.asarray(np.clip(z_scores(table, normal, params), -params.largest, params.largest))


def _node_metrics(case: Case) -> Floats:
    """What each execution's node did while it ran: (n_executions, c), NaN for executions in no table; c is 0 where
    nothing was sampled."""
    telemetry, lasted_s = case.history.telemetry, durations(case.history.executions)
    metrics = sampled_metrics(telemetry)
    is_asked = np.zeros(case.tables.n_executions, dtype=bool)
    for table in case.tables.tables:
        is_asked[table.executions] = True
    if not is_asked.all():  # of training, a part is asked about at a time
        telemetry = telemetry[is_asked[telemetry["execution"].to_numpy(dtype=np.int64)]]
    return node_metrics_of(telemetry, lasted_s, metrics).during


def _table_of(table: TypeTable, values: Floats) -> TypeTable:
    """The node's own metrics as a table, of which more counts as worse."""
    count = values.shape[1]
    names = tuple(str(place) for place in range(count))
    return TypeTable(
        table.name, table.aspect, table.executions, table.nodes, names, ("",) * count,
        natural=values, orientation=np.full(count, -1.0), scaled=values,
    )  # fmt: skip
