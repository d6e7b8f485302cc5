"""Times that could be meant in several ways: each is read by the rule that tasks.times states, or refused."""

from datetime import datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from tasks.jobs.intake import Intake, land_log
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers.own import OwnReader
from tasks.nodes.vetting import times as times_of_nodes
from tasks.times import time_of, utc_times
from tasks.warehouse.place import Warehouse
from tasks.workloads.readers.times import unix_seconds

DAY, NOON = datetime(2026, 1, 31), datetime(2026, 1, 31, 12)
READ = {
    "20260131": DAY,
    "2026-01-31": DAY,
    "2026/1/31": DAY,
    "202601311200": NOON,
    "20260131120000": NOON,
    "20260131T120000": NOON,
    "20260131T130000+01:00": NOON,
    "2026-01-31T12:00:00": NOON,
    "2026-01-31 13:00:00 +0100": NOON,
    "2026-01-31 12:00:00 UTC": NOON,
    "1769860800": NOON,
    "1769860800.5": NOON.replace(microsecond=500_000),
    "1769860800000": NOON,
    "1769860800000000": NOON,
    "1769860800000000000": NOON,
    "100000000": datetime(1973, 3, 3, 9, 46, 40),
}
REFUSED = (
    "46053", "46053.5", "260131", "20261399", "20260230", "99999999", "0", "1", "2026", "202601", "2026-01",
    "01/02/2026", "31.01.2026", "31.01.26", "26-01-31", "today", "now", "2026-02-30", "1e400", "yesterday", "12:00:00",
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
    (chunk,) = OwnReader().read(str(log), ReadParams())
    assert chunk.rows["submitted_at"].to_list() == [pd.Timestamp("2026-01-01")] * 5
    assert chunk.refused["reason"].to_list() == ["submitted_at is not a time; expected ISO text or epoch seconds"]
    batch = land_log(Warehouse(home=tmp_path / "home"), str(log), Intake("log", "", ReadParams(), GroupParams()))
    assert (batch.tables["runs"].n_rows, batch.n_quarantined) == (5, 1)
