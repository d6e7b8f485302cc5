"""What earlier runs of a job say about its shape: the posterior of eq. 1 to 8, after each run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import softmax

from tasks.jobs.normalisation import (
    historic_medians,
    normalise,
)
from tasks.jobs.posterior import log_shapes
from tasks.jobs.predict.features_earlier import EarlierRuns, Floats
from tasks.jobs.shape_params import NormalisationParams
from tasks.jobs.shapes import ShapeSet


@dataclass(frozen=True)
class HistoricShapes:
    """Shapes of period D1, and what runs are compared with them by.

    medians_s: historic median of each group of D1, in seconds; a group without one takes the median of its runs that
    had ended before, as historic_medians has it. Shapes and medians of D1 are no secret from D2 on; rows of D1 would
    see their own future in them. empty_bin_prior: as log_shapes takes it."""

    shapes: ShapeSet
    medians_s: Mapping[str, float]
    empty_bin_prior: float
    normalisation: NormalisationParams = field(default_factory=NormalisationParams)


def medians_of_past(earlier: EarlierRuns, medians_s: Mapping[str, float], normalisation: NormalisationParams) -> Floats:
    """The median that each earlier run is compared with, of D1 or of the runs before it, in seconds: (n_past,)."""
    past = pd.DataFrame(
        {
            "group_key": earlier.past_codes,
            "submitted_at": earlier.past["submitted_at"].to_numpy()[earlier.order],
            "ended_at": earlier.known_at,
            "runtime_s": earlier.values("runtime_s"),
        }
    )
    medians = historic_medians(past, pd.Series(earlier.by_job(medians_s)), normalisation)
    return medians["median_s"].to_numpy(dtype=float)


def shape_features(
    earlier: EarlierRuns, historic: HistoricShapes, medians_s: Floats, *, evidence_runs: int, prefix: str = "shape"
) -> dict[str, Floats]:
    """<prefix>_<kind>_<k>: the probability of each shape, given at most the last `evidence_runs` earlier runs.

    medians_s: (n_past,) as medians_of_past has them. All shapes are alike before the first run; missing for a row
    whose job has no earlier run with a median."""
    shapes = historic.shapes
    bins = shapes.bins.index(normalise(earlier.values("runtime_s"), medians_s, shapes.bins.kind))
    log_theta = log_shapes(shapes.centres, empty_bin_prior=historic.empty_bin_prior)
    # what each run says (eq. 2), and that it says something; nothing without a median
    evidence = np.where((bins >= 0)[:, None], np.column_stack([log_theta.T[bins], np.ones(len(bins))]), 0.0)
    sums = earlier.sums(evidence, window=evidence_runs)
    posterior = np.where(sums[:, -1:] > 0, softmax(sums[:, :-1], axis=1), np.nan)  # (n_rows, k)
    return {f"{prefix}_{shapes.bins.kind}_{k}": posterior[:, k] for k in range(posterior.shape[1])}
