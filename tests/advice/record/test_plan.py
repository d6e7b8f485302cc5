"""The plan of a story's campaign: complete, the same every time, and nothing known of what is held back."""

import itertools
from collections import Counter

import pytest
from pydantic import ValidationError

from tasks.advice.record.plan import EmulatedType, RecordParams, RecurringJob, benchmarks_of, job_templates, make_plan
from tasks.jobs.record.templates import PARTS
from tasks.nodes.tools import PARSERS

SMALL = RecordParams(blocks=4, seed=1)


def test_every_job_runs_on_every_type_in_every_block():
    plan = make_plan(SMALL)
    counts = Counter((one.block, one.job, one.machine_type, one.role) for one in plan.runs)
    jobs, types = [job.template for job in SMALL.jobs], [kind.name for kind in SMALL.types]
    for block in range(4):
        for job in jobs:
            assert counts[block, job, types[0], "history"] == 2
            assert [counts[block, job, kind, "held_back"] for kind in types] == [1] * len(types)
    assert sum(counts.values()) == 4 * len(jobs) * (2 + len(types))
    assert {one.machine_type for one in plan.runs if one.role == "history"} == {types[0]}
    assert len({one.run_id for one in plan.runs}) == len(plan.runs)


def test_the_shipped_plan_has_the_size_that_was_asked_for():
    plan, params = make_plan(RecordParams()), RecordParams()
    assert (len(params.types), len(params.jobs)) == (6, 20)
    per_cell = Counter((one.job, one.machine_type, one.role) for one in plan.runs)
    assert set(per_cell.values()) == {20, 10}
    assert {key[2] for key, n in per_cell.items() if n == 20} == {"history"}
    assert len(plan.executions) == 5 * len(params.types) * len(benchmarks_of(params))


@pytest.mark.parametrize(("cores", "threads"), [(0.5, 1), (1, 1), (1.5, 2), (2, 2)])
def test_a_job_has_a_thread_for_each_processor_that_is_begun(cores, threads):
    kind = EmulatedType(name="a", cores=cores, memory_mb=256, disk_mb_per_s=60, price_per_hour=1)
    assert kind.threads == threads


def test_benchmarks_are_spread_over_the_campaign_and_run_on_every_type():
    plan = make_plan(SMALL)
    blocks = [any(one in plan.executions for one in block) for block in plan.blocks]
    assert blocks == [True, False, True, False]
    counts = Counter((one.node, one.benchmark) for one in plan.executions)
    assert set(counts.values()) == {2}
    assert {name for _, name in counts} == {
        "cpu-sysbench", "memory-sysbench", "disk-fio", "disk-ioping", "cpu-sysbench-one",
    }  # fmt: skip
    assert {name for _, name in counts} - {"cpu-sysbench-one"} <= set(PARSERS)


def test_the_same_parameters_make_the_same_plan_and_another_seed_another():
    assert make_plan(SMALL).digest() == make_plan(SMALL).digest()
    assert make_plan(SMALL).digest() != make_plan(SMALL.model_copy(update={"seed": 2})).digest()


def test_a_longer_campaign_begins_with_the_same_runs():
    longer = make_plan(SMALL.model_copy(update={"blocks": 5}))
    assert [one for block in longer.blocks[:4] for one in block] == [
        one for block in make_plan(SMALL).blocks for one in block
    ]


def test_types_take_turns_in_a_block():
    first = [one.machine_type for one in make_plan(SMALL).blocks[0] if hasattr(one, "machine_type")]
    changes = sum(a != b for a, b in itertools.pairwise(first))
    assert changes > len(first) / 2


def test_inputs_vary_from_run_to_run_around_the_same_size_on_every_type():
    params = RecordParams(
        jobs=(RecurringJob(template="comment_search", parts=20, spread=0.2, deadline_multiple=2),), blocks=50
    )
    for kind in params.types:
        sizes = sorted(one.parts[1] for one in make_plan(params).runs if one.machine_type == kind.name)
        assert len(set(sizes)) > 5
        assert 18 <= sizes[len(sizes) // 2] <= 22
    assert all(one.parts[0] + one.parts[1] <= PARTS for one in make_plan(params).runs)
    assert len({one.sql for one in make_plan(params).runs}) > 5
    assert not any("{word}" in one.sql for one in make_plan(params).runs)


def test_the_limits_of_a_type_become_those_of_a_node():
    kind = EmulatedType(name="half", cores=0.5, memory_mb=100, disk_mb_per_s=40, price_per_hour=1)
    node = kind.as_node()
    assert (node.cpu_percent, node.disk_mb_per_s) == (50, 40)
    assert round(node.memory_mib * 1024 * 1024) == 100_000_000


def job(name):
    return RecurringJob(template=name, parts=1, deadline_multiple=2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"jobs": (job("nothing"),)}, "no template nothing"),
        ({"jobs": (job("load_orders"),)}, "no template load_orders"),
        ({"jobs": (job("gaps"), job("gaps"))}, "jobs: names that differ"),
        ({"types": RecordParams().types[:1]}, "at least 2 items"),
        ({"types": RecordParams().types[:1] * 2}, "types: names that differ"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(changes, said):
    with pytest.raises(ValidationError, match=said):
        RecordParams(**changes)


def test_no_job_loads_a_table():
    assert not any(template.writes for template in job_templates().values())
