"""Tarema as published shows its faults on small fleets; plain groupings recover kinds that are far apart."""

import numpy as np
import pytest

from tasks.advice.tarema import noise_cut_groups, silhouette_groups, tarema_groups
from tasks.errors import BadInput


def test_the_originals_variant_always_makes_three_groups_and_the_largest_unit_decides():
    # second column in bytes a second: only its order matters, so the two kinds of the first are mixed
    scores = np.array([[1.0, 1e9], [1.0, 2e9], [5.0, 2.01e9], [5.0, 3e9]])
    groups = tarema_groups(scores, np.random.default_rng(0)).groups
    assert len(set(groups.tolist())) == 3
    assert groups[1] == groups[2]
    with pytest.raises(BadInput, match="2 machines; expected at least 3"):
        tarema_groups(scores[:2], np.random.default_rng(0))


def test_plain_groupings_recover_kinds_that_are_far_apart():
    expected = np.repeat([0, 1, 2], 5)
    centres = np.log([[4.0, 3.0, 2.0], [2.0, 3.0, 1.0], [1.0, 1.0, 1.0]])
    log_scores = centres[expected] + 0.02 * np.random.default_rng(0).standard_normal((15, 3))
    cut = noise_cut_groups(log_scores, np.full(3, 0.02))
    for groups in (silhouette_groups(log_scores, np.random.default_rng(0)), cut):
        assert len(set(zip(groups.tolist(), expected.tolist(), strict=True))) == 3 == len(set(groups.tolist()))


def test_the_tree_cut_at_the_noise_keeps_machines_of_one_kind_together():
    log_scores = 0.02 * np.random.default_rng(1).standard_normal((15, 3))
    assert set(noise_cut_groups(log_scores, np.full(3, 0.02)).tolist()) == {0}
    assert len(set(silhouette_groups(log_scores, np.random.default_rng(0)).tolist())) > 1  # it cannot answer one
