"""A control group of version 1 and of version 2: the same counters under the same names."""

import pytest

from tasks.machine_groups import Group
from tasks.workloads.record.counters_group import group_sources
from tasks.workloads.record.measures import opened
from tasks.workloads.record.rates import Readings, values_of
from tasks.workloads.record.subjects import subject_of

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
        return Group(2, dict.fromkeys(("cpu", "memory", "blkio"), root))
    return Group(1, {name: root / name for name in ("cpu", "cpuacct", "memory", "blkio", "pids", "unified")})


def second_of(root, version, files):
    """Values by name over a second in which each running number grew by half a million; and what is missing."""
    fill(root, files, 1_000_000)
    sources, missing = opened(group_sources(group_of(root, version)))
    before = [source.read() for source in sources]
    fill(root, files, 1_500_000)
    readings = Readings([[0.0] * len(sources), [1.0] * len(sources)], [before, [s.read() for s in sources]])
    names = [measure.counter.name for source in sources for measure in source.measures]
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


def test_all_counters_of_a_group_are_of_the_workload(tmp_path):
    fill(tmp_path, V2, 1)
    counters = [m.counter for source in group_sources(group_of(tmp_path, 2)) for m in source.measures]
    assert {counter.scope for counter in counters} == {"workload"}
    assert all(counter.name.startswith("own.") for counter in counters)


def test_a_group_is_found_by_its_path_in_either_layout(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for name in ("cpu", "cpuacct", "memory"):
        (one / name / "web" / "nginx").mkdir(parents=True)
        (one / name / "cgroup.procs").touch()
    (two / "web" / "nginx").mkdir(parents=True)
    (two / "cgroup.controllers").write_text("cpu io memory")
    assert set(subject_of("/web/nginx", root=one).group.folders) == {"cpu", "cpuacct", "memory"}
    assert subject_of("web/nginx", root=two).group.folders["cpu"] == two / "web" / "nginx"
