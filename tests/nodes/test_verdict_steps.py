"""Learn, judge, watch, explain, over a warehouse."""

import re
import subprocess
from contextlib import contextmanager, nullcontext

import numpy as np
import pandas as pd
import pytest

from tasks.machine import find_tool
from tasks.nodes import steps, verdict_steps
from tasks.nodes.detect.alarms import degradations
from tasks.nodes.execution import FACTS, Execution, MetricValue, write_part
from tasks.nodes.params import AlarmParams, BudgetParams, DetectorParams, PreprocessParams, ReadParams, ScoreParams
from tasks.nodes.record.campaign import record_nodes
from tasks.nodes.record.params import RecordParams
from tasks.nodes.verdict_steps import JUDGED, REASONS, read_open
from tasks.warehouse.connection import fetch
from tests.nodes.synthetic import synthetic_history

QUICK = ScoreParams(resamples=100)
RUNS, LEARNED, BEFORE, ON, OFF = 90, 60, 66, 70, 80
LOSS = 0.4  # natural logarithm: ten deviations of an execution
SICK = "node-3"
LEAST_ALIKE = 0.75  # of the usual rate: what a machine that others leave alone measures again and again
MOST_ALIKE = 0.9  # share of executions that measure it, before anything is learned of them: thresholds may flag a tenth
MOST_STRESSED = 0.5  # of it: what the stressor leaves at most
MOST_COUNTED, MOST_RECORDED = 12, 60  # executions until a state must be reached: as meant, and whatever they were


EAGER = AlarmParams(flagged=2, last=2, min_executions=2, confirm=500)


RATES = (
    "SELECT value FROM nodes.metrics JOIN nodes.executions USING (source, execution_id) "
    "WHERE metric = 'events_per_second' ORDER BY started_at"
)


def learn(warehouse, run_id="run", budget=None, **changed):
    """A detector of the source `log`."""
    given = (PreprocessParams(), DetectorParams(), budget or BudgetParams(), AlarmParams(), QUICK)
    return verdict_steps.learn(warehouse, "log", *given, run_id, **changed)


def stressed_for_a_while(on=ON, off=OFF, stressed=0.2):
    """A history in which node-3 loses performance from run 70 to run 80; labelled stress is in the first 60 alone."""
    history = synthetic_history(nodes=3, types=2, runs=RUNS, stressed=stressed, seed=4)
    rows = history.executions
    place = rows.groupby(["node", "benchmark"]).cumcount().to_numpy()
    is_kept = (place < LEARNED) | ~rows["is_stressed"].to_numpy(dtype=bool)
    history, place = history.where(is_kept), place[is_kept]
    rows = history.executions
    is_sick = ((rows["node"] == SICK) & (place >= on) & (place < off)).to_numpy()
    falls = np.where(history.metrics["metric"].str.contains("latency"), 1.0, -1.0) * LOSS
    is_setting = history.metrics["metric"].str.contains("threads")
    changed = is_sick[history.metrics["execution"].to_numpy()] & ~is_setting.to_numpy()
    values = history.metrics["value"].to_numpy(dtype=float, copy=True)
    values[changed] *= np.exp(falls[changed])
    return rows, history.metrics.assign(value=values)


def ingest(warehouse, name, rows, metrics, is_kept):
    """Some executions of a history into the source `log`, as a recording."""
    measured = {}
    for row in metrics.itertuples(index=False):
        measured.setdefault(int(row.execution), []).append(MetricValue(row.metric, float(row.value), row.unit))
    executions = [
        Execution({name: row[name] for name in FACTS if row[name] is not None}, tuple(measured.get(at, ())))
        for at, row in enumerate(rows.to_dict("records"))
        if is_kept[at]
    ]
    path = warehouse.home / name
    write_part(path, executions)
    steps.ingest_batch(warehouse, steps.land_executions(warehouse, str(path), "log", "", ReadParams()))


@pytest.fixture(scope="module")
def watched(tmp_path_factory, warehouse_in):
    """The source after a training on what came before the node became sick, and a watch of all."""
    warehouse = warehouse_in(tmp_path_factory.mktemp("degrading") / "home")
    rows, metrics = stressed_for_a_while()
    is_before = (rows.groupby(["node", "benchmark"]).cumcount() < BEFORE).to_numpy()
    ingest(warehouse, "executions-0001.parquet", rows, metrics, is_before)
    learn(warehouse)
    ingest(warehouse, "executions-0002.parquet", rows, metrics, ~is_before)
    verdict_steps.judge(warehouse, "log", QUICK)
    return warehouse, verdict_steps.watch(warehouse, "log", AlarmParams(), "")


def test_stress_switched_on_is_flagged_and_switched_off_is_not(watched):
    warehouse, _ = watched
    rows = fetch(
        warehouse,
        "SELECT node, is_flagged, row_number() OVER (PARTITION BY node, benchmark ORDER BY started_at) AS place "
        "FROM nodes.verdicts JOIN nodes.executions USING (source, execution_id)",
    )
    later = rows[(rows["place"] > LEARNED) & (rows["node"] == SICK)]
    n_on = len(later[later["is_flagged"]])
    others = rows[(rows["place"] > LEARNED) & (rows["node"] != SICK)]
    assert 15 <= n_on <= 24  # ten of each of two benchmarks, and hardly any other
    assert others["is_flagged"].mean() < 0.05


def test_the_node_is_well_again_and_nothing_is_asked_of_it(watched):
    warehouse, found = watched
    states = fetch(warehouse, "SELECT * FROM nodes.states WHERE source = 'log'")
    sick = states[states["node"] == SICK]
    assert set(sick["state"]) == {"cleared"}
    assert found["excluded"] == []
    assert not any(node == SICK for node, _, _ in found["suspected"])


def test_while_it_lasts_the_node_is_confirmed_and_excluded(watched):
    warehouse, _ = watched
    judged = fetch(warehouse, JUDGED, {"source": "log"})
    reasons = fetch(warehouse, REASONS, {"source": "log"})
    is_first = judged.groupby(["node", "aspect"]).cumcount() < OFF - 5
    states, raised = degradations("log", judged[is_first], reasons, "m", AlarmParams(), announced=(), still_open={})
    assert states.excluded == (SICK,)
    kinds = {(alarm.kind, alarm.evidence["node"]) for alarm in raised}
    assert ("confirmed-degradation", SICK) in kinds
    assert all("deviations" in alarm.message for alarm in raised)
    assert pd.Series([alarm.evidence["node"] for alarm in raised]).eq(SICK).all()


def test_a_sickness_that_nobody_labelled_does_not_become_what_is_usual(warehouse):
    """Slow from run 50 on for 40 runs, watched, and learned from: it is flagged as before, and goes on."""
    rows, metrics = stressed_for_a_while(on=RUNS - 40, off=RUNS, stressed=0.0)
    rows = rows.assign(is_stressed=None)
    is_before = (rows.groupby(["node", "benchmark"]).cumcount() < RUNS - 40).to_numpy()
    ingest(warehouse, "executions-0001.parquet", rows, metrics, is_before)
    first = learn(warehouse)
    ingest(warehouse, "executions-0002.parquet", rows, metrics, ~is_before)
    latest = (
        "SELECT avg(is_flagged::INT) AS share FROM nodes.verdicts JOIN nodes.executions USING (source, execution_id) "
        "WHERE node = $node AND started_at > (SELECT max(started_at) - INTERVAL 30 MINUTE FROM nodes.executions)"
    )
    for model in (first, None):
        verdict_steps.judge(warehouse, "log", QUICK)
        assert fetch(warehouse, latest, {"node": SICK})["share"].iloc[0] > 0.8
        assert verdict_steps.watch(warehouse, "log", AlarmParams(), "")["excluded"] == [SICK]
        if model:
            again = learn(warehouse)
            assert again["model_id"] != model["model_id"]
            assert again["n_learned"] <= len(rows) - 75  # two benchmarks, 40 runs of each, a few before the first flag


def test_an_alarm_that_recorded_stress_raised_changes_no_training(warehouse):
    """A stressor ran in the last executions: the node is under alarm, and the same data teach the same detector."""
    rows, metrics = stressed_for_a_while(on=ON, off=RUNS, stressed=0.0)
    is_late = rows.groupby(["node", "benchmark"]).cumcount() >= ON
    rows = rows.assign(is_stressed=is_late & (rows["node"] == SICK))
    ingest(warehouse, "executions-0001.parquet", rows, metrics, [True] * len(rows))
    first = learn(warehouse)
    verdict_steps.judge(warehouse, "log", QUICK)
    verdict_steps.watch(warehouse, "log", AlarmParams(), "")
    states = fetch(warehouse, "SELECT state FROM nodes.states WHERE node = $node", {"node": SICK})["state"]
    assert set(states) & {"suspected", "confirmed"}
    assert learn(warehouse) == {**first, "is_from_before": True}


class Stopped(Exception):
    """In place of a kill."""


def stopping(*_, **__):
    raise Stopped


def test_a_node_of_which_no_start_is_known_is_suspected_and_explained_by_the_names_of_its_executions(warehouse):
    """As from raw logs: nobody says when they were written."""
    rows, metrics = stressed_for_a_while(on=80, off=RUNS, stressed=0.0)
    ids = [f"log-{at:04d}" for at in range(len(rows))]
    without_times = rows.assign(started_at=None, execution_id=ids)
    ingest(warehouse, "executions-0001.parquet", without_times, metrics, [True] * len(rows))
    learn(warehouse)
    verdict_steps.judge(warehouse, "log", QUICK)
    assert SICK in verdict_steps.watch(warehouse, "log", AlarmParams(), "")["excluded"]
    told = verdict_steps.explain(warehouse, "log", SICK, QUICK)
    assert told["states"] and all(re.search(r": \w+ since the execution log-\d{4}$", line) for line in told["states"])
    healthy = next(node for node in ("node-1", "node-2", "node-3") if node != SICK)
    [line] = verdict_steps.explain(warehouse, "log", healthy, QUICK)["states"]
    assert line.startswith("healthy in each aspect by the last watch")


def test_what_may_look_healthy_and_not_be_is_said_with_what_would_do(warehouse):
    """Ten executions of a node and benchmark do; a start that one of two benchmarks of an aspect lacks does not."""
    history = synthetic_history(nodes=2, types=2, runs=10, seed=4)
    rows, metrics = history.executions.assign(aspect="cpu"), history.metrics
    is_second = (rows["benchmark"] == rows["benchmark"].max()).to_numpy()
    place = rows.groupby(["node", "benchmark"]).cumcount().to_numpy()
    ingest(warehouse, "executions-0001.parquet", rows, metrics, place < 9)
    given = (AlarmParams(), QUICK)
    few = "hold fewer than 10, 5 to compare with and the 5 that an alarm looks at"
    assert verdict_steps.cautions(warehouse, "log", *given) == [
        f"too few executions to tell a degradation: 4 of 4 series of a node and benchmark {few}"
    ]
    [line] = verdict_steps.cautions(warehouse, "log", *given, node="node-1")
    assert ": 2 of 2 series" in line
    starts = rows["started_at"].astype(object).where(~is_second, None)
    later = rows.assign(started_at=starts)
    ingest(warehouse, "executions-0002.parquet", later, metrics, place >= 9)
    [line] = verdict_steps.cautions(warehouse, "log", *given)
    assert line.startswith("without a start: 2 executions left out; give it as started_at")
    ingest(warehouse, "executions-0003.parquet", rows.assign(started_at=None), metrics, place >= 0)
    [line] = verdict_steps.cautions(warehouse, "log", *given)
    assert line.startswith("without a start: 40 executions in the order of their names; ")
    assert verdict_steps.cautions(warehouse, "log", AlarmParams(), ScoreParams(left_out_aspects=["cpu"])) == []


@pytest.fixture
def all_flagged(monkeypatch):
    """What is judged at all is flagged."""
    monkeypatch.setattr("tasks.nodes.detect.alarms.flagged", lambda judged: judged["probability"].notna().to_numpy())


def test_watching_twice_raises_nothing_new(trained_log):
    first = verdict_steps.watch(trained_log, "log", AlarmParams(), "")
    states = fetch(trained_log, "SELECT * FROM nodes.states WHERE source = 'log'")
    assert set(states["node"]) == {"node-1", "node-2", "node-3"}
    assert states["cost_share"].between(0, 1).all()
    before = fetch(trained_log, "SELECT count(*) AS n FROM ops.alarms")["n"].iloc[0]
    assert verdict_steps.watch(trained_log, "log", AlarmParams(), "")["alarms"] == first["alarms"]
    assert fetch(trained_log, "SELECT count(*) AS n FROM ops.alarms")["n"].iloc[0] == before


def test_an_alarm_is_open_until_it_is_cleared(trained_log, all_flagged):
    """By eager rules all nodes are suspected; by others none is, and what was told is withdrawn, once."""
    never = AlarmParams(flagged=1000, last=1000)
    first = verdict_steps.watch(trained_log, "log", EAGER, "")
    told = read_open(trained_log, "log")
    assert len(told) == len(first["alarms"]) > 0
    assert {node for node, _ in told.values()} <= {"node-1", "node-2", "node-3"}
    verdict_steps.watch(trained_log, "log", never, "")
    assert read_open(trained_log, "log") == {}
    kinds = fetch(trained_log, "SELECT kind, count(*) AS n FROM ops.alarms GROUP BY kind ORDER BY kind")
    assert dict(zip(kinds["kind"], kinds["n"], strict=True))["cleared-degradation"] == len(told)
    before = fetch(trained_log, "SELECT count(*) AS n FROM ops.alarms")["n"].iloc[0]
    verdict_steps.watch(trained_log, "log", never, "")
    assert fetch(trained_log, "SELECT count(*) AS n FROM ops.alarms")["n"].iloc[0] == before


def test_a_watch_that_was_stopped_before_its_alarms_raises_them_the_next_time(trained_log, all_flagged, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr("tasks.warehouse.alarms.raise_alarms", stopping)
        verdict_steps.watch(trained_log, "log", EAGER, "")
    assert fetch(trained_log, "SELECT count(*) AS n FROM ops.alarms")["n"].iloc[0] == 0
    found = verdict_steps.watch(trained_log, "log", EAGER, "")
    assert found["alarms"] and found["suspected"]
    again = verdict_steps.watch(trained_log, "log", EAGER, "")
    assert again["alarms"] == found["alarms"]  # nobody was told of them yet


@pytest.mark.slow
def test_a_node_is_suspected_confirmed_left_out_and_taken_back_by_what_it_really_measures(warehouse, tmp_path, lock):
    """The whole loop with our recorder and a real stressor, nothing labelled: 16 threads of sysbench with 256 workers
    beside them, or none.

    A suspected node that a fresh benchmark finds well is cleared; one that it finds degraded as well is confirmed and
    left out, until it is well again."""
    if lacking := [tool for tool in ("sysbench", "stress-ng") if find_tool(tool) is None]:
        pytest.skip(f"not installed: {', '.join(lacking)}")
    folder = tmp_path / "recording"

    @contextmanager
    def stressed(_):
        workers = subprocess.Popen(["stress-ng", "--cpu", "256", "--temp-path", str(tmp_path), "--quiet"])
        try:
            yield
        finally:
            workers.terminate()
            workers.wait()

    def record(n, turn=None):
        """Run a benchmark n times and read it: the rates, in events a second."""
        asked = {"node": "here", "benchmarks": ("cpu-sysbench",), "isolation": "none", "foreign_limit_ratio": 1.0}
        params = RecordParams(**asked, executions=n, interval_s=0.5)
        record_nodes(params, folder, turn=turn or nullcontext)
        for batch in steps.land_recording(str(folder), warehouse.landing_folder, "log", n):
            steps.ingest_batch(warehouse, batch)
        return fetch(warehouse, RATES)["value"].to_numpy()[-n:]

    def until(wanted, turn=None):
        """Judge after every two executions, until a state is reached: by so many as are as fast or slow as meant. What
        else happens on the machine makes others slow, or leaves the stressed ones fast: they are not counted."""
        n_counted = 0
        for _ in range(MOST_RECORDED // 2):
            rates = record(2, turn) / usual
            verdict_steps.judge(warehouse, "log", QUICK)
            found = verdict_steps.watch(warehouse, "log", AlarmParams(), "")
            [state] = fetch(warehouse, "SELECT state FROM nodes.states WHERE source = 'log'")["state"]
            if state in wanted:
                return found
            n_counted += int((rates < MOST_STRESSED if turn else rates > ordinary).sum())
            assert n_counted < MOST_COUNTED, f"{state} after {n_counted} executions as meant; expected one of {wanted}"
        return pytest.skip(f"the machine is too busy: {n_counted} of {MOST_RECORDED} executions are as meant")

    rates = record(20)
    while np.mean(rates > LEAST_ALIKE * np.median(rates)) < MOST_ALIKE:
        if len(rates) >= MOST_RECORDED:
            pytest.skip(
                f"the machine is too busy: one benchmark ran at {rates.min():,.0f} to {rates.max():,.0f} events/s"
            )
        rates = np.append(rates, record(10))
    usual = float(np.median(rates))
    ordinary = float(np.quantile(rates, 1 - MOST_ALIKE)) / usual  # slower ones may well be told to be degraded
    learn(warehouse, budget=BudgetParams(alarms_per_day=50))
    until(("healthy", "cleared"))
    found = until(("suspected", "confirmed"), stressed)
    assert [one[:2] for one in found["suspected"]] == [["here", "cpu"]] or found["excluded"] == ["here"]
    assert steps.benchmarks_of_aspect(warehouse, "log", "here", "cpu") == ["cpu-sysbench"]
    assert until(("confirmed",), stressed)["excluded"] == ["here"]
    assert until(("cleared",))["excluded"] == []
    kinds = fetch(warehouse, "SELECT DISTINCT kind FROM ops.alarms WHERE subject LIKE 'here/cpu/%'")["kind"]
    assert {"confirmed-degradation", "cleared-degradation"} <= set(kinds)
