import numpy as np
import pytest

from tasks.workloads.similarity.thresholds import (
    Spread,
    is_within,
    nearest_workloads,
    phase_spreads,
    similar_offset,
    spread_by_workload,
    spread_of,
)

SPREAD = Spread(mean=10, deviation=2, n=6)


def test_table_iv_by_hand():
    """redis: pairs at 1, 2 and 3; mysql: one pair at 7; nginx ran once and has no distance."""
    distances = np.zeros((6, 6))
    for a, b, distance in [(0, 1, 1), (0, 2, 2), (1, 2, 3), (3, 4, 7)]:
        distances[a, b] = distances[b, a] = distance
    found = spread_by_workload(distances, ["redis"] * 3 + ["mysql"] * 2 + ["nginx"])
    assert found == {"redis": Spread(2, 1, 3), "mysql": Spread(7, 0, 1)}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("within", [False, True, True, False]), ("radius", [True, True, False, False]), ("one_sided", [True] * 4)],
)
def test_the_three_thresholds_differ_as_the_paper_states_them(rule, expected):
    distances = np.array([1.0, 8.0, 12.0, 14.0])
    assert is_within(distances, SPREAD, rule).tolist() == expected
    assert not is_within(14.1, SPREAD, "one_sided")


def test_phases_and_runs_have_thresholds_of_their_own():
    runs = [np.array([[0.0], [4.0]]), np.array([[0.0], [6.0]])]
    assert phase_spreads(runs, ["a", "a"], "ed") == {"a": Spread(1, pytest.approx(2**0.5), 2)}


def test_a_run_is_similar_where_every_phase_is():
    run = np.array([[50.0], [0.0], [9.0], [30.0]])
    part = np.array([[1.0], [10.0]])
    assert similar_offset(part, run, Spread(1, 0, 2), "ed") == 1
    assert similar_offset(part, run, Spread(0.5, 0, 2), "ed") is None


@pytest.mark.parametrize(("n_phases", "nearest"), [(3, "b"), (5, "b"), (2, "a")])
def test_candidates_have_as_many_phases_or_nearly_as_many(n_phases, nearest):
    verdicts = nearest_workloads(np.array([[1.0, 3, 2, 9]]), [n_phases], [2, 3, 3, 7], ["a", "c", "b", "d"], {})
    assert verdicts.workloads == (nearest,)


def test_the_nearest_candidate_names_the_workload_and_its_threshold_confirms_it():
    distances = np.array([[0.5, 3.0, 1.0], [9.0, 20.0, 30.0]])
    spreads = {"redis": Spread(4, 1, 3), "mysql": Spread(2, 1, 3)}
    verdicts = nearest_workloads(distances, [2, 2], [1, 2, 2], ["redis", "redis", "mysql"], spreads)
    assert verdicts.workloads == ("mysql", "redis")  # the nearest of all has another number of phases
    assert verdicts.positions.tolist() == [2, 1]
    assert verdicts.is_known.tolist() == [True, False]


def test_a_workload_seen_once_confirms_only_itself():
    verdicts = nearest_workloads(np.array([[0.0], [0.1]]), [1, 1], [1], ["redis"], {}, "one_sided")
    assert verdicts.is_known.tolist() == [True, False]


def test_without_a_known_run_there_is_nothing_to_say():
    with pytest.raises(ValueError, match="no known run"):
        nearest_workloads(np.zeros((1, 0)), [1], [], [], {})
    assert spread_of(np.array([])) is None


@pytest.mark.parametrize(
    ("longer", "offset"),
    [([0, 9, 30, 60], 0), ([30, 0, 9, 60], 1), ([30, 60, 0, 9], 2), ([0, 9, 0, 9], 0), ([5, 9, 0], None)],
)
def test_the_shorter_run_may_begin_at_the_start_in_the_middle_or_end_with_the_longer_one(longer, offset):
    part, run = np.array([[1.0], [10.0]]), np.array(longer, dtype=float)[:, None]
    assert similar_offset(part, run, Spread(1, 0, 2), "ed") == offset
    assert similar_offset(run, part, Spread(1, 0, 2), "ed") == offset


def test_a_distance_at_the_threshold_is_within_it():
    assert is_within(np.array([8.0, 12.0]), SPREAD, "within").all()
    assert is_within(10.0, SPREAD, "radius") and not is_within(10.001, SPREAD, "radius")
    assert is_within(14.0, SPREAD, "one_sided") and not is_within(14.001, SPREAD, "one_sided")
