"""The last part of the training rows, held out: in time, and with jobs that the rest does not know."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from tasks.errors import BadInput


@dataclass(frozen=True)
class Holdout:
    """is_training, is_later: (n,), never both true; a row of an unseen job before the cut is neither."""

    is_training: NDArray[np.bool_]
    is_later: NDArray[np.bool_]
    n_unseen: int


def hold_out(groups: ArrayLike, later_share: float, unseen_share: float, seed: int) -> Holdout:
    """The last later_share of the rows, and the rows before them without unseen_share of the later jobs.

    groups: (n,) the job of each row, in the order of submission. A model that learns jobs by heart gains nothing on
    the unseen ones. Raises BadInput if either part would be empty."""
    codes, keys = pd.factorize(np.asarray(groups))
    cut = len(codes) - round(len(codes) * later_share)
    is_later = np.arange(len(codes)) >= cut
    present = np.unique(codes[is_later])
    rng = np.random.default_rng(seed)
    unseen = rng.permutation(present)[: int(len(present) * unseen_share)]
    is_training = ~is_later & ~np.isin(codes, unseen)
    if not is_training.any() or not is_later.any():
        problem = f"{len(codes)} rows of {len(keys)} jobs"
        raise BadInput("training rows", problem, "enough to hold out the last part", "give more, or hold out less")
    return Holdout(is_training, is_later, len(unseen))
