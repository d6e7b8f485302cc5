"""What figures of workloads show: the right counters, phases, probabilities and tables, worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from tasks.report.workloads_evaluation import OpenSetScores, spreads_of
from tasks.report.workloads_measured import (
    AdfShares,
    WorkloadConfusion,
    called,
    confusion_of_rows,
    known_table,
    missing_splits,
    online_accuracy,
    other_figures,
)
from tasks.report.workloads_runs import (
    AboutRun,
    RunPhases,
    align,
    family_of,
    movement,
    on_counters,
    phases_of_fingerprint,
    phases_of_rows,
    phases_of_runs,
    pick_counters,
    short_number,
    unit_words,
)
from tasks.workloads.identify.phases import STATISTICS, Fingerprint


def run_of(levels, run_id="run", lengths=None):
    """A run whose counters a, b, … change together: levels (n_phases, n_counters), by default two samples a phase."""
    table = np.asarray(levels, dtype=float)
    bounds = np.concatenate([[0], np.cumsum([2] * len(table) if lengths is None else lengths)]).astype(np.int64)
    names = tuple("abcdefgh"[: table.shape[1]])
    edges = (bounds,) * len(names)
    return RunPhases(run_id, "redis", None, 1.0, names, edges, tuple(table.T), bounds, table, table)


def test_a_level_moves_by_the_deviation_of_its_phases_weighed_by_their_samples():
    bounds = np.array([0, 3, 4])  # level 0 for three samples, 4 for one: mean 1, variance (3 · 1 + 9) / 4 = 3
    found = movement([np.array([0.0, 4.0]), np.array([5.0, 5.0]), np.array([np.nan, np.nan])], [bounds] * 3)
    assert found == pytest.approx([np.sqrt(3), 0, 0])


def test_of_each_family_the_counter_that_moved_most_comes_before_a_second_one():
    names = ["cpu.user_cores", "own.cpu.user_cores", "disk.reads", "net.sent_bytes"]
    assert [family_of(name) for name in names] == ["cpu", "cpu", "disk", "net"]
    assert family_of("L1-dcache-loads") == "L1-dcache-loads"
    moved = np.array([3.0, 2.9, 1.0, 0.0])
    assert pick_counters(names, moved, 2) == [0, 2]
    assert pick_counters(names, moved, 3) == [0, 1, 2]  # what did not move is never shown
    assert pick_counters(names, moved, 4) == [0, 1, 2]


def test_phases_of_rows_and_of_a_fingerprint_are_the_same():
    rows = pd.DataFrame(
        {
            "counter": ["b", "a", "a"],
            "start_sample": [0, 2, 0],
            "end_sample": [4, 4, 2],
            "mean": [1.0, 8.0, 2.0],
        }
    )
    whole = pd.DataFrame({"start_sample": [1, 0], "end_sample": [4, 1]})
    found = phases_of_rows(AboutRun("r", "redis", "large", 2.0), rows, whole)
    assert found.counters == ("a", "b")
    assert [edges.tolist() for edges in found.bounds] == [[0, 2, 4], [0, 4]]
    assert found.workload_bounds.tolist() == [0, 1, 4]
    assert found.workload_levels.tolist() == [[2.0, 1.0], [pytest.approx((2 + 8 + 8) / 3), 1.0]]
    assert (found.name, found.duration_s) == ("redis · large", 8.0)

    k = len(STATISTICS)
    summaries = (np.arange(2 * k, dtype=float).reshape(2, k), np.full((1, k), 7.0))
    over = np.concatenate([np.full((1, k), 3.0), np.full((1, k), 4.0)], axis=1)
    made = Fingerprint("r", None, ("a", "b"), found.bounds, summaries, np.array([0, 4]), over)
    shown = phases_of_fingerprint(made, None, workload="redis")
    assert [levels.tolist() for levels in shown.levels] == [[0.0, k], [7.0]]
    assert shown.workload_levels.tolist() == [[3.0, 4.0]]
    assert on_counters(shown, ["b"]).vectors.tolist() == [[4.0] * k]


def test_runs_are_drawn_on_the_common_counters_that_differ_most():
    one = run_of([[0, 5, 1]])
    other = on_counters(run_of([[0, -5, 2]]), ["c", "b", "a"])
    shown = phases_of_runs([one, other], n_rows=2)
    assert [run.counters for run in shown.runs] == [("b", "c"), ("b", "c")]  # a is the same everywhere
    assert shown.runs[1].levels[0].tolist() == [-5]
    assert shown.evidence == "n = 2 runs; 2 of 3 counters, those that differ most"


def test_the_shorter_run_lies_where_it_fits_best():
    longer, shorter = run_of([[9, 9], [0, 1], [4, 4], [7, 7]], "long"), run_of([[0, 1], [4, 5]], "short")
    found = align(shorter, longer)
    assert (found.longer.run_id, found.shorter.run_id, found.offset) == ("long", "short", 1)
    assert found.distances.tolist() == [0, 1]
    assert found.evidence == "n = 2 of 4 phases compared on 2 counters"
    assert align(longer, on_counters(shorter, ["b"])).distances.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0"), (-0.0, "0"), (2e-5, "0.00002"), (950, "950"), (12_345, "12.3 k"), (-4.5e6, "-4.5 M"), (1.2e9, "1.2 G")],
)
def test_values_are_short_and_have_no_exponent(value, words):
    assert short_number(value) == words


def test_units_and_times_are_told_in_words():
    assert [unit_words("B", is_rate=True), unit_words("B", is_rate=False)] == ["B/s", "B"]
    assert [unit_words("core-seconds", is_rate=True), unit_words("", is_rate=True)] == ["cores", "a second"]


def test_the_worst_error_is_that_with_the_largest_share_of_its_row():
    found = WorkloadConfusion(("a", "b", "c"), np.array([[90, 10, 0], [0, 2, 1], [0, 0, 0]]))
    assert found.worst == (1, 2)
    assert found.accuracy == pytest.approx(92 / 103)
    assert np.isnan(found.shares[2]).all()
    assert WorkloadConfusion(("a",), np.array([[3]])).worst is None


def test_runs_called_unknown_have_the_last_column():
    rows = pd.DataFrame({"actual": ["b", "a", "b"], "predicted": ["", "a", "b"], "n": [2, 5, 1]})
    found = confusion_of_rows(rows, "model m")
    assert found.workloads == ("a", "b")
    assert found.counts.tolist() == [[5, 0, 0], [0, 1, 2]]
    assert found.accuracy == pytest.approx(6 / 8)
    assert confusion_of_rows(rows.head(0), "model m") is None


def test_distances_within_and_to_others_by_hand():
    distances = np.array([[0, 2, 9], [2, 0, 7], [9, 7, 0.0]])
    found = spreads_of(distances, ["a", "a", "b"])
    own, others = found["a"]
    assert (own.mean, own.n) == (2, 1)
    assert (others.mean, others.n, others.deviation) == (8, 2, pytest.approx(np.sqrt(2)))
    assert found["b"][0] is None


def test_shares_of_an_open_set_are_those_below_the_threshold():
    found = OpenSetScores(np.array([0.1, 0.2, 0.9]), np.array([0.2, 0.95]), 0.2, 0.8)
    assert found.kept_share == pytest.approx(2 / 3)
    assert found.false_known_share == 0.5


def test_determined_phases_are_counted_by_length():
    found = AdfShares(np.array([1, 3, 22, 25, 400]), np.array([False, False, True, False, True]))
    assert found.rows == [("1 sample", 1, 0), ("2 to 4", 1, 0), ("20 to 29", 2, 1), ("100 or more", 1, 1)]
    assert found.share == pytest.approx(0.4)


def test_table_2_has_a_row_a_split_and_method_whatever_the_order_of_the_key():
    figures = {
        "known.accuracy.random.trees": 0.93,
        "known.macro_f1.trees.random": 0.92,
        "known.accuracy.random": 0.93,
        "known.accuracy": 0.1,
        "known.accuracy.random.deviation": 0.01,
        "known.accuracy.by_time.forest": 0.5,
        "known.accuracy.by_machine": None,
        "known.accuracy.by_machine.reason": "all runs are of machine 'a'",
        "unknown.auroc": 0.9,
    }
    rows = known_table(figures)
    assert [(row["split"], row["method"]) for row in rows] == [
        ("random runs", "the model: sums of known fingerprints"),
        ("random runs", "boosted trees on phases"),
        ("later runs", "random forest, no phases"),
    ]
    assert rows[1] | {"accuracy": 0.93, "macro_f1": 0.92, "precision": None, "confirmed": None} == rows[1]
    assert missing_splits(figures) == ["another machine: all runs are of machine 'a'"]


def test_what_identifies_comes_first_and_a_named_method_wins_over_an_unnamed_one():
    figures = {
        "known.accuracy.random": 0.1,
        "known.accuracy.random.trees": 0.9,
        "known.accuracy.random.model": 0.95,
        "known.recall.random": 0.8,
    }
    told = [(row["method"], row["accuracy"], row["recall"]) for row in known_table(figures)]
    assert told == [("the model: sums of known fingerprints", 0.95, 0.8), ("boosted trees on phases", 0.9, None)]
    assert known_table(dict(reversed(figures.items()))) == known_table(figures)


def test_what_a_run_was_called_is_told_in_words():
    assert called({"is_known": True, "workload": "redis", "nearest": "redis"}) == "redis"
    assert called({"is_known": False, "workload": None, "nearest": "nginx"}) == "unknown, most like nginx"
    figures = {
        "unknown.auroc": 0.91234,
        "online.accuracy.5s": 0.5,
        "online.accuracy.10s": None,
        "online.accuracy.30s": 1.0,
    }
    figures |= {"threshold.false_reject": None, "threshold.false_reject.reason": "one run only"}
    assert online_accuracy(figures) == {5.0: 0.5, 30.0: 1.0}
    told = {row["words"]: row["value"] for row in other_figures(figures)}
    assert told["AUROC of unknown against known workloads"] == "0.91"
    assert told["own runs that the distance threshold rejects"] == "one run only"
    assert told["called right after 5 s"] == "50.0 %"


def looked_at(*rows):
    """Identified runs: run id, workload (None: unknown), label, hour in which they ran (None: nobody says)."""
    return pd.DataFrame(
        [
            {
                "run_id": run_id,
                "workload": workload,
                "is_known": workload is not None,
                "confidence": 0.9,
                "label": label,
                "started_at": pd.NaT if hour is None else pd.Timestamp(2026, 1, 1, hour),
            }
            for run_id, workload, label, hour in rows
        ]
    ).astype({"started_at": "datetime64[us]"})
