"""Rows of an Azure table as executions with their metrics: whole columns at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tasks.nodes.columns import EXECUTIONS_SCHEMA, METRICS_SCHEMA
from tasks.nodes.landed import framed
from tasks.nodes.readers.azure_names import Named
from tasks.nodes.vetting import MICROSECONDS
from tasks.reading import Chunk, no_refusals

FACTS = (
    "execution_id", "node", "machine_type", "benchmark", "aspect", "template", "started_at", "ended_at", "duration_s",
    "status", "region", "n_metrics", "is_simulated", "n_rows", "place",
)  # fmt: skip
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Values:
    """Columns of all rows of a table, (n_rows,): started_at as datetime64[us]; runtime_s and value NaN: missing."""

    named: Named
    started_at: NDArray[np.datetime64]
    runtime_s: NDArray[np.float64]
    value: NDArray[np.float64]
    places: Ints
    is_simulated: bool


def chunk_of(values: Values, rows: Ints, heads: Ints) -> Chunk:
    """Some executions. rows: theirs, one execution after the other; heads: where in `rows` each begins.

    An execution is called node/benchmark/start: the same in every export of the study."""
    named, first = values.named, rows[heads]
    n_own = np.diff(np.append(heads, len(rows)))
    node, test = pa.array(named.node[first]), pa.array(named.test[first])
    started, runtime_s = values.started_at[first], values.runtime_s[first]
    nodes, benchmarks = named.nodes.take(node), named.benchmarks.take(test)
    ids = pc.binary_join_element_wise(nodes, benchmarks, _written(started), "/")
    places = values.places[first]
    columns: dict[str, Any] = {
        "execution_id": ids,
        "node": nodes,
        "machine_type": named.machine_types.take(node),
        "benchmark": benchmarks,
        "aspect": named.aspects.take(test),
        "template": named.templates.take(test),
        "started_at": pa.array(started),
        "ended_at": pa.array(_ends(started, runtime_s)),
        "duration_s": pa.array(runtime_s, from_pandas=True),
        "status": pa.repeat(pa.scalar("completed"), len(first)),
        "region": named.regions.take(node),
        "n_metrics": pa.array(n_own),
        "is_simulated": pa.repeat(pa.scalar(values.is_simulated), len(first)),
        "n_rows": pa.array(n_own),
        "place": pa.array(places),
    }
    execution = np.repeat(np.arange(len(first)), n_own)
    metrics: dict[str, Any] = {
        "execution_id": ids if len(first) == len(rows) else ids.take(pa.array(execution)),
        "metric": named.metrics.take(pa.array(named.metric[rows])),
        "value": pa.array(values.value[rows]),
        "unit": named.units.take(pa.array(named.unit[rows])),
        "place": pa.array(places[execution]),
    }
    schema = pa.schema([EXECUTIONS_SCHEMA.field(name) for name in FACTS])
    executions = pa.table({name: columns[name] for name in FACTS}, schema=schema)
    told = pa.table({name: metrics[name] for name in METRICS_SCHEMA.names}, schema=METRICS_SCHEMA)
    return Chunk(framed(executions), no_refusals(), {"metrics": framed(told)})


def _written(started: NDArray[np.datetime64]) -> pa.Array:
    """2023-05-01T12:34:56, with a fraction where there is one."""
    is_whole = started.astype("int64") % int(MICROSECONDS) == 0
    told = pa.array(started.astype("datetime64[s]")).cast(pa.string())
    if not is_whole.all():
        told = pc.if_else(pa.array(is_whole), told, pa.array(started).cast(pa.string()))
    return pc.replace_substring(told, " ", "T")


def _ends(started: NDArray[np.datetime64], runtime_s: NDArray[np.float64]) -> NDArray[np.datetime64]:
    is_known = ~np.isnan(runtime_s)
    microseconds = np.rint(np.where(is_known, runtime_s, 0) * MICROSECONDS).astype("int64").astype("timedelta64[us]")
    return np.where(is_known, started + microseconds, np.datetime64("NaT", "us"))
