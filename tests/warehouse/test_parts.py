"""Parts: rows that belong to a row of the main table stand, fall and are chosen with it."""

from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from tasks.intake.files import Chunk, no_refusals
from tasks.warehouse import landing
from tasks.warehouse import parts as parts_module
from tasks.warehouse.connection import fetch
from tasks.warehouse.hashes import hash_tables
from tasks.warehouse.ingest import ingest
from tasks.warehouse.landing import Origin
from tasks.workloads.columns import COUNTERS_SCHEMA, RUNS_SCHEMA

SCHEMAS = {"runs": RUNS_SCHEMA, "counters": COUNTERS_SCHEMA}
NOON = datetime(2026, 1, 1, 12)


@pytest.fixture
def put(warehouse):
    """A function that lands and ingests runs, each (run id, place, counters with their only value)."""
    minutes = iter(range(1000))

    def chunk(runs):
        rows = [
            {"run_id": run_id, "place": place, "n_samples": 1, "n_rows": 2, "n_missed": 0, "n_resets": 0,
             "is_resampled": False, "is_simulated": False, "at_s": [0.0]}
            for run_id, place, _ in runs
        ]  # fmt: skip
        counters = [
            {"run_id": run_id, "place": place, "counter": name, "unit": "", "kind": "unknown", "is_rate": False,
             "scope": "machine", "is_constant": True, "samples": [value]}
            for run_id, place, told in runs for name, value in told.items()
        ]  # fmt: skip
        frame = pa.Table.from_pylist(rows, schema=RUNS_SCHEMA).to_pandas(types_mapper=_kept)
        tables = {"counters": pa.Table.from_pylist(counters, schema=COUNTERS_SCHEMA).to_pandas(types_mapper=_kept)}
        return Chunk(frame, no_refusals(), tables)

    def load(file, *runs, version="1"):
        origin = Origin(
            word="workloads", source="log", reader="own", reader_version=version, options={}, path=file, sha256=file
        )
        at = NOON + timedelta(minutes=next(minutes))
        batch = landing.land(warehouse.landing_folder, origin, SCHEMAS, [chunk(runs)], now=at)
        ingest(warehouse, "workloads", batch.batch_id)

    return load


def _kept(kind):
    import pandas as pd

    return pd.ArrowDtype(kind) if pa.types.is_list(kind) else None


def held(warehouse):
    """run id, counter and value of every counter, in order."""
    found = fetch(warehouse, "SELECT run_id, counter, samples[1] AS value FROM workloads.counters ORDER BY ALL")
    return [tuple(row) for row in found.itertuples(index=False)]


def test_a_repeated_key_keeps_the_parts_of_the_row_that_counts(warehouse, put):
    put("a", ("r", 1, {"x": 1.0, "y": 1.0}), ("r", 5, {"x": 2.0}))
    assert held(warehouse) == [("r", "x", 2.0)]


def test_rows_of_the_file_are_counted_and_not_rows_of_the_table(warehouse, put):
    put("a", ("r", 1, {"x": 1.0}), ("s", 3, {"x": 1.0}))
    counts = fetch(warehouse, "SELECT n_read, n_kept, n_quarantined FROM ops.files").to_numpy().tolist()
    assert counts == [[4, 4, 0]]


def test_an_earlier_file_that_comes_later_does_not_replace_parts(warehouse, put):
    put("a", ("r", 1, {"x": 1.0}))
    put("b", ("r", 1, {"x": 2.0}))
    put("a", ("r", 1, {"x": 3.0}), version="2")
    assert held(warehouse) == [("r", "x", 2.0)]


def test_a_run_that_a_file_no_longer_gives_takes_its_parts_along(warehouse, put):
    put("a", ("r", 1, {"x": 1.0}), ("s", 3, {"x": 1.0}))
    put("a", ("s", 3, {"x": 1.0}), version="2")
    assert held(warehouse) == [("s", "x", 1.0)]


def test_a_fault_among_the_parts_leaves_all_of_it_out(warehouse, put, monkeypatch):
    put("a", ("r", 1, {"x": 1.0}))
    before = hash_tables(warehouse)
    monkeypatch.setattr(parts_module, "parquet", lambda path: "nowhere")
    with pytest.raises(Exception, match="nowhere"):
        put("b", ("r", 1, {"x": 2.0}))
    assert hash_tables(warehouse) == before
