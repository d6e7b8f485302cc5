from dataclasses import replace

import pytest

from tasks.workloads.identify.identification import identify, name_in_words, number_in_words, value_in_words
from tasks.workloads.telemetry import Counter

FLUSHES = Counter("disk.flushes", "requests", is_rate=True)


@pytest.mark.parametrize(
    ("counter", "value", "words"),
    [
        (FLUSHES, 310.2, "310 a second"),
        (Counter("disk.read_bytes", "B", is_rate=True), 4_120_000, "4.12 MB a second"),
        (Counter("own.memory.resident_bytes", "B", scope="workload"), 2_048, "2.05 kB"),
        (Counter("cpu.user_cores", "core-seconds", is_rate=True), 1.7777, "1.78 cores"),
        (Counter("cpu.running_tasks", "tasks"), 12, "12 tasks"),
        (Counter("disk.busy_s", "s", is_rate=True), 0.25, "0.25 s a second"),
        (Counter("x"), 0.0, "0"),
    ],
)
def test_values_come_with_their_unit(counter, value, words):
    assert value_in_words(value, counter) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1234567, "1,230,000"),
        (0.00012345, "0.000123"),
        (1.2e-7, "1.2e-07"),
        (-42.26, "-42.3"),
        (float("nan"), "no value"),
    ],
)
def test_numbers_have_three_digits(value, words):
    assert number_in_words(value) == words


def test_names_are_words():
    assert name_in_words(FLUSHES) == "disk flushes"
    assert name_in_words(Counter("own.cpu.user_cores", scope="workload")) == "cpu user of its own"


def test_a_counter_that_was_changed_is_the_first_that_differs(case):
    """One counter of a known run, times a thousand: that is what must be said, with both values."""
    run = case.test[0]
    at = next(at for at, counter in enumerate(run.counters) if counter.scope == "workload")
    values = run.values.copy()
    values[:, at] *= 1000
    found = identify(replace(run, values=values), case.model)
    differing = [line for line in found.reasons if " against " in line]
    assert differing[0].startswith(name_in_words(run.counters[at]))
    assert " a second against " in differing[0] and differing[0].endswith(f"of {run.workload}")


def test_a_known_run_says_first_what_matched(case):
    found = identify(case.test[0], case.model)
    assert f", as in {found.workload} (" in found.reasons[0]


def test_a_stranger_says_first_what_differs(case):
    found = next(one for one in (identify(run, case.model) for run in case.strangers) if not one.is_known)
    assert " against " in found.reasons[0]


def test_a_run_that_is_the_known_one_differs_in_nothing(case):
    found = identify(case.train[0], case.model)
    assert found.reasons[-1] == f"no counter differs from {case.train[0].workload} by more than its own runs do"
