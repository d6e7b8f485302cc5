"""sysstat's sadf -d: real output with several sections, devices, restarts and broken lines; and what sar
prints: clocks, dates and decimals of several countries, midnight, and files that are none."""

import errno
from datetime import datetime
from pathlib import Path

import pytest

from tasks.errors import BadInput
from tasks.workloads.intake import find_files, read_telemetry, sha256_of
from tasks.workloads.params import ReadParams
from tasks.workloads.readers import READERS
from tasks.workloads.readers.sadf import is_sar, section_files

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
    rows = "".join(at(second, f"-1;{second};95") for second in (1, 2, 3))
    other = at(1, "-1;7;93", host="other")  # a run of its own
    found = found_in(CPU + rows + other + SWITCHES + at(1, "1;100") + at(2, "2;200"))
    assert [run.telemetry.machine for run in found.runs] == ["vm", "other"]
    assert (found.column("cpu.all.pct_user"), found.column("sar.cswch")) == ([1, 2, 3], [100, 200, None])
    rates = {one.name: one.is_rate for one in found.runs[0].telemetry.counters}
    assert (rates["sar.cswch"], rates["cpu.all.pct_user"]) == (True, False)


def test_an_interrupt_is_that_of_all_processors_however_many_stand_beside_it(found_in):
    """sysstat 12.6 heads the columns of an interrupt CPU*: all processors, and each of them where -P is given."""
    header = "# hostname;interval;timestamp;INTR;CPU*\n"
    found = found_in(header + at(1, "sum;12.00;4.00;8.00") + at(1, "24;1.00;0.00;1.00") + at(2, "sum;6.00"))
    assert (found.column("intr.sum.intr"), found.column("intr.24.intr")) == ([12, 6], [1, None])
    assert len(found.refused) == 0 and all(one.is_rate for one in found.runs[0].telemetry.counters)


def test_a_restart_begins_another_run(found_in):
    text = CPU + at(1, "-1;5;95") + at(2, "-1;5;95") + at(3, "LINUX-RESTART\t(2 CPU)") + at(4, "-1;7;93")
    found = found_in(text)
    assert [run.telemetry.run_id for run in found.runs] == ["set/redis/vm-1", "set/redis/vm-2"]
    assert found.n_read == 3


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


SECTIONS = {
    "cpu": (CPU, "-1;5;95"),
    "io": ("# hostname;interval;timestamp;tps;bread/s\n", "3;40"),
    "memory": ("# hostname;interval;timestamp;kbmemfree\n", "1000"),
    "network": ("# hostname;interval;timestamp;IFACE;rxpck/s\n", "eth0;7"),
}


@pytest.fixture
def sections(tmp_path):
    """Files of one section each: their paths, by a pattern of their names. shift: seconds that all but cpu are late."""

    def write(pattern: str, seconds=range(1, 7), shift: int = 0) -> list[Path]:
        made = []
        for name, (header, values) in SECTIONS.items():
            path = tmp_path / pattern.format(section=name)
            path.parent.mkdir(parents=True, exist_ok=True)
            late = 0 if name == "cpu" else shift
            path.write_text(header + "".join(at(second + late, values) for second in seconds))
            made.append(path)
        return made

    return write


@pytest.mark.parametrize(
    ("pattern", "run_id"),
    [("runs/redis-1-{section}.csv", "runs/redis-1"), ("runs/{section}_redis_1.csv", "runs/redis-1"),
     ("redis/{section}.csv", "redis/redis")],
)  # fmt: skip
def test_files_that_hold_one_section_each_are_one_run(sections, pattern, run_id, tmp_path):
    files = sections(pattern)
    assert find_files([str(tmp_path)]) == find_files([str(files[2])]) == [str(sorted(files)[0])]
    others = ", ".join(one.name for one in sorted(files)[1:])
    assert READERS["sadf"].read(str(files[0]), ReadParams()).understood == (f"with the sections of {others}",)
    [run] = read_telemetry([str(tmp_path)], ReadParams(label_from="stem")).runs
    assert (run.run_id, run.workload, run.n_samples) == (run_id, run_id.partition("/")[2], 6)
    assert {"cpu.all.pct_user", "sar.tps", "sar.kbmemfree", "iface.eth0.rxpck"} <= set(run.names)
    assert not (run.values != run.values).any()


def test_a_file_that_may_not_be_opened_is_refused_where_it_is_named_and_no_section_of_others(
    sections, tmp_path, monkeypatch
):
    first, *others = sections("runs/{section}.csv")
    opened = Path.open

    def refuse(path, *how, **more):
        if path == first:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *how, **more)

    monkeypatch.setattr(Path, "open", refuse)
    assert find_files([str(first)]) == [str(first)]
    assert find_files([str(others[0])]) == [str(sorted(others)[0])]


@pytest.mark.parametrize("apart_s", [20, 0])
def test_eight_runs_in_thirty_two_files_are_eight_runs(sections, tmp_path, apart_s):
    for number in range(1, 3) if apart_s else range(1, 9):
        first = 1 + apart_s * (number - 1)
        sections(f"runs/{{section}}-{number}.csv", range(first, first + 6))
    runs = read_telemetry([str(tmp_path)], ReadParams()).runs
    assert [run.run_id for run in runs] == [f"runs/{number}" for number in range(1, 3 if apart_s else 9)]
    assert {len(run.counters) for run in runs} == {6}


def test_sections_that_were_sampled_a_little_later_stand_at_the_same_times(sections, tmp_path):
    sections("runs/redis-{section}.csv", range(1, 30, 3), shift=1)
    [run] = read_telemetry([str(tmp_path)], ReadParams()).runs
    assert (run.n_samples, run.interval_s) == (10, 3.0)
    assert not (run.values != run.values).any()


def test_other_hosts_other_times_and_the_same_sections_are_other_runs(tmp_path):
    header, values = SECTIONS["io"]
    texts = {
        "cpu": CPU + "".join(at(second, "-1;5;95") for second in range(1, 9)),
        "again": CPU + "".join(at(second, "-1;6;94") for second in range(1, 9)),
        "elsewhere": header + "".join(at(second, values, "other") for second in range(1, 9)),
        "later": header + "".join(at(second, values) for second in range(30, 38)),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    assert len(read_telemetry([str(tmp_path)], ReadParams()).runs) == 4
    assert len({sha256_of(str(tmp_path / f"{name}.csv")) for name in texts}) == 4


def test_a_file_that_changes_changes_the_run_that_it_is_a_section_of(sections):
    files = sections("runs/redis-{section}.csv")
    before = sha256_of(str(files[0]))
    files[3].write_text(files[3].read_text().replace("eth0;7", "eth0;8"))
    assert sha256_of(str(files[0])) != before


def test_what_other_tools_print_beside_it_is_no_section_of_a_run(sections, tmp_path):
    """Two files with one counter are two runs; and pidstat begins as sar does."""
    first, *others = sections("runs/redis-{section}.csv")
    banner = "Linux 6.1 (vm) \t2026-11-21 \t_x86_64_\t(2 CPU)\n\n"
    rows = "".join(f"11:00:{second:02}  all  5.00  1.00\n" for second in range(1, 7))
    (tmp_path / "runs/mpstat.txt").write_text(f"{banner}11:00:00  CPU  %user  %soft\n{rows}")
    rows = "".join(f"11:00:{second:02}  0  1  1.00\n" for second in range(1, 7))
    (tmp_path / "runs/pidstat.txt").write_text(f"{banner}11:00:00  UID  PID  %usr\n{rows}")
    assert section_files(str(first)) == [str(first), *map(str, others)]
    assert section_files(str(tmp_path / "runs/mpstat.txt")) == [str(tmp_path / "runs/mpstat.txt")]


BANNER = "Linux 6.1.0-18 (db1) \t{date} \t_x86_64_\t(2 CPU)\n"
SAR_CPU = "\n{}        CPU     %user     %idle\n"
AT_NOON = datetime(2026, 11, 5, 12, 0, 10)


def printed(rows: str, date: str = "2026-11-05", clock: str = "12:00:00", header: str = SAR_CPU) -> str:
    return BANNER.format(date=date) + header.format(clock) + rows


WRITTEN = {
    "ISO date, 24 hours": printed("12:00:10        all      5.00     95.00\nAverage:        all      5.00     95.00\n"),
    "month first, 12 hours": printed("12:00:10 PM     all      5.00     95.00\n", "11/05/2026", "12:00:00 PM"),
    "month first, no century": printed("12:00:10        all      5.00     95.00\n", "11/05/26"),
    "Germany": printed(
        "12:00:10        all      5,00     95,00\nDurchschn.:     all      5,00     95,00\n", "05.11.2026"
    ),
    "France": printed(
        "12:00:10        all      5,00     95,00\nMoyenne :       all      5,00     95,00\n", "05/11/2026"
    ),
    "Japan": printed("12時00分10秒     all      5.00     95.00\n", "2026年11月05日", "12時00分00秒"),
    "for people (--human)": printed("12:00:10        all      5.0%     95.0%\n"),
    "Spain, 12 hours": printed("12:00:10 p. m.  all      5,00     95,00\n", "05/11/26", "12:00:00 p. m."),
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_a_run_is_the_same_in_all_countries(found_in, written):
    found = found_in(written, name="redis.txt")
    assert (found.column("cpu.all.pct_user"), found.column("cpu.all.pct_idle"), len(found.refused)) == ([5], [95], 0)
    [run] = [one.telemetry for one in found.runs]
    assert (run.started_at, run.machine) == (AT_NOON, "db1")


def test_a_clock_that_begins_anew_has_passed_midnight(found_in):
    rows = "".join(f"{clock}  all  5.00  95.00\n" for clock in ("11:59:50 PM", "12:00:00 AM", "12:00:10 AM"))
    run = found_in(printed(rows, clock="11:59:40 PM")).runs[0].telemetry
    assert (run.started_at, run.at_s.tolist()) == (datetime(2026, 11, 5, 23, 59, 50), [0, 10, 20])
    found = found_in(printed("12:00:10   all   5.00  95.00\n"), time_zone="Europe/Berlin")
    assert found.runs[0].telemetry.started_at == datetime(2026, 11, 5, 11, 0, 10)


def test_tables_stand_side_by_side_and_each_begins_the_day_again(found_in):
    devices = "\n00:00:00     DEV       tps     %util\n00:00:10  sda  3.00  1.00\n23:00:10  sda  4.00  2.00\n"
    rows = "00:00:10  all  5.00  95.00\n23:00:10  all  6.00  94.00\n"
    found = found_in(printed(rows, clock="00:00:00") + devices, regular={"max_gap_intervals": 100_000})
    assert (found.column("cpu.all.pct_user"), found.column("dev.sda.tps")) == ([5, 6], [3, 4])
    assert {one.name for one in found.runs[0].telemetry.counters if one.is_rate} == {"dev.sda.tps"}


def test_a_device_behind_its_values_may_hold_blanks(found_in):
    header = "\n{}  MBfsfree  %fsused FILESYSTEM\n"
    found = found_in(printed("12:00:10   900  10.5  /mnt/my disk\n", header=header))
    assert found.column("filesystem.per_mnt_per_my_disk.pct_fsused") == [10.5]


def test_sizes_for_people_are_in_the_unit_of_their_column(found_in):
    header = "\n{}   IFACE    rxkB/s    txkB/s\n"
    found = found_in(printed("12:00:10   lo   1.5M   512.0B\n", header=header))
    assert (found.column("iface.lo.rxkb"), found.column("iface.lo.txkb")) == ([1536], [0.5])
    found = found_in(printed("12:00:10   2.0G   5.0%   /srv\n", header="\n{}  MBfsfree  %fsused FILESYSTEM\n"))
    assert found.column("filesystem.per_srv.mbfsfree") == [2048]


def test_a_restart_of_sar_begins_another_run(found_in):
    rows = "12:00:10  all  5.00  95.00\n\n12:01:00      LINUX RESTART\t(2 CPU)\n"
    again = SAR_CPU.format("12:02:00") + "12:02:10  all  7.00  93.00\n"
    found = found_in(printed(rows) + again)
    assert [found.column("cpu.all.pct_user", run) for run in (0, 1)] == [[5], [7]]


def test_a_broken_line_of_sar_is_refused_alone(found_in):
    found = found_in(printed("12:00:10  all  5.00  95.00\n12:00:20  all  6.00\n12:00:30  all  7.00  93.00\n"))
    assert (found.column("cpu.all.pct_user"), found.reasons) == ([5, 7], ["5 fields; the header has 6"])


@pytest.mark.parametrize("head", ["", "Linux 6.1 (db1) \t11/05/26 \t_x86_64_\n\nDevice  tps\nsda  3\n", "a,b\n1,2\n"])
def test_other_texts_are_no_output_of_sar(head):
    """iostat begins with the same banner."""
    assert not is_sar(head.encode())


@pytest.mark.parametrize("content", [
    b"\x96\xd5\x71\x21\x00\x00", b'{"sysstat": {"hosts": []}}', b"<?xml?>\n<sysstat>",
    b"vm\t1\t2026-11-27 02:53:58 UTC\tall\t%user\t4", b"02:53:58 UTC; CPU; -1; %user; 334225; 33",
    b"# hostname;interval;timestamp;CPU;%user[...];proc/s\nvm;1;2026-11-27 02:53:58 UTC;-1;5;0;6;100",
])  # fmt: skip
def test_other_files_of_sysstat_say_what_prints_them(found_in, content):
    told = r"a file of sysstat itself, JSON of sysstat, .*; .* sadf -d FILE -- -A.*; without one, record with sar -A 1"
    with pytest.raises(BadInput, match=told):
        found_in(content, name="sa26")


@pytest.mark.parametrize("head", ["Time; cpu; mem\n12:00:01; 5; 7\n", "time; host; cpu\n1; vm; 5\n"])
def test_a_table_with_blanks_behind_its_semicolons_is_none_of_sysstat(head):
    assert not READERS["sadf"].sniff(head.encode(), "table.csv")


OTHERS = {
    "pidstat": ("12:00:00  UID  PID  %usr  Command\n12:00:01  0  1  1.00  init\n", "pidstat's counters of processes"),
    "pidstat -h": ("# 12:00:00  UID  PID  %usr  Command\n12:00:01  0  1  1.00  init\n", "pidstat's counters"),
    "iostat": ("avg-cpu:  %user   %nice\n           67.27    0.15\n\nDevice  r/s\nvda  1.00\n", "what iostat prints"),
}


@pytest.mark.parametrize(("told", "name"), OTHERS.values(), ids=OTHERS)
def test_what_other_tools_print_is_refused_by_its_name(found_in, told, name):
    with pytest.raises(BadInput, match=rf"{name}.*; .* sar -A 1"):
        found_in(f"{BANNER.format(date='2026-11-05')}\n{told}")
