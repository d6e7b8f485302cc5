import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.identify.counters import common_counters, comparable
from tasks.workloads.identify.params import FingerprintParams
from tasks.workloads.telemetry import Counter, Telemetry

PARAMS = FingerprintParams()


def run(*counters):
    return Telemetry("r1", tuple(counters), np.arange(3.0), np.zeros((3, len(counters))))


SWITCHES = Counter("cpu.context_switches", is_rate=True)
OWN = Counter("own.cpu.user_cores", is_rate=True, scope="workload")
FREE = Counter("memory.free_bytes")
FLUSHES = Counter("disk.flushes", is_rate=True)


def test_only_counters_of_all_runs_are_compared_by_name():
    found = common_counters([run(SWITCHES, OWN, FLUSHES), run(FLUSHES, SWITCHES)], PARAMS)
    assert found == (SWITCHES, FLUSHES)


def test_counters_that_give_the_session_away_are_left_out():
    assert common_counters([run(SWITCHES, FREE)], PARAMS) == (SWITCHES,)


@pytest.mark.parametrize(("scope", "expected"), [("machine", (SWITCHES,)), ("workload", (OWN,))])
def test_the_scope_is_of_the_machine_or_of_the_workload_alone(scope, expected):
    assert common_counters([run(OWN, SWITCHES)], FingerprintParams(scope=scope)) == expected


def test_runs_without_a_common_counter_are_refused_in_one_line():
    with pytest.raises(BadInput, match="2 runs: no counter in common"):
        common_counters([run(SWITCHES), run(FLUSHES)], PARAMS)
    with pytest.raises(BadInput, match="runs: none"):
        common_counters([], PARAMS)


def test_a_run_that_lacks_counters_is_refused_and_told_which():
    with pytest.raises(BadInput, match=r"run r1: lacks 2 of 3 counters: disk.flushes, own.cpu.user_cores"):
        comparable(run(SWITCHES), [SWITCHES, FLUSHES, OWN])
    with pytest.raises(BadInput, match="c7 and 2 more"):
        comparable(run(SWITCHES), [Counter(f"c{at}") for at in range(10)])


def test_a_few_counters_may_be_missing_where_that_is_allowed():
    assert comparable(run(SWITCHES, OWN), [SWITCHES, FLUSHES, OWN], least_share=0.6) == ("disk.flushes",)
    assert comparable(run(SWITCHES, OWN, FREE), [SWITCHES, OWN]) == ()
