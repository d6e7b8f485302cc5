"""The tables of verdicts, states and fingerprints: written as a whole for a source, and read back."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pandas as pd

from tasks.nodes.answer_rows import insert_rows
from tasks.nodes.detect.alarms import KINDS, Watched
from tasks.nodes.detect.reasons import reason_of_row
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    from tasks.nodes.perona.trained import Told

TABLES = ("fingerprints", "fingerprint_scores", "fingerprintings")
JUDGED = """
SELECT executions.node, executions.aspect, own.execution_id, executions.started_at, own.probability, own.is_flagged,
    executions.is_contaminated, executions.duration_s
FROM nodes.verdicts AS own JOIN nodes.executions AS executions USING (source, execution_id)
WHERE source = $source ORDER BY executions.started_at NULLS LAST, own.execution_id
"""


def write_fingerprints(warehouse: Warehouse, source: str, model_id: str, told: "Told", about: dict[str, Any]) -> None:
    """Put what a model says of a source in the place of what was there, all of it or none.

    about: key, data_version and n_executions, as in nodes.fingerprintings."""
    ranked = told.ranking.table.rename(columns={"place": "rank"})
    columns = ["aspect", "node", "machine_type", "score", "low", "high", "rank", "n_executions", "n_types"]
    counts = {
        "n_fingerprints": len(told.executions),
        "shown": told.shown,
        "fingerprinted_at": _now(),
    }
    frames = {
        "fingerprints": told.executions,
        "fingerprint_scores": ranked[columns].assign(is_tied=ranked["n_tied"] > 1),
        "fingerprintings": pd.DataFrame([about | counts]),
    }
    with writing(warehouse) as connection, transaction(connection):
        for name in TABLES:
            connection.execute(f"DELETE FROM nodes.{name} WHERE source = $source", {"source": source}).fetchall()
            insert_rows(connection, f"nodes.{name}", frames[name], {"source": source, "model_id": model_id})


def write_verdicts(
    warehouse: Warehouse,
    source: str,
    model_id: str,
    verdicts: pd.DataFrame,
    reasons: pd.DataFrame,
    about: dict[str, Any],
) -> None:
    """Put verdicts on a source, their reasons and what they rest on in the place of those before, all or none.

    about: the columns of nodes.judgings but for source and model_id."""
    frames = {
        "verdicts": verdicts.drop(columns="score"),
        "verdict_reasons": reasons,
        "judgings": pd.DataFrame([about]),
    }
    with writing(warehouse) as connection, transaction(connection):
        for name, frame in frames.items():
            connection.execute(f"DELETE FROM nodes.{name} WHERE source = $source", {"source": source}).fetchall()
            insert_rows(connection, f"nodes.{name}", frame, {"source": source, "model_id": model_id})


def read_judging(warehouse: Warehouse, source: str) -> dict[str, Any] | None:
    """The row of nodes.judgings of a source; None before the first verdicts."""
    found = fetch(warehouse, "SELECT * FROM nodes.judgings WHERE source = $source", {"source": source})
    return {str(key): value for key, value in found.iloc[0].items()} if len(found) else None


def has_fingerprints(warehouse: Warehouse, source: str, key: str) -> bool:
    """Whether what stands there of a source rests on just this."""
    found = fetch(
        warehouse,
        "SELECT count(*) AS n FROM nodes.fingerprintings WHERE source = $source AND key = $key",
        {"source": source, "key": key},
    )
    return bool(found["n"].iloc[0])


def read_fingerprinting(warehouse: Warehouse, source: str) -> dict[str, Any] | None:
    """The row of nodes.fingerprintings of a source; None before the first fingerprinting."""
    found = fetch(warehouse, "SELECT * FROM nodes.fingerprintings WHERE source = $source", {"source": source})
    return {str(key): value for key, value in found.iloc[0].items()} if len(found) else None


def read_judged(warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The verdicts of a source as alarms want them (alarms.NEEDED), and duration_s, in time order."""
    return fetch(warehouse, JUDGED, {"source": source})


def read_flagged(warehouse: Warehouse, source: str) -> set[str]:
    """The ids of the flagged executions of a source."""
    sql = "SELECT execution_id FROM nodes.verdicts WHERE source = $source AND is_flagged"
    return {str(one) for one in fetch(warehouse, sql, {"source": source})["execution_id"]}


def read_reasons(warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The reasons of flagged executions of a source, the worst first."""
    return fetch(
        warehouse,
        "SELECT * FROM nodes.verdict_reasons WHERE source = $source ORDER BY execution_id, place",
        {"source": source},
    )


def read_named(warehouse: Warehouse, source: str, what: str) -> pd.DataFrame:
    """The verdicts on an execution, or on all executions of a node, in time order; of both, the execution counts."""
    sql = """
    SELECT executions.node, executions.benchmark, own.execution_id, executions.started_at, own.probability,
        own.is_flagged, own.is_cold, own.by_labels
    FROM nodes.verdicts AS own JOIN nodes.executions AS executions USING (source, execution_id)
    WHERE source = $source AND (own.execution_id = $what OR executions.node = $what)
    ORDER BY executions.started_at NULLS LAST, own.execution_id
    """
    found = fetch(warehouse, sql, {"source": source, "what": what})
    is_meant = found["execution_id"] == what
    return found[is_meant] if is_meant.any() else found


def read_reasons_of(warehouse: Warehouse, source: str, ids: list[str]) -> dict[str, list[str]]:
    """The reasons of some executions in words, the most telling first."""
    sql = """
    SELECT * FROM nodes.verdict_reasons WHERE source = $source AND list_contains($ids, execution_id)
    ORDER BY execution_id, place
    """
    found: dict[str, list[str]] = {}
    for _, row in fetch(warehouse, sql, {"source": source, "ids": ids}).iterrows():
        found.setdefault(str(row["execution_id"]), []).append(reason_of_row(row).words())
    return found


def read_states_of(warehouse: Warehouse, source: str, node: str) -> list[str]:
    """A line for each aspect of a node that is not healthy, as the last watch left it."""
    sql = "SELECT aspect, state, since FROM nodes.states WHERE source = $source AND node = $node ORDER BY aspect"
    found = fetch(warehouse, sql, {"source": source, "node": node})
    shown = found[found["state"] != "healthy"].to_dict("records")
    return [f"{row['aspect']}: {row['state']} since {row['since']:%Y-%m-%d %H:%M} UTC" for row in shown]


def read_told(warehouse: Warehouse, source: str) -> set[str]:
    """The subjects of the alarms about the nodes of a source so far."""
    sql = "SELECT DISTINCT subject FROM ops.alarms WHERE word = 'nodes' AND source = $source"
    return {str(subject) for subject in fetch(warehouse, sql, {"source": source})["subject"]}


def read_open(warehouse: Warehouse, source: str) -> dict[str, tuple[str, str]]:
    """Node and aspect, by subject, of the alarms about the nodes of a source that nothing has cleared since."""
    sql = """
    SELECT subject, any_value(evidence) AS evidence FROM ops.alarms WHERE word = 'nodes' AND source = $source
    GROUP BY subject HAVING NOT bool_or(kind = $cleared) ORDER BY subject
    """
    found = fetch(warehouse, sql, {"source": source, "cleared": KINDS["cleared"]})
    each = zip(found["subject"], map(json.loads, found["evidence"]), strict=True)
    return {str(subject): (str(told["node"]), str(told["aspect"])) for subject, told in each}


def read_fingerprint_scores(warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The nodes of a source by their fingerprints, by aspect (`all` first), the best first."""
    return fetch(
        warehouse,
        "SELECT * FROM nodes.fingerprint_scores WHERE source = $source "
        "ORDER BY aspect <> 'all', aspect, rank, score DESC, node",
        {"source": source},
    )


def write_states(warehouse: Warehouse, source: str, model_id: str, watched: Watched, cost: pd.DataFrame) -> None:
    """Put the states of the nodes of a source in the place of those before. cost: of machine_time."""
    share = cost.set_index("node")["share"]
    states = watched.states.assign(
        is_excluded=watched.states["node"].isin(watched.excluded),
        cost_share=watched.states["node"].map(share).astype("float64"),
        watched_at=_now(),
    )
    with writing(warehouse) as connection, transaction(connection):
        connection.execute("DELETE FROM nodes.states WHERE source = $source", {"source": source}).fetchall()
        insert_rows(connection, "nodes.states", states, {"source": source, "model_id": model_id})


def read_states(warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The states of the nodes of a source, those that need looking at first."""
    return fetch(
        warehouse,
        "SELECT * FROM nodes.states WHERE source = $source "
        "ORDER BY list_position(['confirmed', 'suspected', 'cleared', 'healthy'], state), node, aspect",
        {"source": source},
    )


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
