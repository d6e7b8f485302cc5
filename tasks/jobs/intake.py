"""From a job log to a landed batch: find its reader, group its rows, write it down once."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import BadInput, quoting_nothing
from tasks.jobs.columns import RUNS_SCHEMA
from tasks.jobs.grouping import group_keys
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.pseudonyms import pseudonymise
from tasks.jobs.readers import READERS, Reader, detect
from tasks.jobs.readers.spark_files import is_rolled, parts_of, without_parts
from tasks.jobs.spool import Spool
from tasks.progress import report_progress
from tasks.pseudonyms import load_key, without_names
from tasks.reading import Chunk, guarded
from tasks.source_names import checked_source
from tasks.storage import storage_of
from tasks.tally import Preview, Tally
from tasks.warehouse import landing
from tasks.warehouse.place import Warehouse

WORD = "jobs"
GROUPING_VERSION = 1  # raise it when the same rows get other group keys
NO_OPTION = ("limits", "future_slack_s", "prefect_api")  # whether and how a log is read, not what its rows are
REMOTE = ("http://", "https://")


@dataclass(frozen=True, kw_only=True)
class LogPreview(Preview):
    """What a log would give. Shares (0 to 1) are of the kept rows, by how often their job stands in this log."""

    n_groups: int
    recurring_share: float
    support_3_share: float
    support_20_share: float


@dataclass(frozen=True)
class Intake:
    """How a log is to be read. reader: a name from READERS, or empty to find it out."""

    source: str
    reader: str
    read: ReadParams
    group: GroupParams


def find_logs(paths: list[str]) -> list[str]:
    """The files behind the paths: a folder stands for the files in it that some reader knows, in order.

    Raises BadInput for a path that does not exist and for a folder without a readable file."""
    found: list[str] = []
    for path in paths:
        found += [path] if path.startswith(REMOTE) else _files_in(path)
    return list(dict.fromkeys(found))


def _files_in(path: str) -> list[str]:
    fs, root = storage_of(path)
    if not fs.exists(root):
        raise BadInput(path, "no such file or folder", "a job log", "check the path")
    if not fs.isdir(root) or is_rolled(root):
        return [path]
    endings = tuple(ending for reader in READERS.values() for ending in reader.endings)
    names = sorted(without_parts([str(name) for name in fs.find(root)]))
    logs = [name for name in names if name.endswith(endings) or READERS["spark"].sniff(b"", name)]
    files = [fs.unstrip_protocol(name).removeprefix("file://") for name in logs]
    if not files:
        raise BadInput(
            path, f"{len(names)} files, none a job log", f"files that end in {', '.join(endings)}", "name one"
        )
    return files


def begin_log(path: str, intake: Intake) -> None:
    """Read the first rows of a log and drop them. Raises BadInput for a file that is wrong as a whole."""
    with quoting_nothing(intake.read.pseudonymise):
        next(iter(_reader(path, intake).read(path, intake.read)), None)


def land_log(warehouse: Warehouse, path: str, intake: Intake) -> landing.Batch:
    """Read one log into the landing folder; the same log read in the same way is found there and not read again.

    Raises BadInput for a file that is wrong as a whole; single bad rows go to the quarantine."""
    checked_source(intake.source)
    with quoting_nothing(intake.read.pseudonymise):
        reader = _reader(path, intake)
        key = load_key(warehouse.home) if intake.read.pseudonymise else None
        return _spooled(warehouse, path, intake, reader, _grouped(reader, key, path, intake))


def preview_log(home: Path, path: str, intake: Intake) -> LogPreview:
    """Read a whole log as an ingest would, and count; memory grows with the number of jobs, not of rows.

    Raises BadInput for a file that is wrong as a whole."""
    with quoting_nothing(intake.read.pseudonymise):
        reader, tally = _reader(path, intake), Tally(WORD)
        key = load_key(home, is_kept=False) if intake.read.pseudonymise else None
        support: Counter[str] = Counter()
        for chunk in tally.counted(_grouped(reader, key, path, intake)):
            support.update(chunk.rows["group_key"])
    shares = [sum(n for n in support.values() if n >= least) / (tally.n_kept or 1) for least in (2, 3, 20)]
    return LogPreview(
        **vars(tally.preview(path, reader.name)),
        n_groups=len(support),
        recurring_share=shares[0],
        support_3_share=shares[1],
        support_20_share=shares[2],
    )


def _spooled(warehouse: Warehouse, path: str, intake: Intake, reader: Reader, chunks: Iterator[Chunk]) -> landing.Batch:
    """Of an address the rows are kept first: its hash is theirs."""
    if not path.startswith(REMOTE):
        return _landed(warehouse, path, intake, reader, _sha256_of(path), chunks)
    with Spool(warehouse.home, path, max_bytes=intake.read.limits.max_bytes) as spool:
        for chunk in chunks:
            spool.write(chunk)
        return _landed(warehouse, path, intake, reader, spool.sha256, spool.read())


def _landed(
    warehouse: Warehouse, path: str, intake: Intake, reader: Reader, sha256: str, chunks: Iterator[Chunk]
) -> landing.Batch:
    origin = landing.Origin(
        word=WORD,
        source=intake.source,
        reader=reader.name,
        reader_version=f"{reader.version}.{GROUPING_VERSION}",
        options=_options(intake),
        path=f"pseudonymised-{sha256[:12]}" if intake.read.pseudonymise else path,
        sha256=sha256,
    )
    return landing.land(
        warehouse.landing_folder,
        origin,
        {"runs": RUNS_SCHEMA},
        chunks,
        path=path,
        max_refused_share=intake.read.limits.max_refused_share,
    )


def _sha256_of(path: str) -> str:
    """Hash of a log's bytes; of a log in several files, over their hashes in their order."""
    if not is_rolled(path):
        return landing.sha256_of(path)
    return hashlib.sha256("".join(landing.sha256_of(part) for part in parts_of(path)).encode()).hexdigest()


def _reader(path: str, intake: Intake) -> Reader:
    if not intake.reader:
        return detect(path, intake.read.limits)
    if intake.reader not in READERS:
        raise BadInput(path, f"no reader {intake.reader!r}", f"one of {', '.join(READERS)}", "leave it out to find it")
    return READERS[intake.reader]


def _options(intake: Intake) -> dict[str, Any]:
    """What changes the rows that a file gives, as far as it differs from the default."""
    read = intake.read.model_dump(exclude=set(NO_OPTION), exclude_defaults=True)
    return {**read, **intake.group.model_dump(exclude_defaults=True)}


def _grouped(reader: Reader, key: bytes | None, path: str, intake: Intake) -> Iterator[Chunk]:
    n_read = 0
    for chunk in guarded(path, reader.read(path, intake.read)):
        rows, refused = chunk.rows, chunk.refused
        if key:
            rows = pseudonymise(rows, key, intake.group, with_ids=reader.ids_hold_names)
            refused = without_names(refused)
        n_read += len(rows) + len(refused)
        report_progress(f"reading {path}", n_read)
        yield Chunk(rows.assign(group_key=group_keys(rows, intake.group)), refused, chunk.tables)
