"""Values in a Spark event log that cannot be true, and events that are missing: said, and never made into a row."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tasks.intake.limits import ReadLimits
from tasks.jobs.params import ReadParams
from tasks.jobs.readers import detect
from tasks.jobs.readers.spark import SparkReader

Event = dict[str, Any]
APP_START: Event = {
    "Event": "SparkListenerApplicationStart",
    "App Name": "etl",
    "App ID": "app-1",
    "Timestamp": 1_000_000,
    "User": "ada",
}
APP_END: Event = {"Event": "SparkListenerApplicationEnd", "Timestamp": 1_010_000}
LOG_START: Event = {"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"}


def read(path: Path) -> tuple[pd.DataFrame, list[str]]:
    chunks = list(SparkReader().read(str(path), ReadParams()))
    refused = pd.concat([chunk.refused for chunk in chunks])
    return pd.concat([chunk.rows for chunk in chunks]), refused["reason"].to_list()


def write(path: Path, *events: Event) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def read_events(folder: Path, *events: Event) -> tuple[pd.DataFrame, list[str]]:
    return read(write(folder / "log", LOG_START, *events))


def task(kind: str, at_ms: int, *, stage: int = 0, host: str = "a", **other: object) -> Event:
    info = {"Launch Time": at_ms, "Finish Time": at_ms, "Host": host, "Executor ID": "1"}
    return {"Event": f"SparkListener{kind}", "Stage ID": stage, "Stage Attempt ID": 0, "Task Info": info, **other}


def stage_end(at_ms: int, *, stage: int = 0, **other: object) -> Event:
    info = {"Stage ID": stage, "Stage Attempt ID": 0, "Completion Time": at_ms, **other}
    return {"Event": "SparkListenerStageCompleted", "Stage Info": info}


def properties(**given: object) -> Event:
    return {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.master": "yarn", **given}}


@pytest.mark.parametrize("code", [-1, 1, 137, 10**30])
def test_any_exit_code_but_0_is_a_failed_run(tmp_path: Path, code: int) -> None:
    rows, reasons = read_events(tmp_path, APP_START, {**APP_END, "ExitCode": code})
    assert (rows["status"].to_list(), reasons) == (["failed"], [])


@pytest.mark.parametrize("code", ["1", 1.5, True, [1]])
def test_an_end_without_a_readable_exit_code_ends_nothing(tmp_path: Path, code: object) -> None:
    rows, reasons = read_events(tmp_path, APP_START, {**APP_END, "ExitCode": code})
    assert rows["status"].to_list() == ["running"]
    assert reasons == [f"ExitCode '{code}' is not a whole number"]


def test_applications_in_one_file_need_no_log_start_between_them(tmp_path: Path) -> None:
    def one(number: int) -> list[Event]:
        start = {**APP_START, "App ID": f"app-{number}"}
        cores = properties(**{"spark.executor.instances": str(number), "spark.executor.cores": "1"})
        return [cores, start, task("TaskStart", 1_001_000), task("TaskEnd", 1_003_000), APP_END]

    rows, reasons = read(write(tmp_path / "log", *one(1), *one(2)))
    assert rows[["run_id", "status", "requested_cpus"]].to_numpy().tolist() == [
        ["app-1", "completed", 1.0],
        ["app-2", "completed", 2.0],
    ]
    assert rows["used_cpus"].tolist() == [0.2, 0.2] and reasons == []


def test_an_application_that_broke_off_is_not_one_with_the_next(tmp_path: Path) -> None:
    second = {**APP_START, "App ID": "app-2", "Timestamp": 1_005_000}
    rows, _ = read_events(tmp_path, APP_START, second, APP_END)
    assert rows[["run_id", "status"]].to_numpy().tolist() == [["app-1", "running"], ["app-2", "completed"]]


@pytest.mark.parametrize("at_ms", [0, 900_000, 10**13, 10**15])
@pytest.mark.parametrize(("kind", "key"), [("TaskStart", "Launch Time"), ("TaskEnd", "Finish Time")])
def test_a_task_at_an_impossible_time_is_refused_and_changes_nothing(
    tmp_path: Path, kind: str, key: str, at_ms: int
) -> None:
    good = [properties(**{"spark.executor.instances": "1"}), APP_START]
    good += [task("TaskStart", 1_001_000), task("TaskEnd", 1_003_000), APP_END]
    expected, _ = read_events(tmp_path, *good)
    rows, reasons = read_events(tmp_path, *good[:3], task(kind, at_ms, host="b"), *good[3:])
    pd.testing.assert_frame_equal(rows, expected)
    assert reasons == [f"{key} {at_ms} is no time of this run; expected ms from its start on, up to now"]


def test_a_task_that_runs_long_after_its_application_makes_no_row(tmp_path: Path) -> None:
    rows, reasons = read_events(tmp_path, APP_START, task("TaskStart", 1_001_000), task("TaskEnd", 2 * 10**9), APP_END)
    assert (len(rows), reasons) == (0, ["a task ends over a minute after its application; check the times"])


def test_a_task_before_its_application_by_a_clock_set_back_counts_from_the_start(tmp_path: Path) -> None:
    some = properties(**{"spark.executor.instances": "1"})
    rows, _ = read_events(tmp_path, some, APP_START, task("TaskStart", 999_000), task("TaskEnd", 1_005_000), APP_END)
    assert rows["used_cpus"].to_list() == [0.5]
    vertex = rows["vertices"].iloc[0][0]
    assert vertex["started_at"] == pd.Timestamp(1_000_000, unit="ms")
    assert vertex["ended_at"] == pd.Timestamp(1_005_000, unit="ms")


SHAPES: dict[str, tuple[Event, str]] = {
    "metrics a list": (task("TaskEnd", 1_002_000, **{"Task Metrics": [1]}), "Task Metrics '[1]' is not an object"),
    "metrics a text": (task("TaskEnd", 1_002_000, **{"Task Metrics": "x"}), "Task Metrics 'x' is not an object"),
    "shuffle a text": (
        task("TaskEnd", 1_002_000, **{"Task Metrics": {"Shuffle Read Metrics": "x"}}),
        "Shuffle Read Metrics 'x' is not an object",
    ),
    "input a list": (
        task("TaskEnd", 1_002_000, **{"Task Metrics": {"Input Metrics": [3]}}),
        "Input Metrics '[3]' is not an object",
    ),
    "memory a text": (
        task("TaskEnd", 1_002_000, **{"Task Executor Metrics": "x"}),
        "Task Executor Metrics 'x' is not an object",
    ),
    "exception a text": (
        {"Event": "SparkListenerJobEnd", "Job Result": {"Result": "JobFailed", "Exception": "boom"}},
        "Exception 'boom' is not an object",
    ),
    "result a text": ({"Event": "SparkListenerJobEnd", "Job Result": "x"}, "Job Result 'x' is not an object"),
    "host, half a character": (task("TaskStart", 1_002_000, host="n\ud800"), "Host 'n\\ud800' holds half a character"),
    "queue, half a character": (
        properties(**{"spark.yarn.queue": "\udfff"}),
        "spark.yarn.queue '\\udfff' holds half a character",
    ),
    "queue an object": (properties(**{"spark.yarn.queue": {"a": 1}}), "spark.yarn.queue '{'a': 1}' is not a text"),
    "time, half a character": (
        {**task("TaskStart", 0), "Task Info": {"Launch Time": "\ud800"}},
        "Launch Time '\\ud800' is not a number",
    ),
}


@pytest.mark.parametrize(("event", "reason"), SHAPES.values(), ids=SHAPES)
def test_a_wrong_shape_inside_an_event_refuses_its_line_alone(tmp_path: Path, event: Event, reason: str) -> None:
    rows, reasons = read_events(tmp_path, APP_START, event, APP_END)
    assert rows["status"].to_list() == ["completed"]
    assert len(reasons) == 1 and reason in reasons[0]
    assert reasons[0].encode()


@pytest.mark.parametrize("key", ["App Name", "App ID", "User", "App Attempt ID"])
@pytest.mark.parametrize(
    ("value", "reason"),
    [("a\ud800b", " 'a\\ud800b' holds half a character; expected whole ones"), ([1], " '[1]' is not a text")],
)
def test_a_start_that_cannot_be_kept_says_so(tmp_path: Path, key: str, value: object, reason: str) -> None:
    rows, reasons = read_events(tmp_path, {**APP_START, key: value}, APP_END)
    assert rows.empty and reasons[0] == "a log without a start of an application; expected a " + APP_START["Event"]
    assert reasons[1] == key + reason


@pytest.mark.parametrize("name", ["", None])
def test_an_application_without_a_name_is_called_by_its_id(tmp_path: Path, name: str | None) -> None:
    rows, reasons = read_events(tmp_path, {**APP_START, "App Name": name}, APP_END)
    assert (rows["name"].to_list(), reasons) == (["app-1"], [])


@pytest.mark.parametrize("text", ["²", "9" * 400, "٣", "-1", "1e9", ""])
def test_a_property_that_is_no_count_is_missing(tmp_path: Path, text: str) -> None:
    keys = ("spark.executor.instances", "spark.cores.max", "spark.app.submitTime", "spark.task.cpus")
    given = properties(**dict.fromkeys(keys, text), **{"spark.executor.memory": f"{text}g"})
    rows, reasons = read_events(tmp_path, given, APP_START, task("TaskStart", 1_001_000), APP_END)
    assert reasons == [] and rows["peak_tokens"].to_list() == [1]
    assert rows[["requested_cpus", "requested_memory_bytes", "submitted_at"]].isna().to_numpy().all()


def steps(rows: pd.DataFrame) -> list[tuple[float, float]]:
    return [(step["at_s"], step["tokens"]) for step in rows["skyline"].iloc[0]]


def test_what_a_refused_end_left_held_is_free_when_its_stage_ends(tmp_path: Path) -> None:
    events = [task("TaskStart", 1_001_000), task("TaskStart", 1_001_000, stage=1)]
    events += [task("TaskEnd", 1_002_000, **{"Task Metrics": "x"}), stage_end(1_003_000)]
    late = task("TaskEnd", 1_004_000)  # its tokens are free already: those of stage 1 stay held
    rows, reasons = read_events(
        tmp_path, APP_START, *events, late, task("TaskEnd", 1_006_000, stage=1), stage_end(1_006_000, stage=1), APP_END
    )
    assert len(reasons) == 1
    assert steps(rows) == [(1, 2), (3, 1), (4, 1), (6, 0)]


def test_what_is_held_at_the_end_of_a_run_is_free_then(tmp_path: Path) -> None:
    rows, _ = read_events(tmp_path, APP_START, task("TaskStart", 1_001_000), APP_END)
    assert steps(rows) == [(1, 1), (10, 0)]
    assert rows["vertices"].iloc[0][0]["ended_at"] == pd.Timestamp(1_010_000, unit="ms")


def test_tasks_of_a_failed_stage_may_run_on(tmp_path: Path) -> None:
    failed = stage_end(1_002_000, **{"Failure Reason": "lost a block"})
    rows, _ = read_events(
        tmp_path, APP_START, task("TaskStart", 1_001_000), failed, task("TaskEnd", 1_005_000), APP_END
    )
    assert steps(rows) == [(1, 1), (5, 0)]


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"", b"\n", b"\xef\xbb\xbf \n"])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_a_log_is_told_by_its_first_event_however_it_is_spaced(
    tmp_path: Path, before: bytes, separators: tuple[str, str]
) -> None:
    lines = [json.dumps(event, separators=separators).replace("{", "{ ") for event in (LOG_START, APP_START, APP_END)]
    path = tmp_path / "x"
    path.write_bytes(before + "\n".join(lines).encode())
    assert detect(str(path), ReadLimits()).name == "spark"
    assert read(path)[0]["status"].to_list() == ["completed"]
