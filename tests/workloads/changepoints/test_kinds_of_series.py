"""Kinds of series of known truth, drawn apart from those that the default was chosen on."""

import numpy as np
import pytest
from scipy.signal import lfilter

from tasks.workloads.changepoints.comparison import by_setting, score
from tasks.workloads.changepoints.finding import find_changepoints
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


UNCHANGED = {
    "noise that depends on the sample before": lambda rng, time: lfilter([0.6], [1, -0.8], rng.normal(size=len(time))),
    "noise that wanders": lambda rng, time: lfilter([1], [1, -0.9], rng.normal(size=len(time))),
    "a season of 31 samples": lambda rng, time: 4 * np.sin(2 * np.pi * time / 31) + rng.normal(size=len(time)),
    "a season that grows": lambda rng, time: np.exp(time / 200 + 0.3 * np.sin(time / 2) + rng.normal(size=300) / 20),
    "a season beside a rise": lambda rng, time: time / 30 + 3 * np.cos(np.pi * time / 6) + rng.normal(size=len(time)),
}


@pytest.mark.parametrize("kind", UNCHANGED)
def test_seasons_and_autocorrelation_are_no_changes(kind: str) -> None:
    time = np.arange(300)
    n_found = [
        len(find_changepoints(UNCHANGED[kind](np.random.default_rng(seed), time)).indices) for seed in range(30, 36)
    ]
    assert np.mean(n_found) <= 0.5


@pytest.mark.parametrize("period", [0, 12])
def test_a_level_shift_is_found_in_autocorrelated_noise_with_and_without_a_season(period: int) -> None:
    time = np.arange(240)
    swings = 3 * np.sin(2 * np.pi * time / period) if period else 0.0
    for seed in range(5):
        noise = lfilter([0.8], [1, -0.6], np.random.default_rng(seed).normal(size=240))
        found = find_changepoints(swings + noise + 8 * (time >= 100))
        assert found.indices.tolist() == pytest.approx([100], abs=2)
        assert [model.period for model in found.models] == [period]


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
