"""What a kind of machine does to a run, from runs of the same job that landed on different ones."""

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.control.asking import parse_scenario
from tasks.jobs.control.edits import apply
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.placement import describe_placement, fit_placement, likely_shares

EFFECTS = {"gen3": 0.0, "gen4": -0.3, "gen5": -0.6}


def runs(n=900, *, job_levels=True, rng_seed=2):
    """Runs of 9 jobs of 4 vertices that land at random; jobs that run on fast machines may be slow ones."""
    rng = np.random.default_rng(rng_seed)
    jobs = np.arange(n) % 9
    fast = 0.2 + 0.6 * (jobs / 8)
    on = np.stack([rng.multinomial(4, [(1 - p) / 2, (1 - p) / 2, p]) for p in fast])
    log = on / 4 @ np.array(list(EFFECTS.values())) + (2.0 * fast if job_levels else 0.0)
    frame = pd.DataFrame(on, columns=[f"vertices_{sku}" for sku in EFFECTS]).astype(float)
    return frame.assign(n_vertices=4.0, group_key=[f"job-{job}" for job in jobs]), log


def test_the_effect_of_a_sku_is_that_within_jobs_whatever_jobs_it_serves():
    found = fit_placement(*runs())
    assert found.effects["gen5"] - found.effects["gen3"] == pytest.approx(-0.6, abs=0.06)
    assert found.effects["gen4"] - found.effects["gen3"] == pytest.approx(-0.3, abs=0.05)
    assert (found.n_runs, found.n_groups, found.reason) == (900, 9, None)


def test_a_few_runs_tell_nothing_and_more_of_them_more():
    frame, log = runs()
    assert fit_placement(frame[:29], log[:29]).reason == "fewer than 30 runs say where their vertices worked"
    few, many = (fit_placement(frame[:n], log[:n]).effects for n in (60, 900))
    assert 0 > few["gen5"] > many["gen5"]


def test_a_log_with_one_sku_or_none_moves_nothing():
    frame, log = runs()
    for less in (frame[["group_key", "n_vertices", "vertices_gen3"]], frame[["group_key"]]):
        found = fit_placement(less, log)
        assert found.effects == {}
        assert found.log_shift(frame, frame).tolist() == [0.0] * len(frame)
        assert describe_placement(found, features()) == []


def features():
    """On both, offered gen5 only, offered a SKU that earlier runs were never on, a job without earlier runs."""
    nan = np.nan
    return pd.DataFrame(
        {
            "offered_gen3": [1.0, 0.0, 0.0, 1.0],
            "offered_gen5": [1.0, 1.0, 1.0, 1.0],
            "vertex_share_gen3_mean": [0.75, 0.75, 1.0, nan],
            "vertex_share_gen5_mean": [0.25, 0.25, 0.0, nan],
        }
    )


def test_vertices_are_expected_where_earlier_ones_were_as_far_as_it_is_offered():
    found = likely_shares(features(), ["gen3", "gen5"])
    assert found[:3].tolist() == [[0.75, 0.25], [0.0, 1.0], [0.0, 1.0]]
    assert np.isnan(found[3]).all()


def test_moving_to_the_faster_sku_helps_runs_by_as_much_as_was_elsewhere():
    before = features()
    after = apply(parse_scenario(WhatIfParams(), shifts=["gen3:gen5"]), before)
    found = fit_placement(*runs())
    gain = found.effects["gen5"] - found.effects["gen3"]
    assert found.log_shift(before, after) == pytest.approx([0.75 * gain, 0.0, 0.0, 0.0])
    told = describe_placement(found, before)
    assert len(told) == 1
    assert "44 % less with all vertices on gen5 than with all on gen3, by 900 runs of 9 jobs" in told[0]
