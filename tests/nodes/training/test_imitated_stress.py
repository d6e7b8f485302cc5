"""Imitated stress: own metrics fall and nothing else changes, the same way for the same seed, in training alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from tasks.nodes.graph.batches import Batches
from tasks.nodes.model.params import LossParams, ModelParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.preprocess.scaling import softly_clipped
from tasks.nodes.training import imitated_stress
from tasks.nodes.training.fitting import fit_network
from tasks.nodes.training.imitated_stress import needs_imitation, with_imitated_stress, worsened

CLIP = (PreprocessParams().clip_from, PreprocessParams().clip_at)


@pytest.fixture(scope="module")
def unlabelled(drawn, parts_of):
    """Graphs of which nobody knows which are stressed; predecessors are chosen as if somebody did."""
    known = drawn(240, n_evidence=2)
    parts = parts_of(replace(known, labels=np.full_like(known.labels, -1)), is_normal=known.labels == 0)
    return known, parts


@given(st.integers(0, 10_000))
def test_own_metrics_fall_or_stay_one_at_least_falls_and_others_stay(seed):
    rng = np.random.default_rng(seed)
    x = softly_clipped(rng.normal(0, 4, (20, 5)), *CLIP).astype(np.float32)
    is_own = rng.random((20, 5)) < 0.5
    fallen = worsened(x, is_own, rng, CLIP)
    assert (fallen <= x).all()
    assert (fallen[~is_own] == x[~is_own]).all()
    assert ((fallen < x).any(axis=1) == is_own.any(axis=1)).all()
    assert (fallen > -CLIP[1]).all()


def test_a_metric_that_falls_loses_between_half_of_the_least_severity_and_the_most():
    x = np.zeros((2000, 3))
    lost = -worsened(x, np.ones((2000, 3), dtype=bool), np.random.default_rng(0), None)
    fell = lost[lost > 0]
    assert 0.5 * imitated_stress.LEAST <= fell.min() < 0.6
    assert 7 < fell.max() <= imitated_stress.MOST
    expected = imitated_stress.REACTS + (1 - imitated_stress.REACTS) / 3  # one of three reacts in any case
    assert np.mean(lost > 0) == pytest.approx(expected, abs=0.02)


def test_an_imitation_is_drawn_in_as_a_measured_value_would_be():
    z = np.linspace(-30, 30, 101)
    drawn_in = softly_clipped(z, *CLIP)
    np.testing.assert_allclose(imitated_stress._unclipped(drawn_in, *CLIP), z, rtol=1e-6)


def test_what_falls_is_drawn_in_as_the_inputs_are(unlabelled):
    """A fall of up to 8 spreads stays above -2 where the inputs do, and reaches below -5 where they are not bounded."""
    _, (train, _, _) = unlabelled

    def lowest(clip):
        near = replace(train.inputs, x=np.clip(train.inputs.x, -0.5, 0.5), clip=clip)
        return with_imitated_stress(replace(train, inputs=near), np.random.default_rng(1)).inputs.x.min()

    assert -2 < lowest((1.0, 2.0)) < -1.5
    assert lowest(None) < -5


def test_imitations_follow_the_graphs_beside_the_predecessors_of_what_they_copy(unlabelled):
    _, (train, _, _) = unlabelled
    found = with_imitated_stress(train, np.random.default_rng(1))
    n_new = len(found) - len(train)
    assert n_new == round(len(train) / 4)
    np.testing.assert_array_equal(found.targets[: len(train)], train.targets)
    np.testing.assert_array_equal(found.predecessors[: len(train)], train.predecessors)
    new, inputs = np.arange(len(train), len(found)), found.inputs
    np.testing.assert_array_equal(found.targets[new], len(train.inputs) + np.arange(n_new))
    for at in new:
        row = found.targets[at]
        copied = np.flatnonzero(train.inputs.started_s == inputs.started_s[row])[0]
        assert copied in train.targets
        np.testing.assert_array_equal(found.predecessors[at], train.predecessors[train.targets == copied][0])
        assert inputs.type_of[row] == train.inputs.type_of[copied]
        assert (inputs.x[row] <= train.inputs.x[copied]).all()
        assert (inputs.x[row] < train.inputs.x[copied]).any()
    assert len(np.unique(inputs.started_s[found.targets[new]])) == n_new  # none is copied twice


def test_imitations_are_stressed_the_rest_is_not_and_what_nobody_measured_is_unknown(unlabelled):
    _, (train, _, _) = unlabelled
    inputs, n = with_imitated_stress(train, np.random.default_rng(1)).inputs, len(train.inputs)
    assert (inputs.labels[:n] == 0).all()
    assert (inputs.labels[n:] == 1).all()
    assert np.isnan(inputs.performance[n:]).all()
    np.testing.assert_array_equal(inputs.performance[:n], train.inputs.performance)
    np.testing.assert_array_equal(inputs.x[:n], train.inputs.x)
    assert inputs.x.dtype == train.inputs.x.dtype
    assert inputs.evidence.shape == (len(inputs), 0)
    assert (train.inputs.labels == -1).all()  # the graphs that were given are as before
    assert train.inputs.evidence.shape[1] == 2


def test_what_is_neither_better_nor_worse_does_not_fall(unlabelled):
    _, (train, _, _) = unlabelled
    is_directed = np.array([True, False] * 3)
    found = with_imitated_stress(
        replace(train, inputs=replace(train.inputs, is_directed=is_directed)), np.random.default_rng(1)
    )
    n = len(train.inputs)
    copied = np.array([np.flatnonzero(train.inputs.started_s == at)[0] for at in found.inputs.started_s[n:]])
    fell = found.inputs.x[n:] < train.inputs.x[copied]
    assert not fell[:, ~is_directed].any() and fell[:, is_directed].any(axis=1).all()


def test_the_same_seed_imitates_the_same(unlabelled):
    _, (train, _, _) = unlabelled
    first, second, other = (with_imitated_stress(train, np.random.default_rng(seed)).inputs.x for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_known_stressed_executions_are_not_copied_and_without_others_there_is_nothing_to_imitate(parts):
    train, _, _ = parts
    stressed = train.inputs.labels[train.targets] == 1
    found = with_imitated_stress(train, np.random.default_rng(0))
    copied = found.inputs.started_s[len(train.inputs) :]
    assert not set(copied) & set(train.inputs.started_s[train.targets[stressed]])
    with pytest.raises(ValueError, match="no graph of an unstressed execution; expected at least one"):
        with_imitated_stress(train.of(stressed), np.random.default_rng(0))


def test_a_single_graph_is_imitated_once(unlabelled):
    _, (train, _, _) = unlabelled
    assert len(with_imitated_stress(train.of(np.array([5])), np.random.default_rng(0))) == 2


def test_stress_is_imitated_where_none_is_known_in_our_variant_alone(parts, unlabelled):
    _, (unknown, _, _) = unlabelled
    ours, paper = ModelParams(), ModelParams(variant="paper")
    blind = ours.model_copy(update={"loss": ours.loss.model_copy(update={"detection": False})})
    assert needs_imitation(unknown, ours)
    assert not needs_imitation(parts[0], ours)
    assert needs_imitation(parts[0].of(parts[0].inputs.labels[parts[0].targets] == 0), ours)
    assert not needs_imitation(unknown, paper)
    assert not needs_imitation(unknown, blind)


def test_where_stress_is_imitated_the_epoch_is_chosen_by_verdicts_too(unlabelled, quick):
    """With the terms of detection alone: without imitations among what is selected by, every epoch would have 0."""
    _, (train, validation, _) = unlabelled
    switches = {name: name == "detection" for name, kind in LossParams.model_fields.items() if kind.annotation is bool}
    losses = [
        fit_network(
            train, validation, quick(epochs=2, seed=seed).model_copy(update={"loss": LossParams(**switches)})
        ).history["validation_loss"]
        for seed in (0, 1)
    ]
    assert (losses[0] > 0).all() and losses[0].nunique() == 2
    assert not losses[0].equals(losses[1])  # other weights, judged on the same imitations


@pytest.mark.slow
def test_a_network_that_saw_imitations_alone_tells_real_stress(unlabelled, quick):
    known, (train, validation, test) = unlabelled
    fitted = fit_network(train, validation, quick(epochs=8, learning_rate=0.02))
    assert fitted.is_imitated
    assert fitted.network.sizes.n_evidence == 0
    with torch.no_grad():
        batch = Batches(test, quick()).of(np.arange(len(test)))  # with evidence, which the network leaves alone
        logit = fitted.network(batch).logit[batch.is_target]
    assert roc_auc_score(known.labels[test.targets], logit.numpy()) > 0.9
