"""LightGBM as a classifier of shapes: the one that is kept, as text."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tasks.boosters import read_booster
from tasks.errors import BadInput
from tasks.jobs.pmf import Floats
from tasks.jobs.predict.calibration import tempered
from tasks.jobs.predict.classifier_params import ClassifierParams
from tasks.jobs.predict.evidence import evidence_of, multiplied
from tasks.jobs.shapes import Labels

FORBIDDEN = re.compile(r'[\s",:\[\]{}]')  # LightGBM takes none of these in the name of a feature


@dataclass(frozen=True)
class LightGbm:
    """booster: lightgbm.Booster of k classes; columns: (p,) features in its order; present: (k,) had training rows.

    fills: (p,) the median of a feature that no training row lacks (LightGBM would take a missing one for 0), nan for
    one whose missing values were learnt from. evidence: columns of k probabilities each, by which the trees' own
    probabilities are multiplied, to the powers of evidence_powers (trees first, then each of them; `evidence.py`)."""

    booster: Any
    columns: tuple[str, ...]
    present: tuple[bool, ...]
    fills: tuple[float, ...]
    temperature: float = 1.0
    evidence: tuple[tuple[str, ...], ...] = ()
    evidence_powers: tuple[float, ...] = ()

    @property
    def classes(self) -> Labels:
        return np.arange(len(self.present))

    def predict_proba(self, frame: pd.DataFrame) -> Floats:
        """(n, k); 0 for a shape that no training row has. Raises BadInput if a feature lacks."""
        x, k = self.prepare(frame), len(self.present)
        if not len(x):
            return np.empty((0, k))
        raw = self.booster.predict(x, num_threads=1)
        p = np.asarray(raw, dtype=float).reshape(len(frame), k) * np.array(self.present)
        told = tempered(p / p.sum(axis=1, keepdims=True), self.temperature)
        if not self.evidence:
            return told
        return multiplied([told, *evidence_of(frame, self.evidence)], np.array(self.evidence_powers))

    def prepare(self, frame: pd.DataFrame) -> Floats:
        """What the booster is given: (n, p), columns found by name. Raises BadInput if one lacks."""
        missing = [name for name in self.columns if name not in frame]
        if missing:
            problem = f"no {', '.join(missing[:5])}"
            raise BadInput("features", problem, f"the {len(self.columns)} features of the model", "make them for it")
        x = frame[list(self.columns)].to_numpy(dtype=float)
        return np.where(np.isnan(x), np.array(self.fills), x)

    def to_texts(self) -> tuple[str, str]:
        """The trees as LightGBM's text, and the rest as JSON; from_texts gives a model with the same predictions."""
        fills = [None if np.isnan(fill) else fill for fill in self.fills]
        rest = {"columns": self.columns, "present": self.present, "fills": fills, "temperature": self.temperature}
        rest |= {"evidence": self.evidence, "evidence_powers": self.evidence_powers}
        return self.booster.model_to_string(), json.dumps(rest)

    @classmethod
    def from_texts(cls, trees: str, rest: str) -> "LightGbm":
        """What to_texts wrote. Raises BadInput if it is something else."""
        try:
            found = json.loads(rest)
            columns, present = tuple(map(str, found["columns"])), tuple(map(bool, found["present"]))
            fills = tuple(np.nan if fill is None else float(fill) for fill in found["fills"])
            booster = read_booster(trees)
            if not booster.num_feature() == len(columns) == len(fills) or booster.num_model_per_iteration() != len(
                present
            ):
                raise ValueError("trees and columns do not agree")
            evidence = tuple(tuple(map(str, names)) for names in found.get("evidence", ()))
            powers = tuple(map(float, found.get("evidence_powers", ())))
            return cls(booster, columns, present, fills, float(found["temperature"]), evidence, powers)
        except (ValueError, KeyError, TypeError) as error:
            problem = f"no classifier ({type(error).__name__}: {' '.join(str(error).split())[:120]})"
            raise BadInput("classifier", problem, "the texts of LightGbm.to_texts", "train the model again") from error


def fit_lightgbm(
    frame: pd.DataFrame,
    labels: Labels,
    k: int,
    params: ClassifierParams,
    *,
    weights: Floats | None = None,
    validation: tuple[pd.DataFrame, Labels] | None = None,
    callbacks: list[Callable[[Any], None]] | None = None,
) -> LightGbm:
    """A LightGBM model of k >= 2 shapes. frame: (n, p), labels: (n,) of at least two of them.

    validation: rows whose log loss (metric multi_logloss of "later") the callbacks are told after each round."""
    import lightgbm

    columns = tuple(str(name) for name in frame)
    names = [FORBIDDEN.sub("_", name) for name in columns]
    names = names if len(set(names)) == len(names) else [f"f{place}" for place in range(len(names))]
    settings = lightgbm_settings(params, k)
    x = frame.to_numpy(dtype=float)
    data = lightgbm.Dataset(x, labels, weight=weights, feature_name=names, params=settings)
    later = []
    if validation is not None:
        later = [lightgbm.Dataset(validation[0].to_numpy(dtype=float), validation[1], reference=data)]
    booster = lightgbm.train(
        settings, data, params.n_rounds, valid_sets=later, valid_names=["later"][: len(later)], callbacks=callbacks
    )
    counts = np.bincount(labels, minlength=k)
    has_gaps = np.isnan(x).any(axis=0)
    fills = tuple(np.nan if gap else float(np.median(column)) for gap, column in zip(has_gaps, x.T, strict=True))
    return LightGbm(booster, columns, tuple(bool(n) for n in counts), fills)


def lightgbm_settings(params: ClassifierParams, k: int) -> dict[str, Any]:
    """The parameters in LightGBM's words: one thread, and the same trees for the same seed."""
    return {
        "objective": "multiclass",
        "num_class": k,
        "metric": "multi_logloss",
        "learning_rate": params.learning_rate,
        "num_leaves": params.n_leaves,
        "min_data_in_leaf": params.min_leaf,
        "feature_fraction": params.feature_share,
        "bagging_fraction": params.row_share,
        "bagging_freq": 1 if params.row_share < 1 else 0,
        "lambda_l2": params.l2,
        "seed": params.seed % 2**31,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "verbosity": -1,
    }
