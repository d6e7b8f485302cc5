"""Figures of workloads: words never meet, colours follow the page, numbers are told as people read them."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from tasks.report.images import to_png, to_svg
from tasks.report.style import NARROW_IN, WIDE_IN, whorl_style
from tasks.report.workloads_adf import AdfShares, draw_adf
from tasks.report.workloads_alignment import align, draw_alignment
from tasks.report.workloads_confusion import WorkloadConfusion, draw_workload_confusion
from tasks.report.workloads_distances import WorkloadDistances, draw_distances_of_workloads
from tasks.report.workloads_online import OnlineCurve, draw_online
from tasks.report.workloads_open_set import OpenSetScores, draw_open_set
from tasks.report.workloads_phases import draw_phases, phases_of_runs
from tasks.report.workloads_run_phases import RunPhases
from tasks.report.workloads_series import CounterSeries, RunSeries, draw_series
from tasks.report.workloads_timeline import draw_runs_over_time, runs_over_time
from tasks.workloads.identify.phases import bounds_of
from tasks.workloads.similarity.thresholds import Spread

LONG = "a_workload_with_quite_a_long_name_of_its_own"
GROUPS = ("cpu", "disk", "net", "vm", "perf", "own.cpu", "softirq", "memory")
NAMES = tuple(
    sorted(f"{group}.{what}" for group in GROUPS for what in ("first_bytes", "second_requests_of_the_kernel"))
)
LEAST_PT = 9
SLACK_PX = 1.5  # at 100 dots an inch: boxes hold a little air


def run_phases(n_phases, seed, *, n_samples=30, workload="mariadb", interval_s=1.0):
    """A run whose counters and whole change in the same places."""
    rng = np.random.default_rng(seed)
    inner = np.sort(rng.choice(np.arange(1, n_samples), n_phases - 1, replace=False))
    bounds = bounds_of(inner, n_samples)
    table = rng.normal(0, 3, (n_phases, len(NAMES)))
    return RunPhases(
        f"round-1/{workload}-{seed}", workload, "large", interval_s, NAMES, (bounds,) * len(NAMES), tuple(table.T),
        bounds, table, table,
    )  # fmt: skip


def run_series(n=30, n_changes=4, scale=1e7):
    rng = np.random.default_rng(1)
    values = np.where(np.arange(n) < n // 2, 1.0, 9.0) + rng.normal(0, 0.3, n)
    values[3] = np.nan
    changes = np.linspace(1, n - 1, n_changes + 2).astype(np.int64)[1:-1]
    probabilities = np.linspace(0.3, 0.99999, n_changes)
    counters = [
        CounterSeries("disk.written_bytes", "B/s", scale * values, changes, probabilities),
        CounterSeries("cpu.user_cores", "cores", np.full(n, 2e-5), np.zeros(0, np.int64), np.zeros(0)),
        CounterSeries(f"perf.{LONG}", "a second", -values, changes[:1], np.full(1, np.nan)),
        CounterSeries("vm.major_faults", "", np.full(n, np.nan), np.zeros(0, np.int64), np.zeros(0)),
    ]
    return RunSeries(f"{LONG} · large (round-3/{LONG}-11)", np.arange(n) * 1.0, counters, 131)


def distances():
    own = {f"{i} {LONG}": (Spread(131.1 + i, 52.7, 45), Spread(811.9, 65.5, 900)) for i in range(10)}
    alone = {"seen once": (None, Spread(7.0, 0.0, 1))}
    return WorkloadDistances({"ed": own | alone, "dtw": {name: (one, None) for name, (one, _) in own.items()}}, 100)


def confusion(k, *, with_unknown=False, wrong=3):
    counts = 20 * np.eye(k, k + with_unknown, dtype=np.int64)
    counts[0, -1] = wrong
    return WorkloadConfusion(tuple(f"{LONG}{i}" for i in range(k)), counts)


def identified(n, k):
    """Rows of n identified runs of k workloads, one every quarter of an hour, some of them unknown."""
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "run_id": [f"run-{at:04}" for at in range(n)],
            "workload": [f"{LONG}{at % k}" for at in range(n)],
            "is_known": np.arange(n) % 7 < 6,
            "confidence": rng.beta(8, 1, n),
            "label": None,
            "started_at": pd.Timestamp("2026-03-01") + pd.to_timedelta(15 * np.arange(n), unit="min"),
        }
    )


def figures():
    rng = np.random.default_rng(2)
    lines = {"trees": {5.0: 0.41, 10: 0.9, 15: 0.951, 20: 0.999, 30: 1.0}, "forest": {5.0: 0.4, 30.0: 0.99}}
    scores = OpenSetScores(rng.beta(2, 30, 400), rng.beta(5, 3, 300), 0.2, 0.987, 45)
    lengths = rng.integers(1, 40, 5000)
    many = [run_phases(2 + i % 4, i, workload=f"workload{i}") for i in range(10)]
    return {
        "series": (draw_series, run_series()),
        "series-many-changes": (draw_series, run_series(60, 25)),
        "series-long": (draw_series, run_series(30_000, 60, 1e-3)),
        "phases-of-one": (draw_phases, phases_of_runs([run_phases(4, 5)])),
        "phases-of-six": (draw_phases, phases_of_runs(many[:6])),
        "phases-of-ten": (draw_phases, phases_of_runs(many)),
        "phases-hours": (draw_phases, phases_of_runs([run_phases(9, 5, n_samples=9_000, interval_s=2.0)])),
        "alignment": (draw_alignment, align(run_phases(5, 6), run_phases(3, 7))),
        "alignment-of-one-phase": (draw_alignment, align(run_phases(1, 6), run_phases(1, 7))),
        "alignment-long": (
            draw_alignment,
            align(run_phases(120, 6, n_samples=6000), run_phases(4, 7, n_samples=300, workload=LONG)),
        ),
        "confusion": (draw_workload_confusion, confusion(10)),
        "confusion-unknown": (draw_workload_confusion, confusion(12, with_unknown=True)),
        "confusion-right": (draw_workload_confusion, confusion(2, wrong=0)),
        "distances": (draw_distances_of_workloads, distances()),
        "online": (draw_online, OnlineCurve(lines, 60, 10)),
        "online-one": (draw_online, OnlineCurve({"trees": {30.0: 0.05}}, 60, 20)),
        "open-set": (draw_open_set, scores),
        "open-set-equal": (draw_open_set, OpenSetScores(np.ones(9), np.ones(7), 1.0, 0.5)),
        "adf": (draw_adf, AdfShares(lengths, lengths >= 20)),
        "timeline": (draw_runs_over_time, runs_over_time(identified(60, 10))),
        "timeline-of-many": (draw_runs_over_time, runs_over_time(identified(900, 40))),
        "timeline-without-times": (draw_runs_over_time, runs_over_time(identified(12, 3).assign(started_at=pd.NaT))),
        "timeline-of-one": (draw_runs_over_time, runs_over_time(identified(1, 1))),
    }  # fmt: skip


FIGURES = figures()
each_figure = pytest.mark.parametrize("name", FIGURES)
each_width = pytest.mark.parametrize("width_in", [WIDE_IN, NARROW_IN])


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
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    high = min(one.y1, other.y1) - max(one.y0, other.y0)
    return wide > SLACK_PX and high > SLACK_PX


@each_figure
@each_width
def test_no_words_lie_on_others_or_leave_the_figure_and_its_png_is_small(name, width_in, monkeypatch):
    draw, data = FIGURES[name]
    figure = draw(data, width_in)
    texts = drawn_texts(figure, monkeypatch)
    assert texts
    assert [(a.get_text(), b.get_text()) for (a, one), (b, other) in combinations(texts, 2) if meet(one, other)] == []
    right, top = figure.bbox.x1, figure.bbox.y1
    boxes = [(text.get_text(), box) for text, box in texts]
    assert [w for w, b in boxes if b.x0 < -1 or b.y0 < -1 or b.x1 > right + 1 or b.y1 > top + 1] == []
    assert min(text.get_fontsize() for text, _ in texts) >= LEAST_PT
    if width_in == WIDE_IN and name != "phases-of-ten":  # those that stand in artifacts
        assert len(to_png(figure)) < 100_000


@each_figure
@each_width
def test_no_number_has_an_exponent_or_is_a_negative_zero(name, width_in, monkeypatch):
    draw, data = FIGURES[name]
    for text, _ in drawn_texts(draw(data, width_in), monkeypatch):
        assert not re.search(r"\d[eE][-+]?\d|-0(\.0+)?\b(?!\.)|nan|inf", text.get_text()), text.get_text()


@each_figure
def test_each_is_the_same_svg_each_time_in_colours_of_the_page_only(name):
    draw, data = FIGURES[name]
    svg = to_svg(draw(data, NARROW_IN), name, "alt")
    assert svg == to_svg(draw(data, NARROW_IN), name, "alt")
    assert re.findall(r": (#[0-9a-f]{6})[;\"]", svg) == []
    assert len(svg) < 400_000


def test_the_evidence_of_each_says_of_how_many_it_is():
    for name, (_, data) in FIGURES.items():
        assert re.match(r"n = [1-9]", data.evidence), name


@pytest.mark.parametrize(
    ("draw", "data"),
    [
        (draw_series, RunSeries("run", np.arange(3.0), [], 0)),
        (draw_phases, phases_of_runs([])),
        (draw_online, OnlineCurve({"trees": {}}, 0, 0)),
        (draw_open_set, OpenSetScores(np.zeros(0), np.ones(2), 0.5, None)),
        (draw_adf, AdfShares(np.zeros(0, np.int64), np.zeros(0, bool))),
        (draw_distances_of_workloads, WorkloadDistances({"ed": {}, "dtw": {}}, 0)),
        (draw_workload_confusion, WorkloadConfusion(("redis",), np.zeros((1, 1), np.int64))),
        (draw_runs_over_time, runs_over_time(identified(1, 1).head(0))),
    ],
)
def test_nothing_is_drawn_of_nothing(draw, data):
    assert draw(data, WIDE_IN) is None
