"""The share of refused rows that stops a load, and what --dry-run counts."""

import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.intake.files import Chunk, refusals
from tasks.intake.tally import PART_OF_A_JOB, UNSUPPORTED_EVENT, preview_of


def chunk(n_kept: int, reasons: list[str], first: int = 1, **more: object) -> Chunk:
    rows = pd.DataFrame({"place": range(first, first + n_kept), **more})
    places = range(first + n_kept, first + n_kept + len(reasons))
    return Chunk(rows, refusals(places, reasons, [""] * len(reasons)), {})


def test_more_than_the_share_stops_the_file_and_exactly_the_share_does_not() -> None:
    seen = preview_of("jobs", "log.csv", "own", [chunk(7, ["bad"] * 2), chunk(1, [], first=10)])
    assert (seen.n_read, seen.n_kept, seen.n_refused) == (10, 8, 2)
    seen.require(0.2)
    with pytest.raises(BadInput) as refusal:
        seen.require(0.19)
    assert str(refusal.value) == (
        "log.csv: not loaded: 2 of 10 rows are refused, most of them (2, in line 8, 9) because: bad; expected at most "
        "19.0 % refused; mend or map what is named, or raise --max-refused-share (read.limits.max_refused_share)"
    )


def test_a_reason_of_few_rows_is_not_called_that_of_most() -> None:
    seen = preview_of("jobs", "log.csv", "own", [chunk(0, ["bad a", "bad b", "bad c"])])
    with pytest.raises(BadInput, match="3 of 3 rows are refused, some of them \\(1, in line 1\\) because: bad a"):
        seen.require(0.2)


def test_lines_that_are_left_out_with_good_reason_stop_no_file() -> None:
    seen = preview_of("workloads", "a.perf", "perf", [chunk(1, [UNSUPPORTED_EVENT] * 9, n_rows=4)])
    assert (seen.n_kept, seen.n_refused, seen.n_faulty) == (4, 9, 0)
    seen.require(0)
    preview_of("jobs", "a.swf", "swf", [chunk(1, [PART_OF_A_JOB] * 3)]).require(0.2)


def test_faults_of_single_values_of_kept_rows_are_no_refused_rows() -> None:
    rows = pd.DataFrame({"place": [1, 5], "n_rows": [4, 4]})
    refused = refusals([1, 1, 9, 9], ["a", "b", "c", "d"], [""] * 4)
    seen = preview_of("nodes", "f", "long", [Chunk(rows, refused, {})])
    assert (seen.n_kept, seen.n_refused) == (8, 1)


def test_the_most_frequent_reasons_are_told_with_their_first_places() -> None:
    seen = preview_of("jobs", "f", "own", [chunk(0, ["x"] + ["y"] * 5 + [f"z{n}" for n in range(9)])])
    assert (seen.refused[0].reason, seen.refused[0].n_rows, seen.refused[0].places) == ("y", 5, [2, 3, 4])
    assert len(seen.refused) == 5
