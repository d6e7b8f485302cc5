"""Fetching reference data: the right file or nothing, against a server on loopback."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from flows.cli import run
from tasks.datasets import DATA_SETS, DataSet, Unreachable, fetch, find_data_set
from tasks.errors import BadInput, NotFound, shown_by
from tasks.settings import load_settings
from tests.loopback import Quiet, listening

CONTENT = gzip.compress(b"; a log\n" * 1000, mtime=0)


class Home(Quiet, BaseHTTPRequestHandler):
    """The public home of a data set: one file, a cut one, an answer of another kind, and a detour."""

    asked: list[str]

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        if self.path == "/moved.swf.gz":
            self.send_response(302)
            self.send_header("Location", "/log.swf.gz")
            self.end_headers()
            return
        if self.path not in ("/log.swf.gz", "/cut.swf.gz"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Encoding", "x-gzip")  # as servers of archives label .gz files
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT if self.path == "/log.swf.gz" else CONTENT[:20])


@pytest.fixture
def home() -> Iterator[ThreadingHTTPServer]:
    """A running server; `asked` holds the paths that were asked for."""
    with listening(Home) as server:
        server.asked = []  # type: ignore[attr-defined]
        yield server


def data_set(home: ThreadingHTTPServer, name: str = "log.swf.gz") -> DataSet:
    return DataSet(
        name="log", path="swf/log.swf.gz", title="a log", rows="1,000", licence="none", home="loopback",
        words="jobs", url=f"http://127.0.0.1:{home.server_address[1]}/{name}",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["log.swf.gz", "moved.swf.gz"])
def test_a_fetched_file_is_the_public_one_which_replaces_a_damaged_one_and_is_not_fetched_again(
    home: ThreadingHTTPServer, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "swf" / "log.swf.gz"
    path.parent.mkdir()
    path.write_bytes(b"half")
    assert fetch(data_set(home, name), tmp_path) == path
    assert path.read_bytes() == CONTENT  # though the server says that it is an encoding to be undone
    asked = list(home.asked)  # type: ignore[attr-defined]
    fetch(data_set(home, name), tmp_path)
    assert home.asked == asked  # type: ignore[attr-defined]


def test_another_file_than_the_pinned_one_leaves_nothing_behind(home: ThreadingHTTPServer, tmp_path: Path) -> None:
    changed = replace(data_set(home), sha256="0" * 64)
    with pytest.raises(
        BadInput, match=r"not the one that whorl was measured on; expected sha256 000000000000…; nothing"
    ):
        fetch(changed, tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gone.swf.gz", r"gone\.swf\.gz: the server answers 404; expected the file"),
        ("cut.swf.gz", r"cut\.swf\.gz: cannot be fetched \(.*\); check the network"),
    ],
)
def test_a_home_that_does_not_give_the_file_leaves_nothing_behind(
    home: ThreadingHTTPServer, tmp_path: Path, name: str, told: str
) -> None:
    with pytest.raises(Unreachable, match=told):
        fetch(data_set(home, name), tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_home_that_is_away_is_one_line(home: ThreadingHTTPServer, tmp_path: Path) -> None:
    away = replace(data_set(home), url="http://127.0.0.1:9/log.swf.gz")
    with pytest.raises(Unreachable, match=r"cannot be fetched \(.*refused.*\); check the network or a proxy$"):
        fetch(away, tmp_path)


def test_progress_ends_at_the_size_of_the_file(home: ThreadingHTTPServer, tmp_path: Path) -> None:
    seen: list[tuple[float, float | None]] = []
    with shown_by(lambda what, done, total: seen.append((done, total))):
        fetch(data_set(home), tmp_path)
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_data_set_without_a_pinned_file_says_where_it_is_and_why(tmp_path: Path) -> None:
    with pytest.raises(
        NotFound, match=r"the folder holds a selection .* take it from https://github.com/CRC-FONDA/Lotaru"
    ):
        fetch(find_data_set("lotaru"), tmp_path)


def test_an_unknown_name_lists_those_that_there_are() -> None:
    with pytest.raises(NotFound, match="data set 'nasa': there is none of that name; there are swf, slurm, cosmos"):
        find_data_set("nasa")


def test_every_data_set_says_everything_and_either_can_be_fetched_or_says_why_not() -> None:
    for one in DATA_SETS:
        assert all([one.title, one.rows, one.licence, one.home.startswith("https://"), one.words])
        assert bool(one.sha256) == bool(one.url) != bool(one.unpinned), one.name
    assert len({one.name for one in DATA_SETS}) == len(DATA_SETS)


def test_the_pinned_hash_is_that_of_the_file_that_was_measured(datasets: Path) -> None:
    swf = find_data_set("swf")
    assert hashlib.sha256((datasets / swf.path).read_bytes()).hexdigest() == swf.sha256


@pytest.fixture
def datasets() -> Path:
    """The folder of WHORL_DATASETS, or a skip with a reason."""
    folder = load_settings().settings.whorl.datasets
    if not folder:
        pytest.skip("WHORL_DATASETS is not set")
    return Path(folder)


def test_the_command_lists_what_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tcpd").mkdir()
    monkeypatch.setenv("WHORL_DATASETS", str(tmp_path))
    assert run(["datasets", "list"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = {words[0]: words[1] for words in lines if words[1:2] in (["yes"], ["no"])}  # a narrow table wraps
    assert (rows["tcpd"], rows["swf"], len(rows)) == ("yes", "no", len(DATA_SETS))


def test_the_command_fetches_into_the_home_where_no_folder_is_named(
    home: ThreadingHTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WHORL_DATASETS", raising=False)
    monkeypatch.setattr("tasks.datasets.find_data_set", lambda name: data_set(home))
    assert run(["datasets", "fetch", "log", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/datasets/swf/log.swf.gz\n"
    assert run(["datasets", "fetch", "log", "--home", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"name": "log", "path": f"{tmp_path}/datasets/swf/log.swf.gz"}
