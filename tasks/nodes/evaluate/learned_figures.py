"""What fits of the learned model came to, and its figures by key; torch is not needed to write them down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as students_t

from tasks.nodes.evaluate.figures import Figures, put, put_mean

CONFIDENCE = 0.95
PLAIN_PROTOCOL = "chronological"  # its figures have no protocol in their keys
MEASURES = {
    "mse": "reconstruction.mse.{name}",
    "mse_mean_predictor": "reconstruction.mse.{name}.mean_predictor",
    "mse_own": "reconstruction.mse.own.{name}",
    "mse_own_mean_predictor": "reconstruction.mse.own.{name}.mean_predictor",
    "type_accuracy": "type.accuracy.{name}",
    "score_spearman": "score.spearman.{name}",
    "score_deviation": "score.deviation.{name}",
    "best_epoch": "fit.best_epoch.{name}",
    "n_graphs": "fit.graphs.{name}",
}
WITHOUT_ONE_HOT = "type_accuracy_without_one_hot"
WITHOUT_ONE_HOT_KEY = "type.accuracy_without_one_hot.{name}"
ABOUT = ("protocol", "round", "split", "detector", "seed")
FIT_COLUMNS = [*ABOUT, "validation_loss", "seconds", *MEASURES, WITHOUT_ONE_HOT]
NOT_ASKED = "not measured in this way of splitting, or not asked for"


@dataclass(frozen=True)
class LearnedResults:
    """judged: one row a tested execution and fit, as in Detection. fits: one row a fit: FIT_COLUMNS.

    reasons: by protocol and detector, all that were asked for; empty where there is a fit."""

    judged: pd.DataFrame
    fits: pd.DataFrame
    reasons: dict[tuple[str, str], str]

    @property
    def protocols(self) -> tuple[str, ...]:
        """Those asked for, in their order."""
        return tuple(dict.fromkeys(protocol for protocol, _ in self.reasons))

    def detectors(self, protocol: str) -> tuple[str, ...]:
        """Those asked for in a protocol."""
        return tuple(name for of, name in self.reasons if of == protocol)


def fits_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a fit, FIT_COLUMNS; what was not measured of one is NaN."""
    numbers = dict.fromkeys(["validation_loss", "seconds", *MEASURES, WITHOUT_ONE_HOT], "float64")
    return pd.DataFrame(list(rows), columns=FIT_COLUMNS).astype(numbers)


def put_seeds(figures: Figures, key: str, values: Sequence[float | None], reason: str = "") -> None:
    """The mean over fits, `.deviation`, and the interval of the mean (95 %, Student's t) as `.low` and `.high`.

    Without two values there is neither deviation nor interval."""
    put_mean(figures, key, values, reason)
    known = np.array([value for value in values if value is not None and np.isfinite(value)])
    if len(known) > 1:
        half = students_t.ppf((1 + CONFIDENCE) / 2, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known))
        put(figures, f"{key}.low", float(known.mean() - half))
        put(figures, f"{key}.high", float(known.mean() + half))


def learned_figures(found: LearnedResults) -> Figures:
    """`reconstruction`, `type`, `score` and `fit` of each variant and protocol.

    The splits of a round count alike; rounds and seeds are what the spread is over. fit.rounds says how many there are:
    one whose fit came to nothing is not among them."""
    figures: Figures = {}
    for (protocol, name), reason in found.reasons.items():
        fits = found.fits[(found.fits["protocol"] == protocol) & (found.fits["detector"] == name)]
        suffix = "" if protocol == PLAIN_PROTOCOL else f".{protocol}"
        rounds = fits.groupby("round")[[*MEASURES, WITHOUT_ONE_HOT]].mean() if len(fits) else fits
        put(figures, f"fit.rounds.{name}{suffix}", len(rounds) or None, reason)
        for measure, template in MEASURES.items():
            values = rounds[measure].tolist() if len(rounds) else []
            put_seeds(figures, f"{template.format(name=name)}{suffix}", values, reason)
        told = rounds[WITHOUT_ONE_HOT].dropna().tolist() if len(rounds) else []
        put_seeds(figures, f"{WITHOUT_ONE_HOT_KEY.format(name=name)}{suffix}", told, reason or NOT_ASKED)
    return figures
