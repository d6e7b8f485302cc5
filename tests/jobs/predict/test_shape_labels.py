"""Shapes predicted as labels: by hand, and on jobs with planted shapes that the features tell, or do not tell."""

from math import comb

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.normalisation import Bins
from tasks.jobs.params import BinParams, CharacteriseParams, EvaluateParams, PredictParams, ShapeParams, SplitParams
from tasks.jobs.predict.preparation import prepare
from tasks.jobs.predict.shape_labels import (
    by_occurrences,
    ceiling,
    count_runs,
    evaluate_labels,
    history_baseline,
    label_groups,
    label_instances,
    posterior_instances,
    posteriors_in,
    report_classifier,
    summarise,
)
from tasks.jobs.shapes import ShapeSet

BINS = Bins(kind="ratio", low=0, high=2, n_bins=4)  # none, below the median, above it, twice as long or more
FAST, SLOW = [0, 0.75, 0.25, 0], [0, 0.25, 0.75, 0]
SHAPES = ShapeSet(BINS, np.array([FAST, SLOW]), np.array([3, 1]), 0.0)


def runs_of(**ratios: list[float]) -> pd.DataFrame:
    """Runs of jobs with a median of 10 s, by their ratios."""
    rows = [(key, 10 * ratio, 10.0, "history") for key, values in ratios.items() for ratio in values]
    return pd.DataFrame(rows, columns=["group_key", "runtime_s", "median_s", "median_source"])


def test_two_fast_runs_and_a_slow_one_make_a_job_three_to_one_fast():
    table = label_groups(runs_of(a=[0.5, 0.5, 1.5]), SHAPES)
    # 0.75 * 0.75 * 0.25 against 0.25 * 0.25 * 0.75
    assert table.loc["a", "label"] == 0
    assert table.loc["a", ["posterior_0", "posterior_1"]].to_numpy(dtype=float) == pytest.approx([0.75, 0.25], abs=2e-3)
    assert table.loc["a", "n_runs"] == 3


def test_a_job_with_two_runs_has_a_posterior_but_no_label():
    table = label_groups(runs_of(a=[0.5, 0.5], b=[1.5] * 3), SHAPES)
    assert table["label"].tolist() == [-1, 1]
    assert posteriors_in(table).sum(axis=1) == pytest.approx([1, 1])
    assert posteriors_in(table)[0] == pytest.approx([0.9, 0.1], abs=2e-3)


def test_a_run_without_a_median_counts_nowhere_and_still_has_the_label_of_its_job():
    runs = runs_of(a=[0.5] * 3)
    unknown = runs.iloc[[0]].assign(median_s=np.nan, median_source="none")
    both = pd.concat([runs, unknown, unknown.assign(group_key="new")], ignore_index=True)
    table = label_groups(both, SHAPES)
    assert table["n_runs"].to_dict() == {"a": 3, "new": 0}
    assert label_instances(both["group_key"], table).tolist() == [0, 0, 0, 0, -1]


def test_runs_of_a_job_that_has_no_row_have_no_label_and_no_posterior():
    table = label_groups(runs_of(a=[0.5] * 3), SHAPES)
    keys = pd.Series(["b", "a"])
    assert label_instances(keys, table).tolist() == [-1, 0]
    found = posterior_instances(keys, table)
    assert np.isnan(found[0]).all()
    assert found[1].sum() == pytest.approx(1)


def test_deltas_are_counted_where_the_shapes_are_of_deltas():
    bins = Bins(kind="delta", low=-5, high=5, n_bins=4)
    shapes = ShapeSet(bins, SHAPES.centres, SHAPES.n_groups, 0.0)
    _, counts = count_runs(runs_of(a=[0.0, 0.8, 1.2, 2.0]), shapes)  # -10, -2, 2, 10 s
    assert counts.tolist() == [[1, 1, 1, 1]]


def test_counts_are_given_for_the_jobs_asked_for_in_their_order():
    keys, counts = count_runs(runs_of(a=[0.5] * 2, b=[1.5], c=[0.5]), SHAPES, pd.Index(["b", "new", "a"]))
    assert list(keys) == ["b", "new", "a"]
    assert counts.sum(axis=1).tolist() == [1, 0, 2]


def table_of(counts: dict[str, tuple[int, int]]) -> pd.DataFrame:
    """Labels of jobs by their numbers of fast and slow runs."""
    rows = [(key, ratio) for key, (fast, slow) in counts.items() for ratio in [0.5] * fast + [1.5] * slow]
    frame = pd.DataFrame(rows, columns=["group_key", "runtime_s"]).assign(median_s=1.0)
    return label_groups(frame, SHAPES)


def counts_of(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array([[0, fast, slow, 0] for fast, slow in pairs])


def share_of_majority(p: float, n: int) -> float:
    """P(more than half of n runs are fast), n odd."""
    return sum(comb(n, fast) * p**fast * (1 - p) ** (n - fast) for fast in range(n // 2 + 1, n + 1))


@pytest.mark.parametrize(("fast", "slow", "n"), [(7, 3, 3), (6, 4, 5), (2, 8, 9), (55, 45, 101)])
def test_the_ceiling_of_two_shapes_is_a_binomial_sum(fast, slow, n):
    test_runs = table_of({"a": (n, 0)})  # only their number matters to the oracle
    found = ceiling(test_runs, counts_of((fast, slow)), SHAPES, n_draws=40_000, shape_runs=0)
    share = share_of_majority(fast / (fast + slow), n)
    assert found.loc["a", "hit"] == pytest.approx(max(share, 1 - share), abs=0.01)  # 4 standard errors


def test_a_job_s_distribution_leans_on_its_most_likely_shape_by_the_stated_weight():
    # three fast runs are always fast by themselves; 3 runs of the shape beside them: (3 + 2.25) / 6 are fast
    table = table_of({"a": (3, 0)})
    alone = ceiling(table, counts_of((3, 0)), SHAPES, shape_runs=0)
    leaning = ceiling(table, counts_of((3, 0)), SHAPES, n_draws=40_000, shape_runs=3)
    assert alone.loc["a", "hit"] == 1
    assert leaning.loc["a", "hit"] == pytest.approx(share_of_majority(5.25 / 6, 3), abs=0.01)


def test_a_job_without_history_is_wrong_and_counted():
    now = table_of({"changed": (0, 6), "new": (9, 0), "same": (3, 0), "small": (1, 0)})
    before = table_of({"changed": (5, 0), "gone": (5, 0), "same": (1, 0)})
    found = history_baseline(now, before)
    assert found["hit"].fillna(-1).to_dict() == {"changed": 0, "new": 0, "same": 1, "small": -1}
    total = summarise(found)
    assert total.by_run == pytest.approx(3 / 18)
    assert total.by_group == pytest.approx(1 / 3)
    assert (total.n_groups, total.n_runs) == (3, 18)


def test_a_reference_over_some_jobs_is_of_those_only():
    found = history_baseline(table_of({"a": (3, 0), "b": (0, 9)}), table_of({"a": (3, 0), "b": (3, 0)}))
    assert summarise(found, pd.Index(["a", "elsewhere"])).by_run == 1
    nothing = summarise(found, pd.Index([]))
    assert (nothing.by_run, nothing.reason) == (None, "no job with enough runs")


def test_the_same_seed_gives_the_same_references_and_a_sample_bounds_their_cost():
    table, counts = table_of({f"{job}": (4, 3) for job in range(9)}), counts_of(*[(4, 3)] * 9)
    one, other = (ceiling(table, counts, SHAPES, most_groups=4, seed=3) for _ in range(2))
    pd.testing.assert_frame_equal(one, other)
    assert one["hit"].notna().sum() == 4


P = np.array([[0.8, 0.2], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9], [0.5, 0.5]])


def test_a_report_by_hand():
    found = report_classifier(P, [0, 1, 1, 1, -1], ["a", "b", "b", "b", "a"])
    assert (found.n, found.n_groups, found.accuracy) == (4, 2, 0.75)
    assert found.accuracy_group == pytest.approx((1 + 2 / 3) / 2)
    assert found.confusion.tolist() == [[1, 0], [1, 2]]
    assert found.log_loss == pytest.approx(-np.log([0.8, 0.4, 0.7, 0.9]).mean())


def test_a_shape_called_impossible_costs_a_stated_loss_and_no_infinity():
    assert report_classifier([[1.0, 0.0]], [1], ["a"]).log_loss == pytest.approx(-np.log(1e-6))


def test_accuracy_by_occurrences_cuts_where_the_figure_does():
    before = pd.Series([0, 1, 5, 6, 10, 11, 15, 16, 50, 51, 900], index=list("abcdefghijk"))
    table = pd.DataFrame({"n_runs": 2, "hit": np.arange(11) / 10}, index=before.index)
    found = by_occurrences({"accuracy": table}, before).set_index("slice")
    sizes = {"0": 1, "1-5": 2, "6-10": 2, "11-15": 2, "16-50": 2, "> 50": 2}
    assert found["n_groups"].to_dict() == sizes
    assert found.loc["16-50", "accuracy"] == pytest.approx(0.75)
    assert list(by_occurrences({"accuracy": table.iloc[[0]]}, before)["slice"]) == ["0"]


def test_references_stand_beside_the_accuracy_for_the_same_jobs():
    table = pd.DataFrame({"n_runs": [3, 9], "hit": [1.0, 0.0]}, index=["a", "b"])
    other = pd.DataFrame({"n_runs": [3, 9, 5], "hit": [0.5, 0.9, 0.1]}, index=["a", "b", "c"])
    found = by_occurrences({"accuracy": table, "ceiling": other}, pd.Series({"a": 3, "b": 4})).iloc[0]
    assert found["n_runs"] == 12
    assert found["accuracy"] == pytest.approx(3 / 12)
    assert found["ceiling"] == pytest.approx((0.5 * 3 + 0.9 * 9) / 12)
    assert found["ceiling_group"] == pytest.approx(0.7)


def params_of(*, split=None, **changes):
    characterise = CharacteriseParams(
        split=split or SplitParams(), bins=BinParams(ranges="data", n_bins=40), shapes=ShapeParams(k=2)
    )
    return EvaluateParams(predict=PredictParams(characterise=characterise, n_rounds=60), **changes)


@pytest.fixture
def planted_log(log_of):
    """A function: jobs that vary by 5 % and, every other one, by 50 %; the wide ones ask for more tokens."""

    def draw(n_runs=1200, n_jobs=12, *, seed=2):
        rng = np.random.default_rng(seed)
        job = np.arange(n_runs) % n_jobs
        is_wide = job % 2 == 1
        runtimes = 10 * np.exp(rng.normal(0, np.where(is_wide, 0.5, 0.05)))
        return log_of(runtimes, [f"j{i:02}" for i in job], requested_cpus=np.where(is_wide, 9.0, 1.0))

    return draw


def evaluated(runs, params, kind="ratio"):
    prepared = prepare(runs, params.predict.characterise)
    return prepared, evaluate_labels(prepared, kind, params)


@pytest.mark.parametrize("kind", ["ratio", "delta"])
def test_shapes_that_the_features_tell_are_found_in_the_test(planted_log, kind):
    _, found = evaluated(planted_log(), params_of(), kind)
    assert found.report.accuracy > 0.95
    assert found.report.n == 240
    assert found.report.confusion.sum(axis=1).tolist() == [120, 120]
    assert found.probabilities.shape == (1200, 2)
    assert found.probabilities.sum(axis=1) == pytest.approx(np.ones(1200))
    assert list(found.references) == ["model", "ceiling", "history_baseline"]
    assert found.references["model"].by_run == pytest.approx(found.report.accuracy)
    assert found.references["ceiling"].by_run >= 0.95
    assert found.references["history_baseline"].by_run == 1
    assert found.occurrences["n_groups"].sum() == 12


def test_a_job_that_changes_its_shape_is_scored_by_what_it_became(planted_log):
    runs = planted_log()
    calm = (runs["group_key"] == "j00") & (runs.index >= 960)
    wild = 10 * np.exp(np.random.default_rng(0).normal(0, 0.5, int(calm.sum())))
    runs.loc[calm, "runtime_s"] = wild
    runs["ended_at"] = runs["started_at"] + pd.to_timedelta(runs["runtime_s"], unit="s")
    _, found = evaluated(runs, params_of())
    assert found.references["history_baseline"].by_run == pytest.approx(11 / 12)
    assert found.report.by_group["hit"].drop("j00").min() > 0.9
    assert found.report.by_group.loc["j00", "hit"] < 1


def test_labels_of_the_training_know_nothing_of_the_test(planted_log):
    params = params_of(split=SplitParams(history_share=0.3, training_share=0.15))  # most runs are the test
    runs = planted_log()
    changed = runs.copy()
    changed.loc[540:, "runtime_s"] = np.tile([4.0, 20.0, 30.0], 220)  # no job is calm any more
    one, other = (evaluated(log, params)[1] for log in (runs, changed))
    assert other.references["history_baseline"].by_run < 0.6
    assert one.probabilities[:540].tobytes() == other.probabilities[:540].tobytes()


def test_a_log_without_a_job_that_can_be_labelled_says_so(log_of):
    rng = np.random.default_rng(0)
    runs = log_of(np.exp(rng.normal(size=90)), ["a"] * 45 + [f"new{i}" for i in range(45)])
    with pytest.raises(BadInput, match="0 rows with a label"):
        evaluated(runs, params_of())


def test_one_shape_for_all_is_always_right(log_of):
    prepared, found = evaluated(log_of(np.full(120, 5.0), np.tile(["a", "b"], 60)), params_of())
    assert len(prepared.shapes["ratio"].centres) == 1
    assert found.report.accuracy == 1
    assert (found.probabilities == 1).all()
