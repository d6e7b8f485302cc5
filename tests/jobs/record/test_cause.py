"""The known cause of a long run: what takes half of it or more, worked out by hand."""

from dataclasses import replace

import pytest

from tasks.jobs.record.rows import Usual, VertexTimes, cause_shares, kept_waiting_s, recorded_cause

EVERYDAY = Usual(parts_ratio=1.0, tokens_ratio=1.0)
# ten seconds in which its tokens promised 4 s of CPU, of which it used all: as fast as promised
STEADY = VertexTimes(query_s=10.0, lock_wait_s=0.0, cpu_s=4.0, promised_s=4.0, is_cold=False, temp_bytes=0)
SLOW = replace(STEADY, cpu_s=2.0)  # 2 s of CPU would have taken 5 s at 0.4 cores: 5 s too long


def _cause(*path, runtime_s=10.0, usual=EVERYDAY):
    return recorded_cause(cause_shares(path, runtime_s, usual))


def test_the_time_that_a_query_was_kept_waiting():
    assert kept_waiting_s(STEADY) == 0.0
    assert kept_waiting_s(SLOW) == pytest.approx(5.0)
    assert kept_waiting_s(replace(STEADY, cpu_s=9.0)) == 0.0  # more than promised: nobody kept it waiting
    assert kept_waiting_s(replace(STEADY, query_s=0.0)) == 0.0
    assert kept_waiting_s(replace(STEADY, promised_s=0.0)) == 0.0


def test_an_everyday_run_at_the_speed_of_its_tokens_has_no_cause():
    assert _cause(STEADY) == "none"


def test_a_slow_run_names_what_was_known_of_it():
    assert _cause(SLOW) == "load"
    assert _cause(replace(SLOW, is_cold=True)) == "cold_cache"
    assert _cause(replace(SLOW, temp_bytes=1_000_000)) == "spill"
    assert _cause(replace(SLOW, is_cold=True, temp_bytes=1_000_000)) == "spill"


def test_what_was_done_to_a_run_is_no_cause_where_it_ran_as_fast_as_promised():
    assert _cause(replace(STEADY, is_cold=True, temp_bytes=1_000_000)) == "none"


@pytest.mark.parametrize(("runtime_s", "cause"), [(10.0, "load"), (10.1, "none")])
def test_a_cause_takes_half_of_the_run_or_more(runtime_s, cause):
    assert _cause(SLOW, runtime_s=runtime_s) == cause  # 5 s of 10 s, and of 10.1 s


def test_waiting_for_a_lock_counts_over_the_whole_path():
    waited = replace(STEADY, query_s=2.0, cpu_s=0.8, promised_s=0.8, lock_wait_s=3.0)
    assert _cause(waited, waited, runtime_s=10.0) == "lock"  # 3 s and 3 s of 10 s


def test_a_big_input_is_what_goes_beyond_the_everyday_one():
    assert _cause(STEADY, usual=Usual(4.0, 1.0)) == "big_input"  # three quarters of 10 s
    assert _cause(STEADY, usual=Usual(1.9, 1.0)) == "none"  # 1 - 1/1.9 = 0.47
    assert _cause(STEADY, usual=Usual(0.2, 1.0)) == "none"


def test_few_tokens_are_named_against_the_usual_number():
    assert _cause(STEADY, usual=Usual(1.0, 0.25)) == "few_tokens"
    assert _cause(STEADY, usual=Usual(1.0, 0.6)) == "none"
    assert _cause(STEADY, usual=Usual(1.0, 3.0)) == "none"


def test_shares_of_a_path_of_two_vertices_worked_out_by_hand():
    merge = replace(STEADY, query_s=2.0, cpu_s=0.4, promised_s=0.8, lock_wait_s=1.0)  # 1 s too long
    shares = cause_shares([replace(SLOW, is_cold=True), merge], 20.0, Usual(2.0, 0.5))
    # 12 s of queries less 6 s of waiting: 6 s of work, of which half beyond the usual input, half for want of tokens
    assert shares == pytest.approx(
        {"lock": 0.05, "big_input": 0.15, "few_tokens": 0.15, "load": 0.05, "cold_cache": 0.25, "spill": 0.0}
    )


def test_the_largest_cause_is_named():
    waited = replace(SLOW, lock_wait_s=12.0)
    assert _cause(waited, runtime_s=22.0) == "lock"
    assert recorded_cause({"load": 0.5, "lock": 0.6}) == "lock"


def test_a_run_that_never_told_is_not_measured():
    assert recorded_cause(None) == "not_measured"
