"""The paper's method in numbers: thresholds by hand, and the table that the trees read."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tasks.workloads.evaluate.paper import (
    by_distance,
    fit_paper,
    table_iii,
    table_iii_figures,
    threshold_figures,
    threshold_rows,
)
from tasks.workloads.identify.phases import Fingerprint


def one_phase(workload, value):
    """A run of one phase that is one number."""
    phase = np.array([[float(value)]])
    return Fingerprint(f"{workload}-{value}", workload, ("c",), (), (), np.array([0, 1]), phase)


KNOWN = [one_phase("a", 0), one_phase("a", 2), one_phase("b", 10), one_phase("b", 14)]
RADII = {"a": 2.0, "b": 4.0}


def rows(known, tested, radii):
    classes = tuple(sorted({one.workload for one in known}))
    model = SimpleNamespace(known=known, trees=SimpleNamespace(classes=classes), radii={"ed": radii, "dtw": radii})
    return pd.DataFrame(threshold_rows(model, tested))


def test_workloads_that_differ_are_named_by_trees_and_distances(campaign):
    runs = campaign(rounds=6)
    model = fit_paper(runs[:24], runs[0].counters, 0, {})
    made_of, features = model.describe(runs[24:], {})
    assert model.trees.workloads(features) == [run.workload for run in runs[24:]]
    told, _ = by_distance(model, made_of, "dtw")
    assert np.mean([a == run.workload for a, run in zip(told, runs[24:], strict=True)]) >= 0.8


def test_the_radius_by_hand():
    """a at 2.4 is 0.4 from a, 7.6 from b; a at 6 is 4 from both; b at 12.5 is 1.5 from b, 10.5 from a. Only 4 is too
    far from a; b takes a at 6 (4 is its mean)."""
    table = rows(KNOWN, [one_phase("a", 2.4), one_phase("a", 6), one_phase("b", 12.5)], RADII)
    [own] = table[table["measure"] == "ed"].to_dict("records")
    assert [own[name] for name in ("n_own", "n_rejected", "n_other", "n_accepted")] == [3, 1, 3, 1]
    once = rows([one_phase("a", 0), one_phase("b", 9)], [one_phase("a", 0)], {})
    assert (once["n_rejected"] == 1).all() and (once["n_accepted"] == 0).all()


def test_figures_add_up_over_splits_and_name_the_radius():
    table = rows(KNOWN, [one_phase("a", 2.4), one_phase("a", 6), one_phase("b", 12.5)], RADII)
    figures = threshold_figures(pd.concat([table, table]))
    assert figures["threshold.false_reject.radius.workload.ed"] == pytest.approx(1 / 3)
    assert figures["threshold.false_reject"] == figures["threshold.false_reject.radius.workload.dtw"]
    missing = threshold_figures(pd.DataFrame(), "one workload")
    assert missing["threshold.false_reject"] is None and missing["threshold.false_reject.reason"] == "one workload"


def test_table_iii_says_what_an_unknown_workload_was_taken_for():
    table = table_iii({"bayes": ["cnn", "cnn", "redis"]}, ["cnn", "redis"], {"bayes": [True, True, False]})
    figures = table_iii_figures(table)
    assert figures["paper.share.bayes.cnn"] == pytest.approx(2 / 3)
    assert figures["paper.said_unknown"] == pytest.approx(2 / 3)
    assert table_iii_figures(pd.DataFrame(), "no runs of cnn")["paper.share.reason"] == "no runs of cnn"
