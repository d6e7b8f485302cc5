"""Times that could be meant in several ways: each is read by the rule that tasks.intake.cells states, or refused."""

from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tasks.errors import BadSetting
from tasks.intake.cells import check_zone, from_epoch_s, measured, needs_zone, read_times, settle, time_of, utc_times
from tasks.intake.cells import times as times_of_nodes
from tasks.jobs.intake import Intake, land_log
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers import READERS
from tasks.warehouse.place import Warehouse
from tasks.workloads.readers.tables import unix_seconds

DAY, NOON = datetime(2026, 1, 31), datetime(2026, 1, 31, 12)
READ = {
    "20260131": DAY, "2026-01-31": DAY, "2026/1/31": DAY, "202601311200": NOON, "20260131120000": NOON,
    "20260131T120000": NOON, "20260131T130000+01:00": NOON, "2026-01-31T12:00:00": NOON,
    "2026-01-31 13:00:00 +0100": NOON, "2026-01-31 12:00:00 UTC": NOON, "1769860800": NOON,
    "1769860800.5": NOON.replace(microsecond=500_000), "1769860800000": NOON, "1769860800000000": NOON,
    "1769860800000000000": NOON, "100000000": datetime(1973, 3, 3, 9, 46, 40),
    "Sat, 31 Jan 2026 12:00:00 GMT": NOON, "Sat Jan 31 12:00:00 2026": NOON, "Sat Jan 31 12:00:00 UTC 2026": NOON,
    "31-Jan-2026 12:00": NOON, "Jan 31, 2026 12:00:00 PM": NOON, "31 January 2026 17:30 +0530": NOON,
}  # fmt: skip
REFUSED = (
    "46053", "46053.5", "260131", "20261399", "20260230", "99999999", "0", "1", "2026", "202601", "2026-01",
    "01/02/2026", "31.01.2026", "31.01.26", "26-01-31", "today", "now", "2026-02-30", "1e400", "yesterday", "12:00:00",
    "Jan 31 12:00:00", "Jan 2026", "31 Foo 2026", "Feb 30, 2026", "Sat Jan 31 12:00:00 CET 2026",
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), READ.items())
def test_a_time_is_read_by_the_rule_in_text_as_a_number_and_in_every_word(text: str, expected: datetime) -> None:
    assert time_of(text) == expected
    assert pd.Series(times_of_nodes(pa.array([text]), "UTC").values).to_list() == [expected]
    assert unix_seconds(pa.chunked_array([[text]]), "UTC")[0] == (expected - datetime(1970, 1, 1)).total_seconds()
    if text.isdigit():
        values, is_bad = utc_times(pa.array([int(text)]), "UTC")
        assert (pd.Timestamp(values[0]), is_bad.tolist()) == (expected, [False])


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_decided_is_no_time(text: str) -> None:
    values, is_bad = utc_times(pa.array([text, "2026-01-31", None]), "UTC")
    assert is_bad.tolist() == [True, False, False]
    assert pd.isna(values[0]) and pd.Timestamp(values[1]) == DAY and pd.isna(values[2])


def test_each_value_of_a_column_has_its_own_unit_and_form() -> None:
    values, is_bad = utc_times(pa.array(list(READ)), "UTC")
    assert values.astype("datetime64[us]").tolist() == list(READ.values())
    assert not is_bad.any()


MEASURED = {
    "percent": (["45.5%", None, "5 %"], [45.5, None, 5.0], "%"),
    "sizes": (["1.5 KiB", "2 kB", ""], [1536.0, 2000.0, None], "B"),
    "rates": (["1 MiB/s", "8 kBps"], [2.0**20, 8000.0], "B/s"),
    "bits": (["8 Mb/s", "16 kbps", "80 b/s"], [1e6, 2000.0, 10.0], "B/s"),
    "times": (["20 ms", "1.5 s"], [0.02, 1.5], "s"),
    "plain numbers": (["5", "1,5"], [5.0, 1.5], ""),
}


@pytest.mark.parametrize(("written", "values", "unit"), MEASURED.values(), ids=MEASURED)
def test_numbers_with_their_unit_are_in_base_units(
    written: list[str | None], values: list[float | None], unit: str
) -> None:
    cells, of_cells = measured(pa.array(written))
    assert (of_cells, cells.is_bad.any()) == (unit, False)
    assert [None if np.isnan(value) else value for value in cells.values] == values  # noqa: PD011


NO_UNIT = [
    ["5 %", "5 MB"], ["5 %", "fast"], ["1 MB/s", "1 MB"], ["5 parsecs", "6 parsecs"], ["5 Mb/s", "5 kB/s"],
    ["14:05", "14:10"], ["10M", "12M"], ["P1D"],
]  # fmt: skip


@pytest.mark.parametrize("written", NO_UNIT, ids=" ".join)
def test_a_column_of_several_units_or_of_none_that_is_sure_is_no_number(written: list[str]) -> None:
    cells, unit = measured(pa.array(written))
    assert unit == "" and cells.is_bad.any()


def test_a_date_is_midnight_of_the_zone_that_is_told() -> None:
    for text in ("20260131", "2026-01-31"):
        assert time_of(text, "Europe/Berlin") == datetime(2026, 1, 30, 23)
    assert time_of("1769860800", "Europe/Berlin") == NOON


@pytest.mark.parametrize("kind", [pa.string(), pa.int64()])
def test_dates_as_numbers_are_dates_in_a_table_of_samples_and_seconds_are_seconds(kind: pa.DataType) -> None:
    dates = pa.chunked_array([pa.array(["20260130", "20260131", "20260201", "20260230"]).cast(kind)])
    found = unix_seconds(dates, "UTC")
    assert (found[:3] - found[0]).tolist() == [0.0, 86_400.0, 172_800.0] and pd.isna(found[3])
    uptime = pa.chunked_array([pa.array([str(20_260_101 + at) for at in range(100)]).cast(kind)])
    assert unix_seconds(uptime, "UTC")[-1] == 20_260_200


def test_a_log_with_dates_as_numbers_has_runs_of_those_days_and_serial_numbers_are_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text(
        "run_id,name,submitted_at,runtime_s\n"
        + "".join(f"{i},load,20260101,5\n" for i in range(1, 6))
        + "6,load,46023,5\n"
    )
    (chunk,) = READERS["table"].read(str(log), ReadParams())
    assert chunk.rows["submitted_at"].to_list() == [pd.Timestamp("2026-01-01")] * 5
    assert chunk.refused["reason"].to_list() == ["submitted_at is not a time; expected ISO text or epoch seconds"]
    batch = land_log(Warehouse(home=tmp_path / "home"), str(log), Intake("log", "", ReadParams(), GroupParams()))
    assert (batch.tables["runs"].n_rows, batch.n_quarantined) == (5, 1)


EXPECTED = {
    0.0: "1970-01-01T00:00:00.000000",
    749458803.0: "1993-10-01T07:00:03.000000",  # the start of the NASA log
    1.0000004: "1970-01-01T00:00:01.000000",
    1.0000006: "1970-01-01T00:00:01.000001",
    -1.5: "1969-12-31T23:59:58.500000",
    1e300: "9999-12-31T23:59:59.000000",
    float("inf"): "9999-12-31T23:59:59.000000",
    float("nan"): "NaT",
}


def test_seconds_are_microseconds_as_in_the_warehouse_and_cut_at_the_end_of_the_calendar() -> None:
    found = from_epoch_s(list(EXPECTED))
    assert [str(one) for one in found] == list(EXPECTED.values())
    assert found.dtype == from_epoch_s([]).dtype == np.dtype("datetime64[us]")


BERLIN = "Europe/Berlin"


def texts(*values: str | None) -> pd.Series:
    return pd.Series(list(values), dtype="str")


def chosen(submit: str | None, start: str | None, end: str | None, elapsed_s: float = float("nan")) -> list[str]:
    """What is chosen, in UTC, for times in Berlin on 2024-10-27, when the hour from 02:00 to 03:00 came twice."""
    readings = [read_times(texts(time and f"2024-10-27T{time}:00"), BERLIN) for time in (submit, start, end)]
    settled = settle(*readings, pd.Series([elapsed_s]))
    return ["-" if time.isna()[0] else f"{time[0]:%H:%M}" for time in settled]


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-07-01T12:00:00", "2024-07-01 10:00:00"),  # summer time
        ("2024-12-01T12:00:00", "2024-12-01 11:00:00"),
        ("2024-12-01T12:00:00+0530", "2024-12-01 06:30:00"),  # SLURM_TIME_FORMAT=%FT%T%z
        ("2024-12-01T12:00:00-05:00", "2024-12-01 17:00:00"),
        ("2024-12-01T12:00:00Z", "2024-12-01 12:00:00"),
        ("1733054400", "2024-12-01 12:00:00"),  # SLURM_TIME_FORMAT=%s
    ],
)
def test_each_way_to_write_a_time_gives_its_utc(text: str, utc: str) -> None:
    assert read_times(texts(text), BERLIN).first[0] == pd.Timestamp(utc)


def test_only_wall_clock_times_need_a_zone() -> None:
    assert needs_zone(texts("1733054400", "2024-12-01T12:00:00"))
    assert not needs_zone(texts("1733054400", "2024-12-01T12:00:00Z", "noon", None))


@pytest.mark.parametrize(
    "text", ["noon", "2024-13-01T00:00:00", "2024-02-30T00:00:00", "12", "2024-12-01", "9999-12-31T23:59:59"]
)
def test_what_is_no_time_is_a_problem(text: str) -> None:
    readings = read_times(texts(None, text), BERLIN)
    assert readings.problem.to_dict() == {1: "is not a time (YYYY-MM-DDTHH:MM:SS)"}


def test_a_time_that_the_zone_skipped_is_a_problem() -> None:
    readings = read_times(texts("2024-03-31T01:59:59", "2024-03-31T02:30:00", "2024-03-31T03:00:00"), BERLIN)
    assert readings.problem.to_dict() == {
        1: "does not exist in Europe/Berlin, where clocks were put forward; wrong time zone?"
    }


@pytest.mark.parametrize(
    ("wall", "elapsed_min", "utc"),
    [
        # submit, start, end on the wall; 02:30 is 00:30 or 01:30 UTC, 03:10 is 02:10 UTC
        (("01:00", "02:30", "03:10"), 100, ["23:00", "00:30", "02:10"]),  # the elapsed time tells: the first 02:30
        (("01:00", "02:30", "03:10"), 40, ["23:00", "01:30", "02:10"]),  # … the second
        (("02:30", "02:30", "03:10"), 40, ["01:30", "01:30", "02:10"]),  # the submission follows: shortest wait
        (("02:40", "02:50", "02:10"), 20, ["00:40", "00:50", "01:10"]),  # runs over the change, order kept
        (("02:50", "02:10", "02:30"), 20, ["00:50", "01:10", "01:30"]),  # waits over the change
        (("02:10", "02:20", "02:30"), 10, ["00:10", "00:20", "00:30"]),  # both fit: the earlier
        ((None, "02:30", None), float("nan"), ["-", "00:30", "-"]),  # nothing tells: the earlier
        (("12:00", "12:01", "12:05"), 4, ["11:00", "11:01", "11:05"]),  # not in the hour that occurs twice
    ],
)
def test_in_the_hour_that_occurs_twice_order_and_elapsed_time_decide(
    wall: tuple[str | None, str | None, str | None], elapsed_min: float, utc: list[str]
) -> None:
    assert chosen(*wall, elapsed_min * 60) == utc


def test_a_zone_with_negative_daylight_saving_reads_the_earlier_time_first() -> None:
    readings = read_times(texts("2024-10-27T01:30:00"), "Europe/Dublin")
    assert readings.first[0] == pd.Timestamp("2024-10-27 00:30")
    assert readings.second[0] == pd.Timestamp("2024-10-27 01:30")


@pytest.mark.parametrize("zone", ["Berlin", "Europe", "../etc/passwd", "Europe/Berlin\n"])
def test_an_unknown_zone_is_one_clear_line(zone: str) -> None:
    with pytest.raises(BadSetting, match=r"no time zone is called .* expected a name such as Europe/Berlin"):
        check_zone(zone)
