"""A warehouse of a test's own, and small exports of job runs to land in it."""

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tasks.intake.files import Chunk, no_refusals, refusals
from tasks.jobs.columns import RUNS_SCHEMA
from tasks.warehouse import landing
from tasks.warehouse.connection import fetch
from tasks.warehouse.ingest import ingest
from tasks.warehouse.landing import Batch, Origin
from tasks.warehouse.place import Warehouse

NOON = datetime(2026, 1, 1, 12)
Rows = Sequence[dict[str, Any]]


@pytest.fixture
def bare(tmp_path: Path) -> Warehouse:
    """A place for a warehouse that nobody has made yet."""
    return Warehouse(home=tmp_path / "home", memory_mb=256, threads=1, lock_wait_s=5)


@pytest.fixture
def warehouse(bare: Warehouse, migrated: Path) -> Warehouse:
    """An empty, migrated warehouse."""
    bare.home.mkdir()
    shutil.copy(migrated, bare.file)
    return bare


@pytest.fixture(scope="session")
def noon() -> datetime:
    """When the exports of a test begin to be read."""
    return NOON


def chunk_of(rows: Rows, refused: Rows = ()) -> Chunk:
    """Rows as a reader gives them: only what matters to the test is given, `place` counts from 1."""
    defaults = {"group_key": "job", "status": "completed", "is_simulated": False}
    filled = [{"place": place, **defaults, **row} for place, row in enumerate(rows, 1)]
    frame = pa.Table.from_pylist(filled, schema=RUNS_SCHEMA).to_pandas()
    bad = refusals(
        [row["place"] for row in refused], [row["reason"] for row in refused], [row["raw"] for row in refused]
    )
    return Chunk(frame, bad if refused else no_refusals(), {})


@pytest.fixture
def chunk() -> Callable[..., Chunk]:
    """chunk_of, for tests that land chunks by themselves."""
    return chunk_of


@pytest.fixture
def origin() -> Callable[..., Origin]:
    """A function that makes the origin of a file; the name of the file stands for its bytes."""

    def make(
        file: str = "a.csv", *, source: str = "log", version: str = "1", reader: str = "own", options: Any = None
    ) -> Origin:
        sha256 = hashlib.sha256(file.encode()).hexdigest()
        path = f"/logs/{file}"
        return Origin(
            word="jobs", source=source, reader=reader, reader_version=version, options=options or {}, path=path,
            sha256=sha256,
        )  # fmt: skip

    return make


@pytest.fixture
def land(origin: Callable[..., Origin]) -> Callable[..., Batch]:
    """A function that lands rows as one file, each call a minute after the one before (`at`: minutes after noon)."""
    minutes = iter(range(1, 1_000_000))

    def put(
        warehouse: Warehouse,
        rows: Rows,
        file: str = "a.csv",
        *,
        refused: Rows = (),
        at: float | None = None,
        **how: Any,
    ) -> Batch:
        now = NOON + timedelta(minutes=next(minutes) if at is None else at)
        chunks = [chunk_of(rows, refused)] if rows or refused else []
        return landing.land(warehouse.landing_folder, origin(file, **how), {"runs": RUNS_SCHEMA}, chunks, now=now)

    return put


@pytest.fixture
def put_in(land: Callable[..., Batch]) -> Callable[..., Batch]:
    """A function that lands rows and ingests them."""

    def put(warehouse: Warehouse, rows: Rows, file: str = "a.csv", **how: Any) -> Batch:
        batch = land(warehouse, rows, file, **how)
        ingest(warehouse, "jobs", batch.batch_id)
        return batch

    return put


@pytest.fixture
def runs_in() -> Callable[[Warehouse], list[tuple[Any, ...]]]:
    """A function that says which runs a warehouse holds: (source, run id, status, runtime), in order."""

    def rows_of(warehouse: Warehouse) -> list[tuple[Any, ...]]:
        found = fetch(warehouse, "SELECT source, run_id, status, runtime_s FROM jobs.runs ORDER BY ALL")
        found["runtime_s"] = found["runtime_s"].astype(object).where(found["runtime_s"].notna(), None)
        return [tuple(row) for row in found.itertuples(index=False)]

    return rows_of


@pytest.fixture
def landed() -> Callable[[Warehouse], dict[str, str]]:
    """A function that says what is in the landing folder of jobs: name to hash."""

    def files(warehouse: Warehouse) -> dict[str, str]:
        folder = Path(warehouse.landing_folder) / "jobs"
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*"))}

    return files


@pytest.fixture
def manifests() -> Callable[[Warehouse], dict[str, Any]]:
    """A function that reads all manifests of jobs as plain JSON: batch id to content."""

    def read(warehouse: Warehouse) -> dict[str, Any]:
        folder = Path(warehouse.landing_folder) / "jobs"
        return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}

    return read
