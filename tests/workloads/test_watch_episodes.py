"""Episodes of what runs: a deviation is one, however often it is looked at."""

import pytest

from tasks.workloads.watch_episodes import Look, verdicts_of


def told(ran, expected=(), labels=None):
    """Kind and first look of the episode of each look; `ran`: what was found, - for unknown."""
    labels = labels or [None] * len(ran)
    looks = [
        Look(str(at), None, None if name == "-" else name, label)
        for at, (name, label) in enumerate(zip(ran, labels, strict=True))
    ]
    short = {"as-expected": ".", "unexpected-workload": "!", "unknown-workload": "?"}
    return " ".join(f"{short[one.kind]}{one.since.run_id}" for one in verdicts_of(looks, list(expected)))


@pytest.mark.parametrize(
    ("ran", "expected", "verdicts"),
    [
        ("aaa", "a", ".0 .0 .0"),
        ("abba", "a", ".0 !1 !1 .3"),  # going on is the same episode
        ("abab", "a", ".0 !1 .2 !3"),  # coming back is another one
        ("abc", "a", ".0 !1 !2"),  # so is another workload in its place
        ("a--b", "ab", ".0 ?1 ?1 .3"),
        ("ba", "ab", ".0 .1"),
        ("", "a", ""),
    ],
)
def test_against_what_should_run(ran, expected, verdicts):
    assert told(ran, expected) == verdicts


@pytest.mark.parametrize(
    ("ran", "verdicts"),
    [
        ("aabb", ".0 .0 !2 .3"),  # a change is told once, then it is what runs
        ("a-a", ".0 ?1 .2"),  # something unknown does not become usual
        ("a--b", ".0 ?1 ?1 !3"),
        ("--", "?0 ?0"),  # nobody knows what should run, and still it is told
        ("b", ".0"),
    ],
)
def test_without_an_expectation_what_ran_before_should_go_on(ran, verdicts):
    assert told(ran) == verdicts


def test_a_run_that_names_itself_should_be_what_it_says_and_does_not_become_usual():
    assert told("aabb", labels=[None, "a", "a", "b"]) == ".0 .0 !2 .3"
    assert told("aba", labels=[None, "b", None]) == ".0 .1 .2"


def test_what_was_expected_is_said():
    [_, second] = verdicts_of([Look("1", None, "a"), Look("2", None, "b")], [])
    assert second.expected == ("a",)
    [only] = verdicts_of([Look("1", None, None)], [])
    assert only.expected == ()
