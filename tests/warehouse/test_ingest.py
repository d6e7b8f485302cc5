"""Ingest: a file in whole or not at all, each row once, the best row of each key, sources apart."""

from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput
from tasks.intake.files import Chunk, no_refusals
from tasks.jobs.columns import COLUMNS, CONDITIONS, RUNS_SCHEMA
from tasks.warehouse import ingest as ingest_module
from tasks.warehouse import landing
from tasks.warehouse.connection import fetch
from tasks.warehouse.copies import hash_tables, rebuild, snapshot
from tasks.warehouse.ingest import ingest
from tasks.warehouse.landing import Origin
from tasks.workloads.prepared import COUNTERS_SCHEMA
from tasks.workloads.prepared import RUNS_SCHEMA as TELEMETRY_SCHEMA

ROWS = [{"run_id": "1", "runtime_s": 10.0}, {"run_id": "2", "runtime_s": 20.0}]
BOTH = [("log", "1", "completed", 10.0), ("log", "2", "completed", 20.0)]


def counts(warehouse):
    """n_read, n_kept, n_quarantined as ops.files says, and the quarantined rows counted one by one."""
    return (
        fetch(
            warehouse,
            """SELECT n_read, n_kept, n_quarantined,
            (SELECT count(*) FROM ops.quarantine AS bad WHERE bad.batch_id = files.batch_id) AS n_counted
        FROM ops.files AS files ORDER BY ordered_at""",
        )
        .to_numpy()
        .tolist()
    )


def hashes(warehouse):
    return {one.table: one.hash for one in hash_tables(warehouse)}


def test_the_same_batch_twice_changes_nothing(warehouse, land, runs_in):
    batch = land(warehouse, ROWS)
    assert ingest(warehouse, "jobs", batch.batch_id) is True
    before = hashes(warehouse)
    assert ingest(warehouse, "jobs", batch.batch_id) is False
    assert hashes(warehouse) == before
    assert runs_in(warehouse) == BOTH


def test_every_column_arrives_as_it_was_landed_whatever_source_and_path_are_called(warehouse, put_in):
    row = {
        "run_id": "é'\"1", "group_key": "g", "name": "a\nb", "plan_signature": "s", "user_name": "u", "queue": "q",
        "submitted_at": "2026-01-01 00:00:00.000001", "started_at": "2026-01-01 00:00:01",
        "ended_at": "2026-01-01 00:00:03.5", "wait_s": 0.999999, "runtime_s": 2.5, "status": "failed",
        "requested_cpus": 1.5, "used_cpus": 1e-300, "requested_runtime_s": 1e300, "requested_memory_bytes": 2.0**53,
        "cpu_s": 0.1, "peak_memory_bytes": 0.0, "input_bytes": -0.0, "is_simulated": True,
    }  # fmt: skip
    times = {name: pd.Timestamp(value) for name, value in row.items() if name.endswith("_at")}
    source = 'it\'s "ü"; DROP TABLE jobs.runs --'
    batch = put_in(warehouse, [{**row, **times}], "o'b\"rien ü.csv", source=source, options={"a'b": 'c"d'})
    found = fetch(warehouse, f"SELECT * EXCLUDE ({', '.join(CONDITIONS)}) FROM jobs.runs").to_dict("records")
    assert found == [{**row, **times, "source": source, "batch_id": batch.batch_id}]


def test_what_was_read_is_kept_or_quarantined(warehouse, put_in):
    bad = [{"place": 9, "reason": "negative runtime", "raw": "9;-1"}]
    put_in(warehouse, [*ROWS, {"run_id": "2", "runtime_s": 21.0}, {"run_id": "1", "runtime_s": 11.0}], refused=bad)
    put_in(warehouse, ROWS, "b.csv")
    assert counts(warehouse) == [[5, 2, 3, 3], [2, 2, 0, 0]]


@pytest.mark.parametrize(
    ("lines", "counts"),
    [
        ([("1", 10.0), ("2", 20.0), ("1", 11.0)], 3),  # the later line
        ([("1", 10.0), ("1", None)], 1),  # a finished one though an unfinished one comes later
        ([("1", 0.0), ("1", 1.0), ("1", 2.0)], 3),
    ],
)
def test_of_repeated_ids_one_line_counts_and_the_others_are_quarantined(warehouse, put_in, runs_in, lines, counts):
    rows = [{"run_id": run, "runtime_s": s, "status": "running" if s is None else "completed"} for run, s in lines]
    put_in(warehouse, rows)
    assert ("log", "1", "completed", lines[counts - 1][1]) in runs_in(warehouse)
    bad = fetch(warehouse, "SELECT place, reason, raw FROM ops.quarantine ORDER BY place").to_numpy().tolist()
    places = [place for place, (run, _) in enumerate(lines, 1) if run == "1" and place != counts]
    assert bad == [[place, f"run id 1 stands again in row {counts}, which counts", ""] for place in places]


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_of_several_exports_the_later_finished_row_counts_whatever_their_order(warehouse, land, runs_in, order):
    later = [{"run_id": "2", "runtime_s": 21.0}, {"run_id": "3", "runtime_s": 30.0}]
    last = [{"run_id": "1", "status": "running"}, {"run_id": "2", "status": "pending"}]
    batches = [land(warehouse, rows, f"{at}.csv", at=at) for at, rows in enumerate((ROWS, later, last))]
    for batch in batches[order]:
        assert ingest(warehouse, "jobs", batch.batch_id)
    assert runs_in(warehouse) == [BOTH[0], ("log", "2", "completed", 21.0), ("log", "3", "completed", 30.0)]


def test_sources_never_mix(warehouse, put_in, runs_in):
    put_in(warehouse, ROWS, source="a")
    put_in(warehouse, [{"run_id": "1", "runtime_s": 1.0}], source="b")
    put_in(warehouse, [{"run_id": "2", "runtime_s": 2.0}], "b.csv", source="b")
    put_in(warehouse, [{"run_id": "1", "runtime_s": 3.0}], source="b", version="2")
    expected = [("a", "1", "completed", 10.0), ("a", "2", "completed", 20.0)]
    expected += [("b", "1", "completed", 3.0), ("b", "2", "completed", 2.0)]
    assert runs_in(warehouse) == expected


@pytest.mark.parametrize("how", [{"version": "2"}, {"options": {"time_zone": "UTC"}}])
def test_another_reading_of_a_file_replaces_its_rows(warehouse, put_in, runs_in, how):
    put_in(warehouse, ROWS, refused=[{"place": 3, "reason": "odd", "raw": "?"}])
    batch = put_in(warehouse, [{"run_id": "2", "runtime_s": 22.0}], **how)
    assert runs_in(warehouse) == [("log", "2", "completed", 22.0)]
    assert counts(warehouse) == [[1, 1, 0, 0]]
    assert fetch(warehouse, "SELECT batch_id FROM ops.files").to_numpy().tolist() == [[batch.batch_id]]


def test_a_reading_that_was_replaced_does_not_come_back_by_itself(warehouse, land, put_in, runs_in):
    old = land(warehouse, ROWS)
    put_in(warehouse, ROWS[:1], version="2")
    assert ingest(warehouse, "jobs", old.batch_id) is False
    assert runs_in(warehouse) == BOTH[:1]


def test_reading_a_file_again_in_the_first_way_makes_that_way_count_again(warehouse, put_in, runs_in):
    put_in(warehouse, ROWS, options={"time_zone": "UTC"})
    put_in(warehouse, ROWS[:1], options={"time_zone": "Europe/Berlin"})
    put_in(warehouse, [], options={"time_zone": "UTC"})  # the landing files are there: nothing is read
    assert runs_in(warehouse) == BOTH
    rebuild(warehouse)
    assert runs_in(warehouse) == BOTH


def test_rows_that_a_newer_reading_drops_come_back_from_the_other_files(warehouse, put_in, runs_in):
    put_in(warehouse, [{"run_id": "1", "runtime_s": 1.0}, {"run_id": "2", "runtime_s": 2.0}], "a.csv")
    put_in(warehouse, [{"run_id": "1", "status": "running"}], "b.csv")
    put_in(warehouse, [{"run_id": "1", "runtime_s": 3.0}, {"run_id": "2", "runtime_s": 4.0}], "c.csv")
    put_in(warehouse, [{"run_id": "2", "runtime_s": 5.0}], "c.csv", version="2")
    assert runs_in(warehouse) == [("log", "1", "completed", 1.0), ("log", "2", "completed", 5.0)]


def test_the_other_files_are_not_looked_at_where_no_run_stands_in_two(warehouse, put_in, monkeypatch):
    """A new reader version over a thousand files must not open each of them a thousand times."""
    put_in(warehouse, ROWS, "a.csv")
    put_in(warehouse, [{"run_id": "3", "runtime_s": 1.0}], "b.csv")

    def explode(*_args):
        raise AssertionError("looked at")

    monkeypatch.setattr(ingest_module, "_reconcile", explode)
    put_in(warehouse, ROWS, "a.csv", version="2")


def test_a_newer_reading_stays_out_where_the_manifest_of_another_file_is_gone(warehouse, put_in, land, runs_in):
    """Without it nobody can tell which rows come back: better refuse than lose them."""
    gone = put_in(warehouse, ROWS, "a.csv")
    put_in(warehouse, ROWS, "b.csv")
    (Path(warehouse.landing_folder) / "jobs" / f"{gone.batch_id}.json").unlink()
    newer = land(warehouse, [], "b.csv", version="2")
    with pytest.raises(BadInput, match=rf"no batch {gone.batch_id}; expected a landed batch; read the file again"):
        ingest(warehouse, "jobs", newer.batch_id)
    assert runs_in(warehouse) == BOTH


def statements_of_an_ingest(monkeypatch, stop_at=None):
    """Count the SQL statements of an ingest; raise at one of them."""
    seen = []
    real = ingest_module.writing

    class Counting:
        def __init__(self, connection):
            self.connection = connection

        def execute(self, sql, *values):
            seen.append(sql)
            if len(seen) == stop_at:
                raise duckdb.IOException("stop")
            return self.connection.execute(sql, *values)

    class Writing:
        def __init__(self, place):
            self.context = real(place)

        def __enter__(self):
            return Counting(self.context.__enter__())

        def __exit__(self, *error):
            return self.context.__exit__(*error)

    monkeypatch.setattr(ingest_module, "writing", Writing)
    return seen


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_an_error_at_any_statement_leaves_the_warehouse_as_it_was(warehouse, put_in, land, monkeypatch, step):
    put_in(warehouse, ROWS, "a.csv")
    put_in(warehouse, ROWS, "b.csv")
    batch = land(warehouse, [*ROWS[1:], *ROWS[1:]], "b.csv", version="2")
    before = hashes(warehouse)
    n_failed, stop_at = 0, 1
    while True:
        with monkeypatch.context() as patch:
            statements_of_an_ingest(patch, stop_at=stop_at)
            try:
                ingest(warehouse, "jobs", batch.batch_id)
            except duckdb.IOException:
                n_failed, stop_at = n_failed + 1, stop_at + step
                if n_failed % 4 == 0:
                    assert hashes(warehouse) == before
                continue
        break
    assert n_failed > 20 // step
    assert hashes(warehouse) != before


def test_a_landing_folder_whose_path_looks_like_a_partition_adds_no_column(bare, put_in, runs_in):
    odd = bare.model_copy(update={"home": bare.home / "env=prod" / "a[1]*" / 'it\'s "ü"'})
    put_in(odd, ROWS)
    assert runs_in(odd) == BOTH
    rebuild(odd)
    assert runs_in(odd) == BOTH


def test_a_batch_without_rows_is_known_afterwards(warehouse, put_in):
    batch = put_in(warehouse, [], refused=[{"place": 1, "reason": "odd", "raw": "?"}])
    assert counts(warehouse) == [[1, 0, 1, 1]]
    assert ingest(warehouse, "jobs", batch.batch_id) is False


SCHEMAS = {"runs": TELEMETRY_SCHEMA, "counters": COUNTERS_SCHEMA}
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
        frame = pa.Table.from_pylist(rows, schema=TELEMETRY_SCHEMA).to_pandas(types_mapper=_kept)
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
    monkeypatch.setattr(ingest_module, "parquet", lambda path: "nowhere")
    with pytest.raises(Exception, match="nowhere"):
        put("b", ("r", 1, {"x": 2.0}))
    assert hash_tables(warehouse) == before


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


def hashes_of(warehouse):
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
    assert hashes_of(warehouse)["jobs.runs"] != hashes_of(other)["jobs.runs"]
    assert hashes_of(warehouse)["jobs.runs"] == hashes_of(same)["jobs.runs"]


def test_rebuild_and_snapshot_keep_lists(tmp_path, warehouse, put_in):
    put_in(warehouse, [FULL])
    before = hashes_of(warehouse)
    rebuild(warehouse)
    assert hashes_of(warehouse) == before
    with duckdb.connect(str(snapshot(warehouse, tmp_path / "copy.duckdb")), read_only=True) as copy:
        assert copy.execute("SELECT len(skyline), skus[1].sku FROM jobs.runs").fetchall() == [(2, "gen5")]
