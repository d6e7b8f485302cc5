"""The plan of a recording campaign: decided by the seed, named and sized as real recurring jobs are."""

from collections import Counter, defaultdict

import pytest

from tasks.jobs.names import normalise_name
from tasks.jobs.record.catalogue import TEMPLATES, make_jobs
from tasks.jobs.record.params import RecordParams
from tasks.jobs.record.plan import Plan, make_plan

PARAMS = RecordParams(minutes=12, seed=3)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return make_plan(PARAMS)


def test_the_same_seed_makes_the_same_plan_and_another_seed_does_not(plan):
    assert make_plan(PARAMS) == plan
    assert make_plan(PARAMS.model_copy(update={"seed": 4})).runs != plan.runs


def test_run_ids_count_runs_in_order_of_submission(plan):
    ids = [run.run_id for run in plan.runs]
    times = [run.submit_s for run in plan.runs]
    assert ids == sorted(set(ids))
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] < PARAMS.minutes * 60


def test_the_default_jobs_come_from_many_templates_and_have_distinct_names():
    jobs = make_jobs(PARAMS)
    assert len({job.name for job in jobs}) == len(jobs) == PARAMS.jobs >= 60
    assert len({job.template.name for job in jobs}) == len(TEMPLATES) >= 20


def test_submitted_names_normalise_to_one_name_for_each_job(plan):
    normalised, submitted = defaultdict(set), defaultdict(set)
    for run in plan.runs:
        normalised[run.job.name].add(normalise_name(run.name))
        submitted[run.job.name].add(run.name)
    assert all(len(names) == 1 for names in normalised.values())
    assert len({next(iter(names)) for names in normalised.values()}) == len(normalised)
    runs = Counter(run.job.name for run in plan.runs)
    # a plain date and time stamp can repeat within a minute; every other style differs from run to run
    assert sum(len(names) for names in submitted.values()) > 0.98 * runs.total()


def test_input_sizes_inside_one_job_differ_by_a_factor_of_ten_and_more(plan):
    sizes = defaultdict(list)
    for run in plan.runs:
        sizes[run.job.sizing].append((run.job.name, run.parts[1]))
    for sizing in ("wide", "backfill"):
        by_job = defaultdict(list)
        for name, parts in sizes[sizing]:
            by_job[name].append(parts)
        assert max(max(parts) / min(parts) for parts in by_job.values()) > 10
    assert all(1 <= parts <= 64 for runs in sizes.values() for _, parts in runs)


def test_a_range_of_a_table_never_wraps_around(plan):
    assert all(sum(run.parts) <= 64 for run in plan.runs if run.job.template.source == "table")


def test_every_statement_is_complete_but_for_its_input_and_output(plan):
    for run in plan.runs:
        rest = run.sql.replace("{input}", "").replace("{out}", "")
        assert "{" not in rest, f"{run.job.template.name}: {rest}"


def test_load_phases_follow_the_ladder_from_the_first_second(plan):
    assert plan.phases[0].start_s == 0
    assert {phase.level for phase in plan.phases} <= set(PARAMS.load_ladder)
