"""The rivals of K-means: alike where shapes are far apart, lopsided where one job is strange."""

import numpy as np

from tasks.jobs.pmf import bins_of
from tasks.jobs.rival_clusterings import rival_clusterings
from tasks.jobs.shape_params import BinParams, ShapeParams

RATIO = bins_of("ratio", BinParams(n_bins=100))


def test_rival_clusterings_of_well_separated_shapes_agree_and_show_their_imbalance(planted, counts_of):
    values, groups, kinds = planted(n_jobs=20, n_runs=200)
    found = rival_clusterings(counts_of(values, groups), RATIO, ShapeParams(k=2, n_init=2, smoothing_bins=10))
    assert [one.method for one in found] == ["k-means", "agglomerative (average)", "hierarchical (complete)"]
    for one in found:
        assert one.largest_share == 0.5
        assert len({(kind, label) for kind, label in zip(kinds, one.labels, strict=True)}) == 2


def test_one_strange_job_makes_single_linkage_lopsided(planted, counts_of):
    values, groups, _ = planted(n_jobs=20)
    strange = np.r_[values, np.full(60, 50.0)], np.r_[groups, np.full(60, 20)]
    params = ShapeParams(k=2, n_init=2, agglomerative_linkage="single", hierarchical_linkage="single")
    found = rival_clusterings(counts_of(*strange), RATIO, params)
    assert found[1].largest_share == found[2].largest_share == 20 / 21


def test_of_many_groups_a_sample_is_linked(planted, counts_of):
    values, groups, _ = planted(n_jobs=12)
    for one in rival_clusterings(counts_of(values, groups), RATIO, ShapeParams(k=2, n_init=1, max_linked_groups=8)):
        assert (one.labels >= 0).sum() == 8


def test_a_single_group_is_one_cluster_to_all_of_them(planted, counts_of):
    values, groups, _ = planted(n_jobs=1)
    found = rival_clusterings(counts_of(values, groups), RATIO, ShapeParams(k=1))
    assert [one.largest_share for one in found] == [1, 1, 1]
