"""Searches for the cheapest configuration: proposals, ask and tell, and when to stop."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.advice.machines import Configurations, MachineType, stated_need
from tasks.advice.params import SearchParams
from tasks.advice.search import (
    CandidateOutcomes,
    Problem,
    add_run,
    at_random,
    by_improvement,
    candidates_of,
    job_of,
    lacking_gb,
    next_run,
    propose,
    runs_on,
    search,
)
from tasks.advice.surrogate import FIXED, TrialRuns
from tasks.advice.tables import read_runs
from tasks.errors import BadInput, BadSetting

Costs = Callable[[Configurations, float], np.ndarray]
NO_RUN = TrialRuns(np.array([], dtype=np.int64), np.array([]), np.array([], dtype=bool))


def outcome_of(log_cost: np.ndarray, failed: list[int] | None = None) -> CandidateOutcomes:
    completed = np.ones(len(log_cost), dtype=bool)
    completed[failed or []] = False
    return CandidateOutcomes(log_cost, completed)


def after(problem: Problem, outcome: CandidateOutcomes, n: int, seed: int) -> float:
    """Cost of the best of n runs as a multiple of the optimum."""
    tried = search(problem, outcome, n, by_improvement, np.random.default_rng(seed))
    cost = np.where(outcome.is_completed, outcome.log_cost, np.inf)
    return float(np.exp(cost[tried].min() - cost.min()))


def test_six_runs_of_sixteen_come_close_to_the_optimum_and_closer_than_chance(
    clusters: Configurations, spilling: Costs
) -> None:
    ours, random = [], []
    for need in (30.0, 100.0, 300.0):
        outcome = outcome_of(spilling(clusters, need))
        for seed in range(10):
            ours.append(after(Problem(clusters, params=FIXED), outcome, 6, seed))
            tried = search(Problem(clusters), outcome, 6, at_random, np.random.default_rng(seed))
            random.append(float(np.exp(outcome.log_cost[tried].min() - outcome.log_cost.min())))
    assert np.mean(ours) < 1.16  # the next to best of the hardest
    assert np.mean(ours) < np.mean(random)


def test_a_memory_need_saves_the_runs_on_clusters_that_are_too_small(clusters: Configurations, spilling: Costs) -> None:
    outcome = outcome_of(spilling(clusters, 100.0))
    need = stated_need(100)
    with_need = [after(Problem(clusters, need), outcome, 3, seed) for seed in range(20)]
    without = [after(Problem(clusters), outcome, 3, seed) for seed in range(20)]
    assert np.mean(with_need) < np.mean(without)


def test_after_failures_of_unknown_cost_alone_comes_no_larger_cluster_than_it_takes(clusters: Configurations) -> None:
    problem = Problem(clusters, params=FIXED)
    smallest = int(np.argmin(clusters.rate_per_h))
    failed = TrialRuns(np.array([smallest]), np.array([-np.inf]), np.array([False]))
    chance = problem.chance_completed(failed)
    chosen = by_improvement(problem, failed, np.random.default_rng(0))
    assert chance[chosen] >= 0.95 * chance.max()
    assert clusters.rate_per_h[chosen] < clusters.rate_per_h.max() / 2


@pytest.mark.parametrize("method", [at_random, by_improvement])
def test_a_search_to_the_end_runs_every_candidate_once(clusters: Configurations, method) -> None:  # type: ignore[no-untyped-def]
    outcome = outcome_of(np.log(clusters.total_memory_gb), failed=[1, 7])
    tried = search(Problem(clusters, stated_need(100)), outcome, 99, method, np.random.default_rng(0))
    assert sorted(tried) == list(range(len(clusters)))


def test_promising_candidates_come_before_the_others(clusters: Configurations, spilling: Costs) -> None:
    problem = Problem(clusters, stated_need(200))
    tried = search(problem, outcome_of(spilling(clusters, 200.0)), 16, by_improvement, np.random.default_rng(1))
    n = int(problem.is_promising.sum())
    assert problem.is_promising[tried[:n]].all()


def test_a_deadline_that_promising_clusters_cannot_keep_opens_the_others(
    clusters: Configurations, spilling: Costs
) -> None:
    log_cost = spilling(clusters, 0.0)
    runtime_s = np.exp(log_cost) / clusters.cost(np.ones(len(clusters)))
    problem = Problem(clusters, stated_need(0), max_runtime_s=float(np.sort(runtime_s)[2]))
    tried = search(problem, outcome_of(log_cost), 8, by_improvement, np.random.default_rng(3))
    assert (runtime_s[tried] <= problem.max_runtime_s).any()
    assert not problem.is_promising[np.argmin(runtime_s)]


def test_only_a_run_in_time_is_the_best_so_far(clusters: Configurations) -> None:
    """By hand: 2 c.small cost 0.2 an hour, 8 of them 0.8; an hour and a half of the first is cheaper, but late."""
    problem = Problem(clusters, max_runtime_s=3_600)
    runs = TrialRuns(np.array([0, 2, 1]), np.log([1.5 * 0.2, 0.5 * 0.8, 0.1 * 0.4]), np.array([True, True, False]))
    assert problem.best(runs) == pytest.approx(np.log(0.4))
    assert Problem(clusters).best(runs) == pytest.approx(np.log(0.3))
    assert Problem(clusters).best(NO_RUN) is None


def test_a_proposal_says_cost_interval_and_chances(clusters: Configurations, spilling: Costs) -> None:
    outcome = outcome_of(spilling(clusters, 100.0), failed=[0])
    problem = Problem(clusters, max_runtime_s=7_200)
    proposal = propose(problem, outcome.runs([0, 5, 10]), np.random.default_rng(0))
    assert proposal is not None
    assert proposal.cost_low < proposal.cost < proposal.cost_high
    assert 0 < proposal.chance_completed < 1
    assert 0 < proposal.chance_in_time <= 1
    assert 0 < proposal.learned_share < 1
    rate_per_s = clusters.rate_per_h[proposal.candidate] / 3_600
    assert proposal.runtime_s == pytest.approx(proposal.cost / rate_per_s)


def test_it_stops_once_nothing_is_to_be_gained_and_not_before_six_runs(clusters: Configurations) -> None:
    steep = outcome_of(3 * np.log(clusters.total_vcpu))
    cheapest = np.argsort(steep.log_cost, kind="stable").tolist()
    few = propose(Problem(clusters), steep.runs(cheapest[:5]), np.random.default_rng(0))
    many = propose(Problem(clusters), steep.runs(cheapest[:8]), np.random.default_rng(0))
    assert few is not None
    assert many is not None
    assert few.is_worthwhile
    assert not many.is_worthwhile
    assert propose(Problem(clusters), steep.runs(list(range(16))), np.random.default_rng(0)) is None


def test_what_has_failed_everywhere_like_it_is_proposed_last(clusters: Configurations) -> None:
    small = [at for at in range(len(clusters)) if clusters.machine_type[at] == "c.small"]
    outcome = outcome_of(np.zeros(len(clusters)), failed=small)
    tried = search(Problem(clusters), outcome, 10, by_improvement, np.random.default_rng(2))
    assert len(set(tried.tolist()) & set(small)) <= 2


def test_runs_with_another_input_make_the_first_proposal(clusters: Configurations, spilling: Costs) -> None:
    outcome = outcome_of(spilling(clusters, 100.0))
    other = outcome.runs(list(range(len(clusters))))
    problem = Problem(clusters, others=(other,))
    first = propose(problem, NO_RUN, np.random.default_rng(0))
    assert first is not None
    assert outcome.log_cost[first.candidate] < np.quantile(outcome.log_cost, 0.2)


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


def test_a_search_that_ends_says_chances_of_what_it_leaves_out_by_its_name() -> None:
    rows = [(name, n, 600.0, True) for name in MACHINES for n in (2, 4, 8)]
    found = next_run(history(*rows), "sort_1", MACHINES, PARAMS.model_copy(update={"nodes": (2, 4, 8, 12)}))
    assert found.answer.startswith("Stop: 2 × a is the one to use")
    assert found.certainty.startswith("The next to try, 12 × a, completes with a chance of ")


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


@pytest.mark.parametrize("runtime_s", [600.0, float("nan")])
def test_after_a_run_that_lacked_memory_comes_one_with_more_in_all_where_there_is_one(runtime_s: float) -> None:
    clusters = candidates_of(MACHINES, history(), PARAMS)
    for at in range(len(clusters)):
        kind, n, total_gb = clusters.machine_type[at], int(clusters.nodes[at]), clusters.total_memory_gb[at]
        rows = history((kind, n, runtime_s, False)).assign(lacked_memory=True)
        for need in (None, stated_need(0)):
            found = next_run(rows, "sort_1", MACHINES, PARAMS, need=need)
            assert found.machine_type is not None
            assert found.nodes is not None
            more_gb = found.nodes * MACHINES[found.machine_type].memory_gb - total_gb
            assert more_gb > 0 or total_gb == clusters.total_memory_gb.max()
            assert f"{total_gb:g} GB in all were too little: what has more comes first." in found.reasons


def test_memory_that_was_enough_for_another_run_was_not_what_a_failed_one_lacked() -> None:
    clusters = candidates_of(MACHINES, history(), PARAMS)
    rows = history(("a", 4, 600, False), ("b", 4, 600, False), ("b", 2, 600, True))
    assert lacking_gb(clusters, rows.assign(lacked_memory=~rows["completed"])) == 16
    assert lacking_gb(clusters, rows.assign(lacked_memory=False)) == 0


def test_a_failed_run_of_which_nobody_knows_the_time_counts_against_what_is_like_it() -> None:
    nan = float("nan")
    alone = next_run(history(("a", 2, nan, False)), "sort_1", MACHINES, PARAMS)
    assert alone.answer == f"Run it next on {alone.configuration}."
    assert alone.configuration != "2 × a"
    assert np.isnan(alone.tried[0].cost)
    done = history(("b", 2, 600, True))
    before = next_run(done, "sort_1", MACHINES, PARAMS).proposal
    after = next_run(pd.concat([done, history(("a", 2, nan, False))]), "sort_1", MACHINES, PARAMS).proposal
    assert before is not None
    assert after is not None
    clusters = candidates_of(MACHINES, history(), PARAMS)
    problem, told = Problem(clusters), runs_on(clusters, pd.concat([done, history(("a", 2, nan, False))]))
    chances = [problem.chance_completed(runs) for runs in (runs_on(clusters, done), told)]
    assert chances[1][clusters.places["a", 2]] < chances[0][clusters.places["a", 2]]
    assert np.isfinite(after.cost)


def test_of_few_configurations_all_but_one_are_enough_and_the_best_costs_what_its_runs_cost_on_average() -> None:
    sizes = {f"x{n}": MachineType(f"x{n}", 8 * n, 16 * n, 3 * n) for n in (1, 2, 4, 8, 16)}
    rows = [("x1", 1, 50.0, True), ("x1", 1, 70.0, True), ("x2", 1, 46.0, True), ("x4", 1, 40.0, True)]
    found = next_run(
        history(*rows, ("x8", 1, 33.0, True)),
        "sort_1",
        sizes,
        PARAMS.model_copy(update={"nodes": (1,), "max_vcpu": 128}),
    )
    assert found.answer == "Stop: 1 × x1 is the one to use, at 0.05 a run."
    assert found.best is not None
    assert (found.best.cost, found.best.runtime_s) == (pytest.approx(0.05), pytest.approx(60))
    assert found.reasons[-1] == "After 5 runs on 4 configurations another one is expected to save next to nothing."


def test_results_are_added_to_a_new_file_and_to_one_with_other_names(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    add_run(path, "sort", "a", 4, 61.5, "completed", {})
    add_run(path, "sort", "b", 2, 30, "killed", {})
    add_run(path, "sort", "a", 2, None, "out-of-memory", {})
    found = read_runs(str(path), {}).fillna({"runtime_s": 0})
    assert found[["machine_type", "nodes", "runtime_s", "completed", "lacked_memory"]].to_numpy().tolist() == [
        ["a", 4, 61.5, True, False],
        ["b", 2, 30.0, False, False],
        ["a", 2, 0, False, True],
    ]
    scout = tmp_path / "scout.csv"
    scout.write_text("workload,node_count,vm_type,completed,elapsed_time_s,framework\nsort,4,a,True,100,spark")
    add_run(scout, "sort", "b", 2, 30, "completed", {})
    assert scout.read_text().splitlines()[-1] == "sort,2,b,completed,30,"
    assert len(read_runs(str(scout), {})) == 2
    minutes, renamed = tmp_path / "minutes.csv", {"job": "what", "runtime_s": "took (min)", "status": "how"}
    minutes.write_text("what,machine,workers,took (min),how\nsort,a,4,1,done\n")
    add_run(minutes, "sort", "b", 2, 30, "killed", renamed)
    assert minutes.read_text().splitlines()[-1] == "sort,b,2,0.5,killed"


def test_a_file_of_other_columns_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("x,y\n1,2\n")
    with pytest.raises(BadInput, match="no column job, machine_type, nodes, runtime_s"):
        add_run(path, "sort", "a", 4, 61.5, "completed", {})
    assert path.read_text() == "x,y\n1,2\n"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="cannot be added to"):
        add_run(path, "sort", "a", 4, 61.5, "completed", {})
