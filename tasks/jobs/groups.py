"""The recurring jobs of a source: their statistics, and one of them by a part of its name."""

from typing import Literal

import pandas as pd

from tasks.errors import NotFound
from tasks.jobs.summary import fetch_summary
from tasks.warehouse.connection import Connection, reading
from tasks.warehouse.place import Warehouse

Order = Literal["support", "cov", "p95", "waiting"]
ORDERS: dict[Order, str] = {"support": "n_finished", "cov": "cov", "p95": "p95_s", "waiting": "excess_s"}
N_NAMED = 5  # keys that an error message names


def read_groups(
    warehouse: Warehouse,
    source: str,
    *,
    order: Order = "support",
    min_support: int | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """Rows of jobs.groups, the largest of `order` first (cov: most variable, waiting: most time lost to variation).

    min_support: finished runs that a job must have; by default what the summary was made with.
    Raises NotFound if the source has no summary yet."""
    with reading(warehouse) as connection:
        summary = fetch_summary(connection, source)
        least = summary["parameters"]["min_support"] if min_support is None else min_support
        return fetch_groups(connection, source, order=order, min_support=least, limit=limit)


def fetch_groups(
    connection: Connection, source: str, *, order: Order, min_support: int, limit: int | None = None
) -> pd.DataFrame:
    """The same over a connection that is open already."""
    return connection.execute(
        f"""SELECT * FROM jobs.groups WHERE source = $source AND n_finished >= $min_support
        ORDER BY {ORDERS[order]} DESC NULLS LAST, group_key LIMIT $limit""",
        {"source": source, "min_support": min_support, "limit": limit},
    ).df()


def find_group(warehouse: Warehouse, source: str, text: str) -> str:
    """The key of the one job that is called `text`, or whose key holds it (case aside).

    Raises NotFound, naming the nearest keys, if no job or more than one fits."""
    with reading(warehouse) as connection:
        keys = connection.execute(
            """SELECT group_key FROM jobs.runs WHERE source = $source
            GROUP BY group_key HAVING group_key = $text OR contains(lower(group_key), lower($text))
            ORDER BY group_key <> $text, count(*) DESC, group_key""",
            {"source": source, "text": text},
        ).fetchall()
        found = [str(key) for (key,) in keys]
        if found and (len(found) == 1 or found[0] == text):
            return found[0]
        raise NotFound(_not_one(text, source, found) if found else _none(connection, source, text))


def _not_one(text: str, source: str, found: list[str]) -> str:
    rest = f" and {len(found) - N_NAMED:,} more" if len(found) > N_NAMED else ""
    names = ", ".join(repr(key) for key in found[:N_NAMED])
    return f"job {text!r}: {len(found):,} jobs of source {source!r} fit: {names}{rest}; give more of the name"


def _none(connection: Connection, source: str, text: str) -> str:
    near = connection.execute(
        """SELECT group_key FROM jobs.runs WHERE source = $source GROUP BY group_key
        ORDER BY jaro_winkler_similarity(lower(group_key), lower($text)) DESC, group_key LIMIT $n_named""",
        {"source": source, "text": text, "n_named": N_NAMED},
    ).fetchall()
    if not near:
        return f"source {source!r} has no job runs; fill it with 'whorl jobs ingest FILE'"
    names = ", ".join(repr(key) for (key,) in near)
    return f"job {text!r}: no job of source {source!r} is called so; nearest: {names}"
