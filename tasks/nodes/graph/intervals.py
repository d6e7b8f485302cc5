"""The time between two executions, as numbers between 0 and 1.

    g(T) = 2^(-ln(1 + Δt / T))

for each time constant T: 1 for no time at all, and falling ever more slowly. Whole days count, which the published
code of the paper drops. Source: Perona, III-C."""

from collections.abc import Sequence

import numpy as np

from tasks.nodes.graph.inputs import Floats


def encode_intervals(elapsed_s: Floats, scales_s: Sequence[float]) -> Floats:
    """g of each interval at each scale: (…, len(scales_s)). elapsed_s: (…), seconds; negative ones count as 0."""
    elapsed = np.maximum(np.asarray(elapsed_s, dtype=np.float64), 0.0)[..., None]
    return np.asarray(np.exp2(-np.log1p(elapsed / np.asarray(scales_s, dtype=np.float64))))
