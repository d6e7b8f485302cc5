"""Ceiling, halves and history baseline: binomial sums by hand, and cases with known truth."""

from math import comb

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.labels.references import ceiling, history_baseline, split_half, summarise
from tasks.jobs.labels.targets import label_groups
from tasks.jobs.normalisation import Bins
from tasks.jobs.shape_params import PosteriorParams
from tasks.jobs.shapes import ShapeSet

BINS = Bins(kind="ratio", low=0, high=2, n_bins=4)
SHAPES = ShapeSet(BINS, np.array([[0, 0.75, 0.25, 0], [0, 0.25, 0.75, 0]]), np.array([0.5, 0.5]), np.array([1, 1]), 0.0)
POSTERIOR = PosteriorParams(empty_bin_prior=1e-6)


def table_of(counts: dict[str, tuple[int, int]]) -> pd.DataFrame:
    """Labels of jobs by their numbers of fast and slow runs."""
    rows = [(key, ratio) for key, (fast, slow) in counts.items() for ratio in [0.5] * fast + [1.5] * slow]
    frame = pd.DataFrame(rows, columns=["group_key", "runtime_s"]).assign(median_s=1.0)
    return label_groups(frame, SHAPES, 3, POSTERIOR)


def counts_of(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array([[0, fast, slow, 0] for fast, slow in pairs])


def share_of_majority(p: float, n: int) -> float:
    """P(more than half of n runs are fast), n odd."""
    return sum(comb(n, fast) * p**fast * (1 - p) ** (n - fast) for fast in range(n // 2 + 1, n + 1))


@pytest.mark.parametrize(("fast", "slow", "n"), [(7, 3, 3), (6, 4, 5), (2, 8, 9), (55, 45, 101)])
def test_the_ceiling_of_two_shapes_is_a_binomial_sum(fast, slow, n):
    test_runs = table_of({"a": (n, 0)})  # only their number matters to the oracle
    found = ceiling(test_runs, counts_of((fast, slow)), SHAPES, POSTERIOR, n_draws=40_000, shape_runs=0)
    share = share_of_majority(fast / (fast + slow), n)
    assert found.loc["a", "hit"] == pytest.approx(max(share, 1 - share), abs=0.01)  # 4 standard errors
    assert found.loc["a", "oracle_label"] == (0 if fast > slow else 1)


def test_a_job_s_distribution_leans_on_its_most_likely_shape_by_the_stated_weight():
    # three fast runs are always fast by themselves; 3 runs of the shape beside them: (3 + 2.25) / 6 are fast
    table = table_of({"a": (3, 0)})
    alone = ceiling(table, counts_of((3, 0)), SHAPES, POSTERIOR, shape_runs=0)
    leaning = ceiling(table, counts_of((3, 0)), SHAPES, POSTERIOR, n_draws=40_000, shape_runs=3)
    assert alone.loc["a", "hit"] == 1
    assert leaning.loc["a", "hit"] == pytest.approx(share_of_majority(5.25 / 6, 3), abs=0.01)


def test_the_ceiling_is_near_one_for_many_runs_and_falls_for_few():
    hits = []
    for n_runs in (3, 21, 201):
        table = table_of({"a": (n_runs, 0)})
        hits.append(ceiling(table, counts_of((70, 30)), SHAPES, POSTERIOR).loc["a", "hit"])
    assert hits[0] < 0.85 < hits[1] < hits[2]
    assert hits[2] > 0.99


def test_an_oracle_s_accuracy_on_fresh_labels_is_the_ceiling():
    rng = np.random.default_rng(5)
    truth = rng.uniform(0.3, 0.7, 400)
    n_test = rng.integers(3, 30, 400)
    fast = rng.binomial(n_test, truth)
    table = table_of({f"{job:03}": (int(f), int(n - f)) for job, (f, n) in enumerate(zip(fast, n_test, strict=True))})
    many = np.round(np.stack([0 * truth, truth, 1 - truth, 0 * truth], axis=1) * 10_000).astype(int)
    found = summarise(ceiling(table, many, SHAPES, POSTERIOR, n_draws=400))
    accuracy = np.mean((truth < 0.5) == table["label"].to_numpy())
    assert found.by_group == pytest.approx(accuracy, abs=0.08)  # 3 standard errors of the accuracy


def test_halves_of_a_job_that_never_varies_always_agree_and_those_of_a_coin_half_the_time():
    table = table_of({"coin": (400, 400), "steady": (8, 0)})
    found = split_half(table, counts_of((400, 400), (8, 0)), SHAPES, 3, POSTERIOR, n_draws=2000)
    assert found.loc["steady", "hit"] == 1
    assert found.loc["coin", "hit"] < 0.1  # what one half has more of, the other has less of


def test_halves_of_four_runs_agree_by_hand():
    # three fast and one slow: the half without the slow run is fast; one of each is a tie, which goes to shape 0
    # two fast and two slow: {ff, ss} in 2 of 6 deals disagree, all others are ties, both 0
    counts = counts_of((2, 2), (3, 1))
    found = split_half(table_of({"a": (2, 2), "b": (3, 1)}), counts, SHAPES, 2, POSTERIOR, n_draws=10_000)
    assert found["hit"].to_dict() == pytest.approx({"a": 4 / 6, "b": 1.0}, abs=0.015)


def test_jobs_whose_halves_are_too_small_are_left_out():
    table = table_of({"a": (5, 0), "b": (6, 0), "c": (1, 0)})
    found = summarise(split_half(table, counts_of((5, 0), (6, 0), (1, 0)), SHAPES, 3, POSTERIOR))
    assert (found.by_run, found.n_groups) == (1.0, 1)


def test_a_job_without_history_is_wrong_and_counted():
    now = table_of({"changed": (0, 6), "new": (9, 0), "same": (3, 0), "small": (1, 0)})
    before = table_of({"changed": (5, 0), "gone": (5, 0), "same": (1, 0)})
    found = history_baseline(now, before)
    assert found["hit"].fillna(-1).to_dict() == {"changed": 0, "new": 0, "same": 1, "small": -1}
    assert found["history_label"].to_dict() == {"changed": 0, "new": -1, "same": 0, "small": -1}
    assert found["n_before"].to_dict() == {"changed": 5, "new": 0, "same": 1, "small": 0}
    total = summarise(found)
    assert total.by_run == pytest.approx(3 / 18)
    assert total.by_group == pytest.approx(1 / 3)
    assert (total.n_groups, total.n_runs) == (3, 18)


def test_without_any_history_every_label_of_the_baseline_is_wrong():
    found = history_baseline(table_of({"a": (3, 0)}), table_of({}))
    assert found["hit"].tolist() == [0]


def test_a_reference_over_some_jobs_is_of_those_only():
    found = history_baseline(table_of({"a": (3, 0), "b": (0, 9)}), table_of({"a": (3, 0), "b": (3, 0)}))
    assert summarise(found, pd.Index(["a", "elsewhere"])).by_run == 1
    nothing = summarise(found, pd.Index([]))
    assert (nothing.by_run, nothing.reason) == (None, "no job with enough runs")


def test_the_same_seed_gives_the_same_references_and_a_sample_bounds_their_cost():
    table, counts = table_of({f"{job}": (4, 3) for job in range(9)}), counts_of(*[(4, 3)] * 9)
    one, other = (ceiling(table, counts, SHAPES, POSTERIOR, most_groups=4, seed=3) for _ in range(2))
    pd.testing.assert_frame_equal(one, other)
    assert one["hit"].notna().sum() == 4


def test_counts_of_other_jobs_are_refused():
    with pytest.raises(BadInput, match="counts: 1 rows; expected one for each of the 2 jobs"):
        ceiling(table_of({"a": (3, 0), "b": (3, 0)}), counts_of((3, 0)), SHAPES, POSTERIOR)
