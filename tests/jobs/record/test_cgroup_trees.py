"""Control groups on folders that stand in for the file system of the kernel: version 2, and what may go wrong."""

from pathlib import Path

import pytest

from tasks.machine import PREFIX, UNLIMITED, campaign_group

V1 = ("cpu", "cpuacct", "memory", "blkio")
FILES = {"cgroup.procs": "", "cpu.stat": "usage_usec 1500000\nuser_usec 1\n", "cpuacct.usage": "0"}


class Tree:
    """Folders that get files when they are made and go with them, as in the kernel's file system."""

    def __init__(self, root, monkeypatch):
        self.root, self.written, self.refused = root, [], set()
        self._mkdir, self._write, self._rmdir = Path.mkdir, Path.write_text, Path.rmdir
        monkeypatch.setattr(Path, "mkdir", lambda path, **how: self.mkdir(path, **how))
        monkeypatch.setattr(Path, "write_text", lambda path, text, **how: self.write(path, text, **how))
        monkeypatch.setattr(Path, "rmdir", lambda path: self.rmdir(path))

    def _ours(self, path):
        return path.is_relative_to(self.root)

    def mkdir(self, path, **how):
        if self._ours(path) and str(path.relative_to(self.root)) in self.refused:
            raise PermissionError(13, "Permission denied", str(path))
        self._mkdir(path, **how)
        if self._ours(path):
            self.fill(path)

    def fill(self, path):
        for name, text in FILES.items():
            self._write(path / name, text)

    def write(self, path, text, **how):
        if self._ours(path):
            if path.name in self.refused:
                raise PermissionError(13, "Permission denied", str(path))
            self.written.append((str(path.relative_to(self.root)), text))
        return self._write(path, text, **how)

    def rmdir(self, path):
        if self._ours(path):
            for file in [inner for inner in path.iterdir() if inner.is_file()]:
                file.unlink()
        self._rmdir(path)

    def folders(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*/"))


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setattr("tasks.machine.disk_of", lambda folder: "8:0")
    return Tree(tmp_path, monkeypatch)


@pytest.fixture
def version_2(tree):
    tree.fill(tree.root)
    (tree.root / "cgroup.controllers").touch()
    tree._write(tree.root / "cgroup.controllers", "cpuset cpu io memory pids\n")
    return tree


@pytest.fixture
def version_1(tree):
    for name in V1:
        tree.mkdir(tree.root / name)
    return tree


def test_version_2_shares_its_controllers_level_by_level_and_weighs_the_campaign(version_2, monkeypatch):
    monkeypatch.setattr("os.getpid", lambda: 42)
    with campaign_group(version_2.root, weight=700) as group:
        assert group.version == 2
        assert version_2.written == [
            *(("cgroup.subtree_control", f"+{controller}") for controller in ("cpu", "memory", "io")),
            *((f"{PREFIX}42/cgroup.subtree_control", f"+{controller}") for controller in ("cpu", "memory", "io")),
            (f"{PREFIX}42/cpu.weight", "700"),
        ]
    assert version_2.folders() == []


@pytest.fixture
def group(version_2):
    with campaign_group(version_2.root) as made:
        version_2.written.clear()
        yield made


def _texts(tree):
    return [(path.partition("/")[2], text) for path, text in tree.written]


def test_version_2_says_each_limit_in_one_file(group, version_2):
    slot = group.child("gen5")
    slot.set_quota(3_000, 12_500)
    slot.set_quota(UNLIMITED, 10_000)
    assert slot.limit_memory(64)
    slot.limit_disk(version_2.root, 25e6)
    slot.add(77)
    assert _texts(version_2) == [
        ("gen5/cpu.max", "3000 12500"), ("gen5/cpu.max", "max 10000"), ("gen5/memory.max", "67108864"),
        ("gen5/io.max", "8:0 rbps=25000000 wbps=25000000"), ("gen5/cgroup.procs", "77"),
    ]  # fmt: skip


def test_version_2_counts_microseconds(group):
    assert group.usage_s() == pytest.approx(1.5)


def test_a_limit_that_the_system_refuses_is_told_and_not_raised(group, version_2):
    version_2.refused = {"memory.max"}
    assert not group.limit_memory(64)


def test_version_1_writes_a_quota_after_its_period_and_lifts_it_before(version_1):
    with campaign_group(version_1.root) as group:
        version_1.written.clear()
        group.set_quota(3_000, 16_667)
        group.set_quota(UNLIMITED, 10_000)
        assert [(path.rpartition("/")[2], text) for path, text in version_1.written] == [
            ("cpu.cfs_period_us", "16667"),
            ("cpu.cfs_quota_us", "3000"),
            ("cpu.cfs_quota_us", "-1"),
            ("cpu.cfs_period_us", "10000"),
        ]
        group.limit_disk(version_1.root, 1e6, ["read"])
        assert version_1.written[-1][0].startswith("blkio/")
        assert version_1.written[-1][1] == "8:0 1000000"


def test_version_1_does_without_hierarchies_of_memory_and_disk(tree):
    for name in ("cpu", "cpuacct"):
        tree.mkdir(tree.root / name)
    with campaign_group(tree.root) as group:
        assert set(group.folders) == {"cpu", "cpuacct"}
        assert not group.limit_memory(64)
        with pytest.raises(KeyError):
            group.limit_disk(tree.root, 1e6)


@pytest.mark.parametrize("present", [[], ["cpu"], ["memory", "blkio"]])
def test_without_a_controller_of_the_cpu_there_is_no_group(tree, present):
    for name in present:
        tree.mkdir(tree.root / name)
    with campaign_group(tree.root) as group:
        assert group is None


def test_version_2_without_the_cpu_controller_gives_no_group(version_2):
    version_2._write(version_2.root / "cgroup.controllers", "memory pids\n")
    with campaign_group(version_2.root) as group:
        assert group is None
    assert version_2.folders() == []


@pytest.mark.parametrize("refused", ["{own}", "cpu.weight", "cpu/{own}", "memory/{own}"])
def test_a_tree_that_may_not_be_written_gives_no_group_and_keeps_none(version_1, monkeypatch, refused):
    monkeypatch.setattr("os.getpid", lambda: 42)
    if "/" not in refused:  # version 2
        version_1._write(version_1.root / "cgroup.controllers", "cpu io memory\n")
    before = version_1.folders()
    version_1.refused = {refused.format(own=f"{PREFIX}42")}
    with campaign_group(version_1.root) as group:
        assert group is None
    assert version_1.folders() == before


def test_an_error_inside_goes_on_and_leaves_nothing(version_2):
    with pytest.raises(ZeroDivisionError), campaign_group(version_2.root) as group:
        group.child("gen5").child("gen5-0")
        raise ZeroDivisionError
    assert version_2.folders() == []
