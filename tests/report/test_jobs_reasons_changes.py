"""Figures of changes: who moves where, and what was measured beside what was predicted."""

from types import SimpleNamespace

import numpy as np
import pytest

from tasks.jobs.control.pairs import Directions
from tasks.report.jobs_reasons import MigrationMap, PairChanges, migration_figure, pair_changes, pairs_figure


def words_of(figure):
    return "\n".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize")))


def test_the_move_that_most_make_is_told_with_its_share_of_the_shape_before():
    migration = MigrationMap(np.array([[50, 0, 2], [30, 70, 0], [0, 10, 0]]), "no spare tokens")
    assert migration.largest == (1, 0)  # 30 runs, though all of shape 2 go to 1
    assert "Most often 1 → 0: 30.0 % of shape 1" in migration_figure(migration).words
    assert "25.9 % moved" in migration.evidence


def pairs(n, right=0.7, interval=(0.6, 0.8)):
    predicted = np.exp(np.linspace(-1, 1, n))
    return PairChanges(predicted, predicted**0.5, "even load", right, interval)


def test_pairs_are_cut_into_parts_alike_in_size_with_their_middle_half():
    found = pairs(60).bins
    assert len(found) == 6
    predicted, low, middle, high = found[0]
    assert middle == pytest.approx(np.sqrt(predicted), rel=1e-3)
    assert low < middle < high
    assert [row[0] for row in found] == sorted(row[0] for row in found)


@pytest.mark.parametrize(("n", "n_bins"), [(1, 0), (4, 0), (5, 1), (11, 2)])
def test_few_pairs_have_fewer_parts_or_none(n, n_bins):
    assert len(pairs(n).bins) == n_bins
    assert (pairs_figure(pairs(n)).chart is None) == (n == 0)


def test_pairs_are_drawn_as_factors_of_the_log_ratios_that_were_compared():
    directions = Directions(n=3, n_right=2, share=2 / 3, low=0.2, high=0.9, n_in_band=1, n_undecided=0)
    score = SimpleNamespace(directions=directions)
    logs = {"measured": np.log([2.0, 1, 0.5, 1.01]), "predicted": np.log([1.5, 1, 1, 1])}
    found = pair_changes(SimpleNamespace(comparison=SimpleNamespace(score=score, **logs)), "no_spare")
    assert found.measured.tolist() == pytest.approx([2, 1, 0.5, 1.01])
    assert found.predicted.tolist() == pytest.approx([1.5, 1, 1, 1])
    assert (found.right_share, found.right_interval, found.n_directed) == (2 / 3, (0.2, 0.9), 3)
    score.directions = None
    assert pair_changes(SimpleNamespace(comparison=SimpleNamespace(score=score, **logs)), "x").right_share is None
