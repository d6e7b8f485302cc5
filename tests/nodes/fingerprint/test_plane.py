"""Fingerprints in two dimensions: places by direction, norms beside them."""

import numpy as np
import pytest

from tasks.nodes.perona.fingerprints import (
    Fingerprints,
    fingerprints_of,
    plane_of,
)


def prints_of(enc):
    enc = np.asarray(enc, dtype=float)
    with np.errstate(divide="ignore"):
        return Fingerprints(enc, np.log(np.abs(enc).max(axis=1)))


def test_two_types_lie_at_the_ends_of_the_line_between_their_directions(inputs):
    """Directions (1, 0, 0) and (0, 1, 0) lie √2 apart, at ± 1/√2 of their middle; no variance is left beside it."""
    found = plane_of(inputs([0, 1], [0, 1]), prints_of([[3, 0, 0], [0, 5, 0]]))
    assert np.abs(found.points["x"]).tolist() == pytest.approx([np.sqrt(0.5)] * 2)
    assert found.points["x"].sum() == pytest.approx(0)
    assert found.points["y"].tolist() == pytest.approx([0, 0])
    assert found.points["norm"].tolist() == pytest.approx([3, 5]) and found.shown == pytest.approx(1)
    assert found.points["type"].tolist() == ["cpu-a", "disk-b"]
    assert found.points["node"].tolist() == ["node-1", "node-2"]


def test_a_longer_fingerprint_of_the_same_direction_has_the_same_place(inputs):
    enc = np.random.default_rng(1).standard_normal((6, 4))
    where = inputs([0] * 6, [0, 0, 0, 1, 1, 1])
    one, other = plane_of(where, prints_of(enc)), plane_of(where, prints_of(enc * np.arange(1, 7)[:, None]))
    assert one.points[["x", "y"]].to_numpy() == pytest.approx(other.points[["x", "y"]].to_numpy())
    assert (other.points["norm"] >= one.points["norm"]).all()


def test_types_count_alike_however_often_they_ran(inputs):
    """A type whose executions are all there three times moves nothing."""
    enc = np.random.default_rng(2).standard_normal((4, 5))
    once = plane_of(inputs([0] * 4, [0, 0, 1, 1]), prints_of(enc))
    thrice = plane_of(inputs([0] * 8, [0, 0, 1, 1, 1, 1, 1, 1]), prints_of(enc[[0, 1, 2, 3, 2, 3, 2, 3]]))
    same = thrice.points[["x", "y"]].to_numpy()[:4]
    assert once.points[["x", "y"]].to_numpy() == pytest.approx(same)
    assert thrice.shown == pytest.approx(once.shown)


def test_what_has_no_fingerprint_has_no_place(inputs):
    prints = prints_of([[1, 0], [np.nan, np.nan], [0, 1]])
    found = plane_of(inputs([0] * 3, [0, 0, 1]), prints)
    assert found.points["execution"].tolist() == [0, 2]
    none = plane_of(inputs([0], [-1]), prints_of([[1, 0]]))
    assert none.points.empty and none.shown == 0


def test_a_real_network_gives_each_execution_a_place(drawn):
    found = plane_of(drawn.inputs, fingerprints_of(drawn.inputs, drawn.network))
    assert len(found.points) == len(drawn.inputs) and 0 < found.shown <= 1
    assert np.abs(found.points[["x", "y"]].to_numpy()).max() <= 2
