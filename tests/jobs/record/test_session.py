"""The campaign's clock over a pool that answers when a test says so, in time that only passes while it waits."""

import time
from dataclasses import asdict
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from tasks.jobs.record import campaign as module
from tasks.jobs.record.campaign import PLANNER, Session, planning_order
from tasks.jobs.record.cluster import BackgroundLoad, Cluster, SkuState
from tasks.jobs.record.params import Campaign, Sku
from tasks.jobs.record.parts import SCHEMA, PartWriter, part_paths
from tasks.jobs.record.plan import LoadPhase, LoadPlan
from tasks.jobs.record.pool import Answer
from tasks.jobs.record.scheduler import Scheduler
from tasks.jobs.record.templates import Measured, Planned

SKUS = (Sku(name="old", tokens=1), Sku(name="new", tokens=1))
NO_LOAD = LoadPlan((), 1.0)
PLAN = Planned("ab12", {"SCAN": 1}, 5.0, 9.0)


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
                told = asdict(PLAN) if order.is_explain else asdict(Measured(0.1, query_s=0.1, cpu_s=0.1))
                yield Answer(order, slot, time.time(), time.time(), told)

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
        cluster, pool = Cluster(states, "threads"), ScriptedPool(clock, held or {})
        slots = {f"{sku.name}-0": None for sku in SKUS}
        scheduler = Scheduler(settings, cluster, pool, slots, tmp_path / "partials")
        finished = []
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        writer = PartWriter(out, {"params": {}})
        made = Session(data_folder, writer, settings, cluster, pool, scheduler, finished.append)
        return SimpleNamespace(session=made, pool=pool, clock=clock, finished=finished, out=out, writer=writer)

    return make


@pytest.fixture
def runs_at(run_of):
    """A function that makes runs of one token on the new SKU, submitted at these seconds, called a, b, c …"""

    def make(*times, **changes):
        changes = {"skus": ("new",), "tokens": 1, "merge": "", "template": {"merge": ""}} | changes
        return [run_of(run_id=chr(ord("a") + n), submit_s=at, **changes) for n, at in enumerate(times)]

    return make


def _rows(made):
    return {row["run_id"]: row for row in made.writer._rows["runs"]}


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


def test_few_that_wait_do_not_hold_up_the_clock(session_of, runs_at):
    made = session_of({"a": 30.0}, most_waiting=10)
    made.session.run(runs_at(0.0, 0.0, 0.0, 0.0, 5.0), NO_LOAD)
    assert 5.0 <= made.pool.when("plan", "e") < 5.4


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


CHANGING = (
    LoadPhase(0.0, "old", "cpu-20"),
    LoadPhase(0.0, "new", "none"),
    LoadPhase(50.0, "old", "cpu-80"),
    LoadPhase(99.0, "old", "disk-30"),
    LoadPhase(102.0, "new", "memory-50"),
    LoadPhase(999.0, "new", "cpu-20"),
)


def test_load_changes_with_the_phases_and_those_before_the_start_are_passed_over(session_of, runs_at, levels_set):
    made = session_of()
    seen = levels_set(made)
    made.session.run(runs_at(100.0, 103.0), LoadPlan(CHANGING, 2000.0))
    assert seen == [("old", "disk-30"), ("new", "none"), ("new", "memory-50")]


def test_load_goes_on_changing_while_the_schedule_stands_still(session_of, runs_at, levels_set):
    """A heavy phase that waits for the runs which it holds up would never end."""
    made = session_of({"a": 9.0}, most_waiting=1)
    seen = levels_set(made)
    load = LoadPlan((LoadPhase(0.0, "old", "cpu-95"), LoadPhase(6.0, "old", "none")), 2000.0)
    made.session.run(runs_at(0.0, 0.0, 0.0, 0.0, 5.0), load)
    assert seen == [("old", "cpu-95"), ("old", "none")]
    assert made.pool.when("plan", "e") > 9.0


def test_steady_load_begins_with_its_runs_however_late_they_are(session_of, runs_at, levels_set):
    made = session_of({"a": 9.0}, most_waiting=1)
    seen = levels_set(made)
    load = LoadPlan((LoadPhase(0.0, "old", "none"),), 2000.0, "cpu-35", 5.0)
    made.session.run(runs_at(0.0, 0.0, 0.0, 0.0, 5.0), load)
    assert seen == [("old", "none"), ("old", "cpu-35")]
    rows = _rows(made)
    assert {rows[run_id]["load_levels"] for run_id in "abcd"} == {"old none, new none"}


def test_finished_runs_are_written_part_by_part_and_none_twice(session_of, runs_at):
    made = session_of(part_minutes=0.1)
    with made.writer:
        made.session.run(runs_at(0.0, 1.0, 7.0), NO_LOAD)
        made.writer.flush()
    assert [pq.read_table(path)["run_id"].to_pylist() for path in part_paths(made.out)] == [["a", "b"], ["c"]]


def test_the_planner_is_asked_for_the_whole_job(run_of):
    run = run_of(run_id="a", parts=(3, 20), sql="SELECT x FROM {input}", merge="SELECT sum(x) FROM {partials}")
    order = planning_order(run)
    assert (order.vertex_id, order.parts, order.is_explain) == ("a", (3, 20), True)
    assert order.sql == "SELECT sum(x) FROM (SELECT x FROM {input})"
    assert PLANNER not in {f"{sku.name}-{n}" for sku in SKUS for n in range(sku.tokens)}
