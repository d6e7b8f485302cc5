"""The insights of the paper and rank correlations: worked out by hand, and where the truth is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from tasks.jobs.explain.contributions import Contributions
from tasks.jobs.explain.insights import CLAIMS, judge_history, judge_insights, rank_correlation

RESAMPLES = 300


def correlate(pairs, groups):
    return rank_correlation(pairs, groups, np.random.default_rng(1), n_resamples=RESAMPLES)


def test_the_correlation_is_that_of_the_ranks():
    rng = np.random.default_rng(0)
    x = rng.integers(5, size=200).astype(float)  # with ties
    y = x + rng.normal(0, 2, 200)
    found = correlate([(x, np.exp(y), 1.0)], np.arange(200) // 10)
    assert found.value == pytest.approx(spearmanr(x, y).statistic)
    assert found.low < found.value < found.high
    assert (found.n_runs, found.n_groups) == (200, 20)


def test_several_pairs_count_by_their_weights_and_constant_ones_not_at_all():
    x = np.arange(40.0)
    pairs = [(x, x, 3.0), (x, -x, 1.0), (x, np.zeros(40), 50.0), (np.ones(40), x, 50.0), (x, x, 0.0)]
    assert correlate(pairs, np.arange(40) // 4).value == pytest.approx((3 - 1) / 4)


def test_unknown_values_are_left_out():
    x = np.array([1.0, 2.0, 3.0, np.nan, 5.0])
    y = np.array([2.0, np.nan, 3.0, 0.0, 9.0])
    found = correlate([(x, y, 1.0)], np.arange(5))
    assert found.value == pytest.approx(1.0)
    assert (found.n_runs, found.n_groups) == (3, 3)


def test_runs_of_few_groups_give_a_wider_interval_than_as_many_runs_of_their_own():
    """In each group x and y are the same in all runs: 10 groups are 10 pieces of evidence, not 500."""
    rng = np.random.default_rng(3)
    x, y = np.repeat(rng.normal(size=(2, 10)), 50, axis=1)
    grouped, alone = correlate([(x, y, 1.0)], np.arange(500) // 50), correlate([(x, y, 1.0)], np.arange(500))
    assert grouped.high - grouped.low > 4 * (alone.high - alone.low)


def test_nothing_to_correlate_and_one_group_give_a_reason():
    assert correlate([], []).reason == "nothing that varies and is known"
    one = correlate([(np.arange(5.0), np.arange(5.0), 1.0)], ["a"] * 5)
    assert (one.value, one.low, one.reason) == (pytest.approx(1.0), None, "one group: nothing to draw from")


def known(n_groups=40, n_runs=20, seed=2):
    """Contributions that follow the inputs, go against the load and have nothing to do with the queue or WINDOW."""
    rng = np.random.default_rng(seed)
    n = n_groups * n_runs
    names = ("input_bytes", "load_mean", "sku_load_mean_gen3", "op_WINDOW", "requested_tokens", "queue_length")
    names = (*names, "vertices_gen3_mean", "vertices_gen5_mean", "op_STREAMING_WINDOW")
    frame = pd.DataFrame(rng.normal(size=(n, len(names))), columns=list(names))
    slopes = {"input_bytes": 1.0, "load_mean": -1.0, "sku_load_mean_gen3": -0.5, "vertices_gen5_mean": -1.0}
    values = np.stack([slopes.get(name, 0.0) * frame[name] for name in names], axis=1)
    values[:, names.index("op_WINDOW")] = rng.normal(size=n)
    values[:, names.index("op_STREAMING_WINDOW")] = rng.normal(size=n)
    return Contributions(values[:, :, None], np.zeros((n, 1)), names), frame, np.arange(n) // n_runs, rng


def judged(variation=None, n_groups=None, **columns):
    parts, frame, groups, rng = known()
    groups, frame = groups if n_groups is None else np.arange(len(frame)) % n_groups, frame.assign(**columns)
    seen = np.zeros(len(frame)) if variation is None else variation
    return {one.name: one for one in judge_insights(parts, frame, groups, rng, variation=seen)}


def test_claims_are_told_apart_where_the_truth_is_known():
    found = judged()
    assert {name: one.verdict for name, one in found.items()} == {
        "inputs": "holds",
        "tokens": "cannot be told",
        "index_lookup": "cannot be told",
        "window": "cannot be told",
        "range": "cannot be told",
        "load": "does not hold",
        "load_deviation": "cannot be told",
        "spare_tokens": "cannot be told",
        "newer_skus": "holds",
    }
    assert found["load"].model.value == pytest.approx(-1.0)


def test_what_cannot_be_told_says_why():
    found = judged()
    assert found["tokens"].reason == "the model uses no such feature, or it is the same in all runs"
    assert found["window"].reason == "the interval holds 0"
    assert found["range"].reason == "the log has no such feature"
    assert judged(n_groups=5)["inputs"].reason == "5 groups; an interval needs 10"


def test_operators_are_found_by_the_words_in_their_names():
    patterns = {claim.name: claim.pattern for claim in CLAIMS}
    matches = pd.Series(["op_INDEX_SCAN", "op_INDEX_LOOKUP", "op_IndexLookup", "op_RANGE", "op_ARRANGE", "op_SEQ_SCAN"])
    for name, expected in (("index_lookup", matches[:3]), ("range", matches[3:4])):
        assert matches[matches.str.fullmatch(patterns[name], case=False)].tolist() == expected.tolist()


def test_the_variation_that_was_seen_stands_beside_the_model():
    _, frame, _, _ = known()
    found = judged(variation=-frame["input_bytes"].to_numpy())
    assert found["inputs"].model.value == pytest.approx(1.0)
    assert found["inputs"].measured.value == pytest.approx(-1.0)
    assert (found["inputs"].verdict, found["inputs"].measured_verdict) == ("holds", "does not hold")
    assert judged()["inputs"].measured.reason == "nothing that varies and is known"


def test_more_history_is_told_to_help_where_it_does():
    rng = np.random.default_rng(5)
    n_before, groups = rng.integers(1, 60, 2000), np.arange(2000) // 40
    is_right = rng.uniform(size=2000) < 0.4 + n_before / 120
    assert judge_history(n_before, is_right, groups, rng).verdict == "holds"
    assert judge_history(n_before, ~is_right, groups, rng).verdict == "does not hold"
    always = judge_history(n_before, np.ones(2000), groups, rng)
    assert (always.verdict, always.reason) == ("cannot be told", "nothing that varies and is known")


def test_what_the_model_does_without_is_still_measured():
    load_sd = np.abs(known()[1]["input_bytes"].to_numpy())
    found = judged(variation=load_sd, load_sd=load_sd)["load_deviation"]
    assert (found.verdict, found.measured_verdict) == ("cannot be told", "holds")
    assert found.reason == "no such feature helped to tell shapes apart, so the model does without"
