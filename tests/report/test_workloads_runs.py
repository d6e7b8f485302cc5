"""What figures of runs show: the right counters, phases and offsets, worked out by hand."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from tasks.report.workloads_runs import alignment_figure, phases_figure, short_number, unit_words
from tasks.workloads.cut_runs import RunPhases, family_of, movement, phases_of_rows, pick_counters

ABOUT = {"run_id": "run", "workload": "redis", "input": "large", "interval_s": 2.0}


def run_of(levels, run_id="run"):
    """A run whose counters a, b, … change together: levels (n_phases, n_counters), two samples a phase."""
    table = np.asarray(levels, dtype=float)
    bounds = 2 * np.arange(len(table) + 1)
    names = tuple("abcdefgh"[: table.shape[1]])
    about = ABOUT | {"run_id": run_id}
    return RunPhases(about, pd.DataFrame(), names, (bounds,) * len(names), tuple(table.T), bounds, table)


def test_a_level_moves_by_the_deviation_of_its_phases_weighed_by_their_samples():
    bounds = np.array([0, 3, 4])  # level 0 for three samples, 4 for one: mean 1, variance (3 · 1 + 9) / 4 = 3
    found = movement([np.array([0.0, 4.0]), np.array([5.0, 5.0]), np.array([np.nan, np.nan])], [bounds] * 3)
    assert found == pytest.approx([np.sqrt(3), 0, 0])


def test_of_each_family_the_counter_that_moved_most_comes_before_a_second_one():
    names = ["cpu.user_cores", "own.cpu.user_cores", "disk.reads", "net.sent_bytes"]
    assert [family_of(name) for name in names] == ["cpu", "cpu", "disk", "net"]
    assert family_of("L1-dcache-loads") == "L1-dcache-loads"
    moved = np.array([3.0, 2.9, 1.0, 0.0])
    assert pick_counters(names, moved, 2) == ["cpu.user_cores", "disk.reads"]
    assert pick_counters(names, moved, 3) == names[:3]  # what did not move is never shown
    assert pick_counters(names, moved, 4) == names[:3]


def test_the_level_of_a_counter_in_a_phase_of_the_workload_is_the_mean_over_its_samples():
    rows = pd.DataFrame(
        {"counter": ["b", "a", "a"], "start_sample": [0, 2, 0], "end_sample": [4, 4, 2], "mean": [1.0, 8.0, 2.0]}
    )
    found = phases_of_rows(ABOUT, rows, pd.DataFrame({"start_sample": [1, 0], "end_sample": [4, 1]}))
    assert found.counters == ("a", "b")
    assert [edges.tolist() for edges in found.bounds] == [[0, 2, 4], [0, 4]]
    assert found.shared.tolist() == [0, 1, 4]
    assert found.over.tolist() == [[2.0, 1.0], [pytest.approx((2 + 8 + 8) / 3), 1.0]]
    assert found.title == "redis · large (run)"


def drawn(figure):
    """The rows that a figure draws."""
    assert isinstance(figure.chart, partial)
    return figure.chart.args[0]


def test_runs_are_drawn_on_the_common_counters_that_differ_most():
    one, other = run_of([[0, 5, 1]]), run_of([[0, -5, 2]], "other").on(["c", "b", "a"])
    found = phases_figure([one, other], n_rows=2)
    assert found.evidence == "n = 2 runs; 2 of 3 counters, those that differ most"
    rows = drawn(found)
    assert list(zip(rows["run"], rows["counter"], rows["level"], strict=True)) == [
        ("redis · large (run)", "b", 5), ("redis · large (run)", "c", 1),
        ("redis · large (other)", "b", -5), ("redis · large (other)", "c", 2),
    ]  # a is the same everywhere  # fmt: skip
    assert rows["end"].tolist() == [4.0] * 4  # two samples, one every two seconds


def test_the_shorter_run_lies_where_it_fits_best():
    longer, shorter = run_of([[9, 9], [0, 1], [4, 4], [7, 7]], "long"), run_of([[0, 1], [4, 5]], "short")
    found = alignment_figure(shorter, longer)
    assert found.words.endswith("offset 1.")
    assert found.evidence == "n = 2 of 4 phases compared on 2 counters"
    rows = drawn(found)
    assert set(rows.loc[rows["run"].str.contains("short"), "phase"]) == {1, 2}
    assert "Distance 1 (DTW" in found.words


def test_without_a_run_or_anything_that_differs_a_figure_says_so():
    assert phases_figure([]).words == "No run has been cut into phases yet."
    assert "no counter in common that varies" in phases_figure([run_of([[3.0]])]).words
    for other in (None, run_of([[3.0]], "same")):
        assert alignment_figure(run_of([[3.0]]), other).chart is None


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0"), (-0.0, "0"), (2e-5, "0.00002"), (950, "950"), (12_345, "12.3 k"), (-4.5e6, "-4.5 M"), (1.2e9, "1.2 G")],
)
def test_values_are_short_and_have_no_exponent(value, words):
    assert short_number(value) == words


def test_units_and_times_are_told_in_words():
    assert [unit_words("B", is_rate=True), unit_words("B", is_rate=False)] == ["B/s", "B"]
    assert [unit_words("core-seconds", is_rate=True), unit_words("", is_rate=True)] == ["cores", "a second"]
