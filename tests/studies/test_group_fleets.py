"""The plain groupings that the study of fleets compares with recover kinds that are far apart."""

import numpy as np

from tests.studies.group_fleets import noise_cut_groups, silhouette_groups


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
