"""A whole campaign of a few seconds: complete, sound rows; continued after any end; nothing left behind."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pandas as pd
import psutil
import pyarrow.parquet as pq
import pytest

import tasks
from tasks.errors import BadSetting
from tasks.jobs import steps
from tasks.jobs.record import plan as whatifs
from tasks.jobs.record.campaign import record_jobs
from tasks.jobs.record.params import Campaign, Period, Sku
from tasks.jobs.record.parts import RECORD_KEY
from tasks.jobs.record.plan import make_plan
from tasks.machine_groups import PREFIX, ROOT, campaign_group
from tasks.machine_lock import only_recorder
from tasks.settings import Settings
from tasks.warehouse.place import Warehouse

PARAMS = Campaign(
    minutes=2,
    seed=2,
    jobs=4,
    periods=(Period(name="A", days=2), Period(name="B", days=1)),
    pairs=2,
    day_s=0.2,
    skus=(Sku(name="old", tokens=2, speed=0.6), Sku(name="new", tokens=2)),
    isolation="threads",
    data_scale=0.001,
    part_minutes=0.005,
    load="jobs",
)
TOP = Path(tasks.__file__).parents[1]
SCRIPT = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from tasks import machine_lock
from tasks.jobs.record import plan as whatifs
from tasks.jobs.record.campaign import record_jobs
from tasks.jobs.record.params import Campaign
whatifs.APART_S = (0.05, 0.2)
machine_lock.LOCK = f"whorl-test-{sys.argv[2]}"[:100]  # not that of a recording at work here
print(json.dumps(asdict(record_jobs(Campaign.model_validate_json(sys.argv[1]), Path(sys.argv[2])))))
"""
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
HIDDEN = ["unshare", "-m", "--", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]
# a container seen from inside: another user, or root without the file system of control groups
WITHOUT_RIGHTS = {"nobody": NOBODY, "hidden": HIDDEN} if os.getuid() == 0 else {"as we are": []}
BEFORE = [
    pytest.param(one, id=name, marks=[pytest.mark.slow] * (name == "hidden")) for name, one in WITHOUT_RIGHTS.items()
]


def _read(folder, kind="runs"):
    return pd.concat([pd.read_parquet(path) for path in sorted(folder.glob(f"{kind}-*.parquet"))])


def _ids(folder):
    return sorted(run_id for path in folder.glob("*.parquet") for run_id in pd.read_parquet(path).run_id)


def _planned(params, isolation="threads"):
    """Ids of the runs that can be what they say: without control groups, spare tokens and SKUs change nothing."""
    left_out = ("no_spare", "newest_sku") if isolation == "threads" else ()
    return sorted(run.run_id for run in make_plan(params).runs if run.what_if not in left_out)


def _python_after(before):
    """An interpreter that can be started that way, ours or the system's; None if there is none."""
    found = (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}")
    probes = ((python, [*before, "sh", "-c", 'exec "$0" -c pass', python]) for python in found)
    return next(
        (p for p, probe in probes if not subprocess.run(probe, capture_output=True, check=False).returncode), None
    )


def _start_recorder(params, folder, *, before=(), python=sys.executable, **how):
    command = [*before, python, "-c", SCRIPT, params.model_dump_json(), str(folder)]
    return subprocess.Popen(command, cwd=TOP, text=True, **how)


def _until_first_part(process, folder):
    while not list(folder.glob("*.parquet")):
        assert process.poll() is None, "the recorder ended before its first part"
    return psutil.Process(process.pid).children(recursive=True)


def _own_groups(pid):
    return sorted(ROOT.glob(f"*/{PREFIX}{pid}")) + sorted(ROOT.glob(f"{PREFIX}{pid}"))


@pytest.fixture(scope="module", autouse=True)
def _pairs_close_together():
    """Runs of a pair come tenths of a second apart, and not up to a minute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whatifs, "APART_S", (0.05, 0.2))
        yield


@pytest.fixture(scope="module")
def params(tmp_path_factory):
    """The parameters, with one scratch folder for all campaigns: its data sets are made once."""
    scratch = str(tmp_path_factory.mktemp("scratch"))
    seeds = (PARAMS.model_copy(update={"scratch": scratch, "seed": seed}) for seed in range(99))
    return next(p for p in seeds if sum(bool(run.what_if) for run in make_plan(p).runs) == 4 * p.pairs)


@pytest.fixture(scope="module")
def recorded(params, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    seen = []
    summary = record_jobs(params, folder, lambda done, planned: seen.append((done, planned)))
    return summary, folder, seen


def test_every_planned_run_is_recorded_once(recorded, params):
    summary, folder, seen = recorded
    planned = _planned(params)
    assert _ids(folder) == planned
    assert seen == [(number, len(planned)) for number in range(1, len(planned) + 1)]
    assert sum(summary.statuses.values()) == summary.planned == len(planned)
    assert (summary.already, summary.jobs, summary.load_source, summary.isolation) == (
        0,
        PARAMS.jobs,
        "jobs",
        "threads",
    )
    assert 0 < summary.own_cpu_s < summary.recorded_s < summary.duration_s


def test_runs_and_what_ifs_lie_in_files_of_their_own(recorded):
    summary, folder, _ = recorded
    runs, pairs = _read(folder), _read(folder, "pairs")
    assert runs.what_if.isna().all()
    assert set(runs.period) == {"A", "B"}
    assert dict(pairs.what_if.value_counts()) == dict.fromkeys(("baseline", "steady_load"), PARAMS.pairs)
    baselines = set(pairs.run_id[pairs.what_if == "baseline"])
    assert set(pairs.matched_run_id[pairs.what_if != "baseline"]) <= baselines
    assert set(pairs.matched_run_id[pairs.what_if == "baseline"]) <= set(runs.run_id)
    assert sorted(summary.parts) == sorted(path.name for path in folder.iterdir())


def test_rows_are_sound_measurements(recorded, params):
    _, folder, _ = recorded
    rows = pd.concat([_read(folder), _read(folder, "pairs")])
    assert set(rows.status) == {"completed"}, list(rows.error.dropna())
    assert (rows.started_at >= rows.submitted_at).all()
    assert ((rows.ended_at - rows.started_at).dt.total_seconds() - rows.runtime_s).abs().max() < 1e-5
    assert ((rows.started_at - rows.submitted_at).dt.total_seconds() - rows.wait_s).abs().max() < 1e-5
    assert (rows.cpu_s > 0).all()
    assert (rows.peak_memory_bytes > 1e6).all()
    assert (rows.input_bytes > 0).all()
    assert rows.plan_signature.str.fullmatch("[0-9a-f]{16}").all()
    assert not rows.is_simulated.any()
    for row in rows.itertuples():
        assert 1 <= row.min_tokens <= row.used_cpus <= row.peak_tokens <= 4
        assert {vertex["sku"] for vertex in row.vertices} <= {offer["sku"] for offer in row.skus}
        assert all(
            row.started_at <= vertex["started_at"] <= vertex["ended_at"] <= row.ended_at for vertex in row.vertices
        )
        n_reading = sum(vertex["stage"] == "extract" for vertex in row.vertices)
        promised = min(row.requested_cpus, 2.0 * min(len(row.skus), n_reading))  # two tokens on each SKU
        assert {step["guaranteed"] for step in row.skyline} == {promised}


def test_each_part_says_how_it_was_made(recorded, params):
    _, folder, _ = recorded
    for path in folder.glob("*.parquet"):
        record = json.loads(pq.read_schema(path).metadata[RECORD_KEY])
        assert (record["isolation"], record["load_source"], record["params"]["seed"]) == (
            "threads",
            "jobs",
            params.seed,
        )
        assert record["machine"]["cores"] == os.cpu_count()


def test_a_recording_can_be_ingested(recorded, tmp_path):
    _, folder, _ = recorded
    warehouse, jobs = Warehouse(home=tmp_path / "home", memory_mb=256, threads=1), Settings().jobs
    parts = sorted(folder.glob("runs-*.parquet"), key=lambda path: path.stat().st_size)[-2:]
    for path in parts:
        batch = steps.land_log(warehouse, str(path), "recorded", "", jobs.read, jobs.group)
        steps.ingest_batch(warehouse, batch)
    with duckdb.connect(str(warehouse.file), read_only=True) as connection:
        kept, groups = connection.execute("SELECT count(*), count(DISTINCT group_key) FROM jobs.runs").fetchall()[0]
    rows = pd.concat([pd.read_parquet(path) for path in parts])
    assert (kept, groups) == (len(rows), len(rows[["job", "plan_signature"]].drop_duplicates()))


def test_a_campaign_that_is_complete_is_not_recorded_again(recorded, params):
    summary, folder, _ = recorded
    again = record_jobs(params, folder)
    assert (again.already, again.statuses, again.parts) == (summary.planned, {}, summary.parts)
    assert again.isolation == summary.isolation


@pytest.mark.slow
def test_a_call_that_is_too_short_is_continued_by_the_next(params, tmp_path):
    slow = params.model_copy(update={"day_s": 1.0})
    short = record_jobs(slow.model_copy(update={"minutes": 0.02}), tmp_path)
    assert 0 < sum(short.statuses.values()) < short.planned
    assert len(_ids(tmp_path)) == sum(short.statuses.values())
    rest = record_jobs(slow, tmp_path)
    assert rest.already == sum(short.statuses.values())
    assert _ids(tmp_path) == _planned(slow)


@pytest.mark.slow
def test_a_killed_recorder_leaves_no_process_and_is_continued(params, tmp_path):
    groups = params.model_copy(update={"isolation": "auto"})
    process = _start_recorder(groups, tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = _until_first_part(process, tmp_path)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    before = _ids(tmp_path)
    with campaign_group():  # the next recorder sweeps up what the killed one left
        assert _own_groups(process.pid) == []
    summary = record_jobs(groups, tmp_path)
    assert summary.already == len(before) > 0
    assert _ids(tmp_path) == _planned(params, summary.isolation)
    assert _own_groups(os.getpid()) == []


def test_a_terminated_recorder_writes_what_it_has_and_leaves_nothing(params, tmp_path):
    long = params.model_copy(update={"isolation": "auto", "day_s": 100.0, "part_minutes": 60.0})
    process = _start_recorder(long, tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    partials = Path(params.scratch) / "partials"
    shutil.rmtree(partials, ignore_errors=True)
    while not partials.is_dir():  # the first run is at work
        assert process.poll() is None
    children = psutil.Process(process.pid).children(recursive=True)
    while any(partials.iterdir()):  # and has ended
        assert process.poll() is None
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    assert _own_groups(process.pid) == []
    assert {path.name for path in tmp_path.iterdir()} - {"machine.lock"} == {"runs-0001.parquet"}
    assert _read(tmp_path).run_id.is_unique


@pytest.mark.slow
@pytest.mark.parametrize("before", BEFORE)
def test_without_rights_on_control_groups_threads_stand_in_and_the_record_is_useful(params, recorded, before):
    if not (python := _python_after(before)):
        pytest.skip("no interpreter can be started that way here")
    home = Path(tempfile.mkdtemp(prefix="whorl-nobody-"))  # a test's own folder is not open to others
    try:
        shutil.copytree(params.scratch, home / "scratch", ignore=shutil.ignore_patterns("partials", "temp"))
        for path in (home, *home.rglob("*")):
            path.chmod(0o777)
        free = params.model_copy(update={"isolation": "auto", "scratch": str(home / "scratch"), "jobs": 3, "pairs": 1})
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment}
        process = _start_recorder(free, home / "out", before=before, python=python, **how)
        told, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert json.loads(told)["isolation"] == "threads"
        assert "control groups cannot be made here: threads stand in for tokens" in errors
        rows = _read(home / "out")
        assert _ids(home / "out") == _planned(free)
        assert set(rows.status) == {"completed"}
        assert (rows.cpu_s > 0).all()
        assert (rows.used_cpus > 0).all()
        assert not rows.plan_signature.isna().any()
        assert json.loads(pq.read_schema(home / "out/runs-0001.parquet").metadata[RECORD_KEY])["isolation"] == "threads"
    finally:
        shutil.rmtree(home)


def test_two_recordings_do_not_write_into_one_folder(params, tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(BadSetting, match=r": another recording is at work here; wait for its end, or use another"):
            record_jobs(params, tmp_path)
    finally:
        os.close(handle)
    assert list(tmp_path.iterdir()) == []


def test_a_recording_of_another_word_on_this_machine_is_not_disturbed(params, tmp_path):
    with only_recorder("nodes"):
        with pytest.raises(BadSetting, match=r"jobs: another recording is at work \(process \d+: .*\); wait"):
            record_jobs(params, tmp_path)
