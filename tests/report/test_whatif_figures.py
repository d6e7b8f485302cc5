"""Figures of changes: who moves where, and what was measured beside what was predicted."""

from types import SimpleNamespace

import numpy as np
import pytest

from tasks.jobs.control.pairs import Directions
from tasks.report.style import NARROW_IN, WIDE_IN
from tasks.report.whatif_asked import pair_changes
from tasks.report.whatif_migration import MigrationMap, draw_migration
from tasks.report.whatif_pairs import MOST_DOTS, PairChanges, draw_pairs


def words_of(figure):
    return "\n".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize")))


def test_the_move_that_most_make_is_told_with_its_share_of_the_shape_before():
    migration = MigrationMap(np.array([[50, 0, 2], [30, 70, 0], [0, 10, 0]]), "no spare tokens")
    assert migration.largest == (1, 0)  # 30 runs, though all of shape 2 go to 1
    words = words_of(draw_migration(migration, WIDE_IN))
    assert "no spare tokens" in words
    assert "25.9 % move; most often 1 → 0: 30.0 % of shape 1" in words
    assert migration.evidence == "n = 162 runs, 25.9 % moved; percent of the shape before"


def test_when_nobody_moves_it_says_so_and_an_empty_table_can_be_drawn():
    assert "nobody changes shape" in words_of(draw_migration(MigrationMap(np.diag([5, 3]), "x"), WIDE_IN))
    assert draw_migration(MigrationMap(np.zeros((8, 8), dtype=int), "x"), NARROW_IN)


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
    assert draw_pairs(pairs(n), WIDE_IN)


def test_the_share_of_right_directions_is_told_with_its_interval():
    assert "the direction was right for 70.0 % (60–80 %) of 60 pairs" in words_of(draw_pairs(pairs(60), WIDE_IN))
    assert "not known" in words_of(draw_pairs(pairs(60, None, None), NARROW_IN))


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


def test_a_share_of_pairs_that_changed_says_of_how_many():
    changes = PairChanges(np.ones(9), np.ones(9), "x", 0.5, (0.3, 0.7), 4)
    assert "50.0 % (30–70 %) of 4 pairs that changed" in words_of(draw_pairs(changes, WIDE_IN))


def test_ticks_of_factors_are_told_as_they_are():
    predicted = np.exp(np.linspace(-0.3, 0.3, 30))
    axes = draw_pairs(PairChanges(predicted, predicted, "x"), WIDE_IN).axes[0]
    for tick in axes.xaxis.get_major_locator()():
        assert float(axes.xaxis.get_major_formatter()(tick).removeprefix("× ")) == pytest.approx(tick, rel=5e-3)


def test_no_change_and_as_predicted_are_lines_with_names():
    words = words_of(draw_pairs(pairs(30), NARROW_IN)).split("\n")
    assert {"no change", "as predicted"} <= set(words)


def test_no_more_dots_than_the_page_bears_and_none_without_pairs():
    figure = draw_pairs(pairs(5000), WIDE_IN)
    assert len(figure.axes[0].collections[0].get_offsets()) == MOST_DOTS
    assert draw_pairs(PairChanges(np.zeros(0), np.zeros(0), "x"), WIDE_IN) is None


def test_pairs_where_nothing_changed_are_drawn():
    assert draw_pairs(PairChanges(np.ones(9), np.ones(9), "x", 0.0), WIDE_IN)
