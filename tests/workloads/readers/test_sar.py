"""What sar prints: clocks, dates and decimals of several countries, restarts, midnight, and files that are none."""

from datetime import datetime

import pytest

from tasks.errors import BadInput
from tasks.workloads.readers.sar import is_sar

BANNER = "Linux 6.1.0-18 (db1) \t{date} \t_x86_64_\t(2 CPU)\n"
CPU = "\n{}        CPU     %user     %idle\n"
AT_NOON = datetime(2026, 11, 5, 12, 0, 10)


def text(rows: str, date: str = "2026-11-05", clock: str = "12:00:00", header: str = CPU) -> str:
    return BANNER.format(date=date) + header.format(clock) + rows


WRITTEN = {
    "ISO date, 24 hours": text("12:00:10        all      5.00     95.00\nAverage:        all      5.00     95.00\n"),
    "month first, 12 hours": text("12:00:10 PM     all      5.00     95.00\n", "11/05/2026", "12:00:00 PM"),
    "month first, no century": text("12:00:10        all      5.00     95.00\n", "11/05/26"),
    "Germany": text("12:00:10        all      5,00     95,00\nDurchschn.:     all      5,00     95,00\n", "05.11.2026"),
    "France": text("12:00:10        all      5,00     95,00\nMoyenne :       all      5,00     95,00\n", "05/11/2026"),
    "Japan": text("12時00分10秒     all      5.00     95.00\n", "2026年11月05日", "12時00分00秒"),
    "Spain, 12 hours": text("12:00:10 p. m.  all      5,00     95,00\n", "05/11/26", "12:00:00 p. m."),
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_a_run_is_the_same_in_all_countries(found_in, written):
    found = found_in(written, name="redis.txt")
    assert (found.column("cpu.all.pct_user"), found.column("cpu.all.pct_idle"), len(found.refused)) == ([5], [95], 0)
    [run] = [one.telemetry for one in found.runs]
    assert (run.started_at, run.machine) == (AT_NOON, "db1")


def test_a_clock_that_begins_anew_has_passed_midnight(found_in):
    rows = "".join(f"{clock}  all  5.00  95.00\n" for clock in ("11:59:50 PM", "12:00:00 AM", "12:00:10 AM"))
    run = found_in(text(rows, clock="11:59:40 PM")).runs[0].telemetry
    assert (run.started_at, run.at_s.tolist()) == (datetime(2026, 11, 5, 23, 59, 50), [0, 10, 20])
    found = found_in(text("12:00:10   all   5.00  95.00\n"), time_zone="Europe/Berlin")
    assert found.runs[0].telemetry.started_at == datetime(2026, 11, 5, 11, 0, 10)


def test_tables_stand_side_by_side_and_each_begins_the_day_again(found_in):
    devices = "\n00:00:00     DEV       tps     %util\n00:00:10  sda  3.00  1.00\n23:00:10  sda  4.00  2.00\n"
    rows = "00:00:10  all  5.00  95.00\n23:00:10  all  6.00  94.00\n"
    found = found_in(text(rows, clock="00:00:00") + devices, regular={"max_gap_intervals": 100_000})
    assert (found.column("cpu.all.pct_user"), found.column("dev.sda.tps")) == ([5, 6], [3, 4])
    assert {one.name for one in found.runs[0].telemetry.counters if one.is_rate} == {"dev.sda.tps"}


def test_a_device_behind_its_values_may_hold_blanks(found_in):
    header = "\n{}  MBfsfree  %fsused FILESYSTEM\n"
    found = found_in(text("12:00:10   900  10.5  /mnt/my disk\n", header=header))
    assert found.column("filesystem.per_mnt_per_my_disk.pct_fsused") == [10.5]


def test_a_restart_begins_another_run(found_in):
    rows = "12:00:10  all  5.00  95.00\n\n12:01:00      LINUX RESTART\t(2 CPU)\n"
    again = CPU.format("12:02:00") + "12:02:10  all  7.00  93.00\n"
    found = found_in(text(rows) + again)
    assert [found.column("cpu.all.pct_user", run) for run in (0, 1)] == [[5], [7]]


def test_a_broken_line_is_refused_alone(found_in):
    found = found_in(text("12:00:10  all  5.00  95.00\n12:00:20  all  6.00\n12:00:30  all  7.00  93.00\n"))
    assert (found.column("cpu.all.pct_user"), found.reasons) == ([5, 7], ["5 fields; the header has 6"])


@pytest.mark.parametrize("head", ["", "Linux 6.1 (db1) \t11/05/26 \t_x86_64_\n\nDevice  tps\nsda  3\n", "a,b\n1,2\n"])
def test_other_texts_are_no_output_of_sar(head):
    """iostat begins with the same banner."""
    assert not is_sar(head.encode())


@pytest.mark.parametrize("content", [b"\x96\xd5\x71\x21\x00\x00", b'{"sysstat": {"hosts": []}}', b"<?xml?>\n<sysstat>"])
def test_other_files_of_sysstat_say_what_prints_them(found_in, content):
    with pytest.raises(BadInput, match=r"a file of sysstat itself, or JSON or XML of sadf; .* sadf -d FILE -- -A"):
        found_in(content, name="sa26")


@pytest.mark.parametrize("mark", ["", "# "])
def test_what_pidstat_prints_is_refused_by_its_name(found_in, mark):
    """Plainly, and with -h."""
    banner = "Linux 6.1 (db1) \t2026-11-05 \t_x86_64_\t(2 CPU)\n\n"
    with pytest.raises(BadInput, match=r"pidstat's counters of processes; .* sar -A 1"):
        found_in(f"{banner}{mark}12:00:00  UID  PID  %usr  Command\n12:00:01  0  1  1.00  init\n")


def test_what_iostat_prints_is_refused_by_its_name(found_in):
    banner = "Linux 6.1 (db1) \t2026-11-05 \t_x86_64_\t(2 CPU)\n\n"
    with pytest.raises(BadInput, match=r"what iostat prints; .* sar -A 1"):
        found_in(f"{banner}avg-cpu:  %user   %nice\n           67.27    0.15\n\nDevice  r/s\nvda  1.00\n")
