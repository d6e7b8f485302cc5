"""How well flags and scores fit what was stressed, and figures by key: `<part>.<measure>[.<slice>]`.

A figure that cannot be had is None, with its reason beside it as `<key>.reason`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as students_t

from tasks.nodes.type_tables import Bools, Floats

MEASURES = (
    "f1_outlier",
    "f1_normal",
    "weighted_f1",
    "balanced_accuracy",
    "auprc",
    "precision",
    "recall",
    "delay_executions",
    "missed_episodes",
    "false_alarms_per_1000",
)


@dataclass(frozen=True)
class Counts:
    """Stressed and flagged, normal and flagged, stressed and not, normal and not."""

    hits: int
    false_alarms: int
    misses: int
    quiet: int

    @property
    def f1_outlier(self) -> float:
        """F1 of the stressed class: 2 TP / (2 TP + FP + FN); 0 if none is stressed or flagged."""
        return _ratio(2 * self.hits, 2 * self.hits + self.false_alarms + self.misses)

    @property
    def f1_normal(self) -> float:
        """F1 of the normal class."""
        return _ratio(2 * self.quiet, 2 * self.quiet + self.false_alarms + self.misses)

    @property
    def weighted_f1(self) -> float:
        """Both F1, weighted by how many executions are of the class: the paper's "weighted accuracy", probably."""
        n_stressed, n_normal = self.hits + self.misses, self.false_alarms + self.quiet
        return _ratio(n_stressed * self.f1_outlier + n_normal * self.f1_normal, n_stressed + n_normal)

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the shares of stressed and of normal executions that are told rightly."""
        return (_ratio(self.hits, self.hits + self.misses) + _ratio(self.quiet, self.quiet + self.false_alarms)) / 2


def counts_of(is_flagged: Bools, is_stressed: Bools) -> Counts:
    """The four counts. Both: (n,)."""
    return Counts(
        int((is_flagged & is_stressed).sum()),
        int((is_flagged & ~is_stressed).sum()),
        int((~is_flagged & is_stressed).sum()),
        int((~is_flagged & ~is_stressed).sum()),
    )


def precision_recall(scores: Floats, is_stressed: Bools) -> pd.DataFrame:
    """One row a distinct score, falling: threshold (flagged: scores from it on), precision, recall, n_flagged.

    Raises ValueError without a stressed execution."""
    if not is_stressed.any():
        raise ValueError("no stressed execution; recall is of them")
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(is_stressed[order])
    ends = np.flatnonzero(np.append(np.diff(ranked) != 0, True))
    told = {"threshold": ranked[ends], "precision": hits[ends] / (ends + 1), "recall": hits[ends] / is_stressed.sum()}
    return pd.DataFrame({**told, "n_flagged": ends + 1})


def average_precision(curve: pd.DataFrame) -> float:
    """Area under precision over recall in steps: Σ (R_i - R_{i-1}) P_i, without drawing lines between points, which
    would promise too much. curve: of precision_recall."""
    gained = np.diff(curve["recall"].to_numpy(), prepend=0.0)
    return float((gained * curve["precision"].to_numpy()).sum())


def delays(series: np.ndarray, is_stressed: Bools, is_flagged: Bools) -> Floats:
    """Executions from the first of an episode to its first flag, for each episode: (n_episodes,), NaN if never.

    An episode is an unbroken row of stressed executions of one series (node and type). All: (n,) in time order."""
    frame = pd.DataFrame({"series": series, "is_stressed": is_stressed, "is_flagged": is_flagged})
    frame = frame.sort_values("series", kind="stable", ignore_index=True)
    is_new = frame["is_stressed"] & ~(
        frame["is_stressed"].shift(fill_value=False) & (frame["series"] == frame["series"].shift())
    )
    own = frame.assign(episode=is_new.cumsum())[frame["is_stressed"]]
    own = own.assign(place=own.groupby("episode").cumcount())
    first = own[own["is_flagged"]].groupby("episode")["place"].min()
    return first.reindex(range(1, int(is_new.sum()) + 1)).to_numpy(dtype=np.float64)


def measures_of(scores: Floats, is_flagged: Bools, is_stressed: Bools, series: np.ndarray) -> dict[str, float | None]:
    """All measures by name, None where there is nothing to measure. All: (n,) in time order."""
    counts, n_stressed = counts_of(is_flagged, is_stressed), int(is_stressed.sum())
    n_normal = len(is_stressed) - n_stressed
    if not n_stressed or not n_normal:
        return dict.fromkeys(MEASURES)
    waited = delays(series, is_stressed, is_flagged)
    told = waited[~np.isnan(waited)]
    return {
        "f1_outlier": counts.f1_outlier,
        "f1_normal": counts.f1_normal,
        "weighted_f1": counts.weighted_f1,
        "balanced_accuracy": counts.balanced_accuracy,
        "auprc": average_precision(precision_recall(scores, is_stressed)),
        "precision": _ratio(counts.hits, counts.hits + counts.false_alarms),
        "recall": counts.hits / n_stressed,
        "delay_executions": float(told.mean()) if len(told) else None,
        "missed_episodes": float(np.isnan(waited).mean()),
        "false_alarms_per_1000": 1000 * counts.false_alarms / n_normal,
    }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


Figures = dict[str, Any]
THEIRS = "paper_preprocessing."  # before the keys of figures by the paper's preprocessing, beside ours


def put(figures: Figures, key: str, value: float | int | None, reason: str = "") -> None:
    """A figure; None, or a value that is not finite, with its reason as `<key>.reason`."""
    is_known = value is not None and bool(np.isfinite(value))
    figures[key] = (value if isinstance(value, int) else float(value)) if is_known and value is not None else None
    if not is_known:
        figures[f"{key}.reason"] = reason or "not a number"


def put_mean(figures: Figures, key: str, values: Sequence[float | None], reason: str = "") -> None:
    """The mean over splits of what is known, and `<key>.deviation` where more than one is."""
    known = [value for value in values if value is not None and np.isfinite(value)]
    put(figures, key, float(np.mean(known)) if known else None, reason)
    if len(known) > 1:
        figures[f"{key}.deviation"] = float(np.std(known, ddof=1))


def their_figures(figures: Mapping[str, Any]) -> Figures:
    """The figures of the paper's preprocessing by the keys that ours have; empty where it was not asked for."""
    return {key.removeprefix(THEIRS): value for key, value in figures.items() if key.startswith(THEIRS)}


CONFIDENCE = 0.95
PAPER = "paper"  # the variant that gives verdicts, and the protocol of its authors
PLAIN_PROTOCOL = "chronological"  # its figures have no protocol in their keys
FIT_MEASURES = {
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
ABOUT = ("protocol", "round", "split", "detector", "seed")
FIT_COLUMNS = [*ABOUT, "validation_loss", "seconds", *FIT_MEASURES]


@dataclass(frozen=True)
class LearnedResults:
    """judged: one row an execution that the paper's variant tested, and fit, as in Detection. fits: one row a fit:
    FIT_COLUMNS.

    reasons: by protocol and detector, all that were asked for; empty where there is a fit."""

    judged: pd.DataFrame
    fits: pd.DataFrame
    reasons: dict[tuple[str, str], str]

    @property
    def verdict_reasons(self) -> dict[tuple[str, str], str]:
        """Of those that give verdicts: ours gives none."""
        return {key: reason for key, reason in self.reasons.items() if key[1] == PAPER}


def fits_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row a fit, FIT_COLUMNS; what was not measured of one is NaN."""
    numbers = dict.fromkeys(["validation_loss", "seconds", *FIT_MEASURES], "float64")
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

    A round is a fit with a seed of its own, and what the spread is over. fit.rounds says how many there are: one whose
    fit came to nothing is not among them."""
    figures: Figures = {}
    for (protocol, name), reason in found.reasons.items():
        fits = found.fits[(found.fits["protocol"] == protocol) & (found.fits["detector"] == name)]
        suffix = "" if protocol == PLAIN_PROTOCOL else f".{protocol}"
        put(figures, f"fit.rounds.{name}{suffix}", len(fits) or None, reason)
        for measure, template in FIT_MEASURES.items():
            put_seeds(figures, f"{template.format(name=name)}{suffix}", fits[measure].tolist(), reason)
    return figures
