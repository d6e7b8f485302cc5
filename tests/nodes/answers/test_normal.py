"""What normal is: what is known to be stressed, disturbed or failed teaches no detector."""

from dataclasses import replace

import numpy as np
import pandas as pd

from tasks.nodes.answers import answer, learn
from tasks.nodes.evaluate.detection import case_of
from tasks.nodes.evaluate.splits import Split
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams

QUICK = ScoreParams(resamples=100)


def spoiled(history):
    """The first execution failed, the second was disturbed, the third stressed."""
    n = len(history.executions)
    told = {
        "status": ["failed"] + ["completed"] * (n - 1),
        "is_contaminated": pd.array([False, True] + [pd.NA] * (n - 2), dtype="boolean"),
        "is_stressed": pd.array([False, False, True] + [pd.NA] * (n - 3), dtype="boolean"),
    }
    return replace(history, executions=history.executions.assign(**told))


def test_an_evaluation_learns_what_is_normal_from_what_nothing_is_known_against(campaign):
    history, tables = campaign(nodes=1, runs=6, types=1, stressed=0.0)
    everything, nothing = np.ones(6, dtype=bool), np.zeros(6, dtype=bool)
    split = Split("all", everything, nothing, nothing)
    case = case_of(spoiled(history), split, lambda of, mask: tables, 0)
    assert case.is_normal.tolist() == [False, False, False, True, True, True]
    assert case.is_train.all()


def test_what_stress_does_to_a_node_says_nothing_against_it(campaign):
    history, _ = campaign(nodes=2, runs=30, types=1, quality={})
    preprocessor, reference = learn(history, PreprocessParams(), QUICK)
    found = answer(history, preprocessor, reference, QUICK)
    assert found.watched["n_executions"].tolist() == [24, 24]  # of 30 each a fifth was stressed
    assert found.watched["n_low"].sum() <= 1


def test_emulated_nodes_are_called_so_in_the_words_of_a_reference(campaign):
    history, _ = campaign(nodes=2, runs=5, types=1, stressed=0.0)
    is_first = history.executions["node"] == "node-1"
    history = replace(history, executions=history.executions.assign(is_emulated=is_first))
    assert learn(history, PreprocessParams(), QUICK)[1].stated == "node-1 (emulated), node-2"
    many, _ = campaign(nodes=4, runs=5, types=1, stressed=0.0)
    many = replace(many, executions=many.executions.assign(is_emulated=True))
    assert learn(many, PreprocessParams(), QUICK)[1].stated == "4 nodes, 4 of them emulated"
