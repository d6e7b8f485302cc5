"""A campaign of seconds on real limits: killed, continued, complete, and nothing left behind.

Skipped, with the reason, where control groups or the tools are not to be had."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

import psutil
import pytest

import tasks
from tasks.advice.record.campaign import (
    NODES,
    RunLedger,
    read_campaign,
    read_executions,
    read_recording,
    read_rows,
    read_runs,
    record_advice,
)
from tasks.advice.record.plan import EmulatedType, RecordParams, RecurringJob, make_plan
from tasks.advice.story import choose_all, scores_of
from tasks.errors import BadInput, BadSetting
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
from tasks import machine
from tasks.advice.record.campaign import record_advice
from tasks.advice.record.plan import RecordParams
machine.LOCK = sys.argv[3]
record_advice(RecordParams.model_validate_json(sys.argv[1]), Path(sys.argv[2]))
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

    summary = record_advice(params, out)
    plan = make_plan(params)
    rows = [*read_rows(out, "history"), *read_rows(out, "held_back")]
    assert summary["n_planned"] == summary["n_done"] == len(plan.runs)
    assert sum(summary["statuses"].values()) == len(plan.runs) - len(before)
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
    choices = choose_all(recording.history, recording.machines, scores, recording.multiples)
    assert [choice.job for choice in choices] == ["comment_search", "big_orders"]

    again = record_advice(params, out)
    assert again["n_done"] == again["n_planned"] and again["statuses"] == {}


@pytest.mark.slow
def test_disturbed_runs_are_flagged_and_repeated_at_the_end(params, lock, tmp_path):
    out = tmp_path / "out"
    always = params.model_copy(update={"foreign_limit_ratio": 1e-9, "repeats": 1, "blocks": 1, "jobs": params.jobs[:1]})
    summary = record_advice(always, out)
    rows = [*read_rows(out, "history"), *read_rows(out, "held_back")]
    repeated = {row["run_id"] for row in rows if row["attempt"] == 1}
    assert repeated == {row["run_id"] for row in rows if row["attempt"] == 0 and row["is_disturbed"]} != set()
    assert summary["n_planned"] == summary["n_done"] == sum(row["attempt"] == 0 for row in rows)
    assert len(read_executions(out)) > 0


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_killed_and_the_next_one_finds_a_worker(params, lock, tmp_path):
    short = params.model_copy(update={"time_limit_s": 0.001, "blocks": 1, "jobs": params.jobs[:1]})
    record_advice(short, tmp_path / "out")
    rows = read_rows(tmp_path / "out", "held_back")
    assert {row["status"] for row in rows} <= {"killed", "completed"}
    assert any(row["status"] == "killed" and row["reason"] == "time limit" for row in rows)


STORY = RecordParams(blocks=1)
PLAN = make_plan(STORY)


@pytest.fixture
def ledger(tmp_path):
    return RunLedger(tmp_path, STORY, PLAN, {"machine": {"cores": 2}})


def keep(ledger, planned, *, is_disturbed=False, **more):
    row = {
        "run_id": planned.run_id, "attempt": planned.attempt, "job": planned.job,
        "machine_type": planned.machine_type, "role": planned.role, "run": planned.number, "block": planned.block,
        "started_at": datetime(2026, 11, 22, 17, 0, 0, 500_000), "runtime_s": float(planned.number),
        "status": "completed", "reason": None, "is_disturbed": is_disturbed,
    }  # fmt: skip
    ledger.keep(planned, row | more)


def test_runs_stand_in_parts_of_their_role_and_are_known_again_after_a_kill(ledger, tmp_path):
    seen = next(run for run in PLAN.runs if run.role == "history")
    hidden = next(run for run in PLAN.runs if run.role == "held_back")
    for run in (seen, hidden):
        keep(ledger, run)
    again = RunLedger(tmp_path, STORY, PLAN, {})  # nothing was closed in between
    assert (len(again.statuses), again.n_clean) == (2, 2)
    assert len(again.left(PLAN.runs)) == len(PLAN.runs) - 2
    again.parts.close()
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == [
        "held-back-0001.parquet",
        "history-0001.parquet",
    ]
    assert [row["run_id"] for row in read_rows(tmp_path, "history")] == [seen.run_id]
    assert [row["run_id"] for row in read_rows(tmp_path, "held_back")] == [hidden.run_id]
    assert str(read_rows(tmp_path, "history")[0]["started_at"]) == "2026-11-22 17:00:00.500000"


def test_a_run_is_read_once_its_undisturbed_attempt_first(ledger, tmp_path):
    first, second = [run for run in PLAN.runs if run.role == "history"][:2]
    keep(ledger, first, is_disturbed=True, runtime_s=9.0)
    keep(ledger, first.again(1), runtime_s=1.0)
    keep(ledger, second, is_disturbed=True, runtime_s=2.0)
    keep(ledger, second.again(1), is_disturbed=True, runtime_s=8.0)
    assert ledger.n_clean == 1
    assert second.again(2) in ledger.repetition(2) and first.again(2) not in ledger.repetition(2)
    ledger.parts.close()
    runs = read_runs(tmp_path, "history").set_index("run_id")
    assert runs["runtime_s"].to_dict() == {first.run_id: 1.0, second.run_id: 2.0}


def test_a_campaign_is_written_down_before_it_runs_and_no_other_one_continues_it(ledger, tmp_path):
    RunLedger(tmp_path, STORY.model_copy(update={"minutes": 1.0}), PLAN, {})  # how long is not what
    other = STORY.model_copy(update={"seed": 3})
    with pytest.raises(BadSetting, match=r"belongs to a campaign with other parameters \(seed\)"):
        RunLedger(tmp_path, other, make_plan(other), {})
    campaign = read_campaign(tmp_path)
    assert campaign["machine"] == {"cores": 2}


def test_the_recording_of_the_project_is_complete_and_of_the_shipped_plan():
    folder = Path(__file__).parents[3] / "data/recorded/advice"
    assert read_campaign(folder)["plan"] == make_plan(RecordParams()).digest()
    history, held_back = read_runs(folder, "history"), read_runs(folder, "held_back")
    assert set(history.groupby(["job", "machine_type"]).size()) == {20}
    assert set(held_back.groupby(["job", "machine_type"]).size()) == {10}
    assert (len(history), len(held_back), history["job"].nunique()) == (400, 1200, 20)
    assert set(history["machine_type"]) == {"standard"} and held_back["machine_type"].nunique() == 6
    recording = read_recording(folder)
    shipped = {"machine_type": "standard", "vcpu": 1.0, "memory_gb": 0.256, "price_per_h": 0.1}
    assert recording.machines.iloc[0].to_dict() == shipped
    assert recording.multiples["key_overlap"] == 3
    executions = read_executions(folder).groupby(["machine_type", "benchmark"])["started_at"].nunique()
    assert len(executions) == 30 and executions.min() >= 5
    assert sum(path.stat().st_size for path in folder.rglob("*.parquet")) < 2_000_000


def test_what_cannot_be_read_is_named_in_one_line(tmp_path):
    with pytest.raises(BadInput, match=r"campaign.json: cannot be read"):
        read_campaign(tmp_path)
    with pytest.raises(BadInput, match=r"no history-NNNN.parquet; expected parts of `whorl advice record`"):
        read_runs(tmp_path, "history")
    with pytest.raises(BadInput, match="nodes: no executions"):
        read_executions(tmp_path)
    (tmp_path / "history-0001.parquet").write_text("none")
    with pytest.raises(BadInput, match=r"history-0001.parquet: cannot be read") as told:
        read_rows(tmp_path, "history")
    assert "\n" not in str(told.value)
