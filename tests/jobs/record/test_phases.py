"""Background load: levels by real time, round and round, and a steady level in the end."""

from tasks.jobs.record.params import Campaign
from tasks.jobs.record.plan import LoadPhase, LoadPlan, load_phases

PARAMS = Campaign()
TWO = (
    LoadPhase(0.0, "old", "none"),
    LoadPhase(0.0, "new", "cpu-40"),
    LoadPhase(10.0, "old", "cpu-95"),
    LoadPhase(30.0, "new", "none"),
)


def test_every_sku_has_a_level_of_load_from_the_first_second_on():
    phases = load_phases(PARAMS, 2000.0)
    assert {phase.sku for phase in phases if phase.start_s == 0} == {sku.name for sku in PARAMS.skus}
    assert [phase.start_s for phase in phases] == sorted(phase.start_s for phase in phases)
    assert phases[-1].start_s < 2000.0
    assert {phase.level for phase in phases} <= set(PARAMS.load_ladder)
    levels = {sku.name: [phase.level for phase in phases if phase.sku == sku.name] for sku in PARAMS.skus}
    assert levels["gen3"] != levels["gen4"]  # each SKU changes by itself


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
