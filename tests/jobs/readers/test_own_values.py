"""Words, units and exit codes in a person's own table, and real CSV of GitHub's builds where WHORL_DATASETS has it."""

import csv
import gzip
import logging
import os
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, get_args

import pandas as pd
import pytest
from pydantic import ValidationError

from tasks.errors import BadInput
from tasks.jobs.columns import NUMBER_COLUMNS
from tasks.jobs.grouping import group_keys
from tasks.jobs.params import Measured, ReadParams
from tasks.jobs.readers.own import OwnReader

RUN = {"run_id": "1", "name": "etl", "started_at": "2026-01-01T00:00:00Z", "runtime_s": "2"}


def read(path: Path, runs: list[dict[str, Any]], **params: Any) -> tuple[pd.DataFrame, list[str]]:
    pd.DataFrame(runs).to_csv(path, index=False)
    chunks = list(OwnReader().read(str(path), ReadParams(**params)))
    refused = [reason for chunk in chunks for reason in chunk.refused["reason"]]
    return pd.concat([chunk.rows for chunk in chunks]), refused


def test_statuses_in_other_words_are_read_and_an_unknown_one_is_shown_with_how_to_map_it(tmp_path: Path) -> None:
    words = ["SUCCESS", "FAILURE", "TIMED_OUT", "green", "0", ""]
    runs = [RUN | {"run_id": f"{row}", "state": word} for row, word in enumerate(words)]
    rows, refused = read(tmp_path / "log.csv", runs, columns={"status": "state"})
    assert rows["status"].to_list() == ["completed", "failed", "timeout", "unknown"]
    expected = "expected a word such as completed, failed, cancelled, timeout, running, pending, unknown; map it: "
    assert refused == [
        f"status 'green' is not known; {expected}--map-value 'status:green=completed'",
        "status '0' is a number, which counts in a column of exit codes alone; "
        f"{expected}--map-value 'status:0=completed'",
    ]
    mapped = {"green": "completed", "0": "failed"}
    rows, refused = read(tmp_path / "log.csv", runs, columns={"status": "state"}, statuses=mapped)
    assert rows["status"].to_list()[3:] == ["completed", "failed", "unknown"] and not refused


def test_exit_codes_are_statuses_in_a_column_that_is_called_so(tmp_path: Path) -> None:
    runs = [RUN | {"run_id": f"{code}", "exit_code": code} for code in (0, 1, 137)]
    rows, refused = read(tmp_path / "log.csv", runs, columns={"status": "exit_code"})
    assert rows["status"].to_list() == ["completed", "failed", "failed"] and not refused


@pytest.mark.parametrize(
    ("ours", "theirs", "unit", "value"),
    [
        ("input_bytes", "data", "GB", 3e9),
        ("input_bytes", "data", "GiB", 3 * 2**30),
        ("runtime_s", "took", "ms", 0.003),
        ("runtime_s", "took", "min", 180.0),
        ("input_bytes", "input_gb", "", 3e9),  # what the name says
        ("runtime_s", "durationMs", "", 0.003),
        ("input_bytes", "input_gb", "B", 3.0),  # the flag counts before the name
        ("input_bytes", "data", "", 3.0),
    ],
)
def test_units_come_from_the_flag_or_from_the_name_of_the_column(
    tmp_path: Path, ours: str, theirs: str, unit: str, value: float, caplog: pytest.LogCaptureFixture
) -> None:
    run = {name: field for name, field in RUN.items() if name != ours} | {theirs: "3"}
    with caplog.at_level(logging.WARNING):
        rows, _ = read(tmp_path / "l.csv", [run], columns={ours: theirs}, units={ours: unit} if unit else {})
    assert rows[ours].to_list() == [pytest.approx(value)]
    assert (f"'{theirs}' is read in" in caplog.text) == (theirs in ("input_gb", "durationMs") and not unit)


def test_a_name_that_may_end_in_two_units_asks_for_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"the unit of 'mem_m' \(input_bytes\) is not clear: .*--unit input_bytes=UNIT"):
        read(tmp_path / "log.csv", [RUN | {"mem_m": "1"}], columns={"input_bytes": "mem_m"})


def test_a_unit_or_a_status_that_does_not_exist_is_refused_as_a_setting() -> None:
    with pytest.raises(ValidationError, match="'GX' is no unit of input_bytes; expected one of B, kB, MB, GB"):
        ReadParams(units={"input_bytes": "GX"})
    with pytest.raises(ValidationError):
        ReadParams.model_validate({"statuses": {"green": "fine"}})


def test_units_are_for_all_numbers_in_seconds_and_bytes_that_were_read() -> None:
    assert set(get_args(Measured)) == {name for name in NUMBER_COLUMNS if name.endswith(("_s", "_bytes"))}


def test_a_user_tells_jobs_apart_unless_the_setting_says_otherwise() -> None:
    from tasks.jobs.params import GroupParams

    rows = pd.DataFrame({"name": ["etl", "etl"], "user_name": ["ada", "bob"], "requested_cpus": [1.0, 1.0]})
    assert group_keys(rows).to_list() == ["etl · ada · 1 cpu", "etl · bob · 1 cpu"]
    assert group_keys(rows, GroupParams(by_user=False)).to_list() == ["etl · 1 cpu", "etl · 1 cpu"]


def test_builds_of_github_are_read_in_one_go_with_the_map_of_the_readme() -> None:
    path = Path(os.environ.get("WHORL_DATASETS", "-")) / "gha" / "ccpay_wf6192976.csv.gz"
    if not path.exists():
        pytest.skip("needs gha/ccpay_wf6192976.csv.gz in the folder WHORL_DATASETS")
    readme = (Path(__file__).parents[3] / "tasks" / "jobs" / "README.md").read_text()
    call = readme[readme.index("jobs ingest builds.csv.gz") :].partition("\n\n")[0].split()
    columns = dict(word.split("=") for flag, word in pairwise(call) if flag == "--map")
    chunks = list(OwnReader().read(str(path), ReadParams(columns=columns)))
    rows = pd.concat([chunk.rows for chunk in chunks])
    csv.field_size_limit(2**30)
    with gzip.open(path, "rt") as file:
        theirs = list(csv.DictReader(file))
    right = [float(row["build_duration"]) for row in theirs if row["conclusion"] == "success"]
    assert len(rows) == len(theirs) == 2198 and sum(len(chunk.refused) for chunk in chunks) == 0
    assert rows["status"].value_counts().to_dict() == {"failed": 1099, "completed": 1097, "cancelled": 2}
    assert len(set(group_keys(rows))) == 1
    assert rows.loc[rows["status"] == "completed", "runtime_s"].median() == median(right) == 349
