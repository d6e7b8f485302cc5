"""Wall-clock times to UTC, through daylight-saving changes. Berlin: forward on 2024-03-31, back on 2024-10-27."""

import pandas as pd
import pytest

from tasks.errors import BadSetting
from tasks.jobs.local_times import check_zone, needs_zone, read_times, settle

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
