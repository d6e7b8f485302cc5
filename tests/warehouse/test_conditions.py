"""Runs with vertices, skylines and SKUs in the warehouse: beside runs without, replaced, rebuilt, copied, listed."""

from datetime import datetime, timedelta

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.intake.files import Chunk, no_refusals
from tasks.jobs.columns import COLUMNS, CONDITIONS, RUNS_SCHEMA
from tasks.warehouse import landing
from tasks.warehouse.connection import fetch
from tasks.warehouse.copies import hash_tables, rebuild, snapshot
from tasks.warehouse.ingest import ingest
from tasks.warehouse.migrations import FOLDER, migrate

NOON = datetime(2026, 1, 1, 12)
VERTICES = [
    {"vertex": 0, "sku": "gen5", "started_at": NOON, "mean_tokens": 2.0},
    {"vertex": 1, "sku": "gen6", "ended_at": NOON + timedelta(seconds=1)},
]
SKYLINE = [{"at_s": 0.0, "tokens": 3.0, "guaranteed": 2.0}, {"at_s": 1.5, "tokens": 1.0}]
SKUS = [{"sku": "gen5", "tokens": 10.0, "load_mean": 0.5}]
FULL = {"run_id": "1", "runtime_s": 2.0, "period": "D1", "vertices": VERTICES, "skyline": SKYLINE, "skus": SKUS}


@pytest.fixture
def land_plain(origin, noon):
    """A function that lands rows whose file has none of the conditions, as most logs are."""

    def put(warehouse, rows, file, *, at, **how):
        filled = [
            {"place": place, "group_key": "job", "status": "completed", "is_simulated": False, **row}
            for place, row in enumerate(rows, 1)
        ]
        schema = pa.schema([field for field in RUNS_SCHEMA if field.name not in CONDITIONS])
        chunk = Chunk(pa.Table.from_pylist(filled, schema=schema).to_pandas(), no_refusals(), {})
        now = noon + timedelta(minutes=at)
        folder = warehouse.landing_folder
        return landing.land(folder, origin(file, **how), {"runs": RUNS_SCHEMA}, [chunk], now=now)

    return put


def hashes(warehouse):
    return {one.table: one.hash for one in hash_tables(warehouse) if one.table != "ops.migrations"}


def test_lists_arrive_as_they_were_landed_and_the_views_give_their_entries(warehouse, put_in):
    put_in(warehouse, [FULL | {"runtime_s": 3.0}, {"run_id": "2", "runtime_s": 1.0}, FULL])
    assert fetch(warehouse, "SELECT place FROM ops.quarantine")["place"].to_list() == [1]  # a run stood there twice
    vertices = fetch(warehouse, "SELECT * FROM jobs.vertices ORDER BY vertex").astype(object)
    assert vertices[["source", "run_id", "vertex", "sku", "started_at"]].iloc[0].to_list() == [
        "log", "1", 0, "gen5", NOON,
    ]  # fmt: skip
    assert len(vertices) == 2
    skyline = fetch(warehouse, "SELECT run_id, at_s, tokens FROM jobs.skylines ORDER BY at_s").to_numpy().tolist()
    assert skyline == [["1", 0.0, 3.0], ["1", 1.5, 1.0]]
    assert fetch(warehouse, "SELECT sku, load_mean FROM jobs.run_skus").to_numpy().tolist() == [["gen5", 0.5]]


def test_a_file_without_conditions_is_landed_without_their_columns(warehouse, land_plain, runs_in):
    batch = land_plain(warehouse, [{"run_id": "1", "runtime_s": 2.0}], "a.csv", at=1)
    ingest(warehouse, "jobs", batch.batch_id)
    with landing.local_file(warehouse.landing_folder, batch, "runs") as path:
        assert set(pq.read_schema(path).names) == {*COLUMNS, "place"}
    assert runs_in(warehouse) == [("log", "1", "completed", 2.0)]


def test_a_column_that_only_a_later_chunk_has_is_a_mistake_and_not_lost(warehouse, origin, chunk):
    whole = chunk([{"run_id": "1"}])
    first = Chunk(whole.rows.drop(columns=["vertices"]), whole.refused, {})
    folder = warehouse.landing_folder
    with pytest.raises(ValueError, match="runs: vertices not in the first chunk of the file"):
        landing.land(folder, origin(), {"runs": RUNS_SCHEMA}, [first, whole])
    batch = landing.land(folder, origin(), {"runs": RUNS_SCHEMA}, [whole, first])  # but it may end
    assert batch.tables["runs"].n_rows == 2


def test_a_withdrawn_row_gives_way_to_that_of_another_file_whatever_columns_they_have(warehouse, land, land_plain):
    """The older file has the lists, a new reading of the newer one no longer has the run."""
    plain = [{"run_id": "1", "runtime_s": 9.0}, {"run_id": "2", "runtime_s": 9.0}]
    batches = [land(warehouse, [FULL], at=1), land_plain(warehouse, plain, "b.csv", at=2)]
    batches.append(land_plain(warehouse, plain[1:], "b.csv", at=3, version="2"))
    seen = []
    for batch in batches:
        ingest(warehouse, "jobs", batch.batch_id)
        found = fetch(warehouse, "SELECT run_id, runtime_s, len(vertices) AS n FROM jobs.runs ORDER BY ALL")
        seen.append(found.fillna(0).to_numpy().tolist())
    assert seen[1] == [["1", 9.0, 0], ["2", 9.0, 0]]  # the later row counts whole
    assert seen[2] == [["1", 2.0, 2], ["2", 9.0, 0]]


def test_a_changed_entry_of_a_list_changes_the_hash_of_the_table(tmp_path, warehouse, land):
    ingest(warehouse, "jobs", land(warehouse, [FULL]).batch_id)
    other = warehouse.model_copy(update={"home": tmp_path / "other"})
    changed = [VERTICES[0] | {"mean_tokens": 2.5}, VERTICES[1]]
    ingest(other, "jobs", land(other, [FULL | {"vertices": changed}], at=1).batch_id)
    same = warehouse.model_copy(update={"home": tmp_path / "same"})
    ingest(same, "jobs", land(same, [FULL], at=1).batch_id)
    assert hashes(warehouse)["jobs.runs"] != hashes(other)["jobs.runs"]
    assert hashes(warehouse)["jobs.runs"] == hashes(same)["jobs.runs"]


def test_rebuild_and_snapshot_keep_lists(tmp_path, warehouse, put_in):
    put_in(warehouse, [FULL])
    before = hashes(warehouse)
    rebuild(warehouse)
    assert hashes(warehouse) == before
    with duckdb.connect(str(snapshot(warehouse, tmp_path / "copy.duckdb")), read_only=True) as copy:
        assert copy.execute("SELECT len(skyline), skus[1].sku FROM jobs.runs").fetchall() == [(2, "gen5")]


def test_a_warehouse_from_before_the_conditions_is_brought_up_to_date_with_its_rows(tmp_path):
    old = tmp_path / "migrations"
    old.mkdir()
    for path in sorted(FOLDER.glob("000[123]_*.sql")):
        (old / path.name).write_text(path.read_text())
    with duckdb.connect(":memory:") as connection:
        migrate(connection, old)
        connection.execute(
            "INSERT INTO jobs.runs BY NAME SELECT 'log' AS source, '1' AS run_id, 'g' AS group_key, "
            "'completed' AS status, false AS is_simulated, 'b' AS batch_id"
        )
        assert migrate(connection)[0] == "0004_job_conditions.sql"
        assert connection.execute("SELECT run_id, vertices, load_mean FROM jobs.runs").fetchall() == [("1", None, None)]
