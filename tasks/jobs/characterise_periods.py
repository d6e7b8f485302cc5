"""Where history, training and test begin in a log, found in SQL where the rows are: predict/periods.py at scale."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from tasks.errors import BadInput
from tasks.jobs.predict.periods import PERIODS
from tasks.jobs.predict.rows import FINISHED
from tasks.jobs.predict.split_params import SplitParams
from tasks.warehouse.connection import Connection

RUNS = Path(__file__).with_name("characterise_runs.sql")
TYPES = {
    **{"source": "TEXT", "statuses": "TEXT[]", "first_name": "TEXT", "second_name": "TEXT"},
    **{"second_at": "TIMESTAMP", "third_at": "TIMESTAMP"},
}
HOURS = """SELECT epoch_us(queued_at) // 3_600_000_000 AS hour, count(*), min(queued_at), max(queued_at)
    FROM temp.finished GROUP BY hour ORDER BY hour"""


@dataclass(frozen=True)
class PeriodBounds:
    """When D1, D2 and D3 begin, and which recorded periods D1 and D2 are: no names for a split by time."""

    second_at: datetime
    third_at: datetime
    first_name: str | None = None
    second_name: str | None = None


def split_runs(connection: Connection, source: str, params: SplitParams) -> PeriodBounds:
    """Leave temp.finished on the connection: the finished runs of a source, with the part that each is in.

    Its parts (0, 1, 2) are those of assign_periods, found in bounded memory. Raises BadInput for fewer than three
    distinct times of submission. Source: Zhu et al. 2023, Table 1."""
    nothing = dict.fromkeys(TYPES)
    _set(connection, {**nothing, "source": source, "statuses": list(FINISHED)})
    connection.execute(RUNS.read_text())
    bounds = _recorded(connection) if params.use_periods else None
    bounds = bounds or _by_time(connection, params)
    _set(connection, {name: value for name, value in asdict(bounds).items() if name in TYPES})
    return bounds


def _set(connection: Connection, values: dict[str, Any]) -> None:
    for name, value in values.items():
        connection.execute(f"SET VARIABLE {name} = $value::{TYPES[name]}", {"value": value})


def _recorded(connection: Connection) -> PeriodBounds | None:
    starts = _rows(
        connection,
        """SELECT period, min(queued_at) FROM temp.finished
        WHERE period IS NOT NULL GROUP BY period ORDER BY 2, 1""",
    )
    if len(starts) < len(PERIODS):
        return None
    (first, _), (second, second_at), (_, third_at) = starts[: len(PERIODS)]
    return PeriodBounds(second_at, third_at, first, second)


def _by_time(connection: Connection, params: SplitParams) -> PeriodBounds:
    hours = _rows(connection, HOURS)
    counts = np.array([n for _, n, _, _ in hours], dtype=np.int64)
    shares = np.array([params.history_share, params.history_share + params.training_share])
    n = int(counts.sum())
    if not n:
        raise _too_few(0)
    ranks = np.minimum((shares * n).astype(int), n - 1)
    second_at, third_at = (_ranked(connection, hours, counts, int(rank)) for rank in ranks)
    second_at = _inside(connection, second_at, hours[0][2], hours[-1][3])
    if third_at <= second_at:  # D2 has at least one time of submission, and D3 what comes after it
        later = "SELECT min(queued_at) FROM temp.finished WHERE queued_at > $at"
        ((third_at,),) = _rows(connection, later, at=second_at)
    return PeriodBounds(second_at, third_at)


def _ranked(connection: Connection, hours: Sequence[Any], counts: Any, rank: int) -> datetime:
    """The submission that `rank` others come before; only its hour is sorted."""
    ends = np.cumsum(counts)
    place = int(np.searchsorted(ends, rank, side="right"))
    # the second condition says nothing new, but by it DuckDB skips blocks of other hours: queued_at is computed
    sql = """SELECT queued_at FROM temp.finished
        WHERE queued_at BETWEEN $low AND $high AND (submitted_at IS NULL OR submitted_at BETWEEN $low AND $high)
        ORDER BY queued_at LIMIT 1 OFFSET $n_before"""
    n_before = rank - int(ends[place] - counts[place])
    ((at,),) = _rows(connection, sql, low=hours[place][2], high=hours[place][3], n_before=n_before)
    return datetime.fromisoformat(str(at))


def _inside(connection: Connection, at: datetime, low: datetime, high: datetime) -> datetime:
    """The nearest time of submission that leaves one before it and one after it; low, high: the first and the last."""
    if low < at < high:
        return at
    between = "SELECT min(queued_at), max(queued_at) FROM temp.finished WHERE queued_at > $low AND queued_at < $high"
    ((second, last_but_one),) = _rows(connection, between, low=low, high=high)
    if second is None:
        raise _too_few(1 if low == high else 2)
    return datetime.fromisoformat(str(second if at == low else last_but_one))


def _rows(connection: Connection, sql: str, **values: Any) -> list[Any]:
    return connection.execute(sql, values).fetchall()


def _too_few(n_times: int) -> BadInput:
    return BadInput(
        "job log",
        f"runs of {n_times} different times of submission",
        "at least three, for history, training and test",
        "give more of the log",
    )
