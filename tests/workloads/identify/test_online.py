from dataclasses import replace

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.identify.online import fit_online, identify_online, identify_so_far, prefix, window, windows_of
from tasks.workloads.identify.saving_online import load_online, save_online
from tasks.workloads.telemetry import Counter, Telemetry


def run(n=30, first=1.0):
    return Telemetry("r", (Counter("a"),), first + np.arange(float(n)), np.arange(float(n))[:, None], interval_s=1.0)


@pytest.mark.parametrize("first", [0.0, 1.0, 600.0])
def test_the_first_seconds_are_the_first_samples_whatever_the_clock_says(first):
    assert prefix(run(first=first), 5).values[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_a_window_is_what_was_sampled_in_it_and_its_clock_begins_anew():
    found = window(run(), 10, 5)
    assert found.values[:, 0].tolist() == [10, 11, 12, 13, 14]
    assert found.at_s.tolist() == [1, 2, 3, 4, 5] and found.run_id == "r@10+5"


def test_windows_are_whole():
    assert [one.run_id for one in windows_of(run(), 10, 10)] == ["r@0+10", "r@10+10", "r@20+10"]
    assert len(windows_of(run(29), 10, 10)) == 2
    assert windows_of(run(5), 10, 10) == []


def test_a_window_outside_of_the_run_is_refused():
    with pytest.raises(BadInput, match="run r: no sample between 40 and 45 s; expected a window within its 30 s"):
        window(run(), 40, 5)


@pytest.fixture(scope="module")
def online(case, quick):
    return fit_online(case.train, quick, (20, 10))


def test_more_of_a_run_is_judged_by_the_model_of_as_much(case, online):
    assert online.seconds == (10, 20)
    found = identify_online(case.test[0], online)
    assert [seconds for seconds, _ in found] == [10, 20]
    assert [one for one, _ in identify_online(prefix(case.test[0], 12), online)] == [10]


def test_the_first_seconds_name_a_workload(case, online):
    right = [
        max(one.probabilities, key=one.probabilities.__getitem__) == run.workload
        for run in case.test
        for one in [identify_so_far(prefix(run, 14), online)]
    ]
    assert np.mean(right) > 0.9


def test_a_run_shorter_than_all_models_is_judged_by_the_first(case, online):
    found = identify_so_far(replace(prefix(case.test[0], 6), run_id="short"), online)
    assert found.run_id == "short"


def test_models_of_durations_are_kept_together(case, online, tmp_path):
    save_online(online, tmp_path / "models")
    loaded = load_online(tmp_path / "models")
    assert identify_online(case.test[0], loaded) == identify_online(case.test[0], online)
    (tmp_path / "models" / "online.json").write_text("[]")
    with pytest.raises(BadInput, match=r"no models of durations .*train again"):
        load_online(tmp_path / "models")
