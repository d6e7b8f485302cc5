"""What watching a node costs: the share of its time that benchmarks take.

share = mean duration [s] · executions a day / 86,400 s"""

import numpy as np
import pandas as pd

DAY_S = 86_400.0
COLUMNS = ["node", "n_executions", "mean_duration_s", "executions_per_day", "share"]


def watching_share(mean_duration_s: float, executions_per_day: float) -> float:
    """The share of a machine's time that so many benchmarks of that length take; 0.01 is a hundredth."""
    return mean_duration_s * executions_per_day / DAY_S


def machine_time(executions: pd.DataFrame) -> pd.DataFrame:
    """One row a node: node, n_executions, mean_duration_s, executions_per_day, share.

    executions: node, started_at, duration_s, as in nodes.executions, in any order. The pace is that of the record: n
    executions that start within a time t follow each other every t / (n - 1). Unknown starts and durations are left
    out; NaN where fewer than two starts, or no duration, are known."""
    started_s = (executions["started_at"] - pd.Timestamp(0)).dt.total_seconds()
    told = pd.DataFrame(
        {
            "node": executions["node"].astype(str),
            "started_s": started_s.astype("float64"),
            "duration_s": executions["duration_s"].astype("float64"),
        }
    )
    by_node = told.groupby("node", sort=True)
    starts = by_node["started_s"]
    n_starts, span_s = starts.count().to_numpy(dtype=np.float64), (starts.max() - starts.min()).to_numpy()
    per_day = np.full(len(span_s), np.nan)
    np.divide((n_starts - 1) * DAY_S, span_s, out=per_day, where=span_s > 0)
    found = pd.DataFrame(
        {
            "n_executions": by_node.size().astype("int64"),
            "mean_duration_s": by_node["duration_s"].mean(),
            "executions_per_day": per_day,
        }
    )
    share = found["mean_duration_s"] * found["executions_per_day"] / DAY_S
    return found.assign(share=share).reset_index()[COLUMNS]
