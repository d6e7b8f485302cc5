"""Small histories with known truth, small networks, and one way to make a case of a split."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.evaluate.detection import case_of, splits_of
from tasks.nodes.params import (
    EvaluateParams,
    FitParams,
    GraphParams,
    InjectionParams,
    LearnedParams,
    LossParams,
    ModelParams,
    NetworkParams,
    ScoreParams,
)
from tasks.nodes.preprocess.fitting import learn_tables
from tests.nodes.synthetic import synthetic_history

SMALL = ModelParams(
    graph=GraphParams(node_metrics=False),
    network=NetworkParams(hidden=8, intermediate=8, heads=1),
    loss=LossParams(mined_per_type=8),
    fit=FitParams(epochs=2, batch_size=64),
)

INJECTED = InjectionParams(repeats=1)


def prepared_tables(history, is_train):
    """Tables by the preprocessing of the protocol."""
    return learn_tables(history, is_train, EvaluateParams().preprocess)


def without_labels(history):
    """The history of which nobody says what was stressed."""
    labels = pd.array([pd.NA] * len(history.executions), dtype="boolean")
    return replace(history, executions=history.executions.assign(is_stressed=labels))


def times(history, factor, rows):
    """The history with all values of some executions, a mask, multiplied."""
    is_touched = rows[history.metrics["execution"].to_numpy()]
    value = history.metrics["value"].to_numpy()
    return replace(history, metrics=history.metrics.assign(value=np.where(is_touched, factor * value, value)))


@pytest.fixture(scope="session")
def asked():
    """A function: the parameters of an evaluation with a small network, some of learned.* replaced."""

    def made(injection=INJECTED, **learned):
        content = {"variants": ("ours",), "seeds": 2, "model": SMALL, **learned}
        return EvaluateParams(
            score=ScoreParams(resamples=100), resamples=100, repeats=2, learned=LearnedParams(**content),
            injection=injection,
        )  # fmt: skip

    return made


@pytest.fixture(scope="session")
def history():
    """Two nodes, two types, 24 runs of each, a fifth of them stressed."""
    return synthetic_history(nodes=2, types=2, runs=24, seed=1)


@pytest.fixture(scope="session")
def longer():
    """The same with 60 runs of each, so that each part of a random split has graphs of its own."""
    return synthetic_history(nodes=2, types=2, runs=60, seed=1)


@pytest.fixture(scope="session")
def prepare():
    """prepared_tables."""
    return prepared_tables


@pytest.fixture(scope="session")
def unlabelled():
    """without_labels."""
    return without_labels


@pytest.fixture(scope="session")
def multiplied():
    """times."""
    return times


@pytest.fixture(scope="session")
def case_by():
    """A function: a history, a protocol and parameters to the first split of it and its case."""

    def made(history, protocol, params):
        split = splits_of(history.executions, protocol, params)[0][0]
        return split, case_of(history, split, params)

    return made
