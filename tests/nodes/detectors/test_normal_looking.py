"""The compiled walk through time gives what the definition says, one execution after another."""

from collections import deque

import numpy as np
import pytest

from tasks.nodes.detectors.last_k import deviations
from tasks.nodes.detectors.levelling import power_mean
from tasks.nodes.detectors.params import DetectorParams


def median(column):
    own = column[~np.isnan(column)]
    return float(np.median(own)) if len(own) else np.nan


def by_definition(series, params):
    normal, odd = deque(maxlen=params.k), deque(maxlen=params.k)
    found = np.full(len(series), np.nan)
    for at, row in enumerate(series):
        if normal:
            medians = np.array([median(column) for column in series[list(normal)].T])
            found[at] = power_mean((row - medians)[None, :], params.norm, params.largest)[0]
        if np.isnan(found[at]) or found[at] <= params.looks_normal:
            normal.append(at)
            odd.clear()
            continue
        odd.append(at)
        if len(odd) == params.k:
            normal, odd = odd, deque(maxlen=params.k)
    return found


def drawn(n, m, missing, seed):
    """Levels that change now and then, single odd rows, some values missing, many of them alike."""
    rng = np.random.default_rng(seed)
    level = np.cumsum(rng.normal(0, 6, (n, m)) * (rng.random((n, 1)) < 0.05), axis=0)
    series = np.round(level + rng.normal(size=(n, m)) + 9 * (rng.random((n, 1)) < 0.05), 1)
    return np.where(rng.random((n, m)) < missing, np.nan, series)


@pytest.mark.parametrize("k", [1, 2, 3, 10, 500])
@pytest.mark.parametrize(("m", "missing"), [(1, 0.0), (1, 0.4), (4, 0.3)])
@pytest.mark.parametrize("norm", [1.0, 2.0, 7.5])
def test_the_walk_is_the_definition(k, m, missing, norm):
    params = DetectorParams(k=k, norm=norm)
    for seed in range(3):
        series = drawn(120, m, missing, seed)
        np.testing.assert_allclose(deviations(series, params), by_definition(series, params), rtol=1e-12)


def test_nothing_to_walk_through_is_no_error():
    assert not len(deviations(np.empty((0, 3)), DetectorParams()))
    assert np.isnan(deviations(np.full((4, 2), np.nan), DetectorParams())).all()
    assert np.isnan(deviations(np.empty((4, 0)), DetectorParams())).all()


def test_infinite_values_are_cut_and_spoil_no_later_median():
    """One in ten of the values under the median, then two: the median of the others stays."""
    series = np.array([[0.0]] * 10 + [[np.inf], [-np.inf], [0.0], [1.0]])
    found = deviations(series, DetectorParams(largest=50.0, looks_normal=100.0))
    assert found[10:].tolist() == [50, 50, 0, 1]
