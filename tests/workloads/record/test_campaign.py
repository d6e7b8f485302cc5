"""Whole campaigns of a tiny program on this machine: resumed, repeated, stopped and killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tasks.errors import MissingTool
from tasks.machine import CGROUP_ROOT
from tasks.record.parts import part_paths as paths_of
from tasks.workloads.record.campaign import PREFIX, planned, record_workloads
from tasks.workloads.record.parts import KINDS
from tasks.workloads.record.programs.program import Need, ProgramFailed

KILLED = """
import sys
from pathlib import Path
from tasks import machine
from stand_ins import Busy
from tasks.workloads.record import campaign
from tasks.workloads.params import RecordParams
campaign.programs_of = lambda _: {"busy": Busy()}
params, out = RecordParams.model_validate_json(sys.argv[1]), Path(sys.argv[2])
machine.LOCK = sys.argv[3]
campaign.record_workloads(params, out, lambda done, _: print(done, flush=True))
"""


@pytest.fixture
def record(quick, tmp_path, lock, scratch, having):
    """Record with changed parameters and these programs, into one folder."""

    def go(*programs, progress=None, **changes):
        params = quick.model_copy(update={"scratch": str(scratch)} | changes)
        having(*programs)
        return record_workloads(params, tmp_path / "out", progress)

    return go


def part_paths(folder):
    return paths_of(folder, KINDS)


def recorded_ids(folder):
    return [i for path in part_paths(folder) for i in pq.read_table(path)["run_id"].unique().to_pylist()]


def test_a_campaign_records_every_run_with_its_labels_and_leaves_nothing_behind(
    record, busy, tmp_path, scratch, groups_of
):
    seen = []
    program = busy("busy", ("one", "two"))
    found = record(program, runs=2, rounds=2, progress=lambda *told: seen.append(told))
    assert (found.planned, found.clean, found.recorded, found.errors) == (4, 4, {"clean": 4}, {})
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [call.split()[0] for call in program.calls] == ["prepare", "run", "run"] * 2  # every round prepares afresh
    table = pq.read_table(tmp_path / "out" / "runs-0001.parquet")
    assert set(table["round"].to_pylist()) == {"round1", "round2"}
    assert set(table["input"].to_pylist()) == {"one", "two"}
    assert table.num_rows == 16
    assert not (tmp_path / "out" / "finished").exists()
    assert not any(scratch.glob("*"))
    assert groups_of(PREFIX, os.getpid()) == []


def test_the_workload_s_own_counters_tell_that_it_kept_a_core_busy(record, busy, tmp_path):
    if not os.access(CGROUP_ROOT, os.W_OK) or record(busy(), samples=8).isolation != "cgroups":
        pytest.skip("no control groups here")
    table = pq.read_table(tmp_path / "out" / "runs-0001.parquet")
    own, whole = (table[f"{name}cpu.user_cores"].to_numpy() for name in ("own.", ""))
    assert own[2:].mean() > 0.1
    assert (
        own.sum() < whole.sum() + pq.read_table(part_paths(tmp_path / "out")[0])["cpu.nice_cores"].to_numpy().sum() + 1
    )


def test_the_next_call_goes_on_and_one_after_the_last_does_nothing(record, busy):
    program = busy()
    assert record(program, runs=2, minutes=1e-9).recorded == {}
    assert record(program, runs=2).recorded == {"clean": 2}
    program.calls.clear()
    assert record(program, runs=2).recorded == {}
    assert program.calls == []


def test_a_failed_run_is_told_and_repeated_at_the_end(record, busy, tmp_path):
    program = busy()
    program.errors = {0: ProgramFailed("busy: load ended with status 1"), 1: ZeroDivisionError("division by zero")}
    found = record(program, runs=3, repeats=1)
    assert list(found.errors.values()) == ["busy: load ended with status 1", "ZeroDivisionError: division by zero"]
    assert found.clean == 3
    assert {f"{failed}.again1" for failed in found.errors} <= set(recorded_ids(tmp_path / "out"))


def test_a_program_that_ends_early_gives_a_flagged_run(record, busy, tmp_path):
    found = record(busy(code="pass"), samples=12)
    assert found.recorded == {"short": 1}
    assert [path.name for path in part_paths(tmp_path / "out")] == ["flagged-0001.parquet"]


def test_foreign_work_flags_a_run_and_has_it_repeated(record, busy, tmp_path):
    disturber = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        found = record(busy(), samples=10, foreign_limit_ratio=0.02, repeats=1)
    finally:
        disturber.kill()
        disturber.wait()
    if found.isolation != "cgroups":
        pytest.skip("no control groups here")
    assert found.recorded == {"disturbed": 2}
    assert found.clean == 0
    assert {run_id.endswith(".again1") for run_id in recorded_ids(tmp_path / "out")} == {True, False}


def test_a_program_that_cannot_be_prepared_does_not_stop_the_others(record, busy):
    broken, sound = busy("broken"), busy("sound")
    broken.prepare = lambda place: (_ for _ in ()).throw(ProgramFailed("broken: no disk"))
    found = record(broken, sound)
    assert found.recorded == {"clean": 1}
    assert list(found.errors.values()) == ["broken: no disk"]


def test_what_is_not_installed_is_told_before_anything_runs(record, busy):
    program = busy()
    program.needs = (Need(("/no/such/thing",), "thing-package", kind="file"),)
    with pytest.raises(MissingTool, match=r"busy: /no/such/thing is not installed .*apt-get install thing-package"):
        record(program)
    assert program.calls == []


def test_ctrl_c_keeps_the_finished_runs_and_stops_everything(record, busy, tmp_path, groups_of):
    def leave(done, _):
        if done == 2:
            raise KeyboardInterrupt

    program = busy()
    with pytest.raises(KeyboardInterrupt):
        record(program, runs=4, progress=leave)
    assert len(recorded_ids(tmp_path / "out")) == 2
    assert groups_of(PREFIX, os.getpid()) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_kill_loses_nothing_that_was_finished_and_leaves_no_process(
    record, quick, tmp_path, busy, number, scratch, processes_below, killable
):
    params = quick.model_copy(update={"scratch": str(scratch), "runs": 4})
    child = killable(KILLED, params, Path(__file__).with_name("conftest.py"))
    assert child.stdout.readline() == "1\n"
    assert child.stdout.readline() == "2\n"
    child.send_signal(number)
    child.wait()
    spawned = processes_below(scratch)
    deadline = time.monotonic() + 10
    while spawned and time.monotonic() < deadline:
        spawned = processes_below(scratch)
    assert spawned == []
    found = record(busy(), runs=4)
    assert found.recorded["clean"] in (1, 2)  # the third may have ended before the kill arrived
    ids = recorded_ids(tmp_path / "out")
    assert len(ids) == len(set(ids)) == 4


def test_the_dry_plan_is_that_of_the_campaign_and_knows_its_time(busy, quick, having):
    having(busy("busy", ("one", "two")))
    plan = planned(quick.model_copy(update={"runs": 3, "samples": 30, "interval_s": 1.0}))
    assert len(plan.runs) == 6
    assert plan.duration_s(quick.model_copy(update={"samples": 30, "interval_s": 1.0})) > 6 * 30
