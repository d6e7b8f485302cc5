"""Figure 4: each benchmark is named beside its dots, its norms stand in its row, and nothing has to be looked up."""

import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from tasks.report.images import to_png, to_svg
from tasks.report.nodes_figures import plane_figure
from tasks.report.nodes_leads import rows_of_names
from tasks.report.nodes_learned import MOST_POINTS, MOST_TYPES, plane_of_rows
from tasks.report.nodes_plane import NAME_CHARS, SHADES, PlaneOfNodes, draw_plane
from tasks.report.style import DENSITY, NARROW_IN, ORANGE, WIDE_IN, plain_label, whorl_style

BENCHMARKS = ("cpu-sysbench", "memory-sysbench", "disk-fio", "disk-ioping", "network-qperf", "network-iperf3")
LONG = "stress-ng-memory-bandwidth-of-all-cores-{}@0123abcd"
SLACK_PX = 1.5
widths = pytest.mark.parametrize("width_in", [WIDE_IN, NARROW_IN])


def plane(names=BENCHMARKS, runs=40, flagged=0.2):
    """Types on a circle, tight in direction; the lowest norms of each are flagged."""
    rng = np.random.default_rng(3)
    parts = []
    for at, name in enumerate(names):
        angle = 2 * np.pi * at / len(names)
        ratio = np.sort(np.exp(rng.normal(0, 0.2, runs)))
        parts.append(
            pd.DataFrame(
                {
                    "type": name,
                    "x": np.cos(angle) + rng.normal(0, 0.02, runs),
                    "y": np.sin(angle) + rng.normal(0, 0.02, runs),
                    "ratio": ratio,
                    "is_flagged": np.arange(runs) < flagged * runs,
                }
            )
        )
    return PlaneOfNodes(pd.concat(parts, ignore_index=True), runs * len(names), len(names), 0.8)


DRAWN = {
    "six": plane(),
    "many": plane([LONG.format(at) for at in range(MOST_TYPES)], runs=20),
    "one": plane(BENCHMARKS[:1], runs=1, flagged=0),
    "all-flagged": plane(BENCHMARKS[:2], runs=1000, flagged=1),
    "far": PlaneOfNodes(plane().points.assign(ratio=lambda rows: rows["ratio"] ** 12), 240, 6, 1.0),
}


def dots(axes):
    """Across, up and colour of every dot."""
    lines = [line for line in axes.lines if line.get_marker() == "o"]
    return [
        (float(x), float(y), line.get_color())
        for line in lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def drawn_texts(figure, monkeypatch):
    """The words of the figure with their boxes in pixels."""
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


@widths
def test_a_line_leads_from_the_middle_of_each_benchmark_to_its_name(width_in):
    data = DRAWN["six"]
    axes, _ = draw_plane(data, width_in).axes
    low, high = axes.get_ylim()
    names = {text.get_text(): text.xy[1] for text in axes.texts}  # fractions of the height
    leads = [line for line in axes.lines if line.get_marker() == "None"]
    assert len(leads) == len(BENCHMARKS)
    for name, own in data.points.groupby("type"):
        at = names[plain_label(str(name), NAME_CHARS[width_in == NARROW_IN])]
        [lead] = [line for line in leads if line.get_ydata()[0] == pytest.approx(own["y"].median())]
        assert lead.get_xdata()[0] == pytest.approx(own["x"].median())
        assert (lead.get_ydata()[1] - low) / (high - low) == pytest.approx(at)


@widths
def test_every_norm_stands_in_the_row_of_its_benchmark(width_in):
    data = DRAWN["six"]
    plane_axes, norms = draw_plane(data, width_in).axes
    found = dots(norms)
    assert len(found) == len(dots(plane_axes)) == len(data.points)
    names = [text for text in plane_axes.texts if text.get_text() in BENCHMARKS]
    assert len(names) == len(BENCHMARKS)
    for row, text in enumerate(sorted(names, key=lambda text: -text.xy[1])):
        name = text.get_text()
        own = sorted(x for x, y, _ in found if round(y) == row)
        assert own == pytest.approx(sorted(data.points.loc[data.points["type"] == name, "ratio"]))


def test_a_larger_norm_is_darker_and_what_is_flagged_is_orange():
    data = DRAWN["six"]
    _, norms = draw_plane(data, WIDE_IN).axes
    by_norm = {x: colour for x, _, colour in dots(norms)}
    for _, own in data.points.groupby("type"):
        colours = [by_norm[float(ratio)] for ratio in own["ratio"]]  # rising
        assert colours[:8] == [ORANGE] * 8 and ORANGE not in colours[8:]
        shades = [SHADES.index(colour) for colour in colours[8:]]
        assert shades == sorted(shades) and colours[-1] == DENSITY[-1] and shades[0] < shades[-1]


@widths
@pytest.mark.parametrize("name", DRAWN)
def test_no_words_lie_on_others_or_leave_the_figure_and_its_png_is_small(name, width_in, monkeypatch):
    figure = draw_plane(DRAWN[name], width_in)
    texts = drawn_texts(figure, monkeypatch)
    assert {"Directions", "Norms"} <= {text.get_text() for text, _ in texts}
    overlaps = [
        (a.get_text(), b.get_text())
        for (a, one), (b, other) in combinations(texts, 2)
        if min(one.x1, other.x1) - max(one.x0, other.x0) > SLACK_PX
        and min(one.y1, other.y1) - max(one.y0, other.y0) > SLACK_PX
    ]
    assert overlaps == []
    right, top = figure.bbox.x1, figure.bbox.y1
    assert [
        text.get_text() for text, box in texts if box.x0 < -1 or box.y0 < -1 or box.x1 > right + 1 or box.y1 > top + 1
    ] == []
    strips = figure.axes[1].get_window_extent().x0
    names = [box.x1 for text, box in texts if text.axes is figure.axes[0]]
    assert max(names) < strips  # no name lies on a norm
    assert len(to_png(figure)) < 100_000


def test_it_is_the_same_svg_each_time_in_colours_of_the_page_only():
    svg = to_svg(draw_plane(DRAWN["six"], NARROW_IN), "plane", "alt")
    assert svg == to_svg(draw_plane(DRAWN["six"], NARROW_IN), "plane", "alt")
    assert re.findall(r": (#[0-9a-f]{6})[;\"]", svg) == []


def rows_of(counts):
    """Rows as the query gives them: counts of points by benchmark and template, those with most first."""
    kinds = sorted(counts, key=lambda kind: -counts[kind])
    return pd.DataFrame(
        [
            {"benchmark": kind[0], "template_hash": kind[1], "x": at, "y": 0.0, "ratio": 1.0, "is_flagged": False}
            | {"n_of_type": counts[kind], "place": at + 1}
            for kind in kinds
            for at in range(counts[kind])
        ]
    )


def test_a_benchmark_with_one_template_has_its_plain_name():
    found = plane_of_rows(rows_of({("cpu", "a" * 64): 3, ("disk", "b" * 64): 2, ("disk", "c" * 64): 1}), 0.5)
    assert list(found.points["type"].unique()) == ["cpu", "disk@bbbbbbbb", "disk@cccccccc"]
    assert found.evidence == "n = 6 fingerprints of 3 benchmarks; x and y hold 50.0 %"


def test_of_many_types_and_executions_as_many_are_drawn_as_can_be_read():
    counts = {(f"benchmark-{at:02}", ""): 100 - at for at in range(MOST_TYPES + 4)}
    found = plane_of_rows(rows_of(counts), 1.0)
    assert found.points["type"].nunique() == MOST_TYPES and "benchmark-00" in set(found.points["type"])
    each = MOST_POINTS // MOST_TYPES
    assert found.points.groupby("type").size().tolist() == [each] * MOST_TYPES
    assert found.evidence.startswith(f"n = {each * MOST_TYPES:,} of {sum(counts.values()):,} fingerprints of 16 of 20 ")


def test_without_fingerprints_the_words_say_why_and_nothing_is_drawn():
    empty = PlaneOfNodes(DRAWN["one"].points.assign(x=np.nan), 1, 1, 0.0)
    assert plane_of_rows(rows_of({}), 0.0) is None
    for data in (None, empty):
        figure = plane_figure(data)
        assert (figure.draw, figure.evidence) == (None, "n = 0")
        assert "No execution has a fingerprint" in figure.words
    assert draw_plane(empty, WIDE_IN) is None


def test_names_stand_by_height_but_for_a_line_that_would_pass_another_group():
    """A line from (0.3, 0.92) to the first of four rows, at 0.875, is at 0.894 where the second group lies, at 0.9; to
    the second row, at 0.625, it is at 0.75 there."""
    across, up = np.array([0.3, 0.7, 0.5, 0.5]), np.array([0.92, 0.9, 0.4, 0.1])
    assert rows_of_names(across, up).tolist() == [1, 0, 2, 3]
    across[1], up[1] = 0.2, 0.7  # no line is near it, nor its own near another
    assert rows_of_names(across, up).tolist() == [0, 1, 2, 3]
    assert rows_of_names(across[:1], up[:1]).tolist() == [0] and rows_of_names(across[:0], up[:0]).tolist() == []
