"""PerfSpect's metrics: version 3 for the machine, by socket and by group, version 1, and summaries."""

from datetime import datetime

import pytest

from tasks.errors import BadInput

V3 = "TS,SKT,CPU,CID,CPU operating frequency (in GHz),CPU utilization %,memory bandwidth read (MB/sec),TMA_(%)\n"
V1 = "time,metric_CPU operating frequency (in GHz),metric_CPU utilization %\n"


def test_version_3_has_unix_seconds_and_empty_fields_are_missing(found_in):
    found = found_in(V3 + "1700000000,,,,2.5,10,100,\n1700000005,,,,,20,200,\n1700000010,,,,2.7,30,300,\n")
    (run,) = found.runs
    assert (run.telemetry.interval_s, run.telemetry.started_at) == (5.0, datetime(2023, 11, 14, 22, 13, 20))
    assert found.column("perfspect.cpu_operating_frequency_in_ghz") == [2.5, None, 2.7]
    assert {one.name: (one.unit, one.is_rate) for one in run.telemetry.counters} == {
        "perfspect.cpu_operating_frequency_in_ghz": ("GHz", False),
        "perfspect.cpu_utilization_pct": ("", False),
        "perfspect.memory_bandwidth_read_mb_per_sec": ("MB/sec", True),
    }
    assert run.refused == ("TMA_(%): no value in it",)


@pytest.mark.parametrize("time", ["9" * 400, "1e300", "-1e300"])
def test_a_time_beyond_all_calendars_is_refused_alone(found_in, time):
    rows = "".join(f"{1700000000 + 5 * at},,,,2.5,10,100,1\n" for at in range(3))
    found = found_in(V3 + rows + f"{time},,,,2.5,10,100,1\n")
    assert (found.column("perfspect.cpu_utilization_pct"), found.n_read) == ([10, 10, 10], 4)
    assert len(found.reasons) == 1 and "time" in found.reasons[0]


def test_sockets_stand_side_by_side(found_in):
    rows = [
        f"{at},{socket},,,2.{socket},{at - 1700000000 + socket},1,1\n"
        for at in (1700000000, 1700000005)
        for socket in (0, 1)
    ]
    found = found_in(V3 + "".join(rows))
    assert found.column("perfspect.cpu_utilization_pct.socket0") == [0, 5]
    assert found.column("perfspect.cpu_utilization_pct.socket1") == [1, 6]
    assert found.n_read == 4


def test_groups_are_runs_of_their_own_and_a_row_that_stands_twice_is_refused(found_in):
    rows = [f"{at},,,{group},2,{len(group)},1,1\n" for at in (1700000000, 1700000005) for group in ("redis", "db")]
    found = found_in(V3 + "".join(rows) + rows[0])
    assert sorted(run.telemetry.run_id for run in found.runs) == ["set/redis/db", "set/redis/redis"]
    assert (found.n_read, found.reasons) == (5, ["no time, or a second row of one time and unit; expected each once"])


def test_version_1_names_the_same_counters(found_in):
    found = found_in(V1 + "0,2.5,10\n5,2.6,20\n", name="set/metric_out.sys.csv")
    assert found.column("perfspect.cpu_utilization_pct") == [10, 20]
    assert found.runs[0].telemetry.started_at is None


def test_a_summary_is_refused_in_clear_words(found_in):
    with pytest.raises(BadInput, match=r"holds means only: read the \*_metrics.csv beside it"):
        found_in("metric,mean,min,max,stddev\nCPU utilization %,1,2,3,4\n", name="set/host_metrics_summary.csv")
