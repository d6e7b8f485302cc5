"""The summary of a job log: how the runs of each recurring job vary, computed in SQL where the rows are."""

import json
import logging
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tasks.errors import NotFound
from tasks.jobs.params import HISTORIC_SHARE, STALAGMITE_RATIO, SummaryParams
from tasks.warehouse.connection import Connection, reading, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import data_version, kinds_of

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger(__name__)
GROUPS = Path(__file__).with_name("summary.sql")
TOTALS = Path(__file__).with_name("summary_totals.sql")


def summarise(warehouse: Warehouse, source: str, params: SummaryParams) -> str:
    """Write jobs.groups and jobs.summaries of one source anew, in one transaction; twice changes nothing.

    Returns the version of the files that it saw.
    Raises NotFound if the source has no runs, BadInput if it mixes simulated with measured runs."""
    with writing(warehouse) as connection:
        refuse_mixture(connection, source)
        with transaction(connection):
            return _write(connection, source, params)


def refuse_mixture(connection: Connection, source: str) -> tuple[int, int]:
    """How many runs of a source are simulated and measured; what-if runs do not count.

    Raises NotFound if the source has no runs, BadInput if some of them are simulated and some measured."""
    counts = kinds_of(
        connection,
        "jobs.runs",
        source,
        where="what_if IS NULL",
        fix="ingest the simulated log under a source of its own",
    )
    if not any(counts):
        known = connection.execute("SELECT DISTINCT source FROM jobs.runs ORDER BY source").fetchall()
        names = ", ".join(repr(name) for (name,) in known) or "none yet"
        fill = "fill it with 'whorl jobs ingest FILE'"
        raise NotFound(f"source {source!r} has no job runs; sources that have some: {names}; {fill}")
    return counts


def read_summary(warehouse: Warehouse, source: str) -> dict[str, Any]:
    """The row of jobs.summaries of a source; `is_stale` is true if its files have changed since; `key` and `better` say
    what a job is, and what would predict better by now (`job_keys`), empty where that is not decided.

    n_zero_median_groups, n_zero_median_runs: what outlier_share_ratio leaves out, since their median is 0 s.

    Raises NotFound if the source has no summary yet."""
    with reading(warehouse) as connection:
        return fetch_summary(connection, source)


def fetch_summary(connection: Connection, source: str) -> dict[str, Any]:
    """The same over a connection that is open already."""
    cursor = connection.execute("SELECT * FROM jobs.summaries WHERE source = $source", {"source": source})
    row = cursor.fetchone()
    if row is None:
        refuse_mixture(connection, source)
        command = shlex.join(["whorl", "jobs", "summary", "--source", source])
        raise NotFound(f"source {source!r} has no summary yet; make one with {command}")
    totals = dict(zip([column[0] for column in cursor.description or []], row, strict=True))
    is_stale = totals["data_version"] != data_version(connection, "jobs", source)
    parameters = json.loads(totals["parameters"])
    left_out = connection.execute(
        """SELECT count(*), coalesce(sum(n_finished), 0)::BIGINT FROM jobs.groups
        WHERE source = $source AND n_finished >= $min_support AND median_s = 0""",
        {"source": source, "min_support": parameters["min_support"]},
    ).fetchone()  # nothing is a multiple of no time: no share of outliers counts them
    totals |= dict(zip(("n_zero_median_groups", "n_zero_median_runs"), left_out or (0, 0), strict=True))
    key = connection.execute(
        "SELECT reason, better FROM jobs.keys WHERE source = $source", {"source": source}
    ).fetchone()
    totals |= dict(zip(("key", "better"), key or ("", ""), strict=True))
    return {**totals, "parameters": parameters, "is_stale": is_stale}


def _write(connection: Connection, source: str, params: SummaryParams) -> str:
    values = {"source": source, "statuses": list(params.statuses), "history_share": HISTORIC_SHARE}
    ratios = ("min_support", "outlier_ratio", "outlier_delta_s")
    connection.execute("DELETE FROM jobs.groups WHERE source = $source", {"source": source})
    connection.execute("DELETE FROM jobs.summaries WHERE source = $source", {"source": source})
    connection.execute(
        f"INSERT INTO jobs.groups BY NAME {GROUPS.read_text()}",
        {**values, "slow_ratio": STALAGMITE_RATIO, **{name: getattr(params, name) for name in ratios}},
    )
    version = data_version(connection, "jobs", source)
    connection.execute(
        "INSERT INTO jobs.summaries BY NAME "
        f"SELECT *, $version AS data_version, $parameters AS parameters FROM ({TOTALS.read_text()})",
        {
            **values,
            "min_support": params.min_support,
            "version": version,
            "parameters": json.dumps(params.model_dump(mode="json"), sort_keys=True),
        },
    )
    counts = connection.execute(
        "SELECT n_runs, n_groups FROM jobs.summaries WHERE source = $source", {"source": source}
    ).fetchone()
    logger.info("summarised %d runs of %d jobs of source %s", *(counts or (0, 0)), source)
    return version


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
) -> "pd.DataFrame":
    """Rows of jobs.groups, the largest of `order` first (cov: most variable, waiting: most time lost to variation).

    min_support: finished runs that a job must have; by default what the summary was made with.
    Raises NotFound if the source has no summary yet."""
    with reading(warehouse) as connection:
        summary = fetch_summary(connection, source)
        least = summary["parameters"]["min_support"] if min_support is None else min_support
        return connection.execute(
            f"""SELECT * FROM jobs.groups WHERE source = $source AND n_finished >= $min_support
            ORDER BY {ORDERS[order]} DESC NULLS LAST, group_key LIMIT $limit""",
            {"source": source, "min_support": least, "limit": limit},
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
        matches = [str(key) for (key,) in keys]
        if matches and (len(matches) == 1 or matches[0] == text):
            return matches[0]
        if matches:
            rest = f" and {len(matches) - N_NAMED:,} more" if len(matches) > N_NAMED else ""
            fit = f"{len(matches):,} jobs of source {source!r} fit: {', '.join(map(repr, matches[:N_NAMED]))}{rest}"
            raise NotFound(f"job {text!r}: {fit}; give more of the name")
        near = connection.execute(
            """SELECT group_key FROM jobs.runs WHERE source = $source GROUP BY group_key
            ORDER BY jaro_winkler_similarity(lower(group_key), lower($text)) DESC, group_key LIMIT $n_named""",
            {"source": source, "text": text, "n_named": N_NAMED},
        ).fetchall()
    if not near:
        raise NotFound(f"source {source!r} has no job runs; fill it with 'whorl jobs ingest FILE'")
    names = ", ".join(repr(key) for (key,) in near)
    raise NotFound(f"job {text!r}: no job of source {source!r} is called so; nearest: {names}")


def tell_simulated(warehouse: Warehouse, source: str) -> None:
    """A line in the log where the runs of a source are simulated.

    Raises NotFound if there are none, BadInput if simulated runs stand among measured ones."""
    with reading(warehouse) as connection:
        n_simulated, _ = refuse_mixture(connection, source)
    if n_simulated:
        logger.warning("source %r is simulated: its runs were drawn, not measured", source)
