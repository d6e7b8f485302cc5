"""A series for change points: every line is a sample, and what is no number is named with its line."""

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.params import ReadLimits
from tasks.workloads.changepoints.series import read_series


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


BROKEN = {
    "no header": ("1,2\n3,4\n", "the first line holds numbers"),
    "nothing": ("a,b\n", "no sample in it"),
    "a word": ("a\n1\nx\n", "line 3: 'x' is no finite number"),
    "infinite": ("a\n1\ninf\n", "line 3: 'inf' is no finite number"),
    "fields": ("a,b\n1,2\n3\n", "line 3: 1 fields; the header has 2"),
}


@pytest.mark.parametrize(("text", "reason"), BROKEN.values(), ids=BROKEN)
def test_what_would_move_the_rows_is_refused_with_its_line(tmp_path, text, reason):
    with pytest.raises(BadInput, match=reason):
        series(tmp_path, text)
