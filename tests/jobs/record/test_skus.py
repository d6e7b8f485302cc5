"""What a token is worth on each kind of machine."""

import pytest
from pydantic import ValidationError

from tasks.jobs.record.skus import Sku


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
