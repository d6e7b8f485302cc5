"""The files of a recording: each finished run on disk at once, and in time put together in parts.

    finished/ID.parquet     a run that is in no part yet: it outlives a kill
    KIND-NNNN.parquet       a part, of at most 2 MB; how it was recorded stands in its metadata as JSON

Every file appears whole or not at all. A run that a part holds already (we were killed between the two) is not written
twice."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from tasks.errors import BadInput, BadSetting
from tasks.intake.tables import RECORD_KEY
from tasks.params import Params

SPOOL = "finished"  # folder of the files of single runs
STARTED = "started_at"
CLEAN = "clean"  # what became of a run that nothing disturbed
EXPECTED = "a part file of the recorder"
MOST_BYTES = 2_000_000
LEVEL = 9  # of compression
PART_S = 1_200.0  # between two parts: what a lost disk can cost
MOST_WAITING = 60  # runs; they are read again when a part is written
Record = dict[str, Any]
Key = tuple[Any, ...]
Rows = tuple[pa.Table, Record]  # of a file, with how they were recorded


def write_table(path: Path, table: pa.Table, record: Mapping[str, Any]) -> None:
    """Write a file that appears whole or not at all. record: how its rows were made, kept as metadata."""
    temporary = path.with_suffix(".tmp")
    kept = table.replace_schema_metadata({RECORD_KEY: json.dumps(dict(record)).encode()})
    pq.write_table(kept, temporary, compression="zstd", compression_level=LEVEL)
    with temporary.open("rb") as handle:
        os.fsync(handle.fileno())
    temporary.replace(path)


def read_table(path: Path, columns: Sequence[str] | None = None, *, expected: str = EXPECTED) -> Rows:
    """The rows of a file of a recorder, and its record. Raises BadInput."""
    try:
        file = pq.ParquetFile(path)
        table = file.read(list(columns) if columns is not None else None)
        if columns is not None:
            table = table.select(list(columns))  # KeyError for one that is not there
        return table, json.loads((file.schema_arrow.metadata or {})[RECORD_KEY])
    except (pa.ArrowException, OSError, KeyError, ValueError) as problem:
        message = " ".join(str(problem).split())
        raise BadInput(path, f"cannot be read ({message})", expected, "move it away") from problem


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file of JSON that appears whole or not at all."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(dict(content), indent=1) + "\n")
    temporary.replace(path)


def deciding(params: Params, unimportant: frozenset[str]) -> Record:
    """The parameters that decide a campaign: not how long a call goes on, nor where its scratch folder is."""
    return params.model_dump(mode="json", exclude=set(unimportant))


def check_same(path: Path, record: Record, params: Params, unimportant: frozenset[str], plan: str) -> None:
    """Raises BadSetting if a file belongs to another campaign than these parameters and this plan (its digest) make.

    What a campaign of an older recorder does not say it had by default."""
    ours, theirs = deciding(params, unimportant), record.get("params") or {}
    try:
        theirs = deciding(type(params).model_validate(theirs), unimportant)
    except ValidationError:  # a parameter that there is no more
        theirs = {key: theirs.get(key) for key in ours}
    differing = sorted(key for key in ours if theirs[key] != ours[key])
    if differing or record.get("plan", plan) != plan:
        what = ", ".join(differing) or "another plan, by another version of whorl"
        raise BadSetting(
            f"{path}: belongs to a campaign with other parameters ({what}); expected the same ones to continue it; "
            "use another folder or move its parts away"
        )


@dataclass
class Parts:
    """The files of one recording.

    kinds: how the names of its parts begin, in the order in which they are read; facts: key of the record that holds
    what is known of each run, by id; kind_of: of the file of a run, from its rows and record, by default the second
    kind for what was disturbed; record_of: of a part, from those of its runs, which facts are added to; key: columns
    that name a run; every_s, most_waiting: the longest time and the most runs until the next part is written."""

    folder: Path
    kinds: tuple[str, ...]
    facts: str = "runs"
    kind_of: Callable[[pa.Table, Record], str] | None = None
    record_of: Callable[[Sequence[Record]], Record] | None = None
    key: tuple[str, ...] = ("run_id",)
    every_s: float = PART_S
    most_waiting: int = MOST_WAITING
    due_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.due_s = time.monotonic() + self.every_s

    def paths(self) -> list[Path]:
        """The parts, kind by kind, each in the order of its numbers."""
        return part_paths(self.folder, self.kinds)

    def spooled(self) -> list[Path]:
        """The files of runs that are in no part yet."""
        return sorted((self.folder / SPOOL).glob("*.parquet"))

    def recorded(self, columns: Sequence[str] = ()) -> Iterator[tuple[Path, pa.Table, Record]]:
        """Every file, parts first: its path, the columns that name its runs and these, and its record.

        Raises BadInput."""
        for path in (*self.paths(), *self.spooled()):
            yield path, *read_table(path, (*self.key, *columns))

    def keep(self, name: str, table: pa.Table, record: Record) -> None:
        """Write a finished run down, and parts when they are due. name: of its file."""
        spool = self.folder / SPOOL
        spool.mkdir(parents=True, exist_ok=True)
        write_table(spool / f"{name}.parquet", table, record)
        if time.monotonic() >= self.due_s or len(self.spooled()) >= self.most_waiting:
            self.write()

    def write(self) -> None:
        """Put all finished runs into the next part of their kind, several if one would be too large.

        Runs of two campaigns, or of a campaign and of calls without a plan, do not share a part."""
        for stale in self.folder.glob("*.large"):
            stale.unlink()
        spooled = self.spooled()
        held = {key for path in self.paths() for key in self._keys(read_table(path, self.key)[0])} if spooled else set()
        files = [rows for path in spooled if not held & self._keys((rows := read_table(path))[0])]
        files.sort(key=lambda rows: rows[0][STARTED][0].as_py())
        for kind in self.kinds:
            for plan in dict.fromkeys(record.get("plan") for _, record in files):
                self._write(kind, [rows for rows in files if rows[1].get("plan") == plan and self._kind(*rows) == kind])
        for path in spooled:
            path.unlink()
        self.due_s = time.monotonic() + self.every_s

    def close(self) -> None:
        """Write what is left, and remove the folder of single runs."""
        self.write()
        shutil.rmtree(self.folder / SPOOL, ignore_errors=True)

    def _keys(self, table: pa.Table) -> set[Key]:
        return set(zip(*(table[name].to_pylist() for name in self.key), strict=True))

    def _kind(self, table: pa.Table, record: Record) -> str:
        if self.kind_of:
            return self.kind_of(table, record)
        about = next(iter(record[self.facts].values()))  # of two at once, both have the same
        return self.kinds[bool(about["status"] != CLEAN)]

    def _write(self, kind: str, runs: Sequence[Rows]) -> None:
        """One part, or each half on its own if it is too large."""
        if not runs:
            return
        path = self.folder / f"{kind}-{max(_numbers(self.folder, kind), default=0) + 1:04d}.parquet"
        waiting = path.with_suffix(".large")
        records = [record for _, record in runs]
        record = self.record_of(records) if self.record_of else dict(records[-1])
        if self.facts in record:
            record[self.facts] = {run: about for run_record in records for run, about in run_record[self.facts].items()}
        write_table(waiting, pa.concat_tables([table for table, _ in runs], promote_options="default"), record)
        if waiting.stat().st_size > MOST_BYTES and len(runs) > 1:
            waiting.unlink()
            self._write(kind, runs[: len(runs) // 2])
            self._write(kind, runs[len(runs) // 2 :])
        else:
            waiting.replace(path)


def part_paths(folder: Path, kinds: Sequence[str]) -> list[Path]:
    """The parts of a folder, kind by kind, each in the order of its numbers."""
    return [path for kind in kinds for _, path in sorted(_numbers(folder, kind).items())]


def _numbers(folder: Path, kind: str) -> dict[int, Path]:
    named = {path.stem.removeprefix(f"{kind}-"): path for path in folder.glob(f"{kind}-*.parquet")}
    return {int(number): path for number, path in named.items() if number.isdecimal()}
