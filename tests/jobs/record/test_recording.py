"""The recording that whorl ships: made by the plan of today's defaults, whole, and told as it is."""

from pathlib import Path

import pandas as pd
import pytest

import tasks
from tasks.jobs.record.run_rows import KINDS
from tasks.record.parts import part_paths
from tests.studies.recorded_jobs import pairs, read_recording, repetitions

FOLDER = Path(tasks.__file__).parents[1] / "data" / "recorded" / "jobs"


@pytest.fixture(scope="module")
def recorded():
    if not part_paths(FOLDER, KINDS):
        pytest.skip("data/recorded/jobs holds no recording")
    return read_recording(FOLDER)


def test_the_recording_can_be_continued_the_defaults_still_plan_the_same_runs(recorded, default_plan):
    planned = {run.run_id: (run.name, run.job.name, run.period, float(run.tokens)) for run in default_plan.runs}
    told = zip(recorded["name"], recorded["job"], recorded["period"], recorded["requested_cpus"], strict=True)
    assert planned == dict(zip(recorded["run_id"], told, strict=True))  # and none is missing


def test_every_run_is_there_once_and_its_numbers_fit_together(recorded):
    assert recorded["run_id"].is_unique
    done = recorded[recorded["status"] == "completed"]
    assert (done["min_tokens"] >= 1).all() and (done["min_tokens"] <= done["peak_tokens"]).all()
    assert (done["used_cpus"] <= done["peak_tokens"] + 1e-3).all() and (done["spare_tokens_used"] >= 0).all()
    assert (done["skyline"].map(lambda steps: max(step["tokens"] for step in steps)) == done["peak_tokens"]).all()
    assert (done["wait_s"] >= 0).all() and (done["cpu_s"] > 0).all() and not recorded["is_simulated"].any()


def test_enough_jobs_run_in_every_period_and_often_enough_to_have_a_shape_there(recorded):
    """Table 1: support of 20 in D1, of 3 in D2 and D3."""
    usual = recorded[recorded["what_if"].isna()]
    key = usual["job"] + " " + usual["plan_signature"].fillna("")
    sizes = pd.crosstab(key, usual["period"])
    assert ((sizes["D1"] >= 20) & (sizes[["D2", "D3"]] >= 3).all(axis=1)).sum() >= 150
    assert all(sizes[name][sizes[name] >= 3].median() >= 15 for name in ("D2", "D3"))


def test_each_what_if_was_carried_out_a_thousand_times(recorded):
    n_pairs = recorded.loc[recorded["status"] == "completed", "what_if"].value_counts()
    assert {"no_spare", "newest_sku", "steady_load", "baseline"} == set(n_pairs.index) and n_pairs.min() >= 1000


def test_parts_stay_small_enough_to_be_shipped():
    sizes = [path.stat().st_size for path in part_paths(FOLDER, KINDS)]
    assert max(sizes, default=0) < 2_000_000 and sum(sizes) < 10_000_000


def row(run_id, runtime_s, **more):
    usual = {"what_if": None, "matched_run_id": None, "status": "completed", "ratio": runtime_s / 2.0}
    return {"run_id": run_id, "runtime_s": runtime_s} | usual | more


def test_pairs_are_compared_with_their_own_baseline():
    runs = pd.DataFrame(
        [
            row("a-baseline", 2.0, what_if="baseline", matched_run_id="a"),
            row("a-no_spare", 3.0, what_if="no_spare", matched_run_id="a-baseline"),
            row("b-baseline", 4.0, what_if="baseline", matched_run_id="b", status="failed"),
            row("b-no_spare", 9.0, what_if="no_spare", matched_run_id="b-baseline"),
            row("c-no_spare", 9.0, what_if="no_spare", matched_run_id="c-baseline"),
        ]
    )
    [(name, told)] = pairs(runs)
    assert name == "what-if no_spare"
    assert told.startswith("1 pairs; runtime over that of the baseline 1.50 / 1.50 / 1.50;")


def test_half_the_difference_of_a_run_and_its_unchanged_repetition_is_the_least_error():
    """|4 - 1| / 2, |3 - 2| / 2 and |4 - 5| / 2: 5 / 6 s over all, 0.5 s where the load was alike."""
    runs = pd.DataFrame(
        {
            "run_id": ["a", "b", "c", "a again", "b again", "c again", "c changed"], "job": list("abcabcc"),
            "what_if": [None] * 3 + ["baseline"] * 3 + ["no_spare"],
            "matched_run_id": [None] * 3 + ["a", "b", "c", "c again"],
            "runtime_s": [1.0, 2.0, 5.0, 4.0, 3.0, 4.0, 9.0], "load_mean": [0.1, 0.5, 0.5, 0.8, 0.55, 0.5, 0.5],
        }
    )  # fmt: skip
    told = dict(repetitions(runs, None))
    assert told["unchanged repetition"] == "3 runs; half the mean difference 0.833 s"
    assert told["unchanged repetition, load within 0.1"] == "2 runs; half the mean difference 0.500 s"
    scores = pd.DataFrame({"run_id": ["a", "b", "c"], "crps_s": [1.6, 0.2, 0.4]})
    beside = dict(repetitions(runs, scores))["unchanged repetition"]
    assert beside.startswith("3 runs; half the mean difference 0.833 s, CRPS 0.733 s, -0.100 [")
