"""Moves between shapes: counted once each, in the order of their size, told as the paper tells them."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.control.migration import describe_moves, group_labels, migrate, moves

TABLE_2 = pd.DataFrame(  # Zhu et al. 2023, Table 2, ratio, shapes 0 to 3
    {
        "outlier_percent": [1.63, 0.42, 1.66, 0.25],
        "p25_p75": [0.06, 0.11, 0.16, 0.17],
        "p95": [1.41, 1.2, 1.37, 1.29],
        "std": [2.46, 0.93, 2.18, 1.45],
    }
)


def example():
    """Twenty runs of shape 2, of which 3 go to shape 1 (15 %, as in 7.1) and 1 to 0; ten of shape 0 stay."""
    return migrate([2] * 20 + [0] * 10, [1] * 3 + [0] + [2] * 16 + [0] * 10, 4)


def test_every_run_is_counted_once_from_its_shape_before_to_that_after():
    found = example()
    assert found.counts.tolist() == [[10, 0, 0, 0], [0, 0, 0, 0], [1, 3, 16, 0], [0, 0, 0, 0]]
    assert found.n == 30
    assert found.share_moved == pytest.approx(4 / 30)
    assert found.shares[2].tolist() == pytest.approx([0.05, 0.15, 0.8, 0])
    assert np.isnan(found.shares[1]).all()


def test_counts_by_shape_before_and_after_are_those_of_the_labels():
    rng = np.random.default_rng(3)
    before, after = rng.integers(0, 5, 200), rng.integers(0, 5, 200)
    found = migrate(before, after, 5)
    assert found.counts.sum(axis=1).tolist() == np.bincount(before, minlength=5).tolist()
    assert found.counts.sum(axis=0).tolist() == np.bincount(after, minlength=5).tolist()
    assert migrate(after, before, 5).counts.tolist() == found.counts.T.tolist()


def test_runs_without_a_shape_before_or_after_are_left_out_and_counted():
    found = migrate([0, -1, 1], [1, 0, -1], 2)
    assert found.counts.tolist() == [[0, 1], [0, 0]]
    assert found.n_unlabelled == 2


def test_moves_are_the_most_frequent_first_with_table_2_before_and_after():
    table = moves(example(), TABLE_2)
    assert table[["before", "after", "n"]].to_numpy().tolist() == [[2, 1, 3], [2, 0, 1]]
    first = table.iloc[0]
    assert (first["share"], first["share_of_shape"]) == (0.1, 0.15)
    assert (first["p25_p75_before"], first["p25_p75_after"]) == (0.16, 0.11)


def test_a_move_is_told_with_shares_gap_outliers_and_deviation():
    assert describe_moves(moves(example(), TABLE_2))[0] == (
        "15.0 % of the runs of shape 2 are now in shape 1 (3, 10.0 % of all): outliers from 1.66 to 0.42 %, "
        "25th-75th gap from 0.16 to 0.11, 95th percentile from 1.37 to 1.2, deviation from 2.18 to 0.93."
    )
    seconds = describe_moves(moves(example(), TABLE_2[["p25_p75"]]), unit="s", what="jobs", most=1)
    assert seconds == ["15.0 % of the jobs of shape 2 are now in shape 1 (3, 10.0 % of all): 25th-75th gap "
                       "from 0.16 to 0.11 s."]  # fmt: skip


def test_nothing_moved_is_an_answer():
    still = migrate([0, 1], [0, 1], 2)
    assert moves(still, TABLE_2).empty
    assert describe_moves(moves(still, TABLE_2)) == ["No runs change their shape."]
    assert migrate([], [], 2).share_moved is None
    assert moves(migrate([], [], 2), TABLE_2).empty


def test_the_shape_of_a_job_is_the_most_probable_over_its_runs():
    probabilities = np.array([[0.6, 0.4], [0.1, 0.9], [0.5, 0.5]])
    assert group_labels(probabilities, ["b", "b", "a"]).to_dict() == {"a": 0, "b": 1}


@pytest.mark.parametrize(("before", "after"), [([0, 1], [0]), ([2], [0])])
def test_labels_that_cannot_be_are_refused(before, after):
    with pytest.raises(ValueError, match=r"labels: (shapes|up to 2; expected 0 to 1)"):
        migrate(before, after, 2)
