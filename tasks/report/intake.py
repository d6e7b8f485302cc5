"""What was read into a source, what was refused and why, and the alarms that were raised: the same for every word."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import pandas as pd

from tasks.report.result import Column, Section, Table, count, moment, numbers, records, sentence
from tasks.warehouse.connection import Connection
from tasks.warehouse.versions import data_version

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
    SELECT alarm_id, kind, subject, message, raised_at, coalesce(
        json_extract_string(evidence, 'ended_at'),
        json_extract_string(evidence, 'known_at'),
        json_extract_string(evidence, 'until_at')
    )::TIMESTAMP AS ended_at
    FROM ops.alarms WHERE word = $word AND source = $source
    ORDER BY coalesce(ended_at, raised_at) DESC, alarm_id LIMIT $most
"""
MOST_ALARMS = 1_000


@dataclass(frozen=True)
class Intake:
    """Rows of ops about one source. files: by order; reasons: of quarantine; alarms: the latest first."""

    word: str
    source: str
    data_version: str
    files: pd.DataFrame
    reasons: pd.DataFrame
    alarms: pd.DataFrame


def fetch_intake(connection: Connection, word: str, source: str) -> Intake:
    """What the sections need."""
    asked = {"word": word, "source": source}
    files, reasons = (connection.execute(sql, asked).df() for sql in (FILES, REASONS))
    alarms = connection.execute(ALARMS, asked | {"most": MOST_ALARMS}).df()
    return Intake(word, source, data_version(connection, word, source), files, reasons, alarms)


def file_name(origin: object) -> str:
    """The last part of a path or address."""
    return sentence(PurePosixPath(str(origin).rstrip("/")).name or origin)


def intake_sections(intake: Intake, no_alarm: str, watch: str) -> Iterator[Section]:
    """Alarms, files and quarantine. no_alarm: what is said without any; watch: the command that looks for them."""
    columns = (Column("message", "what happened"), Column("kind", "kind"), Column("at", "when (UTC)", moment))
    rows = [
        row
        | {
            "message": sentence(row["message"]),
            "at": row["ended_at"] if pd.notna(row["ended_at"]) else row["raised_at"],
        }
        for row in records(intake.alarms)
    ]
    yield Section(
        "Alarms", tables=(Table("", "", columns, rows, name="alarms"),), nothing=f"{no_alarm}: {watch} looks for some."
    )
    n = len(intake.files)
    of_files = (
        Column("origin", "file", file_name),
        Column("reader", "reader"),
        *numbers(("n_read", "rows read", count), ("n_kept", "kept", count), ("n_quarantined", "quarantined", count)),
        Column("landed_at", "read (UTC)", moment),
    )
    files = Table("", "", of_files, records(intake.files), name="files")
    why = Table(
        "Why rows are in quarantine",
        "",
        (
            Column("reason", "reason", sentence),
            Column("n", "rows", count, is_number=True),
            Column("origin", "first of them in", file_name),
            Column("place", "row", count, is_number=True),
        ),
        records(intake.reasons),
        name="quarantine",
    )
    words = "" if len(intake.reasons) else "No row is in quarantine."
    evidence = f"{n:,} file{'' if n == 1 else 's'}, data version {intake.data_version}"
    yield Section("What was read", words, evidence, tables=(files, why))
