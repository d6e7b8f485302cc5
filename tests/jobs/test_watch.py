"""The watch: slow runs at a stated rate of alarms, jobs that stopped, jobs that drift; each told once."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.params import DriftParams, WatchParams
from tasks.jobs.predict.training import train_source
from tasks.jobs.watch import excess_scores, history_quantiles, regular_gaps, score_thresholds, watch_source
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.copies import hash_tables

START = pd.Timestamp("2026-01-01")
HOURS = 100
NIGHT = START + pd.Timedelta(hours=HOURS)
NO_ALARMS = WatchParams(alarms_per_day=1e-9)
QUIET = DriftParams(is_watched=False)
DAYS, PER_DAY, SINCE_DAY = 40, 4, 33
END = START + pd.Timedelta(days=DAYS)
NARROW, WIDE = 0.05, 0.5


def test_a_score_is_the_way_above_the_median_against_that_of_the_98_percent_time():
    logs = np.log([[10.0, 40.0], [10.0, 40.0], [10.0, 10.0]])
    scores = excess_scores(logs[:, 0], logs[:, 1], np.log([40.0, 5.0, 10.5]))
    assert scores == pytest.approx([1, -0.5, np.log(1.05) / 0.05])  # a reach of less than 5 % counts as 5 %


def hourly(n):
    return np.datetime64("2026-01-01", "us") + np.arange(n) * np.timedelta64(3600, "s")


NEVER = np.datetime64("NaT")


def threshold_of_the_next(scores, per_day):
    """Of a run that is submitted when all of these, one an hour, are known."""
    ends = np.append(hourly(len(scores)), NEVER)
    found = score_thresholds(np.append(scores, 0.0), hourly(len(scores) + 1), ends, per_day)
    return found.score[-1], found.per_day[-1]


def test_the_threshold_is_the_score_that_the_budget_allows_at_the_present_rate():
    # 24 runs a day; of the 39 latest 1.2 a day are 5 %: rank 2 of 40 places, the second highest score
    assert threshold_of_the_next(np.arange(39.0), 1.2) == pytest.approx((37, 1.2))
    assert threshold_of_the_next(np.arange(39.0), 0.12)[0] == np.inf
    assert threshold_of_the_next(np.arange(39.0), 24.0) == pytest.approx((37, 1.2))  # at most one run in twenty


def test_runs_that_ended_after_a_submission_say_nothing_of_its_threshold():
    scores, times = np.arange(200.0), hourly(200)
    before = score_thresholds(scores, times, times, 1.0).score
    scores[100:] = 1e6
    np.testing.assert_array_equal(score_thresholds(scores, times, times, 1.0).score[:101], before[:101])
    known = np.where(np.arange(200) < 100, times, NEVER)
    np.testing.assert_array_equal(score_thresholds(scores, times, known, 1.0).score[:101], before[:101])


@pytest.mark.parametrize("drawn", ["lognormal", "pareto", "exponential"])
@pytest.mark.parametrize("change", [1.0, 3.0, 1 / 3])
def test_the_rate_is_the_stated_one_whatever_the_scores_are_and_become(drawn, change):
    rng = np.random.default_rng(5)
    scores = rng.pareto(1, 4000) if drawn == "pareto" else getattr(rng, drawn)(size=4000)
    scores[1000:] *= change  # the log turns wilder, or calmer
    times = hourly(4000)
    found = score_thresholds(scores, times, times, 0.6)
    n_expected = 0.6 * 3000 / 24
    assert 0.7 * n_expected < (scores > found.score)[1000:].sum() < 1.3 * n_expected


def test_the_rate_a_day_is_kept_where_runs_come_in_bursts():
    rng = np.random.default_rng(6)
    gaps_h = np.where(np.arange(6000) // 300 % 2 == 0, 0.02, 0.5)
    times = np.datetime64("2026-01-01", "us") + (np.cumsum(gaps_h) * 3.6e9).astype("timedelta64[us]")
    scores = rng.lognormal(size=6000)
    is_alarm = scores > score_thresholds(scores, times, times, 0.5).score
    n_expected = 0.5 * gaps_h[1000:].sum() / 24
    assert 0.67 * n_expected < is_alarm[1000:].sum() < 1.5 * n_expected


def test_history_is_the_jobs_own_runs_that_had_ended_and_nothing_below_ten():
    at = pd.to_datetime(hourly(12))
    past = pd.DataFrame({"group_key": "a", "submitted_at": at, "ended_at": at, "runtime_s": np.exp(np.arange(12.0))})
    median, high, n = history_quantiles(past, past)
    assert n.tolist() == list(range(12))
    assert np.isnan(median[:10]).all()
    assert median[11] == pytest.approx(5)  # of 0 … 10
    assert high[11] == pytest.approx(10)


def usual(n=HOURS, *, job="etl", every_h=1.0):
    """Runs around 100 s, one an hour."""
    rng = np.random.default_rng(7)
    return [
        {
            "run_id": f"{job}-{i}",
            "group_key": job,
            "submitted_at": START + pd.Timedelta(hours=every_h * i),
            "runtime_s": float(100 * np.exp(0.05 * np.clip(rng.normal(), -2, 2))),
        }
        for i in range(n)
    ]


def ended(run_id, runtime_s, *, at=NIGHT, **more):
    return {"run_id": run_id, "group_key": "etl", "submitted_at": at, "runtime_s": runtime_s, **more}


def now_going(run_id="now", *, job="etl", at=NIGHT, **more):
    return {"run_id": run_id, "group_key": job, "submitted_at": at, "runtime_s": np.nan, "status": "running", **more}


def event(at):
    """A run of another job, submitted then: until when the log goes."""
    return {"run_id": f"event-{at}", "group_key": "other", "submitted_at": at, "runtime_s": 0.0}


def later(seconds):
    return NIGHT + pd.Timedelta(seconds=seconds)


def watch(warehouse, source="log", *, per_day=0.5, **params):
    return watch_source(warehouse, source, WatchParams(alarms_per_day=per_day, **params), QUIET)


def told(warehouse, source="log", kind="slow-run", **params):
    found = read_alarms(warehouse, ids=watch(warehouse, source, **params))
    return [row["subject"] for row in found.to_dict("records") if row["kind"] == kind]


def test_a_run_far_beyond_its_history_is_told_with_its_figures_once(job_log):
    warehouse = job_log([*usual(), ended("slow", 300.0)])
    assert told(warehouse) == ["slow"]
    [alarm] = read_alarms(warehouse).to_dict("records")
    assert alarm["message"].startswith("etl: run slow took 5 min, 3 × the ")
    assert "a day are expected" in alarm["message"]
    evidence = json.loads(alarm["evidence"])
    assert (evidence["predictor"], evidence["n_history"], evidence["is_running"]) == ("history", HOURS, False)
    assert evidence["expected_per_day"] == pytest.approx(0.4)  # the rest of the budget is for stopped jobs
    assert evidence["lost_s"] == pytest.approx(300 - evidence["median_s"])
    assert 100 < evidence["limit_s"] < 150
    assert (evidence["started_at"], evidence["ended_at"]) == ("2026-01-05T04:00:00Z", "2026-01-05T04:05:00Z")
    before = hash_tables(warehouse)
    assert watch_source(warehouse, "log", WatchParams(alarms_per_day=0.5), QUIET) == []
    assert hash_tables(warehouse) == before


def test_what_costs_most_time_comes_first(job_log):
    rows = [*usual(), ended("short", 200.0), ended("long", 900.0, at=later(1)), ended("middle", 400.0, at=later(2))]
    warehouse = job_log(rows)
    ids = watch(warehouse)
    subjects = read_alarms(warehouse, ids=ids).set_index("alarm_id")["subject"]
    assert subjects.loc[ids].tolist() == ["long", "middle", "short"]


@pytest.mark.parametrize(("seconds", "is_slow"), [(100, False), (200, True)])
def test_a_run_is_told_while_it_goes_on_and_not_again_when_it_ends(job_log, seconds, is_slow):
    warehouse = job_log([*usual(), now_going(), event(later(seconds))])
    assert told(warehouse) == (["now"] if is_slow else [])
    with writing(warehouse) as connection:
        connection.execute("UPDATE jobs.runs SET status = 'completed', runtime_s = 700 WHERE run_id = 'now'")
    assert told(warehouse) == ([] if is_slow else ["now"])


def test_a_log_too_short_for_so_few_alarms_is_watched_in_silence(job_log):
    warehouse = job_log([*usual(), ended("slow", 300.0)])
    assert told(warehouse, per_day=0.05) == []
    assert told(warehouse, "empty") == []


@pytest.mark.parametrize(
    ("n", "runtime_s", "per_day", "is_told"),
    [(9, 370.0, 0.5, True), (9, 250.0, 0.5, False), (9, 370.0, 0.1, False), (4, 3_700.0, 1.0, False)],
)
def test_of_a_job_of_few_runs_one_far_beyond_the_longest_is_told(job_log, n, runtime_s, per_day, is_told):
    # one run a day: one in ten is longer than nine others, .1 a day; a fifth of the budget is for stopped jobs
    warehouse = job_log([*usual(n, every_h=24.0), ended("slow", runtime_s, at=START + pd.Timedelta(days=n))])
    assert told(warehouse, per_day=per_day) == (["slow"] if is_told else [])
    for alarm in read_alarms(warehouse).to_dict("records"):
        assert "which at most 0.1 runs a day are expected to pass" in alarm["message"]
        evidence = json.loads(alarm["evidence"])
        longest_s = max(row["runtime_s"] for row in usual(n))
        assert (evidence["predictor"], evidence["n_history"]) == ("longest", n)
        assert evidence["limit_s"] == pytest.approx(3 * longest_s)


def test_failed_runs_are_no_history_and_timeouts_are_looked_at(job_log):
    marked = [{**row, "status": "failed"} for row in usual(job="broken")]
    rows = [*usual(), *marked, ended("killed", 400.0, status="timeout"), ended("failed", 400.0, status="failed")]
    assert told(job_log([*rows, {**ended("no history", 900.0), "group_key": "broken"}])) == ["killed"]


def test_what_was_changed_on_purpose_is_neither_slow_nor_history(job_log):
    changed = [{**row, "run_id": f"w{i}", "runtime_s": 9e3, "what_if": "no_spare"} for i, row in enumerate(usual())]
    assert told(job_log([*usual(), *changed, ended("slow", 300.0)])) == ["slow"]


def test_only_the_last_days_of_the_log_are_looked_at_also_of_runs_whose_end_was_never_logged(job_log):
    warehouse = job_log([*usual(), ended("slow", 300.0), now_going(), event(NIGHT + pd.Timedelta(days=8))])
    assert told(warehouse) == []
    assert sorted(told(warehouse, look_back_days=9)) == ["now", "slow"]


def test_a_file_of_a_log_that_goes_on_says_that_its_runs_went_on_until_it_was_read(job_log):
    warehouse = job_log([*usual(), now_going()])
    assert told(warehouse) == []  # the last event is the start of the run
    for read_at, subjects in ((NIGHT + pd.Timedelta(days=400), []), (later(600), ["now"])):  # an old log, a fresh one
        with writing(warehouse) as connection, transaction(connection):
            connection.execute("UPDATE ops.files SET ordered_at = $at", {"at": read_at.to_pydatetime()})
        assert told(warehouse) == subjects


def test_what_was_read_of_a_run_yesterday_does_not_say_that_it_goes_on_today(job_log):
    warehouse = job_log([*usual(), now_going()])
    job_log([event(NIGHT + pd.Timedelta(days=1))])  # another file, read later
    assert told(warehouse) == []


def test_sources_and_jobs_do_not_share_their_history(job_log):
    job_log(usual(), source="other")
    assert told(job_log([ended("slow", 900.0), now_going(), event(later(600))])) == []
    assert told(job_log([*usual(job="a"), ended("slow", 900.0)], source="jobs"), "jobs") == []


def test_where_a_log_names_no_end_or_no_start_the_rest_tells_it(job_log):
    warehouse = job_log([*usual(), ended("slow", 300.0)])
    with writing(warehouse) as connection:
        connection.execute("UPDATE jobs.runs SET ended_at = NULL").fetchall()
    assert told(warehouse) == ["slow"]
    warehouse = job_log([*usual(), ended("slow", 300.0)], source="without-start")
    with writing(warehouse) as connection:
        connection.execute("UPDATE jobs.runs SET started_at = NULL WHERE source = 'without-start'").fetchall()
    assert told(warehouse, "without-start") == ["slow"]


def test_gaps_of_a_regular_job_are_measured_against_its_longest_of_twenty():
    at = pd.to_datetime(hourly(24)).to_series().to_numpy().copy()
    at[23:] += np.timedelta64(2, "h")
    gaps = regular_gaps(pd.DataFrame({"group_key": "a", "submitted_at": at}), at[-1] + np.timedelta64(12, "h"))
    assert gaps["ratio"].tolist() == pytest.approx([1, 1, 3, 4])  # the open one: 12 h against the 3 h before it
    assert gaps["next_at"].isna().tolist() == [False, False, False, True]


@pytest.mark.parametrize(("idle_h", "is_stopped"), [(1, False), (24, True)])
def test_a_job_that_ran_every_hour_has_stopped_after_a_day_without_a_run(job_log, idle_h, is_stopped):
    others = usual(300, job="other")
    until = START + pd.Timedelta(hours=299)
    of_weeks = {"run_id": "of weeks", "group_key": "long", "submitted_at": START, "runtime_s": 30 * 86400.0}
    warehouse = job_log([*usual(300 - idle_h), *others, of_weeks])  # which ends when no run is submitted any more
    found = told(warehouse, kind="stopped-job", per_day=5)
    assert [subject.split(" @ ")[0] for subject in found] == (["etl"] if is_stopped else [])
    if is_stopped:
        [message] = read_alarms(warehouse).query("kind == 'stopped-job'")["message"]
        assert message.startswith("etl: no run for 1 d, usually one every 1 h")
        job_log([event(until + pd.Timedelta(days=30))])
        assert told(warehouse, kind="stopped-job", per_day=5) == []  # that it stopped is no news


def test_a_job_without_a_rhythm_never_stops(job_log):
    rng = np.random.default_rng(1)
    at = START + pd.to_timedelta(np.cumsum(rng.pareto(0.7, 100)), unit="h")
    rows = [{"run_id": f"u{i}", "group_key": "user", "submitted_at": t, "runtime_s": 1.0} for i, t in enumerate(at)]
    assert told(job_log([*rows, event(at[-1] + pd.Timedelta(days=400))]), kind="stopped-job", per_day=50) == []


def drifting_log(factors, *, days, first_day=0, per_day=4, seed=3):
    """Runs around 100 s times the factor of the job on that day (a function of the day); files may follow up."""
    rng = np.random.default_rng([seed, first_day])
    rows = []
    for job, factor in factors.items():
        for day in range(first_day, first_day + days):
            for i in range(per_day):
                at = START + pd.Timedelta(days=day + (i + rng.random()) / per_day)
                runtime_s = 100 * factor(day) * np.exp(0.05 * rng.normal())
                rows.append(
                    {"run_id": f"{job}-{day}-{i}", "group_key": job, "submitted_at": at, "runtime_s": runtime_s}
                )
    return rows


def steady(_):
    return 1.0


def slower(day):
    return 2.0 if day >= 21 else 1.0


def there_and_back(day):
    return 2.0 if 21 <= day < 42 else 1.0


def drifted(warehouse, *, drift=None, source="log"):
    ids = watch_source(warehouse, source, NO_ALARMS, drift or DriftParams())
    return [row["subject"].split(" @ ")[0] for row in read_alarms(warehouse, ids=ids).to_dict("records")]


def test_a_job_that_became_twice_as_slow_is_told_with_its_figures_and_its_neighbours_are_not(job_log):
    warehouse = job_log(drifting_log({"a": steady, "b": slower, "c": steady}, days=28))
    assert drifted(warehouse) == ["b"]
    [alarm] = read_alarms(warehouse).to_dict("records")
    assert alarm["message"].startswith("b: changed; median 100 s, now 3.4 min (2 ×); middle half within")
    evidence = json.loads(alarm["evidence"])
    assert evidence["median_factor"] == pytest.approx(2, rel=0.05)
    assert (evidence["group_key"], evidence["n_before"], evidence["n_after"]) == ("b", 84, 28)
    assert evidence["q_value"] <= evidence["false_discovery_rate"] == 0.05
    assert "shape_before" not in evidence and "shapes_of" not in evidence
    until_at = pd.Timestamp(evidence["until_at"]).tz_localize(None)
    assert until_at - pd.Timestamp(evidence["since_at"]).tz_localize(None) == pd.Timedelta(days=7)
    assert alarm["subject"] == f"b @ {evidence['until_at']}"


def test_a_job_that_drifts_back_is_told_again(job_log):
    factors = {"a": steady, "b": there_and_back}
    warehouse = job_log(drifting_log(factors, days=28))
    told = [(27, job) for job in drifted(warehouse)]
    for day in range(28, 63, 7):
        job_log(drifting_log(factors, days=7, first_day=day))
        told += [(day + 6, job) for job in drifted(warehouse)]
    assert told == [(27, "b"), (48, "b")]
    evidence = [json.loads(text) for text in read_alarms(warehouse)["evidence"]]
    assert sorted(round(one["median_factor"], 1) for one in evidence) == [0.5, 2.0]


def test_failed_runs_and_what_if_runs_are_no_evidence_of_drift(job_log):
    rows = drifting_log({"b": slower}, days=28)
    marked = [{**row, "status": "failed"} if slower(i // 4) > 1 else row for i, row in enumerate(rows)]
    assert drifted(job_log(marked)) == []
    marked = [{**row, "what_if": "no_spare"} if slower(i // 4) > 1 else row for i, row in enumerate(rows)]
    warehouse = job_log(marked, source="asked")
    assert drifted(warehouse, source="asked") == []


def test_the_rate_of_false_discoveries_is_that_of_the_parameters(job_log):
    warehouse = job_log(drifting_log({f"job {i}": steady for i in range(8)}, days=28))
    assert drifted(warehouse, drift=DriftParams(false_discovery_rate=0.05)) == []
    assert drifted(warehouse, drift=DriftParams(false_discovery_rate=0.99)) != []


def minutes_later(minutes):
    return END + pd.Timedelta(minutes=minutes)


def run(job, at, size, runtime_s, **more):
    name = f"{job}-{at:%d-%H%M%S}"
    known = {"run_id": name, "group_key": job, "submitted_at": at, "started_at": at, "input_bytes": 1e6 * size}
    return {**known, "runtime_s": runtime_s, "status": "completed", **more}


def the_log():
    """Narrow and wide jobs in turn, whose runtime is 100 s times their input; the first becomes wide on SINCE_DAY."""
    rng = np.random.default_rng(2)
    rows = []
    for number in range(8):
        for day in range(DAYS):
            for i in range(PER_DAY):
                at = START + pd.Timedelta(days=day + (i + rng.random()) / PER_DAY).round("s")
                has_drifted = number == 0 and day >= SINCE_DAY
                spread = WIDE if number % 2 or has_drifted else NARROW
                size = np.exp(rng.normal(0, 1)) if number == 7 else 1.0
                rows.append(run(f"job {number}", at, size, float(100 * size * np.exp(spread * rng.normal()))))
    return rows


@pytest.fixture(scope="module")
def trained(job_log_at, tmp_path_factory, quick_training):
    """The home of the log with its champion, made once; tests copy it."""
    fill = job_log_at(tmp_path_factory.mktemp("trained") / "home")
    warehouse = fill(the_log())
    train_source(warehouse, "log", quick_training, run_id="test")
    return warehouse


@pytest.fixture
def source(trained, tmp_path):
    """A function that puts more runs into a copy of that home."""
    warehouse = trained.model_copy(update={"home": tmp_path / "home"})
    shutil.copytree(trained.home, warehouse.home)

    def put(*runs):
        rows = pd.DataFrame(list(runs)).assign(source="log", batch_id="batch-000", is_simulated=False)
        if runs:
            with writing(warehouse) as connection, transaction(connection):
                connection.register("more_runs", rows)
                connection.execute("INSERT INTO jobs.runs BY NAME SELECT * FROM more_runs").fetchall()
        return warehouse

    return put


def found_by_model(warehouse, *, per_day=1.0, slow=True, drift=False):
    asked = WatchParams(alarms_per_day=per_day) if slow else NO_ALARMS
    ids = watch_source(warehouse, "log", asked, DriftParams(is_watched=drift))
    return {row["subject"]: json.loads(row["evidence"]) for row in read_alarms(warehouse, ids=ids).to_dict("records")}


def going(run_id, job, *, size=1.0):
    return run(job, END, size, np.nan, run_id=run_id, status="running")


def heard_of(at):
    """A run of no time that says until when the log goes."""
    return run("other", at, 1.0, 0.0)


def test_the_limit_of_a_running_run_is_that_of_the_model_which_knows_its_input(source):
    # job 7 takes 100 s times its input: 10 min may well be for the one and are far too long for the other
    warehouse = source(
        going("large", "job 7", size=6.0), going("small", "job 7", size=0.2), heard_of(minutes_later(10))
    )
    found = found_by_model(warehouse, per_day=1e3)  # capped at one run in twenty: job 0 has drifted, and ranks high
    assert "large" not in found
    assert found["small"]["predictor"].startswith("runtime-")
    assert found["small"]["n_history"] == DAYS * PER_DAY
    assert found["small"]["is_running"]
    assert 50 < found["small"]["limit_s"] < 600
    assert found_by_model(warehouse) == {}


def test_a_job_that_the_model_has_never_seen_is_predicted_all_the_same(source):
    found = found_by_model(source(going("first", "new job"), heard_of(END + pd.Timedelta(days=2))))
    assert found["first"]["predictor"].startswith("runtime-")
    assert found["first"]["n_history"] == 0


def test_a_run_that_has_ended_late_or_in_a_timeout_is_told_as_well(source):
    ended = [
        run("job 2", END, 1.0, 500.0, run_id=status, status=status, ended_at=minutes_later(500 / 60))
        for status in ("completed", "timeout", "failed")
    ]
    found = found_by_model(source(*ended, heard_of(minutes_later(10))))
    assert {"completed", "timeout"} <= set(found) and "failed" not in found
    assert found["timeout"]["runtime_s"] == 500


def test_the_job_that_drifts_to_another_shape_is_told_once_with_both_shapes(source):
    warehouse = source()
    [(subject, evidence)] = found_by_model(warehouse, slow=False, drift=True).items()
    assert subject.startswith("job 0 @ 2026-02-09")
    assert (evidence["shape_before"], evidence["shape_after"]) == (0, 1)
    assert evidence["shapes_of"].startswith("runtime-")
    message = read_alarms(warehouse)["message"].iloc[0]
    assert message.startswith("job 0: drifted from shape 0 to shape 1; median")
    assert found_by_model(warehouse, slow=False, drift=True) == {}


def test_a_change_within_a_shape_is_told_only_where_there_is_no_model(source):
    warehouse = source()
    with writing(warehouse) as connection:
        since_at = START + pd.Timedelta(days=SINCE_DAY)
        connection.execute(
            "UPDATE jobs.runs SET runtime_s = 1.07 * runtime_s WHERE group_key = 'job 2' AND submitted_at >= $at",
            {"at": since_at.to_pydatetime()},
        )
    assert [subject.split(" @")[0] for subject in found_by_model(warehouse, slow=False, drift=True)] == ["job 0"]
    shutil.rmtree(warehouse.models)
    assert [subject.split(" @")[0] for subject in found_by_model(warehouse, slow=False, drift=True)] == ["job 2"]


@pytest.mark.parametrize("broken", ["predictor.json", "shapes-ratio.json", "model.json"])
def test_a_model_that_cannot_be_read_is_a_warning_and_the_history_answers(source, broken, caplog):
    warehouse = source(going("small", "job 2"), heard_of(minutes_later(15)))
    [file] = warehouse.models.glob(f"jobs/*/{broken}")
    file.write_text("{}")
    found = found_by_model(warehouse, drift=True)
    assert found["small"]["predictor"] == "history"
    assert [name.split(" @")[0] for name in found if " @" in name] == ["job 0"]
    assert sum("without its model" in line for line in caplog.messages) == 1
    assert broken in caplog.text or "train again" in caplog.text


def test_a_model_of_another_source_is_not_asked(source):
    warehouse = source()
    with writing(warehouse) as connection:
        connection.execute("UPDATE jobs.runs SET source = 'copy'")
        connection.execute("UPDATE ops.files SET source = 'copy'")
    ids = watch_source(warehouse, "copy", WatchParams(), DriftParams())
    kinds = [
        (row["kind"], "shapes_of" in row["evidence"]) for row in read_alarms(warehouse, ids=ids).to_dict("records")
    ]
    assert ("drift", False) in kinds
    assert ("drift", True) not in kinds
