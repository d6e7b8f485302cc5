"""The choice of a machine type: values worked out by hand, jobs whose truth is known, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from tasks.advice.choice import (
    BeliefParams,
    Demand,
    SourceRuns,
    capacities,
    choose_type,
    demand_on,
    runs_of,
    transferred,
)
from tasks.advice.params import ChoiceParams
from tasks.errors import BadInput, NotFound

GB, MB = 1e9, 1e6
MACHINES = pd.DataFrame(
    [
        {"machine_type": "a", "vcpu": 1, "memory_gb": 2.0, "price_per_h": 1.0},
        {"machine_type": "slow", "vcpu": 1, "memory_gb": 2.0, "price_per_h": 0.25},
        {"machine_type": "little", "vcpu": 1, "memory_gb": 1.0, "price_per_h": 0.9},
        {"machine_type": "quick-disk", "vcpu": 1, "memory_gb": 2.0, "price_per_h": 2.5},
        {"machine_type": "quick-cpu", "vcpu": 1, "memory_gb": 2.0, "price_per_h": 2.5},
    ]
)
SCORES = pd.DataFrame(
    [
        {"machine_type": name, "aspect": aspect, "score": score}
        for name, cpu, disk in [
            ("a", 100, 100), ("slow", 50, 100), ("little", 100, 100), ("quick-disk", 100, 400),
            ("quick-cpu", 200, 100),
        ]
        for aspect, score in (("cpu_one_thread", cpu), ("cpu_all_threads", cpu), ("disk", disk))
    ]
)  # fmt: skip
EXACT = BeliefParams(error_same=0, error_speed=0, error_memory=0, parallel_least=1)


def history(runtime_s, cpu_ratio=1.0, disk_ratio=0.0, **more):
    runtime_s = np.asarray(runtime_s, dtype=float)
    return pd.DataFrame(
        {
            "job": "j",
            "machine_type": "a",
            "runtime_s": runtime_s,
            "status": "completed",
            "cpu_s": runtime_s * cpu_ratio,
            "read_bytes": runtime_s * disk_ratio * 100 * MB,
            **more,
        }
    )


def drawn(n=40, sd=0.1, median_s=10.0):
    """Runtimes at the quantiles of a log-normal distribution, so that nothing depends on luck."""
    return median_s * np.exp(sd * norm.ppf((np.arange(n) + 0.5) / n))


def choose(table, deadline_s, model=None, machines=MACHINES, scores=SCORES):
    return choose_type(table, machines, scores, "j", deadline_s, model=model)


def test_a_run_on_a_type_with_twice_the_cpu_takes_what_is_worked_out_by_hand():
    kinds = capacities(MACHINES, SCORES)
    # 2 s of CPU and 100 MB at 100 MB/s in 2.5 s: half of the second of disk did not overlap
    runs, _ = runs_of(history([2.5, 2.5]).assign(cpu_s=2.0, read_bytes=100 * MB), "j")
    there, here = (
        demand_on(runs, kinds["a"], kinds[name], np.array([1.0]), BeliefParams()) for name in ("a", "quick-cpu")
    )
    assert (there.cpu_s[0, 0], there.disk_s[0, 0]) == (2, 1)
    assert (here.cpu_s[0, 0], here.disk_s[0, 0]) == (1, 1)
    assert transferred(runs.runtime_s, there, here)[0, 0] == pytest.approx(1.5)


def test_what_no_part_explains_stays_and_a_run_faster_than_its_longer_part_is_scaled():
    there = Demand(np.array([[1.0, 4.0]]), np.array([[1.0, 1.0]]), np.zeros(2))
    here = Demand(np.array([[0.5, 2.0]]), np.array([[1.0, 1.0]]), np.zeros(2))
    took = transferred(np.array([5.0, 3.0]), there, here)
    assert took[0].tolist() == pytest.approx([3.0 + 1.5, 0.75 * 2.0])


def test_with_a_second_thread_only_the_parallel_share_becomes_faster():
    kinds = capacities(MACHINES.assign(vcpu=[1, 2, 1, 1, 1]))
    runs, _ = runs_of(history([8.0, 8.0]), "j")
    demand = demand_on(runs, kinds["a"], kinds["slow"], np.array([0.0, 0.5, 1.0]), BeliefParams())
    assert demand.cpu_s[:, 0].tolist() == [8, 6, 4]


def test_half_a_processor_makes_a_cpu_second_last_two():
    kinds = capacities(MACHINES.assign(vcpu=[1, 0.5, 1, 1, 1]))
    runs, _ = runs_of(history([4.0, 4.0]), "j")
    assert demand_on(runs, kinds["a"], kinds["slow"], np.array([1.0]), BeliefParams()).cpu_s[0, 0] == 8
    back = demand_on(runs, kinds["slow"], kinds["a"], np.array([1.0]), BeliefParams())
    assert back.cpu_s[0, 0] == 4  # 4 CPU seconds took 8 s there


def test_what_memory_lacks_goes_through_the_disk_once_and_costs_cpu():
    kinds = capacities(MACHINES, SCORES)
    n = np.ones(1)
    runs = SourceRuns(10 * n, 4 * n, 0 * n, 1.0 * GB * n, 0 * n, 0)
    demand = demand_on(runs, kinds["a"], kinds["little"], np.array([1.0]), BeliefParams())
    assert demand.disk_s[0, 0] == pytest.approx((1.0 - 0.6) * GB / (100 * MB))  # 60 % of 1 GB may be filled
    assert demand.cpu_s[0, 0] == pytest.approx(4 * 1.3)
    assert demand.lack_ratio[0] == pytest.approx(0.4)


def test_on_the_source_the_runs_are_the_answer():
    kinds = capacities(MACHINES, SCORES)
    runs, source = runs_of(history(drawn(9), 0.7, 0.6, memory_bytes=1.9 * GB, spilled_bytes=0.1 * GB), "j")
    demand = demand_on(runs, kinds[source], kinds[source], np.array([0.7, 1.0]), BeliefParams())
    assert transferred(runs.runtime_s, demand, demand) == pytest.approx(np.tile(runs.runtime_s, (2, 1)))


@pytest.mark.parametrize(("deadline_s", "name"), [(11.0, "a"), (11.0, "slow"), (22.0, "slow")])
def test_the_chance_of_a_cpu_bound_job_is_that_of_the_distribution(deadline_s, name):
    chosen = choose(history(drawn(200)), deadline_s, EXACT)
    median_s = {"a": 10, "slow": 20}[name]
    truth = norm.sf(math.log(deadline_s / median_s) / 0.1)
    one = chosen.of(name)
    assert one.late == pytest.approx(truth, abs=0.02)
    assert one.low <= truth + 0.01 and truth - 0.01 <= one.high
    assert one.median_s == pytest.approx(median_s, rel=0.02)


def test_a_cpu_bound_job_with_time_to_spare_goes_to_the_slow_cheap_type():
    chosen = choose(history(drawn()), 40.0)
    assert (chosen.machine_type, chosen.is_safe, chosen.estimate.bound) == ("slow", True, "CPU")


def test_a_cpu_bound_job_with_a_tight_deadline_goes_to_the_quick_processor():
    chosen = choose(history(drawn()), 9.0)
    assert chosen.machine_type == "quick-cpu"
    assert chosen.of("quick-disk").late > 0.5


def test_a_disk_bound_job_with_a_tight_deadline_goes_to_the_quick_disk():
    chosen = choose(history(drawn(), 0.05, 1.0), 9.0)
    assert (chosen.machine_type, chosen.of("a").bound) == ("quick-disk", "disk")
    assert chosen.of("quick-cpu").late > 0.5


def test_a_disk_bound_job_does_not_mind_a_slow_processor():
    assert choose(history(drawn(), 0.1, 1.0), 15.0).machine_type == "slow"


def test_a_job_that_fills_its_memory_does_not_go_where_there_is_less():
    cheap = MACHINES[MACHINES["machine_type"].isin(["a", "little"])]
    scores = SCORES[SCORES["machine_type"].isin(["a", "little"])]
    roomy = choose(history(drawn(), memory_bytes=0.3 * GB), 30.0, machines=cheap, scores=scores)
    full = choose(history(drawn(), memory_bytes=1.1 * GB), 30.0, machines=cheap, scores=scores)
    assert (roomy.machine_type, full.machine_type) == ("little", "a")
    assert (full.of("little").bound, full.of("little").lacks_memory) == ("memory", 1)
    assert full.of("little").late >= BeliefParams().fail_chance / 2  # nobody knows whether it can spill


def test_a_job_that_has_spilled_before_is_trusted_to_spill_again():
    table = history(drawn(), 0.5, 0.1, memory_bytes=1.2 * GB, spilled_bytes=0.05 * GB)
    assert choose(table, 60.0).of("little").late < ChoiceParams().late_share


def test_runs_that_failed_are_late_where_there_is_no_more_memory():
    table = pd.concat([history(drawn(18)), history([1.0, 1.0]).assign(status="failed")])
    machines = pd.concat(
        [MACHINES, pd.DataFrame([{"machine_type": "big", "vcpu": 1, "memory_gb": 9, "price_per_h": 5}])]
    )
    chosen = choose(table, 100.0, machines=machines, scores=None)
    assert chosen.of("a").late == pytest.approx(0.1, abs=1e-6)
    assert chosen.machine_type == "big"


def test_where_the_interval_has_the_share_inside_the_safe_type_is_chosen_and_the_other_named_for_a_run():
    deadline_s = 10 * math.exp(0.1 * norm.isf(0.03))
    chosen = choose(history(drawn(20)), deadline_s)
    assert chosen.of("a").is_unclear(0.05)
    assert chosen.machine_type == "quick-cpu" and chosen.is_safe
    assert chosen.next_type in ("a", "little") and chosen.saving > 0
    critical = chosen.of("a").critical_s
    again = choose(history(drawn(400, median_s=critical)), deadline_s, EXACT).of("a")
    assert again.late == pytest.approx(0.05, abs=0.015)


def test_where_nothing_is_safe_the_type_that_is_late_least_often_is_named():
    chosen = choose(history(drawn()), 2.0)
    assert not chosen.is_safe
    assert chosen.estimate.late == min(one.late for one in chosen.estimates)
    hopeless = choose(history(drawn()).assign(cpu_s=20.0), 0.1)
    assert hopeless.estimate.median_s == min(one.median_s for one in hopeless.estimates)  # where all are always late
    assert hopeless.of(hopeless.source).cpu_s <= 10.1  # the wall time of a part, not its CPU seconds


def test_the_answer_does_not_depend_on_the_order_of_types_or_on_the_currency():
    table = history(drawn(20), 0.6, 0.6)
    first = choose(table, 13.0)
    mixed = choose(table, 13.0, machines=MACHINES[::-1].assign(price_per_h=MACHINES["price_per_h"] * 7))
    assert first.machine_type == mixed.machine_type
    assert first.estimate.late == mixed.estimate.late


def test_a_later_deadline_is_missed_no_more_often():
    table = history(drawn(20), 0.6, 0.6)
    chances = [[one.late for one in choose(table, deadline_s).estimates] for deadline_s in (9, 11, 14, 20)]
    assert (np.diff(chances, axis=0) <= 1e-12).all()


def test_without_scores_threads_and_disks_count_as_alike():
    kinds = capacities(MACHINES.assign(vcpu=[1, 0.5, 1, 1, 4]))
    assert [kind.cpu_all_threads for kind in kinds.values()] == [1, 0.5, 1, 1, 4]
    assert all(math.isnan(kind.disk_bytes_per_s) for kind in kinds.values())
    assert choose(history(drawn(), 0.2, 1.0), 30.0, scores=None).machine_type == "slow"


ONE_OF = pd.DataFrame([{"machine_type": "a", "aspect": "disk", "score": 100}])


@pytest.mark.parametrize(
    ("machines", "scores", "said"),
    [
        (MACHINES[:1], None, "machines: one type only; expected two or more"),
        (MACHINES, ONE_OF, "scores: slow has no disk; expected a score above 0 of every type"),
        (MACHINES[1:], SCORES, "machines: no type a, on which job j has run"),
    ],
)
def test_a_broken_table_is_refused_in_one_line(machines, scores, said):
    with pytest.raises(BadInput, match=said) as told:
        choose(history(drawn(4)), 10.0, machines=machines, scores=scores)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (history(drawn(1)), "job j has 1 completed runs; expected two or more"),
        (history(drawn(4)).assign(status="failed"), "job j has 0 completed runs"),
        (history(drawn(4)).assign(runtime_s=0), "runtime_s of 0 or less"),
        (history(drawn(4)).assign(cpu_s=None), "job j has a run without cpu_s"),
        (history(drawn(2)).assign(machine_type=["a", "slow"]), "has run on a, slow; expected runs on one type"),
    ],
)
def test_a_broken_history_is_refused_in_one_line(table, said):
    with pytest.raises(BadInput, match=said):
        choose(table, 10.0)


def test_an_unknown_job_and_a_deadline_of_nothing_are_refused():
    with pytest.raises(NotFound, match="job other: not in the history; expected one of j"):
        choose_type(history(drawn(4)), MACHINES, SCORES, "other", 10.0)
    with pytest.raises(BadInput, match="deadline: 0 s; expected seconds above 0"):
        choose(history(drawn(4)), 0.0)
