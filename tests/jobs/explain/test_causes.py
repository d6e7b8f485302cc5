"""Families of features, and whether the reasons name the recorded cause: worked out by hand."""

from typing import get_args

import numpy as np
import pytest

from tasks.jobs.explain.causes import (
    FAMILIES,
    RECORDED,
    by_family,
    check_causes,
    family_of,
    reciprocal_ranks,
)
from tasks.jobs.explain.contributions import Contributions
from tasks.jobs.predict.feature_words import FEATURES
from tasks.jobs.record.rows import Cause


@pytest.mark.parametrize("pattern", FEATURES)
def test_every_feature_of_the_catalogue_has_a_family(pattern):
    name = (
        pattern.replace("<sku>", "gen4")
        .replace("<operator>", "HASH_JOIN")
        .replace("<k>", "3")
        .replace("<peers>", "job")
    )
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
        ("job_median10", "history"),
        ("log_last", "history"),
        ("request_limit_share", "history"),
        ("user_request_since", "history"),
        ("input_usual", "input"),
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


NAMES = ("input_bytes", "load_mean", "requested_tokens")


def one_score(values, names=NAMES):
    values = np.asarray(values, dtype=float)
    return Contributions(values[:, :, None], np.zeros((len(values), 1)), names)


def check(values, recorded, groups=None, **more):
    groups = groups if groups is not None else [f"job {i}" for i in range(len(recorded))]
    return check_causes(one_score(values), recorded, groups, np.random.default_rng(0), n_resamples=200, **more)


def test_ranks_count_from_the_largest_and_ties_share_them():
    scores = np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    found = reciprocal_ranks(scores, np.array([2, 0, 1]))
    assert found.tolist() == pytest.approx([1 / 2, (1 / 2 + 1 / 3) / 2, (1 + 1 / 2 + 1 / 3) / 3])


def test_four_runs_worked_out_by_hand():
    """Ranks 1, 2 and 3. Random: (1 + 1/2 + 1/3) / 3. Mean absolute contributions 1.25, 1, 0.75: input, load, tokens."""
    values = [[2.0, 0.0, -1.0], [1.0, 0.5, 0.0], [1.0, 2.0, 0.0], [-1.0, 1.5, -2.0]]
    found = check(values, ["big_input", "load", "few_tokens", "none"])
    assert (found.n_runs, found.families) == (3, ("input", "tokens", "load"))
    assert found.mrr.value == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert found.random == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert found.importance.value == pytest.approx(0.0)
    assert {one.cause: (one.n_runs, one.mrr, one.first, one.importance) for one in found.by_cause} == {
        "big_input": (1, 1.0, 1.0, 1.0),
        "few_tokens": (1, pytest.approx(1 / 3), 0.0, pytest.approx(1 / 3)),
        "load": (1, 0.5, 0.0, 0.5),
    }


def test_what_shortens_a_run_is_no_reason_for_its_length():
    found = check([[-9.0, 0.1, 0.2]], ["big_input"])
    assert found.mrr.value == pytest.approx(1 / 3)


def test_causes_that_no_feature_shows_are_counted_apart():
    values = np.tile([1.0, 2.0, 3.0], (6, 1))
    found = check(values, ["lock", "cold_cache", "cold_cache", "spill", "few_tokens", None])
    assert found.not_shown == {"lock": 1, "cold_cache": 2, "spill": 1}  # no feature of memory here
    assert (found.n_runs, found.mrr.value) == (1, 1.0)


def test_reasons_that_name_the_cause_beat_every_order_that_looks_at_no_run():
    rng = np.random.default_rng(4)
    cause = rng.integers(3, size=300)
    values = rng.normal(size=(300, 3)) * 0.1
    values[np.arange(300), cause] += 1.0
    recorded = np.array(["big_input", "load", "few_tokens"])[cause].tolist()
    found = check(values, recorded, rng.integers(40, size=300))
    assert found.mrr.value == pytest.approx(1.0)
    assert found.mrr.value > found.random
    assert found.importance.low > 0
    assert found.frequency.low > 0
    assert found.even == pytest.approx(1.0)
    assert found.even_frequency == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_reasons_that_mean_nothing_are_as_good_as_random():
    rng = np.random.default_rng(4)
    recorded = np.array(["big_input", "load", "few_tokens"])[rng.integers(3, size=3000)].tolist()
    found = check(rng.normal(size=(3000, 3)), recorded, rng.integers(100, size=3000))
    assert found.mrr.low < found.random < found.mrr.high


def test_a_rare_cause_counts_as_much_as_a_frequent_one_in_the_even_mean():
    values = np.tile([0.0, 2.0, 1.0], (10, 1))
    found = check(values, ["load"] * 9 + ["big_input"])
    assert found.mrr.value == pytest.approx((9 + 1 / 3) / 10)
    assert found.even == pytest.approx((1 + 1 / 3) / 2)


def test_the_order_by_importance_can_come_from_other_runs():
    values = [[2.0, 1.0, 0.0]] * 3
    training = one_score([[0.0, 5.0, 1.0]])
    found = check(values, ["load"] * 3, importance_of=training)
    assert found.mrr.value - found.importance.value == pytest.approx(1.0)


def test_the_order_by_frequency_can_come_from_the_causes_of_other_runs():
    """Of the training runs two had load and one few tokens: load is first, tokens second, input third."""
    values = [[3.0, 2.0, 1.0]] * 2
    earlier = ["load", "few_tokens", "load", "none", "lock", None]
    found = check(values, ["big_input", "load"], frequency_of=earlier)
    assert found.mrr.value == pytest.approx((1 + 1 / 2) / 2)
    assert found.mrr.value - found.frequency.value == pytest.approx((1 / 3 + 1) / 2)
    assert found.even_frequency == pytest.approx((1 / 3 + 1) / 2)
    of_themselves = check(values, ["big_input", "load"])  # both causes once: they share the ranks 1 and 2
    assert of_themselves.even_frequency == pytest.approx(3 / 4)


def test_without_a_recorded_cause_there_is_no_figure_but_a_reason():
    found = check([[1.0, 2.0, 3.0]] * 2, ["none", None])
    assert (found.mrr.value, found.random, found.even, found.by_cause) == (None, None, None, ())
    assert found.reason == "no run has a recorded cause of which the features can tell"


def test_lengths_that_differ_are_refused():
    with pytest.raises(ValueError, match="recorded causes: 1 for 2 runs of 1 groups"):
        check([[1.0, 2.0, 3.0]] * 2, ["load"])
