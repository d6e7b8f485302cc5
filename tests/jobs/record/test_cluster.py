"""The miniature cluster: gauges worked out by hand, load of an offer, and what stands in for control groups."""

import itertools
import math
import os
import shutil
from pathlib import Path

import psutil
import pytest

from tasks.errors import MissingTool
from tasks.jobs.params import Campaign, Sku
from tasks.jobs.record import cluster as load
from tasks.jobs.record.cluster import (
    BackgroundLoad,
    Gauge,
    Monitor,
    SkuState,
    load_source,
    offered_load,
    open_cluster,
    set_tokens,
    stress_command,
)
from tasks.machine import ControlGroup

PARAMS = Campaign(skus=(Sku(name="old", tokens=2, speed=0.8), Sku(name="new", tokens=3)), isolation="threads")
WAITING = {"cpu": ["tail", "-f", "/dev/null"], "memory": ["tail", "-F", "/dev/null"], "none": []}


def _gauge(*samples):
    gauge = Gauge()
    for at, used_s in samples:
        gauge.add(at, used_s)
    return gauge


def _state(tmp_path, *, group=None, sku=PARAMS.skus[0]):
    return SkuState(sku, BackgroundLoad("jobs", tmp_path, None), ("old-0",), group, group)


@pytest.fixture
def group(tmp_path):
    """A group of version 2 whose files a test can read."""
    return ControlGroup(2, dict.fromkeys(("cpu", "memory", "blkio"), tmp_path))


def test_a_gauge_gives_the_cores_between_two_readings():
    gauge = _gauge((0.0, 5.0), (0.5, 5.2), (2.5, 5.2), (3.0, 6.2))
    assert gauge.cores() == pytest.approx([0.4, 0.0, 2.0])


def test_the_latest_value_looks_back_one_second_or_to_the_reading_before():
    assert _gauge((0.0, 0.0), (1.0, 4.0), (1.5, 4.1), (2.0, 4.3)).latest() == pytest.approx(0.3)
    assert _gauge((0.0, 0.0), (4.0, 2.0)).latest() == pytest.approx(0.5)
    assert _gauge((0.0, 3.0)).latest() == _gauge().latest() == 0.0


def test_tokens_that_the_load_takes_are_counted_at_the_worth_of_the_sku(tmp_path):
    state = _state(tmp_path)
    state.load_used = _gauge((0.0, 0.0), (1.0, 0.24))
    assert state.load_tokens == 3  # 0.24 cores are 0.3 of this kind's


def test_the_load_of_an_sku_is_usage_over_quota(tmp_path, group):
    state = _state(tmp_path, group=group)
    state.used = _gauge((0.0, 0.0), (1.0, 0.16), (2.0, 0.2))
    # 0.16 and 0.04 of 0.16 cores: 1 and 0.25
    assert state.load_mean_sd(_gauge((0.0, 0.0), (1.0, 2.0)), 2) == (0.625, 0.375)


def test_without_control_groups_the_load_is_that_of_the_machine(tmp_path):
    busy = _gauge((0.0, 0.0), (1.0, 2.0), (2.0, 3.0))
    assert _state(tmp_path).load_mean_sd(busy, 2) == (0.75, 0.25)
    assert all(math.isnan(told) for told in _state(tmp_path).load_mean_sd(_gauge(), 2))  # nobody knows yet


def test_the_load_of_an_offer_follows_the_law_of_total_variance():
    # within: (0.01 + 0.09) / 2 = 0.05; between 0.2 and 0.6: 0.04; together 0.3 squared
    assert offered_load([(0.2, 0.1), (0.6, 0.3)]) == pytest.approx((0.4, 0.3))
    assert offered_load([(0.5, 0.2)]) == pytest.approx((0.5, 0.2))


def test_a_level_of_load_is_a_share_of_the_tokens(tmp_path, group):
    state = _state(tmp_path, group=group, sku=Sku(name="old", tokens=6, speed=0.8))
    texts = []
    for level in ("cpu-20", "disk-80", "none"):
        state.set_load(level)
        texts.append((tmp_path / "cpu.max").read_text())
    assert texts == ["1200 12500", "4800 12500", "max 12500"]  # "max": what ends, ends fast


def test_tokens_become_a_quota(tmp_path, group):
    set_tokens(group, Sku(name="old", tokens=6, speed=0.6), 4)
    assert (tmp_path / "cpu.max").read_text() == "4000 16667"
    set_tokens(None, PARAMS.skus[0], 4)  # nothing to set, nothing raised


def test_threads_stand_in_for_tokens_and_one_line_says_so(tmp_path, caplog):
    with open_cluster(PARAMS, "jobs", tmp_path) as cluster:
        assert cluster.isolation == "threads"
        assert cluster.slots() == dict.fromkeys(("planner", "old-0", "old-1", "new-0", "new-1", "new-2"))
    assert (
        "control groups cannot be made here: threads stand in for tokens, and every SKU has the same speed"
        in caplog.text
    )


def test_control_groups_asked_for_by_name_and_not_to_be_had_are_an_error_with_what_to_do(tmp_path):
    params = PARAMS.model_copy(update={"isolation": "cgroups"})
    expected = r"control groups cannot be made here; start as root .*, or record with isolation=threads"
    with pytest.raises(MissingTool, match=expected), open_cluster(params, "jobs", tmp_path, tmp_path):
        raise AssertionError("never entered")


def test_auto_takes_threads_where_there_are_no_control_groups(tmp_path):
    params = PARAMS.model_copy(update={"isolation": "auto"})
    with open_cluster(params, "jobs", tmp_path, tmp_path) as cluster:
        assert cluster.isolation == "threads"


@pytest.mark.parametrize("speed", [0.3, 0.6, 0.9, 1.0])
def test_a_slot_may_have_every_token_of_its_sku_and_be_without_a_quota_again(tmp_path, speed):
    params = Campaign(skus=(Sku(name="old", tokens=3, speed=speed),))
    with open_cluster(params, "jobs", tmp_path) as cluster:
        state, slot = cluster.skus["old"], cluster.slots()["old-0"]
        if slot is None:
            pytest.skip("control groups cannot be made here")
        folders = list(state.group.folders.values())
        for tokens in (1, 3):
            set_tokens(slot, state.sku, tokens)
        for level in ("cpu-80", "none"):
            state.set_load(level)
        cluster.sample()
        assert len(state.used.samples) == 1
    assert not any(folder.exists() for folder in itertools.chain(folders, (folder.parent for folder in folders)))


class Passing:
    """Stands in for a control group: a command stays as it is."""

    def command_inside(self, command):
        return command


@pytest.fixture
def without_stress_ng(monkeypatch):
    monkeypatch.setattr(load.shutil, "which", lambda name: None)


@pytest.fixture
def stand_in(monkeypatch):
    """Programs that only wait, in the place of stress-ng."""
    monkeypatch.setattr(load, "stress_command", lambda level, temp, **_: WAITING[level.partition("-")[0]])


@pytest.fixture
def background_of(tmp_path, stand_in):
    made = []

    def make(group):
        made.append(BackgroundLoad("stress-ng", tmp_path, group))
        return made[-1]

    yield make
    for background in made:
        background.stop()


def test_without_stress_ng_load_comes_from_jobs_and_one_line_says_so(without_stress_ng, caplog):
    assert load_source(Campaign()) == "jobs"
    assert "stress-ng is not installed (Debian: apt-get install stress-ng)" in caplog.text


def test_asking_for_stress_ng_by_name_without_having_it_fails_with_what_to_do(without_stress_ng):
    with pytest.raises(MissingTool, match=r"stress-ng is not installed .*; install it, or record with load=jobs"):
        load_source(Campaign(load="stress-ng"))


def test_a_kind_of_load_is_a_stressor_and_its_dose_is_left_to_the_quota(tmp_path):
    assert stress_command("none", tmp_path) == []
    assert stress_command("cpu-20", tmp_path) == stress_command("cpu-80", tmp_path)
    assert "--cpu" in stress_command("cpu-20", tmp_path)
    assert "--vm" in stress_command("memory-30", tmp_path)
    assert stress_command("disk-30", tmp_path)[-2:] == ["--temp-path", str(tmp_path)]


def test_load_from_jobs_starts_no_stressor(tmp_path):
    background = BackgroundLoad("jobs", tmp_path, None)
    background.switch("cpu-40")
    assert (background.level, background.pids) == ("none", [])


def test_the_same_kind_goes_on_at_another_quota(background_of):
    background = background_of(Passing())
    background.switch("cpu-20")
    (first,) = background.pids
    background.switch("cpu-80")
    assert (background.level, background.pids) == ("cpu-80", [first])


def test_without_a_group_another_level_is_another_stressor(background_of):
    background = background_of(None)
    background.switch("cpu-20")
    (first,) = background.pids
    background.switch("cpu-80")
    assert background.pids[0] != first


def test_another_kind_replaces_the_stressor_and_none_ends_it(background_of):
    background = background_of(Passing())
    background.switch("cpu-20")
    first = psutil.Process(background.pids[0])
    background.switch("memory-30")
    second = psutil.Process(background.pids[0])
    first.wait(10)
    assert second.is_running()
    background.switch("none")
    second.wait(10)
    background.stop()
    assert (background.level, background.pids) == ("none", [])


def test_a_stressor_that_will_not_end_holds_nobody_up_and_is_killed_at_the_end(background_of, tmp_path, monkeypatch):
    ready = tmp_path / "ready"
    stubborn = ["sh", "-c", 'trap "" TERM; touch "$1"; exec tail -f /dev/null', "sh", str(ready)]
    monkeypatch.setattr(load, "stress_command", lambda level, temp, **_: stubborn if level != "none" else [])
    monkeypatch.setattr(load, "STOP_S", 0.1)
    background = background_of(Passing())
    background.switch("cpu-20")
    while not ready.exists():
        assert psutil.pid_exists(background.pids[0])
    process = psutil.Process(background.pids[0])
    background.switch("none")
    assert process.is_running()
    assert background.pids == [process.pid]  # its work is still the recorder's, not foreign
    background.stop()
    assert not psutil.pid_exists(process.pid)
    assert background.pids == []


@pytest.mark.skipif(not shutil.which("stress-ng"), reason="needs stress-ng (Debian: apt-get install stress-ng)")
def test_a_real_stressor_ends_with_all_that_it_started(tmp_path):
    background = BackgroundLoad("stress-ng", tmp_path, None)
    background.switch("cpu-20")
    stressor = psutil.Process(background.pids[0])
    while not (children := stressor.children(recursive=True)):
        assert stressor.is_running()
    background.stop()
    _, alive = psutil.wait_procs([stressor, *children], timeout=10)
    assert alive == []
    assert list(Path(tmp_path).iterdir()) == []


def test_a_stressor_is_the_head_of_a_process_group_of_its_own(background_of):
    background = background_of(Passing())
    background.switch("cpu-20")
    assert os.getpgid(background.pids[0]) == background.pids[0] != os.getpgrp()


def test_the_monitor_tells_foreign_work_from_the_recorders_own():
    monitor = Monitor()
    assert math.isnan(monitor.state()["busy_cores"]) and math.isnan(monitor.state()["foreign_cores"])
    monitor.sample([])
    sum(range(3_000_000))  # this process's own work
    monitor.sample([])
    state = monitor.state()
    assert 0 <= state["foreign_cores"] <= max(state["busy_cores"], 0.0) <= (os.cpu_count() or 1) + 1
    assert state["load_1m"] >= 0
