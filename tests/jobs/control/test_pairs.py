"""Matched pairs are found as the recorder wrote them, and what has no partner is counted."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.control.pairs import match_pairs, predicted_change
from tasks.jobs.control.synthetic import SimulatedChange, simulate_pairs
from tasks.jobs.empirical import Empirical, gather_history


def runs():
    """One run of D3, its baseline, and two changes of it, not in the order in which they belong."""
    return pd.DataFrame(
        {
            "run_id": ["0-no_spare", "0", "0-baseline", "0-newest_sku"],
            "group_key": ["job"] * 4,
            "what_if": ["no_spare", None, "baseline", "newest_sku"],
            "matched_run_id": ["0-baseline", None, "0", "0-baseline"],
            "runtime_s": [8.0, 3.0, 4.0, 2.0],
        },
        index=[10, 11, 12, 13],
    )


def test_a_changed_run_is_paired_with_its_baseline_and_a_baseline_with_the_run_that_it_repeats():
    found = match_pairs(runs())
    assert found.frame["what_if"].tolist() == ["no_spare", "replay", "newest_sku"]
    changed = found.of("no_spare").iloc[0]
    assert (changed["run_id_before"], changed["run_id_after"]) == ("0-baseline", "0-no_spare")
    assert (changed["row_before"], changed["row_after"]) == (2, 0)
    assert changed["log_ratio"] == pytest.approx(np.log(2))
    assert changed["delta_s"] == 4
    assert found.of("newest_sku").iloc[0]["log_ratio"] == pytest.approx(-np.log(2))
    assert found.of("replay").iloc[0]["run_id_before"] == "0"
    assert (found.n_unmatched, found.n_without_runtime, found.reason) == (0, 0, None)


def test_the_order_of_the_runs_changes_no_pair():
    columns = ["what_if", "run_id_before", "run_id_after", "log_ratio"]
    one = match_pairs(runs()).frame[columns].sort_values("run_id_after", ignore_index=True)
    other = match_pairs(runs().iloc[::-1]).frame[columns].sort_values("run_id_after", ignore_index=True)
    pd.testing.assert_frame_equal(one, other)


def test_a_change_whose_baseline_failed_is_counted_and_not_paired_with_the_original():
    found = match_pairs(runs()[runs()["run_id"] != "0-baseline"])
    assert found.frame.empty
    assert found.n_unmatched == 2
    assert found.reason == "2 runs repeat another, but none has its partner, both with a runtime above 0 s"


def test_a_change_that_names_the_original_instead_of_a_baseline_is_no_pair():
    found = match_pairs(runs().assign(matched_run_id=["0", None, "0", "0-baseline"]))
    assert found.frame["what_if"].tolist() == ["replay", "newest_sku"]
    assert found.n_unmatched == 1


def test_a_runtime_of_zero_or_none_makes_no_ratio():
    found = match_pairs(runs().assign(runtime_s=[0.0, 3.0, 4.0, np.nan]))
    assert found.frame["what_if"].tolist() == ["replay"]
    assert found.n_without_runtime == 2


@pytest.mark.parametrize(
    "log",
    [
        pd.DataFrame({"run_id": ["1"], "group_key": ["a"], "runtime_s": [1.0]}),
        runs()[runs()["what_if"].isna()].assign(what_if=None),
        runs().iloc[:0],
    ],
)
def test_a_log_without_pairs_gets_a_reason(log):
    found = match_pairs(log)
    assert found.frame.empty
    assert found.of("no_spare").empty
    assert found.reason is not None
    assert found.reason.startswith("no run of this log repeats another")


def test_a_changed_plan_counts_under_the_key_of_its_baseline():
    found = match_pairs(runs().assign(group_key=["job · plan 2", "job", "job", "job"]))
    assert found.of("no_spare")["group_key"].tolist() == ["job"]


def test_simulated_pairs_are_all_found_and_show_their_true_effect():
    made = simulate_pairs(SimulatedChange(n_groups=5, n_pairs=200, log_noise=0.1), np.random.default_rng(5))
    pairs = match_pairs(made.runs).of("no_spare")
    assert len(pairs) == 1000
    measured = pairs.groupby("group_key")["log_ratio"].mean()
    assert measured.to_numpy() == pytest.approx(made.log_effects.to_numpy(), abs=0.05)


def test_a_predicted_change_is_that_of_the_medians_and_unknown_at_zero_seconds():
    history = gather_history([2.0, 2.0, 4.0, 9.0, 0.0], [0, 0, 1, 1, 2])
    found = predicted_change(Empirical(history, np.array([0, 2])), Empirical(history, np.array([1, 0])))
    assert found.log_ratio[0] == pytest.approx(np.log(2))
    assert np.isnan(found.log_ratio[1])
    assert found.delta_s.tolist() == [2, 2]
