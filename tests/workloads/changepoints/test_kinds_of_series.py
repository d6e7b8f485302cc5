"""Kinds of series of known truth, drawn apart from those that the default was chosen on."""

import numpy as np
import pytest

from tasks.workloads.changepoints.comparison import by_setting, score
from tasks.workloads.changepoints.params import ChangePointParams
from tasks.workloads.changepoints.plain import PLAIN
from tasks.workloads.changepoints.synthetic import KINDS, Kind, draw_all, draw_series

LEAST_F1: dict[Kind, float] = {
    "level": 0.95,
    "variance": 0.8,
    "kink": 0.6,  # where noise hides a bend, five samples are a narrow margin; finding nothing scores 0.5
    "correlated": 0.8,
    "seasonal": 0.75,
    "outliers": 0.85,
    "whole numbers": 0.95,
    "nothing": 0.95,
    "nothing, trend": 0.95,
    "nothing, seasonal": 0.95,
    "nothing, outliers": 0.95,
}


@pytest.mark.parametrize("kind", LEAST_F1)
def test_changes_of_known_places_are_found(kind: Kind) -> None:
    rng = np.random.default_rng(20)
    series = [draw_series(kind, int(rng.integers(80, 300)), 2, rng) for _ in range(12)]
    assert score(by_setting(ChangePointParams()), series)[:, 0].mean() >= LEAST_F1[kind]


def test_ours_beats_plain_bocpd_over_all_kinds() -> None:
    series = draw_all(2, np.random.default_rng(21))
    ours, plain = (score(by_setting(params), series).mean(axis=0) for params in (ChangePointParams(), PLAIN))
    assert (ours > plain + 0.05).all()


def test_a_drawn_series_says_where_it_changes() -> None:
    rng = np.random.default_rng(0)
    for kind in KINDS:
        one = draw_series(kind, 100, 3, rng)
        assert len(one.values) == 100
        assert len(one.annotations[0]) == (0 if kind.startswith("nothing") else 3)
        assert np.isfinite(one.values).all()


def test_changes_without_room_are_refused() -> None:
    with pytest.raises(ValueError, match="no room for 3 changes"):
        draw_series("level", 35, 3, np.random.default_rng(0))
