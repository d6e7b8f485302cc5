"""What a path means: a file of this machine wins over the chain of file systems that fsspec would read into it."""

import errno
import os
import socket
import tarfile
from datetime import datetime
from pathlib import Path

import pytest

from flows.engine.steps import load_each
from tasks.errors import BadInput, WhorlError
from tasks.intake.files import read_head
from tasks.intake.labels import manifest
from tasks.jobs.intake import Intake, find_logs, land_log
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers import READERS
from tasks.params import ReadLimits
from tasks.storage import narrow, private, remove_inside, storage_of, whole
from tasks.warehouse.connection import fetch
from tasks.warehouse.copies import backup, rebuild, restore
from tasks.warehouse.ingest import ingest
from tasks.warehouse.landing import is_local, sha256_of
from tasks.warehouse.place import Warehouse
from tasks.warehouse.pruning import PruneParams, prune

ODD = ["a::b.csv", "simplecache::memory.csv", "zip::x"]


@pytest.mark.parametrize("name", ODD)
def test_a_log_with_two_colons_in_its_name_is_found_and_read(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text("run_id\n1\n")
    assert find_logs([str(file)]) == [str(file)]
    assert read_head(str(file), ReadLimits()) == b"run_id\n1\n"
    assert len(sha256_of(str(file))) == 64


def test_a_folder_with_two_colons_in_its_name_is_looked_into(tmp_path: Path) -> None:
    folder = tmp_path / "logs::2026"
    folder.mkdir()
    (folder / "a.csv").write_text("run_id\n1\n")
    assert find_logs([str(folder)]) == [str(folder / "a.csv")]


def test_a_rolled_log_in_a_folder_with_two_colons_is_found_and_read(tmp_path: Path) -> None:
    rolled = tmp_path / "logs::2026" / "eventlog_v2_local-1"
    rolled.mkdir(parents=True)
    start = '{"Event":"SparkListenerApplicationStart","App Name":"etl","App ID":"local-1","Timestamp":1000000}'
    (rolled / "events_1_local-1").write_text(start)
    assert find_logs([str(rolled.parent)]) == [str(rolled)]
    rows = [chunk.rows for chunk in READERS["spark"].read(str(rolled), ReadParams())]
    assert rows[0]["run_id"].tolist() == ["local-1"]


def test_a_home_with_two_colons_in_its_name_works_from_landing_to_restore(tmp_path: Path) -> None:

    log = tmp_path / "a::b.csv"
    log.write_text("run_id,name,started_at,runtime_s\n1,load,2026-01-01,5\n")
    home = Warehouse(home=tmp_path / "home::1", memory_mb=128, threads=1)
    batch = land_log(home, str(log), Intake("log", "", ReadParams(), GroupParams()))
    ingest(home, "jobs", batch.batch_id)
    assert prune(home, PruneParams(), datetime(2026, 1, 2)).landing_files == []
    made = backup(home, tmp_path / "backups::1")
    rebuild(home)
    restore(home, made)
    assert fetch(home, "SELECT run_id FROM jobs.runs")["run_id"].tolist() == ["1"]


def test_a_local_file_that_looks_like_a_chain_of_addresses_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    odd = Path("simplecache::memory:") / "x"
    odd.parent.mkdir()
    odd.write_text("here")
    fs, name = storage_of("simplecache::memory://x")
    assert (is_local(fs), Path(name).read_text()) == (True, "here")


@pytest.fixture
def irregular(tmp_path: Path) -> Path:
    """A folder with a FIFO, a socket, a link to a device, an archive that holds a FIFO, and one good log."""
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "linked.csv").symlink_to("pipe.csv")
    (tmp_path / "endless.csv").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket.csv"))
    with tarfile.open(tmp_path / "logs.tar", "w") as archive:
        member = tarfile.TarInfo("pipe.csv")
        member.type = tarfile.FIFOTYPE
        archive.addfile(member)
    (tmp_path / "good.csv").write_text("run_id,name,started_at,runtime_s\n1,load,2026-01-01,5\n")
    return tmp_path


NO_FILES = {
    "pipe.csv": "it is a FIFO", "linked.csv": "it is a FIFO", "endless.csv": "it is a device",
    "socket.csv": "it is a socket", "file://{}/pipe.csv": "it is a FIFO", "zip://a.csv::{}/pipe.csv": "it is a FIFO",
    "tar://pipe.csv::{}/logs.tar": "it is no regular file",
}  # fmt: skip


@pytest.mark.parametrize(("name", "said"), NO_FILES.items())
def test_what_is_no_regular_file_is_refused_before_it_is_waited_for(irregular: Path, name: str, said: str) -> None:
    path = name.format(irregular) if "{}" in name else str(irregular / name)
    for read in (lambda: read_head(path, ReadLimits()), lambda: sha256_of(path), lambda: manifest(path, "path")):
        with pytest.raises(BadInput, match=rf"cannot be opened \({said}\); expected a regular file; check the path"):
            read()


def test_a_fifo_in_a_folder_is_one_refused_file_and_the_good_one_is_read(irregular: Path) -> None:
    warehouse = Warehouse(home=irregular / "home", memory_mb=128, threads=1)
    intake = Intake("log", "", ReadParams(), GroupParams())
    loaded, refused = load_each(find_logs([str(irregular)]), lambda path: land_log(warehouse, path, intake).batch_id)
    assert (len(loaded), len(refused)) == (1, 4)


@pytest.mark.parametrize(
    "where", ["foo://bar", "zip://a::{}/missing.zip", "zip://a::{}/good.csv", "tar://a::{}/good.csv"]
)
def test_an_address_that_nobody_knows_and_an_archive_that_is_none_are_one_line(irregular: Path, where: str) -> None:
    path = where.format(irregular)
    for read in (lambda: read_head(path, ReadLimits()), lambda: find_logs([path]), lambda: sha256_of(path)):
        with pytest.raises(BadInput, match="cannot be opened") as refusal:
            read()
        assert str(refusal.value).startswith(path) and "\n" not in str(refusal.value)


def test_an_address_is_left_to_fsspec() -> None:
    fs, name = storage_of("memory://bucket/x")
    assert (fs.protocol, name) == ("memory", "/bucket/x")
    assert storage_of("simplecache::memory://bucket/x")[0].protocol == "simplecache"


def test_an_address_of_the_local_disk_is_local(tmp_path: Path) -> None:
    fs, name = storage_of(f"file://{tmp_path}/x")
    assert (is_local(fs), name) == (True, f"{tmp_path}/x")


def test_what_is_made_in_private_is_for_its_owner_alone_and_the_mask_comes_back(tmp_path):
    """Also where two threads are inside at once, and the first one leaves first."""
    first, second = private(), private()
    before = os.umask(0o022)
    try:
        for one in (first, second):
            one.__enter__()
        first.__exit__(None, None, None)
        (tmp_path / "file").touch()
        second.__exit__(None, None, None)
        (tmp_path / "later").touch()
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "later").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(("mode", "narrowed"), [(0o644, 0o600), (0o666, 0o600), (0o640, 0o640), (0o600, 0o600)])
def test_rights_of_all_others_go_and_those_given_to_a_group_alone_stay(tmp_path, mode, narrowed):
    file = tmp_path / "file"
    file.touch()
    file.chmod(mode)
    narrow(file, tmp_path / "not there")
    assert file.stat().st_mode & 0o777 == narrowed


def test_a_folder_that_may_not_be_listed_is_told_and_not_taken_for_an_empty_one(tmp_path, caplog, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.csv").touch()
    files, _ = storage_of(str(tmp_path))
    listed = files.ls

    def ls(path, detail=False, **more):
        if path.endswith("closed"):  # as for who may not list it; root may list all
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return listed(path, detail, **more)

    monkeypatch.setattr(files, "ls", ls)
    assert files.find(str(tmp_path)) == [str(tmp_path / "a.csv")]
    assert f"{tmp_path}/closed cannot be listed (Permission denied); its files are left out" in caplog.text
    with pytest.raises(BadInput, match=r"closed: cannot be listed \(Permission denied\); expected a readable folder"):
        files.find(str(tmp_path / "closed"))


def test_a_file_appears_whole_or_not_at_all_and_no_draft_stays(tmp_path):
    with pytest.raises(OSError, match="full"), whole(tmp_path / "inner" / "file") as draft:
        draft.write_text("ha")
        raise OSError("full")
    assert list((tmp_path / "inner").iterdir()) == []
    with whole(tmp_path / "inner" / "file") as draft:
        draft.write_text("half, and the rest")
    assert [(one.name, one.read_text()) for one in (tmp_path / "inner").iterdir()] == [("file", "half, and the rest")]


@pytest.mark.parametrize("path", ["../precious", "..", "inner/../../precious", "link/precious"])
def test_what_leads_out_of_a_folder_is_not_removed(tmp_path, path):
    (tmp_path / "home" / "inner").mkdir(parents=True)
    (tmp_path / "precious").mkdir()
    (tmp_path / "home" / "link").symlink_to(tmp_path)
    with pytest.raises(WhorlError, match=r"leads out of .*home; expected a place in it; nothing was removed"):
        remove_inside(tmp_path / "home", tmp_path / "home" / path)
    assert (tmp_path / "precious").exists()
