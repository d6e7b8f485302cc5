"""The plan of a recording campaign: decided by the seed, named and sized as real recurring jobs are."""

from collections import Counter, defaultdict
from statistics import median

import pytest

from tasks.jobs.grouping import normalise_name
from tasks.jobs.record.catalogue import make_jobs
from tasks.jobs.record.params import Campaign, Period
from tasks.jobs.record.plan import planned_runs
from tasks.jobs.record.templates import templates

PARAMS = Campaign()
SMALL = Campaign(seed=3, jobs=40, periods=(Period(name="A", days=3), Period(name="B", days=2)), day_s=10)
ABOUT = 0.35


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


def test_run_ids_are_unique_and_count_the_runs_of_each_job(default_plan, small):
    ids = [run.run_id for run in default_plan.runs]
    assert len(set(ids)) == len(ids)
    by_job = defaultdict(list)
    for run in small:
        by_job[run.job.name].append(run.run_id)
    for told in by_job.values():
        head = told[0].rpartition("-")[0]
        assert sorted(told) == [f"{head}-{number:05d}" for number in range(1, len(told) + 1)]


def test_the_default_campaign_has_the_runs_of_the_three_data_sets_of_the_paper(own_runs):
    counts = Counter(run.period for run in own_runs)
    assert {name: pytest.approx(counts[name], rel=ABOUT) for name in counts} == {"D1": 12_000, "D2": 5_000, "D3": 3_000}
    assert len({run.job.name for run in own_runs}) >= 200


def test_most_jobs_run_often_enough_in_every_period(own_runs):
    runs = {period: Counter(run.job.name for run in own_runs if run.period == period) for period in ("D1", "D2", "D3")}
    assert sum(all(runs[period][name] >= 3 for period in runs) for name in runs["D1"]) >= 150
    assert median(runs["D2"].values()) >= 15
    assert median(runs["D3"].values()) >= 15


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
        normalised[job] = {normalise_name(name) for name in sorted(names)[::7]}  # every style, not every run
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


def test_one_sku_can_be_all_there_is():
    params = SMALL.model_copy(update={"skus": PARAMS.skus[:1], "jobs": 5})
    assert {run.skus for run in planned_runs(params)} == {("gen3",)}
