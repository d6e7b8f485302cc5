"""How jobs move between shapes when something is changed, as the paper states it in 7.1 to 7.3."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.jobs.pmf import Counts, Floats
from tasks.quantities import digits

Labels = NDArray[np.int64]
TOLD = {"outlier_percent": "outliers", "p25_p75": "25th-75th gap", "p95": "95th percentile", "std": "deviation"}
PERCENT = ("outlier_percent",)


@dataclass(frozen=True)
class Migration:
    """counts: (k, k), rows the shape before, columns the shape after; n_unlabelled: without a shape in either."""

    counts: Counts
    n_unlabelled: int

    @property
    def n(self) -> int:
        """Runs, or jobs, with a shape before and after."""
        return int(self.counts.sum())

    @property
    def shares(self) -> Floats:
        """Of those that were in the shape of the row: (k, k); rows sum to 1, a shape that had none is all NaN."""
        sums = self.counts.sum(axis=1, keepdims=True)
        return np.where(sums > 0, self.counts / np.maximum(sums, 1), np.nan)

    @property
    def share_moved(self) -> float | None:
        """Share in another shape than before; None without any."""
        return 1 - float(np.trace(self.counts)) / self.n if self.n else None


def migrate(before: Any, after: Any, k: int) -> Migration:
    """The migration between two labels of the same runs or jobs; (n,) shapes 0 ... k - 1, -1 for none.

    Raises ValueError for shapes that differ and labels of k or more."""
    old, new = np.asarray(before, dtype=np.int64), np.asarray(after, dtype=np.int64)
    if old.ndim != 1 or old.shape != new.shape:
        raise ValueError(f"labels: shapes {old.shape}, {new.shape}; expected (n,) for both")
    if max(old.max(initial=-1), new.max(initial=-1)) >= k:
        raise ValueError(f"labels: up to {max(old.max(), new.max())}; expected 0 to {k - 1}")
    is_there = (old >= 0) & (new >= 0)
    counts = np.bincount(old[is_there] * k + new[is_there], minlength=k * k).reshape(k, k)
    return Migration(counts.astype(np.int64), int((~is_there).sum()))


def group_labels(probabilities: Floats, groups: Any) -> pd.Series:
    """The shape of each group: the one most probable over its runs, all counted alike; a tie goes to the lower number.

    probabilities: (n, k), rows sum to 1; groups: (n,). Indexed by group, in order of its keys."""
    summed = pd.DataFrame(probabilities).groupby(np.asarray(groups)).sum()
    labels = summed.to_numpy().argmax(axis=1)
    return pd.Series(labels, index=summed.index.rename("group_key"), name="shape", dtype=np.int64)


def moves(migration: Migration, shapes: pd.DataFrame) -> pd.DataFrame:
    """The moves to another shape, the most frequent first: one row for each that any run or job makes.

    shapes: one row a shape with columns of Table 2 (outlier_percent, p25_p75, p95, std; more are ignored).
    Columns: before, after, n, share (of all), share_of_shape (of those that were in it), and of each column of Table 2
    its value in the shape before and after (p25_p75_before, p25_p75_after, …)."""
    counts = migration.counts * (1 - np.eye(len(migration.counts), dtype=np.int64))
    before, after = np.nonzero(counts)
    n = counts[before, after]
    order = np.lexsort((after, before, -n))
    before, after, n = before[order], after[order], n[order]
    found = {"before": before, "after": after, "n": n, "share": n / max(migration.n, 1)}
    table = pd.DataFrame({**found, "share_of_shape": migration.shares[before, after]})
    for name in [name for name in TOLD if name in shapes]:
        values = shapes[name].to_numpy(dtype=float)
        table[f"{name}_before"], table[f"{name}_after"] = values[before], values[after]
    return table


def describe_moves(table: pd.DataFrame, *, unit: str = "", what: str = "runs", most: int = 3) -> list[str]:
    """The most frequent moves in sentences, as 7.1 to 7.3 of the paper. table: of `moves`; unit: s for Delta."""
    if table.empty:
        return [f"No {what} change their shape."]
    return [_sentence(row, unit, what) for _, row in table.head(most).iterrows()]


def _sentence(row: pd.Series, unit: str, what: str) -> str:
    parts = []
    for name, words in TOLD.items():
        old, new = row.get(f"{name}_before"), row.get(f"{name}_after")
        if old is not None and new is not None and np.isfinite([old, new]).all():
            of = " %" if name in PERCENT else f" {unit}".rstrip()
            parts.append(f"{words} from {digits(old)} to {digits(new)}{of}")
    told = f": {', '.join(parts)}" if parts else ""
    return (
        f"{100 * row['share_of_shape']:.1f} % of the {what} of shape {int(row['before'])} are now in shape "
        f"{int(row['after'])} ({int(row['n'])}, {100 * row['share']:.1f} % of all){told}."
    )
