"""The search: better than chance, blind to what it may not see, and the same after it was killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput, BadSetting
from tasks.jobs.predict import search as search_module
from tasks.jobs.predict.classifier_params import ClassifierParams, SearchParams
from tasks.jobs.predict.classifiers import fit_classifier
from tasks.jobs.predict.search import is_validation, sweep

SMALL = SearchParams(n_trials=4, warm_up_trials=2, max_rounds=12, report_every=3, min_rows=10, row_share=1)
LIGHTGBM = ClassifierParams(n_rounds=500, min_leaf=5)

KILLED = """
import os, signal
from pathlib import Path
from tests_search_case import case
from tasks.jobs.predict import search
from tasks.jobs.predict.classifier_params import ClassifierParams, SearchParams

own, n_fits = search._boosted, 0

def boosted(*arguments):
    global n_fits
    n_fits += 1
    if n_fits == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return own(*arguments)

search._boosted = boosted
frame, labels, groups = case()
search.sweep(frame, labels, groups, 3, ClassifierParams.model_validate_json({params!r}),
             SearchParams.model_validate_json({search!r}), journal=Path({journal!r}))
"""


def case(n: int = 300) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Three shapes that the first feature tells."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, n)
    frame = pd.DataFrame({"load": labels + rng.normal(0, 0.4, n), "noise": rng.normal(0, 1, n)})
    return frame, labels, rng.integers(0, 30, n)


@pytest.mark.parametrize("pruner", ["median", "hyperband", "none"])
def test_the_best_trial_is_taken_with_the_best_number_of_its_rounds(pruner):
    frame, labels, groups = case()
    found = sweep(frame, labels, groups, 3, LIGHTGBM, SMALL.model_copy(update={"pruner": pruner}))
    assert len(found.table) == 4
    complete = found.table[found.table["state"] == "COMPLETE"]
    assert found.log_loss == complete["log_loss"].min() < np.log(3)
    assert found.params.n_rounds <= 12
    best = complete.loc[complete["log_loss"].idxmin()]
    assert found.params.n_leaves == best["n_leaves"]
    assert found.params.forest_trees == LIGHTGBM.forest_trees


def test_the_forest_is_searched_too_and_the_ensemble_is_refused():
    frame, labels, groups = case()
    search = SMALL.model_copy(update={"n_trials": 1})
    found = sweep(frame, labels, groups, 3, ClassifierParams(method="forest"), search)
    assert found.params.method == "forest"
    assert found.params.forest_trees != ClassifierParams().forest_trees
    with pytest.raises(BadSetting, match="method ensemble: nothing to search; expected lightgbm or forest"):
        sweep(frame, labels, groups, 3, ClassifierParams(method="ensemble"), search)


def test_trials_train_on_earlier_rows_of_other_jobs_and_are_scored_on_later_ones(monkeypatch):
    frame, labels, groups = case()
    seen = []

    def look(training, *arguments, **options):
        seen.append(training.index)
        return fit_classifier(training, *arguments, **options)

    monkeypatch.setattr(search_module, "fit_classifier", look)
    search = SMALL.model_copy(update={"n_trials": 1, "unseen_share": 0.5})
    found = sweep(frame, labels, groups, 3, ClassifierParams(method="forest"), search)
    training = seen[0]
    later = np.flatnonzero(is_validation(groups, search))
    assert training.max() < later.min()
    assert len(set(groups[later]) - set(groups[training])) == len(set(groups[later])) // 2
    assert (found.n_training, found.n_validation) == (len(training), 90)


def test_labels_can_be_learnt_as_sure_as_they_are():
    frame, labels, groups = case()
    sure = np.eye(3)[labels]
    one, other = (sweep(frame, labels, groups, 3, LIGHTGBM, SMALL, posteriors=p) for p in (None, sure))
    pd.testing.assert_frame_equal(one.table, other.table, check_exact=False, atol=1e-3)
    unsure = sweep(frame, labels, groups, 3, LIGHTGBM, SMALL, posteriors=np.full((300, 3), 1 / 3))
    assert unsure.log_loss == pytest.approx(np.log(3), abs=0.01)
    assert unsure.n_training == one.n_training


def test_a_share_of_the_rows_is_looked_at():
    frame, labels, groups = case()
    search = SMALL.model_copy(update={"n_trials": 1, "row_share": 0.5, "unseen_share": 0})
    found = sweep(frame, labels, groups, 3, LIGHTGBM, search)
    assert (found.n_training, found.n_validation) == (105, 45)


def test_the_same_seed_finds_the_same_and_rows_without_a_label_do_not_count():
    frame, labels, groups = case()
    hidden = np.where(np.arange(300) % 7 == 0, -1, labels)
    one = sweep(frame, hidden, groups, 3, LIGHTGBM, SMALL)
    wild = frame.mask(pd.Series(hidden == -1), 1e6)
    other = sweep(wild, hidden, groups, 3, LIGHTGBM, SMALL)
    pd.testing.assert_frame_equal(one.table, other.table)
    assert one.params == other.params


def test_an_interrupted_sweep_goes_on_and_ends_like_an_unbroken_one(tmp_path, monkeypatch):
    frame, labels, groups = case()
    own, fits = search_module._boosted, []

    def boosted(*arguments):
        fits.append(1)
        if len(fits) == 3:
            raise KeyboardInterrupt
        return own(*arguments)

    monkeypatch.setattr(search_module, "_boosted", boosted)
    with pytest.raises(KeyboardInterrupt):
        sweep(frame, labels, groups, 3, LIGHTGBM, SMALL, journal=tmp_path / "journal.log")
    resumed = sweep(frame, labels, groups, 3, LIGHTGBM, SMALL, journal=tmp_path / "journal.log")
    assert (resumed.n_resumed, len(fits)) == (2, 5)
    pd.testing.assert_frame_equal(resumed.table, sweep(frame, labels, groups, 3, LIGHTGBM, SMALL).table)


def test_a_search_whose_trials_have_no_figure_ends_in_one_line(monkeypatch):
    monkeypatch.setattr(search_module, "_boosted", lambda *_: float("nan"))
    frame, labels, groups = case(100)
    with pytest.raises(BadInput, match="search: 4 trials without a log loss; expected finite features"):
        sweep(frame, labels, groups, 3, LIGHTGBM, SMALL)


@pytest.mark.slow
def test_a_killed_sweep_goes_on_ends_like_an_unbroken_one_and_repeats_no_finished_trial(tmp_path, monkeypatch):
    frame, labels, groups = case()
    journal = tmp_path / "journal.log"
    (tmp_path / "tests_search_case.py").write_text(
        f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom test_search import case\n"
    )
    script = KILLED.format(params=LIGHTGBM.model_dump_json(), search=SMALL.model_dump_json(), journal=str(journal))
    root = Path(search_module.__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{tmp_path}"}
    killed = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    fits = []
    own = search_module._boosted
    monkeypatch.setattr(search_module, "_boosted", lambda *arguments: fits.append(1) or own(*arguments))
    resumed = sweep(frame, labels, groups, 3, LIGHTGBM, SMALL, journal=journal)
    assert resumed.n_resumed == 2
    assert len(fits) == 2  # of four: the one that was killed, and the last
    unbroken = sweep(frame, labels, groups, 3, LIGHTGBM, SMALL)
    assert resumed.params == unbroken.params
    pd.testing.assert_frame_equal(resumed.table, unbroken.table)


def test_a_finished_sweep_is_read_from_its_journal_and_may_be_made_longer(tmp_path):
    frame, labels, groups = case()
    journal = tmp_path / "journal.log"
    first = sweep(frame, labels, groups, 3, LIGHTGBM, SMALL, journal=journal)
    longer = sweep(frame, labels, groups, 3, LIGHTGBM, SMALL.model_copy(update={"n_trials": 6}), journal=journal)
    assert (first.n_resumed, longer.n_resumed, len(longer.table)) == (0, 4, 6)
    assert longer.log_loss <= first.log_loss


def test_other_rows_or_settings_start_a_search_of_their_own_in_the_same_journal(tmp_path):
    frame, labels, groups = case()
    journal, search = tmp_path / "journal.log", SMALL.model_copy(update={"n_trials": 1})
    sweep(frame, labels, groups, 3, LIGHTGBM, search, journal=journal)
    for changed in ({"frame": frame + 1}, {"labels": (labels + 1) % 3}, {"params": ClassifierParams(seed=5)}):
        asked = {"frame": frame, "labels": labels, "groups": groups, "k": 3, "params": LIGHTGBM, **changed}
        assert sweep(**asked, search=search, journal=journal).n_resumed == 0


@pytest.mark.parametrize("method", ["lightgbm", "forest"])
def test_one_shape_in_the_earlier_rows_and_a_new_one_later_give_an_answer(method):
    frame, _, groups = case(100)
    labels = np.r_[np.zeros(70), np.ones(30)].astype(int)
    search = SMALL.model_copy(update={"n_trials": 2})
    found = sweep(frame, labels, groups, 2, ClassifierParams(method=method, min_leaf=5), search)
    assert found.log_loss == pytest.approx(-np.log(1e-6))


def test_a_shape_that_only_later_rows_have_costs_a_stated_loss():
    frame, labels, groups = case(100)
    labels = np.where(np.arange(100) < 70, labels % 2, 2)
    found = sweep(frame, labels, groups, 3, LIGHTGBM, SMALL.model_copy(update={"n_trials": 1}))
    assert found.log_loss == pytest.approx(-np.log(1e-6))


def test_a_part_without_a_label_is_refused_in_one_line():
    frame, labels, groups = case(100)
    with pytest.raises(BadInput, match="training rows: no labelled row in one part of 100"):
        sweep(frame, np.where(np.arange(100) < 70, labels, -1), groups, 3, LIGHTGBM, SMALL)
