"""A campaign of seconds on real limits: killed, continued, complete, and nothing left behind.

Skipped, with the reason, where control groups or the tools are not to be had."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

import tasks
from tasks.advice.record.campaign import record_advice
from tasks.advice.record.parts import NODES, read_executions, read_recording, read_rows, read_runs
from tasks.advice.record.plan import EmulatedType, RecordParams, RecurringJob, make_plan
from tasks.advice.story import choose_all, deadlines_of, history_of, scores_of
from tasks.machine import campaign_group, find_tool
from tasks.nodes.record.control_groups import CONTROLLERS, PREFIX
from tasks.record.parts import SPOOL

TOOLS = ("sysbench", "fio", "ioping")
TOP = Path(tasks.__file__).parents[1]
PARAMS = RecordParams(
    types=(
        EmulatedType(name="one", cores=1, memory_mb=256, disk_mb_per_s=60, price_per_hour=1),
        EmulatedType(name="half", cores=0.5, memory_mb=160, disk_mb_per_s=40, price_per_hour=0.4),
    ),
    jobs=(
        RecurringJob(template="comment_search", parts=8, deadline_multiple=2),
        RecurringJob(template="big_orders", parts=8, deadline_multiple=3),
    ),
    blocks=3,
    benchmark_blocks=3,
    data_scale=0.05,
    repeats=0,
    foreign_limit_ratio=1,
)
SCRIPT = """
import sys
from pathlib import Path
from tasks.advice.record.campaign import record_advice
from tasks.advice.record.plan import RecordParams
record_advice(RecordParams.model_validate_json(sys.argv[1]), Path(sys.argv[2]), lock=sys.argv[3])
"""


@pytest.fixture
def params(tmp_path):
    if lacking := [tool for tool in TOOLS if find_tool(tool) is None]:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    with campaign_group(prefix=PREFIX, controllers=CONTROLLERS) as group:
        if group is None:
            pytest.skip("this user may not make control groups")
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    return PARAMS.model_copy(update={"scratch": str(scratch)})


def started(params, out, lock):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, params.model_dump_json(), str(out), lock], cwd=TOP)


def until_runs(process, out, n):
    """The recorder's children, as soon as n runs have ended."""
    ends_s = time.monotonic() + 120
    while len(list((out / SPOOL).glob("*.parquet"))) < n:
        assert process.poll() is None and time.monotonic() < ends_s
    return psutil.Process(process.pid).children(recursive=True)


@pytest.mark.slow
def test_a_killed_campaign_goes_on_with_what_is_missing_and_leaves_nothing(params, lock, tmp_path, groups_of):
    out = tmp_path / "out"
    killed = started(params, out, lock)
    children = until_runs(killed, out, 4)
    killed.kill()
    killed.wait()
    assert psutil.wait_procs(children, timeout=20)[1] == []

    stopped = started(params, out, lock)
    children = until_runs(stopped, out, 7)
    os.kill(stopped.pid, signal.SIGTERM)
    assert stopped.wait(60) == 128 + signal.SIGTERM
    assert psutil.wait_procs(children, timeout=20)[1] == []
    assert groups_of(PREFIX, killed.pid) == groups_of(PREFIX, stopped.pid) == []
    assert not (out / SPOOL).exists()
    before = [*read_rows(out, "history"), *read_rows(out, "held_back")]
    assert len(before) >= 7

    summary = record_advice(params, out, lock=lock)
    plan = make_plan(params)
    rows = [*read_rows(out, "history"), *read_rows(out, "held_back")]
    assert summary.is_complete and summary.done == len(plan.runs)
    assert sum(summary.statuses.values()) == len(plan.runs) - len(before)
    assert Counter(row["run_id"] for row in rows) == Counter(one.run_id for one in plan.runs)
    assert not (out / NODES / "finished").exists()
    assert groups_of(PREFIX, os.getpid()) == []
    assert list(Path(params.scratch).parent.glob("scratch/*")) == []

    recording = read_recording(out)
    assert set(recording.history["machine_type"]) == {"one"}
    assert len(recording.executions.groupby(["machine_type", "benchmark"])) == 10
    done = read_runs(out, "held_back").query("status == 'completed'")
    assert (done["cpu_s"] > 0).all() and (done["read_bytes"] > 0).all() and (done["input_bytes"] > 0).all()
    speed = done.groupby("machine_type")["runtime_s"].sum()
    assert speed["half"] > speed["one"]
    scores = scores_of(recording.executions)
    every = scores[scores["aspect"] == "cpu_all_threads"].set_index("machine_type")["score"]
    one, half = (every[name] for name in ("one", "half"))
    assert half < one
    deadlines = deadlines_of(recording.history, recording.multiples)
    choices = choose_all(history_of(recording.history), recording.machines, scores, deadlines)
    assert [choice.job for choice in choices] == ["comment_search", "big_orders"]

    again = record_advice(params, out, lock=lock)
    assert again.is_complete and again.statuses == {}


@pytest.mark.slow
def test_disturbed_runs_are_flagged_and_repeated_at_the_end(params, lock, tmp_path):
    out = tmp_path / "out"
    always = params.model_copy(update={"foreign_limit_ratio": 1e-9, "repeats": 1, "blocks": 1, "jobs": params.jobs[:1]})
    summary = record_advice(always, out, lock=lock)
    rows = [*read_rows(out, "history"), *read_rows(out, "held_back")]
    repeated = {row["run_id"] for row in rows if row["attempt"] == 1}
    assert repeated == {row["run_id"] for row in rows if row["attempt"] == 0 and row["is_disturbed"]} != set()
    assert summary.planned == summary.done == sum(row["attempt"] == 0 for row in rows)
    assert len(read_executions(out, with_flagged=True)) > 0


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_killed_and_the_next_one_finds_a_worker(params, lock, tmp_path):
    short = params.model_copy(update={"time_limit_s": 0.001, "blocks": 1, "jobs": params.jobs[:1]})
    record_advice(short, tmp_path / "out", lock=lock)
    rows = read_rows(tmp_path / "out", "held_back")
    assert {row["status"] for row in rows} <= {"killed", "completed"}
    assert any(row["status"] == "killed" and row["reason"] == "time limit" for row in rows)
