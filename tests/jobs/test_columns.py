"""Statuses in everybody's words, and which rows of a log can be used."""

from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasks.intake.files import Chunk
from tasks.jobs.columns import (
    COLUMNS,
    KNOWN_TO_SLURM,
    STATUS_WORDS,
    STATUSES,
    is_exit_code,
    key_of,
    status_of,
    status_of_exit_code,
    vet_runs,
)
from tasks.jobs.params import ReadParams

WORDS = {
    "completed": "SUCCESS success succeeded Succeeded ok OK completed COMPLETED Complete done finished neutral CACHED",
    "failed": "FAILURE failure failed FAILED error errored OOM_KILLED OOMKilled OUT_OF_MEMORY Evicted startup_failure "
    "up_for_retry NODE_FAIL BF crashed ERR EXIT",
    "cancelled": "CANCELED cancelled aborted ABORTED killed skipped stale removed upstream_failed PREEMPTED CA",
    "timeout": "TIMED_OUT timed_out TimedOut timeout TIMEOUT DEADLINE DeadlineExceeded TO",
    "running": "running RUNNING in_progress In-Progress deferred SUSPENDED CG R canceling RUN SSUSP",
    "pending": "pending queued scheduled waiting action_required waiting_for_resource ContainerCreating PD PEND",
    "unknown": "unknown",
}


@pytest.mark.parametrize(("status", "words"), WORDS.items())
def test_words_of_people_and_engines_have_a_status(status: str, words: str) -> None:
    assert {word: status_of(word, {}) for word in words.split()} == dict.fromkeys(words.split(), status)
    assert status_of(" timed out ", {}) == "timeout" and status_of("CANCELLED by 123", {}) == "cancelled"


def test_no_word_has_two_statuses_in_the_table() -> None:
    told = [(key_of(word), status) for status, words in STATUS_WORDS for word in words.split(",")]
    assert {key for key, _ in set(told) if len({s for k, s in told if k == key}) > 1} == set()


def test_letters_that_mean_one_thing_in_slurm_and_another_elsewhere_are_slurms_alone() -> None:
    for word, status in {"F": "failed", "S": "running", "STOPPED": "running"}.items():
        assert status_of(word, {}) is None and status_of(word, {}, KNOWN_TO_SLURM) == status


def test_what_the_user_says_counts_before_the_table() -> None:
    assert status_of("Gone-Away", {"gone away": "cancelled"}) == "cancelled"
    assert status_of("done", {"done": "failed"}) == "failed"
    assert status_of("meh", {}) is None


def test_numbers_are_no_words_and_0_is_success_among_exit_codes_alone() -> None:
    assert [status_of(code, {}) for code in ("0", "1", "137")] == [None, None, None]
    codes = {"0": "completed", "1": "failed", "-9": "failed", "0.0": "completed", "0:0": "completed", "0:15": "failed"}
    assert {code: status_of_exit_code(code) for code in codes} == codes
    assert status_of_exit_code("ok") is None
    assert [is_exit_code(name) for name in ("exit_code", "ExitCode", "rc", "return value", "status", "code")] == [
        True, True, True, True, False, False,
    ]  # fmt: skip


NOON = pd.Timestamp("2026-01-01 12:00:00")
NOW = datetime(2026, 1, 2)  # so that a day of slack reaches to 2026-01-03 00:00:00
SLACK = ReadParams(future_slack_s=86_400)
GOOD: dict[str, Any] = {"run_id": "1", "name": "etl", "started_at": NOON, "runtime_s": 60.0, "status": "completed"}


def vet(*rows: dict[str, Any]) -> Chunk:
    frame = pd.DataFrame(rows)
    return vet_runs(frame.assign(place=range(1, len(frame) + 1)), SLACK, NOW)


def seconds(number: float) -> pd.Timedelta:
    return pd.Timedelta(seconds=number)


NO_ID = "no run id; expected one that is unique in its source"
INFINITE = "an infinite number; expected a finite one or none"
LONG, NEGATIVE = "runtime or wait over 100 years; expected seconds", "negative runtime; expected 0 s or more"
EARLY, LATE = "starts before it is submitted; check the times", "lies in the future; check clock, unit and time zone"
AMOUNT, CENTURY_S = "negative size or amount; expected 0 or more", 101 * 365.25 * 86_400
ENDLESS = "no runtime and no end time; expected one of them, or the status running or pending"
NO_START = {"started_at": pd.NaT, "runtime_s": np.nan, "submitted_at": NOON, "ended_at": NOON}
REFUSED = {
    "no id": ({"run_id": None}, NO_ID),
    "an empty id": ({"run_id": ""}, NO_ID),
    "status": ({"status": "done"}, f"unknown status; expected one of {', '.join(STATUSES)}"),
    "infinite": ({"cpu_s": np.inf}, INFINITE),
    "infinite runtime": ({"runtime_s": -np.inf}, INFINITE),
    "negative runtime": ({"runtime_s": -1.0}, NEGATIVE),
    "runtime of 101 years": ({"runtime_s": CENTURY_S}, LONG),
    "wait of 101 years": ({"wait_s": CENTURY_S}, LONG),
    "no time": ({"started_at": pd.NaT}, "neither submission nor start time; expected one of them"),
    "NaN runtime": ({"runtime_s": np.nan}, ENDLESS),
    "only submission and end": (NO_START, "an end but neither a runtime nor a start; expected one of them"),
    "end before start": ({"ended_at": NOON - seconds(1)}, "ends before it starts; check the times and their zones"),
    "end before start, no runtime": ({"runtime_s": np.nan, "ended_at": NOON - seconds(1)}, NEGATIVE),
    "start before submission": ({"submitted_at": NOON + seconds(1)}, EARLY),
    "negative wait": ({"wait_s": -0.5}, EARLY),
    "negative memory": ({"peak_memory_bytes": -8.0}, AMOUNT),
    "negative size": ({"requested_cpus": -2.0}, AMOUNT),
    "before 1970": ({"started_at": pd.Timestamp("1969-12-31")}, "lies before 1970; check the unit of the times"),
    "future start": ({"started_at": pd.Timestamp("2026-01-03 00:00:00.000001"), "runtime_s": 0.0}, LATE),
    "future end": ({"runtime_s": 2 * 86_400.0}, LATE),
}


@pytest.mark.parametrize(("change", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_row_that_cannot_be_true_is_refused_with_its_reason_and_the_others_stay(
    change: dict[str, Any], reason: str
) -> None:
    chunk = vet(GOOD, GOOD | change, GOOD)
    assert chunk.refused[["place", "reason"]].to_numpy().tolist() == [[2, reason]]
    assert chunk.rows["place"].to_list() == [1, 3]


KEPT = {
    "runtime of zero": {"runtime_s": 0.0},
    "at the end of the slack": {"started_at": pd.Timestamp("2026-01-03"), "runtime_s": 0.0},
    "no name": {"name": None},
    "only a submission": {"started_at": pd.NaT, "submitted_at": NOON},
    "runtime and end differ, as after a suspension": {"ended_at": NOON + seconds(90)},
}


@pytest.mark.parametrize("change", KEPT.values(), ids=KEPT)
def test_a_row_that_can_be_true_is_kept(change: dict[str, Any]) -> None:
    assert len(vet(GOOD | change).rows) == 1


def test_only_the_first_reason_is_named() -> None:
    chunk = vet(GOOD | {"run_id": None, "runtime_s": -5.0, "status": "odd"})
    assert chunk.refused["reason"].to_list() == [NO_ID]


def test_the_line_itself_is_kept_with_a_refused_row_and_cut_at_500_characters() -> None:
    chunk = vet(GOOD | {"raw": "first"}, GOOD | {"runtime_s": -1.0, "raw": "x" * 600})
    assert chunk.refused["raw"].to_list() == ["x" * 500]
    assert "raw" not in chunk.rows


DERIVED = {
    "end from start and runtime": ({}, {"ended_at": NOON + seconds(60)}),
    "start from submission and wait": (
        {"started_at": pd.NaT, "submitted_at": NOON, "wait_s": 2.5},
        {"started_at": NOON + seconds(2.5), "ended_at": NOON + seconds(62.5)},
    ),
    "start from end and runtime": (
        {"started_at": pd.NaT, "submitted_at": NOON, "ended_at": NOON + seconds(70)},
        {"started_at": NOON + seconds(10), "wait_s": 10.0},
    ),
    "submission from start and wait": ({"wait_s": 5.0}, {"submitted_at": NOON - seconds(5)}),
    "runtime from start and end": ({"runtime_s": np.nan, "ended_at": NOON + seconds(1.25)}, {"runtime_s": 1.25}),
    "wait from submission and start": ({"submitted_at": NOON - seconds(3)}, {"wait_s": 3.0}),
    "status where the log has none": ({"status": None}, {"status": "unknown"}),
    "a limit of 0 is none": ({"requested_runtime_s": 0.0}, {"requested_runtime_s": None}),
}


@pytest.mark.parametrize(("change", "expected"), DERIVED.values(), ids=DERIVED)
def test_what_a_log_leaves_out_is_derived(change: dict[str, Any], expected: dict[str, Any]) -> None:
    row = vet(GOOD | change).rows.iloc[0]
    assert {name: None if pd.isna(row[name]) else row[name] for name in expected} == expected


@pytest.mark.parametrize("status", ["running", "pending"])
def test_a_run_that_goes_on_has_neither_end_nor_runtime(status: str) -> None:
    row = vet(GOOD | {"status": status, "runtime_s": 5.0, "ended_at": NOON + seconds(5)}).rows.iloc[0]
    assert pd.isna(row["runtime_s"])
    assert pd.isna(row["ended_at"])


def test_a_run_that_was_cancelled_in_the_queue_needs_no_runtime_but_one_that_began_does() -> None:
    queued = GOOD | {"status": "cancelled", "started_at": pd.NaT, "submitted_at": NOON, "runtime_s": np.nan}
    began = GOOD | {"status": "cancelled", "runtime_s": np.nan}
    chunk = vet(queued, began)
    assert chunk.rows["place"].to_list() == [1]
    assert chunk.refused["place"].to_list() == [2]


def test_every_column_is_there_in_its_type_whatever_the_log_has() -> None:
    rows = vet({"run_id": "1", "submitted_at": NOON, "runtime_s": 1}).rows
    assert list(rows) == [*COLUMNS, "place"]
    assert rows.dtypes.astype(str).to_dict() == {
        name: {"string": "str", "timestamp[us]": "datetime64[us]", "double": "float64", "bool": "bool"}[str(kind)]
        for name, (kind, _) in COLUMNS.items()
    } | {"place": "int64"}
    assert rows.loc[0, "is_simulated"] == False  # noqa: E712  (a numpy bool)


def test_times_with_a_zone_become_utc() -> None:
    row = vet(GOOD | {"started_at": pd.Timestamp("2026-01-01 13:00", tz="Europe/Berlin")}).rows.iloc[0]
    assert row["started_at"] == NOON


def test_no_row_gives_no_row() -> None:
    chunk = vet_runs(pd.DataFrame({"run_id": pd.Series(dtype="str"), "place": pd.Series(dtype="int64")}), SLACK, NOW)
    assert (len(chunk.rows), len(chunk.refused)) == (0, 0)
