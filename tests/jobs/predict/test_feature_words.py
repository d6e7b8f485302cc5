"""Every feature has words, a unit and a place."""

import pytest

from tasks.errors import NotFound
from tasks.jobs.columns import KNOWN_AFTER
from tasks.jobs.predict.feature_words import FEATURES, OPPOSITES, feature_of, in_order, pattern_of

KINDS = ["intrinsic", "resource", "environment", "vertices", "tokens", "history"]


def test_words_name_the_sku_the_operator_and_the_shape():
    assert feature_of("sku_load_mean_gen3").words == "load of SKU gen3 at submission"
    assert feature_of("op_HASH_JOIN").words == "HASH JOIN operators in the plan"
    assert feature_of("shape_delta_11").words == "evidence of earlier runs for delta shape 11"
    assert feature_of("vertex_share_gen_4_mean").words == "share of the job's earlier vertices on SKU gen_4"


def test_a_name_that_also_fits_a_pattern_is_itself():
    assert pattern_of("n_vertices_mean") == "n_vertices_mean"
    assert pattern_of("load_mean") == "load_mean"
    assert pattern_of("vertices_gen3_mean") == "vertices_<sku>_mean"


def test_every_feature_can_be_said_high_and_low():
    for feature in FEATURES.values():
        assert feature.words and feature.higher in OPPOSITES and feature.lower == OPPOSITES[feature.higher]


def test_kinds_stand_together_in_the_order_of_the_paper():
    kinds = [feature.kind for feature in FEATURES.values()]
    assert kinds == sorted(kinds, key=KINDS.index)


def test_shapes_are_ordered_by_number_and_skus_by_name():
    names = ["shape_ratio_10", "n_before", "shape_ratio_9", "op_B", "op_A", "input_bytes"]
    assert in_order(names) == ["input_bytes", "op_A", "op_B", "n_before", "shape_ratio_9", "shape_ratio_10"]


@pytest.mark.parametrize("name", ["runtime_s", "cpu_s", "used_cpus", "ended_at", "n_vertices", "wait_s", *KNOWN_AFTER])
def test_what_is_known_only_after_a_run_is_no_feature(name):
    with pytest.raises(NotFound, match=f"feature '{name}': no feature has this name"):
        feature_of(name)
