"""Tables of runs: the same rows whatever types and spelling; names, words and units of others; times of all kinds."""

import csv
import gzip
import io
import json
import logging
import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from tasks.errors import BadInput, BadSetting
from tasks.intake import files, tables
from tasks.jobs.columns import COLUMNS, CONDITIONS, LIST_COLUMNS, MADE_COLUMNS, NUMBER_COLUMNS, RUNS_SCHEMA
from tasks.jobs.grouping import group_keys
from tasks.jobs.intake import Intake, land_log
from tasks.jobs.params import GroupParams, Measured, ReadParams
from tasks.jobs.readers import READERS
from tasks.jobs.readers.table import in_microseconds
from tasks.params import ReadLimits
from tasks.warehouse.connection import reading
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse

NOON = pd.Timestamp("2026-01-01 12:00:00")
DEFAULT = ReadParams()
BERLIN = ReadParams(time_zone="Europe/Berlin")
HEADER = "run_id,name,started_at,runtime_s,status,peak_memory_bytes"
LINE = "r1,etl,2026-01-01T12:00:00,1.5,completed,1024"


def read(path: Path | str, params: ReadParams = DEFAULT) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(READERS["table"].read(str(path), params))
    rows, refused = ([getattr(chunk, part) for chunk in chunks] for part in ("rows", "refused"))
    return pd.concat(rows, ignore_index=True), pd.concat(refused, ignore_index=True)


def of_csv(tmp_path: Path, text: str, params: ReadParams = DEFAULT) -> tuple[pd.DataFrame, pd.DataFrame]:
    (tmp_path / "log.csv").write_bytes(text.encode())
    return read(tmp_path / "log.csv", params)


def of_parquet(tmp_path: Path, params: ReadParams = DEFAULT, **columns: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    n_rows = max(len(column) for column in columns.values())
    needed = {"run_id": [f"r{i}" for i in range(n_rows)], "name": ["etl"] * n_rows}
    times = {"started_at": [NOON.to_pydatetime()] * n_rows, "runtime_s": [1.5] * n_rows}
    pq.write_table(pa.table({**needed, **times, **columns}), tmp_path / "log.parquet")
    return read(tmp_path / "log.parquet", params)


def test_one_line_worked_out_by_hand(tmp_path: Path) -> None:
    rows, refused = of_csv(tmp_path, f"{HEADER}\n{LINE}\n")
    assert refused.empty
    assert rows.iloc[0].dropna().to_dict() == {
        "run_id": "r1", "name": "etl", "started_at": NOON, "ended_at": NOON + pd.Timedelta(seconds=1.5),
        "runtime_s": 1.5, "status": "completed", "peak_memory_bytes": 1024.0, "is_simulated": False, "place": 2,
    }  # fmt: skip


def test_parquet_and_csv_of_the_same_runs_give_the_same_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    runs = pd.DataFrame(
        {
            "run_id": [f"id {i}" for i in range(200)],
            "name": rng.choice(["a,b", 'say "hi"', "two\nlines", "plain", "naïve"], 200),
            "submitted_at": NOON + pd.to_timedelta(rng.integers(0, 10**12, 200), unit="us"),
            "wait_s": np.round(rng.exponential(3, 200), 6),
            "runtime_s": rng.exponential(100, 200),
            "status": rng.choice(["completed", "failed", "timeout"], 200),
            "input_bytes": np.where(rng.random(200) < 0.3, np.nan, rng.integers(0, 2**50, 200)),
            "is_simulated": rng.random(200) < 0.5,
        }
    )
    runs.to_csv(tmp_path / "log.csv", index=False)
    runs.to_csv(tmp_path / "log.csv.gz", index=False)
    runs.to_parquet(tmp_path / "log.parquet")
    (parquet, none), (text, empty), (packed, _) = (
        read(tmp_path / name) for name in ("log.parquet", "log.csv", "log.csv.gz")
    )
    assert (len(parquet), len(none), len(empty)) == (200, 0, 0)
    pd.testing.assert_frame_equal(text.drop(columns="place"), parquet.drop(columns="place"))
    pd.testing.assert_frame_equal(packed, text)
    assert parquet["name"].to_list() == runs["name"].to_list()


TIMES = {
    "microseconds": (pa.array([NOON.to_pydatetime()], pa.timestamp("us")), NOON),
    "nanoseconds": (pa.array([NOON.value + 1999], pa.timestamp("ns")), NOON + pd.Timedelta(microseconds=1)),
    "with a zone": (pa.array([NOON.value // 1000], pa.timestamp("us", "Asia/Tokyo")), NOON),
    "milliseconds": (pa.array([NOON.value // 10**6], pa.timestamp("ms")), NOON),
    "a day": (pa.array([date(2026, 1, 1)]), NOON.normalize()),
    "epoch seconds": (pa.array([1767268800]), NOON),
    "fractions of epoch seconds": (pa.array([1767268800.25]), NOON + pd.Timedelta(seconds=0.25)),
    "text": (pa.array(["2026-01-01 12:00:00"]), NOON),
    "text with a day only": (pa.array(["2026-01-01"]), NOON.normalize()),
    "text with a zone": (pa.array(["2026-01-01T13:00:00+01:00"]), NOON),
    "text with Z": (pa.array(["2026-01-01T12:00:00Z"]), NOON),
    "text with nanoseconds": (pa.array(["2026-01-01T12:00:00.123456789"]), NOON + pd.Timedelta(microseconds=123456)),
    "text of epoch seconds": (pa.array(["1767268800.5"]), NOON + pd.Timedelta(seconds=0.5)),
    "categories": (pa.array(["2026-01-01 12:00:00"]).dictionary_encode(), NOON),
}


@pytest.mark.parametrize(("column", "expected"), TIMES.values(), ids=TIMES)
def test_times_may_be_timestamps_text_or_epoch_seconds(tmp_path: Path, column: pa.Array, expected: Any) -> None:
    rows, refused = of_parquet(tmp_path, started_at=column)
    assert refused.empty
    assert rows["started_at"].to_list() == [expected]


def test_names_of_times_may_end_in_a_unit_where_their_values_are_times(tmp_path: Path) -> None:
    begun = {"job": ["etl"], "begin_ms": [NOON.value // 10**6], "took_s": [1.5], "queue_time_s": [2]}
    pq.write_table(pa.table(begun), tmp_path / "log.parquet")
    (tmp_path / "log.csv").write_text(f"{','.join(begun)}\netl,{NOON.value // 10**6},1.5,2\n")
    for name in ("log.parquet", "log.csv"):
        rows, refused = read(tmp_path / name)
        times = {"started_at": NOON, "submitted_at": NOON - pd.Timedelta(seconds=2), "wait_s": 2.0, "runtime_s": 1.5}
        assert refused.empty and rows.loc[0, list(times)].to_dict() == times


def test_several_spellings_of_time_may_stand_in_one_column(tmp_path: Path) -> None:
    texts = ["1767268800", "2026-01-01T12:00:00Z", "2026-01-01 13:00:00+0100", "2026-01-01T12:00", "nonsense", None]
    rows, refused = of_parquet(tmp_path, started_at=texts, submitted_at=["2026-01-01T11:59:00"] * 6)
    assert rows["started_at"].to_list()[:4] == [NOON] * 4
    assert refused["place"].to_list() == [5]
    assert refused["reason"].to_list() == ["started_at is not a time; expected ISO text or epoch seconds"]


def test_times_without_a_zone_are_of_the_zone_that_is_set(tmp_path: Path) -> None:
    text = f"{HEADER}\n{LINE}\nr2,etl,2026-01-01T12:00:00Z,1,completed,\nr3,etl,1767268800,1,completed,\n"
    rows, _ = of_csv(tmp_path, text, BERLIN)
    assert rows["started_at"].to_list() == [NOON - pd.Timedelta(hours=1), NOON, NOON]


def test_the_hour_that_occurs_twice_is_the_first_and_the_hour_that_was_skipped_is_refused(tmp_path: Path) -> None:
    twice, skipped = "2025-10-26T02:30:00", "2025-03-30T02:30:00"
    text = HEADER + "".join(f"\nr,etl,{time},1,completed," for time in (twice, skipped)) + "\n"
    rows, refused = of_csv(tmp_path, text, BERLIN)
    assert rows["started_at"].to_list() == [pd.Timestamp("2025-10-26 00:30")]  # summer time is UTC+2
    assert refused["place"].to_list() == [3]


def test_a_time_beyond_the_calendar_of_its_zone_is_refused_like_any_other(tmp_path: Path) -> None:
    far = pa.array([2**62], pa.timestamp("us"))
    _, refused = of_parquet(tmp_path, BERLIN, started_at=far)
    assert refused["reason"].to_list() == ["lies in the future; check clock, unit and time zone"]


def test_a_time_zone_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="no time zone is called 'Europe/Berlim'"):
        of_csv(tmp_path, f"{HEADER}\n{LINE}\n", ReadParams(time_zone="Europe/Berlim"))


NUMBERS = {
    "integers": (pa.array([7], pa.int32()), 7.0),
    "text": (pa.array([" 7.5 "]), 7.5),
    "decimals": (pa.array([Decimal("7.25")]), 7.25),
    "durations": (pa.array([7_500_000], pa.duration("us")), 7.5),
    "a word for missing": (pa.array(["NULL"]), None),
    "NaN": (pa.array([float("nan")]), None),
    "nothing at all": (pa.nulls(1), None),
}


@pytest.mark.parametrize(("column", "expected"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_may_have_any_type_that_holds_numbers(tmp_path: Path, column: pa.Array, expected: float | None) -> None:
    rows, refused = of_parquet(tmp_path, wait_s=column)
    assert refused.empty
    assert rows["wait_s"].dropna().to_list() == ([] if expected is None else [expected])


TEXTS = {
    "integers": (pa.array([17]), "17"),
    "floats, as pandas makes of integers with gaps": (pa.array([17.0]), "17"),
    "categories": (pa.array(["x"]).dictionary_encode(), "x"),
    "a word that elsewhere means missing": (pa.array(["NULL"]), "NULL"),
    "large text": (pa.array([" x "], pa.large_string()), "x"),
}


@pytest.mark.parametrize(("column", "expected"), TEXTS.values(), ids=TEXTS)
def test_names_and_ids_may_be_text_or_numbers(tmp_path: Path, column: pa.Array, expected: str) -> None:
    rows, _ = of_parquet(tmp_path, run_id=column, name=column)
    assert rows[["run_id", "name"]].to_numpy().tolist() == [[expected, expected]]


@pytest.mark.parametrize("flags", [[True, False, None], ["true", "NO", ""], [1, 0, None], ["1.0", "0", None]])
def test_flags_may_be_words_or_numbers(tmp_path: Path, flags: list[Any]) -> None:
    rows, refused = of_parquet(tmp_path, is_simulated=flags)
    assert refused.empty
    assert rows["is_simulated"].to_list() == [True, False, False]


def test_a_name_over_several_lines_is_one_run_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [f'r{i},"SELECT ""a"",\n\n  {i}\nFROM t",2026-01-01,{i},completed,' for i in range(12)]
    text = "\n".join([HEADER, *runs]) + "\n"
    whole, none = of_csv(tmp_path, text)
    assert whole["name"].iloc[7] == 'SELECT "a",\n\n  7\nFROM t'
    assert whole["place"].to_list() == list(range(2, 50, 4))
    for block_bytes in (50, 400):
        monkeypatch.setattr(files, "BLOCK_BYTES", block_bytes)
        rows, refused = read(tmp_path / "log.csv")
        pd.testing.assert_frame_equal(rows, whole)
        assert len(refused) == len(none) == 0


ODD_QUOTES = {
    "quotes inside a word": ('5" disk', '5" disk'),
    "quotes around a part": ('"a"b', "ab"),
    "doubled quotes": ('"a ""b"" c"', 'a "b" c'),
}


@pytest.mark.parametrize(("written", "name"), ODD_QUOTES.values(), ids=ODD_QUOTES)
@pytest.mark.parametrize("neighbour", ["", "broken line\n"])
def test_a_line_is_read_alike_beside_good_and_broken_ones(
    tmp_path: Path, neighbour: str, written: str, name: str
) -> None:
    rows, _ = of_csv(tmp_path, f"SEP=,\n{HEADER}\n{neighbour}{LINE.replace('etl', written)}\n{LINE}\n")
    assert rows["name"].to_list() == [name, "etl"]


def test_parquet_is_read_in_batches_and_rows_are_numbered_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "BATCH_ROWS", 7)
    runtimes = [float(i) for i in range(50)]
    runtimes[40] = -1.0
    rows, refused = of_parquet(tmp_path, runtime_s=runtimes)
    assert rows["place"].to_list() == [place for place in range(1, 51) if place != 41]
    assert refused["place"].to_list() == [41]
    assert '"run_id": "r40"' in refused["raw"].iloc[0]


def test_columns_may_be_renamed_and_a_renamed_one_wins(tmp_path: Path) -> None:
    text = "job,name,start,runtime_s,ms\n7,etl,1767268800,999,2\n"
    params = ReadParams(columns={"run_id": "job", "started_at": "start", "runtime_s": "ms"})
    rows, _ = of_csv(tmp_path, text, params)
    assert rows[["run_id", "runtime_s"]].to_numpy().tolist() == [["7", 2.0]]


def unread(tmp_path: Path, more: list[str], **params: Any) -> list[str]:
    (tmp_path / "log.csv").write_text(f"{','.join([HEADER, *more])}\n{','.join([LINE, *more])}\n")
    (chunk,) = READERS["table"].read(str(tmp_path / "log.csv"), ReadParams(**params))
    return [line for line in chunk.understood if line.startswith("not read: ")]


def test_columns_that_are_not_read_are_named_and_no_more_than_a_line_holds(tmp_path: Path) -> None:
    [line] = unread(tmp_path, ["mood", "colour"])
    assert line.startswith("not read: 'mood', 'colour' (") and "--features NAME" in line
    [line] = unread(tmp_path, [f"c{n}" for n in range(20)])
    assert "'c11' and 8 more (" in line and "'c12'" not in line


def test_of_a_list_of_which_one_entry_is_read_the_others_are_not_named(tmp_path: Path) -> None:
    steps = [{"startTimeEpoch": 1_709_258_400_000, "endTimeEpoch": 1_709_258_460_000, "completed": True}] * 2
    (tmp_path / "runs.json").write_text(json.dumps([{"id": "a", "name": "etl", "attempts": steps}]))
    (chunk,) = READERS["table"].read(str(tmp_path / "runs.json"), ReadParams())
    assert not [line for line in chunk.understood if line.startswith("not read: ")]


def test_what_is_kept_as_a_feature_is_read(tmp_path: Path) -> None:
    assert unread(tmp_path, ["mood"], features=["mood"]) == unread(tmp_path, []) == []


def test_rows_keep_a_group_key_that_the_log_gives(tmp_path: Path) -> None:
    rows, _ = of_csv(tmp_path, "run_id,group_key,started_at,ended_at\n1,mine,2026-01-01,2026-01-01\n")
    assert rows["group_key"].to_list() == ["mine"]


WRONG_COLUMNS = {
    "no times": (
        "run_id,name",
        {},
        "no column started_at or submitted_at and no runtime_s or ended_at among 'run_id', 'name'; expected the "
        "columns run_id, name or group_key, started_at or submitted_at, runtime_s or ended_at; name yours, as in --map",
    ),
    "an end alone": (
        "run_id,name,submitted_at,ended_at",
        {},
        "ended_at without started_at gives no runtime; expected the columns run_id, name or group_key,",
    ),
    "twice": (f"{HEADER},name", {}, "the column 'name' stands there twice; expected each column once"),
    "mapped from nowhere": (
        HEADER,
        {"name": "title"},
        "no column 'title' to read 'name' from; expected one of 'run_id',",
    ),
    "mapped to nowhere": (HEADER, {"nam": "name"}, "cannot map 'name' to 'nam'; expected one of run_id, group_key,"),
    "many columns": (",".join(f"c{i}" for i in range(30)), {}, "'c18', 'c19' and 10 more; expected"),
}


def test_a_table_without_a_header_is_told_in_one_short_line(tmp_path: Path) -> None:
    cells = [f"{'x' * 300}{number}" for number in range(400)]
    row = ",".join(["17", "load", "2026-01-01T00:00:00", *cells]) + "\n"
    with pytest.raises(BadInput, match="the first line seems to be a row: add a line with the names") as refusal:
        of_csv(tmp_path, row * 2)
    assert len(str(refusal.value).removeprefix(str(tmp_path))) < 1200


@pytest.mark.parametrize(("header", "columns", "said"), WRONG_COLUMNS.values(), ids=WRONG_COLUMNS)
def test_wrong_columns_are_named(tmp_path: Path, header: str, columns: dict[str, str], said: str) -> None:
    with pytest.raises(BadInput) as refusal:
        of_csv(tmp_path, f"{header}\n", ReadParams(columns=columns))
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


FEATURES = f"{HEADER},files,branch,ok,hash\n{LINE},12,main,True,007\n{LINE.replace('r1', 'r2')},,NA,,1.50\n"


def features_in(tmp_path: Path, *names: str, text: str = FEATURES) -> list[object]:
    rows, refused = of_csv(tmp_path, text, ReadParams(features=list(names)))
    assert refused.empty
    return [json.loads(told) if isinstance(told, str) else None for told in rows["features"]]


def test_named_columns_are_kept_as_features_numbers_as_numbers_and_missing_ones_left_out(tmp_path: Path) -> None:
    assert features_in(tmp_path, "files", "branch") == [{"files": 12, "branch": "main"}, None]
    assert features_in(tmp_path, "hash") == [{"hash": "007"}, {"hash": 1.5}]


def test_all_keeps_every_column_that_is_not_ours(tmp_path: Path) -> None:
    assert features_in(tmp_path, "all") == [{"files": 12, "branch": "main", "ok": "True", "hash": "007"}, {"hash": 1.5}]
    # the same where a text runs over lines, so that the file is read record by record
    broken = FEATURES.replace("main", '"ma\nin"')
    assert features_in(tmp_path, "branch", text=broken) == [{"branch": "ma\nin"}, None]


def test_a_feature_that_is_no_column_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no column 'fils' to keep as a feature; expected one of .*; mend --features"):
        features_in(tmp_path, "fils")


def test_features_of_parquet_keep_their_types_and_lists_are_none(tmp_path: Path) -> None:
    at = pd.Timestamp("2026-01-01 12:00")
    run = {"run_id": "r1", "name": "etl", "started_at": at, "runtime_s": 1.5}
    mine = {"files": 12, "share": 0.25, "nan": np.nan, "ok": True, "made_at": at, "tags": ["a"]}
    pd.DataFrame([run | mine]).to_parquet(tmp_path / "log.parquet")
    (chunk,) = READERS["table"].read(str(tmp_path / "log.parquet"), ReadParams(features=["all"]))
    told = json.loads(chunk.rows["features"].iloc[0])
    assert told.pop("made_at").startswith("2026-01-01 12:00:00")
    assert told == {"files": 12, "share": 0.25, "ok": True}
    with pytest.raises(BadInput, match=r"column 'tags' is of type 'list<.*>'; expected text, numbers or times"):
        list(READERS["table"].read(str(tmp_path / "log.parquet"), ReadParams(features=["tags"])))


def test_without_features_named_none_are_kept_and_a_column_called_features_is_no_exception(tmp_path: Path) -> None:
    rows, refused = of_csv(tmp_path, f"{HEADER},features\n{LINE},many\n")
    assert ("features" in rows, len(refused)) == (False, 0)


def test_features_and_the_named_key_reach_the_warehouse_and_another_choice_replaces_the_rows(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(FEATURES.replace("run_id,name", "run_id,account").replace("etl", "physics"))
    home = Warehouse(home=tmp_path / "home")
    read, by = ReadParams(features=["files"], columns={"name": "branch"}), GroupParams(by=["account"])
    for chosen in (read, read.model_copy(update={"features": ["ok"]})):
        batch = land_log(home, str(tmp_path / "log.csv"), Intake("s", "", chosen, by))
        ingest(home, "jobs", batch.batch_id)
        with reading(home) as connection:
            rows = connection.execute("SELECT run_id, group_key, features FROM jobs.runs ORDER BY run_id").fetchall()
        told = '{"files": 12}' if chosen is read else '{"ok": "True"}'
        assert rows == [("r1", "physics", told), ("r2", "physics", None)]


ETL = {"run_id": "1", "name": "etl", "started_at": "2026-01-01T00:00:00Z", "runtime_s": "2"}


def read_runs(path: Path, runs: list[dict[str, Any]], **params: Any) -> tuple[pd.DataFrame, list[str]]:
    pd.DataFrame(runs).to_csv(path, index=False)
    chunks = list(READERS["table"].read(str(path), ReadParams(**params)))
    refused = [reason for chunk in chunks for reason in chunk.refused["reason"]]
    return pd.concat([chunk.rows for chunk in chunks]), refused


def test_statuses_in_other_words_are_read_and_an_unknown_one_is_shown_with_how_to_map_it(tmp_path: Path) -> None:
    words = ["SUCCESS", "FAILURE", "TIMED_OUT", "green", "0", ""]
    runs = [ETL | {"run_id": f"{row}", "state": word} for row, word in enumerate(words)]
    rows, refused = read_runs(tmp_path / "log.csv", runs, columns={"status": "state"})
    assert rows["status"].to_list() == ["completed", "failed", "timeout", "unknown"]
    expected = "expected a word such as completed, failed, cancelled, timeout, running, pending, unknown; map it: "
    assert refused == [
        f"status 'green' is not known; {expected}--map-value 'status:green=completed'",
        "status '0' is a number, which counts in a column of exit codes alone; "
        f"{expected}--map-value 'status:0=completed'",
    ]
    mapped = {"green": "completed", "0": "failed"}
    rows, refused = read_runs(tmp_path / "log.csv", runs, columns={"status": "state"}, statuses=mapped)
    assert rows["status"].to_list()[3:] == ["completed", "failed", "unknown"] and not refused


def test_exit_codes_are_statuses_in_a_column_that_is_called_so(tmp_path: Path) -> None:
    runs = [ETL | {"run_id": f"{code}", "exit_code": code} for code in (0, 1, 137)]
    rows, refused = read_runs(tmp_path / "log.csv", runs, columns={"status": "exit_code"})
    assert rows["status"].to_list() == ["completed", "failed", "failed"] and not refused


@pytest.mark.parametrize(
    ("ours", "theirs", "unit", "value"),
    [
        ("input_bytes", "data", "GB", 3e9),
        ("input_bytes", "data", "GiB", 3 * 2**30),
        ("runtime_s", "took", "ms", 0.003),
        ("runtime_s", "took", "min", 180.0),
        ("input_bytes", "input_gb", "", 3e9),  # what the name says
        ("runtime_s", "durationMs", "", 0.003),
        ("input_bytes", "input_gb", "B", 3.0),  # the flag counts before the name
        ("input_bytes", "data", "", 3.0),
    ],
)
def test_units_come_from_the_flag_or_from_the_name_of_the_column(
    tmp_path: Path, ours: str, theirs: str, unit: str, value: float
) -> None:
    run = {name: field for name, field in ETL.items() if name != ours} | {theirs: "3"}
    rows, _ = read_runs(tmp_path / "l.csv", [run], columns={ours: theirs}, units={ours: unit} if unit else {})
    assert rows[ours].to_list() == [pytest.approx(value)]


def test_a_name_that_may_end_in_two_units_asks_for_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"the unit of 'mem_m' \(input_bytes\) is not clear: .*--unit input_bytes=UNIT"):
        read_runs(tmp_path / "log.csv", [ETL | {"mem_m": "1"}], columns={"input_bytes": "mem_m"})


def test_a_unit_or_a_status_that_does_not_exist_is_refused_as_a_setting() -> None:
    with pytest.raises(ValidationError, match="'GX' is no unit of input_bytes; expected one of B, kB, MB, GB"):
        ReadParams(units={"input_bytes": "GX"})
    with pytest.raises(ValidationError):
        ReadParams.model_validate({"statuses": {"green": "fine"}})


def test_units_are_for_all_numbers_in_seconds_and_bytes_that_were_read() -> None:
    assert set(get_args(Measured)) == {name for name in NUMBER_COLUMNS if name.endswith(("_s", "_bytes"))}


def test_builds_of_github_are_read_in_one_go_with_the_map_of_the_readme(request: pytest.FixtureRequest) -> None:
    path = Path(os.environ.get("WHORL_DATASETS", "-")) / "gha" / "ccpay_wf6192976.csv.gz"
    if not path.exists():
        pytest.skip("needs gha/ccpay_wf6192976.csv.gz in the folder WHORL_DATASETS")
    readme = (Path(__file__).parents[3] / "tasks" / "jobs" / "README.md").read_text()
    call = readme[readme.index("jobs ingest builds.csv.gz") :].partition("\n\n")[0].split()
    columns = dict(word.split("=") for flag, word in pairwise(call) if flag == "--map")
    chunks = list(READERS["table"].read(str(path), ReadParams(columns=columns)))
    rows = pd.concat([chunk.rows for chunk in chunks])
    request.addfinalizer(partial(csv.field_size_limit, csv.field_size_limit(2**30)))  # it is of the whole process
    with gzip.open(path, "rt") as file:
        theirs = list(csv.DictReader(file))
    right = [float(row["build_duration"]) for row in theirs if row["conclusion"] == "success"]
    assert len(rows) == len(theirs) == 2198 and sum(len(chunk.refused) for chunk in chunks) == 0
    assert rows["status"].value_counts().to_dict() == {"failed": 1099, "completed": 1097, "cancelled": 2}
    assert len(set(group_keys(rows))) == 1
    assert rows.loc[rows["status"] == "completed", "runtime_s"].median() == median(right) == 349


NOON_UTC = NOON.to_pydatetime()
FAR = 9 * 10**15  # seconds: 285 million years, more than microseconds can count
FUTURE = "lies in the future; check clock, unit and time zone"
PAST = "lies before 1970; check the unit of the times"


def write(path: Path, started: pa.Array, **more: pa.Array) -> Path:
    n = len(started)
    names = {"run_id": [str(row) for row in range(n)], "name": ["etl"] * n, "runtime_s": [1.0] * n}
    pq.write_table(pa.table({**names, "started_at": started, **more}), path, coerce_timestamps=None)
    return path


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_start_too_far_out_is_refused_alone(tmp_path: Path, unit: str, zone: str | None) -> None:
    far = FAR if unit == "s" else FAR * 1000
    noon = int((NOON_UTC - datetime(1970, 1, 1)).total_seconds()) * (1 if unit == "s" else 1000)
    column = pa.array([noon, far, -far, None], pa.int64()).cast(pa.timestamp(unit, zone))
    if unit == "s":  # Parquet knows no seconds: they become milliseconds there
        rows = in_microseconds(column).cast(pa.int64()).to_pylist()
        assert rows == [noon * 10**6, 253_402_300_799 * 10**6, -253_402_300_799 * 10**6, None]
        return
    rows, refused = read(write(tmp_path / "far.parquet", column))
    assert rows["started_at"].to_list() == [pd.Timestamp(NOON_UTC)]
    assert refused["reason"].to_list() == [FUTURE, PAST, "neither submission nor start time; expected one of them"]


def test_dates_too_far_out_are_refused_alone(tmp_path: Path) -> None:
    days = pa.array([20_454, 2**31 - 1], pa.int32()).cast(pa.date32())
    rows, refused = read(write(tmp_path / "dates.parquet", days))
    assert rows["started_at"].to_list() == [pd.Timestamp("2026-01-01")]
    assert refused["reason"].to_list() == [FUTURE]


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_a_far_time_inside_a_list_is_refused_and_shown(tmp_path: Path, unit: str) -> None:
    far = FAR * 10**3
    kind = pa.list_(pa.struct([("vertex", pa.int32()), ("started_at", pa.timestamp(unit))]))
    inner = pa.StructArray.from_arrays(
        [pa.array([1, 2], pa.int32()), pa.array([far, 10**12], pa.int64()).cast(pa.timestamp(unit))],
        fields=list(kind.value_type),
    )
    vertices = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), inner, type=kind)
    _, refused = read(write(tmp_path / "far.parquet", pa.array([NOON_UTC]), vertices=vertices))
    assert refused["reason"].iloc[0].startswith("a vertex lies before 1970 or in the future")
    assert f'"vertices": [{{"vertex": 1, "started_at": "{far} timestamp[{unit}]"}}' in refused["raw"].iloc[0]


def test_a_list_cannot_be_mapped_in_csv(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("run_id,name,started_at,runtime_s,parts\n1,a,2026-01-01,3,[]\n")
    with pytest.raises(BadInput, match=r"cannot map 'parts' to 'vertices'; .*; lists need Parquet"):
        read(tmp_path / "log.csv", ReadParams(columns={"vertices": "parts"}))


NOON_AT = datetime(2026, 1, 1, 12)
VERTEX = {
    "vertex": 0, "stage": "scan", "sku": "gen5", "started_at": NOON_AT, "ended_at": NOON_AT + timedelta(seconds=1),
    "cpu_s": 0.5, "min_tokens": 1.0, "mean_tokens": 2.0, "peak_tokens": 3.0, "read_bytes": 10.0, "temp_bytes": 0.0,
}  # fmt: skip
SKU = {"sku": "gen5", "tokens": 10.0, "free_tokens": 4.0, "load_mean": 0.6, "load_sd": 0.1}
STEP = {"at_s": 0.0, "tokens": 3.0, "guaranteed": 2.0}
RUN: dict[str, Any] = {
    "run_id": "r1", "name": "etl", "started_at": NOON_AT, "runtime_s": 2.0, "status": "completed", "period": "D1",
    "what_if": "baseline", "matched_run_id": "r0", "account": "physics", "partition": "fat", "qos": "night",
    "operators": json.dumps({"SCAN": 2, "JOIN": 1}), "estimated_rows": 10.0, "estimated_cost": 120.0,
    "spare_tokens_available": 4.0, "queue_length": 1.0, "load_mean": 0.6, "load_sd": 0.1,
    "skus": [SKU, SKU | {"sku": "gen6"}], "min_tokens": 1.0, "peak_tokens": 3.0, "spare_tokens_used": 0.5,
    "read_bytes": 10.0, "temp_bytes": 0.0, "vertices": [VERTEX, VERTEX | {"vertex": 1}],
    "skyline": [STEP, STEP | {"at_s": 1.5, "tokens": 1.0}], "recorded_cause": "load",
}  # fmt: skip
OURS = pa.schema([field for field in RUNS_SCHEMA if field.name in RUN])


def write_lists(path: Path, runs: list[dict[str, Any]], **kinds: pa.DataType) -> Path:
    schema = pa.schema([(field.name, kinds.get(field.name, field.type)) for field in OURS])
    pq.write_table(pa.Table.from_pylist(runs, schema=schema), path)
    return path


def listed(rows: pd.DataFrame, column: str) -> list[Any]:
    return list(pa.array(rows[column]).to_pylist())


def test_every_condition_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows, refused = read(write_lists(tmp_path / "log.parquet", [RUN]))
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
    write_lists(tmp_path / "log.parquet", runs)
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
    rows, refused = read(write_lists(tmp_path / "log.parquet", runs, vertices=pa.large_list(vertex)))
    assert refused.empty
    assert listed(rows, "vertices") == [[dict.fromkeys(VERTEX) | {"vertex": 7, "cpu_s": 0.5}]]


def test_times_of_vertices_become_utc(tmp_path: Path) -> None:
    tokyo, naive = pa.timestamp("ms", "Asia/Tokyo"), pa.timestamp("ns")
    fields = [pa.field(field.name, field.type) for field in CONDITIONS["vertices"][0].value_type]
    kinds = [field.with_type({"started_at": tokyo, "ended_at": naive}.get(field.name, field.type)) for field in fields]
    japan = timezone(timedelta(hours=9))
    vertex = VERTEX | {
        "started_at": NOON_AT.replace(tzinfo=UTC).astimezone(japan),
        "ended_at": NOON_AT + timedelta(hours=2),
    }
    path = write_lists(tmp_path / "log.parquet", [RUN | {"vertices": [vertex]}], vertices=pa.list_(pa.struct(kinds)))
    rows, _ = read(path, ReadParams(time_zone="Europe/Berlin"))
    (found,) = listed(rows, "vertices")[0]
    assert (found["started_at"], found["ended_at"]) == (NOON_AT, NOON_AT + timedelta(hours=1))


def with_first(column: str, **changed: Any) -> dict[str, Any]:
    first, *others = RUN[column]
    return {column: [first | changed, *others]}


NO_COUNTS, NO_NUMBER = "operators is not a JSON object of counts", "a vertex without a number from 0"
AMOUNT = "a negative or infinite number {}; expected 0 or more"
BACKWARDS = with_first("vertices", ended_at=NOON_AT - timedelta(microseconds=1))
FUTURE_VERTEX = with_first("vertices", ended_at=datetime(2222, 1, 1))
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "negative tokens": ({"peak_tokens": -1.0}, "negative size or amount; expected 0 or more"),
    "infinite load": ({"load_mean": float("inf")}, "an infinite number; expected a finite one or none"),
    "operators in a list": ({"operators": '["SCAN"]'}, NO_COUNTS),
    "operators cut off": ({"operators": '{"SCAN": 2'}, NO_COUNTS),
    "operators without counts": ({"operators": '{"SCAN": "two"}'}, NO_COUNTS),
    "a vertex without number": (with_first("vertices", vertex=None), NO_NUMBER),
    "a vertex below 0": (with_first("vertices", vertex=-1), NO_NUMBER),
    "no vertex": ({"vertices": [None]}, NO_NUMBER),
    "a vertex twice": (with_first("vertices", vertex=1), "a vertex stands twice in one run"),
    "a vertex backwards": (BACKWARDS, "a vertex ends before it starts; check the times"),
    "a vertex in the future": (
        FUTURE_VERTEX,
        "a vertex lies before 1970 or in the future; check clock, unit and time zone",
    ),
    "negative tokens of a vertex": (with_first("vertices", mean_tokens=-0.1), AMOUNT.format("of a vertex")),
    "a SKU without a name": (with_first("skus", sku=""), "a SKU without a name"),
    "a SKU twice": (with_first("skus", sku="gen6"), "a SKU stands twice in one run"),
    "negative tokens of a SKU": (with_first("skus", free_tokens=-1.0), AMOUNT.format("of a SKU")),
    "a step without tokens": (with_first("skyline", tokens=None), "a step of the skyline without time or tokens"),
    "a step below nothing": (with_first("skyline", tokens=-1.0), AMOUNT.format("in the skyline")),
    "a skyline backwards": (
        with_first("skyline", at_s=2.0),
        "the skyline goes back in time; expected at_s in ascending order",
    ),
}


def test_a_run_that_cannot_be_true_is_refused_and_its_neighbours_are_read(tmp_path: Path) -> None:
    bad = [
        (RUN | {"run_id": f"bad {fault}"} | change, RUN | {"run_id": fault}) for fault, (change, _) in FAULTS.items()
    ]
    rows, refused = read(write_lists(tmp_path / "log.parquet", [run for pair in bad for run in pair]))
    assert rows["run_id"].to_list() == list(FAULTS)
    assert dict(zip(refused["place"], refused["reason"], strict=True)) == {
        2 * at + 1: reason for at, (_, reason) in enumerate(FAULTS.values())
    }
    assert all(f'"run_id": "bad {fault}"' in raw for fault, raw in zip(FAULTS, refused["raw"], strict=True))


def test_a_skyline_may_start_again_lower_in_the_next_run(tmp_path: Path) -> None:
    late = RUN | {"run_id": "late", "skyline": [STEP | {"at_s": 5.0}]}
    _, refused = read(write_lists(tmp_path / "log.parquet", [late, RUN]))
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
    path = write_lists(tmp_path / "log.parquet", [RUN | {"vertices": value}], vertices=kind)
    with pytest.raises(BadInput) as refusal:
        read(path)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_number_of_a_vertex_too_large_for_it_is_refused_with_its_run(tmp_path: Path) -> None:
    kind = pa.list_(pa.struct([("vertex", pa.uint64())]))
    runs = [RUN | {"vertices": [{"vertex": 2**32}]}, RUN | {"run_id": "r2", "vertices": [{"vertex": 2**31 - 1}]}]
    rows, refused = read(write_lists(tmp_path / "log.parquet", runs, vertices=kind))
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


RECORDED = sorted((Path(__file__).parents[3] / "data" / "recorded" / "jobs").glob("runs-*.parquet"))[:1]
pytestmark = pytest.mark.skipif(not RECORDED, reason="data/recorded/jobs holds no recording")
N_RUNS = 120
VICTIM = 50  # the row that is mutated, from 1; in CSV it stands one line lower
FAULTY = ReadParams(limits=ReadLimits(max_line_bytes=2048))


def assert_refused(path: Path, said: str, limits: ReadLimits = FAULTY.limits) -> None:
    with pytest.raises(BadInput) as refusal:
        read(path, ReadParams(limits=limits))
    assert said in str(refusal.value)
    assert str(refusal.value).startswith(f"{path}: ")
    assert "\n" not in str(refusal.value)


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    rows = pd.concat(pd.read_parquet(path) for path in RECORDED).head(N_RUNS)
    completed = rows.assign(status="completed", name="load, " + rows["name"])  # so that CSV has to quote
    return completed[[name for name in COLUMNS if name in rows]]


def replace(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda line: line.replace(old, new, 1)


def with_field(column: str, text: bytes) -> Callable[[bytes], bytes]:
    """Puts a text in the place of a field; the name is quoted and stands before all that are replaced here."""

    def mutate(line: bytes) -> bytes:
        position = [name for name in COLUMNS if name != "group_key"].index(column)
        fields = line.split(b",")  # one more than columns: the name holds a comma
        return b",".join([*fields[: position + 1], text, *fields[position + 2 :]])

    return mutate


LINE_FAULTS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a field less": (lambda line: line[: line.rindex(b",")], "18 fields; the header has 19"),
    "a field more": (lambda line: line + b",7", "20 fields; the header has 19"),
    "a quote that is not closed": (replace(b'"', b""), "20 fields; the header has 19"),
    "a quote that is never closed": (lambda line: b'"' + line.replace(b'"', b""), "a quote that is not closed"),
    "a word for a number": (with_field("runtime_s", b"fast"), "runtime_s is not a number, such as 'fast'"),
    "a clock of 400 digits": (
        with_field("runtime_s", b"9" * 400 + b":00:00"),
        "an infinite number; expected a finite one or none",
    ),
    "a decimal comma": (with_field("runtime_s", b'"1,5"'), "runtime_s is not a number, such as '1,5'"),
    "a date that does not exist": (
        with_field("started_at", b"2026-02-30T10:00:00"),
        "started_at is not a time; expected ISO text or epoch seconds",
    ),
    "a word for a flag": (with_field("is_simulated", b"maybe"), "is_simulated is not true or false, such as 'maybe'"),
    "a carriage return in it": (replace(b"load", b"lo\rad"), ""),
}
QUOTES = ("a quote that is not closed", "a quote that is never closed", "a decimal comma")  # each in a file of its own


@pytest.mark.parametrize("block_bytes", [8000, 4 * 2**20])
@pytest.mark.parametrize("faults", [*([name] for name in QUOTES), [name for name in LINE_FAULTS if name not in QUOTES]])
def test_a_broken_line_is_refused_with_its_number_and_the_rest_loads(
    tmp_path: Path, runs: pd.DataFrame, monkeypatch: pytest.MonkeyPatch, block_bytes: int, faults: list[str]
) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", block_bytes)
    lines = runs.to_csv(index=False).encode().splitlines()
    for at, (mutate, _) in enumerate((LINE_FAULTS[name] for name in faults), VICTIM):
        lines[at] = mutate(lines[at])
    (tmp_path / "log.csv").write_bytes(b"\n".join(lines) + b"\n")
    rows, refused = read(tmp_path / "log.csv", FAULTY)
    reasons = enumerate((LINE_FAULTS[name][1] for name in faults), VICTIM + 1)
    expected = [[place, reason] for place, reason in reasons if reason]
    assert refused.sort_values("place")[["place", "reason"]].to_numpy().tolist() == expected
    assert len(rows) == N_RUNS - len(expected)


WHOLE_CSV_FAULTS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "a header alone": (lambda text: text[: text.index(b"\n") + 1], "no row in it; expected a header line and at least"),
    "no header": (lambda text: text[text.index(b"\n") + 1 :], "no column run_id and no name or group_key and no"),
    "spaces between fields": (lambda text: text.replace(b",", b" "), "no column run_id and no name or group_key"),
}


@pytest.mark.parametrize(("mutate", "said"), WHOLE_CSV_FAULTS.values(), ids=WHOLE_CSV_FAULTS)
def test_a_csv_file_that_is_wrong_as_a_whole_is_refused_in_one_line(
    tmp_path: Path, runs: pd.DataFrame, mutate: Callable[[bytes], bytes], said: str
) -> None:
    (tmp_path / "log.csv").write_bytes(mutate(runs.to_csv(index=False).encode()))
    assert_refused(tmp_path / "log.csv", said)


def as_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def with_column(name: str, column: pa.Array) -> Callable[[pa.Table], bytes]:
    return lambda table: as_bytes(table.set_column(table.schema.get_field_index(name), name, column))


def flip(share: float) -> Callable[[pa.Table], bytes]:
    """Zeroes some bytes at a share of the file's length."""

    def mutate(table: pa.Table) -> bytes:
        data = as_bytes(table)
        start = int(len(data) * share)
        return data[:start] + bytes(40) + data[start + 40 :]

    return mutate


NOT_UTF8 = pa.array([b"\xff\xfe"] * N_RUNS, pa.binary())
WHOLE_PARQUET_FAULTS: dict[str, tuple[Callable[[pa.Table], bytes], str]] = {
    "cut off": (lambda table: as_bytes(table)[:-100], "the Parquet file is damaged (Parquet magic bytes not found"),
    "only its first bytes": (lambda table: as_bytes(table)[:4], "the Parquet file is damaged (Parquet file size is 4"),
    "zeros in the data": (flip(0.01), "the Parquet file is damaged ("),
    "zeros in the footer": (flip(0.95), "the Parquet file is damaged ("),
    "no rows": (lambda table: as_bytes(table[:0]), "no row in it; expected at least one run; export it again"),
    "a column twice": (
        lambda table: as_bytes(table.append_column("name", table["name"])),
        "the column 'name' stands there twice; expected each column once; export it again",
    ),
    "lists for runtimes": (
        with_column("runtime_s", pa.array([[1.0]] * N_RUNS)),
        "column 'runtime_s' (runtime_s) is of type 'list<element: double>'; expected numbers; convert it",
    ),
    "flags for times": (
        with_column("started_at", pa.array([True] * N_RUNS)),
        "column 'started_at' (started_at) is of type 'bool'; expected a timestamp, ISO text or epoch seconds",
    ),
    "bytes for names": (
        with_column("name", NOT_UTF8),
        "column 'name' (name) is of type 'binary'; expected text; convert it",
    ),
    "text that is not UTF-8": (
        with_column("name", pa.StringArray.from_buffers(N_RUNS, *NOT_UTF8.buffers()[1:])),
        "the Parquet file is damaged (",
    ),
}


@pytest.mark.parametrize(("mutate", "said"), WHOLE_PARQUET_FAULTS.values(), ids=WHOLE_PARQUET_FAULTS)
def test_a_parquet_file_that_is_wrong_as_a_whole_is_refused_in_one_line(
    tmp_path: Path, runs: pd.DataFrame, mutate: Callable[[pa.Table], bytes], said: str
) -> None:
    (tmp_path / "log.parquet").write_bytes(mutate(pa.Table.from_pandas(runs, preserve_index=False)))
    assert_refused(tmp_path / "log.parquet", said)


def test_a_parquet_file_over_the_limits_is_refused_before_it_is_unpacked(
    tmp_path: Path, runs: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.parquet"
    runs.to_parquet(path)
    assert_refused(path, "more than 1,024 bytes unpacked; expected a smaller file", ReadLimits(max_bytes=1024))
    runs.assign(name="x" * 500).to_parquet(path, use_dictionary=False, compression="zstd")
    monkeypatch.setattr(tables, "LARGE_COLUMN_BYTES", 100)
    assert_refused(
        path,
        "unpacks to more than 3 times its size; expected an ordinary log; look at it by hand",
        ReadLimits(max_ratio=3),
    )
