"""Families of features: every feature has one, and correlated features share it."""

from typing import get_args

import numpy as np
import pytest

from tasks.jobs.explain.causes import FAMILIES, RECORDED, by_family, family_of
from tasks.jobs.explain.contributions import Contributions
from tasks.jobs.predict.feature_words import FEATURES
from tasks.jobs.record.rows import Cause


@pytest.mark.parametrize("pattern", FEATURES)
def test_every_feature_of_the_catalogue_has_a_family(pattern):
    name = pattern.replace("<sku>", "gen4").replace("<operator>", "HASH_JOIN").replace("<k>", "3")
    assert family_of(name) != "other"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("input_ratio", "input"),
        ("estimated_cost", "input"),
        ("requested_tokens", "tokens"),
        ("peak_tokens_sd", "tokens"),
        ("spare_tokens_mean", "spare tokens"),
        ("sku_free_tokens_gen3", "spare tokens"),
        ("sku_load_sd_gen3", "load"),
        ("load_mean", "load"),
        ("offered_gen5", "SKU"),
        ("vertex_share_gen5_mean", "SKU"),
        ("n_vertices_mean", "plan"),
        ("op_WINDOW", "plan"),
        ("requested_memory_bytes", "memory"),
        ("temp_bytes_mean", "memory"),
        ("requested_runtime_s", "requested time"),
        ("n_before", "history"),
        ("shape_ratio_3", "history"),
        ("wait_mean_s", "queue"),
        ("colour", "other"),
    ],
)
def test_a_feature_belongs_to(name, family):
    assert family_of(name) == family


def test_every_cause_that_a_recording_knows_is_placed():
    assert set(RECORDED) == set(get_args(Cause)) - {"none", "not_measured"}
    assert {family for family in RECORDED.values() if family} <= set(FAMILIES)


def test_features_of_one_family_are_summed_and_nothing_is_lost():
    values = np.array([[[1.0], [2.0], [4.0], [-8.0]]])
    parts = Contributions(values, np.zeros((1, 1)), ("input_bytes", "load_sd", "input_ratio", "load_mean"))
    sums, families = by_family(parts)
    assert families == ("input", "load")
    assert sums.tolist() == [[5.0, -6.0]]
