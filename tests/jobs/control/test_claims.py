"""What the figures support is a claim, and what they do not stands among what cannot be claimed."""

from dataclasses import replace

import numpy as np
import pandas as pd

from tasks.jobs.control.claims import ALWAYS, Claims, describe_overall, make_claims
from tasks.jobs.control.outcomes import Support, changes
from tasks.jobs.control.pairs import match_pairs, score_pairs
from tasks.jobs.params import MEASURES
from tests.jobs.control.synthetic import SimulatedChange, simulate_pairs

WITHIN = Support(40, 0.0, 0.0, 0.0, {})


def claims(*, support=WITHIN, score=None):
    """Of 40 runs of 10 jobs whose gap falls from 7.75 to 1 s, while the median rises in some and falls in others."""
    up_and_down = np.where(np.arange(40) % 2, 1.0, -1.0)
    before = pd.DataFrame({name: np.full(40, 7.75) for name in MEASURES})
    after = before.assign(gap_s=1.0, median_s=7.75 + up_and_down)
    found = changes(before, after, np.arange(40) // 4, np.random.default_rng(1))
    return make_claims(found, support, score)


def scored(predicted_from, **settings):
    made = simulate_pairs(SimulatedChange(**settings), np.random.default_rng(2))
    pairs = match_pairs(made.runs).of("no_spare")
    told = predicted_from(made.log_effects[pairs["group_key"]].to_numpy())
    return score_pairs(pairs["log_ratio"], told, pairs["group_key"], np.random.default_rng(1))


def test_without_pairs_nothing_measured_is_claimed():
    found = claims(score=score_pairs([], [], [], np.random.default_rng(1)))
    assert found.cannot[0] == (
        "Nothing measured stands behind it: no run was done again with this change "
        "(no matched pair with a measured and a predicted change)."
    )
    assert not any(line.startswith("Measured") for line in found.can)
    assert set(ALWAYS) <= set(found.cannot)


def test_predicted_changes_are_claimed_with_their_interval_and_an_open_direction_is_called_open():
    found = claims()
    assert found.can[0].startswith(
        "Predicted: the 25th-75th gap of a run goes from 7.75 to 1 s on average, 95 % interval"
    )
    median = next(line for line in found.can if "median" in line)
    assert median.endswith("over 40 runs of 10 jobs; its direction is open.")


def test_good_predictions_are_claimed_and_bad_ones_stand_among_what_cannot_be():
    good = claims(score=scored(lambda effects: effects))
    assert any(line.startswith("The change of a single run is foretold better than by no change") for line in good.can)
    assert any("the direction was foretold right in 9" in line for line in good.can)
    bad = claims(score=scored(lambda effects: -effects))
    assert (
        "That it knows which runs change by how much: over the measured pairs it is worse than no change and "
        "worse than the mean change of other jobs." in bad.cannot
    )


def test_extrapolation_is_told_with_its_share_and_its_features():
    outside = {"mean_tokens_mean": 1.0, "spare_tokens_mean": 1.0, "spare_tokens_available": 0.75, "load_sd": 0.1}
    far = Support(40, 1.0, 0.9, 0.25, outside)
    assert claims(support=far).cannot[-1] == (
        "100.0 % of the 40 changed runs are extrapolated: 90.0 % lie outside the training range of a changed feature, "
        "most often by mean_tokens_mean, spare_tokens_mean, spare_tokens_available; 25.0 % are less like any training "
        "run than 99 % of the unchanged runs are."
    )
    assert claims().cannot[-1] == ALWAYS[-1]
    assert "alters no feature" in claims(support=replace(far, share=None, n_changed=0)).cannot[-1]


def test_what_the_pairs_do_not_bear_out_is_no_claim():
    measured, jobs = np.random.default_rng(1).normal(0, 0.1, 200), np.arange(200) % 20
    found = claims(score=score_pairs(measured, np.full(200, 0.5), jobs, np.random.default_rng(1)))
    assert not any(line.startswith("Predicted") for line in found.can)
    assert sum("the measured pairs do not bear it out" in line for line in found.cannot) == 3


def test_a_variation_that_went_the_other_way_is_no_claim():
    sides = ["measured_before", "measured_after", "predicted_before", "predicted_after"]
    overall = pd.DataFrame([[4.4, 3.9, 3.9, 4.5], [1.2, 1.0, 1.1, 0.9]], index=["p95", "gap"], columns=sides)
    found = describe_overall(overall)
    assert found.can == [
        "Measured over all pairs together: the 25th-75th gap, over the historic median, went from 1.2 to 1; "
        "foretold was 1.1 to 0.9."
    ]
    assert found.cannot[0].endswith("went from 4.4 to 3.9; foretold was 3.9 to 4.5, the other way.")
    assert describe_overall(pd.DataFrame(columns=sides)) == Claims([], [])
