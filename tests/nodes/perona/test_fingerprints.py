"""Fingerprints, scores of nodes from them, their plane; a network trained once, kept if it is better, and searched."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from tasks.nodes import steps
from tasks.nodes.history import benchmarks_of
from tasks.nodes.params import FitParams, ModelParams, NetworkParams, NetworkSearchParams, PreprocessParams, ScoreParams
from tasks.nodes.perona import fingerprints
from tasks.nodes.perona import hyperparameters as search_here
from tasks.nodes.perona.fingerprints import (
    METRIC,
    calm_executions,
    fingerprint,
    learn_norm_reference,
    log_scores_of,
    promote_if_better,
    rank_fingerprints,
    trained_in_use,
)
from tasks.nodes.perona.network import Fingerprints, fingerprints_of
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.registry import champion
from tests.nodes.perona.conftest import rows_of_nodes


def test_the_norm_is_the_p_norm_of_the_encoding(case):
    found = fingerprints_of(case.inputs, case.network)
    with torch.no_grad():
        enc = case.network.eval().encode(torch.from_numpy(case.inputs.x)).double().numpy()
    assert found.enc == pytest.approx(enc, abs=1e-6)
    power = case.params.loss.norm_power
    assert np.exp(found.log_norm) == pytest.approx((np.abs(enc) ** power).sum(axis=1) ** (1 / power))


def test_a_fingerprint_hangs_on_the_measurements_alone(case):
    """Neither on other executions, nor on time, labels, node or performance: a new machine has one at once."""
    whole = fingerprints_of(case.inputs, case.network)
    turned = replace(
        case.inputs,
        started_s=case.inputs.started_s[::-1],
        node_of=1 - case.inputs.node_of,
        labels=np.int8(1) - case.inputs.labels,
        performance=np.full(len(case.inputs), np.nan, dtype=np.float32),
    )
    assert fingerprints_of(turned, case.network).log_norm.tolist() == whole.log_norm.tolist()


def test_what_cannot_be_judged_has_no_fingerprint(case):
    type_of, is_own = case.inputs.type_of.copy(), case.inputs.is_own.copy()
    type_of[3], is_own[5] = -1, False
    found = fingerprints_of(replace(case.inputs, type_of=type_of, is_own=is_own), case.network)
    assert np.flatnonzero(np.isnan(found.log_norm)).tolist() == [3, 5]
    assert np.isnan(found.enc[[3, 5]]).all() and np.isfinite(np.delete(found.enc, [3, 5], axis=0)).all()


PARAMS = ScoreParams(resamples=400)
ASPECTS = ("cpu", "disk")


def prints_of(log_norm):
    log_norm = np.asarray(log_norm, dtype=float)
    return Fingerprints(np.exp(log_norm)[:, None] * np.ones((1, 2)), log_norm)


def executions_of(inputs, **told):
    plain = {
        "aspect": [ASPECTS[one] for one in inputs.type_of], "machine_type": [f"m{one}" for one in inputs.node_of],
        "status": "completed", "is_stressed": None, "is_contaminated": False,
    }  # fmt: skip
    return pd.DataFrame({**plain, **told})


def case(levels, *, runs=12, spread=0.02, seed=0):
    """Executions of nodes whose performance is around these levels by type; norms follow it, each type from its own
    norm at the reference: 0.7 and -2."""
    rng = np.random.default_rng(seed)
    node, kind, _ = (grid.ravel() for grid in np.indices((len(levels), len(levels[0]), runs)))
    performance = np.array(levels)[node, kind] + spread * rng.standard_normal(len(node))
    found = rows_of_nodes(node, kind, performance=performance.astype(np.float32))
    return found, prints_of(performance + np.array([0.7, -2.0])[kind])


def ranked(inputs, prints, reference, params=PARAMS):
    scores = log_scores_of(inputs, prints, reference)
    table = rank_fingerprints(executions_of(inputs), inputs, scores, np.ones(len(inputs), dtype=bool), params)
    return table, by_number(table)


def by_number(table):
    """One row a node, by its one number."""
    return table[table["aspect"] == "all"].reset_index(drop=True)


def test_the_reference_is_the_norm_at_performance_zero_and_nodes_count_alike():
    """Node 0 says 1.0, 1.0, 1.2 (median 1.0), node 1 says 3.0: their median is 2.0, not that of the executions."""
    found = rows_of_nodes([0, 0, 0, 1], performance=np.array([0.5, -0.5, 0.0, 1.0], dtype=np.float32))
    prints = prints_of([1.5, 0.5, 1.2, 4.0])
    reference = learn_norm_reference(found, prints, np.ones(4, dtype=bool))
    assert reference.log_norms == {"cpu-a": pytest.approx(2.0)} and reference.n_nodes == {"cpu-a": 2}
    few = learn_norm_reference(found, prints, np.array([True, True, True, False]))
    assert few.log_norms["cpu-a"] == pytest.approx(1.0)


def test_without_performance_the_middle_of_the_nodes_is_the_reference():
    found = rows_of_nodes([0, 0, 0, 1, 2])
    reference = learn_norm_reference(found, prints_of([1.0, 2.0, 9.0, 4.0, 3.0]), np.ones(5, dtype=bool))
    assert reference.log_norms == {"cpu-a": pytest.approx(3.0)}


def test_score_ratios_are_performance_ratios_where_norms_follow_performance():
    """Node 1 is twice as good as node 0 at cpu and half as good at disk: overall, the geometric mean, alike."""
    found, prints = case([[0.0, 0.0], [np.log(2), np.log(0.5)]], spread=0.0)
    reference = learn_norm_reference(found, prints, np.ones(len(found), dtype=bool))
    assert log_scores_of(found, prints, reference) == pytest.approx(found.performance, abs=1e-6)
    told = ranked(found, prints, reference)[0].set_index(["aspect", "node"])["score"]
    assert told["cpu", "node-2"] / told["cpu", "node-1"] == pytest.approx(2.0, rel=1e-5)
    assert told["disk", "node-2"] / told["disk", "node-1"] == pytest.approx(0.5, rel=1e-5)
    assert told["all", "node-1"] == pytest.approx(1.0, rel=1e-5) == told["all", "node-2"]


ROWS = ("x", "is_own", "type_of", "node_of", "started_s", "node_metrics", "performance", "labels")


def test_a_machine_that_joins_moves_no_other(case):
    """Through the encoder: node-1 alone, then with node-2 beside it, by the reference of the first training."""
    prints = fingerprints_of(case.inputs, case.network)
    everything = np.ones(len(case.inputs), dtype=bool)
    is_old = case.inputs.node_of == 0
    reference = learn_norm_reference(case.inputs, prints, is_old)
    scores = log_scores_of(case.inputs, prints, reference)
    rows = np.flatnonzero(is_old)
    alone = replace(case.inputs, **{name: getattr(case.inputs, name)[rows] for name in ROWS})
    fewer = log_scores_of(alone, fingerprints_of(alone, case.network), reference)
    assert scores[rows] == pytest.approx(fewer, abs=1e-6)
    executions = case.history.executions
    after = by_number(rank_fingerprints(executions, case.inputs, scores, everything, PARAMS)).set_index("node")
    before = rank_fingerprints(executions.iloc[rows].reset_index(drop=True), alone, fewer, everything[rows], PARAMS)
    numbers = ["score", "low", "high"]
    own = by_number(before).set_index("node").loc["node-1", numbers]
    assert after.loc["node-1", numbers].tolist() == pytest.approx(own.tolist(), rel=1e-5)
    assert "node-2" in after.index


def test_an_interval_holds_the_score_and_nodes_that_differ_share_no_place():
    found, prints = case([[0.0, 0.0], [0.3, 0.3]])
    table, nodes = ranked(found, prints, learn_norm_reference(found, prints, np.ones(len(found), dtype=bool)))
    assert ((table["low"] < table["score"]) & (table["score"] < table["high"])).all()
    assert nodes["node"].tolist() == ["node-2", "node-1"] and nodes["place"].tolist() == [1, 2]
    assert nodes["machine_type"].tolist() == ["m1", "m0"]
    assert set(table["aspect"]) == {"all", "cpu", "disk"} and len(table) == 6


def test_calm_executions_are_fair_and_not_flagged_unless_known_to_be_unstressed():
    """Node 1 has nothing but flagged executions: it is slow, and keeps the fair ones."""
    found = rows_of_nodes([0, 0, 0, 0, 0, 1, 1], labels=np.array([-1, -1, 0, 1, -1, -1, -1], dtype=np.int8))
    executions = executions_of(
        found,
        is_stressed=[None, None, False, True, None, None, None],
        is_contaminated=[False, False, False, False, True, False, True],
    )
    flagged = np.array([False, True, True, False, False, True, True])
    assert calm_executions(executions, found, flagged).tolist() == [True, False, True, False, False, True, False]


QUICK = ScoreParams(resamples=100)


def in_use(warehouse):
    return champion(warehouse.models, "nodes", "log", "fingerprint")


def ratios(monkeypatch, old, new):
    """The error ratios that the present model and the new one come to on the same executions, whichever they are; what
    was asked about is kept."""
    asked, values = [], iter((old, new, old, new))

    def told(model, history, is_asked):
        asked.append(is_asked)
        return {METRIC: value} if (value := next(values)) is not None else {}

    monkeypatch.setattr(fingerprints, "figures_of", told)
    return asked


def offered(warehouse, old=None):
    """The model in use offered once more under another name: the id that is in use then, and what it was tested on."""
    card, model = trained_in_use(warehouse, "log")
    history, _ = benchmarks_of(warehouse, "log", QUICK)
    is_tested = ~history.executions["execution_id"].isin(model.learned | model.validation).to_numpy(dtype=bool)
    other = card.model_copy(update={"model_id": "another"})
    return promote_if_better(warehouse, other, model, history, is_tested), is_tested


def test_a_model_of_a_source_that_knows_of_no_stress_has_fingerprints(nodes_log, train):
    with writing(nodes_log) as connection, transaction(connection):
        connection.execute("UPDATE nodes.executions SET is_stressed = NULL")
    found = train(nodes_log)
    assert found["metric"] == "error_ratio" and found["champion_id"] == found["model_id"]
    _, model = trained_in_use(nodes_log, "log")
    history, _ = benchmarks_of(nodes_log, "log", QUICK)
    told, _ = fingerprint(history, model, np.zeros(len(history.executions), dtype=bool), QUICK)
    assert len(told) == len(history.executions) and np.isfinite(told["score"]).all()


@pytest.mark.parametrize(
    ("old", "new", "is_used"), [(0.9, 0.8, True), (0.8, 0.8, False), (0.8, None, False), (None, 0.9, True)]
)
def test_the_model_with_the_smaller_error_on_the_same_executions_is_used(trained_log, monkeypatch, old, new, is_used):
    before = in_use(trained_log).model_id
    asked = ratios(monkeypatch, old, new)
    monkeypatch.setattr(fingerprints, "promote", lambda warehouse, word, model_id, reason: reasons.append(reason))
    reasons = []
    now, is_tested = offered(trained_log)
    assert (now == "another") == is_used == bool(reasons) and (is_used or now == before)
    assert all(np.array_equal(one, is_tested) for one in asked)
    assert not is_used or old is None or "had 0.9 on the same 72 executions" in reasons[0]


def test_models_are_compared_on_what_the_present_one_has_not_seen(trained_log, monkeypatch):
    card, old = trained_in_use(trained_log, "log")
    history, _ = benchmarks_of(trained_log, "log", QUICK)
    asked, another = ratios(monkeypatch, 0.9, 0.95), card.model_copy(update={"model_id": "another"})
    everything = np.ones(len(history.executions), dtype=bool)
    assert promote_if_better(trained_log, another, old, history, everything) == card.model_id
    seen = set(history.executions["execution_id"][asked[0]])
    assert len(seen) == 72 and not seen & (old.learned | old.validation)
    knows_all = replace(old, validation=frozenset(history.executions["execution_id"].astype(str)))
    monkeypatch.setattr(fingerprints, "trained_in_use", lambda *_: (card, knows_all))
    assert promote_if_better(trained_log, another, old, history, everything) == card.model_id


ASKED = {"preprocess": PreprocessParams(), "score": QUICK}


def trained_again(warehouse, quick_model, run_id="other", *, again=False, **changed):
    return steps.train(warehouse, "log", **({"model": quick_model} | ASKED | changed), run_id=run_id, again=again)


def test_the_same_training_in_another_run_gives_what_the_first_came_to(nodes_log, quick_model):
    first = trained_again(nodes_log, quick_model, "one")
    second = trained_again(nodes_log, quick_model)
    assert (first["is_from_before"], second["is_from_before"]) == (False, True)
    assert {**second, "is_from_before": False} == first
    assert not trained_again(nodes_log, quick_model, "third", again=True)["is_from_before"]


class Learned(Exception):
    """In place of a training."""


def learning(*_, **__):
    raise Learned


@pytest.mark.parametrize(
    "changed",
    [{"preprocess": PreprocessParams(variant="paper")}, "model", "data", "code"],
    ids=["preprocessing", "model", "data", "code"],
)
def test_what_is_not_the_same_is_learned_anew(trained_log, quick_model, monkeypatch, changed):
    given = changed if isinstance(changed, dict) else {}
    if changed == "model":
        given = {"model": quick_model.model_copy(update={"fit": FitParams(epochs=1, seed=1)})}
    if changed == "data":
        with writing(trained_log) as connection, transaction(connection):
            connection.execute("UPDATE ops.files SET ordered_at = ordered_at + INTERVAL 1 DAY, batch_id = 'another'")
    if changed == "code":
        monkeypatch.setattr("tasks.warehouse.sources.code_version", lambda: "9.9")
    monkeypatch.setattr(fingerprints, "train_source", learning)
    with pytest.raises(Learned):
        trained_again(trained_log, quick_model, **given)


MODEL = ModelParams(network=NetworkParams(hidden=8, intermediate=8, heads=1), fit=FitParams(epochs=2, batch_size=64))


def tuned(warehouse, n_trials=5):
    search = NetworkSearchParams(runner="here", n_trials=n_trials)
    given = (PreprocessParams(), QUICK)
    return steps.tune(warehouse, "log", MODEL, *given, search)


@pytest.fixture
def trials(monkeypatch):
    """Trials that are worked out, not fitted, little dropout being best: what each was given."""
    seen = []

    def loss(train, validation, params, report):
        seen.append((train, validation, params))
        report(1, params.network.dropout)
        return params.network.dropout

    monkeypatch.setattr(search_here, "trial_loss", loss)
    return seen


def test_the_latest_executions_have_no_part_in_a_search(nodes_log, trials):
    """Of 20 executions of each node and benchmark 12 are learned and the next 4 chosen by."""
    tuned(nodes_log, n_trials=1)
    history, _ = benchmarks_of(nodes_log, "log", QUICK)
    place = history.executions.groupby(["node", "benchmark"]).cumcount().to_numpy()
    [(train, validation, _)] = trials
    assert set(place[train.targets]) == set(range(12))
    assert set(place[validation.targets]) == {12, 13, 14, 15}
