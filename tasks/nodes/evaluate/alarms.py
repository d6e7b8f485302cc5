"""How well flags and scores fit what was stressed: precision and recall, F1, delay, false alarms."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

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
