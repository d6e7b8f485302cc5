"""The known cause of a run: what takes half of it or more, worked out by hand."""

from dataclasses import replace

import pytest

from tasks.jobs.record.cause import Conditions, recorded_cause
from tasks.jobs.record.orders import Measured

EVERYDAY = Conditions(parts=4, typical_parts=4, threads=2, cores=2, is_cold=False)
CALM = Measured(runtime_s=1.0, query_s=0.95)


def test_a_calm_everyday_run_has_no_cause():
    assert recorded_cause(CALM, 1.5, EVERYDAY) == "none"


def test_a_run_that_waited_most_of_its_time_for_a_lock_names_the_lock():
    assert recorded_cause(replace(CALM, runtime_s=3.0, lock_wait_s=2.0), 1.5, EVERYDAY) == "lock"


@pytest.mark.parametrize(("cpu_wait_s", "cause"), [(1.4, "none"), (2.0, "load")])
def test_load_is_named_when_others_took_more_than_half_of_the_query(cpu_wait_s, cause):
    # 1.0 s of work: queued for 1.4 of 2.4 s is 0.58 of 0.8 s = 0.47 s; for 2 of 3 s 0.67 of 0.8 s = 0.53 s
    measured = Measured(runtime_s=1.0, query_s=0.8, cpu_wait_s=cpu_wait_s)
    assert recorded_cause(measured, 1.0, EVERYDAY) == cause


def test_threads_that_wait_for_each_other_are_no_load():
    # four threads on two cores wait half of the time by themselves
    measured = replace(CALM, cpu_wait_s=2.0)
    assert recorded_cause(measured, 1.0, replace(EVERYDAY, threads=4)) == "none"


def test_a_bigger_input_is_named_and_becomes_spill_where_it_spilled():
    bigger = replace(EVERYDAY, parts=40)
    assert recorded_cause(CALM, 1.5, bigger) == "big_input"
    assert recorded_cause(replace(CALM, temp_bytes=10_000_000), 1.5, bigger) == "spill"


def test_a_cold_cache_is_named_only_where_nothing_else_explains_the_run():
    assert recorded_cause(CALM, 1.5, replace(EVERYDAY, is_cold=True)) == "cold_cache"
    assert recorded_cause(CALM, 1.5, replace(EVERYDAY, is_cold=True, parts=40)) == "big_input"


def test_a_run_that_never_told_is_not_measured():
    assert recorded_cause(None, 0.0, EVERYDAY) == "not_measured"
