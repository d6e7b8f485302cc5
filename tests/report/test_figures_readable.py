"""Figures of shapes, predictions, reasons and changes: words never meet at both widths, colours follow the page."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from tasks.jobs.normalisation import Bins
from tasks.jobs.scores import (
    PERCENTILES,
    GroupDistance,
    Pooled,
)
from tasks.jobs.shapes import (
    InertiaCurve,
    ShapeSet,
)
from tasks.report.explain_beeswarm import Swarm, draw_swarm
from tasks.report.explain_importance import Importances, draw_importance
from tasks.report.explain_one_run import Reason, RunReasons, draw_one_run
from tasks.report.explain_two_shapes import TwoShapes, draw_two_shapes
from tasks.report.images import to_png, to_svg
from tasks.report.prediction_by_history import AccuracyBand, AccuracyByHistory, draw_accuracy
from tasks.report.prediction_calibration import CalibrationCheck, draw_calibration
from tasks.report.prediction_confusion import Confusion, draw_confusion
from tasks.report.prediction_distances import DistanceComparison, draw_distances
from tasks.report.prediction_fan import COLUMNS, Fan, draw_fan
from tasks.report.prediction_quantiles import QuantileComparison, draw_quantiles
from tasks.report.shapes_bins import BinComparison, draw_bins
from tasks.report.shapes_cov_drawing import draw_cov_faults
from tasks.report.shapes_cov_faults import find_cov_faults
from tasks.report.shapes_inertia import InertiaChoice, draw_inertia
from tasks.report.shapes_likelihood import compare_with_shapes, draw_likelihood
from tasks.report.shapes_panels import ShapePanels, draw_shapes
from tasks.report.shapes_rivals import RivalClusterings, draw_rivals
from tasks.report.style import NARROW_IN, WIDE_IN, new_figure, whorl_style
from tasks.report.whatif_migration import MigrationMap, draw_migration
from tasks.report.whatif_pairs import PairChanges, draw_pairs

LONG = "warehouse_orders_by_region_and_quarter {date} run={n}#04cd8f2f · user 15 · 128 cpus"
PREDICTORS = ("model", "history", "forest", "global")
LEAST_PT = 9
SLACK_PX = 1.5  # at 100 dots an inch: boxes hold a little air


def shape_set(kind, k=8):
    bins = Bins(kind=kind, low=0, high=10) if kind == "ratio" else Bins(kind=kind, low=-900, high=900)
    middle = 1.0 if kind == "ratio" else 0.0
    widths = (bins.high - bins.low) / 40 * np.arange(1, k + 1)[:, None]
    centres = np.exp(-np.abs(bins.centres - middle) / widths) + 1e-5
    centres[:, -1] += 0.2
    return ShapeSet(bins, centres / centres.sum(axis=1, keepdims=True), np.full(k, 1 / k), np.full(k, 1200), 3.5)


def panels(kind):
    rows = {"n_groups": 12_345, "n_runs": 1_234_567, "outlier_percent": 24.23, "p25_p75": 936.0}
    return ShapePanels(shape_set(kind), pd.DataFrame([rows | {"p95": 8_359.0, "std": 2_548.7}] * 8))


def runs_over_time():
    rng = np.random.default_rng(4)
    n = 80
    times = pd.Timestamp("2026-03-01 22:00") + pd.to_timedelta(np.sort(rng.uniform(0, 9e4, n)), unit="s")
    actual = np.exp(rng.normal(3, 0.8, n))
    levels = np.exp(3 + 0.8 * np.array([-1.64, -0.67, 0, 0.67, 1.64]))
    frame = pd.DataFrame(np.column_stack([actual, np.tile(levels, (n, 1))]), columns=COLUMNS[1:])
    frame.insert(0, "submitted_at", times)
    past = frame[["submitted_at", "runtime_s"]].assign(submitted_at=frame["submitted_at"] - pd.Timedelta("26h"))
    return Fan(LONG, frame, past)


def swarm_parts():
    rng = np.random.default_rng(5)
    of_feature = rng.lognormal(size=(300, 12))
    added = np.log(of_feature) * np.linspace(1, 0.1, 12)
    return added, of_feature, [f"{i} {LONG}" for i in range(12)]


def job_runs():
    rng = np.random.default_rng(6)
    rows = [(f"{LONG} {i}", 10.0 ** (i % 4) * x) for i in range(12) for x in rng.lognormal(0, 0.2 + 0.1 * i, 60)]
    frame = pd.DataFrame(rows, columns=["group_key", "runtime_s"])
    return frame.assign(submitted_at=pd.date_range("2026-01-01", periods=len(frame), freq="min"))


def pooled():
    actual = np.geomspace(0.5, 40_000, 99)
    return {
        name: Pooled(0.05, PERCENTILES, actual * f, actual, actual * abs(f - 1), 123.4, 5000)
        for name, f in zip(PREDICTORS, (1.01, 1.012, 0.99, 1.5), strict=True)
    }


def distances():
    rng = np.random.default_rng(7)
    return {p: GroupDistance(0.3, 900, 9000, 40, None, rng.beta(2, 4, 900)) for p in PREDICTORS}


def figures():
    rng = np.random.default_rng(8)
    counts = rng.poisson(400, (8, 8)) + np.diag(rng.poisson(90_000, 8))
    labels = ("1–5", "6–10", "11–15", "16–50", "> 50")
    bands = [AccuracyBand(label, 12_345, 0.905, 0.91, 0.9) for label in labels]
    curve = InertiaCurve(list(range(1, 13)), (1 / np.arange(1, 13)).tolist(), 4)
    reasons = [Reason(f"{i} {LONG}", f) for i, f in enumerate((4.2, 2.3, 0.3, 1.6, 0.7))]
    added, of_feature, words = swarm_parts()
    factors = np.exp(rng.normal(-0.2, 0.4, (2, 200)))
    job = compare_with_shapes(LONG, np.full(200, 500), shape_set("delta"), empty_bin_prior=0.001)
    n_bins = [50, 100, 200, 500]
    bins = pd.DataFrame({"n_bins": n_bins, "stability": [0.05, 1.0, 0.7, -0.02], "log_score": -1.2, "n_groups": 9000})
    methods = ["agglomerative (average)", "hierarchical (complete)", "k-means"]
    rivals = pd.DataFrame({"method": methods, "largest_share": [0.99, 0.531, 0.207], "n_groups": 3000})
    return {
        "bins": (draw_bins, BinComparison(bins, 200)),
        "bins-without-score": (draw_bins, BinComparison(bins.assign(log_score=np.nan), 200)),
        "rivals": (draw_rivals, RivalClusterings(rivals, 8)),
        "rivals-alone": (draw_rivals, RivalClusterings(rivals.tail(1), 1)),
        "panels-ratio": (draw_shapes, panels("ratio")),
        "panels-delta": (draw_shapes, panels("delta")),
        "inertia": (draw_inertia, InertiaChoice(curve, 5, 9000)),
        "inertia-flat": (
            draw_inertia,
            InertiaChoice(InertiaCurve(list(range(1, 13)), np.linspace(9, 5, 12).tolist(), None), 8, 9000),
        ),
        "inertia-far": (draw_inertia, InertiaChoice(curve, 12, 9000)),
        "likelihood": (draw_likelihood, job),
        "cov": (draw_cov_faults, find_cov_faults(job_runs())),
        "confusion": (draw_confusion, Confusion(counts)),
        "accuracy": (draw_accuracy, AccuracyByHistory(bands)),
        "quantiles": (draw_quantiles, QuantileComparison(pooled())),
        "calibration": (draw_calibration, CalibrationCheck(rng.uniform(size=2000))),
        "distances": (draw_distances, DistanceComparison(distances())),
        "fan": (draw_fan, runs_over_time()),
        "importance": (
            draw_importance,
            Importances(pd.DataFrame({"words": words, "importance": range(12)}), "Gini importance", 9000),
        ),
        "swarm": (draw_swarm, Swarm(added, of_feature, words, "shape 6")),
        "two-shapes": (draw_two_shapes, TwoShapes(added, of_feature, words, "shape 0", "shape 2")),
        "one-run": (draw_one_run, RunReasons(LONG, "odds of a slow run", 0.04, 0.6, reasons, 800)),
        "migration": (draw_migration, MigrationMap(counts, LONG)),
        "pairs": (draw_pairs, PairChanges(*factors, LONG, 0.71, (0.64, 0.77))),
    }


FIGURES = figures()
each_figure = pytest.mark.parametrize("name", FIGURES)


def drawn_texts(figure, monkeypatch):
    """The words that a drawing of the figure writes, with their boxes in pixels."""
    found = []
    original = Text.draw

    def record(text, renderer, *args, **kwargs):
        if text.get_visible() and text.get_text().strip():
            found.append(text)
        return original(text, renderer, *args, **kwargs)

    with whorl_style(), monkeypatch.context() as patch:
        patch.setattr(Text, "draw", record)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return [(text, text.get_window_extent(canvas.get_renderer())) for text in found]


def meet(one, other):
    return (
        min(one.x1, other.x1) - max(one.x0, other.x0) > SLACK_PX
        and min(one.y1, other.y1) - max(one.y0, other.y0) > SLACK_PX
    )


@each_figure
@pytest.mark.parametrize("width_in", [WIDE_IN, NARROW_IN])
def test_no_words_lie_on_others_or_leave_the_figure_and_its_png_is_small(name, width_in, monkeypatch):
    draw, data = FIGURES[name]
    figure = draw(data, width_in)
    texts = drawn_texts(figure, monkeypatch)
    assert texts
    overlaps = [(a.get_text(), b.get_text()) for (a, one), (b, other) in combinations(texts, 2) if meet(one, other)]
    assert overlaps == []
    right, top = figure.bbox.x1, figure.bbox.y1
    outside = [
        text.get_text() for text, box in texts if box.x0 < -1 or box.y0 < -1 or box.x1 > right + 1 or box.y1 > top + 1
    ]
    assert outside == []
    assert min(text.get_fontsize() for text, _ in texts) >= LEAST_PT
    assert len(to_png(figure)) < 100_000


@each_figure
def test_each_is_the_same_svg_each_time_in_colours_of_the_page_only(name):
    draw, data = FIGURES[name]
    svg = to_svg(draw(data, NARROW_IN), name, "alt")
    assert svg == to_svg(draw(data, NARROW_IN), name, "alt")
    assert re.findall(r": (#[0-9a-f]{6})[;\"]", svg) == []
    assert len(svg) < 400_000


def test_words_of_a_drawing_keep_all_their_digits():
    figure = new_figure(3, 2)
    figure.text(0.123456, 0.5, "0.00005")
    svg = to_svg(figure, "digits", "alt")
    assert ">0.00005</text>" in svg
    assert not re.search(r"=\"[^\"]*\d\.\d{3}", svg)


def test_the_evidence_of_each_says_of_how_many_it_is():
    for name, (_, data) in FIGURES.items():
        assert re.match(r"n = [1-9]|one run, against [1-9]", data.evidence), name
