"""Finding one job by a part of its name."""

import pytest

from tasks.errors import NotFound
from tasks.jobs.groups import find_group


@pytest.fixture
def warehouse(job_log):
    keys = ["etl", "etl daily", "etl weekly", "Report of sales", *(f"batch {i}" for i in range(8))]
    return job_log([{"runtime_s": 1.0, "group_key": key} for key in keys])


def test_the_exact_key_wins_over_longer_ones(warehouse):
    assert find_group(warehouse, "log", "etl") == "etl"


def test_a_unique_part_in_any_case_is_enough(warehouse):
    assert find_group(warehouse, "log", "WEEKLY") == "etl weekly"
    assert find_group(warehouse, "log", "sales") == "Report of sales"


def test_several_fitting_jobs_are_named(warehouse):
    with pytest.raises(NotFound) as caught:
        find_group(warehouse, "log", "batch")
    assert str(caught.value) == (
        "job 'batch': 8 jobs of source 'log' fit: 'batch 0', 'batch 1', 'batch 2', 'batch 3', 'batch 4' and 3 more; "
        "give more of the name"
    )


def test_an_unknown_job_is_answered_with_the_nearest_ones(warehouse):
    with pytest.raises(NotFound, match=r"job 'etl dayly': no job of source 'log' is called so; nearest: 'etl daily', "):
        find_group(warehouse, "log", "etl dayly")


def test_signs_of_patterns_are_plain_text(warehouse):
    with pytest.raises(NotFound, match="is called so"):
        find_group(warehouse, "log", "%")


def test_a_source_without_runs_says_so(warehouse):
    with pytest.raises(NotFound, match="source 'empty' has no job runs"):
        find_group(warehouse, "empty", "etl")
