"""Everything that the network is given of executions, one row each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.int8]

STRESSED, UNSTRESSED, UNKNOWN = 1, 0, -1  # labels
NO_TYPE = -1  # of an execution whose type training did not have


@dataclass(frozen=True)
class Inputs:
    """Rows are those of the history, in its order; n executions.

    columns: names of x: the m kept metrics, then `type=<name>` for each type where the network is told it.
    x: (n, f) scaled, what is missing filled in. is_own: (n, f) whether it was measured for that execution; of
    the columns of types all are True in the paper's variant and False in ours.
    types: of training; type_of: (n,) numbers of them, -1 for another. nodes: of the history; node_of: (n,).
    started_s: (n,) seconds since the epoch, in float64; where nobody says, one second after the row before.
    before, during: (n, c) node metrics before and during each execution, of about unit spread, 0 where missing; in the
    paper's variant `during` is the difference of the two, inverted, and `before` has no columns. c may be 0.
    evidence: (n, v) what plain detectors say, asinh of their scores, 0 where they say nothing; v may be 0.
    performance: (n,) natural logarithm of the execution's score, 1 being the reference; NaN where it has none.
    labels: (n,) 1 stressed, 0 not, -1 nobody says.
    is_directed: (f,) false where neither more nor less is better, so that x is oriented by a guess; None: all are."""

    columns: tuple[str, ...]
    x: Floats32
    is_own: Bools
    types: tuple[str, ...]
    type_of: Ints
    nodes: tuple[str, ...]
    node_of: Ints
    started_s: Floats
    before: Floats32
    during: Floats32
    evidence: Floats32
    performance: Floats32
    labels: Labels
    is_directed: Bools | None = None

    def __len__(self) -> int:
        """Executions."""
        return len(self.x)

    @property
    def has_direction(self) -> Bools:
        """Which columns tell better from worse, (f,)."""
        return np.ones(len(self.columns), dtype=bool) if self.is_directed is None else self.is_directed
