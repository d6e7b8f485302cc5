"""Lines that lead from groups of dots to their names: in rows so that no line passes another group on its way."""

import numpy as np
from numpy.typing import NDArray

CLEAR = 0.06  # of the panel: a line this near to another group's middle seems to be that group's
MOST_PASSES = 20

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def rows_of_names(across: Floats, up: Floats) -> Ints:
    """The groups in the order of their rows, from the top: (n,).

    across, up: (n,) middles of the groups, as shares of the panel's width and height, 1 being right and top, where the
    names stand. By height first; neighbours change places as long as that keeps more lines clear of other groups."""
    order = np.lexsort((-across, -up)).astype(np.int64)
    least = _met(order, across, up)
    for _ in range(MOST_PASSES):
        before = least
        for at in range(len(order) - 1):
            other = order.copy()
            other[[at, at + 1]] = other[[at + 1, at]]
            met = _met(other, across, up)
            if met < least:
                order, least = other, met
        if least == before:
            break
    return order


def _met(order: Ints, across: Floats, up: Floats) -> tuple[int, float]:
    """How many groups lie too near to the line of another one, and how far lines climb and fall in all."""
    x, y = across[order], up[order]
    levels = 1 - (np.arange(len(order)) + 0.5) / len(order)
    way = (x[None, :] - x[:, None]) / np.maximum(1 - x[:, None], 1e-9)  # (line, group): where along the line
    height = y[:, None] + way * (levels - y)[:, None]
    is_passed = (way > 0) & (way < 1) & (np.abs(height - y[None, :]) < CLEAR)
    return int(is_passed.sum()), float(np.abs(levels - y).sum())
