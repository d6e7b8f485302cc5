"""Matched pairs: each what-if is its baseline with one thing changed."""

from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from tasks.jobs.record.params import Campaign, Period
from tasks.jobs.record.plan import STEADY_LEVEL, make_plan

PARAMS = Campaign()
SMALL = Campaign(
    seed=5, jobs=30, pairs=20, periods=(Period(name="A", days=4), Period(name="B", days=4)), day_s=20, load_phase_s=10
)
OWN = {"run_id", "submit_s", "what_if", "matched_run_id", "period"}  # each run has its own
CHANGED = {"no_spare": {"takes_spare"}, "newest_sku": {"skus"}, "steady_load": set()}


@pytest.fixture(scope="module")
def small():
    return make_plan(SMALL)


@pytest.fixture(scope="module", params=["small", "default"])
def by_id(request, default_plan):
    plan = default_plan if request.param == "default" else make_plan(SMALL)
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


def test_the_default_campaign_has_a_thousand_pairs_of_each_kind(default_plan):
    counts = Counter(run.what_if for run in default_plan.runs if run.what_if)
    assert set(counts) == {"baseline", "no_spare", "newest_sku", "steady_load"}
    assert set(counts.values()) == {PARAMS.pairs}
    assert PARAMS.pairs >= 1000


def test_the_changes_leave_no_spare_tokens_and_only_the_newest_sku(small):
    kinds = defaultdict(list)
    for run in small.runs:
        kinds[run.what_if].append(run)
    assert not any(run.takes_spare for run in kinds["no_spare"])
    assert {run.skus for run in kinds["newest_sku"]} == {("gen5",)}
    assert all(run.takes_spare and run.skus != ("gen5",) for run in kinds["baseline"])


def test_runs_of_a_pair_stand_near_each_other_in_an_order_that_chance_decides(small):
    together = defaultdict(dict)
    for run in small.runs:
        if run.what_if in ("baseline", "no_spare", "newest_sku"):
            together[run.run_id.rpartition("-")[0]][run.what_if] = run.submit_s
    assert all(max(times.values()) - min(times.values()) <= 120 for times in together.values())
    assert len({min(times, key=times.get) for times in together.values()}) == 3


def test_pairs_come_after_all_periods_and_those_under_steady_load_come_last(small):
    times = [run.submit_s for run in small.runs]
    assert times == sorted(times)
    first = {kind: min(run.submit_s for run in small.runs if run.period == kind) for kind in ("W", "S")}
    assert first["W"] >= 8 * SMALL.day_s
    assert first["S"] > max(run.submit_s for run in small.runs if run.period == "W")


def test_load_is_the_same_on_every_sku_and_changes_no_more_while_it_is_steady(small):
    starts_s = min(run.submit_s for run in small.runs if run.what_if == "steady_load")
    steady = {sku.name: STEADY_LEVEL for sku in SMALL.skus}
    assert all(small.load.levels(real_s, starts_s) == steady for real_s in (0.0, starts_s, 3 * starts_s))
    before = max(run.submit_s for run in small.runs if run.period == "W")
    assert any(small.load.levels(real_s, before) != steady for real_s in (0.0, before))


def test_the_same_seed_makes_the_same_pairs_and_the_runs_of_the_periods_do_not_depend_on_them(small):
    assert make_plan(SMALL) == small
    without = make_plan(SMALL.model_copy(update={"pairs": 0}))
    assert list(without.runs) == [run for run in small.runs if run.what_if is None]
    assert {phase.level for phase in without.load.phases} <= set(SMALL.load_ladder)
    assert without.load.steady is None


def test_a_run_can_be_told_from_its_repetitions_by_its_id(small):
    assert len({run.run_id for run in small.runs}) == len(small.runs)
    replayed = {replace(run, what_if=None).run_id.rpartition("-")[0] for run in small.runs if run.what_if}
    assert replayed <= {run.run_id for run in small.runs if run.what_if is None}
