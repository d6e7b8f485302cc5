"""What kills.py kills: work on a warehouse, each piece with what must stand before it, and what must come of it."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from tasks.intake.files import Chunk, no_refusals, refusals
from tasks.jobs.columns import RUNS_SCHEMA
from tasks.warehouse import copies, landing, pruning, registry
from tasks.warehouse import migrations as schema
from tasks.warehouse.connection import opened, reading, writing
from tasks.warehouse.copies import rebuild
from tasks.warehouse.ingest import ingest
from tasks.warehouse.landing import Batch, Origin
from tasks.warehouse.place import Warehouse
from tasks.warehouse.runs import RunRecord, record_run

TIMES = ("applied_at", "decided_at")  # when this machine did it: the only columns that may differ
NOON = datetime(2026, 1, 1, 12)
N_ROWS = 400


def place(home: Path) -> Warehouse:
    return Warehouse(home=home, memory_mb=128, threads=1, lock_wait_s=20)


def chunks(first: int, n_rows: int, runtime_s: float) -> Iterator[Chunk]:
    """Two chunks of runs, one run twice, one line refused."""
    rows = [
        {"place": place, "run_id": str(run_id), "group_key": "job", "status": "completed", "is_simulated": False}
        | {"runtime_s": runtime_s + place}
        for place, run_id in enumerate([*range(first, first + n_rows), first], 1)
    ]
    for half, bad in ((rows[: n_rows // 2], refusals([10**6], ["odd"], ["?"])), (rows[n_rows // 2 :], no_refusals())):
        yield Chunk(pa.Table.from_pylist(half, schema=RUNS_SCHEMA).to_pandas(), bad, {})


def land(warehouse: Warehouse, file: str, at: float, version: str = "1") -> Batch:
    """Land one file; the files a and b overlap. at: minutes after noon."""
    first = {"a": 0, "b": N_ROWS // 2, "c": 10 * N_ROWS}[file]
    origin = Origin(
        word="jobs", source="log", reader="own", reader_version=version, options={}, path=file, sha256=file * 64
    )
    rows = chunks(first, N_ROWS if version == "1" else N_ROWS // 4, at * 1e6)
    return landing.land(warehouse.landing_folder, origin, {"runs": RUNS_SCHEMA}, rows, now=NOON + timedelta(minutes=at))


def card(model_id: str, day: int) -> registry.ModelCard:
    return registry.ModelCard(
        model_id=model_id, word="jobs", source="log", kind="shapes", trained_at=NOON + timedelta(days=day), run_id="r",
        data_version="d", code_version="c", seed=1, parameters={}, metrics={"crps": 1.0 / day},
    )  # fmt: skip


def add_model(warehouse: Warehouse, model_id: str, day: int) -> None:
    registry.register(
        warehouse, card(model_id, day), lambda folder: (folder / "weights.txt").write_text(model_id) and None
    )


def fill(warehouse: Warehouse) -> None:
    """Two overlapping files, a run and a champion."""
    for at, file in enumerate("ab"):
        ingest(warehouse, "jobs", land(warehouse, file, at).batch_id)
    run = RunRecord(
        run_id="r", flow="f", word="jobs", source="log", status="completed", started_at=NOON, ended_at=NOON,
        parameters={}, figures={},
    )  # fmt: skip
    record_run(warehouse, run)
    add_model(warehouse, "m1", 1)
    registry.promote(warehouse, "jobs", "m1", "first")


def prepare_nothing(warehouse: Warehouse) -> None:
    warehouse.home.mkdir(exist_ok=True)


def prepare_old_schema(warehouse: Warehouse) -> None:
    only_first = warehouse.home / "first"
    only_first.mkdir(parents=True)
    shutil.copy(schema.FOLDER / "0001_ops.sql", only_first)
    with opened(warehouse, warehouse.file, read_only=False) as connection:
        schema.migrate(connection, only_first)
        connection.execute("INSERT INTO ops.machines VALUES ('log', 'node', 'big')")


def prepare_second_file(warehouse: Warehouse) -> None:
    ingest(warehouse, "jobs", land(warehouse, "a", 0).batch_id)
    land(warehouse, "b", 1)


def prepare_newer_reading(warehouse: Warehouse) -> None:
    fill(warehouse)
    land(warehouse, "b", 2, version="2")


def prepare_broken_file(warehouse: Warehouse) -> None:
    fill(warehouse)
    warehouse.file.write_bytes(b"no database" * 1000)
    warehouse.file.with_name("warehouse.duckdb.wal").write_bytes(b"no log")


def prepare_backup(warehouse: Warehouse) -> None:
    fill(warehouse)
    made = copies.backup(warehouse, warehouse.home / "backups")
    made.rename(warehouse.home / "backups" / "one")
    ingest(warehouse, "jobs", land(warehouse, "c", 3).batch_id)


def prepare_models(warehouse: Warehouse) -> None:
    prepare_newer_reading(warehouse)
    ingest(warehouse, "jobs", land(warehouse, "b", 2, version="2").batch_id)
    for day in (2, 3):
        add_model(warehouse, f"m{day}", day)
    leftover = Path(warehouse.landing_folder) / "jobs" / "leftover.part"
    leftover.write_text("half")
    os.utime(leftover, (0, 0))


def register_and_promote(warehouse: Warehouse) -> None:
    add_model(warehouse, "m2", 2)
    registry.promote(warehouse, "jobs", "m2", "better")


def prune(warehouse: Warehouse) -> None:
    params = pruning.PruneParams(runs_kept_days=0, models_kept=1, orphans_kept_hours=1)
    pruning.prune(warehouse, params, datetime(2100, 1, 1))


def read(warehouse: Warehouse) -> None:
    with reading(warehouse):
        pass


def write(warehouse: Warehouse) -> None:
    with writing(warehouse):
        pass


@dataclass(frozen=True)
class Scenario:
    """Work that is killed. rebuilds: whether a rebuild afterwards gives the same rows."""

    prepare: Callable[[Warehouse], None]
    work: Callable[[Warehouse], Any]
    rebuilds: bool = True


SCENARIOS = {
    "create": Scenario(prepare_nothing, write),
    "migrate": Scenario(prepare_old_schema, read),
    "land": Scenario(write, lambda warehouse: ingest(warehouse, "jobs", land(warehouse, "a", 0).batch_id)),
    "ingest": Scenario(
        prepare_second_file, lambda warehouse: ingest(warehouse, "jobs", land(warehouse, "b", 1).batch_id)
    ),
    "replace": Scenario(
        prepare_newer_reading, lambda warehouse: ingest(warehouse, "jobs", land(warehouse, "b", 2, "2").batch_id)
    ),
    "rebuild": Scenario(fill, rebuild),
    "rebuild_broken": Scenario(prepare_broken_file, rebuild),
    "snapshot": Scenario(fill, lambda warehouse: copies.snapshot(warehouse, warehouse.home / "copy.duckdb")),
    "backup": Scenario(fill, lambda warehouse: copies.backup(warehouse, warehouse.home / "backups")),
    "restore": Scenario(
        prepare_backup, lambda warehouse: copies.restore(warehouse, warehouse.home / "backups" / "one"), rebuilds=False
    ),
    "promote": Scenario(fill, register_and_promote),
    "prune": Scenario(prepare_models, prune),
}


FILLED = (write, fill, prepare_second_file, prepare_newer_reading, prepare_backup, prepare_models)


def outcome(warehouse: Warehouse) -> dict[str, Any]:
    """Everything that must not depend on kills: tables without this machine's times, landing files, models."""
    with reading(warehouse) as connection:
        columns = connection.execute(
            "SELECT schema_name || '.' || table_name, column_name FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        names = sorted({table for table, _ in columns} - {"ops.runs"})
        counted = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in names)
        counts = dict(connection.execute(counted).fetchall())
        tables = {name: [0, None] for name in names}
        for name in (name for name in names if counts[name]):
            kept = ", ".join(column for table, column in columns if table == name and column not in TIMES)
            found = connection.execute(f"SELECT count(*), sum(hash({kept})::HUGEINT)::VARCHAR FROM {name}").fetchone()
            tables[name] = list(found or ())
    manifests = landing.batches(warehouse.landing_folder, "jobs")
    for batch in manifests:
        for table in batch.tables:
            with landing.local_file(warehouse.landing_folder, batch, table):
                pass
    made = [[one.model_id, one.reason] for one in registry.decisions(warehouse.models, "jobs")]
    weights = {
        one.model_id: (warehouse.models / "jobs" / one.model_id / "weights.txt").read_text()
        for one in registry.cards(warehouse.models)
    }
    whole = [copies._checked(listing.parent) for listing in warehouse.home.glob("backups/*/backup.json")]
    return {
        "tables": tables,
        "manifests": [batch.model_dump_json() for batch in manifests],
        "champions": made,
        "weights": weights,
        "backups": bool(whole),
    }  # fmt: skip
