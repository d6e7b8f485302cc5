"""sysstat's sadf -d: real output with several sections, devices, restarts and broken lines."""

from datetime import datetime

import pytest

from tasks.errors import BadInput

CPU = "# hostname;interval;timestamp;CPU;%user;%idle\n"
SWITCHES = "# hostname;interval;timestamp;proc/s;cswch/s\n"


def at(second: int, rest: str, host: str = "vm") -> str:
    return f"{host};1;2026-11-21 11:00:{second:02} UTC;{rest}\n"


def test_all_lines_of_real_output_are_behind_one_run(found_in, samples):
    found = found_in(samples / "sadf.csv")
    n_lines = sum(not line.startswith("#") for line in (samples / "sadf.csv").read_text().splitlines())
    (run,) = found.runs
    assert (found.n_read, len(found.refused), run.telemetry.n_samples) == (n_lines, 0, 12)
    names = {"cpu.all.pct_usr", "cpu.0.pct_idle", "sar.kbmemfree", "sar.cswch", "dev.vda.tps", "sar.ldavg_1"}
    assert names <= set(run.telemetry.names)
    assert (run.telemetry.machine, run.telemetry.interval_s) == ("vm", 1.0)
    assert run.telemetry.started_at == datetime(2026, 11, 21, 11, 17, 18)


def test_sections_stand_side_by_side_at_their_times(found_in):
    found = found_in(CPU + at(1, "-1;5;95") + at(2, "-1;6;94") + SWITCHES + at(1, "1;100") + at(2, "2;200"))
    assert (found.column("cpu.all.pct_user"), found.column("sar.cswch")) == ([5, 6], [100, 200])
    rates = {one.name: one.is_rate for one in found.runs[0].telemetry.counters}
    assert (rates["sar.cswch"], rates["cpu.all.pct_user"]) == (True, False)


def test_a_section_that_lacks_a_time_is_missing_there(found_in):
    found = found_in(CPU + at(1, "-1;5;95") + at(2, "-1;6;94") + SWITCHES + at(2, "2;200"))
    assert found.column("sar.cswch") == [None, 200]


def test_a_restart_begins_another_run(found_in):
    text = CPU + at(1, "-1;5;95") + at(2, "-1;5;95") + at(3, "LINUX-RESTART\t(2 CPU)") + at(4, "-1;7;93")
    found = found_in(text)
    assert [run.telemetry.run_id for run in found.runs] == ["set/redis/vm-1", "set/redis/vm-2"]
    assert found.n_read == 3


def test_hosts_are_runs_of_their_own(found_in):
    found = found_in(CPU + at(1, "-1;5;95") + at(1, "-1;7;93", host="other"))
    assert [run.telemetry.machine for run in found.runs] == ["vm", "other"]


def test_unix_seconds_and_local_times_give_the_same_start(found_in):
    texts = [CPU + f"vm;1;{time};-1;5;95\n" for time in ("1795258800", "2026-11-21 11:00:00 UTC")]
    starts = [found_in(text).runs[0].telemetry.started_at for text in texts]
    starts.append(
        found_in(CPU + "vm;1;2026-11-21 12:00:00;-1;5;95\n", time_zone="Europe/Berlin").runs[0].telemetry.started_at
    )
    assert starts == [datetime(2026, 11, 21, 11)] * 3


BROKEN = {
    "too few fields": (at(2, "-1;5"), "5 fields; the header has 6"),
    "no number": (at(2, "-1;five;95"), "a value is no number"),
    "twice": (at(1, "-1;5;95"), "a second line of this time and device"),
    "no time": ("vm;1;yesterday;-1;5;95\n", "no time"),
}


@pytest.mark.parametrize(("line", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_refused_alone(found_in, line, reason):
    found = found_in(CPU + at(1, "-1;5;95") + line + at(3, "-1;7;93"), reader="sadf")
    assert (found.n_read, len(found.refused)) == (3, 1)
    assert found.reasons[0].startswith(reason)


def test_a_file_without_lines_is_refused_as_a_whole(found_in):
    with pytest.raises(BadInput, match="no line of counters in it; expected the output of sadf -d"):
        found_in(CPU)
