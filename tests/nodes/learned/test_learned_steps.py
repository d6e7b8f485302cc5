"""A model of a source: trained, promoted or not, asked, and kept as rows."""

import json

import numpy as np
import pytest

from tasks.errors import BadInput, NotFound
from tasks.nodes import learned_steps
from tasks.nodes.detect.params import AlarmParams
from tasks.nodes.perona.params import FingerprintParams
from tasks.nodes.perona.trained import (
    load_trained,
    trained_in_use,
)
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.verdict_rows import read_open
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.registry import cards, champion

QUICK = ScoreParams(resamples=100)


def asked(warehouse):
    return learned_steps.fingerprint(warehouse, "log", FingerprintParams(), QUICK)


def test_a_model_learns_the_first_executions_of_each_node_and_is_measured_on_the_last(trained_log):
    card, model = trained_in_use(trained_log, "log")
    rows = fetch(
        trained_log,
        "SELECT execution_id, row_number() OVER own AS place FROM nodes.executions WHERE source = 'log' "
        "WINDOW own AS (PARTITION BY node, benchmark ORDER BY started_at, execution_id)",
    )
    learned, chosen = rows["execution_id"].isin(model.learned), rows["execution_id"].isin(model.chosen)
    assert rows["place"][learned].max() == 12  # of 20: 60 %
    assert set(rows["place"][chosen]) == {13, 14, 15, 16}
    assert not model.learned & model.chosen
    assert {"auprc", "f1_outlier", "mse_own", "type_accuracy"} <= set(card.metrics)


def test_every_execution_has_a_fingerprint_and_a_verdict(trained_log):
    found = asked(trained_log)
    rows = fetch(trained_log, "SELECT * FROM nodes.fingerprints WHERE source = 'log'")
    assert (found["n_executions"], found["n_fingerprints"], len(rows)) == (360, 360, 360)
    assert rows["probability"].between(0, 1).all()
    assert {len(one) for one in rows["encoding"]} == {8}
    assert found["n_flagged"] == int(rows["is_flagged"].sum())
    assert rows["score"].gt(0).all()
    first = fetch(
        trained_log,
        "SELECT min(n_predecessors) AS least, max(n_predecessors) AS most FROM nodes.fingerprints WHERE source = 'log'",
    )
    assert (first["least"].iloc[0], first["most"].iloc[0]) == (0, 3)


def test_reasons_are_of_flagged_executions_alone(trained_log):
    rows = fetch(
        trained_log,
        "SELECT reasons.*, prints.is_flagged FROM nodes.fingerprint_reasons AS reasons "
        "JOIN nodes.fingerprints AS prints USING (source, execution_id)",
    )
    assert rows["is_flagged"].all()
    assert (rows["deviation"] < 0).all()
    assert rows["metric"].str.contains("/").all()


def test_the_same_data_and_model_are_not_asked_again(trained_log, monkeypatch):
    first = asked(trained_log)
    monkeypatch.setattr("tasks.nodes.perona.trained.fingerprint", lambda *_: pytest.fail("asked again"))
    assert asked(trained_log) == first


def test_a_saved_model_gives_the_same_verdicts_after_loading(trained_log):
    from tasks.nodes.perona.trained import ask

    card, model = trained_in_use(trained_log, "log")
    again = load_trained(trained_log.models / "nodes" / card.model_id)
    history, _ = learned_steps.benchmarks_of(trained_log, "log", QUICK)
    np.testing.assert_array_equal(ask(history, model).judged.logit, ask(history, again).judged.logit)


def test_the_same_run_trains_the_same_model_once(trained_log, train):
    before = len(cards(trained_log.models))
    assert train(trained_log)["model_id"] == champion(trained_log.models, "nodes", "log", "fingerprint").model_id
    assert len(cards(trained_log.models)) == before


def test_a_broken_model_in_use_is_replaced(trained_log, train):
    broken = champion(trained_log.models, "nodes", "log", "fingerprint").model_id
    (trained_log.models / "nodes" / broken / "fingerprint.json").write_text("{}")
    with pytest.raises(BadInput, match="train again"):
        trained_in_use(trained_log, "log")
    assert train(trained_log, run_id="another", seed=5)["champion_id"] != broken


def test_the_next_training_takes_the_parameters_of_the_model_in_use_or_says_why_not(trained_log):
    """A model of another version may have parameters that this one does not know: that is one line, not a traceback."""
    card = champion(trained_log.models, "nodes", "log", "fingerprint")
    assert learned_steps.in_use(trained_log, "log") == card.parameters["model"]
    file = trained_log.models / "nodes" / card.model_id / "model.json"
    content = json.loads(file.read_text())
    content["parameters"]["model"]["network"]["widened"] = 2
    file.write_text(json.dumps(content))
    with pytest.raises(BadInput, match=r"network\.widened: .*train with 'whorl nodes train --fresh'"):
        learned_steps.in_use(trained_log, "log")


def test_the_threshold_of_training_counts_however_a_model_is_asked(trained_log):
    """Through time, execution by execution, and all at once: the same verdicts, whatever threshold one hands over."""
    from tasks.nodes.perona.trained import ask

    _, model = trained_in_use(trained_log, "log")
    history, _ = learned_steps.benchmarks_of(trained_log, "log", QUICK)
    one, other = ask(history, model), ask(history, model, FingerprintParams(threshold=0.0, rounds=0, graphs_at_once=50))
    np.testing.assert_allclose(one.judged.logit, other.judged.logit, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(one.judged.is_flagged, other.judged.is_flagged)
    assert other.judged.n_in_time > 0


def test_too_few_executions_are_one_line(trained_log, train):
    with writing(trained_log) as connection, transaction(connection):
        connection.execute(
            "DELETE FROM nodes.executions WHERE source = 'log' AND execution_id NOT IN "
            "(SELECT min(execution_id) FROM nodes.executions GROUP BY node, benchmark)"
        )
    with pytest.raises(BadInput, match="none is left to"):
        train(trained_log, run_id="few", seed=1)


def test_a_source_without_a_model_says_how_to_get_one(nodes_log):
    with pytest.raises(NotFound, match="no trained model of nodes yet; make one with whorl nodes train --source log"):
        asked(nodes_log)


def test_watching_twice_raises_nothing_new(trained_log):
    first = learned_steps.watch(trained_log, "log", AlarmParams(), "")
    states = fetch(trained_log, "SELECT * FROM nodes.states WHERE source = 'log'")
    assert set(states["node"]) == {"node-1", "node-2", "node-3"}
    assert states["cost_share"].between(0, 1).all()
    before = fetch(trained_log, "SELECT count(*) AS n FROM ops.alarms")["n"].iloc[0]
    assert learned_steps.watch(trained_log, "log", AlarmParams(), "")["alarms"] == first["alarms"]
    assert fetch(trained_log, "SELECT count(*) AS n FROM ops.alarms")["n"].iloc[0] == before


def test_an_alarm_is_open_until_it_is_cleared(trained_log):
    """By eager rules all nodes are suspected; by others none is, and what was told is withdrawn, once."""
    eager = AlarmParams(threshold=0.001, flagged=2, last=2, min_executions=2, confirm=500)
    never = AlarmParams(flagged=1000, last=1000)
    first = learned_steps.watch(trained_log, "log", eager, "")
    told = read_open(trained_log, "log")
    assert len(told) == len(first["alarms"]) > 0
    assert {node for node, _ in told.values()} <= {"node-1", "node-2", "node-3"}
    learned_steps.watch(trained_log, "log", never, "")
    assert read_open(trained_log, "log") == {}
    kinds = fetch(trained_log, "SELECT kind, count(*) AS n FROM ops.alarms GROUP BY kind ORDER BY kind")
    assert dict(zip(kinds["kind"], kinds["n"], strict=True))["cleared-degradation"] == len(told)
    before = fetch(trained_log, "SELECT count(*) AS n FROM ops.alarms")["n"].iloc[0]
    learned_steps.watch(trained_log, "log", never, "")
    assert fetch(trained_log, "SELECT count(*) AS n FROM ops.alarms")["n"].iloc[0] == before
