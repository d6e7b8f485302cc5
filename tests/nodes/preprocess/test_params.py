import pytest
from pydantic import ValidationError

from tasks.nodes.preprocess.params import PreprocessParams


def test_imputation_and_scaling_follow_the_variant_unless_they_are_set() -> None:
    ours, theirs = PreprocessParams(), PreprocessParams(variant="paper")
    assert (ours.imputes, ours.scales) == ("neutral", "log_ratio")
    assert (theirs.imputes, theirs.scales) == ("mean", "min_max")
    mixed = PreprocessParams(variant="paper", imputation="neutral", scaling="robust")
    assert (mixed.imputes, mixed.scales) == ("neutral", "robust")


def test_a_clip_that_begins_after_its_end_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"clip_from \(10\) must be less than clip_at \(5\)"):
        PreprocessParams(clip_from=10, clip_at=5)
