"""A threshold is no lower than calm executions allow."""

import numpy as np
import pytest

from tasks.nodes.evaluate.thresholds import MOST_FALSE_ALARMS, guarded


def test_at_most_the_stated_share_of_calm_executions_lies_above_the_threshold():
    calm = np.random.default_rng(0).permutation(np.arange(100.0))
    assert guarded(50.0, calm) == 96  # 97, 98 and 99 above it are 3 of 100
    assert guarded(98.5, calm) == 98.5  # a higher one stays
    assert guarded(-np.inf, calm[:0]) == -np.inf and guarded(1.0, np.full(3, np.nan)) == 1.0


@pytest.mark.parametrize("n", [1, 7, 33, 34, 250])
def test_of_few_calm_executions_none_is_flagged(n):
    calm = np.random.default_rng(n).normal(size=n)
    share = (calm > guarded(-np.inf, calm)).mean()
    assert share <= MOST_FALSE_ALARMS < share + 1 / n


def test_equal_scores_are_flagged_together_or_not_at_all():
    """The fourth largest of 100 is among ten alike: to flag three of them would be to flag all ten."""
    calm = np.append(np.zeros(90), np.ones(10))
    assert guarded(-1.0, calm) == 1.0
