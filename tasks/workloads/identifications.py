"""What models said of runs, kept in workloads.identifications: of runs of the warehouse, of files, or of what runs now;
and the scheduled check that raises an alarm where it is not what should run, or unknown.

Looks at one machine, one after the other, are judged against what should have run; the same deviation going on is one
episode, and one alarm."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pandas as pd
import pyarrow as pa

from tasks.errors import BadInput, NotFound
from tasks.quantities import digits, share, utc_text
from tasks.warehouse.alarms import Alarm, raise_alarms
from tasks.warehouse.connection import fetch, fetch_arrow, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard
from tasks.warehouse.sources import insert_rows, now
from tasks.workloads.evaluate.items import cut
from tasks.workloads.params import TrainParams, WatchParams
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
TO_IDENTIFY = """
    SELECT run_id FROM workloads.runs AS runs
    WHERE source = $source
        AND ($which <> 'unlabelled' OR workload IS NULL)
        AND ($which <> 'new' OR NOT EXISTS (
            SELECT 1 FROM workloads.identifications AS known
            WHERE known.source = runs.source AND known.run_id = runs.run_id
                AND known.model_id = $model_id))
    ORDER BY run_id
"""
KNOWN = "SELECT run_id FROM workloads.runs WHERE source = $source"


def runs_to_identify(
    warehouse: Warehouse, source: str, model_id: str, run_ids: Sequence[str] | None, which: Which
) -> list[str]:
    """The named runs, or if none is named: new, those that this model has not identified; unlabelled; or all.

    Raises NotFound for a named run that the source does not have."""
    if not run_ids:
        parameters = {"source": source, "which": which, "model_id": model_id}
        return [str(run_id) for run_id in fetch(warehouse, TO_IDENTIFY, parameters)["run_id"]]
    known = set(fetch(warehouse, KNOWN, {"source": source})["run_id"])
    if missing := [run_id for run_id in run_ids if run_id not in known]:
        some = ", ".join(sorted(known)[:MOST_NAMED]) or "none"
        raise NotFound(f"run {missing[0]!r}: source {source!r} has no such run; it has {len(known):,}, such as {some}")
    return list(dict.fromkeys(run_ids))


def latest_labelled_run(warehouse: Warehouse, source: str) -> tuple[str, str]:
    """Id and label of the labelled run of a source that started last. Raises NotFound without one."""
    rows = fetch(
        warehouse,
        "SELECT run_id, workload FROM workloads.runs WHERE source = $source AND workload IS NOT NULL "
        "ORDER BY started_at DESC NULLS LAST, run_id DESC LIMIT 1",
        {"source": source},
    )
    if rows.empty:
        raise NotFound(f"source {source!r} has no labelled run of a workload")
    return str(rows["run_id"].iloc[0]), str(rows["workload"].iloc[0])


def write_identifications(
    warehouse: Warehouse, source: str, model_id: str, identifications: "Sequence[Identification]"
) -> None:
    """Write what a model says of some runs, in the place of what it said of them before, in one transaction."""
    records = [
        identification.record()
        | {
            "model_id": model_id,
            "nearest": identification.nearest[0].workload,
            "nearest_distance": identification.nearest[0].distance,
        }
        for identification in identifications
    ]
    rows = pa.Table.from_pylist(records, schema=SCHEMA)
    with writing(warehouse) as connection, transaction(connection):
        connection.execute(
            "DELETE FROM workloads.identifications WHERE source = $source "
            "AND model_id = $model_id AND list_contains($run_ids, run_id)",
            {"source": source, "model_id": model_id, "run_ids": rows["run_id"].to_pylist()},
        ).fetchall()
        insert_rows(connection, "workloads.identifications", rows, {"source": source, "identified_at": now()})


def read_identifications(warehouse: Warehouse, source: str, run_ids: Sequence[str] | None = None) -> pd.DataFrame:
    """What was last said of runs of a source, all or those named, by run, with label and machine of each.

    Columns: those of workloads.identifications but source, and label, machine, started_at, subject."""
    return fetch(
        warehouse,
        """SELECT found.* EXCLUDE (source), runs.workload AS label, runs.machine, runs.started_at,
            runs.conditions.subject AS subject
        FROM workloads.identifications AS found LEFT JOIN workloads.runs AS runs USING (source, run_id)
        WHERE source = $source AND ($run_ids IS NULL OR list_contains($run_ids, run_id))
        QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY identified_at DESC, model_id DESC) = 1
        ORDER BY run_id""",
        {"source": source, "run_ids": None if run_ids is None else list(run_ids)},
    )


@dataclass(frozen=True)
class Identified:
    """model_id: of the model in use. identifications: in the order of the runs. refused: of runs that cannot be
    compared with the model."""

    model_id: str
    identifications: "list[Identification]"
    refused: tuple[BadInput, ...]


def identify_each(runs: Sequence[Telemetry], card: ModelCard, model: "Model") -> Identified:
    """Identify each run; of a long trace what ran last, in a window as the model learned them."""
    from tasks.workloads.identify.identification import identify_all

    windows = TrainParams.model_validate(card.parameters["train"]).windows
    identifications, refused = [], []
    for run in runs:
        parts = cut([run], windows).items
        try:
            [answer] = identify_all([parts[-1].run if parts else run], model)
        except BadInput as error:
            refused.append(error)
        else:
            identifications.append(replace(answer, run_id=run.run_id))
    return Identified(card.model_id, identifications, tuple(refused))


logger = logging.getLogger(__name__)
WORD = "workloads"
MOST_LOOKS = 10_000  # of a machine, or a group: how far back an episode is followed
# The last identification of each run, in the order in which they ran, those without a time first.
HISTORY = """
WITH said AS (
    SELECT * FROM workloads.identifications WHERE source = $source
    QUALIFY row_number() OVER (PARTITION BY run_id ORDER BY identified_at DESC, model_id DESC) = 1
),
final AS (
    SELECT said.* EXCLUDE (source), coalesce(runs.machine, '') AS machine, runs.started_at,
        coalesce(runs.conditions.subject, '') AS subject, runs.workload AS label
    FROM said JOIN workloads.runs AS runs ON runs.source = $source AND runs.run_id = said.run_id
    QUALIFY row_number() OVER (
        PARTITION BY machine, subject ORDER BY started_at DESC NULLS LAST, said.run_id DESC) <= $most
)
SELECT * FROM final ORDER BY machine, subject, started_at NULLS FIRST, run_id
"""
Kind = Literal["as-expected", "unexpected-workload", "unknown-workload"]
OF_ALARM = (  # of an identification, as evidence
    "run_id", "label", "workload", "is_known", "confidence", "unknown_score", "nearest", "nearest_distance", "reasons",
    "model_id",
)  # fmt: skip


class Look(NamedTuple):
    """One identified run of a machine or a group. workload: None where it was unknown, or too unsure to count.

    label: what it says of itself, None for a run that was only looked at."""

    run_id: str
    started_at: datetime | None
    workload: str | None
    label: str | None = None


class Verdict(NamedTuple):
    """What a look means. expected: what may run, empty if nobody could say. since: first look of the same episode."""

    look: Look
    kind: Kind
    expected: tuple[str, ...]
    since: Look


def verdicts_of(looks: Sequence[Look], expected: Sequence[str]) -> list[Verdict]:
    """Judge the looks at one machine, or at one group on it, in their order.

    expected: workloads that may run. If empty, a run with a label should be of it, and any other of what the last look
    found that was known and had no label: a change is told once and then counts as usual. An unknown workload is always
    an episode, which goes on until something known runs."""
    verdicts: list[Verdict] = []
    confirmed: str | None = None
    for look in looks:
        usual = look.label or confirmed
        may_run = tuple(expected) or ((usual,) if usual is not None else ())
        kind: Kind = "as-expected" if not may_run or look.workload in may_run else "unexpected-workload"
        if look.workload is None:
            kind = "unknown-workload"
        goes_on = bool(verdicts) and (verdicts[-1].kind, verdicts[-1].look.workload) == (kind, look.workload)
        verdicts.append(Verdict(look, kind, may_run, verdicts[-1].since if goes_on else look))
        if look.label is None:
            confirmed = look.workload or confirmed
    return verdicts


def watch_runs(warehouse: Warehouse, source: str, run_ids: Sequence[str], params: WatchParams) -> list[str]:
    """Raise an alarm for those of these identified runs that are not what should run; returns ids of the new alarms.

    The same deviation on the same machine, or in the same group on it, look after look, is one alarm."""
    looked_at = set(run_ids)
    [history] = fetch_arrow(warehouse, [HISTORY], {"source": source, "most": MOST_LOOKS})
    alarms: dict[str, Alarm] = {}
    for _, rows in groupby(history.to_pylist(), lambda row: (row["machine"], row["subject"])):
        by_run = {row["run_id"]: row for row in rows}
        looks = []
        for run_id, row in by_run.items():
            is_sure = row["is_known"] and row["confidence"] >= params.min_confidence
            looks.append(Look(run_id, row["started_at"], row["workload"] if is_sure else None, row["label"]))
        for verdict in verdicts_of(looks, params.expected):
            if verdict.look.run_id in looked_at and verdict.kind != "as-expected":
                alarm = _alarm(source, verdict, by_run[verdict.look.run_id])
                alarms.setdefault(alarm.alarm_id, alarm)
    if not alarms:
        return []
    with writing(warehouse) as connection:
        raised = raise_alarms(connection, list(alarms.values()))
    logger.info(
        "%d deviations among %d runs of source %s, %d of them new", len(alarms), len(looked_at), source, len(raised)
    )
    return raised


def _alarm(source: str, verdict: Verdict, row: Mapping[str, Any]) -> Alarm:
    """The alarm of an episode: its subject is the run that it began with, so that it is raised once."""
    look, since = verdict.look, verdict.since
    machine, subject = row["machine"], row["subject"]
    where = (f" in {subject}" if subject else "") + (f" on {machine}" if machine else "")
    when = f" at {since.started_at:%Y-%m-%d %H:%M} UTC" if since.started_at else ""
    should = " or ".join(name for name in verdict.expected if name != row["workload"])
    instead = f", not {should}" if should else ""
    sure = f"{share(row['confidence'])} sure"
    nearest = f"{row['nearest']} (distance {digits(row['nearest_distance'], 3)})"
    if verdict.kind == "unexpected-workload":
        what = f"{look.workload} runs{where}{instead}: {sure}"
    elif row["is_known"]:
        what = f"it is unsure what runs{where}{instead}: most likely {row['workload']}, {sure}"
    else:
        what = f"an unknown workload runs{where}{instead}: {sure}, nearest is {nearest}"
    message = f"{what}; since run {since.run_id}{when}"
    evidence = {name: row[name] for name in OF_ALARM} | {
        "machine": machine or None,
        "subject": subject or None,
        "expected": list(verdict.expected),
        "since_run_id": since.run_id,
        "started_at": utc_text(since.started_at) if since.started_at else None,
        "known_at": utc_text(look.started_at) if look.started_at else None,
    }
    return Alarm(WORD, source, verdict.kind, since.run_id, message, evidence)
