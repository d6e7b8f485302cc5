"""Fingerprints, scores of nodes from them, and their plane."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from tasks.nodes.perona.fingerprints import (
    Fingerprints,
    NormReference,
    calm_executions,
    fingerprints_of,
    learn_norm_reference,
    log_scores_of,
    plane_of,
    rank_fingerprints,
)
from tasks.nodes.ranking.params import ScoreParams


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


def test_without_any_execution_to_judge_all_is_unknown(case):
    nothing = replace(case.inputs, type_of=np.full(len(case.inputs), -1))
    found = fingerprints_of(nothing, case.network)
    assert found.enc.shape == (len(case.inputs), case.params.network.hidden) and np.isnan(found.log_norm).all()


def test_the_network_is_left_as_it_was(case):
    case.network.train()
    fingerprints_of(case.inputs, case.network)
    assert case.network.training
    assert all(one.grad is None for one in case.network.parameters())


PARAMS = ScoreParams(resamples=400)
ASPECTS = ("cpu", "disk")


def prints_of(log_norm):
    log_norm = np.asarray(log_norm, dtype=float)
    return Fingerprints(np.exp(log_norm)[:, None] * np.ones((1, 2)), log_norm)


def executions_of(inputs, **told):
    plain = {
        "aspect": [ASPECTS[one] for one in inputs.type_of],
        "machine_type": [f"m{one}" for one in inputs.node_of],
        "status": "completed",
        "is_stressed": None,
        "is_contaminated": False,
    }
    return pd.DataFrame({**plain, **told})


def case(inputs, levels, *, runs=12, spread=0.02, seed=0):
    """Executions of nodes whose performance is around these levels by type; norms follow it, each type from its own
    norm at the reference: 0.7 and -2."""
    rng = np.random.default_rng(seed)
    node, kind, _ = (grid.ravel() for grid in np.indices((len(levels), len(levels[0]), runs)))
    performance = np.array(levels)[node, kind] + spread * rng.standard_normal(len(node))
    found = inputs(node, kind, performance=performance.astype(np.float32))
    return found, prints_of(performance + np.array([0.7, -2.0])[kind])


def ranked(inputs, prints, reference, params=PARAMS):
    scores = log_scores_of(inputs, prints, reference)
    return rank_fingerprints(executions_of(inputs), inputs, scores, np.ones(len(inputs), dtype=bool), params)


def test_the_reference_is_the_norm_at_performance_zero_and_nodes_count_alike(inputs):
    """Node 0 says 1.0, 1.0, 1.2 (median 1.0), node 1 says 3.0: their median is 2.0, not that of the executions."""
    found = inputs([0, 0, 0, 1], performance=np.array([0.5, -0.5, 0.0, 1.0], dtype=np.float32))
    prints = prints_of([1.5, 0.5, 1.2, 4.0])
    reference = learn_norm_reference(found, prints, np.ones(4, dtype=bool))
    assert reference.log_norms == {"cpu-a": pytest.approx(2.0)} and reference.n_nodes == {"cpu-a": 2}
    few = learn_norm_reference(found, prints, np.array([True, True, True, False]))
    assert few.log_norms["cpu-a"] == pytest.approx(1.0)


def test_without_performance_the_middle_of_the_nodes_is_the_reference(inputs):
    found = inputs([0, 0, 0, 1, 2])
    reference = learn_norm_reference(found, prints_of([1.0, 2.0, 9.0, 4.0, 3.0]), np.ones(5, dtype=bool))
    assert reference.log_norms == {"cpu-a": pytest.approx(3.0)}


def test_a_type_without_a_reference_has_no_score(inputs):
    found = inputs([0, 0, 0], [0, 1, -1])
    scores = log_scores_of(found, prints_of([1.0, 1.0, 1.0]), NormReference(log_norms={"disk-b": 0.5}, n_nodes={}))
    assert np.isnan(scores).tolist() == [True, False, True] and scores[1] == pytest.approx(0.5)


def test_score_ratios_are_performance_ratios_where_norms_follow_performance(inputs):
    """Node 1 is twice as good as node 0 at cpu and half as good at disk: overall, the geometric mean, alike."""
    found, prints = case(inputs, [[0.0, 0.0], [np.log(2), np.log(0.5)]], spread=0.0)
    reference = learn_norm_reference(found, prints, np.ones(len(found), dtype=bool))
    assert log_scores_of(found, prints, reference) == pytest.approx(found.performance, abs=1e-6)
    told = ranked(found, prints, reference).table.set_index(["aspect", "node"])["score"]
    assert told["cpu", "node-2"] / told["cpu", "node-1"] == pytest.approx(2.0, rel=1e-5)
    assert told["disk", "node-2"] / told["disk", "node-1"] == pytest.approx(0.5, rel=1e-5)
    assert told["all", "node-1"] == pytest.approx(1.0, rel=1e-5) == told["all", "node-2"]


def test_an_interval_holds_the_score_and_nodes_that_differ_share_no_place(inputs):
    found, prints = case(inputs, [[0.0, 0.0], [0.3, 0.3]])
    told = ranked(found, prints, learn_norm_reference(found, prints, np.ones(len(found), dtype=bool)))
    table = told.table
    assert ((table["low"] < table["score"]) & (table["score"] < table["high"])).all()
    assert told.nodes["node"].tolist() == ["node-2", "node-1"] and told.nodes["place"].tolist() == [1, 2]
    assert told.nodes["machine_type"].tolist() == ["m1", "m0"]
    assert set(table["aspect"]) == {"all", "cpu", "disk"} and len(table) == 6


def test_nodes_that_executions_do_not_tell_apart_are_tied(inputs):
    found, prints = case(inputs, [[0.0, 0.0], [0.005, 0.005], [-1.0, -1.0]], spread=0.1)
    told = ranked(found, prints, learn_norm_reference(found, prints, np.ones(len(found), dtype=bool))).nodes
    assert told["place"].tolist() == [1, 1, 3] and told["n_tied"].tolist() == [2, 2, 1]


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
    after = rank_fingerprints(executions, case.inputs, scores, everything, PARAMS).nodes.set_index("node")
    before = rank_fingerprints(executions.iloc[rows].reset_index(drop=True), alone, fewer, everything[rows], PARAMS)
    numbers = ["score", "low", "high"]
    own = before.nodes.set_index("node").loc["node-1", numbers]
    assert after.loc["node-1", numbers].tolist() == pytest.approx(own.tolist(), rel=1e-5)
    assert "node-2" in after.index


def test_a_throttled_run_sinks_no_node(inputs):
    found, prints = case(inputs, [[0.0, 0.0]], spread=0.0)
    slowed = prints_of(np.where(np.arange(len(found)) == 0, -5.0, prints.log_norm))
    reference = learn_norm_reference(found, prints, np.ones(len(found), dtype=bool))
    assert ranked(found, slowed, reference).nodes["score"].tolist() == pytest.approx([1.0], rel=1e-5)


def test_calm_executions_are_fair_and_not_flagged_unless_known_to_be_unstressed(inputs):
    """Node 1 has nothing but flagged executions: it is slow, and keeps the fair ones."""
    found = inputs([0, 0, 0, 0, 0, 1, 1], labels=np.array([-1, -1, 0, 1, -1, -1, -1], dtype=np.int8))
    executions = executions_of(
        found,
        is_stressed=[None, None, False, True, None, None, None],
        is_contaminated=[False, False, False, False, True, False, True],
    )
    flagged = np.array([False, True, True, False, False, True, True])
    assert calm_executions(executions, found, flagged).tolist() == [True, False, True, False, False, True, False]


def test_a_reference_is_the_same_after_json():
    reference = NormReference(log_norms={"cpu-a": 0.1 + 0.2, "disk-b": -1e-17}, n_nodes={"cpu-a": 3, "disk-b": 1})
    assert NormReference.model_validate_json(reference.model_dump_json()) == reference


def prints_of_codes(enc):
    enc = np.asarray(enc, dtype=float)
    with np.errstate(divide="ignore"):
        return Fingerprints(enc, np.log(np.abs(enc).max(axis=1)))


def test_two_types_lie_at_the_ends_of_the_line_between_their_directions(inputs):
    """Directions (1, 0, 0) and (0, 1, 0) lie √2 apart, at ± 1/√2 of their middle; no variance is left beside it."""
    found = plane_of(inputs([0, 1], [0, 1]), prints_of_codes([[3, 0, 0], [0, 5, 0]]))
    assert np.abs(found.points["x"]).tolist() == pytest.approx([np.sqrt(0.5)] * 2)
    assert found.points["x"].sum() == pytest.approx(0)
    assert found.points["y"].tolist() == pytest.approx([0, 0])
    assert found.points["norm"].tolist() == pytest.approx([3, 5]) and found.shown == pytest.approx(1)
    assert found.points["type"].tolist() == ["cpu-a", "disk-b"]
    assert found.points["node"].tolist() == ["node-1", "node-2"]


def test_a_longer_fingerprint_of_the_same_direction_has_the_same_place(inputs):
    enc = np.random.default_rng(1).standard_normal((6, 4))
    where = inputs([0] * 6, [0, 0, 0, 1, 1, 1])
    one, other = (
        plane_of(where, prints_of_codes(enc)),
        plane_of(where, prints_of_codes(enc * np.arange(1, 7)[:, None])),
    )
    assert one.points[["x", "y"]].to_numpy() == pytest.approx(other.points[["x", "y"]].to_numpy())
    assert (other.points["norm"] >= one.points["norm"]).all()


def test_types_count_alike_however_often_they_ran(inputs):
    """A type whose executions are all there three times moves nothing."""
    enc = np.random.default_rng(2).standard_normal((4, 5))
    once = plane_of(inputs([0] * 4, [0, 0, 1, 1]), prints_of_codes(enc))
    thrice = plane_of(inputs([0] * 8, [0, 0, 1, 1, 1, 1, 1, 1]), prints_of_codes(enc[[0, 1, 2, 3, 2, 3, 2, 3]]))
    same = thrice.points[["x", "y"]].to_numpy()[:4]
    assert once.points[["x", "y"]].to_numpy() == pytest.approx(same)
    assert thrice.shown == pytest.approx(once.shown)


def test_what_has_no_fingerprint_has_no_place(inputs):
    prints = prints_of_codes([[1, 0], [np.nan, np.nan], [0, 1]])
    found = plane_of(inputs([0] * 3, [0, 0, 1]), prints)
    assert found.points["execution"].tolist() == [0, 2]
    none = plane_of(inputs([0], [-1]), prints_of_codes([[1, 0]]))
    assert none.points.empty and none.shown == 0


def test_a_real_network_gives_each_execution_a_place(case):
    found = plane_of(case.inputs, fingerprints_of(case.inputs, case.network))
    assert len(found.points) == len(case.inputs) and 0 < found.shown <= 1
    assert np.abs(found.points[["x", "y"]].to_numpy()).max() <= 2
