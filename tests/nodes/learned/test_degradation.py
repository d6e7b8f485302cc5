"""The whole way: a node that is stressed for a while raises an alarm, is confirmed, excluded, and cleared again."""

import numpy as np
import pandas as pd
import pytest
from tasks.nodes.detectors.params import DetectorParams

from tasks.nodes import learned_steps, steps
from tasks.nodes.detect.params import AlarmParams
from tasks.nodes.execution import FACTS, Execution, Measured
from tasks.nodes.landed import write_part
from tasks.nodes.perona.params import (
    FingerprintParams,
    FitParams,
    GraphParams,
    ModelParams,
    NetworkParams,
    TrainParams,
)
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.reading_params import ReadParams
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.synthetic import synthetic_history
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

RUNS, LEARNED, ON, OFF = 60, 30, 40, 50
LOSS = 0.4  # natural logarithm: ten deviations of an execution
SICK = "node-3"
MODEL = ModelParams(
    graph=GraphParams(node_metrics=False),
    network=NetworkParams(hidden=16, intermediate=16, heads=1),
    fit=FitParams(epochs=30, batch_size=32),
)


def stressed_for_a_while():
    """A history in which node-3 loses performance from run 40 to run 50; labelled stress is in the first 30 alone."""
    history = synthetic_history(nodes=3, types=2, runs=RUNS, stressed=0.2, seed=4)
    rows = history.executions
    place = rows.groupby(["node", "benchmark"]).cumcount().to_numpy()
    is_kept = (place < LEARNED) | ~rows["is_stressed"].to_numpy(dtype=bool)
    history, place = history.where(is_kept), place[is_kept]
    rows = history.executions
    is_sick = ((rows["node"] == SICK) & (place >= ON) & (place < OFF)).to_numpy()
    falls = np.where(history.metrics["metric"].str.contains("latency"), 1.0, -1.0) * LOSS
    is_setting = history.metrics["metric"].str.contains("threads")
    changed = is_sick[history.metrics["execution"].to_numpy()] & ~is_setting.to_numpy()
    values = history.metrics["value"].to_numpy(dtype=float, copy=True)
    values[changed] *= np.exp(falls[changed])
    return rows, history.metrics.assign(value=values)


@pytest.fixture(scope="module")
def watched(tmp_path_factory, migrated):
    import shutil

    home = tmp_path_factory.mktemp("degrading") / "home"
    home.mkdir()
    warehouse = Warehouse(home=home, memory_mb=256, threads=1)
    shutil.copy(migrated, warehouse.file)
    rows, metrics = stressed_for_a_while()
    measured = {}
    for row in metrics.itertuples(index=False):
        measured.setdefault(int(row.execution), []).append(Measured(row.metric, float(row.value), row.unit))
    executions = [
        Execution({name: row[name] for name in FACTS if row[name] is not None}, tuple(measured.get(at, ())))
        for at, row in enumerate(rows.to_dict("records"))
    ]
    path = home / "executions-0001.parquet"
    write_part(path, executions)
    steps.ingest_batch(warehouse, steps.land_executions(warehouse, str(path), "log", "", ReadParams()))
    given = (TrainParams(train_share=0.4, validation_share=0.1), PreprocessParams(), ScoreParams(resamples=100))
    learned_steps.train(warehouse, "log", MODEL, *given, DetectorParams(trees=20), "run")
    learned_steps.fingerprint(warehouse, "log", FingerprintParams(), ScoreParams(resamples=100))
    return warehouse, learned_steps.watch(warehouse, "log", AlarmParams(), "")


@pytest.mark.slow
def test_stress_switched_on_is_flagged_and_switched_off_is_not(watched):
    warehouse, _ = watched
    rows = fetch(
        warehouse,
        "SELECT node, is_flagged, row_number() OVER (PARTITION BY node, benchmark ORDER BY started_at) AS place "
        "FROM nodes.fingerprints JOIN nodes.executions USING (source, execution_id)",
    )
    later = rows[(rows["place"] > LEARNED) & (rows["node"] == SICK)]
    n_on = len(later[later["is_flagged"]])
    others = rows[(rows["place"] > LEARNED) & (rows["node"] != SICK)]
    assert 15 <= n_on <= 24  # ten of each of two benchmarks, and hardly any other
    assert others["is_flagged"].mean() < 0.05


@pytest.mark.slow
def test_the_node_is_well_again_and_nothing_is_asked_of_it(watched):
    warehouse, found = watched
    states = fetch(warehouse, "SELECT * FROM nodes.states WHERE source = 'log'")
    sick = states[states["node"] == SICK]
    assert set(sick["state"]) == {"cleared"}
    assert found["excluded"] == []
    assert not any(node == SICK for node, _, _ in found["suspected"])


@pytest.mark.slow
def test_while_it_lasts_the_node_is_confirmed_and_excluded(watched):
    from tasks.nodes.detect.alarms import degradations
    from tasks.nodes.verdict_rows import (
        read_judged,
        read_reasons,
    )

    warehouse, _ = watched
    judged = read_judged(warehouse, "log")
    is_first = judged.groupby(["node", "aspect"]).cumcount() < OFF - 5
    found = degradations("log", judged[is_first], read_reasons(warehouse, "log"), "m", AlarmParams())
    assert found.watched.excluded == (SICK,)
    kinds = {(alarm.kind, alarm.evidence["node"]) for alarm in found.raised}
    assert ("confirmed-degradation", SICK) in kinds
    assert any("deviations" in alarm.message for alarm in found.raised)
    assert pd.Series([alarm.evidence["node"] for alarm in found.raised]).eq(SICK).all()
