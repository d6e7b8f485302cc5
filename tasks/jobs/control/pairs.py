"""Matched pairs: runs done again unchanged, and again with one thing changed; the change as it was measured.

A `baseline` repeats a run of the log unchanged, and each changed run names the baseline that it is paired with. The
pair of a run and its own baseline, `replay`, says how much two runs differ when nothing was changed on purpose."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.distribution import Floats, Predicted

BASELINE, REPLAY = "baseline", "replay"
NEEDED = ("run_id", "group_key", "what_if", "matched_run_id", "runtime_s")


@dataclass(frozen=True)
class Pairs:
    """frame: one row a pair; n_unmatched: changed runs whose baseline is not among the runs (it failed, or is not
    recorded yet); n_without_runtime: pairs with a runtime of 0 s or none; reason: why there is no pair.

    Columns of frame: what_if (no_spare, newest_sku, …, or replay), group_key, run_id_before and run_id_after,
    row_before and row_after (positions in the runs, for their features), before_s and after_s, log_ratio (of after to
    before), delta_s."""

    frame: pd.DataFrame
    n_unmatched: int
    n_without_runtime: int
    reason: str | None = None

    def of(self, what_if: str) -> pd.DataFrame:
        """The pairs of one change, index 0 … n - 1."""
        return self.frame[self.frame["what_if"] == what_if].reset_index(drop=True)


@dataclass(frozen=True)
class Change:
    """Change of each run's runtime: log_ratio, the log of after over before, and delta_s; (n,) each."""

    log_ratio: Floats
    delta_s: Floats


def match_pairs(runs: pd.DataFrame) -> Pairs:
    """The pairs among runs as read_runs(with_what_ifs=True) gives them, in the order of the changed runs.

    A job whose plan changed in between counts under the key of its baseline. Without pairs the frame is empty."""
    frame = pd.DataFrame({name: runs.get(name, pd.Series(np.nan, runs.index, dtype=object)) for name in NEEDED})
    frame = frame.reset_index(drop=True).assign(row=np.arange(len(runs)))
    changed = frame[frame["what_if"].notna()]
    changed = changed.assign(kind=changed["what_if"].where(changed["what_if"] != BASELINE, REPLAY))
    before = frame.assign(is_baseline=frame["what_if"] == BASELINE).drop_duplicates("run_id")
    both = changed.merge(before, left_on="matched_run_id", right_on="run_id", suffixes=("_after", "_before"))
    # a changed run is paired with a baseline, a baseline with the run that it repeats
    both = both[both["is_baseline"] != (both["kind"] == REPLAY)].sort_values("row_after", kind="stable")
    times = both[["runtime_s_before", "runtime_s_after"]].astype(float)
    is_usable: NDArray[np.bool_] = np.all(((times > 0) & (times < np.inf)).to_numpy(), axis=1)
    found = _pairs_frame(both.loc[is_usable])
    reason = None
    if found.empty:
        reason = "no run of this log repeats another with something changed (what_if, matched_run_id)"
        if len(changed):
            reason = f"{len(changed):,} runs repeat another, but none has its partner, both with a runtime above 0 s"
    return Pairs(found, len(changed) - len(both), int((~is_usable).sum()), reason)


def predicted_change(before: Predicted, after: Predicted) -> Change:
    """Change of the predicted median runtime; before, after: of the same n instances. A median of 0 s gives NaN."""
    old, new = before.quantile(0.5), after.quantile(0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratio = np.log(new / old)
    return Change(np.where(np.isfinite(log_ratio), log_ratio, np.nan), new - old)


def _pairs_frame(both: pd.DataFrame) -> pd.DataFrame:
    before_s, after_s = both["runtime_s_before"].astype(float), both["runtime_s_after"].astype(float)
    columns: dict[str, Any] = {
        "what_if": both["kind"],
        "group_key": both["group_key_before"],
        **{name: both[name] for name in ("run_id_before", "run_id_after", "row_before", "row_after")},
        **{"before_s": before_s, "after_s": after_s},
        **{"log_ratio": np.log(after_s / before_s), "delta_s": after_s - before_s},
    }
    return pd.DataFrame(columns).reset_index(drop=True)
