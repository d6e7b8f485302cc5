"""The tables of a characterisation: written all at once for a source, and read back."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from tasks.errors import NotFound
from tasks.jobs.characterise_shapes import FoundShapes
from tasks.jobs.group_counts import PARTS, GroupCounts
from tasks.jobs.pmf import Bins, Floats
from tasks.jobs.posterior import hard_labels
from tasks.jobs.shape_params import Kind
from tasks.jobs.shapes import ShapeSet
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse

TABLES = ("shapes", "group_shapes", "shape_curve", "shape_rivals", "bin_comparisons")


@dataclass(frozen=True)
class KindRows:
    """What one kind has to say. table: Table 2, in the order of the shapes; posterior: (n_groups, N_PARTS, K)."""

    found: FoundShapes
    table: pd.DataFrame
    posterior: Floats
    comparison: pd.DataFrame


def write_rows(
    connection: Connection,
    source: str,
    counts: GroupCounts,
    kinds: Mapping[Kind, KindRows],
    *,
    data_version: str,
    parameters: str,
    label_support: int,
) -> None:
    """Replace all rows of a source in TABLES; the caller opens the transaction."""
    for name in TABLES:
        connection.execute(f"DELETE FROM jobs.{name} WHERE source = $source", {"source": source})
    for kind, one in kinds.items():
        both = {"source": source, "kind": kind}
        shapes = _shapes(one).assign(**both, data_version=data_version, parameters=parameters)
        _insert(connection, "shapes", pa.Table.from_pandas(shapes, preserve_index=False))
        _insert(connection, "group_shapes", _group_shapes(counts, kind, one, label_support), both)
        curve = one.found.curve
        points = {"k": curve.ks, "inertia": curve.inertias, "is_elbow": [k == curve.elbow for k in curve.ks]}
        _insert(connection, "shape_curve", pa.table(points), both)
        rivals = one.found.rivals
        table = {
            "method": [rival.method for rival in rivals],
            "largest_share": [rival.largest_share for rival in rivals],
            "n_groups": [int((rival.labels >= 0).sum()) for rival in rivals],
        }
        _insert(connection, "shape_rivals", pa.table(table), both)
        _insert(connection, "bin_comparisons", pa.Table.from_pandas(one.comparison, preserve_index=False), both)


def read_shapes(warehouse: Warehouse, source: str) -> dict[Kind, ShapeSet]:
    """The shapes of a source by kind, as they were written. Raises NotFound if it has not been characterised."""
    with reading(warehouse) as connection:
        rows = connection.execute(
            "SELECT * FROM jobs.shapes WHERE source = $source ORDER BY kind DESC, shape", {"source": source}
        ).df()
    if rows.empty:
        raise NotFound(f"source {source!r} has no shapes yet; make them with 'whorl jobs characterise'")
    return {kind: _shape_set(kind, rows[rows["kind"] == kind]) for kind in rows["kind"].unique()}


def _shape_set(kind: Kind, rows: pd.DataFrame) -> ShapeSet:
    one = rows.iloc[0]
    bins = Bins(kind=kind, low=one["bins_low"], high=one["bins_high"], n_bins=int(one["n_bins"]))
    n_groups = rows["n_groups"].to_numpy(dtype=np.int64)
    centres = np.stack([np.asarray(centre, dtype=float) for centre in rows["centre"]])
    return ShapeSet(bins, centres, n_groups / n_groups.sum(), n_groups, float(one["inertia"]))


def _shapes(one: KindRows) -> pd.DataFrame:
    shapes, bins = one.found.fit.shapes, one.found.fit.shapes.bins
    return one.table.assign(
        shape=range(len(one.table)),
        centre=list(shapes.centres),
        bins_low=bins.low,
        bins_high=bins.high,
        n_bins=bins.n_bins,
        inertia=shapes.inertia,
        min_support=one.found.params.min_support,
    )


def _group_shapes(counts: GroupCounts, kind: Kind, one: KindRows, label_support: int) -> pa.Table:
    """A row for each job and part with runs, by job."""
    n_runs = np.stack([counts.support(kind, part) for part in range(len(PARTS))], axis=1)  # (n_groups, N_PARTS)
    group, part = np.nonzero(n_runs)
    posterior, n = one.posterior[group, part], n_runs[group, part]
    medians = counts.medians_s[group]
    k = posterior.shape[1]
    offsets = pa.array(np.arange(0, posterior.size + 1, k), pa.int32())
    return pa.table(
        {
            "group_key": pa.array(counts.keys).take(pa.array(group)),
            "part": pa.array(np.array(PARTS, dtype=object)[part], pa.string()),
            "n_runs": n,
            "median_s": pa.array(medians, from_pandas=True),
            "median_source": pa.array(np.where(np.isnan(medians), "before", "history"), pa.string()),
            "label": pa.array(hard_labels(posterior), pa.int32(), mask=n < label_support),
            "posterior": pa.ListArray.from_arrays(offsets, pa.array(posterior.ravel())),
        }
    )


def _insert(connection: Connection, name: str, rows: pa.Table, constants: Mapping[str, str] | None = None) -> None:
    for column, value in (constants or {}).items():
        rows = rows.append_column(column, pa.array([value] * rows.num_rows, pa.string()))
    connection.register("new_rows", rows)
    connection.execute(f"INSERT INTO jobs.{name} BY NAME SELECT * FROM new_rows").fetchall()
    connection.unregister("new_rows")
