"""The plan of a recording campaign: decided by the seed, named and sized as real recurring jobs are."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest

from tasks.jobs.grouping import normalise_names
from tasks.jobs.params import Campaign, Period
from tasks.jobs.record.plan import (
    SCHEDULES,
    STEADY_LEVEL,
    LoadPlan,
    load_phases,
    make_jobs,
    make_plan,
    planned_runs,
    submit_days,
)
from tasks.jobs.record.templates import templates

PARAMS = Campaign()
SMALL = Campaign(seed=3, jobs=40, periods=(Period(name="A", days=3), Period(name="B", days=2)), day_s=10)
DAYS, FIRST = 400, 30
OWN = {"run_id", "submit_s", "what_if", "matched_run_id", "period"}  # each run has its own
CHANGED = {"no_spare": {"takes_spare"}, "newest_sku": {"skus"}, "steady_load": set()}
TWO = {"old": [(0.0, "none"), (10.0, "cpu-95")], "new": [(0.0, "cpu-40"), (30.0, "none")]}
PAIRED = Campaign(
    seed=5, jobs=30, pairs=20, periods=(Period(name="A", days=4), Period(name="B", days=4)), day_s=20, load_phase_s=10
)


@pytest.fixture(scope="module")
def small():
    return planned_runs(SMALL)


@pytest.fixture(scope="module")
def own_runs(default_plan):
    """The runs of the default plan's periods, without what-ifs."""
    return [run for run in default_plan.runs if run.what_if is None]


def test_the_same_seed_makes_the_same_runs_and_another_seed_does_not(small):
    assert planned_runs(SMALL) == small
    assert planned_runs(SMALL.model_copy(update={"seed": 4})) != small


def test_more_jobs_leave_the_others_as_they_were(small):
    more = planned_runs(SMALL.model_copy(update={"jobs": 41}))
    names = {run.job.name for run in small}
    assert [run for run in more if run.job.name in names] == small


def test_periods_follow_each_other_and_runs_stand_in_order_of_submission(small):
    times = [run.submit_s for run in small]
    assert times == sorted(times)
    by_period = {name: [run.submit_s for run in small if run.period == name] for name in ("A", "B")}
    assert 0 <= min(by_period["A"]) <= max(by_period["A"]) < 30 <= min(by_period["B"]) <= max(by_period["B"]) < 50


def test_jobs_come_from_many_templates_and_have_names_of_their_own():
    most = PARAMS.model_copy(update={"jobs": Campaign.model_fields["jobs"].metadata[1].le})
    jobs = make_jobs(most)
    assert len({job.name for job in jobs}) == len(jobs) >= PARAMS.jobs >= 200
    assert len({job.template.name for job in make_jobs(PARAMS)}) == len(templates()) >= 60


def test_submitted_names_normalise_to_one_name_for_each_job(own_runs):
    normalised, submitted = defaultdict(set), defaultdict(set)
    for run in own_runs:
        submitted[run.job.name].add(run.name)
    for job, names in submitted.items():
        normalised[job] = set(normalise_names(sorted(names)[::7]))  # every style, not every run
    assert all(len(names) == 1 for names in normalised.values())
    assert len({next(iter(names)) for names in normalised.values()}) == len(normalised)
    # a plain date and time stamp can repeat within a minute; every other style differs from run to run
    assert sum(len(names) for names in submitted.values()) > 0.98 * len(own_runs)


def test_input_sizes_inside_one_job_differ_by_a_factor_of_ten_and_more(own_runs):
    sizes = defaultdict(list)
    for run in own_runs:
        sizes[(run.job.name, run.job.sizing)].append(run.parts[1])
    for sizing in ("wide", "backfill"):
        assert max(max(parts) / min(parts) for (_, kind), parts in sizes.items() if kind == sizing) > 10
    assert all(1 <= parts <= 64 for told in sizes.values() for parts in told)


def test_a_range_of_a_table_never_wraps_around(own_runs):
    assert all(sum(run.parts) <= 64 for run in own_runs if run.job.template.source == "table")


def test_every_statement_is_complete_but_for_its_input_and_output(own_runs):
    for run in {(run.job.name, run.parts): run for run in own_runs}.values():
        rest = run.sql + run.merge
        for field in ("{input}", "{out}", "{partials}"):
            rest = rest.replace(field, "")
        assert "{" not in rest, f"{run.job.template.name}: {rest}"


def test_offers_differ_from_run_to_run_and_are_never_empty(own_runs):
    names = [sku.name for sku in PARAMS.skus]
    offers = Counter(run.skus for run in own_runs)
    assert {tuple(names), (names[-1],)} <= offers.keys()
    assert len(offers) == 5  # all three, each two of them, the newest alone
    assert all(offer and list(offer) == [name for name in names if name in offer] for offer in offers)
    assert all(run.skus == (names[-1],) for run in own_runs if run.job.is_newest_only)


def test_a_job_asks_for_the_same_tokens_unless_it_varies_them(own_runs):
    asked = defaultdict(set)
    for run in own_runs:
        asked[(run.job.name, run.job.has_varying_tokens)].add(run.tokens)
    assert all(is_varying or len(tokens) == 1 for (_, is_varying), tokens in asked.items())
    assert any(len(tokens) == 3 for tokens in asked.values())


@pytest.fixture(scope="module", params=["small", "default"])
def by_id(request, default_plan):
    plan = default_plan if request.param == "default" else make_plan(PAIRED)
    return {run.run_id: run for run in plan.runs}


def _differing(one, other):
    return {name for name in vars(one) if getattr(one, name) != getattr(other, name)}


def test_every_what_if_differs_from_its_baseline_in_the_one_thing(by_id):
    for run in by_id.values():
        if run.what_if in CHANGED:
            baseline = by_id[run.matched_run_id]
            assert baseline.what_if == "baseline"
            assert _differing(run, baseline) - OWN == CHANGED[run.what_if], run.run_id


def test_every_baseline_is_a_run_of_the_last_period_done_again(by_id):
    periods = {run.period for run in by_id.values() if run.what_if is None}
    last = max(periods)
    for run in by_id.values():
        if run.what_if == "baseline":
            replayed = by_id[run.matched_run_id]
            assert (replayed.what_if, replayed.period) == (None, last)
            assert _differing(run, replayed) <= OWN


def test_the_changes_leave_no_spare_tokens_and_only_the_newest_sku(paired):
    kinds = defaultdict(list)
    for run in paired.runs:
        kinds[run.what_if].append(run)
    assert not any(run.takes_spare for run in kinds["no_spare"])
    assert {run.skus for run in kinds["newest_sku"]} == {("gen5",)}
    assert all(run.takes_spare and run.skus != ("gen5",) for run in kinds["baseline"])


def test_runs_of_a_pair_stand_near_each_other_in_an_order_that_chance_decides(paired):
    together = defaultdict(dict)
    for run in paired.runs:
        if run.what_if in ("baseline", "no_spare", "newest_sku"):
            together[run.run_id.rpartition("-")[0]][run.what_if] = run.submit_s
    assert all(max(times.values()) - min(times.values()) <= 120 for times in together.values())
    assert len({min(times, key=times.get) for times in together.values()}) == 3


def test_pairs_come_after_all_periods_and_those_under_steady_load_come_last(paired):
    times = [run.submit_s for run in paired.runs]
    assert times == sorted(times)
    first = {kind: min(run.submit_s for run in paired.runs if run.period == kind) for kind in ("W", "S")}
    assert first["W"] >= 8 * PAIRED.day_s
    assert first["S"] > max(run.submit_s for run in paired.runs if run.period == "W")


def test_load_is_the_same_on_every_sku_and_changes_no_more_while_it_is_steady(paired):
    starts_s = min(run.submit_s for run in paired.runs if run.what_if == "steady_load")
    steady = {sku.name: STEADY_LEVEL for sku in PAIRED.skus}
    assert all(paired.load.levels(real_s, starts_s) == steady for real_s in (0.0, starts_s, 3 * starts_s))
    before = max(run.submit_s for run in paired.runs if run.period == "W")
    assert any(paired.load.levels(real_s, before) != steady for real_s in (0.0, before))


def test_every_sku_has_a_level_of_load_from_the_first_second_on():
    phases = load_phases(PARAMS, 2000.0)
    assert list(phases) == [sku.name for sku in PARAMS.skus]
    for starts, levels in (zip(*of_sku, strict=True) for of_sku in phases.values()):
        assert starts[0] == 0 and list(starts) == sorted(starts) and starts[-1] < 2000.0
        assert set(levels) <= set(PARAMS.load_ladder)
    assert phases["gen3"] != phases["gen4"]  # each SKU changes by itself


def test_a_level_holds_from_the_start_of_its_phase_to_that_of_the_next_one():
    plan = LoadPlan(TWO, 50.0)
    assert plan.levels(9.99, 0.0) == {"old": "none", "new": "cpu-40"}
    assert plan.levels(10.0, 0.0) == {"old": "cpu-95", "new": "cpu-40"}
    assert plan.levels(49.0, 0.0) == {"old": "cpu-95", "new": "none"}


def test_phases_begin_anew_after_their_span():
    plan = LoadPlan(TWO, 50.0)
    assert plan.levels(50.0, 0.0) == plan.levels(0.0, 0.0)
    assert plan.levels(111.0, 0.0) == plan.levels(11.0, 0.0)


def test_the_steady_level_follows_the_schedule_and_holds_to_the_end():
    plan = LoadPlan(TWO, 50.0, "cpu-35", 40.0)
    assert plan.levels(1000.0, 39.9) != {"old": "cpu-35", "new": "cpu-35"}
    assert plan.levels(12.0, 40.0) == plan.levels(99.0, 5000.0) == {"old": "cpu-35", "new": "cpu-35"}


@pytest.fixture(scope="module")
def paired():
    return make_plan(PAIRED)


@pytest.fixture
def job_of(run_of):
    return lambda schedule: replace(run_of().job, schedule=schedule, hour=9.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_times_stand_in_order_inside_their_days(job_of, schedule):
    times = submit_days(job_of(schedule), FIRST, DAYS, np.random.default_rng(1))
    assert times == sorted(times)
    assert FIRST <= times[0] <= times[-1] < FIRST + DAYS
    assert times == submit_days(job_of(schedule), FIRST, DAYS, np.random.default_rng(1))
    assert times != submit_days(job_of(schedule), FIRST, DAYS, np.random.default_rng(2))


@pytest.mark.parametrize(("schedule", "a_day"), [("daily", 1), ("twice_daily", 2), ("six_hourly", 4)])
def test_a_regular_job_keeps_its_hours(job_of, schedule, a_day):
    times = submit_days(job_of(schedule), FIRST, DAYS, np.random.default_rng(1))
    assert len(times) == pytest.approx(a_day * DAYS, abs=1)  # the last one may slip out of the stretch
    late = np.array(times) * a_day % 1 / a_day - (9 / 24) % (1 / a_day)
    assert np.all((late >= -1e-9) & (late < 0.05))  # days after the hour that its owner chose


def test_bursts_come_many_at_a_time_and_single_runs_do_not(job_of):
    gaps = {
        schedule: np.diff(submit_days(job_of(schedule), FIRST, DAYS, np.random.default_rng(1)))
        for schedule in ("bursty", "ad_hoc")
    }
    assert np.mean(gaps["bursty"] < 0.05) > 0.7
    assert np.mean(gaps["ad_hoc"] < 0.05) < 0.3
