"""whorl's own job log: the same rows from Parquet and CSV, whatever the types and the spelling."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadSetting
from tasks.intake import files
from tasks.jobs.params import ReadParams
from tasks.jobs.readers import own as own_parquet
from tasks.jobs.readers.own import OwnReader

NOON = pd.Timestamp("2026-01-01 12:00:00")
UTC = ReadParams()
BERLIN = ReadParams(time_zone="Europe/Berlin")
HEADER = "run_id,name,started_at,runtime_s,status,peak_memory_bytes"
LINE = "r1,etl,2026-01-01T12:00:00,1.5,completed,1024"


def read(path: Path | str, params: ReadParams = UTC) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(OwnReader().read(str(path), params))
    rows, refused = ([getattr(chunk, part) for chunk in chunks] for part in ("rows", "refused"))
    return pd.concat(rows, ignore_index=True), pd.concat(refused, ignore_index=True)


def of_csv(tmp_path: Path, text: str, params: ReadParams = UTC) -> tuple[pd.DataFrame, pd.DataFrame]:
    (tmp_path / "log.csv").write_bytes(text.encode())
    return read(tmp_path / "log.csv", params)


def of_parquet(tmp_path: Path, params: ReadParams = UTC, **columns: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    n_rows = max(len(column) for column in columns.values())
    needed = {"run_id": [f"r{i}" for i in range(n_rows)], "name": ["etl"] * n_rows}
    times = {"started_at": [NOON.to_pydatetime()] * n_rows, "runtime_s": [1.5] * n_rows}
    pq.write_table(pa.table({**needed, **times, **columns}), tmp_path / "log.parquet")
    return read(tmp_path / "log.parquet", params)


def test_one_line_worked_out_by_hand(tmp_path: Path) -> None:
    rows, refused = of_csv(tmp_path, f"{HEADER}\n{LINE}\n")
    assert refused.empty
    assert rows.iloc[0].dropna().to_dict() == {
        "run_id": "r1",
        "name": "etl",
        "started_at": NOON,
        "ended_at": NOON + pd.Timedelta(seconds=1.5),
        "runtime_s": 1.5,
        "status": "completed",
        "peak_memory_bytes": 1024.0,
        "is_simulated": False,
        "place": 2,
    }


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


def test_a_vetted_log_written_again_is_read_as_it_was(tmp_path: Path) -> None:
    rows, _ = of_csv(tmp_path, f"{HEADER}\n{LINE}\nr2,x,2026-01-01,,running,\n")
    rows.drop(columns="place").to_parquet(tmp_path / "again.parquet")
    again, refused = read(tmp_path / "again.parquet")
    assert refused.empty
    pd.testing.assert_frame_equal(again.drop(columns="place"), rows.drop(columns="place"))


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


@pytest.mark.parametrize(("spelling", "status"), [("COMPLETED", "completed"), (" Canceled", "cancelled")])
def test_a_status_may_be_spelt_in_other_ways(tmp_path: Path, spelling: str, status: str) -> None:
    rows, _ = of_parquet(tmp_path, status=[spelling])
    assert rows["status"].to_list() == [status]


@pytest.mark.parametrize("flags", [[True, False, None], ["true", "NO", ""], [1, 0, None], ["1.0", "0", None]])
def test_flags_may_be_words_or_numbers(tmp_path: Path, flags: list[Any]) -> None:
    rows, refused = of_parquet(tmp_path, is_simulated=flags)
    assert refused.empty
    assert rows["is_simulated"].to_list() == [True, False, False]


def test_a_name_over_several_lines_is_one_run_wherever_blocks_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [f'r{i},"SELECT ""a"",\n\n  {i}\nFROM t",2026-01-01,{i},completed,' for i in range(30)]
    text = "\n".join([HEADER, *runs]) + "\n"
    whole, none = of_csv(tmp_path, text)
    assert whole["name"].iloc[7] == 'SELECT "a",\n\n  7\nFROM t'
    assert whole["place"].to_list() == list(range(2, 122, 4))
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
    rows, _ = of_csv(tmp_path, f"{HEADER}\n{neighbour}{LINE.replace('etl', written)}\n{LINE}\n")
    assert rows["name"].to_list() == [name, "etl"]


def test_parquet_is_read_in_batches_and_rows_are_numbered_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_parquet, "BATCH_ROWS", 7)
    runtimes = [float(i) for i in range(50)]
    runtimes[40] = -1.0
    rows, refused = of_parquet(tmp_path, runtime_s=runtimes)
    assert rows["place"].to_list() == [place for place in range(1, 51) if place != 41]
    assert refused["place"].to_list() == [41]
    assert '"run_id": "r40"' in refused["raw"].iloc[0]


def test_other_storage_is_read_too(tmp_path: Path) -> None:
    of_parquet(tmp_path, runtime_s=[3.0])
    with fsspec.open("memory://own/log.parquet", "wb") as file:
        file.write((tmp_path / "log.parquet").read_bytes())
    rows, _ = read("memory://own/log.parquet")
    assert rows["runtime_s"].to_list() == [3.0]
