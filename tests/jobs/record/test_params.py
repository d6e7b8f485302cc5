"""What a token is worth on each kind of machine, and names of periods."""

import pytest
from pydantic import ValidationError

from tasks.jobs.params import RecordParams, Sku


def test_a_slower_kind_has_a_longer_period_for_the_same_quota():
    # a token is 1 ms of CPU: of 10 ms on the newest kind, of 12.5 ms where it is worth 0.8 of that
    assert Sku(name="new", tokens=6).period_us == 10_000
    assert Sku(name="old", tokens=6, speed=0.8).period_us == 12_500
    assert Sku(name="older", tokens=6, speed=0.6).period_us == 16_667


def test_cores_and_cpu_seconds_of_tokens():
    sku = Sku(name="old", tokens=6, speed=0.8)
    assert sku.cores == pytest.approx(0.48)
    assert sku.token_s(3, 2.0) == pytest.approx(0.48)  # three tenths of a core, two seconds, at 0.8


@pytest.mark.parametrize("name", ["../up", "a/b", "", "-x", "gen 5"])
def test_a_name_that_could_be_a_path_is_refused(name):
    with pytest.raises(ValidationError, match="name"):
        RecordParams.model_validate({"periods": [{"name": name, "days": 1}]})


@pytest.mark.parametrize("names", [("D1", "D1"), ("W",)])
def test_names_of_periods_that_are_taken_are_refused_with_those_that_nobody_may_have(names):
    with pytest.raises(ValidationError, match="names that differ, and none of W, S"):
        RecordParams.model_validate({"periods": [{"name": name, "days": 1} for name in names]})
