"""What a token is worth on each kind of machine."""

import pytest
from pydantic import ValidationError

from tasks.jobs.record.params import RecordParams, Sku


def test_a_slower_kind_has_a_longer_period_for_the_same_quota():
    # a token is 1 ms of CPU: of 10 ms on the newest kind, of 12.5 ms where it is worth 0.8 of that
    assert Sku(name="new", tokens=6).period_us == 10_000
    assert Sku(name="old", tokens=6, speed=0.8).period_us == 12_500
    assert Sku(name="older", tokens=6, speed=0.6).period_us == 16_667


def test_cores_and_cpu_seconds_of_tokens():
    sku = Sku(name="old", tokens=6, speed=0.8)
    assert sku.cores == pytest.approx(0.48)
    assert sku.token_s(3, 2.0) == pytest.approx(0.48)  # three tenths of a core, two seconds, at 0.8


def test_a_period_that_the_kernel_refuses_cannot_be_asked_for():
    assert Sku(name="slowest", tokens=1, speed=0.01).period_us == 1_000_000  # a second: the longest there is
    with pytest.raises(ValidationError, match=r"speed\n.*greater than or equal to 0.01"):
        Sku(name="slower", tokens=1, speed=0.009)


@pytest.mark.parametrize("name", ["../up", "a/b", "", "-x", "gen 5"])
def test_a_name_that_could_be_a_path_is_refused(name):
    with pytest.raises(ValidationError, match="name"):
        Sku(name=name, tokens=1)


@pytest.mark.parametrize(
    "change",
    [
        {"skus": [{"name": "a", "tokens": 1}, {"name": "a", "tokens": 2}]},
        {"skus": [{"name": "planner", "tokens": 1}]},
        {"periods": [{"name": "D1", "days": 1}, {"name": "D1", "days": 2}]},
        {"periods": [{"name": "W", "days": 1}]},
    ],
)
def test_names_that_are_taken_are_refused_with_those_that_nobody_may_have(change):
    with pytest.raises(ValidationError, match="names that differ, and none of W, S, load, planner"):
        RecordParams.model_validate(change)
