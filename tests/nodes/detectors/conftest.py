"""A drawn campaign of which the first part is learned from."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def campaign():
    """A function: a drawn history, and a case that learns from its first 60 %."""
    from tasks.nodes.aspects import is_unstressed
    from tasks.nodes.detectors.case import Case
    from tasks.nodes.preprocess.params import PreprocessParams
    from tasks.nodes.synthetic import synthetic_history
    from tasks.nodes.tabulating import learn_tables

    def drawn(**asked):
        history = synthetic_history(**asked)
        is_train = np.arange(len(history.executions)) < 0.6 * len(history.executions)
        is_normal = is_train & is_unstressed(history.executions).to_numpy(dtype=bool)
        tables = learn_tables(history, is_train, PreprocessParams())
        return Case(history, tables, is_train, is_normal, ~is_train)

    return drawn
