import numpy as np
import pandas as pd
import pytest

from tasks.workloads.evaluate import partial_figures
from tasks.workloads.evaluate.cohort import cohort_of
from tasks.workloads.evaluate.known import try_split
from tasks.workloads.evaluate.params import EvaluateParams, SampleParams, WindowParams
from tasks.workloads.evaluate.partial import Partial, _first, _middle, from_the_middle, online
from tasks.workloads.evaluate.partial_figures import partial_results
from tasks.workloads.evaluate.splits import splits_of
from tasks.workloads.evaluate.windows import cut
from tasks.workloads.identify.params import IdentifyParams, TreeParams

QUICK = IdentifyParams(trees=TreeParams(rounds=8, seeds=1, feature_fraction=0.5))
PARAMS = EvaluateParams(identify=QUICK, sample=SampleParams(repeats=1))


@pytest.mark.parametrize(
    ("interval_s", "seconds", "n"), [(1.0, 5, 5), (2.0, 5, 2), (0.1, 0.3, 3), (1.0, 90, 30), (10.0, 5, 2)]
)
def test_the_first_seconds_hold_the_samples_whose_intervals_end_in_them(draw, interval_s, seconds, n):
    run = draw("redis", "a", interval_s=interval_s)
    part = _first(run, seconds)
    np.testing.assert_array_equal(part.values, run.values[:n])  # noqa: PD011
    np.testing.assert_array_equal(part.at_s, run.at_s[:n])


def test_the_middle_is_the_half_between_the_quarters(draw):
    run = draw("redis", "a", n_samples=40)
    part = _middle(run)
    np.testing.assert_array_equal(part.values, run.values[10:30])  # noqa: PD011
    np.testing.assert_array_equal(part.at_s, np.arange(20.0))


def trials(runs):
    cohort = cohort_of(cut(runs, WindowParams()).items, QUICK.fingerprint)
    split = splits_of(cohort.items, "random", PARAMS).splits[0]
    return cohort, [try_split(cohort, split, QUICK)]


def test_workloads_whose_levels_differ_are_known_early_and_from_a_window(campaign):
    cohort, tried = trials(campaign(rounds=6))
    early = online(cohort, tried, 5, QUICK).table.set_index("method")
    assert early.loc["trees", "accuracy"] == 1
    assert 1 / 3 < early.loc["trees", "confidence"] <= 1
    middle = from_the_middle(cohort, tried, QUICK).table
    assert len(middle) == 6 and (middle["n"] == len(tried[0].test)).all()


def test_what_cannot_be_cut_says_why(campaign):
    cohort, tried = trials(campaign(interval_s=2.0))
    assert "no run lasts 90 s; the longest 60 s" in online(cohort, tried, 90, QUICK).reason
    assert "fewer than 2 samples in 3 s" in online(cohort, tried, 3, QUICK).reason
    assert online(cohort, tried, 60, QUICK).reason == ""


def test_a_figure_without_a_method_is_of_what_names_a_run(campaign, monkeypatch):
    """Trees and distances together, as `whorl workloads identify` names it; the trees' stand under their name."""
    shares = {"trees": 0.5, "model": 0.75, "forest": 0.25}
    rows = [{"split": "s", "method": method, "accuracy": x, "macro_f1": x / 2} for method, x in shares.items()]
    monkeypatch.setattr(partial_figures, "from_the_middle", lambda *_: Partial(pd.DataFrame(rows)))
    figures = partial_results(*trials(campaign()), PARAMS.model_copy(update={"online_s": [5]}), "").figures
    assert (figures["window.accuracy"], figures["window.accuracy.trees"]) == (0.75, 0.5)
    assert (figures["window.macro_f1"], figures["window.macro_f1.model"]) == (0.375, 0.375)
