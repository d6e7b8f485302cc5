"""Plans, SKUs, vertices and token skylines in whorl's own job log: read as they are, or refused with a reason."""

import json
import logging
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput
from tasks.intake import tables
from tasks.jobs.columns import COLUMNS, CONDITIONS, LIST_COLUMNS, MADE_COLUMNS, RUNS_SCHEMA
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.table import TableReader

NOON = datetime(2026, 1, 1, 12)
VERTEX = {
    "vertex": 0,
    "stage": "scan",
    "sku": "gen5",
    "started_at": NOON,
    "ended_at": NOON + timedelta(seconds=1),
    "cpu_s": 0.5,
    "min_tokens": 1.0,
    "mean_tokens": 2.0,
    "peak_tokens": 3.0,
    "read_bytes": 10.0,
    "temp_bytes": 0.0,
}
SKU = {"sku": "gen5", "tokens": 10.0, "free_tokens": 4.0, "load_mean": 0.6, "load_sd": 0.1}
STEP = {"at_s": 0.0, "tokens": 3.0, "guaranteed": 2.0}
RUN: dict[str, Any] = {
    "run_id": "r1",
    "name": "etl",
    "started_at": NOON,
    "runtime_s": 2.0,
    "status": "completed",
    "period": "D1",
    "what_if": "baseline",
    "matched_run_id": "r0",
    "account": "physics",
    "partition": "fat",
    "qos": "night",
    "operators": json.dumps({"SCAN": 2, "JOIN": 1}),
    "estimated_rows": 10.0,
    "estimated_cost": 120.0,
    "spare_tokens_available": 4.0,
    "queue_length": 1.0,
    "load_mean": 0.6,
    "load_sd": 0.1,
    "skus": [SKU, SKU | {"sku": "gen6"}],
    "min_tokens": 1.0,
    "peak_tokens": 3.0,
    "spare_tokens_used": 0.5,
    "read_bytes": 10.0,
    "temp_bytes": 0.0,
    "vertices": [VERTEX, VERTEX | {"vertex": 1}],
    "skyline": [STEP, STEP | {"at_s": 1.5, "tokens": 1.0}],
    "recorded_cause": "load",
}
OURS = pa.schema([field for field in RUNS_SCHEMA if field.name in RUN])


def write(path: Path, runs: list[dict[str, Any]], **kinds: pa.DataType) -> Path:
    schema = pa.schema([(field.name, kinds.get(field.name, field.type)) for field in OURS])
    pq.write_table(pa.Table.from_pylist(runs, schema=schema), path)
    return path


def read(path: Path, params: ReadParams | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(TableReader().read(str(path), params or ReadParams()))
    rows, refused = ([getattr(chunk, part) for chunk in chunks] for part in ("rows", "refused"))
    return pd.concat(rows, ignore_index=True), pd.concat(refused, ignore_index=True)


def listed(rows: pd.DataFrame, column: str) -> list[Any]:
    return list(pa.array(rows[column]).to_pylist())


def test_every_condition_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows, refused = read(write(tmp_path / "log.parquet", [RUN]))
    assert refused.empty
    assert set(CONDITIONS) - set(RUN) == set(MADE_COLUMNS)
    assert {name: rows[name].iloc[0] for name in CONDITIONS if name in RUN and name not in LIST_COLUMNS} == {
        name: RUN[name] for name in CONDITIONS if name in RUN and name not in LIST_COLUMNS
    }
    for name in LIST_COLUMNS:
        assert listed(rows, name) == [RUN[name]]
        assert rows[name].dtype == pd.ArrowDtype(CONDITIONS[name][0])


def test_missing_and_empty_lists_stay_what_they_are_around_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = [None, RUN["vertices"], [], RUN["vertices"][:1], None, RUN["vertices"]]
    runs = [RUN | {"run_id": f"r{i}", "vertices": entry} for i, entry in enumerate(lists)]
    runs[3] |= {"runtime_s": -1.0}
    write(tmp_path / "log.parquet", runs)
    for batch_rows in (2, 100):
        monkeypatch.setattr(tables, "BATCH_ROWS", batch_rows)
        rows, refused = read(tmp_path / "log.parquet")
        assert listed(rows, "vertices") == [entry for i, entry in enumerate(lists) if i != 3]
        assert refused["place"].to_list() == [4]


def test_a_log_without_conditions_gives_no_column_for_them(tmp_path: Path) -> None:
    plain = {name: RUN[name] for name in ("run_id", "name", "started_at", "runtime_s")}
    pq.write_table(pa.Table.from_pylist([plain]), tmp_path / "log.parquet")
    rows, _ = read(tmp_path / "log.parquet")
    assert list(rows) == [*COLUMNS, "place"]


def test_entries_may_lack_fields_and_have_others_in_other_numeric_types(tmp_path: Path) -> None:
    vertex = pa.struct([("colour", pa.string()), ("cpu_s", pa.float32()), ("vertex", pa.int64())])
    runs = [RUN | {"vertices": [{"colour": "red", "cpu_s": 0.5, "vertex": 7}]}]
    rows, refused = read(write(tmp_path / "log.parquet", runs, vertices=pa.large_list(vertex)))
    assert refused.empty
    assert listed(rows, "vertices") == [[dict.fromkeys(VERTEX) | {"vertex": 7, "cpu_s": 0.5}]]


def test_times_of_vertices_become_utc(tmp_path: Path) -> None:
    tokyo, naive = pa.timestamp("ms", "Asia/Tokyo"), pa.timestamp("ns")
    fields = [pa.field(field.name, field.type) for field in CONDITIONS["vertices"][0].value_type]
    kinds = [field.with_type({"started_at": tokyo, "ended_at": naive}.get(field.name, field.type)) for field in fields]
    japan = timezone(timedelta(hours=9))
    vertex = VERTEX | {"started_at": NOON.replace(tzinfo=UTC).astimezone(japan), "ended_at": NOON + timedelta(hours=2)}
    path = write(tmp_path / "log.parquet", [RUN | {"vertices": [vertex]}], vertices=pa.list_(pa.struct(kinds)))
    rows, _ = read(path, ReadParams(time_zone="Europe/Berlin"))
    (found,) = listed(rows, "vertices")[0]
    assert (found["started_at"], found["ended_at"]) == (NOON, NOON + timedelta(hours=1))


def with_first(column: str, **changed: Any) -> dict[str, Any]:
    first, *others = RUN[column]
    return {column: [first | changed, *others]}


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "negative tokens": ({"peak_tokens": -1.0}, "negative size or amount; expected 0 or more"),
    "infinite load": ({"load_mean": float("inf")}, "an infinite number; expected a finite one or none"),
    "operators in a list": ({"operators": '["SCAN"]'}, "operators is not a JSON object of counts"),
    "operators cut off": ({"operators": '{"SCAN": 2'}, "operators is not a JSON object of counts"),
    "operators without counts": ({"operators": '{"SCAN": "two"}'}, "operators is not a JSON object of counts"),
    "a vertex without number": (with_first("vertices", vertex=None), "a vertex without a number from 0"),
    "a vertex below 0": (with_first("vertices", vertex=-1), "a vertex without a number from 0"),
    "no vertex": ({"vertices": [None]}, "a vertex without a number from 0"),
    "a vertex twice": (with_first("vertices", vertex=1), "a vertex stands twice in one run"),
    "a vertex backwards": (
        with_first("vertices", ended_at=NOON - timedelta(microseconds=1)),
        "a vertex ends before it starts; check the times",
    ),
    "a vertex in the future": (
        with_first("vertices", ended_at=datetime(2222, 1, 1)),
        "a vertex lies before 1970 or in the future; check clock, unit and time zone",
    ),
    "negative tokens of a vertex": (
        with_first("vertices", mean_tokens=-0.1),
        "a negative or infinite number of a vertex; expected 0 or more",
    ),
    "a SKU without a name": (with_first("skus", sku=""), "a SKU without a name"),
    "a SKU twice": (with_first("skus", sku="gen6"), "a SKU stands twice in one run"),
    "negative tokens of a SKU": (
        with_first("skus", free_tokens=-1.0),
        "a negative or infinite number of a SKU; expected 0 or more",
    ),
    "a step without tokens": (with_first("skyline", tokens=None), "a step of the skyline without time or tokens"),
    "a step below nothing": (
        with_first("skyline", tokens=-1.0),
        "a negative or infinite number in the skyline; expected 0 or more",
    ),
    "a skyline backwards": (
        with_first("skyline", at_s=2.0),
        "the skyline goes back in time; expected at_s in ascending order",
    ),
}


@pytest.mark.parametrize(("change", "reason"), FAULTS.values(), ids=FAULTS)
def test_a_run_that_cannot_be_true_is_refused_alone(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    runs = [RUN, RUN | {"run_id": "bad"} | change, RUN | {"run_id": "r2"}]
    rows, refused = read(write(tmp_path / "log.parquet", runs))
    assert rows["run_id"].to_list() == ["r1", "r2"]
    assert refused[["place", "reason"]].to_numpy().tolist() == [[2, reason]]
    assert '"run_id": "bad"' in refused["raw"].iloc[0]


def test_a_skyline_may_start_again_lower_in_the_next_run(tmp_path: Path) -> None:
    late = RUN | {"run_id": "late", "skyline": [STEP | {"at_s": 5.0}]}
    _, refused = read(write(tmp_path / "log.parquet", [late, RUN]))
    assert refused.empty


WRONG_TYPES = {
    "text": (pa.string(), "x", "column 'vertices' (vertices) is of type 'string'; expected a list of structs (vertex"),
    "numbers": (pa.list_(pa.int64()), [1], "column 'vertices' (vertices) is of type 'list<element: int64>'; expected"),
    "text for a number": (
        pa.list_(pa.struct([("vertex", pa.int64()), ("cpu_s", pa.string())])),
        [{"vertex": 1, "cpu_s": "fast"}],
        "field 'cpu_s' of 'vertices' is of type 'string'; expected a list of structs (vertex int32, stage string",
    ),
    "fractions of vertices": (
        pa.list_(pa.struct([("vertex", pa.float64())])),
        [{"vertex": 1.5}],
        "field 'vertex' of 'vertices' is of type 'double'; expected a list of structs",
    ),
    "no number": (
        pa.list_(pa.struct([("stage", pa.string())])),
        [{"stage": "scan"}],
        "the entries of 'vertices' (vertices) have no field 'vertex'; expected a list of structs",
    ),
}


@pytest.mark.parametrize(("kind", "value", "said"), WRONG_TYPES.values(), ids=WRONG_TYPES)
def test_a_list_of_another_type_refuses_the_file_in_one_line(
    tmp_path: Path, kind: pa.DataType, value: Any, said: str
) -> None:
    path = write(tmp_path / "log.parquet", [RUN | {"vertices": value}], vertices=kind)
    with pytest.raises(BadInput) as refusal:
        read(path)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_number_of_a_vertex_too_large_for_it_is_refused_with_its_run(tmp_path: Path) -> None:
    kind = pa.list_(pa.struct([("vertex", pa.uint64())]))
    runs = [RUN | {"vertices": [{"vertex": 2**32}]}, RUN | {"run_id": "r2", "vertices": [{"vertex": 2**31 - 1}]}]
    rows, refused = read(write(tmp_path / "log.parquet", runs, vertices=kind))
    assert refused["reason"].to_list() == ["a vertex without a number from 0"]
    assert listed(rows, "vertices")[0][0]["vertex"] == 2**31 - 1


def test_csv_takes_the_plain_conditions_and_names_the_lists_as_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    pd.DataFrame([RUN]).to_csv(tmp_path / "log.csv", index=False)
    rows, refused = read(tmp_path / "log.csv")
    assert refused.empty
    assert {name: rows[name].iloc[0] for name in ("what_if", "operators", "load_sd", "temp_bytes")} == {
        name: RUN[name] for name in ("what_if", "operators", "load_sd", "temp_bytes")
    }
    assert "log.csv: skus, vertices, skyline left out: lists need Parquet" in caplog.text
