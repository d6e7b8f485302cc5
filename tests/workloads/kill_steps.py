"""Kill the steps of workloads at one moment after the other, as tests/warehouse/kills.py does with the warehouse.

    python kill_steps.py FOLDER SHARE SEED SCENARIO…

Prints one JSON object. A program, run by test_steps_kills.py."""

import json
import random
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1] / "warehouse"))

import kill_scenarios
import kills
from kill_scenarios import Scenario, write

from tasks.record.parts import write_table
from tasks.warehouse import connection as connections
from tasks.warehouse import registry
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
from tasks.workloads import fingerprint_steps, steps
from tasks.workloads.identify.phases import fingerprints_of
from tasks.workloads.params import FanOutParams, IdentifyParams, ReadParams, TrainParams, WatchParams
from tasks.workloads.record.parts import table_of
from tests.workloads.identify.synthetic import draw_runs, draw_workload

NOON = datetime(2026, 1, 1, 12)
TIMES = {*kill_scenarios.TIMES, "trained_at", "identified_at", "fingerprinted_at", "evaluated_at", "raised_at"}
TIMES |= {"landed_at", "ordered_at", "judged_at"}


def telemetry(warehouse: Warehouse) -> str:
    """A file with six runs of each of two workloads."""
    path = warehouse.home.parent / "runs.parquet"
    if not path.exists():
        rng = np.random.default_rng(1)
        runs = draw_runs([draw_workload(name, 4, 2, rng) for name in "ab"], 6, rng)
        tables = [table_of(replace(run, started_at=NOON + timedelta(minutes=at))) for at, run in enumerate(runs)]
        write_table(path, pa.concat_tables(tables), {"is_simulated": True})
    return str(path)


def compile_once() -> None:
    """Before any child: what numba compiles or loads is inherited."""
    rng = np.random.default_rng(1)
    runs = draw_runs([draw_workload("a", 4, 2, rng)], 1, rng)
    fingerprints_of(runs, runs[0].counters)


def ingest(warehouse: Warehouse) -> None:
    steps.ingest_batch(warehouse, steps.land_telemetry(warehouse, telemetry(warehouse), "log", "wide", ReadParams()))


def fingerprint(warehouse: Warehouse) -> None:
    plan = fingerprint_steps.plan_fingerprints(warehouse, "log", FanOutParams(runs_per_part=7))
    for part in plan["parts"]:
        fingerprint_steps.keep_phases(warehouse, "log", fingerprint_steps.cut_phases(part))
    fingerprint_steps.clear_parts(plan["parts"])


def train(warehouse: Warehouse) -> None:
    steps.train(warehouse, "log", IdentifyParams(), TrainParams(), [], "run")


def prepare_model(warehouse: Warehouse) -> None:
    ingest(warehouse)
    train(warehouse)


def look(warehouse: Warehouse) -> None:
    found = steps.identify(warehouse, "log", None, "all")
    steps.watch(warehouse, "log", found["run_ids"], WatchParams(expected=["a"], min_confidence=0))


def prepare_runs(warehouse: Warehouse) -> None:
    ingest(warehouse)


def outcome(warehouse: Warehouse) -> dict[str, Any]:
    """Everything that must not depend on kills: tables without this machine's times, models, what is left over."""
    tables = {}
    with reading(warehouse) as connection:
        columns = connection.execute(
            "SELECT schema_name || '.' || table_name, column_name FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        for name in sorted({table for table, _ in columns} - {"ops.runs"}):
            kept = ", ".join(column for table, column in columns if table == name and column not in TIMES)
            found = connection.execute(f"SELECT count(*), sum(hash({kept})::HUGEINT)::VARCHAR FROM {name}").fetchone()
            tables[name] = list(found or ())
    made = registry.cards(warehouse.models)
    return {
        "tables": tables,
        "models": [one.model_id for one in made],
        "champions": [[one.model_id, one.reason] for one in registry.decisions(warehouse.models, "workloads")],
    }


class Killer(kills.Killer):
    """The same, with connections that also take frames and give Arrow tables; only statements are steps."""

    def watch(self) -> None:
        super().watch()
        connect = connections.duckdb.connect

        def counted(*args: Any, **kwargs: Any) -> Any:
            found: Any = connect(*args, **kwargs)
            type(found).__getattr__ = lambda one, name: getattr(one.real, name)
            return found

        connections.duckdb.connect = counted


SCENARIOS = {
    "ingest": Scenario(write, ingest),
    "fingerprint": Scenario(prepare_runs, fingerprint),
    "train": Scenario(prepare_runs, train),
    "look": Scenario(prepare_model, look),
}


def main(folder: str, share: str, seed: str, *names: str) -> None:
    kills.SCENARIOS, kills.outcome, kills.Killer = SCENARIOS, outcome, Killer
    compile_once()
    rng = random.Random(int(seed))
    found = {name: kills.walk(name, Path(folder), float(share), rng) for name in names or SCENARIOS}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
