"""Words for statuses, as schedulers, engines and people write them."""

import pytest

from tasks.jobs.statuses import KNOWN_TO_SLURM, TABLES, is_exit_code, key_of, status_of, status_of_exit_code

WORDS = {
    "completed": "SUCCESS success succeeded Succeeded ok OK completed COMPLETED Complete done finished neutral CACHED",
    "failed": "FAILURE failure failed FAILED error errored OOM_KILLED OOMKilled OUT_OF_MEMORY Evicted startup_failure "
    "up_for_retry NODE_FAIL BF crashed",
    "cancelled": "CANCELED cancelled aborted ABORTED killed skipped stale removed upstream_failed PREEMPTED CA",
    "timeout": "TIMED_OUT timed_out TimedOut timeout TIMEOUT DEADLINE DeadlineExceeded TO",
    "running": "running RUNNING in_progress In-Progress deferred SUSPENDED CG R canceling",
    "pending": "pending queued scheduled waiting action_required waiting_for_resource ContainerCreating PD CONFIGURING",
    "unknown": "unknown",
}


@pytest.mark.parametrize(("status", "words"), WORDS.items())
def test_words_of_people_and_engines_have_a_status(status: str, words: str) -> None:
    assert {word: status_of(word, {}) for word in words.split()} == dict.fromkeys(words.split(), status)
    assert status_of(" timed out ", {}) == "timeout" and status_of("CANCELLED by 123", {}) == "cancelled"


def test_no_word_has_two_statuses_in_the_table() -> None:
    told = [(key_of(word), status) for table in TABLES for word, status in table.items()]
    assert {key for key, _ in set(told) if len({s for k, s in told if k == key}) > 1} == set()


def test_letters_that_mean_one_thing_in_slurm_and_another_elsewhere_are_slurms_alone() -> None:
    for word, status in {"F": "failed", "S": "running", "STOPPED": "running"}.items():
        assert status_of(word, {}) is None and status_of(word, {}, KNOWN_TO_SLURM) == status


def test_what_the_user_says_counts_before_the_table() -> None:
    assert status_of("Gone-Away", {"gone away": "cancelled"}) == "cancelled"
    assert status_of("done", {"done": "failed"}) == "failed"
    assert status_of("meh", {}) is None


def test_numbers_are_no_words_and_0_is_success_among_exit_codes_alone() -> None:
    assert [status_of(code, {}) for code in ("0", "1", "137")] == [None, None, None]
    codes = {"0": "completed", "1": "failed", "-9": "failed", "0.0": "completed", "0:0": "completed", "0:15": "failed"}
    assert {code: status_of_exit_code(code) for code in codes} == codes
    assert status_of_exit_code("ok") is None
    assert [is_exit_code(name) for name in ("exit_code", "ExitCode", "rc", "return value", "status", "code")] == [
        True, True, True, True, False, False,
    ]  # fmt: skip
