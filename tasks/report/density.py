"""Pairs of positive values on logarithmic axes: each by itself, or as hexagons counted in SQL when there are many."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from numpy.typing import NDArray

from tasks.report.style import BLUE, DENSITY, INK
from tasks.warehouse.connection import Connection

CELLS = 42  # hexagons along the longer side
LEAST_DECADES = 0.6
MARGIN = 0.06  # of the span
LABEL_GAP = 0.012  # of the height, between a line and its name
# Two staggered lattices; a point belongs to the nearer centre (the rule of matplotlib's hexbin).
HEXAGONS = """
WITH points AS ({points}),
scaled AS (
    SELECT log10(x) / $width AS u, log10(y) / ($height * sqrt(3)) AS v FROM points WHERE x > 0 AND y > 0
),
nearest AS (
    SELECT u, v,
        pow(u - round(u), 2) + 3 * pow(v - round(v), 2)
            < pow(u - floor(u) - 0.5, 2) + 3 * pow(v - floor(v) - 0.5, 2) AS is_even
    FROM scaled
),
final AS (
    SELECT
        CASE WHEN is_even THEN round(u) ELSE floor(u) + 0.5 END * $width AS log_x,
        CASE WHEN is_even THEN round(v) ELSE floor(v) + 0.5 END * $height * sqrt(3) AS log_y,
        count(*) AS n
    FROM nearest
    GROUP BY ALL
)
SELECT * FROM final ORDER BY log_x, log_y
"""


@dataclass(frozen=True)
class Density:
    """Points in logarithmic coordinates (base 10), or the hexagons that count them.

    log_x, log_y, n: (n_marks,), n is 1 for a point; hexagon: width and height in decades, None for points;
    n_points: how many there are in all; x_limits, y_limits: that hold them, not logarithmic."""

    log_x: NDArray[np.float64]
    log_y: NDArray[np.float64]
    n: NDArray[np.int64]
    hexagon: tuple[float, float] | None
    n_points: int
    x_limits: tuple[float, float]
    y_limits: tuple[float, float]


def fetch_density(connection: Connection, points: str, values: Mapping[str, Any], max_points: int) -> Density | None:
    """Density of the rows of a query with columns x and y; those that are not positive are left out.

    None if nothing is left. No more than max_points rows, or the counted hexagons, leave the database."""
    extent = connection.execute(
        f"SELECT count(*), min(x), max(x), min(y), max(y) FROM ({points}) WHERE x > 0 AND y > 0", dict(values)
    ).fetchone()
    if not extent or not extent[0]:
        return None
    n_points, *ends = extent
    x_limits, y_limits = _limits(*ends[:2]), _limits(*ends[2:])
    hexagon = None
    if n_points <= max_points:
        marks = connection.execute(
            f"SELECT log10(x) AS log_x, log10(y) AS log_y, 1 AS n FROM ({points}) WHERE x > 0 AND y > 0 ORDER BY 1, 2",
            dict(values),
        ).df()
    else:
        hexagon = (_decades(x_limits) / CELLS, _decades(y_limits) / CELLS)
        marks = connection.execute(
            HEXAGONS.format(points=points), {**values, "width": hexagon[0], "height": hexagon[1]}
        ).df()
    return Density(
        log_x=marks["log_x"].to_numpy(dtype=np.float64),
        log_y=marks["log_y"].to_numpy(dtype=np.float64),
        n=marks["n"].to_numpy(dtype=np.int64),
        hexagon=hexagon,
        n_points=int(n_points),
        x_limits=x_limits,
        y_limits=y_limits,
    )


def _limits(low: float, high: float) -> tuple[float, float]:
    """Limits of a logarithmic axis with a margin, at least LEAST_DECADES wide."""
    span = math.log10(high / low)
    pad = 10 ** (max(LEAST_DECADES - span, 0) / 2 + MARGIN * span)
    return low / pad, high * pad


def _decades(limits: tuple[float, float]) -> float:
    return math.log10(limits[1] / limits[0])


def draw_density(axes: Axes, density: Density) -> None:
    """Dots, or hexagons from light (one) to dark (many), six steps in the logarithm of the count."""
    x, y = 10.0**density.log_x, 10.0**density.log_y
    if density.hexagon is None:
        axes.scatter(x, y, s=9, color=BLUE, alpha=0.6, linewidths=0)
        return
    step = np.log(density.n) / max(np.log(density.n.max()), 1e-12) * (len(DENSITY) - 1)
    corners = np.array([[0.5, -0.5], [0.5, 0.5], [0, 1], [-0.5, 0.5], [-0.5, -0.5], [0, -1]])
    shape = corners * [density.hexagon[0], density.hexagon[1] / math.sqrt(3)]
    centres = np.column_stack([density.log_x, density.log_y])
    polygons = 10.0 ** (centres[:, None, :] + shape[None, :, :])  # (n_hexagons, 6, 2)
    colours = [DENSITY[round(value)] for value in step]
    axes.add_collection(PolyCollection(list(polygons), facecolors=colours, edgecolors="none", antialiaseds=False))


def draw_diagonal(axes: Axes, label: str, colour: str, line: str, *, factor: float = 1) -> None:
    """The line y = factor x with its name on it, at the place where it enters the plot from below."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    axes.plot([left, right], [factor * left, factor * right], color=colour, linestyle=line, linewidth=1.2)
    enters, leaves = max(left, bottom / factor), min(right, top / factor)
    axes.set(xlim=(left, right), ylim=(bottom, top))
    if enters >= leaves:
        return
    at = enters * (leaves / enters) ** 0.02
    step = (top / bottom) ** LABEL_GAP
    axes.text(
        at,
        factor * at * step,
        label,
        rotation=math.degrees(math.atan(factor * step)),  # the direction of the line in data, there
        rotation_mode="anchor",
        transform_rotates_text=True,
        color=INK,
    )
