"""perf stat -I (real output in CSV and JSON, of processors, sockets, groups) and PerfSpect, and what can be wrong."""

from datetime import datetime

import pytest

from tasks.errors import BadInput

REAL = {  # lines with a count, of which refused
    "perf.csv": (35, 7),
    "perf.json": (21, 7),
    "perf_cpus.csv": (42, 14),
    "perf_groups.csv": (28, 0),
    "perf_sockets.csv": (16, 2),
}


def text(*lines: str) -> str:
    return "# started on Sat Nov 21 11:15:08 2026\n\n" + "\n".join(lines) + "\n"


def count(at: float, value: str, event: str = "cycles", *, running: str = "100.00", cpu: str = "") -> str:
    return f"     {at:.9f},{cpu}{value},,{event},1000000,{running},,"


@pytest.mark.parametrize("name", REAL)
def test_every_line_of_real_output_is_behind_a_run_or_refused(found_in, samples, name):
    found = found_in(samples / name)
    n_lines, n_refused = REAL[name]
    partial = [reason for reason in found.reasons if reason.startswith("the last interval")]
    assert found.n_read == n_lines
    assert len(found.refused) - len(partial) == n_refused
    assert len(found.runs) == 1


def test_real_output_names_counters_and_the_start(found_in, samples):
    found = found_in(samples / "perf.csv")
    run = found.runs[0]
    assert run.telemetry.names == (
        "perf.context_switches", "perf.cpu_clock", "perf.page_faults", "perf.sched_switch",
    )  # fmt: skip
    assert {(one.kind, one.is_rate, one.scope) for one in run.telemetry.counters} == {("software", True, "machine")}
    assert run.telemetry.started_at == datetime(2026, 11, 21, 11, 43, run.telemetry.started_at.second)
    assert run.refused == ("cycles: this machine does not support the event",)


def test_counts_become_rates_of_their_own_interval(found_in):
    found = found_in(text(count(1, "100"), count(2.2, "240"), count(3.3, "55")))
    assert found.column("perf.cycles") == pytest.approx([100, 200, 50])


def test_two_processors_are_added_up_and_a_sum_without_one_of_them_is_missing(found_in):
    counts = ((1, "10", "30"), (2, "10", "<not counted>"), (3, "10", None), (4, "1", "2"))
    lines = [
        count(at, value, cpu=f"CPU{cpu},")
        for at, *both in counts
        for cpu, value in enumerate(both)
        if value is not None
    ]
    found = found_in(text(*lines))
    assert (found.column("perf.cycles"), found.n_read, len(found.refused)) == ([40, None, None, 3], 7, 0)


def test_a_count_that_was_hardly_measured_is_missing_and_the_share_is_told(found_in):
    lines = [count(1, "10", running="50.00"), count(2, "10", running="4.99"), count(3, "10", running="100.00")]
    found = found_in(text(*lines))
    assert found.column("perf.cycles") == [10, None, 10]
    assert found.runs[0].running_pct.tolist() == [75]


def test_a_last_interval_that_is_cut_short_is_refused_and_a_whole_one_is_kept(found_in):
    cut = found_in(text(count(1, "10"), count(2, "10"), count(2.4, "4")))
    assert cut.column("perf.cycles") == [10, 10]
    assert cut.reasons == ["the last interval is shorter than the others: it was cut off"]
    assert found_in(text(count(1, "10"), count(2, "10"), count(2.99, "10"))).reasons == []
    lines = [count(at, "1", event) for at in (1, 2) for event in ("cycles", "faults")]
    assert found_in(text(*lines, count(3, "1"))).reasons == [
        "the last interval lacks events of the others: it was cut off"
    ]


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
def test_event_names_may_hold_separators(found_in, separator):
    event = "cpu/event=0x3c,umask=0x1/u"
    lines = [count(at, "10", "EVENT").replace(",", separator).replace("EVENT", event) for at in (1, 2)]
    found = found_in(text(*lines))
    assert found.runs[0].telemetry.names == ("perf.cpu_per_event_0x3c_umask_0x1_per_u",)
    assert found.runs[0].telemetry.counters[0].kind == "hardware"


def test_one_group_is_the_workloads_own_and_stands_beside_the_machine(found_in, samples):
    names = found_in(samples / "perf_groups.csv").runs[0].telemetry.counters
    assert {one.name: one.scope for one in names} == {
        "perf.cpu_clock": "machine",
        "perf.sched_switch": "machine",
        "own.perf.cpu_clock": "workload",
        "own.perf.sched_switch": "workload",
    }


def test_several_groups_are_told_apart(found_in):
    lines = [f"     {at:.9f},5,,cycles,{group},1000,100.00,," for at in (1, 2) for group in ("a.slice", "b/c")]
    assert found_in(text(*lines)).runs[0].telemetry.names == ("own.perf.cycles.a.slice", "own.perf.cycles.b_per_c")


def test_output_that_begins_anew_is_a_second_run(found_in):
    found = found_in(text(count(1, "1"), count(2, "1")) + text(count(1, "9"), count(2, "9")))
    assert [run.telemetry.run_id for run in found.runs] == ["set/redis/1", "set/redis/2"]
    assert found.column("perf.cycles", 1) == [9, 9]


def test_json_and_csv_give_the_same(found_in):
    lines = [
        f'{{"interval" : {at}.000000000, "counter-value" : "{at}0.000000", "unit" : "msec", "event" : "cpu-clock", '
        '"event-runtime" : 1000, "pcnt-running" : 100.00, "metric-value" : 1.0, "metric-unit" : "CPUs utilized"}'
        for at in (1, 2)
    ]
    found = found_in(text(*lines))
    assert found.column("perf.cpu_clock") == [10, 20]
    assert found.runs[0].telemetry.counters[0].unit == "ms"


HEAD = "# started on Sat Nov 21 11:15:08 2026\n\n"
GOOD = [f"     {at}.000000000,10,,cycles,1000,100.00,," for at in (1, 2, 3)]
BROKEN = {
    "no time": ("garbage", "no time at the beginning"),
    "cut off": ("     2.000000000,10,,faults", "the line is cut off"),
    "a time alone": ("     2.000000000", "no count with an event"),
    "a metric alone": ("     2.000000000,,,,,,0.51,insn per cycle", "no count with an event"),
    "a share that is none": ("     2.000000000,10,,faults,1000,x,,", "no run time with its share"),
    "a word for a count": ("     2.000000000,ten,,faults,1000,100.00,,", "no count with an event"),
    "the summary": ("         summary,30,,cycles,1000,100.00,,", "the summary at the end"),
    "twice": (GOOD[1], "the event stands twice"),
    "malformed JSON": ('{"interval" : 2.0, "counter', "malformed JSON"),
    "JSON without an event": ('{"interval" : 2.0}', "no event"),
    "JSON without an interval": ('{"counter-value" : "1", "event" : "e"}', "no interval"),
    "a count of 400 digits": (f"     2.000000000,{'9' * 400},,faults,1000,100.00,,", "the count '9999"),
    "JSON with a count of 400 digits": (
        f'{{"interval" : 2.0, "counter-value" : {"9" * 400}, "event" : "e"}}',
        "the count '9999",
    ),
    "JSON with a time of 400 digits": (
        f'{{"interval" : {"9" * 400}, "counter-value" : "1", "event" : "e"}}',
        "interval or pcnt-running is no number",
    ),
    "JSON nested too deeply": ('{"interval" : ' + "[" * 5000, "malformed JSON"),
    "a NUL byte": ("     2.000\x00000000,10,,faults,1,1.0,,", "a NUL byte"),
}


@pytest.mark.parametrize(("line", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_refused_alone(found_in, line, reason):
    found = found_in(HEAD + "\n".join([GOOD[0], GOOD[1], line, GOOD[2]]) + "\n")
    assert found.column("perf.cycles") == [10, 10, 10]
    assert (len(found.reasons), found.n_read) == (1, 4)
    assert found.reasons[0].startswith(reason)
    assert found.refused["place"].to_list() == [5]


def test_output_without_intervals_is_refused_in_one_line(found_in):
    with pytest.raises(BadInput, match=r"no interval in it, .*; expected the output of perf stat -I 1000"):
        found_in("# started on Sat Nov 21 11:15:08 2026\n\n0.83,msec,cpu-clock,834769,100.00,0.008,CPUs utilized\n")


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
    first = found_in(V1 + "0,2.5,10\n5,2.6,20\n", name="set/metric_out.sys.csv")  # version 1 names the same counters
    assert first.column("perfspect.cpu_utilization_pct") == [10, 20]
    assert first.runs[0].telemetry.started_at is None


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


def test_a_summary_is_refused_in_clear_words(found_in):
    with pytest.raises(BadInput, match=r"holds means only: read the \*_metrics.csv beside it"):
        found_in("metric,mean,min,max,stddev\nCPU utilization %,1,2,3,4\n", name="set/host_metrics_summary.csv")
