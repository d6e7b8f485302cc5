"""What was found of the shapes of a source, read back from its tables: Table 2, inertia, rivals and bins by kind."""

from dataclasses import dataclass

import pandas as pd

from tasks.jobs.characterise_rows import read_shapes
from tasks.jobs.shape_params import Kind
from tasks.jobs.shapes import (
    TABLE_COLUMNS,
    InertiaCurve,
    ShapeSet,
)
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse

CURVE = "SELECT k, inertia, is_elbow FROM jobs.shape_curve WHERE source = $source AND kind = $kind ORDER BY k"
TABLE = f"""SELECT shape, {", ".join(TABLE_COLUMNS)}, min_support, data_version
    FROM jobs.shapes WHERE source = $source AND kind = $kind ORDER BY shape"""
RIVALS = """SELECT method, largest_share, n_groups FROM jobs.shape_rivals WHERE source = $source AND kind = $kind
    ORDER BY method"""
COMPARED = """SELECT n_bins, stability, log_score, n_groups FROM jobs.bin_comparisons
    WHERE source = $source AND kind = $kind ORDER BY n_bins"""


@dataclass(frozen=True)
class FoundKind:
    """One normalisation. table: Table 2, a row a shape, with min_support; rivals: share of the jobs in the largest
    cluster of other methods; bins: how well numbers of bins do."""

    shapes: ShapeSet
    table: pd.DataFrame
    curve: InertiaCurve
    rivals: pd.DataFrame
    bins: pd.DataFrame


def read_characterised(warehouse: Warehouse, source: str) -> dict[Kind, FoundKind]:
    """By kind, ratio first. Raises NotFound if the source has not been characterised."""
    found = {}
    shapes = read_shapes(warehouse, source)
    with reading(warehouse) as connection:
        for kind, one in shapes.items():
            asked = {"source": source, "kind": kind}
            table, curve, rivals, bins = (
                connection.execute(sql, asked).df() for sql in (TABLE, CURVE, RIVALS, COMPARED)
            )
            bends = curve[curve["is_elbow"]]["k"].tolist()
            points = InertiaCurve(curve["k"].tolist(), curve["inertia"].tolist(), bends[0] if bends else None)
            found[kind] = FoundKind(one, table, points, rivals, bins)
    return found


def shape_words(kind: Kind, found: FoundKind) -> str:
    """How many shapes of how many jobs there are, and where the curve of inertia bends, as one sentence."""
    k, n_jobs = len(found.table), int(found.table["n_groups"].sum())
    bend = "has no elbow" if found.curve.elbow is None else f"bends most at {found.curve.elbow}"
    least = int(found.table["min_support"].iloc[0])
    return (
        f"{k} shapes ({kind}) of {n_jobs:,} jobs with at least {least:,} runs in the history; "
        f"the curve of inertia {bend}"
    )
