"""Figures of reasons: which features are shown, in which order, and that factors add up to the prediction."""

import numpy as np
import pytest

from tasks.report.jobs_reasons import N_FEATURES, Reason, RunReasons, Swarm, TwoShapes, swarm_figure, two_shapes_figure


def words_of(figure):
    return "\n".join(text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize")))


def swarm(n=200, p=3):
    rng = np.random.default_rng(1)
    of_feature = rng.normal(size=(n, p))
    return Swarm(of_feature * np.arange(p), of_feature, [f"feature {i}" for i in range(p)], "shape 6")


def test_the_feature_that_adds_most_is_on_top_and_one_that_adds_nothing_is_left_out():
    found = swarm()
    assert found.order.tolist() == [2, 1]


def dots_of(figure):
    """Of each row from the top: places and colours of its dots, those of unknown features left out."""
    rows = {}
    for dots in figure.axes[0].collections:
        if dots.get_array() is not None and len(dots.get_offsets()):
            dots.update_scalarmappable()
            places = np.asarray(dots.get_offsets())
            rows[round(float(places[:, 1].mean()))] = places, np.asarray(dots.get_facecolor())
    return [rows[row] for row in sorted(rows)]


def test_no_more_features_than_fit_are_shown_and_no_runs_give_no_figure():
    assert len(swarm(p=30).order) == N_FEATURES
    assert swarm_figure(Swarm(np.zeros((0, 2)), np.zeros((0, 2)), ["a", "b"], "shape 0"), "s").chart is None


def test_two_shapes_are_compared_at_the_low_and_the_high_third_of_each_feature():
    of_feature = np.column_stack([np.arange(9.0), np.full(9, 1.0), [0, 0, 0, 0, 0, 0, 0, 0, 1.0]])
    difference = np.column_stack([np.arange(9.0), np.arange(9.0), [0, 0, 0, 0, 0, 0, 0, 0, 9.0]])
    found = TwoShapes(difference, of_feature, ["ramp", "constant", "flag"], "shape 0", "shape 2")
    assert found.ends[0] == pytest.approx([1.5, 6.5], abs=0.6)
    assert np.isnan(found.ends[1]).all()
    assert found.ends[2].tolist() == [0, 9]
    assert found.order.tolist() == [2, 0]


@pytest.mark.parametrize("n", [0, 4])
def test_features_that_never_differ_give_no_comparison(n):
    assert two_shapes_figure(TwoShapes(np.zeros((n, 1)), np.ones((n, 1)), ["a"], "0", "1"), "t").chart is None


def reasons(*factors, end=None):
    start = 0.1
    return RunReasons(
        "run", "odds", start, end or start * float(np.prod(factors)), [Reason(f"r{f}", f) for f in factors], 50
    )


def test_reasons_lead_from_what_is_usual_to_the_prediction_largest_first():
    run = reasons(1.5, 0.2, 4.0)
    assert [reason.factor for reason in run.shown] == [0.2, 4.0, 1.5]
