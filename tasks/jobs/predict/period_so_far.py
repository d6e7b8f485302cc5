"""What is known of a period while it goes on: the label of a run is of all runs of its job in its period, and some of
them have ended when the run is submitted. They are no forecast, so each figure says whether it knows them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.normalisation import normalise
from tasks.jobs.pmf import Floats
from tasks.jobs.posterior import log_shapes, posterior_of, prior_weights
from tasks.jobs.predict.features_earlier import Ints, earlier_runs
from tasks.jobs.shape_params import PosteriorParams
from tasks.jobs.shapes import ShapeSet


@dataclass(frozen=True)
class SoFar:
    """Of each run: n_known, (n,), runs of its job in its period that had ended strictly before its submission, and
    probabilities, (n, k), of the shapes given those; the prior where there are none."""

    n_known: Ints
    probabilities: Floats


@dataclass(frozen=True)
class AtStart:
    """Over the n test runs with a label before which no run of their job in the period had ended: nothing of what is
    asked for is known there. accuracy: share that is right; ceiling: the oracle's; None without such a run."""

    n: int
    accuracy: float | None
    ceiling: float | None


def known_so_far(runs: pd.DataFrame, shapes: ShapeSet, params: PosteriorParams) -> SoFar:
    """The posterior of the runs of each job in the part of the log that a run belongs to, as far as it may know them.

    runs: group_key, submitted_at, ended_at, runtime_s, median_s (seconds) and part. Counted as label_groups counts
    them, so that after the last run of a period hardly anything of its label is open. Source: equations 7 and 8."""
    earlier = earlier_runs(runs, runs)
    bins = shapes.bins.index(normalise(earlier.values("runtime_s"), earlier.values("median_s"), shapes.bins.kind))
    log_theta = log_shapes(shapes.centres, empty_bin_prior=params.empty_bin_prior)
    says = np.where((bins >= 0)[:, None], np.column_stack([log_theta.T[bins], np.ones(len(bins))]), 0.0)
    part = pd.Categorical(runs["part"]).codes
    sums = np.zeros((len(runs), says.shape[1]))
    for one in np.unique(part):
        in_part = part == one
        sums[in_part] = earlier.sums(says * in_part[earlier.order][:, None])[in_part]
    with np.errstate(divide="ignore"):  # a shape without groups, where they set the prior
        log_p = posterior_of(sums[:, :-1], prior_weights(params.prior, shapes.n_groups))
    return SoFar(np.rint(sums[:, -1]).astype(np.int64), np.exp(log_p))


def at_start(
    is_right: NDArray[np.bool_], is_start: NDArray[np.bool_], keys: pd.Series, ceiling: pd.DataFrame
) -> AtStart:
    """is_right, is_start: (n,) of test runs with a label; keys: (n,) their jobs; ceiling: hit by group_key."""
    n = int(is_start.sum())
    hits = ceiling["hit"].reindex(keys.to_numpy()[is_start])
    if not n:
        return AtStart(0, None, None)
    return AtStart(n, float(is_right[is_start].mean()), float(hits.mean()) if hits.notna().any() else None)
