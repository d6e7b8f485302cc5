"""Every feature has a range that its own values fit into."""

import pytest

from tasks.jobs.control.ranges import is_possible, range_of
from tasks.jobs.predict.feature_words import FEATURES

NAMES = [name.replace("<sku>", "gen5").replace("<operator>", "HASH_JOIN").replace("<k>", "3") for name in FEATURES]


def test_only_logarithms_and_evidence_of_shapes_can_be_below_zero():
    negative = {name for name in NAMES if is_possible(name, -1)}
    logs = {"log_median_before", "log_ratio_mean", "last_log_ratio", "ewma_log_ratio"}
    evidence = {f"{prefix}shape_{kind}_3" for prefix in ("", "recent_") for kind in ("ratio", "delta")}
    assert negative == logs | evidence


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("offered_gen5", 0.5),
        ("requested_tokens", 0),
        ("vertex_share_gen5_mean", 1.1),
        ("sku_load_mean_gen5", 35),
        ("day_of_week", 7),
    ],
)
def test_values_that_no_run_can_have_are_refused(name, value):
    assert not is_possible(name, value)


def test_a_range_is_said_in_words():
    assert range_of("load_mean")[2] == "a load from 0 to 2, where 1 is all that there is"
    with pytest.raises(ValueError, match="feature: empty"):
        range_of("")
