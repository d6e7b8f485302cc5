"""The search: the same every time, the best of what was tried, and the same after it was killed, here and on Ray."""

import math
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import ray

from tasks.errors import WhorlError
from tasks.nodes.params import FitParams, ModelParams, NetworkSearchParams
from tasks.nodes.perona import hyperparameters as search_module
from tasks.nodes.perona import training as fitting
from tasks.nodes.perona.hyperparameters import WORST, search, space_of, trial_loss, with_values
from tests.nodes.perona.conftest import small_params

SMALL = NetworkSearchParams(runner="here", n_trials=6)


@pytest.fixture(autouse=True)
def short_grace(monkeypatch):
    monkeypatch.setattr(search_module, "WARM_UP_TRIALS", 2)
    monkeypatch.setattr(search_module, "GRACE_EPOCHS", 2)


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from conftest import draw_inputs, small_params, split
from tasks.nodes.perona import hyperparameters as search_module
from tasks.nodes.params import NetworkSearchParams
{imported}
own, n_calls = {name}, 0

def counted(*arguments, **named):
    global n_calls
    n_calls += 1
    if n_calls == {last} and not {is_after}:
        os.kill(os.getpid(), signal.SIGKILL)
    found = own(*arguments, **named)
    if n_calls == {last}:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

{name} = counted
train, validation, _ = split(draw_inputs())
search_module.search(train, validation, small_params(epochs=3), NetworkSearchParams.model_validate_json({search!r}),
                     journal=Path({journal!r}))
"""


def kill(asked, journal, name, last, *, imported="", is_after=False):
    """A search in another process, killed in (or after) a call of a function."""
    script = KILLED.format(
        tests=str(Path(__file__).parent), search=asked.model_dump_json(), journal=str(journal), imported=imported,
        name=name, last=last, is_after=is_after,
    )  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(Path(search_module.__file__).parents[3])}
    with journal.with_name("told.txt").open("w+") as out:  # not a pipe, which processes of Ray may hold open
        killed = subprocess.run([sys.executable, "-c", script], env=environment, stdout=out, stderr=out)
        out.seek(0)
        assert killed.returncode == -signal.SIGKILL, out.read()


@pytest.fixture
def by_formula(monkeypatch):
    """Trials that are worked out, not fitted; what they were given is kept."""
    seen = []

    def loss(train, validation, params, report):
        seen.append(params)
        final = abs(math.log10(params.fit.learning_rate) + 2) + params.network.dropout
        for epoch in range(1, params.fit.epochs + 1):
            report(epoch, final + 1 / epoch)
        return final + 1 / params.fit.epochs

    monkeypatch.setattr(search_module, "trial_loss", loss)
    return seen


def test_the_best_of_the_trials_is_taken_and_the_same_seed_tries_the_same(parts, by_formula, monkeypatch):
    params = small_params()
    found, again = (search(*parts[:2], params, SMALL) for _ in range(2))
    assert list(found.trials["number"]) == list(range(6))
    assert found.validation_loss == found.trials["validation_loss"].min()
    best = found.trials.loc[found.trials["validation_loss"].idxmin()]
    told = found.best.network.dropout, found.best.fit.learning_rate, found.best.fit.epochs
    assert told == (best["network.dropout"], best["fit.learning_rate"], params.fit.epochs)
    assert found.best in by_formula and again.best == found.best
    pd.testing.assert_frame_equal(found.trials, again.trials)
    monkeypatch.setattr(search_module, "SEED", 7)
    assert not found.trials.equals(search(*parts[:2], params, SMALL).trials)


def test_trials_that_fall_behind_after_the_grace_are_given_up(parts, by_formula, monkeypatch):
    monkeypatch.setattr(search_module, "WARM_UP_TRIALS", 20)
    few = SMALL.model_copy(update={"n_trials": 20})
    trials = search(*parts[:2], small_params(epochs=7), few).trials
    assert set(trials["epochs"]) == {2, 7}
    given_up = trials["epochs"] == 2
    assert given_up.sum() > 10
    assert trials.loc[~given_up, "validation_loss"].min() < trials.loc[given_up, "validation_loss"].min()


def test_networks_are_fitted_and_the_best_is_the_one_with_the_least_validation_loss(parts):
    two = SMALL.model_copy(update={"n_trials": 2})
    found = search(*parts[:2], small_params(epochs=2), two)
    losses = [trial_loss(*parts[:2], found.best, lambda epoch, loss: None)]
    assert found.validation_loss == pytest.approx(min(losses), rel=1e-9)


def test_a_finished_search_is_read_from_its_journal_and_may_be_made_longer(parts, by_formula, tmp_path):
    journal = tmp_path / "new" / "journal.log"
    first = search(*parts[:2], small_params(), SMALL, journal=journal)
    longer = search(*parts[:2], small_params(), SMALL.model_copy(update={"n_trials": 8}), journal=journal)
    assert (first.n_resumed, longer.n_resumed, len(longer.trials), len(by_formula)) == (0, 6, 8, 8)
    pd.testing.assert_frame_equal(longer.trials.iloc[:6], first.trials)
    unbroken = search(*parts[:2], small_params(), SMALL.model_copy(update={"n_trials": 8}))
    pd.testing.assert_frame_equal(longer.trials, unbroken.trials)


def test_other_graphs_or_settings_have_a_search_of_their_own_in_the_same_journal(parts, by_formula, tmp_path):
    train, validation, _ = parts
    journal, one = tmp_path / "journal.log", SMALL.model_copy(update={"n_trials": 1})
    search(train, validation, small_params(), one, journal=journal)
    moved = replace(train, inputs=replace(train.inputs, x=train.inputs.x + 1))
    for changed in (
        {"train": moved},
        {"validation": validation.of(validation.targets > 75)},
        {"params": small_params(epochs=5)},
    ):
        asked = {"train": train, "validation": validation, "params": small_params(), **changed}
        assert search(**asked, search=one, journal=journal).n_resumed == 0
    elsewhere = one.model_copy(update={"concurrency": 1, "ray_address": "head:6379"})
    assert search(train, validation, small_params(), elsewhere, journal=journal).n_resumed == 1


def test_a_trial_that_diverges_has_the_worst_loss_and_the_others_go_on(parts, monkeypatch):
    def diverging(train, validation, params, *, report):
        report(1, math.inf)
        raise fitting.Diverged("training", "no epoch", "some", "")

    monkeypatch.setattr(fitting, "fit_network", diverging)
    reports = []
    assert search_module.trial_loss(*parts[:2], small_params(), lambda *told: reports.append(told)) == WORST
    assert reports == [(1, WORST)]
    found = search(*parts[:2], small_params(), SMALL)
    assert (found.trials["validation_loss"] == WORST).all()


@pytest.mark.slow
def test_a_killed_search_goes_on_ends_like_an_unbroken_one_and_repeats_no_finished_trial(parts, tmp_path, monkeypatch):
    journal, few = tmp_path / "journal.log", SMALL.model_copy(update={"n_trials": 4})
    kill(few, journal, "search_module.trial_loss", 3)
    fits = []
    monkeypatch.setattr(search_module, "trial_loss", lambda *asked: fits.append(1) or trial_loss(*asked))
    resumed = search(*parts[:2], small_params(epochs=3), few, journal=journal)
    assert resumed.n_resumed == 2
    assert len(fits) == 2  # of four: the one that was killed, and the last
    unbroken = search(*parts[:2], small_params(epochs=3), few)
    assert resumed.best == unbroken.best
    pd.testing.assert_frame_equal(resumed.trials, unbroken.trials)


TABLE_II = {
    "network.heads": {1, 3, 5}, "network.beta": {False, True}, "network.dropout": {0.0, 0.1, 0.2},
    "network.edge_dropout": {0.0, 0.1, 0.2}, "network.root_weight": {False, True},
    "loss.focal_gamma": {0.5, 1.0, 2.0, 5.0}, "loss.class_balance": {0.9, 0.99, 0.999, 0.9999},
    "fit.learning_rate": {1e-1, 1e-2, 1e-3}, "fit.weight_decay": {1e-2, 1e-3, 1e-4},
}  # fmt: skip


@pytest.mark.parametrize("n_graphs", [100, 256, 600, 1080, 100_000])
def test_ours_tries_the_batches_and_rates_that_it_learns_with_unsearched_beside_those_of_the_table(n_graphs):
    space = {name: set(choices) for name, choices in space_of(ModelParams()).items()}
    assert set(space) == {"network.dropout", "fit.weight_decay", "fit.batch_size", "fit.learning_rate"}
    assert space["fit.learning_rate"] == TABLE_II["fit.learning_rate"] | {0.02}
    settled = ModelParams().settled(n_graphs).fit
    assert min(space["fit.batch_size"]) <= settled.batch_size <= max(space["fit.batch_size"])
    largest = ModelParams().settled(100_000).fit
    assert largest.batch_size in space["fit.batch_size"]
    assert any(rate == pytest.approx(largest.learning_rate) for rate in space["fit.learning_rate"])
    same = [name for name in TABLE_II if name in space and name != "fit.learning_rate"]
    assert {name: space[name] for name in same} == {name: TABLE_II[name] for name in same}


def test_values_replace_parameters_and_leave_the_rest():
    params = ModelParams(fit=FitParams(batch_size=64))
    found = with_values(params, {"network.heads": 1, "fit.learning_rate": 0.1})
    assert (found.network.heads, found.fit.learning_rate, found.fit.batch_size) == (1, 0.1, 64)
    assert with_values(found, {"network.heads": params.network.heads, "fit.learning_rate": 0.0}) == params
    with pytest.raises(KeyError):
        with_values(params, {"nets.heads": 5})
    with pytest.raises(ValueError, match="extra"):
        with_values(params, {"network.arms": 5})


FEW = NetworkSearchParams(n_trials=4, concurrency=2)


def unused_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_that_does_not_answer_is_one_line(parts, scheme):
    address = f"{scheme}127.0.0.1:{unused_port()}"
    with pytest.raises(WhorlError) as caught:
        search(*parts[:2], small_params(), FEW.model_copy(update={"ray_address": address}))
    message = str(caught.value)
    assert message.startswith(f"search.ray_address '{address}': nothing answers at 127.0.0.1:")
    assert message.endswith("start it with `ray start --head`, or set search.runner to `here`")
    assert "\n" not in message


@pytest.mark.slow
def test_trials_on_ray_are_those_asked_for_and_a_search_begun_without_it_goes_on_there(parts, tmp_path):
    pytest.importorskip("ray")
    journal = tmp_path / "journal.log"
    here = search(
        *parts[:2], small_params(epochs=3), FEW.model_copy(update={"runner": "here", "n_trials": 2}), journal=journal
    )
    found = search(*parts[:2], small_params(epochs=3), FEW, journal=journal)
    assert (found.n_resumed, len(found.trials)) == (2, 4)
    assert found.trials["validation_loss"].iloc[:2].tolist() == here.trials["validation_loss"].tolist()
    assert found.validation_loss == found.trials["validation_loss"].min()
    for name, choices in space_of(found.best).items():
        assert set(found.trials[name]) <= set(choices)
    assert set(found.trials["epochs"]) <= {1, 2, 3}  # the grace is at most half of the passes
    assert not ray.is_initialized()
    assert [path.name for path in tmp_path.iterdir()] == ["journal.log"]


@pytest.mark.slow
def test_a_search_on_ray_that_was_killed_goes_on_from_its_journal(parts, tmp_path):
    pytest.importorskip("ray")
    journal, six = tmp_path / "journal.log", FEW.model_copy(update={"n_trials": 6})
    imported = "from ray.tune.search.optuna import OptunaSearch"
    kill(six, journal, "OptunaSearch.on_trial_complete", 2, is_after=True, imported=imported)
    found = search(*parts[:2], small_params(epochs=3), six, journal=journal)
    assert (found.n_resumed, len(found.trials)) == (2, 6)
