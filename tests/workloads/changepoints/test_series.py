"""A series for change points: every line is a sample, and what is no number is named with its line."""

import json
import re

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.params import ReadLimits
from tasks.workloads.changepoints.series import read_series, series_of
from tasks.workloads.params import ReadParams


def series(tmp_path, text):
    (tmp_path / "s.csv").write_text(text)
    return read_series(str(tmp_path / "s.csv"), ReadLimits())


def test_an_empty_cell_and_an_empty_line_are_missing_and_keep_their_rows(tmp_path):
    found = series(tmp_path, "a,b\n1,2\n\n,4\n5,nan\n")
    assert found.names == ("a", "b")
    assert np.array_equal(found.values, [[1, 2], [np.nan, np.nan], [np.nan, 4], [5, np.nan]], equal_nan=True)
    one = series(tmp_path, "a\n1\n\n3")  # a column alone keeps its empty lines; the last one may lack its end
    assert np.array_equal(one.values, [[1], [np.nan], [3]], equal_nan=True)


def test_a_comma_is_a_decimal_point_where_it_parts_no_fields(tmp_path):
    found = series(tmp_path, "Zeit;a;b\n26.11.2026 04:42:00;12,5;1.234,5\n26.11.2026 04:42:01;13;0,25\n")
    assert (found.names, found.values.tolist()) == (("a", "b"), [[12.5, 1234.5], [13, 0.25]])


@pytest.mark.parametrize("name", ["at_s", "Timestamp", "date"])
def test_a_column_that_is_called_a_time_is_no_series_unless_it_is_named(tmp_path, name):
    found = series(tmp_path, f"{name},a\n0,1\n1,2\n")
    assert (found.names, found.times) == (("a",), ("0", "1"))
    assert read_series(str(tmp_path / "s.csv"), ReadLimits(), [name]).names == (name,)


def test_a_column_of_dates_or_clocks_is_no_series_whatever_it_is_called(tmp_path):
    found = series(tmp_path, "build,when,a\n7,2026-03-01 00:01,1.5\n8,,2.5\n")
    assert (found.names, found.times) == (("build", "a"), ("2026-03-01 00:01", ""))


def test_a_table_in_json_is_a_series_with_its_times(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps([{"time": f"2026-03-01T00:00:{at:02}", "a": at % 4} for at in range(6)]))
    found = series_of(str(path), ReadParams())
    assert (found.names, found.times[1], found.values[:, 0].tolist()) == (
        ("a",),
        "2026-03-01 00:00:01",
        [0, 1, 2, 3, 0, 1],
    )


BROKEN = {
    "no header": ("1,2\n3,4\n", "the first line holds numbers"),
    "nothing": ("", "the file is empty"),
    "no sample": ("a,b\n", "no sample in it"),
    "a word": ("a\n1\nx\n", "line 3: 'x' is no finite number"),
    "text beside numbers": ("host,cpu\nh1,2\n", "line 2: 'h1' is no finite number; .* as in --column cpu"),
    "infinite": ("a\n1\ninf\n", "line 3: 'inf' is no finite number"),
    "fields": ("a,b\n1,2\n3\n", "line 3: 1 fields; the header has 2"),
}


@pytest.mark.parametrize(("text", "reason"), BROKEN.values(), ids=BROKEN)
def test_what_would_move_the_rows_is_refused_with_its_line(tmp_path, text, reason):
    with pytest.raises(BadInput, match=reason):
        series(tmp_path, text)


def lines(rows):
    """What vmstat prints of these numbers of running tasks and of switches, a second apart."""
    told = "".join(f"{r} 0 5 {cs} 2026-11-26 22:46:{at:02}\n" for at, (r, cs) in enumerate(rows))
    return f"procs memory system timestamp\n r b free cs UTC\n1 0 5 1 2026-11-26 22:45:59\n{told}"


def test_of_telemetry_the_counters_that_vary_are_series_with_their_times(tmp_path):
    path = tmp_path / "redis.txt"
    path.write_text(lines([(1, 10), (1, 20), (3, 30), (3, 40), (3, 50)]))
    found = series_of(str(path), ReadParams())
    assert (found.names, found.values[:, 0].tolist()) == (("sar.cswch", "sar.runq_sz"), [10, 20, 30, 40, 50])
    assert found.times[2] == "2026-11-26 22:46:02"
    assert series_of(str(path), ReadParams(), ["vmstat.mem_free"]).values.tolist() == [[5]] * 5
    with pytest.raises(BadInput, match=r"no column 'cpu'; expected one of .*sar\.cswch"):
        series_of(str(path), ReadParams(), ["cpu"])


def test_cells_with_units_are_in_the_unit_of_the_first_whatever_else_the_table_holds(tmp_path):
    found = series(tmp_path, "day,latency,size,load\n1,10 ms,1 MiB,7\n2,0.5 s,512 KiB,8\n3,,3 MiB,9\n")
    assert (found.names, found.units) == (("day", "latency", "size", "load"), ("", "ms", "MiB", ""))
    assert found.values[:, 1] == pytest.approx([10, 500, np.nan], nan_ok=True)
    assert found.values[:, 2] == pytest.approx([1, 0.5, 3])
    found = series(tmp_path, "a;b;c\n12,5 %;1h 30m;24 Mb/s\n13 %;30 min;1000 kb/s\n")
    assert (found.units, found.times) == (("%", "h", "Mb/s"), ())
    assert found.values == pytest.approx(np.array([[12.5, 1.5, 24], [13, 0.5, 1]]))
    (tmp_path / "s.csv").write_text("note,latency\nfirst,10 ms\n,20 ms\n")
    assert read_series(str(tmp_path / "s.csv"), ReadLimits(), ["latency"]).values[:, 0] == pytest.approx([10, 20])


OTHER_UNITS = {
    "7": "line 4: '7' is of another unit than the cells above (%)",  # neither a number in who knows which unit
    "7 ms": "line 4: '7 ms' is of another unit than the cells above (%)",
    "many": "line 4: 'many' is no finite number",  # nor a gap in the series
}


@pytest.mark.parametrize(("cell", "reason"), OTHER_UNITS.items(), ids=OTHER_UNITS)
def test_a_cell_of_another_unit_is_a_fault_with_its_line(tmp_path, cell, reason):
    with pytest.raises(BadInput, match=re.escape(reason)):
        series(tmp_path, f"cpu\n1 %\n2 %\n{cell}\n")
    with pytest.raises(BadInput, match=re.escape("line 3: '1 %' is of another unit than the cells above (which have")):
        series(tmp_path, "cpu\n1\n1 %\n")


def test_units_in_other_tables_are_said_with_the_values(tmp_path):
    rows = [{"Time": f"2026-11-20T10:00:0{at}", "Net in": f"{at + 1} MB/s"} for at in range(6)]
    (tmp_path / "panel.json").write_text(json.dumps(rows))
    found = series_of(str(tmp_path / "panel.json"), ReadParams(), ["Net in"])
    assert (found.names, found.units, found.values[1, 0]) == (("net_in",), ("B/s",), 2e6)


LONG = "".join(f"2026-03-01 00:00:{at:02},h1,{name},{at % 4}\n" for at in range(6) for name in ("cpu", "free"))
TEXT_BESIDE = {
    "a long table": (f"time,host,metric,value\n{LONG}", ("cpu", "free")),
    "a host": ("time,host,cpu\n" + "".join(f"2026-03-01 00:00:{at:02},h1,{at % 4}\n" for at in range(6)), ("cpu",)),
}


@pytest.mark.parametrize(("text", "names"), TEXT_BESIDE.values(), ids=TEXT_BESIDE)
def test_text_beside_the_numbers_of_a_table_with_times_is_no_series(tmp_path, text, names):
    path = tmp_path / "s.csv"
    path.write_text(text)
    found = series_of(str(path), ReadParams())
    assert (found.names, found.times[1]) == (names, "2026-03-01 00:00:01")
    assert series_of(str(path), ReadParams(), ["cpu"]).values[:, 0].tolist() == [0, 1, 2, 3, 0, 1]


def test_telemetry_without_a_run_says_why(tmp_path):
    path = tmp_path / "redis.txt"
    path.write_text(lines([(1, 10), (1, 20)]))
    with pytest.raises(BadInput, match=r"no run in it: .*samples"):
        series_of(str(path), ReadParams())


def test_a_broken_table_is_told_as_such_and_telemetry_of_several_hosts_is_refused(tmp_path):
    path = tmp_path / "series.csv"
    path.write_text("a\n1\nx\n")
    with pytest.raises(BadInput, match="line 3: 'x' is no finite number"):
        series_of(str(path), ReadParams())
    hosts = (f"{host};1;2026-11-26 22:46:{at:02} UTC;{at}\n" for host in ("a", "b") for at in range(6))
    path.write_text(f"# hostname;interval;timestamp;cswch/s\n{''.join(hosts)}")
    with pytest.raises(BadInput, match="2 runs in it; expected one run"):
        series_of(str(path), ReadParams())
