"""A whole campaign of a few seconds: complete, sound rows; continued after any end; nothing left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pandas as pd
import psutil
import pyarrow.parquet as pq
import pytest

import tasks
from tasks.intake.tables import RECORD_KEY
from tasks.jobs import steps
from tasks.jobs.params import Campaign, Period, Sku
from tasks.jobs.record import campaign as module
from tasks.jobs.record import plan as whatifs
from tasks.jobs.record.campaign import PLANNER, Session, planning_order, record_jobs
from tasks.jobs.record.cluster import BackgroundLoad, MiniatureCluster, SkuState
from tasks.jobs.record.plan import LoadPlan, Plan, make_plan
from tasks.jobs.record.pool import OrderResult
from tasks.jobs.record.run_rows import SCHEMA, RunLedger
from tasks.jobs.record.scheduler import Scheduler
from tasks.jobs.record.templates import MeasuredVertex, PlannerEstimate
from tasks.machine import PREFIX, campaign_group
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
from tasks import machine
from tasks.jobs.record import plan as whatifs
from tasks.jobs.record.campaign import record_jobs
from tasks.jobs.params import Campaign
whatifs.APART_S = (0.05, 0.2)
machine.LOCK = f"whorl-test-{sys.argv[2]}"[:100]  # not that of a recording at work here
print(json.dumps(asdict(record_jobs(Campaign.model_validate_json(sys.argv[1]), Path(sys.argv[2])))))
"""
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
HIDDEN = ["unshare", "-m", "--", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh"]
# a container seen from inside: another user, or root without the file system of control groups
WITHOUT_RIGHTS = {"nobody": NOBODY, "hidden": HIDDEN} if os.getuid() == 0 else {"as we are": []}
BEFORE = [
    pytest.param(one, id=name, marks=[pytest.mark.slow] * (name == "hidden")) for name, one in WITHOUT_RIGHTS.items()
]
SKUS = (Sku(name="old", tokens=1), Sku(name="new", tokens=1))
NO_LOAD = LoadPlan({}, 1.0)
PLAN = PlannerEstimate("ab12", {"SCAN": 1}, 5.0, 9.0)
CHANGING = {
    "old": [(0.0, "cpu-20"), (50.0, "cpu-80"), (99.0, "disk-30")],
    "new": [(0.0, "none"), (102.0, "memory-50"), (999.0, "cpu-20")],
}


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
    assert sum(summary.recorded.values()) == summary.clean == summary.planned == len(planned)
    assert summary.isolation == "threads"
    assert 0 < summary.more["own_cores_ratio"] < 1


def test_runs_and_what_ifs_lie_in_files_of_their_own(recorded):
    _, folder, _ = recorded
    runs, pairs = _read(folder), _read(folder, "pairs")
    assert runs.what_if.isna().all()
    assert set(runs.period) == {"A", "B"}
    assert dict(pairs.what_if.value_counts()) == dict.fromkeys(("baseline", "steady_load"), PARAMS.pairs)
    baselines = set(pairs.run_id[pairs.what_if == "baseline"])
    assert set(pairs.matched_run_id[pairs.what_if != "baseline"]) <= baselines
    assert set(pairs.matched_run_id[pairs.what_if == "baseline"]) <= set(runs.run_id)


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
    assert (again.clean, again.recorded, again.isolation) == (summary.planned, {}, summary.isolation)


@pytest.mark.slow
def test_a_call_that_is_too_short_is_continued_by_the_next(params, tmp_path):
    slow = params.model_copy(update={"day_s": 1.0})
    short = record_jobs(slow.model_copy(update={"minutes": 0.02}), tmp_path)
    assert 0 < sum(short.recorded.values()) < short.planned
    assert len(_ids(tmp_path)) == sum(short.recorded.values())
    rest = record_jobs(slow, tmp_path)
    assert sum(rest.recorded.values()) == rest.planned - sum(short.recorded.values())
    assert _ids(tmp_path) == _planned(slow)


@pytest.mark.slow
def test_a_killed_recorder_leaves_no_process_and_is_continued(params, tmp_path, groups_of):
    groups = params.model_copy(update={"isolation": "auto"})
    process = _start_recorder(groups, tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = _until_first_part(process, tmp_path)
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    before = _ids(tmp_path)
    with campaign_group():  # the next recorder sweeps up what the killed one left
        assert groups_of(PREFIX, process.pid) == []
    summary = record_jobs(groups, tmp_path)
    already = summary.planned - sum(summary.recorded.values())
    assert already >= len(before) > 0  # one may have ended on disk, in no part yet
    assert _ids(tmp_path) == _planned(params, summary.isolation)
    assert groups_of(PREFIX, os.getpid()) == []


def test_a_terminated_recorder_writes_what_it_has_and_leaves_nothing(params, tmp_path, groups_of):
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
    assert groups_of(PREFIX, process.pid) == []
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


class Clock:
    """Seconds that pass only while the pool waits for answers."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    @staticmethod
    def time():
        return time.time()


class ScriptedPool:
    """Answers every order at the next `collect`, but the vertices (or the plan) of a held run not before its time."""

    pids = ()

    def __init__(self, clock, held):
        self.clock, self.held = clock, held
        self.at_work, self.log = {}, []

    def is_idle(self, slot):
        return slot not in self.at_work

    def give(self, slot, order):
        self.at_work[slot] = order
        self.log.append((self.clock.now - 1000.0, "plan" if order.is_explain else "run", order.vertex_id))

    def kill(self, slot):
        raise AssertionError("nothing here is late or wrong")

    def collect(self, timeout_s):
        assert 0 < timeout_s <= module.NAP_S
        self.clock.now += timeout_s
        for slot, order in list(self.at_work.items()):
            name = f"plan {order.vertex_id}" if order.is_explain else order.vertex_id.partition("/")[0]
            if self.clock.now - 1000.0 >= self.held.get(name, 0.0):
                del self.at_work[slot]
                told = asdict(PLAN) if order.is_explain else asdict(MeasuredVertex(0.1, query_s=0.1, cpu_s=0.1))
                yield OrderResult(order, slot, time.time(), time.time(), told)

    def when(self, what, run_id):
        """Seconds after the start at which a run was planned, or its first vertex began; None if never."""
        return next((at for at, kind, name in self.log if kind == what and name.partition("/")[0] == run_id), None)


@pytest.fixture
def session_of(data_folder, tmp_path, monkeypatch):
    """A function that makes a session: parameters by name; `held`: run, or "plan " and run, to seconds at the least."""

    def make(held=None, **params):
        clock = Clock()
        monkeypatch.setattr(module, "time", clock)
        settings = Campaign(skus=SKUS, spare_multiple=0, **params)
        states = {sku.name: SkuState(sku, BackgroundLoad("jobs", tmp_path, None), (f"{sku.name}-0",)) for sku in SKUS}
        cluster, pool = MiniatureCluster(states, "threads"), ScriptedPool(clock, held or {})
        slots = {f"{sku.name}-0": None for sku in SKUS}
        scheduler = Scheduler(settings, cluster, pool, slots, tmp_path / "partials")
        finished = []
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        ledger = RunLedger(out, settings, Plan((), ()))
        rows = []
        monkeypatch.setattr(ledger, "keep", lambda row, keep=ledger.keep: (rows.append(row), keep(row)))
        made = Session(data_folder, ledger, scheduler, finished.append)
        return SimpleNamespace(
            session=made, pool=pool, clock=clock, finished=finished, out=out, ledger=ledger, rows=rows
        )

    return make


@pytest.fixture
def runs_at(run_of):
    """A function that makes runs of one token on the new SKU, submitted at these seconds, called a, b, c …"""

    def make(*times, **changes):
        changes = {"skus": ("new",), "tokens": 1, "merge": "", "template": {"merge": ""}} | changes
        return [run_of(run_id=chr(ord("a") + n), submit_s=at, **changes) for n, at in enumerate(times)]

    return make


def _rows(made):
    return {row["run_id"]: row for row in made.rows}


def test_runs_are_planned_and_started_at_their_times(session_of, runs_at):
    made = session_of()
    made.session.run(runs_at(0.0, 2.0, 7.5), NO_LOAD)
    for run_id, at in (("a", 0.0), ("b", 2.0), ("c", 7.5)):
        assert at <= made.pool.when("plan", run_id) < at + 0.2
        assert made.pool.when("plan", run_id) < made.pool.when("run", run_id) < at + 0.4
    assert made.finished == [1, 2, 3]
    assert made.session.statuses == {"completed": 3}


def test_the_clock_begins_with_the_first_run_that_is_left(session_of, runs_at):
    made = session_of()
    made.session.run(runs_at(500.0, 502.0), NO_LOAD)
    assert made.pool.when("run", "a") < 0.4
    assert 2.0 <= made.pool.when("plan", "b") < 2.4


def test_a_long_stretch_without_a_run_is_skipped_when_nothing_is_at_work(session_of, runs_at):
    made = session_of()
    made.session.run(runs_at(0.0, 500.0), NO_LOAD)
    assert made.pool.when("plan", "b") < 2.0
    held = session_of({"a": 20.0})
    held.session.run(runs_at(0.0, 500.0), NO_LOAD)
    assert 20.0 <= held.pool.when("plan", "b") < 22.0


def test_the_clock_stands_still_while_too_many_wait(session_of, runs_at):
    made = session_of({"a": 30.0}, most_waiting=1)
    made.session.run(runs_at(0.0, 0.0, 0.0, 0.0, 5.0), NO_LOAD)
    # b, c and d wait for a's token until 30 s; only then do the 5 s before e go by
    assert made.pool.when("run", "b") >= 30.0
    assert 34.0 <= made.pool.when("plan", "e") <= 36.0


def test_when_the_time_is_over_what_was_started_ends_and_the_rest_is_left_for_the_next_call(session_of, runs_at):
    made = session_of({"a": 45.0}, minutes=0.5)
    made.session.run(runs_at(0.0, 1.0, 20.0, 40.0), NO_LOAD)
    assert _rows(made).keys() == {"a"}
    assert made.pool.when("plan", "c") is not None  # it waited for a token, and was dropped
    assert made.pool.when("plan", "d") is None
    again = session_of()
    again.session.run(runs_at(0.0, 1.0, 20.0, 40.0)[1:], NO_LOAD)
    assert _rows(again).keys() == {"b", "c", "d"}


def test_a_plan_that_comes_after_the_end_starts_nothing(session_of, runs_at):
    made = session_of({"plan b": 31.0}, minutes=0.5)
    made.session.run(runs_at(0.0, 29.95), NO_LOAD)
    assert made.pool.when("plan", "b") is not None
    assert _rows(made).keys() == {"a"}


def test_a_row_has_the_plan_the_input_and_what_was_known_at_submission(session_of, runs_at, data_folder):
    made = session_of({"a": 9.0})
    made.session.run(runs_at(0.0, 1.0, 2.0, skus=("old", "new"), parts=(0, 2)), NO_LOAD)
    rows = _rows(made)
    sizes = [path.stat().st_size for path in (data_folder / "orders").iterdir()]
    assert rows["a"]["input_bytes"] == pytest.approx(2 * sum(sizes) / len(sizes))
    assert rows["a"]["plan_signature"] == "ab12"
    assert {row["load_levels"] for row in rows.values()} == {"old none, new none"}
    assert [rows[run_id]["running_jobs"] for run_id in "ac"] == [0, 1]
    assert [sku["free_tokens"] for sku in rows["b"]["skus"]] == [0.0, 1.0]  # a holds the token of the old one
    assert [rows[run_id]["spare_tokens_available"] for run_id in "ab"] == [2.0, 1.0]
    assert set(rows["a"]) <= set(SCHEMA.names)


def test_runs_that_wait_are_counted_for_the_next_one(session_of, runs_at):
    made = session_of({"a": 9.0})
    made.session.run(runs_at(0.0, 1.0, 2.0, 3.0), NO_LOAD)
    assert [_rows(made)[run_id]["queue_length"] for run_id in "abcd"] == [0.0, 0.0, 1.0, 2.0]


@pytest.fixture
def levels_set(monkeypatch):
    def watch(made):
        seen = []
        for name, state in made.session.cluster.skus.items():
            monkeypatch.setattr(state, "set_load", lambda level, name=name: seen.append((name, level)))
        return seen

    return watch


def test_load_changes_with_the_phases_and_those_before_the_start_are_passed_over(session_of, runs_at, levels_set):
    made = session_of()
    seen = levels_set(made)
    made.session.run(runs_at(100.0, 103.0), LoadPlan(CHANGING, 2000.0))
    assert seen == [("old", "disk-30"), ("new", "none"), ("new", "memory-50")]


def test_load_goes_on_changing_while_the_schedule_stands_still(session_of, runs_at, levels_set):
    """A heavy phase that waits for the runs which it holds up would never end."""
    made = session_of({"a": 9.0}, most_waiting=1)
    seen = levels_set(made)
    load = LoadPlan({"old": [(0.0, "cpu-95"), (6.0, "none")]}, 2000.0)
    made.session.run(runs_at(0.0, 0.0, 0.0, 0.0, 5.0), load)
    assert seen == [("old", "cpu-95"), ("old", "none")]
    assert made.pool.when("plan", "e") > 9.0


def test_steady_load_begins_with_its_runs_however_late_they_are(session_of, runs_at, levels_set):
    made = session_of({"a": 9.0}, most_waiting=1)
    seen = levels_set(made)
    load = LoadPlan({"old": [(0.0, "none")]}, 2000.0, "cpu-35", 5.0)
    made.session.run(runs_at(0.0, 0.0, 0.0, 0.0, 5.0), load)
    assert seen == [("old", "none"), ("old", "cpu-35")]
    rows = _rows(made)
    assert {rows[run_id]["load_levels"] for run_id in "abcd"} == {"old none, new none"}


def test_the_planner_is_asked_for_the_whole_job(run_of):
    run = run_of(run_id="a", parts=(3, 20), sql="SELECT x FROM {input}", merge="SELECT sum(x) FROM {partials}")
    order = planning_order(run)
    assert (order.vertex_id, order.parts, order.is_explain) == ("a", (3, 20), True)
    assert order.sql == "SELECT sum(x) FROM (SELECT x FROM {input})"
    assert PLANNER not in {f"{sku.name}-{n}" for sku in SKUS for n in range(sku.tokens)}
