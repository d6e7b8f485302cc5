"""Node metrics on one scale, by what training executions taught.

    z = (asinh(v / m) - mean) / deviation        ours; m: median magnitude of what is not 0, so bytes and percents agree
    z = (d - min) / (max - min)                  the paper's, of d = 1 / (during + 0.001) - 1 / (before + 0.001)

Ours is then drawn in beyond 4 deviations, as metrics of benchmarks are. Source: Perona, III-C, and its code."""

import numpy as np
from pydantic import model_validator

from tasks.nodes.graph.inputs import Floats, Floats32
from tasks.nodes.graph.node_metrics import NodeMetrics
from tasks.nodes.model.variants import Variant
from tasks.nodes.preprocess.scaling import softly_clipped
from tasks.params import Params

INVERSE_FLOOR = 0.001
CLIP_FROM, CLIP_AT = 4.0, 10.0  # in deviations
TINY = 1e-9  # deviations below this share of the largest magnitude are rounding


class NodeMetricScales(Params):
    """columns: those kept, `<metric>/p<percentile>`. magnitude, centre, spread: of each, (c,); magnitude is 1 in the
    paper's variant."""

    variant: Variant
    columns: tuple[str, ...] = ()
    magnitude: tuple[float, ...] = ()
    centre: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()

    @model_validator(mode="after")
    def _agrees(self) -> "NodeMetricScales":
        lengths = {len(one) for one in (self.columns, self.magnitude, self.centre, self.spread)}
        if len(lengths) > 1:
            raise ValueError(f"scales of different lengths, {sorted(lengths)}; expected one number for each column")
        return self

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that the columns are percentiles of, ordered."""
        return tuple(sorted({column.rpartition("/")[0] for column in self.columns}))


def learn_scales(told: NodeMetrics, variant: Variant) -> NodeMetricScales:
    """The scales of node metrics from training executions; a column that does not vary in training is dropped."""
    if variant == "paper":
        values = inverse_difference(told.before, told.during)
        magnitude = np.ones(values.shape[1])
    else:
        both = np.vstack([told.before, told.during])
        magnitude = _magnitudes(both)
        values = np.arcsinh(both / magnitude)
    kept = np.flatnonzero(~np.isnan(values).all(axis=0))
    if not len(kept):
        return NodeMetricScales(variant=variant)
    values = values[:, kept]
    if variant == "paper":
        centre, spread = np.nanmin(values, axis=0), np.nanmax(values, axis=0) - np.nanmin(values, axis=0)
    else:
        centre, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    varies = spread > TINY * np.nanmax(np.abs(values), axis=0)
    return NodeMetricScales(
        variant=variant,
        columns=tuple(told.columns[at] for at in kept[varies]),
        magnitude=tuple(magnitude[kept[varies]].tolist()),
        centre=tuple(centre[varies].tolist()),
        spread=tuple(spread[varies].tolist()),
    )


def scale_node_metrics(told: NodeMetrics, scales: NodeMetricScales) -> tuple[Floats32, Floats32]:
    """Before and during each execution, (n, c) each, 0 where nothing was sampled; no column is missing from `told`.

    In the paper's variant the first is (n, 0) and the second the scaled difference, that of no change where nothing
    was sampled."""
    at = np.array([told.columns.index(column) for column in scales.columns], dtype=np.int64)
    before, during = told.before[:, at], told.during[:, at]
    centre, spread = np.asarray(scales.centre), np.asarray(scales.spread)
    if scales.variant == "paper":
        change = np.nan_to_num(inverse_difference(before, during), nan=0.0)
        return np.empty((len(change), 0), dtype=np.float32), ((change - centre) / spread).astype(np.float32)
    scaled_before, scaled_during = (
        softly_clipped((np.arcsinh(values / np.asarray(scales.magnitude)) - centre) / spread, CLIP_FROM, CLIP_AT)
        for values in (before, during)
    )
    return (
        np.nan_to_num(scaled_before, nan=0.0).astype(np.float32),
        np.nan_to_num(scaled_during, nan=0.0).astype(np.float32),
    )


def inverse_difference(before: Floats, during: Floats) -> Floats:
    """1 / (during + 0.001) - 1 / (before + 0.001), as the paper's code has it; NaN where either is.

    Values below 0 count as 0. Both of one shape."""
    earlier, later = (1 / (np.maximum(values, 0) + INVERSE_FLOOR) for values in (before, during))
    return np.asarray(later - earlier)


def _magnitudes(values: Floats) -> Floats:
    """Median magnitude of the values of each column that are not 0, 1 where there are none. values: (n, c); (c,)."""
    found = np.ones(values.shape[1])
    for at, column in enumerate(values.T):
        own = np.abs(column[(column != 0) & ~np.isnan(column)])
        if len(own):
            found[at] = np.median(own)
    return found
