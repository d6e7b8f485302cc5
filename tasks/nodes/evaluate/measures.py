"""How well flags and scores fit what was stressed, and figures that are means over fits."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import t as students_t

from tasks.nodes.params import CONFIDENCE
from tasks.nodes.type_tables import Bools, Floats
from tasks.report.evaluation import Figures, put, put_mean

MEASURES = (
    "f1_outlier",
    "f1_normal",
    "weighted_f1",
    "auprc",
    "precision",
    "recall",
    "delay_executions",
    "missed_episodes",
    "false_alarms_per_1000",
)


def measures_of(scores: Floats, is_flagged: Bools, is_stressed: Bools, series: np.ndarray) -> dict[str, float | None]:
    """MEASURES by name, None where only one class is there or no episode was flagged. All: (n,) in time order.

    f1_outlier: 2 TP / (2 TP + FP + FN) of the stressed class, f1_normal of the other; weighted_f1: both, weighted by
    how many executions are of the class, which is probably the paper's "weighted accuracy"."""
    n_stressed = int(is_stressed.sum())
    n_normal = len(is_stressed) - n_stressed
    if not n_stressed or not n_normal:
        return dict.fromkeys(MEASURES)
    from sklearn.metrics import average_precision_score  # type: ignore[import-untyped, unused-ignore]  # heavy

    hits, wrong = int((is_flagged & is_stressed).sum()), int((is_flagged & ~is_stressed).sum())
    missed, quiet = n_stressed - hits, n_normal - wrong
    f1_outlier, f1_normal = (2 * right / (2 * right + wrong + missed) for right in (hits, quiet))
    waited = delays(series, is_stressed, is_flagged)
    known = waited[~np.isnan(waited)]
    return {
        "f1_outlier": f1_outlier,
        "f1_normal": f1_normal,
        "weighted_f1": (n_stressed * f1_outlier + n_normal * f1_normal) / len(is_stressed),
        "auprc": float(average_precision_score(is_stressed, scores)),
        "precision": hits / (hits + wrong) if hits + wrong else 0.0,
        "recall": hits / n_stressed,
        "delay_executions": float(known.mean()) if len(known) else None,
        "missed_episodes": float(np.isnan(waited).mean()),
        "false_alarms_per_1000": 1000 * wrong / n_normal,
    }


def delays(series: np.ndarray, is_stressed: Bools, is_flagged: Bools) -> Floats:
    """Executions from the first of an episode to its first flag, for each episode: (n_episodes,), NaN if never.

    An episode is an unbroken row of stressed executions of one series (node and type). All: (n,) in time order."""
    frame = pd.DataFrame({"series": series, "is_stressed": is_stressed, "is_flagged": is_flagged})
    frame = frame.sort_values("series", kind="stable", ignore_index=True)
    goes_on = frame["is_stressed"].shift(fill_value=False) & (frame["series"] == frame["series"].shift())
    is_new = frame["is_stressed"] & ~goes_on
    stressed = frame.assign(episode=is_new.cumsum())[frame["is_stressed"]]
    stressed = stressed.assign(place=stressed.groupby("episode").cumcount())
    first = stressed[stressed["is_flagged"]].groupby("episode")["place"].min()
    return first.reindex(range(1, int(is_new.sum()) + 1)).to_numpy(dtype=np.float64)


def put_seeds(figures: Figures, key: str, values: Sequence[float | None], reason: str = "") -> None:
    """The mean over fits, `.deviation`, and the interval of the mean (95 %, Student's t) as `.low` and `.high`.

    Without two values there is neither deviation nor interval."""
    put_mean(figures, key, values, reason)
    known = np.array([value for value in values if value is not None and np.isfinite(value)])
    if len(known) > 1:
        half = students_t.ppf((1 + CONFIDENCE) / 2, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known))
        put(figures, f"{key}.low", float(known.mean() - half))
        put(figures, f"{key}.high", float(known.mean() + half))
