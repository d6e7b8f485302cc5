"""SHAP values of a LightGBM model: what each feature adds to each raw score of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.distribution import Floats, Rows

FEW = 100  # runs up to which one thread is faster than starting more: 8 ms instead of 18 ms of CPU for one
NAMELESS = "Column_"  # what LightGBM calls the features of a model that was trained without names


class Booster(Protocol):
    """What is asked of a lightgbm.Booster."""

    def predict(self, data: Any, *, pred_contrib: bool, num_threads: int) -> Any:
        """Contributions, (n, (p + 1) * m) for m scores of a run, the last of each p + 1 being the base.

        num_threads: 0 for as many as LightGBM likes."""
        ...

    def feature_name(self) -> list[str]:
        """Names of the p features, in their order."""
        ...


@dataclass(frozen=True)
class Contributions:
    """values: (n, p, k), what each of p features adds to each of k raw scores; base: (n, k), the score without any.

    base + values summed over features = raw scores (n, k). A class that the model never saw has base -inf and adds 0.
    The k scores are those of k shapes (log-probabilities up to a constant), or one for a regression or log-odds."""

    values: Floats
    base: Floats
    features: tuple[str, ...]

    @property
    def k(self) -> int:
        """Number of scores."""
        return int(self.values.shape[2])

    @property
    def knows(self) -> NDArray[np.bool_]:
        """Whether the model saw each class, (k,)."""
        return np.asarray(np.isfinite(self.base).all(axis=0), dtype=np.bool_)

    @property
    def raw(self) -> Floats:
        """Raw scores of the model, (n, k)."""
        total: Floats = self.base + self.values.sum(axis=1)
        return total

    @property
    def single(self) -> Floats:
        """values where there is one score, (n, p). Raises ValueError for several: say which is meant by `towards`."""
        if self.k != 1:
            raise ValueError(f"contributions: {self.k} scores; expected one; use odds.towards first")
        return self.to_score(0)

    def to_score(self, which: int) -> Floats:
        """What each feature adds to one of the scores, (n, p)."""
        added: Floats = self.values[:, :, which]
        return added

    def rows(self, which: Rows) -> "Contributions":
        """The same for some of the runs."""
        return Contributions(self.values[which], self.base[which], self.features)


def contributions(
    booster: Booster, frame: pd.DataFrame, k: int, *, classes: Sequence[int] | None = None
) -> Contributions:
    """What each feature adds to the raw scores of each run, exactly additive.

    frame: (n, p) float64, NaN for unknown; columns in any order. k: number of shapes, 1 for a regression. classes: of
    each score of a multiclass model, or of both outcomes of a binary one, its shape; needed where the model saw fewer
    than k. The log-odds v of a binary model are split into -v / 2 and v / 2, so that softmax gives its probabilities.
    Raises BadInput if the frame lacks a feature, ValueError if classes do not fit. Source: Lundberg et al. 2020."""
    names = booster.feature_name()
    columns = _columns(frame, names)
    if not len(columns):
        return Contributions(np.zeros((0, len(names), k)), np.zeros((0, k)), tuple(map(str, frame.columns)))
    threads = 1 if len(columns) <= FEW else 0
    flat = np.asarray(booster.predict(columns, pred_contrib=True, num_threads=threads), dtype=np.float64)
    parts = flat.reshape(len(columns), -1, len(names) + 1).transpose(0, 2, 1)  # (n, p + 1, m)
    if k > 1 and parts.shape[2] == 1:
        parts = np.concatenate([-parts / 2, parts / 2], axis=2)
    parts = _placed(parts, k, classes)  # (n, p + 1, k)
    used = names if _is_named(frame, names) else list(map(str, frame.columns))
    return Contributions(parts[:, :-1], parts[:, -1], tuple(used))


def _is_named(frame: pd.DataFrame, names: list[str]) -> bool:
    return not (names == [f"{NAMELESS}{place}" for place in range(len(names))] and frame.shape[1] == len(names))


def _columns(frame: pd.DataFrame, names: list[str]) -> Floats:
    """Values in the order of the model's features, (n, p)."""
    if not _is_named(frame, names):
        return frame.to_numpy(dtype=np.float64)
    missing = [name for name in names if name not in frame]
    if missing:
        shown = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise BadInput(
            "features",
            f"{len(missing)} of the model's {len(names)} are missing ({shown})",
            "all of them, NaN where unknown",
            "make the features with the columns of the model",
        )
    return frame[names].to_numpy(dtype=np.float64)


def _placed(parts: Floats, k: int, classes: Sequence[int] | None) -> Floats:
    """Scores of the classes that the model knows put in their places among k."""
    m = parts.shape[2]
    places = list(range(m)) if classes is None else list(classes)
    if len(places) != m or len(set(places)) != m or not all(0 <= place < k for place in places):
        raise ValueError(f"classes: {places} for a model of {m} scores; expected {m} different ones from 0 to {k - 1}")
    if classes is None and m != k:
        raise ValueError(f"model: {m} scores for {k} shapes; expected `classes` to say which shapes they are")
    placed = np.zeros((*parts.shape[:2], k))
    placed[:, -1] = -np.inf
    placed[:, :, places] = parts
    return placed
