"""Runs of the warehouse, of files, or of what runs now, identified by the model in use for a source, and
workloads.identifications: what models said."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import pandas as pd
import pyarrow as pa

from tasks.errors import BadInput, NotFound
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard
from tasks.workloads.evaluate.items import cut
from tasks.workloads.landed import fetch_runs
from tasks.workloads.models import model_in_use
from tasks.workloads.params import TrainParams
from tasks.workloads.telemetry import Telemetry

if TYPE_CHECKING:
    from tasks.workloads.identify.identification import Identification
    from tasks.workloads.identify.model import Model

Which = Literal["new", "unlabelled", "all"]
MOST_NAMED = 5
SCHEMA = pa.schema(
    [
        ("model_id", pa.string()), ("run_id", pa.string()), ("workload", pa.string()), ("is_known", pa.bool_()),
        ("confidence", pa.float64()), ("unknown_score", pa.float64()), ("nearest", pa.string()),
        ("nearest_distance", pa.float64()), ("reasons", pa.list_(pa.string())), ("proxy", pa.string()),
        ("statement", pa.string()), ("view", pa.string()),
        ("present", pa.list_(pa.struct([("workload", pa.string()), ("share", pa.float64()),
                                        ("probability", pa.float64())]))),
        ("foreign_share", pa.float64()), ("stolen_share", pa.float64()), ("surer", pa.list_(pa.string())),
    ]
)  # fmt: skip
ASKED = """
    SELECT run_id FROM workloads.runs AS runs
    WHERE source = $source
        AND ($which <> 'unlabelled' OR workload IS NULL)
        AND ($which <> 'new' OR NOT EXISTS (
            SELECT 1 FROM workloads.identifications AS known
            WHERE known.source = runs.source AND known.run_id = runs.run_id
                AND list_contains($model_ids, known.model_id)))
    ORDER BY run_id
"""
KNOWN = "SELECT run_id FROM workloads.runs WHERE source = $source"
LATEST = """
    SELECT run_id FROM workloads.runs WHERE source = $source
    ORDER BY started_at DESC NULLS LAST, run_id DESC LIMIT $n
"""


def runs_asked_for(
    warehouse: Warehouse, source: str, model_ids: Sequence[str], run_ids: Sequence[str] | None, which: Which
) -> list[str]:
    """The named runs, or if none is named: new, those that none of these models has identified; unlabelled; or all.

    Raises NotFound for a named run that the source does not have."""
    if not run_ids:
        asked = {"source": source, "which": which, "model_ids": list(model_ids)}
        return [str(run_id) for run_id in fetch(warehouse, ASKED, asked)["run_id"]]
    known = set(
        fetch(warehouse, "SELECT run_id FROM workloads.runs WHERE source = $source", {"source": source})["run_id"]
    )
    missing = [run_id for run_id in run_ids if run_id not in known]
    if missing:
        some = ", ".join(sorted(known)[:MOST_NAMED]) or "none"
        raise NotFound(f"run {missing[0]!r}: source {source!r} has no such run; it has {len(known):,}, such as {some}")
    return list(dict.fromkeys(run_ids))


def latest_runs(warehouse: Warehouse, source: str, n: int) -> list[str]:
    """The runs of a source that started last, the latest first."""
    return [str(run_id) for run_id in fetch(warehouse, LATEST, {"source": source, "n": n})["run_id"]]


def latest_labelled_run(warehouse: Warehouse, source: str) -> tuple[str, str]:
    """Id and label of the labelled run of a source that started last. Raises NotFound without one."""
    found = fetch(
        warehouse,
        "SELECT run_id, workload FROM workloads.runs WHERE source = $source AND workload IS NOT NULL "
        "ORDER BY started_at DESC NULLS LAST, run_id DESC LIMIT 1",
        {"source": source},
    )
    if found.empty:
        raise NotFound(f"source {source!r} has no labelled run of a workload")
    return str(found["run_id"].iloc[0]), str(found["workload"].iloc[0])


def write_identifications(
    warehouse: Warehouse,
    source: str,
    found: "Sequence[tuple[str, Identification]]",
    *,
    now: datetime | None = None,
) -> None:
    """Write what models say of some runs, in the place of what they said of them before, in one transaction.

    found: id of the model, and what it says."""
    rows = pa.Table.from_pylist([{"model_id": model_id, **_row(one)} for model_id, one in found], schema=SCHEMA)
    at = (now or datetime.now(UTC)).replace(tzinfo=None)
    with writing(warehouse) as connection, transaction(connection):
        connection.register("new_rows", rows)
        connection.execute(
            "DELETE FROM workloads.identifications WHERE source = $source "
            "AND (run_id, model_id) IN (SELECT run_id, model_id FROM new_rows)",
            {"source": source},
        ).fetchall()
        connection.execute(
            "INSERT INTO workloads.identifications BY NAME "
            "SELECT $source AS source, $at AS identified_at, * FROM new_rows",
            {"source": source, "at": at},
        ).fetchall()
        connection.unregister("new_rows")


def read_identifications(warehouse: Warehouse, source: str, run_ids: Sequence[str] | None = None) -> pd.DataFrame:
    """What was last said of runs of a source, all or those named, by run, with label and machine of each.

    Columns: those of workloads.identifications but source, and label, machine, started_at."""
    return fetch(
        warehouse,
        """SELECT found.* EXCLUDE (source), runs.workload AS label, runs.machine, runs.started_at
        FROM workloads.identifications AS found LEFT JOIN workloads.runs AS runs USING (source, run_id)
        WHERE source = $source AND ($run_ids IS NULL OR list_contains($run_ids, run_id))
        QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY identified_at DESC, model_id DESC) = 1
        ORDER BY run_id""",
        {"source": source, "run_ids": None if run_ids is None else list(run_ids)},
    )


def _row(one: "Identification") -> dict[str, object]:
    return {
        "run_id": one.run_id,
        "workload": one.workload,
        "is_known": one.is_known,
        "confidence": one.confidence,
        "unknown_score": one.unknown_score,
        "nearest": one.nearest[0].workload,
        "nearest_distance": one.nearest[0].distance,
        "reasons": list(one.reasons),
        "proxy": one.proxy,
        "statement": one.statement,
        "view": one.view,
        "present": [part._asdict() for part in one.present],
        "foreign_share": one.foreign_share,
        "stolen_share": one.stolen_share,
        "surer": list(one.surer),
    }


@dataclass(frozen=True)
class Identified:
    """model_id: of the model in use. found: what it says, in the order of the runs. refused: of runs that cannot be
    compared with the model."""

    model_id: str
    found: "list[Identification]"
    refused: tuple[BadInput, ...]


def identify_source(warehouse: Warehouse, source: str, run_ids: Sequence[str] | None, which: Which) -> Identified:
    """Identify runs of a source by its model in use, and write workloads.identifications; twice changes nothing.

    run_ids: None or empty for those that `which` says. A run that lacks the counters of the model is listed, and does
    not hold up the others. Raises NotFound without a model or for a run that is not there, BadInput for a broken
    model."""
    card, model = model_in_use(warehouse, source)
    asked = runs_asked_for(warehouse, source, [card.model_id], run_ids, which)
    found = identify_each(fetch_runs(warehouse, source, asked) if asked else [], card, model)
    if found.found:
        write_identifications(warehouse, source, [(card.model_id, one) for one in found.found])
    return found


def identify_runs(warehouse: Warehouse, source: str, runs: Sequence[Telemetry]) -> Identified:
    """Identify runs in memory by the model in use for a source; nothing is kept. Raises NotFound, BadInput."""
    return identify_each(runs, *model_in_use(warehouse, source))


def identify_each(runs: Sequence[Telemetry], card: ModelCard, model: "Model") -> Identified:
    """Identify each run; of a long trace what ran last, in a window as the model learned them."""
    from tasks.workloads.identify.identification import identify_all

    windows = TrainParams.model_validate(card.parameters["train"]).windows
    found, refused = [], []
    for run in runs:
        pieces = cut([run], windows).items
        try:
            [answer] = identify_all([pieces[-1].run if pieces else run], model)
        except BadInput as error:
            refused.append(error)
        else:
            found.append(replace(answer, run_id=run.run_id))
    return Identified(card.model_id, found, tuple(refused))
