"""Spark's event logs: logs that Spark 4.3 wrote (fixtures/README.md), and small ones worked out by hand."""

import gzip
import json
import shutil
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from tasks.errors import BadInput
from tasks.intake.limits import ReadLimits
from tasks.jobs import intake
from tasks.jobs.intake import pseudonymise
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers import READERS, detect
from tasks.jobs.readers.spark import SparkReader
from tasks.jobs.readers.spark_events import MAX_STEPS, Tokens
from tasks.jobs.readers.spark_files import parts_of
from tasks.warehouse.place import Warehouse

LOGS = Path(__file__).parent / "fixtures" / "spark"
PLAIN = LOGS / "local-1795239004004"
FAILED = LOGS / "local-1795239122094"
ROLLED = LOGS / "eventlog_v2_app-20261121053437-0000"
PACKED = sorted(path for path in LOGS.iterdir() if path.suffix in (".zstd", ".lz4", ".snappy"))


def read(path: Path, params: ReadParams | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(SparkReader().read(str(path), params or ReadParams()))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


def write(path: Path, *events: dict[str, object]) -> Path:
    start = {"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"}
    path.write_text("".join(json.dumps(event) + "\n" for event in (start, *events)))
    return path


def app_start(**other: object) -> dict[str, object]:
    about = {"App Name": "etl", "App ID": "app-1", "Timestamp": 1_000_000, "User": "ada"}
    return {"Event": "SparkListenerApplicationStart", **about, **other}


def task(kind: str, at_ms: int, *, cpu_ms: int = 0, host: str = "a") -> dict[str, object]:
    info = {"Launch Time": at_ms, "Finish Time": at_ms, "Host": host, "Executor ID": "1"}
    metrics = {"Executor CPU Time": cpu_ms * 1_000_000, "Input Metrics": {"Bytes Read": 10}, "Disk Bytes Spilled": 3}
    return {
        "Event": f"SparkListener{kind}",
        "Stage ID": 0,
        "Stage Attempt ID": 0,
        "Task Info": info,
        "Task Metrics": metrics,
    }


APP_END = {"Event": "SparkListenerApplicationEnd", "Timestamp": 1_010_000}


def test_one_application_worked_out_by_hand(tmp_path: Path) -> None:
    events = [app_start(), task("TaskStart", 1_001_000), task("TaskStart", 1_003_000, host="b")]
    events += [task("TaskEnd", 1_004_000, cpu_ms=2000), task("TaskEnd", 1_006_000, cpu_ms=1000, host="b"), APP_END]
    rows, refused = read(write(tmp_path / "log", *events))
    assert refused.empty
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


def test_mean_tokens_are_the_area_of_the_skyline() -> None:
    row = read(PLAIN)[0].iloc[0]
    at_s = [step["at_s"] for step in row["skyline"]]
    tokens = [step["tokens"] for step in row["skyline"]]
    area = sum(held * (end - start) for held, start, end in zip(tokens, at_s, at_s[1:], strict=False))
    assert area / row["runtime_s"] == pytest.approx(row["used_cpus"], rel=1e-9)


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
    def status(*events: dict[str, object]) -> str:
        return str(read(write(tmp_path / "log", app_start(), *events))[0]["status"].iloc[0])

    broken = {"Event": "SparkListenerJobEnd", "Job Result": {"Result": "JobFailed", "Exception": {"Message": "no"}}}
    good = {"Event": "SparkListenerJobEnd", "Job Result": {"Result": "JobSucceeded"}}
    stopped = {
        "Event": "SparkListenerJobEnd",
        "Job Result": {"Result": "JobFailed", "Exception": {"Message": "Job 1 cancelled"}},
    }
    assert status(broken, APP_END) == "failed"
    assert status(broken, good, APP_END) == "completed"  # tried again by the application itself
    assert status(stopped, APP_END) == "cancelled"
    assert status(good, {**APP_END, "ExitCode": 1}) == "failed"
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
