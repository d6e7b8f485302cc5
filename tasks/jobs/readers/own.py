"""whorl's own job log: Parquet or CSV with the column names of jobs.runs.

Needed: run_id, name or group_key, started_at or submitted_at, runtime_s or ended_at. Times are timestamps, ISO text
or epoch seconds; one without a zone is of params.time_zone, UTC if that is empty. Unknown columns are ignored and
logged; params.columns says what ours are called in the file. CSV has one header line and a comma, a semicolon or
a tab between fields; an empty field is missing. Lists (vertices, skyline, skus) need Parquet."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import get_args

import numpy as np

from tasks.jobs.columns import COLUMNS
from tasks.jobs.params import Measured, ReadParams, dimension_of
from tasks.jobs.readers.own_batch import Batch
from tasks.jobs.readers.own_csv import csv_batches, split_header
from tasks.jobs.readers.own_parquet import MAGIC, parquet_batches
from tasks.jobs.readers.own_values import to_runs, unit_of
from tasks.jobs.vetting import vet_runs
from tasks.reading import Chunk, all_refusals, open_plain, refusals
from tasks.times import check_zone

logger = logging.getLogger(__name__)
ENOUGH_NAMES = 3  # of our columns in a header line, run_id among them, that tell our CSV from others


@dataclass(frozen=True)
class OwnReader:
    """Reads whorl's own Parquet and CSV."""

    name: str = "own"
    version: int = 3  # 2: the columns of CONDITIONS; 3: statuses in other people's words, units in names
    ids_hold_names: bool = False
    title: str = "whorl's own columns (.parquet, .csv, .csv.gz)"
    endings: tuple[str, ...] = (".parquet", ".csv", ".csv.gz")

    def sniff(self, head: bytes, path: str) -> bool:  # noqa: ARG002
        """Any Parquet file, and text whose first line names our columns."""
        if head.startswith(MAGIC):
            return True
        first = next((line for line in head.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()), b"")
        names, _ = split_header(first.decode("utf-8", "replace"))
        return "run_id" in names and sum(name in COLUMNS for name in names) >= ENOUGH_NAMES

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """See Reader.read; raises BadSetting for a time zone that does not exist."""
        check_zone(params.time_zone or "UTC")
        with open_plain(path) as stream:
            is_parquet = stream.read(len(MAGIC)) == MAGIC
        batches = (parquet_batches if is_parquet else csv_batches)(path, params.columns, params.limits)
        now = datetime.now(UTC).replace(tzinfo=None)
        units = {
            ours: unit for ours in get_args(Measured) if (unit := unit_of(path, ours, params)) != dimension_of(ours)
        }
        for ours in units.keys() - params.units:
            logger.warning(
                "%s: '%s' is read in %s, as its name says; if it is not: --unit %s=%s",
                path, params.columns[ours], units[ours], ours, "B" if dimension_of(ours) == "bytes" else "s",
            )  # fmt: skip
        for batch in batches:
            yield _chunk(batch, params, units, now)


def _chunk(batch: Batch, params: ReadParams, units: Mapping[str, str], now: datetime) -> Chunk:
    rows, faults = to_runs(batch.table, params, units)
    bad = [row for row, fault in enumerate(faults) if fault]
    unread = refusals(batch.places[bad], [faults[row] for row in bad], [batch.raw(row) for row in bad])
    chunk = vet_runs(rows.assign(place=batch.places).drop(index=bad), params, now)
    at = np.searchsorted(batch.places, chunk.refused["place"])
    vetoed = refusals(chunk.refused["place"], chunk.refused["reason"].to_list(), [batch.raw(int(row)) for row in at])
    return Chunk(chunk.rows, all_refusals([batch.refused, unread, vetoed]), {})
