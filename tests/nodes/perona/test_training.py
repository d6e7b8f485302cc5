"""Fitting: what it may know, the same every time, the best epoch, one loss for all batches, and what it is worth."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from torch import nn

from tasks.errors import BadInput
from tasks.nodes.params import FitParams, ModelParams, NetworkParams, PreprocessParams, ScoreParams
from tasks.nodes.perona.inputs import UNKNOWN, UNSTRESSED, Batches
from tasks.nodes.perona.network import fingerprints_of
from tasks.nodes.perona.training import (
    Diverged,
    ShuffledBatches,
    fit_network,
    fit_prepared,
    in_parts,
    lean_trainer,
    learn_scale,
    mean_loss,
    measures_of,
    new_module,
    prepare,
    scores_follow,
    with_noise,
)
from tasks.nodes.type_tables import time_places
from tests.nodes.perona.conftest import draw_inputs, rows_of_nodes, small_params, split
from tests.nodes.synthetic import synthetic_history

ROWS = ("x", "is_own", "type_of", "node_of", "started_s", "node_metrics", "performance", "labels")


def same_weights(one, other):
    first, second = one.network.state_dict(), other.network.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def selection_loss(fitted, train, validation, params):
    """The loss of selection, worked out anew."""
    module = new_module(train, Batches(train, params), params)
    module.network.load_state_dict(fitted.network.state_dict())
    module.network.eval()
    with torch.no_grad():
        for part in in_parts(Batches(validation, params)):
            module.validation_step(part, 0)
    return mean_loss(module.validation_losses)


def test_the_same_seed_gives_the_same_weights_and_leaves_generator_and_threads_of_torch_alone(parts):
    train, validation, _ = parts
    before = torch.get_num_threads()
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first = fit_network(train, validation, small_params(epochs=2))
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(2)
    torch.set_num_threads(2)
    try:
        assert same_weights(first, fit_network(train, validation, small_params(epochs=2)))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert not same_weights(first, fit_network(train, validation, small_params(epochs=2, seed=1)))


def test_the_loss_falls_and_the_weights_are_those_of_the_epoch_with_the_least_of_validation(parts):
    train, validation, _ = parts
    params = small_params(epochs=12, learning_rate=0.3)  # too fast to get better every time
    fitted = fit_network(train, validation, params)
    history, losses = fitted.history, fitted.history["validation_loss"]
    assert list(history) == ["epoch", "train_loss", "validation_loss", "seconds"]
    assert list(history["epoch"]) == list(range(1, 13)) and history["seconds"].is_monotonic_increasing
    assert history["train_loss"].iloc[-3:].mean() < 0.85 * history["train_loss"].iloc[0]
    assert (fitted.best_epoch, fitted.validation_loss) == (int(losses.idxmin()) + 1, losses.min())
    assert selection_loss(fitted, train, validation, params) == pytest.approx(losses.min(), rel=1e-6)
    assert not fitted.network.training


def test_validation_executions_select_and_do_not_teach(parts):
    train, validation, _ = parts
    x = train.inputs.x.copy()
    x[validation.targets] += 1
    other = replace(train.inputs, x=x)
    first = fit_network(train, validation, small_params(epochs=1))
    second = fit_network(train, replace(validation, inputs=other), small_params(epochs=1))
    assert same_weights(first, second)
    assert first.validation_loss != second.validation_loss


def test_inputs_that_are_not_numbers_end_in_one_line(parts):
    train, validation, _ = parts
    spoiled = replace(train.inputs, x=np.full_like(train.inputs.x, np.nan))
    reports, spoiled = [], replace(train, inputs=spoiled)
    with pytest.raises(Diverged, match=r"^training: no epoch with a finite validation loss; expected .* than 0.01$"):
        fit_network(spoiled, validation, small_params(), report=lambda *told: reports.append(told))
    assert reports == [(1, np.inf)]  # and not all epochs


@pytest.mark.parametrize("empty", ["training", "validation"])
def test_no_graph_to_learn_from_or_to_select_by_is_one_line(parts, empty):
    train, validation, _ = parts
    nothing = train.of(np.array([], dtype=np.int64))
    given = (nothing, validation) if empty == "training" else (train, nothing)
    with pytest.raises(BadInput, match=f"^{empty} graphs: none; expected at least one"):
        fit_network(*given, small_params())


def test_the_variant_of_the_paper_is_fitted_alike():
    inputs = draw_inputs()
    low, high = inputs.x.min(), inputs.x.max()
    scaled = np.where(inputs.is_own, (inputs.x - low) / (high - low), 0.5).astype(np.float32)
    *full, _ = split(replace(inputs, x=scaled), n_predecessors=3)
    params = small_params().model_copy(update={"variant": "paper"})
    fitted = fit_network(*full, params)
    assert np.isfinite(fitted.history[["train_loss", "validation_loss"]].to_numpy()).all()
    assert same_weights(fitted, fit_network(*full, params))


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_one_type_one_node_one_stressed_execution_and_no_performance_are_learned_from(variant):
    inputs = draw_inputs(240)
    rows = np.flatnonzero((inputs.type_of == 0) & (inputs.node_of == 0))
    few = replace(
        inputs, types=inputs.types[:1], nodes=inputs.nodes[:1], **{name: getattr(inputs, name)[rows] for name in ROWS}
    )
    few = replace(
        few,
        x=(1 / (1 + np.exp(-few.x))).astype(np.float32),
        node_metrics=few.node_metrics[:, :0],
        performance=np.full(len(rows), np.nan, dtype=np.float32),
        labels=(np.arange(len(rows)) == 9).astype(np.int8),
    )
    params = small_params(epochs=2).model_copy(update={"variant": variant})
    train, validation, _ = split(few, n_predecessors=params.n_predecessors)
    fitted = fit_network(train, validation, params)
    assert np.isfinite(fitted.history.to_numpy()).all()
    assert np.isfinite(fingerprints_of(few, fitted.network).log_norm).all()


@pytest.fixture
def batch(parts):
    return Batches(parts[0], small_params()).of(parts[0].targets[:20])


def test_noise_falls_on_what_was_measured_alone(batch):
    torch.manual_seed(0)
    noisy = with_noise(batch, small_params(noise=0.01))
    moved = noisy.x - batch.x
    assert (moved[batch.is_own] != 0).all()
    assert (moved[~batch.is_own] == 0).all()
    assert moved[batch.is_own].std() == pytest.approx(0.01, rel=0.3)
    assert noisy.edge_attr is batch.edge_attr
    assert with_noise(batch, small_params(noise=0)) is batch


def test_weights_decay_and_biases_do_not(parts):
    params = small_params(weight_decay=0.01)
    module = new_module(parts[0], Batches(parts[0], params), params)
    decaying, lasting = module.adam().param_groups
    assert (decaying["weight_decay"], lasting["weight_decay"]) == (0.01, 0)
    assert {one.ndim for one in decaying["params"]} == {2}
    assert {one.ndim for one in lasting["params"]} == {1}
    n_parameters = sum(1 for _ in module.network.parameters())
    assert len(decaying["params"]) + len(lasting["params"]) == n_parameters


class Rates(pl.Callback):
    """The rate after each step."""

    def __init__(self):
        self.after = []

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self.after.append(trainer.optimizers[0].param_groups[0]["lr"])


def rates_of(params, parts):
    train, validation, _ = parts
    rates, batches = Rates(), Batches(train, params)
    lean_trainer(params.fit, [rates]).fit(
        new_module(train, batches, params),
        ShuffledBatches(batches, params.fit.batch_size, 0),
        in_parts(Batches(validation, params)),
    )
    return rates.after


def test_the_rate_falls_to_0_along_half_a_cosine_over_all_epochs(parts):
    params = small_params(epochs=2, batch_size=18, learning_rate=0.02)  # 72 graphs: 4 steps an epoch
    expected = [0.01 * (1 + math.cos(math.pi * step / 8)) for step in range(1, 9)]
    assert rates_of(params, parts) == pytest.approx(expected, abs=1e-9)


VARIANTS = pytest.mark.parametrize("variant", ["ours", "paper"])


@pytest.fixture(scope="module")
def history():
    """Two nodes, two types, 30 runs of each, a fifth of them stressed."""
    return synthetic_history(nodes=2, types=2, runs=30, seed=1)


def model_of(variant):
    network = NetworkParams(hidden=8, intermediate=8, heads=1)
    return ModelParams(variant=variant, network=network, fit=FitParams(epochs=2, batch_size=64))


def masks(history):
    """Training, validation and test by time."""
    places = time_places(history.executions)
    return places < 0.6, (places >= 0.6) & (places < 0.8), places >= 0.8


def prepared_of(history, variant="ours"):
    is_train, is_validation, _ = masks(history)
    return prepare(history, is_train, is_validation, model_of(variant), PreprocessParams(), ScoreParams())


def changed(history, rows):
    """The history with all values of some executions, a mask, tripled, and their labels turned round."""
    value = history.metrics["value"] * np.where(rows[history.metrics["execution"].to_numpy()], 3.0, 1.0)
    stressed = history.executions["is_stressed"].astype(bool)
    executions = history.executions.assign(is_stressed=stressed.where(~rows, ~stressed))
    return replace(history, metrics=history.metrics.assign(value=value), executions=executions)


def test_graphs_of_training_hold_calm_training_executions_alone(history):
    prepared, (is_train, _, is_test) = prepared_of(history, "paper"), masks(history)
    for graphs, may_be_seen in ((prepared.train, is_train), (prepared.validation, ~is_test)):
        assert len(graphs) and may_be_seen[graphs.predecessors].all()
        assert (graphs.inputs.labels[graphs.predecessors] == UNSTRESSED).all()
        assert (graphs.predecessors < graphs.targets[:, None]).all()


def test_an_execution_that_measured_nothing_is_no_example_and_stands_beside_none(history):
    row = int(prepared_of(history, "paper").train.predecessors[0, 0])
    silent = replace(history, metrics=history.metrics[history.metrics["execution"] != row].reset_index(drop=True))
    for variant in ("ours", "paper"):
        graphs = prepared_of(silent, variant).train
        assert len(graphs) and row not in graphs.targets and row not in graphs.predecessors


@VARIANTS
def test_where_no_stress_is_known_codes_are_learned_all_the_same(history, variant):
    unknown = pd.array([pd.NA] * len(history.executions), dtype="boolean")
    prepared = prepared_of(replace(history, executions=history.executions.assign(is_stressed=unknown)), variant)
    network = fit_prepared(prepared, model_of(variant)).network
    assert "detection" not in network.params.loss.terms
    assert np.isfinite(fingerprints_of(prepared.inputs, network).log_norm).all()


def test_too_few_executions_to_learn_from_are_one_line(history):
    prepared = prepared_of(history)
    few = replace(prepared, train=prepared.train.of(np.arange(3)))
    with pytest.raises(BadInput, match="3 executions to learn from; expected at least 10"):
        fit_prepared(few, model_of("ours"))
    assert len(prepared.train.drawn(12, np.random.default_rng(0))) == 12


class Written(nn.Module):
    """The fingerprint is the input's first four columns, what it decodes to a constant, the type the larger column."""

    def __init__(self, decoded):
        super().__init__()
        self.params = ModelParams(network=NetworkParams(hidden=4))
        self.decoded = torch.tensor(decoded)

    def encode(self, x):
        return x[:, :4]

    def decoder(self, codes):
        return self.decoded.expand(len(codes), -1)

    def classifier(self, codes):
        return codes[:, :2]


def made(x, is_own, type_of, **told):
    n = len(x)
    told = {name: np.asarray(one, dtype=np.float32) for name, one in told.items()}
    return rows_of_nodes(
        np.zeros(n, dtype=int), type_of, x=x, is_own=np.asarray(is_own, dtype=bool), types=("one", "two"), **told
    )


def first(n, of):
    return np.arange(of) < n


@pytest.fixture
def five():
    """Three training executions and two tested ones; column 0 is of type one, column 1 of type two, the rest filled."""
    x = [[0, 5, 0, 0], [4, 5, 0, 0], [9, 1, 0, 0], [2, 5, 0, 0], [9, 3, 0, 0]]
    is_own = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    return made(x, is_own, [0, 0, 1, 0, 1])


def test_ranges_are_of_measured_training_values_and_means_of_each_type(five):
    """Column 0 ran from 0 to 4 where it was measured; column 1 was measured once, and does not vary: 1."""
    ranges, means = learn_scale(five, first(3, 5))
    assert ranges.tolist() == [4, 1, 1, 1]
    assert means.tolist() == [[2, 5, 0, 0], [9, 1, 0, 0]]


def test_errors_over_all_columns_and_over_own_metrics(five):
    """Decoded 0, 5, 0, 0; tested 2 5 0 0 and 9 3 0 0. Errors in ranges: -2/4, 0 and -9/4, 2. All eight cells:
    (0.25 + 5.0625 + 4) / 8; the two own ones: (0.25 + 4) / 2. Type means say 2 5 and 9 1: errors 0, 0 and 0, -2."""
    network = Written([0.0, 5, 0, 0])
    found = measures_of(five, network, first(3, 5), ~first(3, 5))
    assert found["type_accuracy"] == 0  # by the larger logit 2 5 is told as two and is one, and 9 3 the other way round
    assert measures_of(replace(five, type_of=1 - five.type_of), network, first(3, 5), first(5, 5))["type_accuracy"] == 1
    assert found["mse"] == pytest.approx((0.25 + 5.0625 + 4) / 8)
    assert found["mse_own"] == pytest.approx((0.25 + 4) / 2)
    assert found["mse_mean_predictor"] == pytest.approx(4 / 8)
    assert found["mse_own_mean_predictor"] == pytest.approx(4 / 2)


def test_norms_that_follow_performance_have_no_deviation():
    """Norms 1, 2, 4, 8, 16 in one column; performance their logarithms and a constant: ratios are the same."""
    norms = np.array([1.0, 2, 4, 8, 16])
    x = np.column_stack([norms, np.zeros((5, 3))])

    def followed(performance):
        inputs = made(x, np.ones((5, 4)), np.zeros(5, dtype=int), performance=performance)
        found = scores_follow(inputs, Written([0.0] * 4), np.arange(5))
        return found["score_spearman"], found["score_deviation"]

    assert followed(np.log(norms) + 3) == pytest.approx((1, 0), abs=1e-6)
    half = 1.4826 * np.log(2) / 2  # half of |-2 -1 0 1 2| ln 2
    assert followed(np.log(norms) / 2) == pytest.approx((1, half), rel=1e-5)
    assert np.isnan(followed([np.nan] * 5)[0])


@VARIANTS
def test_what_is_tested_teaches_nothing(history, variant):
    is_train, is_validation, is_test = masks(history)
    one, other = prepared_of(history, variant), prepared_of(changed(history, is_test), variant)
    weights = [fit_prepared(each, model_of(variant)).network.state_dict() for each in (one, other)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not np.array_equal(one.inputs.x[is_test], other.inputs.x[is_test])
    assert (one.inputs.labels[is_test] == UNKNOWN).all() and (one.train.inputs.labels[~is_train] == UNKNOWN).all()
    assert is_train[one.train.targets].all() and is_validation[one.validation.targets].all()
