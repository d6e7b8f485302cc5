"""Kill work on the warehouse at one step after the other, and see what is left. A program, run by test_kills.py.

    python kills.py FOLDER SHARE SEED SCENARIO…

A step is a statement that DuckDB gets (before it and after it) or an operation on a file. For each scenario the work is
done once undisturbed, then killed at a share of its steps (1: at every step), each time in a fresh copy of the home.
After a kill the warehouse must open, the same work must complete, and the outcome must be that of undisturbed work.
All work happens in forked children: this process never opens DuckDB itself. Prints one JSON object."""

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from tasks.jobs.columns import RUNS_SCHEMA
from tasks.reading import Chunk, no_refusals, refusals
from tasks.warehouse import connection as connections
from tasks.warehouse import copies, landing, pruning, registry
from tasks.warehouse import migrations as schema
from tasks.warehouse.connection import opened, reading, writing
from tasks.warehouse.ingest import ingest
from tasks.warehouse.landing import Batch, Origin
from tasks.warehouse.place import Warehouse
from tasks.warehouse.rebuild import rebuild
from tasks.warehouse.runs import RunRecord, record_run

NOON = datetime(2026, 1, 1, 12)
TIMES = ("applied_at", "decided_at")  # when this machine did it: the only columns that may differ
N_ROWS = 400
WATCHED = ("open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.truncate", "shutil.copyfile")


def place(home: Path) -> Warehouse:
    return Warehouse(home=home, memory_mb=128, threads=1, lock_wait_s=20)


def chunks(first: int, n_rows: int, runtime_s: float) -> Iterator[Chunk]:
    """Two chunks of runs, one run twice, one line refused."""
    ids = [*range(first, first + n_rows), first]
    for half in (ids[: n_rows // 2], ids[n_rows // 2 :]):
        rows = [
            {"run_id": str(i), "group_key": "job", "status": "completed"}
            | {"runtime_s": runtime_s + i, "is_simulated": False}
            for i in half
        ]
        rows = [row | {"place": at + (0 if half[0] == first else n_rows)} for at, row in enumerate(rows)]
        frame = pa.Table.from_pylist(rows, schema=RUNS_SCHEMA).to_pandas()
        bad = refusals([10 * n_rows], ["odd"], ["?"]) if half[0] == first else no_refusals()
        yield Chunk(frame, bad, {})


def land(warehouse: Warehouse, file: str, at: int, version: str = "1") -> Batch:
    """Land one of the files a, b and c; a and b overlap."""
    origin = Origin(
        word="jobs", source="log", reader="own", reader_version=version, options={}, path=file, sha256=file * 64
    )
    first = {"a": 0, "b": N_ROWS // 2, "c": 10 * N_ROWS}[file]
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
    registry.promote_if_better(warehouse, card("m2", 2), "crps", "lower")


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


class Killer:
    """Counts steps, and kills this process at one of them."""

    def __init__(self, home: Path, at: int) -> None:
        self.home, self.at, self.n_steps = str(home), at, 0

    def step(self) -> None:
        self.n_steps += 1
        if self.n_steps == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """Count what is done with files below the home, and every statement."""
        killer, connect = self, duckdb.connect

        def audit(event: str, args: tuple[Any, ...]) -> None:
            if event in WATCHED and any(killer.home in str(arg) for arg in args[:2]):
                killer.step()

        class Counted:
            """A connection whose statements are counted."""

            def __init__(self, real: Any) -> None:
                self.real = real

            def execute(self, *args: Any) -> Any:
                killer.step()
                found = self.real.execute(*args)
                killer.step()
                return found

            def close(self) -> None:
                killer.step()
                self.real.close()
                killer.step()

        sys.addaudithook(audit)
        connections.duckdb.connect = lambda *args, **kwargs: Counted(connect(*args, **kwargs))  # type: ignore[assignment]


def in_child(act: Callable[[], Any], kill_after_s: float | None = None) -> tuple[int, Any]:
    """Exit status (negative: the signal) and result of work done in a forked child."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        status = 0
        try:
            answer = json.dumps(act())
        except BaseException:
            answer, status = json.dumps(traceback.format_exc()), 1
        os.write(write_end, answer.encode()[:60_000])
        os._exit(status)
    os.close(write_end)
    if kill_after_s is not None:
        time.sleep(kill_after_s)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), json.loads(text) if text else None


def outcome(warehouse: Warehouse) -> dict[str, Any]:
    """Everything that must not depend on kills: tables without this machine's times, landing files, models."""
    tables = {}
    with reading(warehouse) as connection:
        columns = connection.execute(
            "SELECT schema_name || '.' || table_name, column_name FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        for name in sorted({table for table, _ in columns} - {"ops.runs"}):
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


def undisturbed(scenario: Scenario, home: Path) -> tuple[int, dict[str, Any]]:
    """Number of steps, and the outcome."""

    def work() -> Any:
        killer = Killer(home, 0)
        killer.watch()
        scenario.work(place(home))
        return killer.n_steps

    status, n_steps = in_child(work)
    assert status == 0, n_steps
    status, found = in_child(lambda: outcome(place(home)))
    assert status == 0, found
    return n_steps, found


def aftermath(scenario: Scenario, home: Path, expected: dict[str, Any], *, with_rebuild: bool) -> str:
    """What is wrong after a kill; empty if nothing is."""

    def again() -> Any:
        if place(home).file.exists() and scenario.prepare is not prepare_broken_file:
            read(place(home))
        scenario.work(place(home))
        found = [outcome(place(home))]
        if with_rebuild and scenario.rebuilds:
            rebuild(place(home))
            found.append(outcome(place(home)))
        return found

    status, found = in_child(again)
    if status:
        return str(found)
    for name, one in zip(("rerun", "rebuild"), found, strict=False):
        for key, value in expected.items():
            if one[key] != value:
                return f"{name}: {key} is {one[key]}, expected {value}"
    return ""


def walk(name: str, folder: Path, share: float, rng: random.Random) -> dict[str, Any]:
    """Kill one scenario at a share of its steps."""
    scenario = SCENARIOS[name]
    prepared = folder / name / "prepared"
    prepared.parent.mkdir(parents=True)
    status, fault = in_child(lambda: scenario.prepare(place(prepared)))
    assert status == 0, fault
    shutil.copytree(prepared, folder / name / "home")
    n_steps, expected = undisturbed(scenario, folder / name / "home")
    at_steps = sorted(rng.sample(range(1, n_steps + 1), max(1, round(share * n_steps))))
    faults = {}
    for at in at_steps:
        home = folder / name / "home"
        shutil.rmtree(home)
        shutil.copytree(prepared, home)

        def work(at: int = at, home: Path = home) -> None:
            Killer(home, at).watch()
            scenario.work(place(home))

        status, told = in_child(work)
        fault = "" if status == -signal.SIGKILL else f"not killed: {status} {told}"
        fault = fault or aftermath(scenario, home, expected, with_rebuild=share == 1 or at % 4 == 0)
        faults |= {at: fault} if fault else {}
    return {"n_steps": n_steps, "n_kills": len(at_steps), "faults": faults}


def main(folder: str, share: str, seed: str, *names: str) -> None:
    rng = random.Random(int(seed))
    print(json.dumps({name: walk(name, Path(folder), float(share), rng) for name in names or SCENARIOS}))


if __name__ == "__main__":
    main(*sys.argv[1:])
