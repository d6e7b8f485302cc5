"""What vmstat prints: headings of several options, times, the line since the boot, and broken lines."""

from datetime import datetime

import pytest

from tasks.errors import BadInput
from tasks.intake.files import SINCE_BOOT
from tasks.params import ReadLimits
from tasks.workloads.intake import find_files
from tasks.workloads.readers import detect

GROUPS = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----"
TIMED = f"{GROUPS} -----timestamp-----\n"
NAMES = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st"
HEADING = f"{TIMED}{NAMES}                 UTC\n"
BOOT = " 9  9      9      9      9      9    9    9     9     9    9    9  9  9 82  0  0 2026-11-26 22:46:02\n"


def at(second: int, rest: str = "1 0 0 900 20 300 0 0 16 8 120 450 60 15 20 5 0") -> str:
    return f" {rest} 2026-11-26 22:46:{second:02}\n"


def test_columns_have_the_names_that_sar_gives_them_and_the_line_since_the_boot_is_no_sample(found_in):
    busy = "3 1 0 800 20 300 4 0 32 8 240 900 70 20 5 4 1"
    found = found_in(HEADING + BOOT + at(3) + at(4, busy), name="redis.txt")
    [run] = [one.telemetry for one in found.runs]
    assert (run.started_at, run.at_s.tolist()) == (datetime(2026, 11, 26, 22, 46, 3), [0, 1])
    assert (found.n_read, found.reasons) == (3, [SINCE_BOOT])
    told = {
        "cpu.all.pct_usr": [60, 70], "cpu.all.pct_sys": [15, 20], "cpu.all.pct_idle": [20, 5],
        "cpu.all.pct_iowait": [5, 4], "cpu.all.pct_steal": [0, 1], "sar.runq_sz": [1, 3], "sar.blocked": [0, 1],
        "sar.pgpgin": [16, 32], "sar.pgpgout": [8, 8], "intr.sum.intr": [120, 240], "sar.cswch": [450, 900],
        "vmstat.mem_free": [900, 800], "vmstat.swap_in": [0, 4],
    }  # fmt: skip
    assert {name: found.column(name) for name in told} == told
    rates = {counter.name for counter in run.counters if counter.is_rate}
    assert rates == {
        "sar.pgpgin", "sar.pgpgout", "intr.sum.intr", "sar.cswch", "vmstat.swap_in", "vmstat.swap_out",
    }  # fmt: skip


def test_headings_may_be_wide_repeated_and_name_columns_of_their_own(found_in):
    groups = "--procs-- ------------------memory----------------- ---swap-- -----io---- ----cpu---- -timestamp-\n"
    heading = f"{groups}   r    b   swpd   free  inact active   si   so    bi    bo   us  gu  zz  UTC\n"
    boot, *rows = (at(second, f"1 0 0 900 {second} 300 0 0 16 8 60 15 7") for second in (2, 5, 6))
    found = found_in(heading + boot + heading.join(rows))
    assert (found.column("vmstat.mem_inactive"), found.column("cpu.all.pct_guest")) == ([5, 6], [15, 15])
    assert (found.column("vmstat.zz"), found.n_read) == ([7, 7], 3)


def test_times_are_of_the_zone_that_is_given_unless_the_heading_says_utc(found_in):
    text = HEADING + BOOT + at(3)
    starts = [
        found_in(one, time_zone="Europe/Berlin").runs[0].telemetry.started_at.hour
        for one in (text, text.replace("UTC", "CET"))
    ]
    assert starts == [22, 21]


def test_lines_without_times_are_as_far_apart_as_is_said_and_refused_where_nobody_says(found_in):
    text = f"{GROUPS}\n{NAMES}\n" + "".join(f"1 0 0 9 2 3 0 0 16 8 120 450 {us} 15 20 5 0\n" for us in (1, 60, 70))
    found = found_in(text, interval_s=2)
    run = found.runs[0].telemetry
    assert (run.at_s.tolist(), run.started_at, found.column("cpu.all.pct_usr")) == ([0, 2], None, [60, 70])
    with pytest.raises(BadInput, match=r"no times in it; .* record with vmstat -t 1, or set read.interval_s"):
        found_in(text)


BROKEN = {
    "cut off": (" 1 0 0 900 20\n", "5 fields; expected 19, as the heading has them"),
    "no number": (at(4, "1 0 0 900 20 300 0 0 16 8 120 x 60 15 20 5 0"), "a value is no whole number"),
    "no time": (at(4).replace("2026-11-26", "yesterday"), "no time; expected a date and a clock"),
}


@pytest.mark.parametrize(("line", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_refused_alone(found_in, line, reason):
    found = found_in(HEADING + BOOT + at(3) + line + "\n" + at(5))
    assert (found.n_read, len(found.refused)) == (4, 2)
    assert any(told.startswith(reason) for told in found.reasons)


def test_headings_alone_are_no_run(found_in):
    with pytest.raises(BadInput, match="no sample in it"):
        found_in(HEADING)


def test_it_is_found_by_its_headings_in_a_folder_and_other_tables_of_vmstat_are_not(tmp_path):
    (tmp_path / "redis.txt").write_text(HEADING + BOOT)
    assert detect(str(tmp_path / "redis.txt"), ReadLimits()).name == "vmstat"
    (tmp_path / "disks.txt").write_text("disk- ------------reads------------\n       total merged\nvda 1 2\n")
    assert find_files([str(tmp_path)]) == [str(tmp_path / "redis.txt")]
