"""The tables of answers about nodes: written as a whole for a source, and read back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from tasks.nodes.answering import Answers
from tasks.warehouse.connection import Connection, fetch, transaction, writing
from tasks.warehouse.place import Warehouse

Figures = dict[str, Any]
REASON = ".reason"
TYPE = {"type": "benchmark_type"}
ANSWERS = ("rankings", "scores", "watched", "repeatability", "pairs")


@dataclass(frozen=True)
class Basis:
    """What answers rest on. key: hash of data, model, parameters and code."""

    model_id: str
    key: str
    data_version: str


def write_decisions(warehouse: Warehouse, source: str, model_id: str, decisions: pd.DataFrame) -> None:
    """Write what one model decided of each metric; twice changes nothing."""
    about = {"source": source, "model_id": model_id}
    with writing(warehouse) as connection, transaction(connection):
        connection.execute(
            "DELETE FROM nodes.decisions WHERE source = $source AND model_id = $model_id", about
        ).fetchall()
        insert_rows(connection, "nodes.decisions", decisions.rename(columns=TYPE), about)


def write_answers(
    warehouse: Warehouse, source: str, basis: Basis, found: Answers, counted: frozenset[tuple[str, str]]
) -> None:
    """Put the answers about a source in the place of those before, all of them or none.

    counted: the types and metrics that count in these scores."""
    about = {"source": source, "model_id": basis.model_id}
    now = datetime.now(UTC).replace(tzinfo=None)
    ranked = found.ranking.table.rename(columns={"place": "rank"})
    ranked = ranked.assign(shared_place=ranked["shared_place"].astype("Int64"))
    ranked = ranked.assign(is_tied=ranked["n_tied"] > 1, scored_at=now, key=basis.key).drop(columns="n_tied")
    rests_on = {"key": basis.key, "data_version": basis.data_version, "n_executions": found.calm.n_executions}
    frames = {
        "rankings": pd.DataFrame([{**rests_on, "n_left_out": found.calm.n_left_out, "ranked_at": now}]),
        "scores": ranked,
        "watched": found.watched.assign(place=np.arange(1, len(found.watched) + 1)),
        "repeatability": _marked(found.repeated.metrics, counted, ("runs_for_5", "runs_for_10")),
        "pairs": _marked(found.repeated.pairs, counted, ("n_runs",)),
    }
    with writing(warehouse) as connection, transaction(connection):
        for name in ANSWERS:
            connection.execute(f"DELETE FROM nodes.{name} WHERE source = $source", {"source": source}).fetchall()
            insert_rows(connection, f"nodes.{name}", frames[name], about)


def write_evaluation(warehouse: Warehouse, source: str, figures: Figures, data_version: str) -> None:
    """Put the figures of an evaluation of a source in the place of those of the one before."""
    keys = [key for key in figures if not key.endswith(REASON)]
    numbers = [key for key in keys if figures[key] is None or isinstance(figures[key], int | float)]
    rows = pd.DataFrame(
        {
            "key": numbers,
            "value": pd.array([None if figures[key] is None else float(figures[key]) for key in numbers], "Float64"),
            "reason": [figures.get(key + REASON) for key in numbers],
        }
    )
    now = datetime.now(UTC).replace(tzinfo=None)
    about = {"source": source, "data_version": data_version, "evaluated_at": now}
    with writing(warehouse) as connection, transaction(connection):
        connection.execute("DELETE FROM nodes.evaluation_figures WHERE source = $source", {"source": source}).fetchall()
        insert_rows(connection, "nodes.evaluation_figures", rows, about)


def read_scores(warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The latest ranking of a source, by aspect (`all` first), the best first; is_emulated of each node beside it."""
    return fetch(
        warehouse,
        """
        WITH emulated AS (
            SELECT node, coalesce(bool_or(is_emulated), false) AS is_emulated
            FROM nodes.executions WHERE source = $source GROUP BY node
        )
        SELECT scores.*, coalesce(is_emulated, false) AS is_emulated
        FROM nodes.scores AS scores LEFT JOIN emulated USING (node)
        WHERE source = $source ORDER BY aspect <> 'all', aspect, rank, score DESC, node
        """,
        {"source": source},
    )


def read_watched(warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The nodes of a source, those that stand out by slow executions first."""
    return fetch(warehouse, "SELECT * FROM nodes.watched WHERE source = $source ORDER BY place", {"source": source})


def has_answers(warehouse: Warehouse, source: str, key: str) -> bool:
    """Whether the answers about a source rest on just this."""
    found = fetch(
        warehouse,
        "SELECT count(*) AS n FROM nodes.rankings WHERE source = $source AND key = $key",
        {"source": source, "key": key},
    )
    return bool(found["n"].iloc[0])


def read_overview(warehouse: Warehouse, source: str) -> dict[str, Any]:
    """What the answers about a source come to, by the names of `Ranked`, without its model."""
    rows = fetch(
        warehouse,
        """
        SELECT (SELECT count(*) FROM nodes.scores WHERE source = $source AND aspect = 'all') AS n_nodes,
            (SELECT count(*) FROM nodes.executions WHERE source = $source) AS n_executions,
            coalesce((SELECT n_left_out FROM nodes.rankings WHERE source = $source), 0) AS n_left_out,
            (SELECT list(node ORDER BY score DESC, node) FROM nodes.scores
                WHERE source = $source AND aspect = 'all' AND rank = 1) AS best,
            (SELECT arg_min(node, place) FROM nodes.watched WHERE source = $source AND stands_out) AS most_suspicious
        """,
        {"source": source},
    )
    row = rows.iloc[0]
    suspicious = row["most_suspicious"]
    return {
        **{name: int(row[name]) for name in ("n_nodes", "n_executions", "n_left_out")},
        "best": [str(node) for node in row["best"]] if hasattr(row["best"], "__len__") else [],
        "most_suspicious": suspicious if isinstance(suspicious, str) else "",
    }


def read_decisions(warehouse: Warehouse, source: str, model_id: str) -> pd.DataFrame:
    """What a model made of each metric, by benchmark type and name."""
    return fetch(
        warehouse,
        "SELECT * FROM nodes.decisions WHERE source = $source AND model_id = $model_id ORDER BY benchmark_type, metric",
        {"source": source, "model_id": model_id},
    )


def _marked(rows: pd.DataFrame, counted: frozenset[tuple[str, str]], may_be_endless: tuple[str, ...]) -> pd.DataFrame:
    """With is_counted, and endless numbers of executions as missing ones."""
    if rows.empty:
        return rows
    endless = {name: rows[name].astype(np.float64).replace([np.inf, -np.inf], np.nan) for name in may_be_endless}
    pairs = zip(rows["type"], rows["metric"], strict=True)
    return rows.assign(is_counted=[pair in counted for pair in pairs], **endless).rename(columns=TYPE)


def insert_rows(connection: Connection, table: str, rows: pd.DataFrame, about: Mapping[str, Any]) -> None:
    """Append rows to a table of nodes, each with the columns of `about` beside its own; none is nothing to do."""
    if rows.empty:
        return
    if "machine_type" in rows:
        rows = rows.assign(machine_type=rows["machine_type"].replace("", None))
    connection.register("new_rows", pa.Table.from_pandas(rows, preserve_index=False))
    told = ", ".join(f"${name} AS {name}" for name in about)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT {told}, * FROM new_rows", dict(about)).fetchall()
    connection.unregister("new_rows")
