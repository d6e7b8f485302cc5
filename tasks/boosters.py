"""LightGBM models of one number: trained deterministically, kept as text."""

import math
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput

ONE_THREAD = {"num_threads": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1}
STDERR = 2
OWN_LINE = b"[LightGBM]"
# Where each tree begins: LightGBM goes by it to read trees in threads, in which an error ends the whole process.
SIZES = re.compile(r"^tree_sizes=(.*)\n", re.MULTILINE)
END = "\nend of parameters\n"  # LightGBM reads on beyond a text that ends before it, and may crash
Floats = NDArray[np.float64]
_one_at_a_time = threading.Lock()


def lightgbm_alone() -> Any:
    """The module lightgbm without its classes for scikit-learn, which nobody here uses: importing it takes a second."""
    is_first = not {"lightgbm", "sklearn"} & sys.modules.keys()
    if is_first:
        sys.modules["sklearn"] = None  # type: ignore[assignment]
    try:
        import lightgbm
    finally:
        if is_first:
            del sys.modules["sklearn"]
    return lightgbm


def train_booster(
    features: pd.DataFrame,
    target: Floats,
    params: Mapping[str, Any],
    n_rounds: int,
    seed: int,
    *,
    weights: Floats | None = None,
) -> Any:
    """A lightgbm.Booster; features: (n, p), NaN is a value of its own; target, weights: (n,). One thread, seeded.

    Raises BadInput without a row."""
    return train_boosters(features, target, [params], n_rounds, seed, weights=weights)[0]


def train_boosters(
    features: pd.DataFrame,
    target: Floats,
    each: Sequence[Mapping[str, Any]],
    n_rounds: int,
    seed: int,
    *,
    weights: Floats | None = None,
) -> list[Any]:
    """A booster for each of these parameters, as train_booster; they differ in no way of making bins, made once."""
    lightgbm = lightgbm_alone()
    if not len(features):
        raise BadInput("training rows", "none", "at least one run that has ended", "give more of the log")
    # a tree sees a whole number of rows and at least one: of a handful each counts several times
    times = math.ceil(1 / (min(params.get("bagging_fraction", 1.0) for params in each) * len(features)))
    x, y = np.repeat(matrix(features), times, axis=0), np.repeat(np.asarray(target, dtype=float), times)
    data = lightgbm.Dataset(x, y, weight=None if weights is None else np.repeat(weights, times), free_raw_data=True)
    return [lightgbm.train({**ONE_THREAD, **params, "seed": seed}, data, n_rounds) for params in each]


def matrix(features: pd.DataFrame) -> Floats:
    """The features as LightGBM takes them, without names: some of ours it refuses."""
    return np.ascontiguousarray(features.to_numpy(dtype=float))


def booster_from(text: str, n_features: int) -> Any:
    """A booster out of its text. Raises BadInput if it is none, or has other features."""
    try:
        booster = read_booster(text)
    except ValueError as error:
        problem = f"no LightGBM model ({' '.join(str(error).split())[:120]})"
        raise BadInput("model", problem, "the text that whorl wrote", "train the model again") from error
    if booster.num_feature() != n_features:
        problem = f"trees of {booster.num_feature()} features beside the names of {n_features}"
        raise BadInput("model", problem, "files of the same model", "train the model again")
    return booster


def read_booster(text: str) -> Any:
    """A booster out of the whole of its text. Raises ValueError, and prints nothing, if there is none in it."""
    lightgbm = lightgbm_alone()
    sizes = SIZES.search(text)
    if sizes is None or END not in text:
        raise ValueError("its text is cut short")
    try:
        with _without_own_lines():
            booster = lightgbm.Booster(model_str=SIZES.sub("", text, count=1))
    except lightgbm.basic.LightGBMError as error:
        raise ValueError(str(error)) from error
    n_trees = len(sizes[1].split())
    if booster.num_trees() != n_trees:
        raise ValueError(f"{booster.num_trees()} trees where its head says {n_trees}")
    return booster


@contextmanager
def _without_own_lines() -> Iterator[None]:
    """Keep LightGBM's line of an error, which it also raises, off stderr: it is written past Python and past loggers.

    What others write to stderr meanwhile is written after it."""
    with _one_at_a_time, tempfile.TemporaryFile() as kept:
        try:
            stderr = os.dup(STDERR)
        except OSError:  # there is none
            yield
            return
        os.dup2(kept.fileno(), STDERR)
        try:
            yield
        finally:
            os.dup2(stderr, STDERR)
            os.close(stderr)
            kept.seek(0)
            os.write(STDERR, b"".join(line for line in kept if line.strip() and not line.startswith(OWN_LINE)))
