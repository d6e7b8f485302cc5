"""A whole campaign of a few seconds: complete, sound rows; continued after any end; no process left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import psutil
import pytest

import tasks
from tasks.jobs.record.campaign import record_jobs
from tasks.jobs.record.params import RecordParams
from tasks.jobs.record.plan import make_plan

PARAMS = RecordParams(
    minutes=0.06, seed=2, jobs=8, workers=2, data_scale=0.002, day_s=0.8, part_minutes=0.01, load="jobs"
)
SCRIPT = """
import sys
from pathlib import Path
from tasks.jobs.record.campaign import record_jobs
from tasks.jobs.record.params import RecordParams
record_jobs(RecordParams.model_validate_json(sys.argv[1]), Path(sys.argv[2]), None)
"""


def _read(folder):
    return pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("runs-*.parquet"))])


def _start_recorder(params, folder):
    command = [sys.executable, "-c", SCRIPT, params.model_dump_json(), str(folder)]
    return subprocess.Popen(command, cwd=Path(tasks.__file__).parents[1], stderr=subprocess.DEVNULL)


def _until_first_part(process, folder):
    while not list(folder.glob("runs-*.parquet")):
        assert process.poll() is None, "the recorder ended before its first part"
    return psutil.Process(process.pid).children(recursive=True)


@pytest.fixture(scope="module")
def params(tmp_path_factory):
    """The parameters, with one scratch folder for all campaigns: its data sets are made once."""
    return PARAMS.model_copy(update={"scratch": str(tmp_path_factory.mktemp("scratch"))})


@pytest.fixture(scope="module")
def recorded(params, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    seen = []
    summary = record_jobs(params, folder, lambda done, planned: seen.append((done, planned)))
    return summary, _read(folder), seen, folder


def test_every_planned_run_is_recorded_once(recorded):
    summary, runs, seen, _ = recorded
    planned = [run.run_id for run in make_plan(PARAMS).runs]
    assert sorted(runs.run_id) == planned
    assert seen == [(number, len(planned)) for number in range(1, len(planned) + 1)]
    assert sum(summary.statuses.values()) == summary.planned == len(planned)
    assert summary.load_source == "jobs"


def test_rows_are_sound_measurements(recorded):
    _, runs, _, _ = recorded
    done = runs[runs.status == "completed"]
    assert len(done) == len(runs)
    assert (runs.started_at >= runs.submitted_at).all()
    assert ((runs.ended_at - runs.started_at).dt.total_seconds() - runs.runtime_s).abs().max() < 1e-5
    assert ((runs.started_at - runs.submitted_at).dt.total_seconds() - runs.wait_s).abs().max() < 1e-5
    assert (done.cpu_s > 0).all() and (done.peak_memory_bytes > 1e6).all() and (done.input_bytes > 0).all()
    assert not runs.is_simulated.any()
    assert set(runs.load_level) == {"none"}
    assert done.plan_signature.str.fullmatch("[0-9a-f]{16}").all()


def test_a_campaign_that_is_complete_is_not_recorded_again(recorded, params):
    summary, _, _, folder = recorded
    again = record_jobs(params, folder)
    assert (again.already, again.statuses, again.parts) == (summary.planned, {}, summary.parts)


def test_a_killed_recorder_leaves_no_process_and_is_continued(tmp_path, params, recorded):
    process = _start_recorder(params, tmp_path)
    children = _until_first_part(process, tmp_path)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    before = set(_read(tmp_path).run_id)
    summary = record_jobs(params, tmp_path)
    runs = _read(tmp_path)
    assert summary.already == len(before) > 0
    assert sorted(runs.run_id) == [run.run_id for run in make_plan(PARAMS).runs]


def test_a_terminated_recorder_writes_what_it_has_and_leaves_no_process(tmp_path, params, recorded):
    long = params.model_copy(update={"minutes": 5.0})
    process = _start_recorder(long, tmp_path)
    children = _until_first_part(process, tmp_path)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    assert list(tmp_path.glob("*.tmp")) == []
    assert _read(tmp_path).run_id.is_unique
