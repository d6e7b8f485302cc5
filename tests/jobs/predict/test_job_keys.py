"""What a job is: chosen by what its history tells, before the test, and only where the given key makes no jobs."""

import numpy as np
import pytest

from tasks.jobs.predict.job_keys import GIVEN, choose_key
from tasks.jobs.shape_params import SplitParams


@pytest.fixture
def users(log_of):
    """400 runs of ten users, each with its own usual time; every run has a name, and a job, of its own."""
    user = np.arange(400) % 10
    runtime_s = np.exp(1 + 0.5 * user + np.random.default_rng(0).normal(0, 0.1, 400))
    known = {"user_name": [f"u{i}" for i in user], "requested_cpus": 4.0, "requested_runtime_s": 3600.0}
    # names that no rule takes for the same: words of letters
    words = ["".join(chr(97 + int(digit)) for digit in f"{i:06}") for i in range(400)]
    return log_of(runtime_s, words, name=words, **known)


def test_where_no_job_recurs_the_key_is_the_one_whose_history_tells_most(users):
    found = choose_key(users, SplitParams())
    assert found.by == ("user", "cpus", "limit") or found.by == ("user", "cpus")
    assert found.crps_s[",".join(found.by)] < 0.5 * found.crps_s[GIVEN]
    assert "only 0% of the runs recur" in found.reason
    assert found.regrouped(users)["group_key"].nunique() == 10


def test_jobs_that_recur_stay_as_they_are_grouped_and_the_better_key_is_told(users):
    pairs = users.assign(group_key=[f"job{i // 20}" for i in range(400)])
    found = choose_key(pairs, SplitParams())
    assert found.by == ()
    assert "100% of the runs recur as they are grouped, which stays" in found.reason
    assert found.regrouped(pairs) is pairs


def test_the_test_runs_do_not_choose(users):
    later = users.index >= 320
    changed = users.assign(runtime_s=users["runtime_s"].where(~later, 9.0), user_name=np.where(later, "x", "y"))
    changed["user_name"] = changed["user_name"].where(later, users["user_name"])
    assert choose_key(changed, SplitParams()) == choose_key(users, SplitParams())
