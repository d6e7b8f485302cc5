"""Figures of reasons: which features are shown, in which order, and that factors add up to the prediction."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from tasks.report.explain_beeswarm import N_FEATURES, Swarm, draw_swarm
from tasks.report.explain_importance import Importances, draw_importance
from tasks.report.explain_one_run import Reason, RunReasons, draw_one_run
from tasks.report.explain_two_shapes import TwoShapes, draw_two_shapes
from tasks.report.style import BLUE, NARROW_IN, ORANGE, WIDE_IN


def words_of(figure):
    return "\n".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize")))


def test_importances_are_shares_the_largest_on_top_and_the_evidence_tells_what_is_cut():
    table = pd.DataFrame({"words": [f"feature {i}" for i in range(20)], "importance": [1.0] * 19 + [81.0]})
    importances = Importances(table, "gain", 500)
    figure = draw_importance(importances, WIDE_IN)
    bars = figure.axes[0].patches
    assert (len(bars), bars[0].get_width()) == (15, 0.81)
    assert "feature 19" in words_of(figure)
    assert importances.evidence == "n = 500 runs; 15 of 20 features hold 95.0 %"


@pytest.mark.parametrize("values", [[], [0.0, 0.0]])
def test_a_model_that_uses_no_feature_has_no_importances(values):
    table = pd.DataFrame({"words": [f"{i}" for i in range(len(values))], "importance": values})
    assert draw_importance(Importances(table, "gain", 5), WIDE_IN) is None


def swarm(n=200, p=3):
    rng = np.random.default_rng(1)
    of_feature = rng.normal(size=(n, p))
    return Swarm(of_feature * np.arange(p), of_feature, [f"feature {i}" for i in range(p)], "shape 6")


def test_the_feature_that_adds_most_is_on_top_and_one_that_adds_nothing_is_left_out():
    found = swarm()
    assert found.order.tolist() == [2, 1]
    names = [text.get_text() for text in draw_swarm(found, WIDE_IN).axes[0].texts]
    assert (names.index("feature 2") < names.index("feature 1"), "feature 0" in names) == (True, False)


def dots_of(figure):
    """Of each row from the top: places and colours of its dots, those of unknown features left out."""
    rows = {}
    for dots in figure.axes[0].collections:
        if dots.get_array() is not None and len(dots.get_offsets()):
            dots.update_scalarmappable()
            places = np.asarray(dots.get_offsets())
            rows[round(float(places[:, 1].mean()))] = places, np.asarray(dots.get_facecolor())
    return [rows[row] for row in sorted(rows)]


def test_every_run_is_a_dot_the_high_orange_and_the_low_blue():
    found = swarm()
    places, colours = dots_of(draw_swarm(found, WIDE_IN))[0]
    assert sorted(places[:, 0]) == pytest.approx(sorted(found.added[:, 2]))
    lowest, highest = colours[places[:, 0].argmin()], colours[places[:, 0].argmax()]
    assert (tuple(lowest[:3]), tuple(highest[:3])) == (to_rgb(BLUE), to_rgb(ORANGE))


@pytest.mark.parametrize("width_in", [WIDE_IN, NARROW_IN])
def test_the_dots_of_a_feature_stay_in_its_row(width_in):
    for row, (places, _) in enumerate(dots_of(draw_swarm(swarm(p=6), width_in))):
        assert (places[:, 1].min() > row - 0.5, places[:, 1].max() < row + 0.5) == (True, True)


def test_unknown_features_are_rings_and_have_no_high_or_low():
    added = np.random.default_rng(2).normal(size=(40, 1))
    of_feature = np.where(np.arange(40) < 25, np.nan, np.arange(40.0))[:, None]
    figure = draw_swarm(Swarm(added, of_feature, ["half known"], "shape 0"), WIDE_IN)
    rings = [dots for dots in figure.axes[0].collections if dots.get_array() is None]
    assert [len(dots.get_offsets()) for dots in rings] == [25]
    assert len(rings[0].get_facecolor()) == 0
    assert len(dots_of(figure)[0][0]) == 15


def test_a_swarm_leaves_the_random_numbers_of_others_alone():
    np.random.seed(7)
    expected = np.random.random(3)
    np.random.seed(7)
    draw_swarm(swarm(), WIDE_IN)
    assert np.random.random(3).tolist() == expected.tolist()


def test_a_name_has_two_lines_on_a_page_and_one_on_a_phone():
    added, of_feature = np.random.default_rng(3).normal(size=(2, 30, 1))
    found = Swarm(added, of_feature, ["runtime of earlier runs against the job's median"], "shape 0")
    assert "runtime of earlier runs against the\njob's median" in words_of(draw_swarm(found, WIDE_IN))
    assert "runtime of earlier ru…s against the job's median" not in words_of(draw_swarm(found, WIDE_IN))


def test_no_more_features_than_fit_are_shown_and_no_runs_give_no_figure():
    assert len(swarm(p=30).order) == N_FEATURES
    assert draw_swarm(Swarm(np.zeros((0, 2)), np.zeros((0, 2)), ["a", "b"], "shape 0"), WIDE_IN) is None


def test_two_shapes_are_compared_at_the_low_and_the_high_third_of_each_feature():
    of_feature = np.column_stack([np.arange(9.0), np.full(9, 1.0), [0, 0, 0, 0, 0, 0, 0, 0, 1.0]])
    difference = np.column_stack([np.arange(9.0), np.arange(9.0), [0, 0, 0, 0, 0, 0, 0, 0, 9.0]])
    found = TwoShapes(difference, of_feature, ["ramp", "constant", "flag"], "shape 0", "shape 2")
    assert found.ends[0] == pytest.approx([1.5, 6.5], abs=0.6)
    assert np.isnan(found.ends[1]).all()
    assert found.ends[2].tolist() == [0, 9]
    assert found.order.tolist() == [2, 0]
    words = words_of(draw_two_shapes(found, WIDE_IN))
    assert "← speaks for shape 0" in words
    assert "constant" not in words


def test_what_speaks_for_the_first_shape_stands_on_its_side():
    found = TwoShapes(np.array([[-1.0], [1.0]] * 5), np.array([[0.0], [1.0]] * 5), ["flag"], "one", "other")
    axes = draw_two_shapes(found, WIDE_IN).axes[0]
    left, right = axes.get_xlim()
    assert left > 0 > right  # a high flag adds to `one`, whose name is on the left


@pytest.mark.parametrize("n", [0, 4])
def test_features_that_never_differ_give_no_comparison(n):
    assert draw_two_shapes(TwoShapes(np.zeros((n, 1)), np.ones((n, 1)), ["a"], "0", "1"), WIDE_IN) is None


def reasons(*factors, end=None):
    start = 0.1
    return RunReasons(
        "run", "odds", start, end or start * float(np.prod(factors)), [Reason(f"r{f}", f) for f in factors], 50
    )


def test_reasons_lead_from_what_is_usual_to_the_prediction_largest_first():
    run = reasons(1.5, 0.2, 4.0)
    assert [reason.factor for reason in run.shown] == [0.2, 4.0, 1.5]
    bars = draw_one_run(run, WIDE_IN).axes[0].patches
    ends = [bar.get_x() + bar.get_width() for bar in bars]
    assert ends == pytest.approx([0.02, 0.08, 0.12])
    assert [bar.get_x() for bar in bars[1:]] == pytest.approx(ends[:-1])


def test_what_the_reasons_leave_is_drawn_as_all_else():
    shown = reasons(2.0, end=0.6).shown
    assert [(reason.words, pytest.approx(reason.factor)) for reason in shown] == [("r2.0", 2.0), ("all else", 3.0)]
    many = reasons(*np.linspace(1.1, 3, 12)).shown
    assert many[-1].words == "all else"
    assert np.prod([reason.factor for reason in many]) == pytest.approx(np.prod(np.linspace(1.1, 3, 12)))


def test_what_raises_a_risk_is_orange_and_a_gain_blue():
    run = reasons(2.0, 0.4)
    assert [to_hex(bar.get_facecolor()) for bar in draw_one_run(run, NARROW_IN).axes[0].patches] == [BLUE, ORANGE]


def test_a_run_that_is_as_usual_has_nothing_to_explain():
    assert draw_one_run(reasons(1.0, 1.001), WIDE_IN) is None
