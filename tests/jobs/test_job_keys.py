"""What a job is: the key by which the past predicts, decided once for a source, also if that is killed in between."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs import job_keys, steps
from tasks.jobs.grouping import group_keys
from tasks.jobs.job_keys import GIVEN, choose_key, read_key
from tasks.jobs.params import EvaluateParams, GroupParams, PredictParams, ReadParams, SplitParams
from tasks.warehouse.connection import fetch
from tasks.warehouse.copies import hash_tables, rebuild

NOISE = 0.1


def runtimes(number, seed=0):
    """The runtimes of jobs with these numbers, each with its own usual time, in seconds."""
    return np.exp(1 + 0.5 * number + np.random.default_rng(seed).normal(0, NOISE, len(number)))


def words(n):
    """Names that no rule takes for the same: words of letters."""
    return ["".join(chr(97 + int(digit)) for digit in f"{i:06}") for i in range(n)]


@pytest.fixture
def users(log_of):
    """400 runs of ten users, each with its own usual time; every run has a name, and a job, of its own."""
    user = np.arange(400) % 10
    known = {"user_name": [f"u{i}" for i in user], "requested_cpus": 4.0, "requested_runtime_s": 3600.0}
    return log_of(runtimes(user), words(400), name=words(400), **known)


def test_where_no_job_recurs_the_key_is_the_one_whose_history_tells_most(users):
    found = choose_key(users, SplitParams())
    assert found.by == ("user", "cpus", "limit")
    assert found.crps_s[",".join(found.by)] < 0.5 * found.crps_s[GIVEN]
    assert found.reason.startswith("runs of one job share user, cpus and limit: history predicts ")
    assert found.regrouped(users)["group_key"].nunique() == 10


def test_jobs_that_the_log_itself_names_stay_though_another_key_predicts_better(users):
    pairs = users.assign(group_key=[f"job{i // 20}" for i in range(400)])
    found = choose_key(pairs, SplitParams())
    assert (found.by, found.reason) == ((), "runs of one job are those that the log, or conf/jobs.yaml, says")
    assert found.regrouped(pairs) is pairs


def sized(log_of, limits, names=None):
    """A log of two users with four sizes, grouped as logs are without a setting, whose runtimes go by limit."""
    run, user = np.arange(600), np.arange(600) % 2
    known = {"user_name": [f"u{i}" for i in user], "requested_cpus": 1.0 + run // 2 % 4, "name": names}
    log = log_of(runtimes(limits), requested_runtime_s=600.0 * (1 + limits), **known)
    return log.assign(group_key=group_keys(log.drop(columns="group_key")))


def test_jobs_without_names_are_told_by_the_limit_where_that_predicts_better_beyond_noise(log_of):
    log = sized(log_of, np.random.default_rng(1).integers(6, size=600))
    found = choose_key(log, SplitParams())
    assert found.by == ("user", "limit")
    assert found.reason.endswith(" than by user and cpus")


def test_names_that_recur_stay_a_part_of_the_key(log_of):
    names = [f"job-{'abc'[i % 3]}" for i in range(600)]
    found = choose_key(sized(log_of, np.random.default_rng(1).integers(6, size=600), names), SplitParams())
    assert found.by == ("user", "name", "limit")


def test_jobs_that_never_vary_keep_their_key(log_of):
    runtime_s = [(20.0, 30.0, 40.0)[i % 3] for i in range(400)]
    log = log_of(runtime_s, name=[f"job-{'abc'[i % 3]}" for i in range(400)], user_name="u", requested_cpus=4.0)
    found = choose_key(log.assign(group_key=group_keys(log.drop(columns="group_key"))), SplitParams())
    assert (found.by, found.crps_s[GIVEN]) == ((), 0.0)


def test_a_queue_that_tells_runs_of_one_name_apart_is_a_part_of_the_key(log_of):
    is_slow = np.random.default_rng(1).random(600) < 0.3
    log = log_of(runtimes(is_slow), name=[f"job-{'abc'[i % 3]}" for i in range(600)], queue=np.where(is_slow, "x", "y"))
    log = log.assign(group_key=group_keys(log.drop(columns="group_key")))
    assert choose_key(log, SplitParams()).by == ("name", "queue")


def test_a_gain_that_one_job_alone_makes_may_be_luck(log_of):
    limits = np.where(np.arange(600) % 100 == 99, np.random.default_rng(1).integers(2, size=600) * 8, 0)
    found = choose_key(sized(log_of, limits), SplitParams())
    assert found.by == () and "which may be luck" in found.reason


def test_whole_names_are_the_key_where_they_recur_and_tell_more_than_what_is_left_of_them(log_of):
    pipeline = np.arange(400) % 10
    names = [f"pipeline_{10_001 + i}_load" for i in pipeline]
    log = log_of(runtimes(pipeline), ["pipeline_{n}_load"] * 400, name=names)
    found = choose_key(log, SplitParams())
    assert found.by == ("full_name",)
    assert found.regrouped(log)["group_key"].nunique() == 10
    once = log.assign(name=[f"pipeline_{10_001 + i}_load" for i in range(400)])  # a name a run tells nothing
    assert choose_key(once, SplitParams()).by == ()


def test_whole_names_are_the_key_whoever_started_them_where_users_tell_nothing(log_of):
    number = np.random.default_rng(3).integers(10, size=900)
    users = [f"u{i}" for i in np.random.default_rng(4).integers(12, size=900)]
    log = log_of(runtimes(number), name=[f"shard-{i}" for i in number], user_name=users)
    found = choose_key(log.assign(group_key=group_keys(log.drop(columns="group_key"))), SplitParams())
    assert found.by == ("full_name",)


def test_names_without_their_last_word_are_the_key_where_only_that_recurs(log_of):
    step = np.arange(400) % 10
    names = [f"load_{chr(97 + i)}_{word}" for i, word in zip(step, words(400), strict=True)]
    log = log_of(runtimes(step), names, name=names)
    found = choose_key(log, SplitParams())
    assert found.by == ("short_name",)
    assert set(found.regrouped(log)["group_key"]) == {f"load_{chr(97 + i)}" for i in range(10)}


def test_the_test_runs_do_not_choose(users):
    later = users.index >= 320
    changed = users.assign(runtime_s=users["runtime_s"].where(~later, 9.0), user_name=np.where(later, "x", "y"))
    changed["user_name"] = changed["user_name"].where(later, users["user_name"])
    assert choose_key(changed, SplitParams()) == choose_key(users, SplitParams())


def test_few_runs_choose_nothing(users):
    found = choose_key(users.head(300), SplitParams())
    assert (found.by, found.crps_s) == ((), {})
    assert found.reason == "runs of one job share name, user and cpus; finished runs are too few to choose another key"


ZONE = ReadParams(time_zone="UTC")
KEYS = "SELECT DISTINCT group_key FROM jobs.runs WHERE source = 'log' ORDER BY 1"
QUICK = EvaluateParams(baseline_trees=5, predict=PredictParams(n_rounds=5, n_trees=5))


@pytest.fixture
def bare(warehouse_in, tmp_path):
    """An empty warehouse."""
    return warehouse_in(tmp_path / "home")


@pytest.fixture
def inbox(users, tmp_path):
    """A function: the path of a table of the first runs of `users`, or of some of them, with a line that is refused."""

    def write(start=0, stop=400):
        rows = users.iloc[start:stop].drop(columns=["group_key", "wait_s"]).assign(status="completed")
        path = tmp_path / f"{start}-{stop}.csv"
        rows.to_csv(path, index=False)
        path.write_text(path.read_text() + "refused,2026-01-01 00:00:00,,,,,,,completed\n")
        return str(path)

    return write


def read(warehouse, path, group=GroupParams(), params=ZONE):  # noqa: B008  # frozen
    """Ingest one table as the flow does."""
    batch = steps.ingest_batch(warehouse, steps.land_log(warehouse, path, "log", "", params, group))
    return steps.group_source(warehouse, "log", group, [batch])


def keys_of(warehouse):
    return fetch(warehouse, KEYS)["group_key"].to_list()


USERS = [f"u{i} · 4 cpus · limit 1:00:00" for i in range(10)]


def test_the_first_reading_of_a_source_decides_and_later_ones_keep_it(bare, inbox):
    found = read(bare, inbox())
    assert found["parts"] == ["user", "cpus", "limit"] and keys_of(bare) == USERS
    again = read(bare, inbox())
    assert again == found
    later = read(bare, inbox(0, 30))
    assert (later["parts"], later["key"], keys_of(bare)) == (found["parts"], found["key"], USERS)
    refused = fetch(bare, "SELECT count(*) AS n FROM ops.quarantine")["n"].iloc[0]
    assert refused == 2  # one a file, also after its rows were grouped anew


def test_a_source_that_is_grouped_by_what_predicts_is_as_if_it_had_been_set(bare, inbox, warehouse_in, tmp_path):
    read(bare, inbox())
    other = warehouse_in(tmp_path / "other")
    read(other, inbox(), GroupParams(by=["user", "cpus", "limit"]))
    runs = "SELECT * EXCLUDE (batch_id) FROM jobs.runs ORDER BY run_id"
    pd.testing.assert_frame_equal(fetch(bare, runs), fetch(other, runs))
    files = "SELECT batch_id, options, n_read, n_kept, n_quarantined FROM ops.files"
    pd.testing.assert_frame_equal(fetch(bare, files), fetch(other, files))


def test_too_few_runs_leave_it_open_until_there_are_enough(bare, inbox):
    assert read(bare, inbox(0, 100))["key"].endswith("too few to choose another key")
    assert read_key(bare, "log") is None and len(keys_of(bare)) == 100
    assert read(bare, inbox(100, 400))["parts"] == ["user", "cpus", "limit"]
    assert keys_of(bare) == USERS


def test_a_training_decides_for_good_and_what_predicts_better_later_is_told_with_its_command(bare, inbox):
    read(bare, inbox(0, 100))
    found = steps.train(bare, "log", QUICK, "first-run")
    assert found["key"].endswith("too few to choose another key")
    later = read(bare, inbox(100, 400))
    assert later["parts"] == [] and len(keys_of(bare)) == 400
    assert later["better"].endswith("; whorl jobs train --source log --group-by user,cpus,limit changes it")
    changed = steps.train(bare, "log", QUICK, "second-run", GroupParams(by=["user", "cpus", "limit"]))
    assert (changed["better"], keys_of(bare)) == ("", USERS)
    assert changed["key"] == "runs of one job share user, cpus and limit, as it was set"


def test_what_a_user_sets_is_the_key_of_all_files_of_the_source_and_stays(bare, inbox):
    read(bare, inbox(0, 350))
    found = read(bare, inbox(350, 400), GroupParams(by=["user"]))
    assert keys_of(bare) == [f"u{i}" for i in range(10)]
    assert read(bare, inbox(300, 400))["key"] == found["key"] == "runs of one job share user, as it was set"
    assert keys_of(bare) == [f"u{i}" for i in range(10)]


@pytest.mark.parametrize("before", ["_write", "_regroup", "_version"])
def test_what_another_process_sets_just_before_a_key_is_written_stays(bare, inbox, monkeypatch, before):
    """It was looked for once, and then written over: there is no moment between the look and the writing."""
    known = getattr(job_keys, before)

    def late(*given):
        monkeypatch.setattr(job_keys, before, known)
        job_keys.settle_key(bare, "log", GroupParams(by=["user"]))
        return known(*given)

    read(bare, inbox(0, 100))
    monkeypatch.setattr(job_keys, before, late)
    found = read(bare, inbox(100, 400))
    assert (found["parts"], read_key(bare, "log").is_set) == (["user"], True)
    assert keys_of(bare) == [f"u{i}" for i in range(10)]


class Killed(Exception):
    """Stands for a kill at some call."""


@pytest.mark.parametrize("killed_at", ["read_runs", "group_keys", "ingest"])
def test_killed_in_between_the_next_reading_goes_on(bare, inbox, monkeypatch, killed_at):
    read(bare, inbox(0, 100))

    def kill(*_, **__):
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(job_keys, killed_at, kill)
        read(bare, inbox(100, 400))
    again = read(bare, inbox(100, 400))
    assert (again["parts"], again["better"]) == (["user", "cpus", "limit"], "")
    assert keys_of(bare) == USERS


def test_a_warehouse_that_is_built_again_has_the_same_jobs_with_and_without_the_old_file(bare, inbox):
    read(bare, inbox())
    before = hash_tables(bare)
    rebuild(bare)
    assert hash_tables(bare) == before
    bare.file.unlink()
    rebuild(bare)
    assert keys_of(bare) == USERS
    assert read(bare, inbox(0, 50))["parts"] == ["user", "cpus", "limit"]  # told by the files themselves


def test_pseudonyms_are_grouped_as_the_names_were(bare, inbox):
    found = read(bare, inbox(), params=ZONE.model_copy(update={"pseudonymise": True}))
    assert found["parts"] == ["user", "cpus", "limit"]
    keys = keys_of(bare)
    assert len(keys) == 10 and not any(key.startswith("u") for key in keys)
