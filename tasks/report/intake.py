"""What was read into a source, what was refused and why, and the alarms that were raised: the same for every word."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pandas as pd

from tasks.report.result import (
    Column,
    Result,
    Section,
    State,
    command,
    count,
    item_href,
    moment,
    records,
    sentence,
    table,
)
from tasks.warehouse.connection import Connection
from tasks.warehouse.sources import data_version

FILES = """
    SELECT origin, reader, n_read, n_kept, n_quarantined, landed_at
    FROM ops.files WHERE word = $word AND source = $source ORDER BY ordered_at, batch_id
"""
# Reasons that differ only in numbers and ids are one reason.
REASONS = """
WITH refused AS (
    SELECT
        regexp_replace(
            regexp_replace(reason, '^run id .* stands again in row \\d+', 'a run id stands again in another row'),
            '\\d+', '…', 'g'
        ) AS reason,
        origin, place
    FROM ops.quarantine JOIN ops.files USING (batch_id, word, source)
    WHERE word = $word AND source = $source
)
SELECT reason, count(*) AS n, arg_min(origin, (origin, place)) AS origin, arg_min(place, (origin, place)) AS place
FROM refused GROUP BY reason ORDER BY n DESC, reason
"""
ALARMS = """
    SELECT alarm_id, kind, subject, message, raised_at, {item} AS item, coalesce(
        json_extract_string(evidence, 'ended_at'),
        json_extract_string(evidence, 'known_at'),
        json_extract_string(evidence, 'until_at')
    )::TIMESTAMP AS ended_at
    FROM ops.alarms WHERE word = $word AND source = $source
    ORDER BY coalesce(ended_at, raised_at) DESC, alarm_id LIMIT $most
"""
# The job, node or workload that an alarm is of.
ALARM_ITEM = """coalesce(
    json_extract_string(evidence, 'group_key'), json_extract_string(evidence, 'node'),
    json_extract_string(evidence, 'workload'))"""
MOST_ALARMS = 1_000


def item_of(evidence: Mapping[str, Any]) -> str | None:
    """The same of the evidence of an alarm."""
    names = (evidence.get(key) for key in ("group_key", "node", "workload"))
    return next((str(name) for name in names if name is not None), None)


@dataclass(frozen=True)
class IntakeRows:
    """Rows of ops about one source, which what is known of it in each word adds to. files: by order; refused: reasons
    of quarantine; alarms: the latest first."""

    word: str
    source: str
    data_version: str
    files: pd.DataFrame
    refused: pd.DataFrame
    alarms: pd.DataFrame

    def command(self, verb: str, *more: str) -> str:
        """The command that makes what is missing."""
        return command("whorl", self.word, verb, "--source", self.source, *more)

    def result(
        self, answer: tuple[str, str, State], certainty: str, rests_on: str, method: str, **parts: Any
    ) -> Result:
        """All that is known of the source. answer: what to know, what to do, and the state; rests_on: its rows; parts:
        reasons, facts, notices and sections, one by one."""
        words, action, state = answer
        return Result(
            f"{self.word.title()}: {self.source}", words, certainty, made_of=f"source {self.source}, {rests_on}",
            again=shlex.join(["whorl", "report", self.word, "--source", self.source]), action=action, state=state,
            method=method, **{name: tuple(part) for name, part in parts.items()},
        )  # fmt: skip


def fetch_intake(connection: Connection, word: str, source: str) -> IntakeRows:
    """What the sections need."""
    values = {"word": word, "source": source}
    files, refused = (connection.execute(sql, values).df() for sql in (FILES, REASONS))
    alarms = connection.execute(ALARMS.format(item=ALARM_ITEM), values | {"most": MOST_ALARMS}).df()
    return IntakeRows(word, source, data_version(connection, word, source), files, refused, alarms)


def file_name(origin: object) -> str:
    """The last part of a path or address."""
    return sentence(PurePosixPath(str(origin).rstrip("/")).name or origin)


def intake_sections(intake: IntakeRows, no_alarm: str, item: str = "") -> Iterator[Section]:
    """Alarms, files and quarantine. no_alarm: what is said without any; item: address of the page of what an
    alarm is of."""
    rows = [
        row
        | {"message": sentence(row["message"])}
        | {"at": row["ended_at"] if pd.notna(row["ended_at"]) else row["raised_at"]}
        | ({"message.href": item_href(item, row["item"])} if item and isinstance(row["item"], str) else {})
        for row in records(intake.alarms)
    ]
    alarms = table(rows, ("message", "what happened"), ("kind", "kind"), ("at", "when (UTC)", moment), name="alarms")
    yield Section("Alarms", "" if rows else f"{no_alarm}: {intake.command('watch')} looks for some.",
                  tables=(alarms,) if rows else ())  # fmt: skip
    files = table(
        records(intake.files), Column("origin", "file", file_name), ("reader", "reader"),
        ("n_read", "rows read", count), ("n_kept", "kept", count), ("n_quarantined", "quarantined", count),
        ("landed_at", "read (UTC)", moment), name="files",
    )  # fmt: skip
    why = table(
        records(intake.refused), Column("reason", "reason", sentence), ("n", "rows", count),
        Column("origin", "first of them in", file_name), ("place", "row", count), title="Why rows are in quarantine",
        name="quarantine",
    )  # fmt: skip
    n, words = len(intake.files), "" if len(intake.refused) else "No row is in quarantine."
    evidence = f"{n:,} file{'' if n == 1 else 's'}, data version {intake.data_version}"
    yield Section("What was read", words, evidence, tables=(files, why))
