"""A control group of version 1 and of version 2: the same counters, and the names that people have for it."""

import os

import pytest

from tasks.errors import NotFound
from tasks.machine import ControlGroup
from tasks.workloads.record.counters import CounterReadings, opened, values_of
from tasks.workloads.record.subjects import (
    ProcessSource,
    ProcessTime,
    Subject,
    group_sources,
    groups_at_work,
    shares_of_processes,
    subject_of,
)

PRESSURE = "some avg10=0 avg60=0 avg300=0 total={0}\nfull avg10=0 avg60=0 avg300=0 total=0\n"
V1 = {
    "cpuacct/cpuacct.usage_user": "{0}000",
    "cpuacct/cpuacct.usage_sys": "0",
    "cpu/cpu.stat": "nr_periods 1\nnr_throttled 2\nthrottled_time {0}000\n",
    "memory/memory.usage_in_bytes": "4096",
    "memory/memory.stat": "cache 1\nrss 1\ntotal_cache 100\ntotal_rss 200\ntotal_pgfault {0}\ntotal_dirty 3\n",
    "blkio/blkio.throttle.io_service_bytes_recursive": "254:0 Read {0}\n254:0 Write 5\n8:0 Read 1\nTotal 9\n",
    "blkio/blkio.throttle.io_serviced_recursive": "Total 0\n",
    "pids/pids.current": "7",
    "unified/cpu.pressure": PRESSURE,
    "unified/io.pressure": PRESSURE,
    "unified/memory.pressure": PRESSURE,
}
V2 = {
    "cpu.stat": "usage_usec 1\nuser_usec {0}\nsystem_usec 0\nnr_throttled 2\nthrottled_usec {0}\n",
    "memory.current": "4096",
    "memory.stat": "anon 200\nfile 100\npgfault {0}\nfile_dirty 3\nslab 50\n",
    "io.stat": "254:0 rbytes={0} wbytes=5 rios=0 wios=0 dbytes=0 dios=0\n8:0 rbytes=1 wbytes=0 rios=0 wios=0\n",
    "pids.current": "7",
    "cpu.pressure": PRESSURE,
    "io.pressure": PRESSURE,
    "memory.pressure": PRESSURE,
}


def fill(root, files, amount):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text.replace("{0}", str(amount)))


def group_of(root, version):
    if version == 2:
        return ControlGroup(2, dict.fromkeys(("cpu", "memory", "blkio"), root))
    return ControlGroup(1, {name: root / name for name in ("cpu", "cpuacct", "memory", "blkio", "pids", "unified")})


def second_of(root, version, files):
    """Values by name over a second in which each running number grew by half a million; and what is missing."""
    fill(root, files, 1_000_000)
    sources, missing = opened(group_sources(group_of(root, version)))
    before = [source.read() for source in sources]
    fill(root, files, 1_500_000)
    readings = CounterReadings([[0.0] * len(sources), [1.0] * len(sources)], [before, [s.read() for s in sources]])
    counters = [measure.counter for source in sources for measure in source.measures]
    assert {(one.scope, one.name.partition(".")[0]) for one in counters} == {("workload", "own")}
    names = [one.name for one in counters]
    for source in sources:
        source.close()
    return dict(zip(names, values_of(sources, readings)[0].tolist(), strict=True)), missing


@pytest.mark.parametrize(("version", "files"), [(1, V1), (2, V2)])
def test_both_layouts_give_the_same_numbers_under_the_same_names(tmp_path, version, files):
    found, _ = second_of(tmp_path, version, files)
    assert found["own.cpu.user_cores"] == pytest.approx(0.5)
    assert found["own.cpu.throttled_s"] == pytest.approx(0.5)
    assert found["own.vm.page_faults"] == 500_000
    assert found["own.disk.read_bytes"] == 500_000
    assert found["own.disk.written_bytes"] == 0
    assert (found["own.memory.cached_bytes"], found["own.memory.anonymous_bytes"]) == (100, 200)
    assert (found["own.memory.used_bytes"], found["own.cpu.tasks"]) == (4096, 7)
    assert found["own.pressure.cpu_some"] == pytest.approx(0.5)


def test_version_1_without_a_hierarchy_lists_what_is_missing(tmp_path):
    files = {name: text for name, text in V1.items() if not name.startswith(("blkio", "unified"))}
    found, missing = second_of(tmp_path, 1, files)
    assert {"own.disk.read_bytes", "own.pressure.io_full"} <= {one.counter for one in missing}
    assert "own.disk.read_bytes" not in found
    assert found["own.vm.page_faults"] == 500_000


@pytest.mark.parametrize(("top", "is_measured"), [("Total 0\n", False), ("8:0 Read 9\n8:0 Total 9\nTotal 9\n", True)])
def test_a_group_that_wrote_nothing_is_told_from_a_kernel_that_counts_nothing(tmp_path, top, is_measured):
    fill(tmp_path, {"blkio/blkio.throttle.io_serviced_recursive": top}, 0)
    inner = tmp_path / "blkio" / "redis"
    fill(inner, {"blkio.throttle.io_serviced_recursive": "Total 0\n"}, 0)
    sources, missing = opened(group_sources(ControlGroup(1, {"blkio": inner})))
    named = [measure.counter.name for source in sources for measure in source.measures]
    assert named == (["own.disk.reads", "own.disk.writes"] if is_measured else [])
    assert ("own.disk.writes" in {one.counter for one in missing}) != is_measured


CONTAINER = "4f0c" + "a1b2" * 15
POD = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
UNIT = "system.slice/nginx.service"
DOCKER, BARE = f"system.slice/docker-{CONTAINER}.scope", f"docker/{CONTAINER}"
KUBE = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD.replace('-', '_')}.slice"
KUBE_V1 = f"kubepods/burstable/pod{POD}"


@pytest.fixture(params=[1, 2])
def tree(request, tmp_path):
    """The groups of a machine with units, containers and a pod: the tree's root, and its version."""
    folders = ("cpu", "cpuacct", "memory") if request.param == 1 else (".",)
    kube = KUBE_V1 if request.param == 1 else KUBE
    inner = f"{kube}/{'c' * 64}" if request.param == 1 else f"{kube}/cri-containerd-{'c' * 64}.scope"
    for folder in folders:
        (tmp_path / folder / "cgroup.procs").parent.mkdir(parents=True, exist_ok=True)
        for path in ("", UNIT, BARE if request.param == 1 else DOCKER, inner, "user.slice/nginx"):
            (tmp_path / folder / path).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / path / "cgroup.procs").touch()
    if request.param == 2:
        (tmp_path / "cgroup.controllers").write_text("cpu io memory")
    return tmp_path, request.param


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (f"/{UNIT}/", UNIT, UNIT),
        ("nginx.service", UNIT, UNIT),
        (CONTAINER, BARE, DOCKER),
        (CONTAINER[:12], BARE, DOCKER),
        (POD, KUBE_V1, KUBE),
        (f"pod{POD}", KUBE_V1, KUBE),
    ],
)
def test_a_group_goes_by_its_path_unit_container_and_pod_in_either_version(tree, name, old, new):
    root, version = tree
    subject = subject_of(name, root=root)
    group = subject.group
    assert (group.version, subject.name(root)) == (version, old if version == 1 else new)
    if version == 1:
        assert group.folders == {key: root / key / old for key in ("cpu", "cpuacct", "memory")}
    else:
        assert group.folders["cpu"] == root / new


def test_a_container_goes_by_the_name_that_its_engine_has_for_it_also_when_it_is_made_anew(tree, tmp_path, monkeypatch):
    root, version = tree
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(f"#!/bin/sh\ncase $3-$5 in *Name*-{CONTAINER}) echo /web;; *Id*-web) echo {CONTAINER};; esac\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", str(docker.parent))
    for name in ("web", CONTAINER[:12], BARE if version == 1 else DOCKER):
        assert subject_of(name, root=root).name(root) == "web"


def test_a_name_that_several_groups_or_none_have_is_refused(tree):
    root, _ = tree
    with pytest.raises(NotFound, match=r"nginx: several control groups are called so \(.*nginx.*\); expected the path"):
        subject_of("nginx", root=root)
    with pytest.raises(NotFound, match="no such control group, unit, container or pod below"):
        subject_of("4f0ca1b2", root=root)  # too few digits to be sure


def test_groups_at_work_are_units_and_containers_as_a_whole_and_elsewhere_the_innermost(tree):
    root, version = tree
    top = root / "cpu" if version == 1 else root
    assert groups_at_work(root) == {}
    container = BARE if version == 1 else DOCKER
    for path in (UNIT, f"{UNIT}/worker", f"{container}/init", "user.slice", "user.slice/nginx"):
        (top / path).mkdir(parents=True, exist_ok=True)
        (top / path / "cgroup.procs").write_text("7\n")
    found = groups_at_work(root)
    assert set(found) == {UNIT, container, "user.slice/nginx"}
    assert found[UNIT].folders["cpu"] == top / UNIT


def process(proc, pid, path, children=(), ticks=0):
    """A stored process: its group, its children, its CPU time."""
    folder = proc / str(pid)
    (folder / "task" / str(pid)).mkdir(parents=True)
    (folder / "task" / str(pid) / "children").write_text(" ".join(map(str, children)))
    lines = [f"1:cpu,cpuacct:/{path}", f"2:memory:/{path}", f"0::/{path}"]
    (folder / "cgroup").write_text("\n".join(lines) + "\n")
    fields = ["S", *["0"] * 6, "10", "0", "1", "0", str(ticks), "0", "5", "0", "0", "0", "2", *["0"] * 20]
    (folder / "stat").write_text(f"{pid} (a) b) " + " ".join(fields))
    (folder / "status").write_text("Name:\ta\nVmRSS:\t  30 kB\nRssAnon:\t  20 kB\nRssFile:\t  10 kB\n")
    (folder / "io").write_text("rchar: 9\nread_bytes: 4096\nwrite_bytes: 0\nsyscr: 3\nsyscw: 1\n")


def test_a_process_that_has_a_group_to_itself_and_its_children_is_that_group(tree, tmp_path):
    root, version = tree
    proc = tmp_path / "proc"
    process(proc, 10, UNIT, children=[11])
    process(proc, 11, UNIT)
    procs = root / ("cpuacct" if version == 1 else ".") / UNIT / "cgroup.procs"
    procs.write_text("10\n11\n")
    assert subject_of("10", root=root, proc=proc).name(root) == UNIT
    procs.write_text("10\n11\n77\n")  # somebody else is in it
    shared = subject_of("10", root=root, proc=proc)
    assert (shared.group, shared.pid, shared.name(root)) == (None, 10, "10")


def test_a_process_that_shares_its_group_is_the_sum_of_its_tree(tmp_path):
    process(tmp_path, 10, "", children=[11], ticks=100)
    process(tmp_path, 11, "", ticks=50)
    process(tmp_path, 12, "", ticks=1000)
    [source], missing = opened([ProcessSource(10, tmp_path)])
    found = dict(zip([m.counter.name for m in source.measures], source.values(source.read()), strict=True))
    assert found["own.cpu.user_cores"] == pytest.approx((100 + 50 + 5 + 5) / os.sysconf("SC_CLK_TCK"))
    assert (found["own.cpu.tasks"], found["own.memory.anonymous_bytes"]) == (4, 2 * 20 * 1024)
    assert (found["own.disk.read_bytes"], found["own.io.read_calls"]) == (8192, 6)
    assert [one.counter for one in missing] == ["own.memory.shared_bytes"]  # the kernel of this tree does not tell
    source.close()


def test_what_has_ended_counts_for_passing_programs_below_its_parent():
    """The shell waited for a compiler that had 30 s before and 32 at its end: 2 of its 32 new seconds are in between,
    and cc1 alone has ended below it; one second is its own. The server took 6, as 1 and make nothing, but what it
    waited for took 2 and nothing is left of that. A reading in between that shows gcc with 10 s gives it a quarter."""
    before = {
        1: ProcessTime("sh", 0, 5.0, 100.0),
        2: ProcessTime("cc1", 1, 30.0, 0.0),
        3: ProcessTime("redis-server", 0, 50.0, 0.0),
        5: ProcessTime("as", 1, 9.0, 0.0),
        6: ProcessTime("make", 0, 1.0, 1.0),
    }
    after = {
        1: ProcessTime("sh", 0, 6.0, 132.0),
        3: ProcessTime("redis-server", 0, 56.0, 0.0),
        5: ProcessTime("as", 1, 10.0, 0.0),
        6: ProcessTime("make", 0, 1.0, 3.0),
    }
    found = shares_of_processes([before, after])
    taken = {"redis-server": 6, "started by make": 2, "cc1": 2, "as": 1, "sh": 1}
    assert found == pytest.approx({name: s / 12 for name, s in taken.items()})
    assert next(iter(found)) == "redis-server"
    assert shares_of_processes([before, before]) == {}
    between = {**before, 7: ProcessTime("gcc", 1, 10.0, 0.0)}
    found = shares_of_processes([before, between, after])
    assert (found["cc1"], found["gcc"]) == (pytest.approx(1.5 / 12), pytest.approx(0.5 / 12))


def test_programs_too_short_for_a_tick_share_what_has_ended_but_for_those_that_wait():
    """Three were seen below the shell, none with a tick: gcc waits for as, and md5sum was seen twice as often."""
    shell = ProcessTime("sh", 0, 1.0, 0.0)
    seen = [
        {1: shell},
        {1: shell, 2: ProcessTime("gcc", 1, 0.0, 0.0), 3: ProcessTime("as", 2, 0.0, 0.0)},
        {1: shell, 4: ProcessTime("md5sum", 1, 0.0, 0.0)},
        {1: shell, 5: ProcessTime("md5sum", 1, 0.0, 0.0)},
        {1: shell._replace(of_children_s=3.0)},
    ]
    assert shares_of_processes(seen) == {"md5sum": pytest.approx(2 / 3), "as": pytest.approx(1 / 3)}


@pytest.mark.parametrize("version", [1, 2])
def test_processes_of_a_group_are_those_in_it_and_below_it(tmp_path, version):
    proc, group = tmp_path / "proc", group_of(tmp_path / "group", version)
    folder = group.folders["cpu" if version == 2 else "cpuacct"]
    for pid, name in ((7, "nginx: worker (1)"), (8, "wrk"), (9, "other")):
        (proc / str(pid)).mkdir(parents=True)
        (proc / str(pid) / "stat").write_text(f"{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 300 100 50 25 20 0 1 0\n")
    (folder / "below").mkdir(parents=True)
    (folder / "cgroup.procs").write_text("7\n")
    (folder / "below" / "cgroup.procs").write_text("8\n10\n")
    ticks = os.sysconf("SC_CLK_TCK")
    found = Subject(group=group).process_times(proc)
    assert {pid: one.program for pid, one in found.items()} == {7: "nginx: worker (1)", 8: "wrk"}
    assert found[8] == ProcessTime("wrk", 1, 400 / ticks, 75 / ticks)
    assert set(Subject().process_times(proc)) == {7, 8, 9}
