"""Tarema as published shows its faults on small fleets."""

import numpy as np
import pandas as pd
import pytest

from tasks.advice.params import GroupParams
from tasks.advice.tarema import published_groups, tarema_groups
from tasks.errors import BadInput


def test_the_originals_variant_always_makes_three_groups_and_the_largest_unit_decides():
    # second column in bytes a second: only its order matters, so the two kinds of the first are mixed
    scores = np.array([[1.0, 1e9], [1.0, 2e9], [5.0, 2.01e9], [5.0, 3e9]])
    groups = tarema_groups(scores, np.random.default_rng(0)).groups
    assert len(set(groups.tolist())) == 3
    assert groups[1] == groups[2]
    with pytest.raises(BadInput, match="2 machines; expected at least 3"):
        tarema_groups(scores[:2], np.random.default_rng(0))


def test_the_originals_groups_are_numbered_from_the_best_and_stand_beside_ours():
    frame = pd.DataFrame(
        [
            (name, aspect, score)
            for name, score in (("slow", 1.0), ("fast", 9.0), ("mid", 3.0))
            for aspect in ("a", "b")
        ],
        columns=["machine", "aspect", "score"],
    )
    assert published_groups(frame, GroupParams()) == {"fast": 1, "mid": 2, "slow": 3}
    assert published_groups(frame[frame["machine"] != "mid"], GroupParams()) == {}
