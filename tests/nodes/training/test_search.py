"""The search: the same every time, the best of what was tried, and the same after it was killed."""

import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from tasks.nodes.perona import search as search_module
from tasks.nodes.perona.params import ModelParams, SearchParams
from tasks.nodes.perona.search import WORST, search, space_of, trial_loss

SMALL = SearchParams(runner="here", n_trials=6, warm_up_trials=2, grace_epochs=2)

KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from conftest import draw_inputs, small_params, split
from tasks.nodes.perona import search as search_module
from tasks.nodes.perona.search import search
from tasks.nodes.perona.params import SearchParams

own, n_fits = search_module.trial_loss, 0

def trial_loss(*arguments):
    global n_fits
    n_fits += 1
    if n_fits == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return own(*arguments)

search_module.trial_loss = trial_loss
train, validation, _ = split(draw_inputs())
search(train, validation, small_params(epochs=3), SearchParams.model_validate_json({search!r}),
       journal=Path({journal!r}))
"""


@pytest.fixture
def by_formula(monkeypatch):
    """Trials that are worked out, not fitted; what they were given is kept."""
    seen = []

    def loss(train, validation, params, report):
        seen.append(params)
        final = (params.network.heads - 3) ** 2 + abs(math.log10(params.fit.learning_rate) + 2) + params.network.dropout
        for epoch in range(1, params.fit.epochs + 1):
            report(epoch, final + 1 / epoch)
        return final + 1 / params.fit.epochs

    monkeypatch.setattr(search_module, "trial_loss", loss)
    return seen


def test_the_best_of_the_trials_is_taken(parts, quick, by_formula):
    params = quick()
    found = search(*parts[:2], params, SMALL)
    assert list(found.trials["number"]) == list(range(6))
    assert found.validation_loss == found.trials["validation_loss"].min()
    best = found.trials.loc[found.trials["validation_loss"].idxmin()]
    assert found.best.network.heads == best["network.heads"]
    assert found.best.fit.learning_rate == best["fit.learning_rate"]
    assert found.best.fit.epochs == params.fit.epochs
    assert found.best in by_formula


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_all_values_of_the_table_are_tried_and_no_others(parts, quick, by_formula, variant):
    params = ModelParams(variant=variant, **quick().model_dump(exclude={"variant"}))
    trials = search(*parts[:2], params, SMALL.model_copy(update={"n_trials": 40, "warm_up_trials": 40})).trials
    space = space_of(params)
    assert set(trials) == {"number", "validation_loss", "epochs", *space}
    assert {name: set(trials[name]) for name in space} == {name: set(choices) for name, choices in space.items()}


def test_the_same_seed_tries_the_same_and_another_seed_does_not(parts, quick, by_formula):
    first, second = (search(*parts[:2], quick(), SMALL) for _ in range(2))
    pd.testing.assert_frame_equal(first.trials, second.trials)
    assert first.best == second.best
    other = search(*parts[:2], quick(), SMALL.model_copy(update={"seed": 7}))
    assert not first.trials.equals(other.trials)


def test_trials_that_fall_behind_after_the_grace_are_given_up(parts, quick, by_formula):
    few = SMALL.model_copy(update={"n_trials": 20, "warm_up_trials": 20, "grace_epochs": 2})
    trials = search(*parts[:2], quick(epochs=7), few).trials
    assert set(trials["epochs"]) == {2, 7}
    given_up = trials["epochs"] == 2
    assert given_up.sum() > 10
    assert trials.loc[~given_up, "validation_loss"].min() < trials.loc[given_up, "validation_loss"].min()


def test_networks_are_fitted_and_the_best_is_the_one_with_the_least_validation_loss(parts, quick):
    two = SMALL.model_copy(update={"n_trials": 2})
    found = search(*parts[:2], quick(epochs=2), two)
    losses = [trial_loss(*parts[:2], found.best, lambda epoch, loss: None)]
    assert found.validation_loss == pytest.approx(min(losses), rel=1e-9)


def test_a_finished_search_is_read_from_its_journal_and_may_be_made_longer(parts, quick, by_formula, tmp_path):
    journal = tmp_path / "new" / "journal.log"
    first = search(*parts[:2], quick(), SMALL, journal=journal)
    longer = search(*parts[:2], quick(), SMALL.model_copy(update={"n_trials": 8}), journal=journal)
    assert (first.n_resumed, longer.n_resumed, len(longer.trials), len(by_formula)) == (0, 6, 8, 8)
    pd.testing.assert_frame_equal(longer.trials.iloc[:6], first.trials)
    unbroken = search(*parts[:2], quick(), SMALL.model_copy(update={"n_trials": 8}))
    pd.testing.assert_frame_equal(longer.trials, unbroken.trials)


def test_other_graphs_or_settings_have_a_search_of_their_own_in_the_same_journal(parts, quick, by_formula, tmp_path):
    train, validation, _ = parts
    journal, one = tmp_path / "journal.log", SMALL.model_copy(update={"n_trials": 1})
    search(train, validation, quick(), one, journal=journal)
    moved = replace(train, inputs=replace(train.inputs, during=train.inputs.during + 1))
    for changed in (
        {"train": moved},
        {"validation": validation.of(validation.targets > 75)},
        {"params": quick(epochs=5)},
        {"search": one.model_copy(update={"seed": 1})},
    ):
        asked = {"train": train, "validation": validation, "params": quick(), "search": one, **changed}
        assert search(**asked, journal=journal).n_resumed == 0
    elsewhere = one.model_copy(update={"concurrency": 1, "ray_address": "head:6379"})
    assert search(train, validation, quick(), elsewhere, journal=journal).n_resumed == 1


def test_a_search_of_other_values_is_another_search(parts, quick, by_formula, tmp_path, monkeypatch):
    """Optuna refuses a study whose choices were others: a journal from before they changed is not in the way."""
    journal, one = tmp_path / "journal.log", SMALL.model_copy(update={"n_trials": 1})
    search(*parts[:2], quick(), one, journal=journal)
    monkeypatch.setitem(search_module.OURS, "fit.learning_rate", (0.5, 0.05))
    found = search(*parts[:2], quick(), one, journal=journal)
    assert found.n_resumed == 0
    assert found.trials["fit.learning_rate"].iloc[0] in (0.5, 0.05)


def test_a_trial_that_diverges_has_the_worst_loss_and_the_others_go_on(parts, quick, monkeypatch):
    from tasks.nodes.perona import training as fitting

    def diverging(train, validation, params, *, report):
        report(1, math.inf)
        raise fitting.Diverged("training", "no epoch", "some", "")

    monkeypatch.setattr(fitting, "fit_network", diverging)
    reports = []
    assert search_module.trial_loss(*parts[:2], quick(), lambda *told: reports.append(told)) == WORST
    assert reports == [(1, WORST)]
    found = search(*parts[:2], quick(), SMALL)
    assert (found.trials["validation_loss"] == WORST).all()


@pytest.mark.slow
def test_a_killed_search_goes_on_ends_like_an_unbroken_one_and_repeats_no_finished_trial(
    parts, quick, tmp_path, monkeypatch
):
    journal, few = tmp_path / "journal.log", SMALL.model_copy(update={"n_trials": 4})
    script = KILLED.format(tests=str(Path(__file__).parent), search=few.model_dump_json(), journal=str(journal))
    root = Path(search_module.__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    killed = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    fits = []
    monkeypatch.setattr(search_module, "trial_loss", lambda *asked: fits.append(1) or trial_loss(*asked))
    resumed = search(*parts[:2], quick(epochs=3), few, journal=journal)
    assert resumed.n_resumed == 2
    assert len(fits) == 2  # of four: the one that was killed, and the last
    unbroken = search(*parts[:2], quick(epochs=3), few)
    assert resumed.best == unbroken.best
    pd.testing.assert_frame_equal(resumed.trials, unbroken.trials)
