from dataclasses import replace

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.evaluate.items import cut, splits_of
from tasks.workloads.evaluate.known import (
    METHODS,
    NOT_COMMON,
    cohort_of,
    counter_figures,
    counter_table,
    first_seconds,
    known_figures,
    nnls_shares,
    partial_results,
    split_predictions,
    try_split,
)
from tasks.workloads.params import EvaluateParams, IdentifyParams, WindowParams
from tasks.workloads.telemetry import Counter

PARAMS = IdentifyParams()


def without(run, name):
    kept = [at for at, counter in enumerate(run.counters) if counter.name != name]
    return replace(run, counters=tuple(run.counters[at] for at in kept), values=run.values[:, kept])


def cohort(runs):
    return cohort_of(cut(runs, WindowParams()).items, PARAMS)


def first_trial(runs):
    found = cohort(runs)
    split = splits_of(found.items, "random", EvaluateParams(repeats=1)).splits[0]
    return found, try_split(found, split, PARAMS)


def test_runs_are_compared_on_the_counters_that_all_have(campaign):
    one, *others = campaign()
    runs = [without(one, "group.counter_3"), *others]
    found = cohort(runs)
    assert "group.counter_3" not in [counter.name for counter in found.counters]
    told = counter_table(runs, found.counters).set_index("counter")
    assert told.loc["group.counter_3", ["reason", "n_runs"]].tolist() == [NOT_COMMON, len(runs) - 1]
    assert counter_figures(told.reset_index())["counters.not_common"] == 1


def test_give_aways_are_left_out_and_told(campaign):
    given = Counter("disk_free", "bytes")
    runs = [
        replace(run, counters=(*run.counters, given), values=np.column_stack([run.values, np.ones(run.n_samples)]))
        for run in campaign(rounds=1)
    ]
    told = counter_figures(counter_table(runs, cohort(runs).counters))
    assert told["counters.giveaways.names"] == "disk_free" and told["counters.n"] == 6


def test_runs_without_a_common_counter_are_one_clear_line(draw):
    odd = replace(draw("mysql", "b"), counters=tuple(Counter(f"other_{at}") for at in range(6)))
    with pytest.raises(BadInput, match="no counter in common"):
        cohort([draw("redis", "a"), odd])


def test_every_method_names_workloads_that_differ(campaign):
    found, trial = first_trial(campaign(rounds=6))
    told = split_predictions(trial, found.cuts)
    assert set(told.by_method) == set(METHODS)
    for method in METHODS:
        assert told.score(method).accuracy >= (0.8 if method in ("ed", "dtw") else 1), method
    figures = known_figures({"random": [told]}, {}, "random")
    assert figures["known.accuracy"] == figures["known.accuracy.random.model"] == 1


def test_a_figure_without_a_method_is_of_what_names_a_run(campaign):
    """The model, as `whorl workloads identify` names a run; the others stand under their names."""
    found, trial = first_trial(campaign(rounds=4, noise=1.5))
    figures, tables = partial_results(found, [trial], PARAMS, "")
    assert figures["window.accuracy"] == figures["window.accuracy.model"]
    of_model = tables["windows"].set_index("method").loc["model", "accuracy"]
    assert figures["window.accuracy"] == of_model


def test_workloads_whose_levels_differ_are_known_early(campaign):
    figures, _ = partial_results(*(lambda pair: (pair[0], [pair[1]]))(first_trial(campaign(rounds=6))), PARAMS, "")
    assert figures["online.accuracy.5s"] == 1 and 0 < figures["online.confidence.5s"] <= 1


def test_what_cannot_be_cut_says_why(campaign):
    found, trial = first_trial(campaign(n_samples=8, interval_s=3.0))
    figures, _ = partial_results(found, [trial], PARAMS, "")
    assert figures["online.accuracy.30s.reason"] == "no run lasts 30 s; the longest 24 s"
    assert figures["online.accuracy.5s.reason"] == "fewer than 2 samples in 5 s"


@pytest.mark.parametrize(
    ("interval_s", "seconds", "n"), [(1.0, 5, 5), (2.0, 5, 2), (0.1, 0.3, 3), (1.0, 90, 30), (10.0, 5, 2)]
)
def test_the_first_seconds_hold_the_samples_whose_intervals_end_in_them(draw, interval_s, seconds, n):
    run = draw("redis", "a", interval_s=interval_s)
    part = first_seconds(run, seconds)
    np.testing.assert_array_equal(part.values, run.values[:n])
    np.testing.assert_array_equal(part.at_s, run.at_s[:n])


def test_least_squares_find_the_parts_of_a_sum():
    known = np.array([[1.0, 0, 4], [0, 2, 4], [6, 6, 0]])
    shares = nnls_shares(known, np.array([[1.0, 2, 8]]), ["a", "b", "c"])
    assert shares[0, 2] == pytest.approx(0, abs=1e-9) and (shares[0, :2] > 0).all()
