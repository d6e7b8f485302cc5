"""Every log of every version says what stands in expected.txt, and nothing else."""

from pathlib import Path

import pytest

EXPECTED = Path(__file__).with_name("expected.txt").read_text().partition("\n\n")[2].replace("\n   ", "")
ROWS = [line.partition(":") for line in EXPECTED.splitlines()]
FAULTY = {  # logs of which a part is not read, or which were refused
    "fio/3.33-two-jobs.txt": ["job 2 (aio) is not read; run with --group_reporting"],
    "iperf3/3.12-refused.json": ["iperf3 reported an error: unable to connect to server: Connection refused"],
}


@pytest.mark.parametrize(("head", "told"), [(head, told) for head, _, told in ROWS], ids=[row[0] for row in ROWS])
def test_a_log_says_what_stands_in_it(parse, head, told):
    name, version, n_values = head.split()
    log = parse(name)
    assert (log.tool, log.version or "-", len(log.measured)) == (name.split("/")[0], version, int(n_values))
    assert [fault.reason for fault in log.faults] == FAULTY.get(name, [])
    values = {one.metric: (one.value, one.unit) for one in log.measured}
    for metric, value, *unit in (entry.split() for entry in told.split(";") if entry.strip()):
        if value == "-":
            assert metric in log.missing
        else:
            assert values[metric] == (pytest.approx(float(value), rel=1e-12), "".join(unit))


def test_every_log_stands_in_the_table(logs):
    names = {path.relative_to(logs).as_posix() for path in logs.glob("*/*") if path.suffix != ".md"}
    assert {head.split()[0] for head, _, _ in ROWS} == names


def test_raw_statistics_of_slow_requests_are_in_ns_although_about_one_a_second(read):
    log = read("disk-ioping", "10 9000000000 1 4551 880000000 900000000 920000000 9000000 10 9000010000\n")
    assert {one.metric: (one.value, one.unit) for one in log.measured}["latency_avg"] == (900000000, "ns")


def test_the_total_behind_periods_counts(read):
    log = read("disk-ioping", "10 1000000 10000 1 90000 100000 110000 9\n10 1000000 10000 1 80000 100000 120000 9\n"
                              "20 2000000 10000 1 80000 100000 120000 9\n")  # fmt: skip
    assert (log.measured[0].metric, log.measured[0].value, log.faults) == ("number_of_requests", 20, ())
