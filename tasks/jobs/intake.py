"""From a job log to a landed batch: read, made pseudonymous where asked, grouped, written down once."""

import hashlib
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tasks.errors import BadInput, quoting_nothing, report_progress
from tasks.intake import readers
from tasks.intake.files import Chunk, Preview, Tally, guarded
from tasks.intake.pseudonyms import HOST, ID_BYTES, load_key, pseudonym, pseudonyms, without_names
from tasks.intake.readers import REMOTE, files_below, origin_of, reader_called, sha256_of_all
from tasks.jobs.columns import RUNS_SCHEMA, as_list_column
from tasks.jobs.grouping import group_keys, normalise_names
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers import READERS, Reader, detect
from tasks.jobs.readers.spark import is_rolled, parts_of, without_parts
from tasks.warehouse import landing
from tasks.warehouse.place import Warehouse


@contextmanager
def spooled(
    chunks: Iterable[Chunk], folder: Path, where: str, *, max_bytes: int
) -> Iterator[tuple[str, Iterator[Chunk]]]:
    """Hash of all rows and refused lines, as JSON (it does not depend on the version of a library), and the chunks
    again, one in memory at a time.

    They are kept in a file that has no name, so that a killed process leaves nothing, and is gone when the block ends.
    folder: on the disk that has the room; where: what an error names. Raises BadInput for chunks of more than
    max_bytes together."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with tempfile.TemporaryFile(dir=folder) as file:
        for chunk in chunks:
            digest.update(chunk.rows.to_json(orient="values", date_format="iso").encode())
            digest.update(chunk.refused.to_json(orient="values").encode())
            for frame in (chunk.rows, chunk.refused):
                table = pa.Table.from_pandas(frame, preserve_index=False)
                with pa.ipc.new_stream(file, table.schema) as stream:
                    stream.write_table(table)
            if file.tell() > max_bytes:
                problem = f"more than {max_bytes:,} bytes of rows"
                raise BadInput(where, problem, "a shorter history", "raise read.limits.max_bytes")
        yield digest.hexdigest(), _chunks_in(file)


def _chunks_in(file: IO[bytes]) -> Iterator[Chunk]:
    end = file.tell()
    file.seek(0)
    while file.tell() < end:
        rows, refused = (
            pa.ipc.open_stream(file)
            .read_all()
            .to_pandas(
                ignore_metadata=True,  # pandas cannot read its own of lists
                types_mapper=lambda kind: pd.ArrowDtype(kind) if pa.types.is_list(kind) else None,
            )
            for _ in ("rows", "refused")
        )
        yield Chunk(rows, refused, {})


HOST_FIELDS = {"vertices": "sku", "skus": "sku"}  # the same host in both gets the same pseudonym
NO_HOST = re.compile(r"profile \d+")  # what the reader of Spark calls a resource profile


def _without_hosts(column: pd.Series, name: str, field: str, key: bytes) -> pd.api.extensions.ExtensionArray:
    """A column of vertices or SKUs with pseudonyms in place of the hosts.

    Any SKU may be named after a host, whatever the reader; only what a reader of ours made up itself stays."""
    lists = pa.array(as_list_column(column, name))
    lists = lists.combine_chunks() if isinstance(lists, pa.ChunkedArray) else lists
    entries = pc.list_flatten(lists)
    names = pd.Series(pc.struct_field(entries, field).to_pandas(), dtype="str")
    hidden_names = pseudonyms(names, HOST, key).where(~names.str.fullmatch(NO_HOST).fillna(False), names)
    place = entries.type.get_field_index(field)
    fields = [pc.struct_field(entries, number) for number in range(entries.type.num_fields)]
    fields[place] = pa.array(hidden_names, type=pa.string(), from_pandas=True)
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    kept = pa.StructArray.from_arrays(fields, fields=list(entries.type), mask=pc.is_null(entries))
    return pd.arrays.ArrowExtensionArray(
        pa.ListArray.from_arrays(offsets, kept, type=lists.type, mask=pc.is_null(lists))
    )


DEFAULTS = GroupParams()


def pseudonymise(
    rows: pd.DataFrame, key: bytes, params: GroupParams = DEFAULTS, *, with_ids: bool = False
) -> pd.DataFrame:
    """The rows with pseudonyms of 12 hexadecimal digits for users, accounts, names, given keys and texts of features.

    with_ids: also for run ids and for the ids of matched runs, as ids hold names.

    A name is normalised first (with the parameters that group the rows), so that runs of one recurring job share
    one pseudonym and group_keys finds the same groups as before. What is missing stays missing."""
    replaced = {
        "user_name": list,
        "account": list,
        "name": lambda texts: normalise_names(texts, params),
        "group_key": list,
    }
    hidden = {column: pseudonyms(rows[column], column, key, to) for column, to in replaced.items() if column in rows}
    ids = [column for column in ("run_id", "matched_run_id") if with_ids and column in rows]
    hidden |= {column: pseudonyms(rows[column], "run_id", key, n_bytes=ID_BYTES) for column in ids}
    if "features" in rows:
        hidden["features"] = rows["features"].map(lambda text: _without_texts(text, key), na_action="ignore")
    lists = {name: field for name, field in HOST_FIELDS.items() if name in rows}
    listed = {name: _without_hosts(rows[name], name, field, key) for name, field in lists.items()}
    return rows.assign(**hidden, **listed)


def _without_texts(features: str, key: bytes) -> str:
    """A JSON object of features, its texts replaced: any of them may be a name."""
    values = json.loads(features).items()
    hidden = {name: pseudonym(value, "feature", key) if isinstance(value, str) else value for name, value in values}
    return json.dumps(hidden, ensure_ascii=False)


WORD = "jobs"
GROUPING_VERSION = 2  # raise it when the same rows get other group keys
NO_OPTION = ("limits", "future_slack_s")  # whether and how a log is read, not what its rows are


@dataclass(frozen=True, kw_only=True)
class LogPreview(Preview):
    """What a log would give. Shares (0 to 1) are of the kept rows, by how often their job stands in this log."""

    n_groups: int
    recurring_share: float
    support_3_share: float
    support_20_share: float


@dataclass(frozen=True)
class Intake(readers.Intake[ReadParams]):
    """How a log is to be read, and its runs grouped."""

    group: GroupParams


def find_logs(paths: list[str]) -> list[str]:
    """The files behind the paths: a folder stands for the files in it that some reader knows, in order.

    Raises BadInput for a path that does not exist and for a folder without a readable file."""
    endings = tuple(ending for reader in READERS.values() for ending in reader.endings)

    def logs(names: list[str]) -> list[str]:
        return [
            name
            for name in without_parts(names)
            if name.endswith(endings) or any(reader.sniff(b"", name) for reader in READERS.values())
        ]

    files: list[str] = []
    for path in paths:
        is_log = path.startswith(REMOTE) or is_rolled(path)
        files += [path] if is_log else files_below(path, "a job log", logs, ", ".join(endings))
    return list(dict.fromkeys(files))


def begin_log(path: str, intake: Intake) -> tuple[str, ...]:
    """What was understood of a log, by its first rows. Raises BadInput for a file that is wrong as a whole."""
    with quoting_nothing(intake.read.pseudonymise):
        chunk = next(guarded(path, _reader(path, intake).read(path, intake.read)), None)
    return chunk.understood if chunk and not intake.read.pseudonymise else ()


def land_log(warehouse: Warehouse, path: str, intake: Intake) -> landing.Batch:
    """Read one log into the landing folder; the same log read in the same way is found there and not read again.

    Raises BadInput for a file that is wrong as a whole; single bad rows go to the quarantine."""
    with quoting_nothing(intake.read.pseudonymise):
        reader = _reader(path, intake)
        key = load_key(warehouse.home) if intake.read.pseudonymise else None
        return _landed(warehouse, path, intake, reader, _grouped(reader, key, path, intake))


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


def _landed(warehouse: Warehouse, path: str, intake: Intake, reader: Reader, chunks: Iterator[Chunk]) -> landing.Batch:
    """Of an address the rows are kept first: its hash is theirs."""
    if not path.startswith(REMOTE):
        sha256 = sha256_of_all(parts_of(path))  # of a rolled log, its files
        return _land(warehouse, path, intake, reader, sha256, chunks)
    with spooled(chunks, warehouse.home, path, max_bytes=intake.read.limits.max_bytes) as (sha256, again):
        return _land(warehouse, path, intake, reader, sha256, again)


def _land(
    warehouse: Warehouse, path: str, intake: Intake, reader: Reader, sha256: str, chunks: Iterator[Chunk]
) -> landing.Batch:
    shown = f"pseudonymised-{sha256[:12]}" if intake.read.pseudonymise else path
    # what changes the rows that a file gives, as far as it differs from the default
    options = intake.read.model_dump(exclude=set(NO_OPTION), exclude_defaults=True)
    options |= intake.group.model_dump(exclude_defaults=True)
    origin = origin_of(WORD, intake.source, reader, GROUPING_VERSION, options, shown, sha256)
    most = intake.read.limits.max_refused_share
    schemas = {"runs": RUNS_SCHEMA}
    return landing.land(warehouse.landing_folder, origin, schemas, chunks, path=path, max_refused_share=most)


def _reader(path: str, intake: Intake) -> Reader:
    return reader_called(path, intake.reader, READERS, lambda: detect(path, intake.read.limits))


def _grouped(reader: Reader, key: bytes | None, path: str, intake: Intake) -> Iterator[Chunk]:
    n_read = 0
    for chunk in guarded(path, reader.read(path, intake.read)):
        rows, refused = chunk.rows, chunk.refused
        if key:
            rows = pseudonymise(rows, key, intake.group, with_ids=chunk.names_in_ids)
            refused = without_names(refused)
        n_read += len(rows) + len(refused)
        report_progress(f"reading {path}", n_read)
        understood = () if key else chunk.understood  # it names columns and quotes words
        yield Chunk(rows.assign(group_key=group_keys(rows, intake.group)), refused, chunk.tables, understood)
