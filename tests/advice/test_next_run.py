"""Ask and tell: a history becomes a proposal, a result becomes a row of the history."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.advice.machines import MachineType
from tasks.advice.memory import stated_need
from tasks.advice.next_run import add_run, candidates_of, job_of, next_run, runs_on
from tasks.advice.params import SearchParams
from tasks.advice.readers.tables import read_runs
from tasks.errors import BadInput, BadSetting

MACHINES = {
    name: MachineType(name, vcpu, memory, price) for name, vcpu, memory, price in (("a", 2, 4, 0.1), ("b", 4, 32, 0.3))
}
PARAMS = SearchParams(nodes=(2, 4, 8))


def history(*rows: tuple[str, int, float, bool], job: str = "sort_1", family: str = "sort") -> pd.DataFrame:
    runs = pd.DataFrame(rows, columns=["machine_type", "nodes", "runtime_s", "completed"])
    return runs.assign(job=job, application="sort", family=family)


def test_candidates_are_the_grid_within_the_largest_cluster_and_what_has_run() -> None:
    found = candidates_of(MACHINES, history(("a", 30, 60, True)), PARAMS.model_copy(update={"max_vcpu": 16}))
    assert {found.name(at) for at in range(len(found))} == {"2 × a", "4 × a", "8 × a", "30 × a", "2 × b", "4 × b"}


def test_the_first_run_is_promising_and_drawn_once_for_all() -> None:
    found = next_run(history(), "sort_1", MACHINES, PARAMS, need=stated_need(100))
    again = next_run(history(), "sort_1", MACHINES, PARAMS, need=stated_need(100))
    assert found.answer == f"Run it first on {found.configuration}."
    assert (found.machine_type, found.nodes) == (again.machine_type, again.nodes)
    assert found.machine_type == "b"  # 4 nodes of a hold 16 GB
    assert not found.is_finished


def test_a_later_proposal_says_cost_and_best_so_far() -> None:
    found = next_run(history(("a", 2, 3_600, True), ("b", 2, 600, True)), "sort_1", MACHINES, PARAMS)
    assert found.answer.startswith(f"Run it next on {found.configuration}: expected to cost ")
    assert found.best is not None
    assert (found.best.machine_type, found.best.cost) == ("b", pytest.approx(0.1))
    assert "the best so far is 2 × b at 0.1" in found.certainty
    assert (found.machine_type, found.nodes) not in {("a", 2), ("b", 2)}


def test_it_ends_with_the_cheapest_valid_run_once_everything_has_run() -> None:
    rows = [(name, n, 600.0 / n, True) for name in MACHINES for n in (2, 4, 8)]
    found = next_run(history(*rows), "sort_1", MACHINES, PARAMS)
    assert found.is_finished
    assert found.answer.startswith("Stop: ")
    assert found.configuration is None
    slow = next_run(history(*rows), "sort_1", MACHINES, PARAMS, max_runtime_s=1)
    assert slow.answer == "Stop: every configuration has run, and none of them will do."
    assert {run.status for run in slow.tried} == {"too slow"}


def test_a_configuration_that_completed_once_can_and_counts_by_its_mean() -> None:
    clusters = candidates_of(MACHINES, history(), PARAMS)
    runs = runs_on(
        clusters, history(("a", 2, 1_800, True), ("a", 2, 60, False), ("a", 2, 5_400, True), ("b", 2, 60, False))
    )
    assert runs.is_completed.tolist() == [True, False]
    assert np.exp(runs.log_cost[0]) == pytest.approx(0.2)  # an hour of 2 × 0.1


def test_runs_with_another_input_count_as_well() -> None:
    other = history(*[(name, n, 600.0, True) for name in MACHINES for n in (2, 4, 8)], job="sort_2")
    found = next_run(pd.concat([other, history(("a", 2, 900, True))]), "sort_1", MACHINES, PARAMS)
    assert any("6 runs of the same application with other inputs" in reason for reason in found.reasons)


def test_a_job_that_has_never_run_starts_from_runs_of_its_application() -> None:
    log = history(
        *[(name, n, 3_600.0 if name == "a" else 60.0, True) for name in MACHINES for n in (2, 4, 8)], job="sort_2"
    )
    found = next_run(log, "sort_new", MACHINES, PARAMS)
    assert found.machine_type == "b"
    assert found.reasons[0] == "The table has no run of this job yet."
    assert not any("same application" in reason for reason in next_run(log, "join_new", MACHINES, PARAMS).reasons)


def test_three_other_applications_say_where_to_start() -> None:
    rows = [(name, n, 60.0 if (name, n) == ("b", 4) else 3_600.0, True) for name in MACHINES for n in (2, 4, 8)]
    logs = [history(*rows, job=f"{name}_1").assign(application=name, family=name) for name in ("join", "count", "rank")]
    found = next_run(pd.concat(logs), "sort_1", MACHINES, PARAMS)
    assert (found.machine_type, found.nodes) == ("b", 4)
    assert any("served 3 jobs of other applications best" in reason for reason in found.reasons)
    few = next_run(pd.concat(logs[:2]), "sort_1", MACHINES, PARAMS)
    assert not any("other applications" in reason for reason in few.reasons)


def test_the_only_job_is_meant_and_several_are_named() -> None:
    both = pd.concat([history(("a", 2, 1, True)), history(("a", 2, 1, True), job="sort_2")])
    assert job_of(history(("a", 2, 1, True)), None) == "sort_1"
    assert job_of(both, "sort_2") == "sort_2"
    with pytest.raises(BadSetting, match="runs of 2 jobs"):
        job_of(both, None)
    assert job_of(both, "a new one") == "a new one"


def test_a_machine_type_that_nobody_describes_and_a_single_candidate_are_refused() -> None:
    with pytest.raises(BadInput, match="nothing about z"):
        candidates_of(MACHINES, history(("z", 2, 1, True)), PARAMS)
    with pytest.raises(BadSetting, match="at least two to choose from"):
        candidates_of({"a": MACHINES["a"]}, history(), SearchParams(nodes=(2,)))


def test_results_are_added_to_a_new_file_and_to_one_with_other_names(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    add_run(path, "sort", "a", 4, 61.5, "completed")
    add_run(path, "sort", "b", 2, 30, "killed")
    found = read_runs(str(path), {})
    assert found[["machine_type", "nodes", "runtime_s", "completed"]].to_numpy().tolist() == [
        ["a", 4, 61.5, True],
        ["b", 2, 30.0, False],
    ]
    scout = tmp_path / "scout.csv"
    scout.write_text("workload,node_count,vm_type,completed,elapsed_time_s,framework\nsort,4,a,True,100,spark")
    add_run(scout, "sort", "b", 2, 30, "completed")
    assert scout.read_text().splitlines()[-1] == "sort,2,b,completed,30,"
    assert len(read_runs(str(scout), {})) == 2


def test_a_file_of_other_columns_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("x,y\n1,2\n")
    with pytest.raises(BadInput, match="no column job, machine_type, nodes, runtime_s"):
        add_run(path, "sort", "a", 4, 61.5, "completed")
    assert path.read_text() == "x,y\n1,2\n"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="cannot be added to"):
        add_run(path, "sort", "a", 4, 61.5, "completed")
