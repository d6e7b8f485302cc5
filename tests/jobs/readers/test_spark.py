"""Spark's event logs: logs that Spark 4.3 wrote (fixtures/README.md), and small ones worked out by hand."""

import gzip
import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tasks.errors import BadInput
from tasks.jobs import intake
from tasks.jobs.intake import pseudonymise
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers import READERS, detect
from tasks.jobs.readers.spark import parts_of
from tasks.jobs.readers.spark_events import MAX_STEPS, Tokens
from tasks.params import ReadLimits
from tasks.warehouse.place import Warehouse

LOGS = Path(__file__).parent / "fixtures" / "spark"
PLAIN = LOGS / "local-1795239004004"
FAILED = LOGS / "local-1795239122094"
ROLLED = LOGS / "eventlog_v2_app-20261121053437-0000"
PACKED = sorted(path for path in LOGS.iterdir() if path.suffix in (".zstd", ".lz4", ".snappy"))


def read(path: Path, params: ReadParams | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(READERS["spark"].read(str(path), params or ReadParams()))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


Event = dict[str, Any]
LOG_START: Event = {"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"}
APP_START: Event = {"Event": "SparkListenerApplicationStart", "App Name": "etl", "App ID": "app-1"}
APP_START |= {"Timestamp": 1_000_000, "User": "ada"}
ENDED: Event = {"Event": "SparkListenerApplicationEnd", "Timestamp": 1_010_000}


def write_events(path: Path, *events: Event) -> Path:
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def read_reasons(path: Path) -> tuple[pd.DataFrame, list[str]]:
    rows, refused = read(path)
    return rows, refused["reason"].to_list()


def read_events(folder: Path, *events: Event) -> tuple[pd.DataFrame, list[str]]:
    return read_reasons(write_events(folder / "log", LOG_START, *events))


def task_at(kind: str, at_ms: int, *, stage: int = 0, host: str = "a", **other: object) -> Event:
    info = {"Launch Time": at_ms, "Finish Time": at_ms, "Host": host, "Executor ID": "1"}
    return {"Event": f"SparkListener{kind}", "Stage ID": stage, "Stage Attempt ID": 0, "Task Info": info, **other}


def test_one_application_worked_out_by_hand(tmp_path: Path) -> None:
    def ended(at_ms: int, cpu_ms: int, host: str) -> Event:
        cpu_ns = cpu_ms * 1_000_000
        metrics = {"Executor CPU Time": cpu_ns, "Input Metrics": {"Bytes Read": 10}, "Disk Bytes Spilled": 3}
        return task_at("TaskEnd", at_ms, host=host, **{"Task Metrics": metrics})

    begun = [task_at("TaskStart", 1_001_000), task_at("TaskStart", 1_003_000, host="b")]
    rows, reasons = read_events(
        tmp_path, APP_START, *begun, ended(1_004_000, 2000, "a"), ended(1_006_000, 1000, "b"), ENDED
    )
    assert reasons == []
    row = rows.iloc[0]
    told = row[["run_id", "name", "user_name", "status", "runtime_s", "cpu_s", "input_bytes", "temp_bytes", "place"]]
    assert told.to_list() == ["app-1", "etl", "ada", "completed", 10.0, 3.0, 20.0, 6.0, 1]
    # one task for 2 s, two for 1 s, one for 2 s
    assert (row["min_tokens"], row["peak_tokens"]) == (1, 2)
    steps = [(step["at_s"], step["tokens"]) for step in row["skyline"]]
    assert steps == [(1, 1), (3, 2), (4, 1), (6, 0)]
    assert [(one["sku"], one["cpu_s"], one["mean_tokens"]) for one in row["vertices"]] == [("a", 2, 1), ("b", 1, 1)]


def test_a_real_log_gives_plan_tokens_and_vertices() -> None:
    row = read(PLAIN)[0].iloc[0]
    assert (row["name"], row["status"], row["requested_cpus"]) == ("daily_sales 2026-11-18", "completed", 2)
    assert json.loads(row["operators"])["TakeOrderedAndProject"] == 1
    assert row["peak_tokens"] == 2 and 0 < row["used_cpus"] < 2
    assert {one["sku"] for one in row["vertices"]} == {"node-1"}
    assert sum(one["cpu_s"] for one in row["vertices"]) == pytest.approx(row["cpu_s"])
    assert row["wait_s"] == pytest.approx(1.317)  # from spark.app.submitTime


@pytest.mark.parametrize("path", PACKED, ids=lambda path: path.suffix)
def test_packed_logs_give_the_runs_that_spark_wrote(path: Path) -> None:
    assert len(PACKED) == 3
    rows, refused = read(path)
    assert (len(rows), len(refused)) == (1, 0)
    assert rows["name"].iloc[0] == "daily_sales 2026-11-18"
    assert rows["run_id"].iloc[0] == path.stem


def test_the_same_plan_has_one_signature_whatever_the_date_and_the_packing() -> None:
    signatures = {read(path)[0]["plan_signature"].iloc[0] for path in (*PACKED, LOGS / "local-1795238849560")}
    assert len(signatures) == 1
    assert read(FAILED)[0]["plan_signature"].iloc[0] not in signatures


def test_a_rolled_log_is_one_run_over_all_of_its_files(tmp_path: Path) -> None:
    assert [Path(part).name[:8] for part in parts_of(str(ROLLED))] == ["events_1", "events_2"]
    rows, refused = read(ROLLED)
    assert (rows["run_id"].to_list(), rows["status"].to_list(), len(refused)) == (
        ["app-20261121053437-0000"],
        ["completed"],
        0,
    )
    first_only = tmp_path / ROLLED.name
    shutil.copytree(ROLLED, first_only)
    next(first_only.glob("events_2_*")).unlink()
    early = read(first_only)[0].iloc[0]
    assert (early["status"], early["run_id"]) == ("running", "app-20261121053437-0000")
    assert early["cpu_s"] < rows["cpu_s"].iloc[0]


def test_a_compacted_file_stands_for_those_before_it(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_a"
    folder.mkdir()
    for name in ("events_1_a", "events_2_a", "events_2_a.compact", "events_3_a", "events_10_a"):
        (folder / name).write_text("")
    (folder / "events_10_a").rename(folder / "events_4_a")
    assert [Path(part).name for part in parts_of(str(folder))] == ["events_2_a.compact", "events_3_a", "events_4_a"]


def test_an_application_that_runs_has_no_end_yet(tmp_path: Path) -> None:
    lines = PLAIN.read_text().splitlines(keepends=True)
    (tmp_path / "local-1795239004004.inprogress").write_text("".join(lines[:-1]))
    row = read(tmp_path / "local-1795239004004.inprogress")[0].iloc[0]
    assert row["status"] == "running" and pd.isna(row["runtime_s"]) and row["run_id"] == PLAIN.name


def test_a_packed_log_in_progress_may_end_anywhere(tmp_path: Path) -> None:
    lines = PLAIN.read_bytes().splitlines(keepends=True)
    frames = [pa.Codec("zstd").compress(b"".join(lines[at : at + 4]), asbytes=True) for at in range(0, len(lines), 4)]
    path = tmp_path / "local-1795239004004.zstd.inprogress"
    path.write_bytes(b"".join(frames)[:-20])
    rows, refused = read(path)
    assert (rows["status"].to_list(), len(refused)) == (["running"], 0)
    path.write_bytes(frames[0][:-20])
    with pytest.raises(BadInput, match="the zstd stream is cut off"):
        read(path)


def test_the_end_decides_what_became_of_a_run(tmp_path: Path) -> None:
    def status(*events: Event) -> str:
        return str(read_events(tmp_path, APP_START, *events)[0]["status"].iloc[0])

    broken, stopped = (
        job_end({"Result": "JobFailed", "Exception": {"Message": message}}) for message in ("no", "Job 1 cancelled")
    )
    good = job_end({"Result": "JobSucceeded"})
    assert status(broken, ENDED) == "failed"
    assert status(broken, good, ENDED) == "completed"  # tried again by the application itself
    assert status(stopped, ENDED) == "cancelled"
    assert status(good, {**ENDED, "ExitCode": 1}) == "failed"
    assert read(FAILED)[0]["status"].to_list() == ["failed"]


def test_several_applications_in_one_file_are_several_runs_and_recur(tmp_path: Path) -> None:
    logs = [path for path in sorted(LOGS.glob("local-*")) if not path.suffix]
    (tmp_path / "all.eventlog.gz").write_bytes(gzip.compress(b"".join(path.read_bytes() for path in logs)))
    preview = intake.preview_log(
        Path("unused"), str(tmp_path / "all.eventlog.gz"), intake.Intake("s", "", ReadParams(), GroupParams())
    )
    assert (preview.reader, preview.n_read, preview.n_kept, preview.n_refused) == ("spark", 7, 7, 0)
    # daily_sales: 3 with one plan, 1 with another; shop_report: 2, and the failed one
    assert preview.recurring_share == pytest.approx(5 / 7) and preview.support_3_share == pytest.approx(3 / 7)


def test_pseudonyms_keep_the_groups_of_a_folder_that_is_landed(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    shutil.copytree(LOGS, folder, ignore=shutil.ignore_patterns("*.lzf"))
    paths = intake.find_logs([str(folder)])
    assert len(paths) == 11 and str(folder / ROLLED.name) in paths
    rows = pd.concat([read(Path(path))[0] for path in paths])
    hidden = pseudonymise(rows, b"k" * 32)
    assert hidden["name"].nunique() == 2 and not set(hidden["name"]) & set(rows["name"])
    assert "ada" not in set(hidden["user_name"])
    taken = intake.Intake("s", "", ReadParams(pseudonymise=True), GroupParams())
    batch = intake.land_log(Warehouse(home=tmp_path / "home"), str(folder / ROLLED.name), taken)
    assert (batch.origin.reader, batch.tables["runs"].n_rows) == ("spark", 1)


def test_the_reader_is_found_by_name_and_by_content(tmp_path: Path) -> None:
    limits = ReadLimits()
    for path in (PLAIN, ROLLED, *PACKED):
        assert detect(str(path), limits).name == "spark", path
    for path in (PLAIN, *PACKED):
        shutil.copy(path, tmp_path / "renamed.csv")
        assert detect(str(tmp_path / "renamed.csv"), limits).name == "spark", path
    head = PLAIN.read_bytes()[:4096]
    assert next(name for name, reader in READERS.items() if reader.sniff(head, "x")) == "spark"


def test_a_skyline_of_any_length_keeps_its_area() -> None:
    tokens = Tokens(has_steps=True)
    for at in range(20_000):
        tokens.change(at * 7, 1 if at % 3 else -1)
    steps = tokens.steps
    area = sum(held * (end - start) for (start, held), (end, _) in pairwise(steps))
    assert area == pytest.approx(tokens.area_ms) and len(steps) <= 2 * MAX_STEPS


LINES = PLAIN.read_bytes().splitlines(keepends=True)
HALF = len(LINES) // 2


def packed(lines: list[bytes]) -> bytes:
    """Lines as a running application packs them: a frame of zstd for every few of them."""
    codec = pa.Codec("zstd")
    return b"".join(codec.compress(b"".join(lines[at : at + 4]), asbytes=True) for at in range(0, len(lines), 4))


def rolled(folder: Path, *parts: bytes, is_running: bool = True) -> Path:
    path = folder / "eventlog_v2_local-1"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    for number, content in enumerate(parts, 1):
        (path / f"events_{number}_local-1.zstd").write_bytes(content)
    (path / f"appstatus_local-1{'.inprogress' if is_running else ''}").touch()
    return path


def test_only_the_last_part_may_be_cut_while_the_application_runs(tmp_path: Path) -> None:
    first, second = packed(LINES[:HALF]), packed(LINES[HALF:])
    rows, refused = read(rolled(tmp_path, first, second[:-20]))
    assert (rows["status"].to_list(), len(refused)) == (["running"], 0)
    with pytest.raises(BadInput, match=r"events_1_local-1\.zstd: the zstd stream is cut off; expected a whole event"):
        read(rolled(tmp_path, first[:-20], second))
    with pytest.raises(BadInput, match=r"events_2_local-1\.zstd: the zstd stream is cut off"):
        read(rolled(tmp_path, first, second[:-20], is_running=False))


def test_a_part_that_was_just_begun_may_be_empty_and_no_other(tmp_path: Path) -> None:
    first, second = packed(LINES[:HALF]), packed(LINES[HALF:])
    assert read(rolled(tmp_path, first, b""))[0]["status"].to_list() == ["running"]
    empty = "the file is empty; expected events of Spark; copy it again, or wait until the application has ended"
    with pytest.raises(BadInput, match=rf"events_1_local-1\.zstd: {empty}"):
        read(rolled(tmp_path, b"", second))
    with pytest.raises(BadInput, match=rf"events_2_local-1\.zstd: {empty}"):
        read(rolled(tmp_path, first, b"", is_running=False))
    with pytest.raises(BadInput, match=rf"events_1_local-1\.zstd: {empty}"):
        read(rolled(tmp_path, b""))


def stage_end(at_ms: int, *, stage: int = 0, **other: object) -> Event:
    info = {"Stage ID": stage, "Stage Attempt ID": 0, "Completion Time": at_ms, **other}
    return {"Event": "SparkListenerStageCompleted", "Stage Info": info}


def properties(**given: object) -> Event:
    return {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.master": "yarn", **given}}


@pytest.mark.parametrize("code", [-1, 1, 137, 10**30])
def test_any_exit_code_but_0_is_a_failed_run(tmp_path: Path, code: int) -> None:
    rows, reasons = read_events(tmp_path, APP_START, {**ENDED, "ExitCode": code})
    assert (rows["status"].to_list(), reasons) == (["failed"], [])


@pytest.mark.parametrize("code", ["1", 1.5, True, [1]])
def test_an_end_without_a_readable_exit_code_ends_nothing(tmp_path: Path, code: object) -> None:
    rows, reasons = read_events(tmp_path, APP_START, {**ENDED, "ExitCode": code})
    assert rows["status"].to_list() == ["running"]
    assert reasons == [f"ExitCode '{code}' is not a whole number"]


def test_applications_in_one_file_need_no_log_start_between_them(tmp_path: Path) -> None:
    def one(number: int) -> list[Event]:
        start = {**APP_START, "App ID": f"app-{number}"}
        cores = properties(**{"spark.executor.instances": str(number), "spark.executor.cores": "1"})
        return [cores, start, task_at("TaskStart", 1_001_000), task_at("TaskEnd", 1_003_000), ENDED]

    rows, reasons = read_reasons(write_events(tmp_path / "log", *one(1), *one(2)))
    assert rows[["run_id", "status", "requested_cpus"]].to_numpy().tolist() == [
        ["app-1", "completed", 1.0],
        ["app-2", "completed", 2.0],
    ]
    assert rows["used_cpus"].tolist() == [0.2, 0.2] and reasons == []


def test_an_application_that_broke_off_is_not_one_with_the_next(tmp_path: Path) -> None:
    second = {**APP_START, "App ID": "app-2", "Timestamp": 1_005_000}
    rows, _ = read_events(tmp_path, APP_START, second, ENDED)
    assert rows[["run_id", "status"]].to_numpy().tolist() == [["app-1", "running"], ["app-2", "completed"]]


@pytest.mark.parametrize("at_ms", [0, 900_000, 10**13, 10**15])
@pytest.mark.parametrize(("kind", "key"), [("TaskStart", "Launch Time"), ("TaskEnd", "Finish Time")])
def test_a_task_at_an_impossible_time_is_refused_and_changes_nothing(
    tmp_path: Path, kind: str, key: str, at_ms: int
) -> None:
    good = [properties(**{"spark.executor.instances": "1"}), APP_START]
    good += [task_at("TaskStart", 1_001_000), task_at("TaskEnd", 1_003_000), ENDED]
    expected, _ = read_events(tmp_path, *good)
    rows, reasons = read_events(tmp_path, *good[:3], task_at(kind, at_ms, host="b"), *good[3:])
    pd.testing.assert_frame_equal(rows, expected)
    assert reasons == [f"{key} {at_ms} is no time of this run; expected ms from its start on, up to now"]


def test_a_task_that_runs_long_after_its_application_makes_no_row(tmp_path: Path) -> None:
    rows, reasons = read_events(
        tmp_path, APP_START, task_at("TaskStart", 1_001_000), task_at("TaskEnd", 2 * 10**9), ENDED
    )
    assert (len(rows), reasons) == (0, ["a task ends over a minute after its application; check the times"])


def test_a_task_before_its_application_by_a_clock_set_back_counts_from_the_start(tmp_path: Path) -> None:
    some = properties(**{"spark.executor.instances": "1"})
    rows, _ = read_events(
        tmp_path, some, APP_START, task_at("TaskStart", 999_000), task_at("TaskEnd", 1_005_000), ENDED
    )
    assert rows["used_cpus"].to_list() == [0.5]
    vertex = rows["vertices"].iloc[0][0]
    assert vertex["started_at"] == pd.Timestamp(1_000_000, unit="ms")
    assert vertex["ended_at"] == pd.Timestamp(1_005_000, unit="ms")


def task_with(**metrics: object) -> Event:
    return task_at("TaskEnd", 1_002_000, **{key.replace("_", " "): value for key, value in metrics.items()})


def job_end(result: object) -> Event:
    return {"Event": "SparkListenerJobEnd", "Job Result": result}


NO_TIME = {**task_at("TaskStart", 0), "Task Info": {"Launch Time": "\ud800"}}
SHAPES: dict[str, tuple[Event, str]] = {
    "metrics a list": (task_with(Task_Metrics=[1]), "Task Metrics '[1]' is not an object"),
    "metrics a text": (task_with(Task_Metrics="x"), "Task Metrics 'x' is not an object"),
    "shuffle": (task_with(Task_Metrics={"Shuffle Read Metrics": "x"}), "Shuffle Read Metrics 'x' is not an object"),
    "input a list": (task_with(Task_Metrics={"Input Metrics": [3]}), "Input Metrics '[3]' is not an object"),
    "memory a text": (task_with(Task_Executor_Metrics="x"), "Task Executor Metrics 'x' is not an object"),
    "exception": (job_end({"Result": "JobFailed", "Exception": "boom"}), "Exception 'boom' is not an object"),
    "result a text": (job_end("x"), "Job Result 'x' is not an object"),
    "host": (task_at("TaskStart", 1_002_000, host="n\ud800"), "Host 'n\\ud800' holds half a character"),
    "queue": (properties(**{"spark.yarn.queue": "\udfff"}), "spark.yarn.queue '\\udfff' holds half a character"),
    "queue an object": (properties(**{"spark.yarn.queue": {"a": 1}}), "spark.yarn.queue '{'a': 1}' is not a text"),
    "time, half a character": (NO_TIME, "Launch Time '\\ud800' is not a number"),
}


@pytest.mark.parametrize(("event", "reason"), SHAPES.values(), ids=SHAPES)
def test_a_wrong_shape_inside_an_event_refuses_its_line_alone(tmp_path: Path, event: Event, reason: str) -> None:
    rows, reasons = read_events(tmp_path, APP_START, event, ENDED)
    assert rows["status"].to_list() == ["completed"]
    assert len(reasons) == 1 and reason in reasons[0]
    assert reasons[0].encode()


@pytest.mark.parametrize("key", ["App Name", "App ID", "User", "App Attempt ID"])
@pytest.mark.parametrize(
    ("value", "reason"),
    [("a\ud800b", " 'a\\ud800b' holds half a character; expected whole ones"), ([1], " '[1]' is not a text")],
)
def test_a_start_that_cannot_be_kept_says_so(tmp_path: Path, key: str, value: object, reason: str) -> None:
    rows, reasons = read_events(tmp_path, {**APP_START, key: value}, ENDED)
    assert rows.empty and reasons[0] == "a log without a start of an application; expected a " + APP_START["Event"]
    assert reasons[1] == key + reason


@pytest.mark.parametrize("name", ["", None])
def test_an_application_without_a_name_is_called_by_its_id(tmp_path: Path, name: str | None) -> None:
    rows, reasons = read_events(tmp_path, {**APP_START, "App Name": name}, ENDED)
    assert (rows["name"].to_list(), reasons) == (["app-1"], [])


@pytest.mark.parametrize("text", ["²", "9" * 400, "٣", "-1", "1e9", ""])
def test_a_property_that_is_no_count_is_missing(tmp_path: Path, text: str) -> None:
    keys = ("spark.executor.instances", "spark.cores.max", "spark.app.submitTime", "spark.task.cpus")
    given = properties(**dict.fromkeys(keys, text), **{"spark.executor.memory": f"{text}g"})
    rows, reasons = read_events(tmp_path, given, APP_START, task_at("TaskStart", 1_001_000), ENDED)
    assert reasons == [] and rows["peak_tokens"].to_list() == [1]
    assert rows[["requested_cpus", "requested_memory_bytes", "submitted_at"]].isna().to_numpy().all()


def steps(rows: pd.DataFrame) -> list[tuple[float, float]]:
    return [(step["at_s"], step["tokens"]) for step in rows["skyline"].iloc[0]]


def test_what_a_refused_end_left_held_is_free_when_its_stage_ends(tmp_path: Path) -> None:
    events = [task_at("TaskStart", 1_001_000), task_at("TaskStart", 1_001_000, stage=1)]
    events += [task_at("TaskEnd", 1_002_000, **{"Task Metrics": "x"}), stage_end(1_003_000)]
    late = task_at("TaskEnd", 1_004_000)  # its tokens are free already: those of stage 1 stay held
    rows, reasons = read_events(
        tmp_path, APP_START, *events, late, task_at("TaskEnd", 1_006_000, stage=1), stage_end(1_006_000, stage=1), ENDED
    )
    assert len(reasons) == 1
    assert steps(rows) == [(1, 2), (3, 1), (4, 1), (6, 0)]


def test_what_is_held_at_the_end_of_a_run_is_free_then(tmp_path: Path) -> None:
    rows, _ = read_events(tmp_path, APP_START, task_at("TaskStart", 1_001_000), ENDED)
    assert steps(rows) == [(1, 1), (10, 0)]
    assert rows["vertices"].iloc[0][0]["ended_at"] == pd.Timestamp(1_010_000, unit="ms")


def test_tasks_of_a_failed_stage_may_run_on(tmp_path: Path) -> None:
    failed = stage_end(1_002_000, **{"Failure Reason": "lost a block"})
    rows, _ = read_events(
        tmp_path, APP_START, task_at("TaskStart", 1_001_000), failed, task_at("TaskEnd", 1_005_000), ENDED
    )
    assert steps(rows) == [(1, 1), (5, 0)]


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"", b"\n", b"\xef\xbb\xbf \n"])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_a_log_is_told_by_its_first_event_however_it_is_spaced(
    tmp_path: Path, before: bytes, separators: tuple[str, str]
) -> None:
    lines = [json.dumps(event, separators=separators).replace("{", "{ ") for event in (LOG_START, APP_START, ENDED)]
    path = tmp_path / "x"
    path.write_bytes(before + "\n".join(lines).encode())
    assert detect(str(path), ReadLimits()).name == "spark"
    assert read_reasons(path)[0]["status"].to_list() == ["completed"]


TASK_END = next(place for place, line in enumerate(LINES) if b"TaskEnd" in line)
SQL_START = next(place for place, line in enumerate(LINES) if b"SQLExecutionStart" in line)


def as_packed(suffix: str) -> bytes:
    return next(LOGS.glob(f"*.{suffix}")).read_bytes()


def put(place: int, old: bytes, new: bytes) -> tuple[int, bytes]:
    assert old in LINES[place], LINES[place][:300]
    return place, LINES[place].replace(old, new, 1)


BROKEN_LINES: list[tuple[tuple[int, bytes], str]] = [
    ((TASK_END, LINES[TASK_END][:200] + b"\n"), "not a whole line of JSON"),
    ((TASK_END, b"INFO MemoryStore: cleared\n"), "not a whole line of JSON (Expecting value)"),
    ((TASK_END, b"[1, 2]\n"), "a line of JSON without an 'Event'; expected an event of Spark"),
    (put(TASK_END, b'"Finish Time":1', b'"Finish Time":"noon","x":1'), "Finish Time 'noon' is not a number"),
    (put(TASK_END, b'"Stage ID":', b'"Stage ID":null,"x":'), "Stage ID 'None' is not a number"),
    (put(TASK_END, b'"Task Info":', b'"Task":'), "TaskEnd lacks 'Task Info'"),
    (put(TASK_END, b'"Executor CPU Time":', b'"Executor CPU Time":-'), "is negative or too large; expected 0 or more"),
    (put(TASK_END, b'"Host":"node-1"', b'"Host":""'), "Host '' is not a text"),
    (put(SQL_START, b'"nodeName":', b'"nodeKind":'), "sparkPlanInfo is not a plan of nodes with names"),
    ((TASK_END, b'{"Event":"SparkListenerUnpersistRDD","RDD\n'), "is cut off; expected a whole line of JSON"),
]


@pytest.mark.parametrize(("fault", "reason"), BROKEN_LINES, ids=[reason[:40] for _, reason in BROKEN_LINES])
def test_a_broken_line_is_refused_alone(tmp_path: Path, fault: tuple[int, bytes], reason: str) -> None:
    place, line = fault
    path = tmp_path / "log"
    path.write_bytes(b"".join([*LINES[:place], line, *LINES[place + 1 :]]))
    rows, refused = read(path)
    assert (len(rows), refused["place"].to_list()) == (1, [place + 1])
    assert reason in refused["reason"].iloc[0]


WRONG_FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "blank lines": (lambda: b"\n \n", "only blank lines; expected an event log of Spark"),
    "no start": (lambda: b"".join(LINES[8:]), "no SparkListenerApplicationStart in it; expected an event log of Spark"),
    "another file": (lambda: b"JobID|State\n1|COMPLETED\n", "no SparkListenerApplicationStart in it"),
    "lzf": (lambda: as_packed("lzf"), "packed with lzf; expected an event log that is plain or packed with zstd"),
    "lzf, what to do": (
        lambda: as_packed("lzf"),
        "set spark.eventLog.compression.codec (or spark.io.compression.codec)",
    ),
    "cut-off zstd": (lambda: as_packed("zstd")[:-40], "the zstd stream is cut off; expected a whole event log"),
    "cut-off lz4": (lambda: as_packed("lz4")[:-40], "the lz4 stream is cut off"),
    "cut-off snappy": (lambda: as_packed("snappy")[:-40], "the snappy stream is cut off"),
    "damaged zstd": (
        lambda: as_packed("zstd")[:20] + b"\xff" * 900 + as_packed("zstd")[920:],
        "the zstd stream is damaged",
    ),
    "damaged lz4": (
        lambda: as_packed("lz4")[:60] + b"\xff" * 900 + as_packed("lz4")[960:],
        "the lz4 stream is damaged",
    ),
    "damaged snappy": (
        lambda: as_packed("snappy")[:16] + b"\xff" * 90 + as_packed("snappy")[106:],
        "the snappy stream is damaged",
    ),
}


@pytest.mark.parametrize(("content", "message"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_file_of_the_wrong_kind_is_one_clear_line(tmp_path: Path, content: Callable[[], bytes], message: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(content())
    with pytest.raises(BadInput) as told:
        read(path)
    assert message in str(told.value) and "\n" not in str(told.value)
    assert str(told.value).startswith(f"{path}: ")


@pytest.mark.parametrize("suffix", ["zstd", "lz4", "snappy"])
def test_limits_hold_for_packed_logs(suffix: str) -> None:
    with pytest.raises(BadInput, match="more than 9,000 bytes unpacked; expected a smaller file"):
        read(next(LOGS.glob(f"*.{suffix}")), ReadParams(limits=ReadLimits(max_bytes=9000)))


def test_a_packed_bomb_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.zstd").write_bytes(pa.Codec("zstd").compress(LINES[TASK_END] * 4000, asbytes=True))
    with pytest.raises(BadInput, match="unpacks to more than 50 times its size"):
        read(tmp_path / "log.zstd", ReadParams(limits=ReadLimits(max_ratio=50)))


def test_a_rolled_log_with_a_gap_says_which_file_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / ROLLED.name
    shutil.copytree(ROLLED, folder)
    first = next(folder.glob("events_1_*"))
    first.rename(folder / first.name.replace("events_1_", "events_3_"))
    with pytest.raises(
        BadInput, match="file events_1_… is missing; expected all files up to events_3_…; copy the whole"
    ):
        read(folder)
    for path in folder.glob("events_*"):
        path.unlink()
    with pytest.raises(BadInput, match="no events in it; expected files events_1_<application> and so on"):
        read(folder)
    with pytest.raises(BadInput, match="no such folder"):
        read(tmp_path / "eventlog_v2_none")
