"""Fitting: the same every time, the best epoch, one loss for all batches."""

import logging
import math
from dataclasses import replace

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from tasks.errors import BadInput
from tasks.nodes.perona.fingerprints import fingerprints_of
from tasks.nodes.perona.graph import Batches, GraphSet
from tasks.nodes.perona.training import (
    Diverged,
    InParts,
    ShuffledBatches,
    class_counts,
    fit_network,
    lean_trainer,
    mean_loss,
    new_module,
    with_noise,
)

ROWS = ("x", "is_own", "type_of", "node_of", "started_s", "node_metrics", "performance", "labels")


def paper_of(params):
    """The same in the variant of the paper."""
    return params.model_copy(update={"variant": "paper"})


def same_weights(one, other):
    first, second = one.network.state_dict(), other.network.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def selection_loss(fitted, train, validation, params):
    """The loss of selection, worked out anew."""
    module = new_module(train, Batches(train, params), params)
    module.network.load_state_dict(fitted.network.state_dict())
    module.network.eval()
    with torch.no_grad():
        for part in InParts(Batches(validation, params)):
            module.validation_step(part, 0)
    return mean_loss(module.validation_losses)


def test_the_same_seed_gives_the_same_weights_and_leaves_the_generator_of_torch_alone(parts, quick):
    train, validation, _ = parts
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    first = fit_network(train, validation, quick(epochs=2))
    assert torch.equal(torch.rand(3), expected)
    torch.manual_seed(2)
    assert same_weights(first, fit_network(train, validation, quick(epochs=2)))
    assert not same_weights(first, fit_network(train, validation, quick(epochs=2, seed=1)))


def test_what_is_left_to_the_variant_is_a_number_in_the_network(parts, quick):
    train, validation, _ = parts
    told = fit_network(train, validation, quick(epochs=1)).network.params
    assert (told.fit.batch_size, told.fit.learning_rate, told.loss.mined_per_type) == (16, 0.01, 16)
    module = new_module(train, Batches(train, quick()), quick())
    assert module.adam().param_groups[0]["lr"] == 0.01


def test_threads_of_the_caller_do_not_matter_and_stay_as_they_were(parts, quick):
    train, validation, _ = parts
    first = fit_network(train, validation, quick(epochs=2))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert same_weights(first, fit_network(train, validation, quick(epochs=2)))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_loss_falls(parts, quick):
    train, validation, _ = parts
    history = fit_network(train, validation, quick(epochs=8)).history
    assert list(history) == ["epoch", "train_loss", "validation_loss", "seconds"]
    assert list(history["epoch"]) == list(range(1, 9))
    assert history["train_loss"].iloc[-3:].mean() < 0.85 * history["train_loss"].iloc[0]
    assert history["validation_loss"].min() < 0.85 * history["validation_loss"].iloc[0]
    assert history["seconds"].is_monotonic_increasing


def test_the_weights_are_those_of_the_epoch_with_the_least_validation_loss(parts, quick):
    train, validation, _ = parts
    params = quick(epochs=12, learning_rate=0.3)  # too fast to get better every time
    fitted = fit_network(train, validation, params)
    losses = fitted.history["validation_loss"]
    assert fitted.best_epoch == int(losses.idxmin()) + 1
    assert fitted.validation_loss == losses.min()
    assert selection_loss(fitted, train, validation, params) == pytest.approx(losses.min(), rel=1e-6)
    assert not fitted.network.training


def test_executions_of_neither_part_never_reach_the_weights(parts, quick):
    train, validation, test = parts
    inputs = train.inputs
    changed = {name: getattr(inputs, name).copy() for name in ("x", "performance", "labels", "node_metrics")}
    for column in changed.values():
        column[test.targets] = 1
    other = replace(inputs, **changed)
    first = fit_network(train, validation, quick())
    second = fit_network(replace(train, inputs=other), replace(validation, inputs=other), quick())
    assert same_weights(first, second)
    assert first.validation_loss == second.validation_loss


def test_validation_executions_select_and_do_not_teach(parts, quick):
    train, validation, _ = parts
    x = train.inputs.x.copy()
    x[validation.targets] += 1
    other = replace(train.inputs, x=x)
    first = fit_network(train, validation, quick(epochs=1))
    second = fit_network(train, replace(validation, inputs=other), quick(epochs=1))
    assert same_weights(first, second)
    assert first.validation_loss != second.validation_loss


def test_each_epoch_is_reported_with_the_least_loss_so_far(parts, quick):
    train, validation, _ = parts
    reports = []
    fitted = fit_network(train, validation, quick(), report=lambda epoch, loss: reports.append((epoch, loss)))
    assert reports == list(zip(range(1, 5), fitted.history["validation_loss"].cummin(), strict=True))


def test_what_a_report_raises_ends_the_training(parts, quick):
    train, validation, _ = parts
    epochs = []

    def report(epoch, loss):
        epochs.append(epoch)
        if epoch == 2:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        fit_network(train, validation, quick(), report=report)
    assert epochs == [1, 2]


def test_inputs_that_are_not_numbers_end_in_one_line(parts, quick):
    train, validation, _ = parts
    spoiled = replace(train.inputs, x=np.full_like(train.inputs.x, np.nan))
    reports = []
    with pytest.raises(Diverged, match=r"^training: no epoch with a finite validation loss; expected .* than 0.01$"):
        fit_network(
            replace(train, inputs=spoiled),
            validation,
            quick(),
            report=lambda epoch, loss: reports.append((epoch, loss)),
        )
    assert reports == [(1, np.inf)]  # and not all epochs


@pytest.mark.parametrize("empty", ["training", "validation"])
def test_no_graph_to_learn_from_or_to_select_by_is_one_line(parts, quick, empty):
    train, validation, _ = parts
    nothing = train.of(np.array([], dtype=np.int64))
    given = (nothing, validation) if empty == "training" else (train, nothing)
    with pytest.raises(BadInput, match=f"^{empty} graphs: none; expected at least one"):
        fit_network(*given, quick())


def test_nothing_is_printed_and_no_file_is_written(parts, quick, tmp_path, monkeypatch, capfd, recwarn):
    monkeypatch.chdir(tmp_path)
    train, validation, _ = parts
    fit_network(train, validation, quick(epochs=2))
    told = capfd.readouterr()
    assert (told.out, told.err) == ("", "")
    assert not list(recwarn)
    assert not list(tmp_path.iterdir())
    assert logging.getLogger("pytorch_lightning").level == logging.INFO


def test_the_variant_of_the_paper_is_fitted_alike(drawn, parts_of, quick):
    inputs = drawn()
    low, high = inputs.x.min(), inputs.x.max()
    scaled = np.where(inputs.is_own, (inputs.x - low) / (high - low), 0.5).astype(np.float32)
    *full, _ = parts_of(replace(inputs, x=scaled), n_predecessors=3)
    params = paper_of(quick())
    fitted = fit_network(*full, params)
    assert np.isfinite(fitted.history[["train_loss", "validation_loss"]].to_numpy()).all()
    assert same_weights(fitted, fit_network(*full, params))


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_one_type_one_node_one_stressed_execution_and_no_performance_are_learned_from(drawn, parts_of, quick, variant):
    inputs = drawn(240)
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
    params = quick(epochs=2).model_copy(update={"variant": variant})
    train, validation, _ = parts_of(few, n_predecessors=params.n_predecessors)
    fitted = fit_network(train, validation, params)
    assert np.isfinite(fitted.history.to_numpy()).all()
    assert np.isfinite(fingerprints_of(few, fitted.network).log_norm).all()


def test_a_single_graph_is_learned_from(parts, quick):
    train, validation, _ = parts
    for row in (5, int(np.flatnonzero(train.inputs.labels[train.targets] == 1)[0])):  # a calm one, a stressed one
        fitted = fit_network(train.of(np.array([row])), validation, quick(epochs=1))
        assert np.isfinite(fitted.history.to_numpy()).all()


def test_stressed_and_calm_targets_are_counted_and_not_their_predecessors(parts):
    train, _, _ = parts
    labels = train.inputs.labels.copy()
    labels[train.targets[:4]] = [1, 0, -1, 1]
    graphs = GraphSet(replace(train.inputs, labels=labels), train.targets[:4], train.predecessors[:4])
    assert tuple(class_counts(graphs)) == (2, 1)


@pytest.fixture
def batch(parts, quick):
    return Batches(parts[0], quick()).of(parts[0].targets[:20])


def test_noise_falls_on_what_was_measured_alone(batch, quick):
    torch.manual_seed(0)
    noisy = with_noise(batch, quick(noise=0.01))
    moved = noisy.x - batch.x
    assert (moved[batch.is_own] != 0).all()
    assert (moved[~batch.is_own] == 0).all()
    assert moved[batch.is_own].std() == pytest.approx(0.01, rel=0.3)
    assert noisy.edge_attr is batch.edge_attr
    assert with_noise(batch, quick(noise=0)) is batch


def test_noise_of_the_paper_falls_on_edges_too(batch, quick):
    noisy = with_noise(batch, paper_of(quick()))
    assert (noisy.x != batch.x).all()
    assert (noisy.edge_attr != batch.edge_attr).any(dim=1).all()


def test_weights_decay_and_biases_do_not(parts, quick):
    params = quick(weight_decay=0.01)
    module = new_module(parts[0], Batches(parts[0], params), params)
    decaying, lasting = module.adam().param_groups
    assert (decaying["weight_decay"], lasting["weight_decay"]) == (0.01, 0)
    assert {one.ndim for one in decaying["params"]} == {2}
    assert {one.ndim for one in lasting["params"]} == {1}
    n_parameters = sum(1 for _ in module.network.parameters())
    assert len(decaying["params"]) + len(lasting["params"]) == n_parameters


def test_models_of_other_focal_settings_and_caps_are_selected_by_the_same_loss(drawn, parts_of, quick):
    found, (train, *_) = [], parts_of(drawn(), n_predecessors=3)
    batch = Batches(train, paper_of(quick())).of(np.arange(20))
    for change in ({}, {"focal_gamma": 5.0, "class_balance": 0.9}, {"mined_per_type": 2}):
        params = paper_of(quick())
        params = params.model_copy(update={"loss": params.loss.model_copy(update=change)})
        torch.manual_seed(0)
        module = new_module(train, Batches(train, params), params).eval()
        with torch.no_grad():
            module.validation_step(batch, 0)
        found.append(mean_loss(module.validation_losses))
    assert found[0] == found[1] == found[2]


def test_a_mean_loss_counts_graphs_and_not_batches():
    assert mean_loss([(torch.tensor(1.0), 3), (torch.tensor(5.0), 1)]) == 2.0
    assert mean_loss([]) != mean_loss([])  # NaN


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
        train_dataloaders=ShuffledBatches(batches, params.fit.batch_size, 0),
        val_dataloaders=InParts(Batches(validation, params)),
    )
    return rates.after


def test_the_rate_falls_to_0_along_half_a_cosine_over_all_epochs(parts, quick):
    params = quick(epochs=2, batch_size=18, learning_rate=0.02)  # 72 graphs: 4 steps an epoch
    expected = [0.01 * (1 + math.cos(math.pi * step / 8)) for step in range(1, 9)]
    assert rates_of(params, parts) == pytest.approx(expected, abs=1e-9)


def test_the_rate_stays_in_the_papers_variant(drawn, parts_of, quick):
    asked = paper_of(quick(epochs=2, batch_size=18, learning_rate=0.02))
    assert set(rates_of(asked, parts_of(drawn(), n_predecessors=3))) == {0.02}


def starts(batches):
    """What tells the targets of some batches apart: their performance."""
    return [batch.performance.tolist() for batch in batches]


def flat(lists):
    return [value for values in lists for value in values]


def test_every_graph_is_in_each_pass_once_and_passes_differ(parts, quick):
    train, _, _ = parts
    batches = Batches(train, quick())
    loader = ShuffledBatches(batches, 16, seed=3)
    first, second = starts(loader), starts(loader)
    assert [len(batch) for batch in first] == [16, 16, 16, 16, 8]
    assert len(loader) == 5
    expected = sorted(train.inputs.performance[train.targets].tolist())
    assert sorted(flat(first)) == sorted(flat(second)) == expected
    assert first != second


def test_the_orders_depend_on_the_seed_and_not_on_iterators_that_were_dropped(parts, quick):
    batches = Batches(parts[0], quick())
    loader = ShuffledBatches(batches, 16, seed=3)
    iter(loader)  # Lightning makes one to see whether it can
    first = starts(loader)
    torch.rand(5)
    assert first == starts(ShuffledBatches(batches, 16, seed=3))
    assert first != starts(ShuffledBatches(batches, 16, seed=4))


def test_validation_goes_through_all_graphs_in_parts_of_equal_size_the_same_every_time(parts, quick):
    train, _, _ = parts
    batches = Batches(train, quick())
    loader = InParts(batches, graphs_at_once=30)
    first = starts(loader)
    assert [len(part) for part in first] == [24, 24, 24]
    assert len(loader) == 3
    assert first == starts(loader)
    assert sorted(flat(first)) == sorted(train.inputs.performance[train.targets].tolist())
    assert all(len(np.unique(part.type_of)) == 3 for part in loader)
    assert len(InParts(batches)) == 2
