"""Means over some of the values, 0 where there are none: a batch without a stressed execution must never give NaN."""

from torch import Tensor


def mean_where(values: Tensor, is_counted: Tensor) -> Tensor:
    """Mean of the values (n,) for which the mask (n,) is true, as a scalar; 0 if it is true for none."""
    counted = values[is_counted]
    return counted.sum() / max(counted.numel(), 1)
