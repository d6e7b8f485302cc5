"""Which of two models is the better one."""

import pytest

from tasks.nodes.perona.trained import (
    Measured,
    is_better,
)


@pytest.mark.parametrize(
    ("new", "old", "direction", "expected"),
    [
        (0.9, 0.8, "higher", True),
        (0.8, 0.9, "higher", False),
        (0.8, 0.8, "higher", False),
        (0.8, 0.9, "lower", True),
        (0.9, 0.8, "lower", False),
        (None, 0.8, "higher", False),
        (float("nan"), None, "higher", False),
        (0.1, None, "higher", True),
        (0.1, float("nan"), "lower", True),
    ],
)
def test_a_model_is_better_only_by_a_known_figure(new, old, direction, expected):
    assert is_better(new, old, direction) is expected


def test_errors_are_better_small_and_precision_large():
    assert Measured({}, "auprc").direction == "higher"
    assert Measured({}, "error_ratio").direction == "lower"
