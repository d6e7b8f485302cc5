"""Landing files: named by content, never changed, in whole or not at all, on any storage."""

import json
import os
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput, WhorlError
from tasks.intake.files import Chunk, no_refusals
from tasks.jobs.columns import RUNS_SCHEMA
from tasks.warehouse import landing
from tasks.warehouse.copies import rebuild
from tasks.warehouse.ingest import ingest

SCHEMAS = {"runs": RUNS_SCHEMA}
ROWS = [{"run_id": "1", "runtime_s": 10.0}, {"run_id": "2", "runtime_s": 20.0}]


def test_all_chunks_of_a_file_become_one_landing_file_named_by_its_hash_and_the_manifest_comes_last(
    warehouse, chunk, origin, landed, monkeypatch
):
    put, seen = [], []
    move = landing._move
    monkeypatch.setattr(landing, "_move", lambda draft, target: (put.append(target.suffix), move(draft, target)))
    folder = Path(warehouse.landing_folder) / "jobs"

    def chunks():
        for number in range(7):
            yield chunk([{"run_id": str(number), "place": number + 1}])
        seen.extend(path.name for path in folder.glob(".reading-*/*"))  # not in /tmp, which may be memory

    batch = landing.land(warehouse.landing_folder, origin(), SCHEMAS, chunks())
    assert (put, seen) == ([".parquet", ".parquet", ".json"], ["runs.parquet"])
    assert set(landed(warehouse)) == {f"{batch.batch_id}.json", *(one.name for one in batch.tables.values())}
    for one in batch.tables.values():
        digest = landed(warehouse)[one.name]
        assert (one.sha256, one.name.split("-")[1]) == (digest, f"{digest[:16]}.parquet")
    rows = pq.read_table(folder / batch.tables["runs"].name)
    assert (batch.tables["runs"].n_rows, rows.column("run_id").to_pylist()) == (7, [str(i) for i in range(7)])


def test_a_file_that_was_landed_is_not_read_again(warehouse, land, origin, landed):
    first, before = land(warehouse, ROWS), landed(warehouse)

    def explode():
        raise AssertionError("read again")
        yield

    moved = origin("a.csv").model_copy(update={"path": "/elsewhere/b.csv"})  # the path is no part of a batch
    for one in (origin("a.csv"), moved):
        assert landing.land(warehouse.landing_folder, one, SCHEMAS, explode()) == first
    assert landed(warehouse) == before


@pytest.mark.parametrize(
    "how", [{"version": "2"}, {"options": {"time_zone": "UTC"}}, {"source": "other"}, {"reader": "swf"}]
)
def test_another_reading_is_another_batch(warehouse, land, how):
    assert land(warehouse, ROWS).batch_id != land(warehouse, ROWS, **how).batch_id


def test_a_reader_that_fails_in_the_middle_leaves_nothing(warehouse, chunk, origin, landed):
    def breaks():
        yield chunk(ROWS)
        raise BadInput("a.csv", "broken", "whole")

    with pytest.raises(BadInput, match="broken"):
        landing.land(warehouse.landing_folder, origin(), SCHEMAS, breaks())
    assert landed(warehouse) == {}


HURT = {
    "missing": (Path.unlink, "is missing; expected the file that the manifest names; read /logs/a.csv again"),
    "changed": (
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"),
        "has changed; expected sha256 {0}; remove it and read /logs/a.csv again",
    ),
}


@pytest.mark.parametrize(("hurt", "told"), HURT.values(), ids=HURT)
def test_a_hurt_landing_file_is_one_clear_line_and_mends_itself_when_read_again(warehouse, land, hurt, told):
    batch = land(warehouse, ROWS)
    path = Path(warehouse.landing_folder) / "jobs" / batch.tables["runs"].name
    hurt(path)
    with pytest.raises(BadInput) as error:
        ingest(warehouse, "jobs", batch.batch_id)
    assert str(error.value) == f"{path}: the landing file {told.format(batch.tables['runs'].sha256[:12])}"
    assert ingest(warehouse, "jobs", land(warehouse, ROWS).batch_id)


@pytest.mark.parametrize(
    ("content", "problem"), [("{", "JSON"), ("{}", "batch_id: Field required"), ("\udcff", "JSON")]
)
def test_a_broken_manifest_is_one_clear_line(warehouse, land, content, problem):
    batch = land(warehouse, ROWS)
    path = Path(warehouse.landing_folder) / "jobs" / f"{batch.batch_id}.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    for ask in (
        lambda: landing.find_batch(warehouse.landing_folder, "jobs", batch.batch_id),
        lambda: landing.batches(warehouse.landing_folder, "jobs"),
        lambda: rebuild(warehouse),
    ):
        with pytest.raises(BadInput) as error:
            ask()
        assert str(error.value).startswith(f"{path}: not a manifest ({problem}")
        assert str(error.value).endswith("; expected what whorl wrote there; remove it and read its file again")
        assert "\n" not in str(error.value)


def test_a_batch_that_is_not_there_is_one_clear_line(warehouse):
    with pytest.raises(BadInput, match=r"landing/jobs: no batch abc; expected a landed batch; read the file again"):
        landing.find_batch(warehouse.landing_folder, "jobs", "abc")


def test_a_log_that_cannot_be_opened_is_one_clear_line(tmp_path):
    with pytest.raises(BadInput, match=r"cannot be opened .*No such file.*; expected a readable file; check the path"):
        landing.sha256_of(str(tmp_path / "nowhere"))


def test_a_later_file_comes_after_an_earlier_one_though_the_clock_went_back(warehouse, put_in, runs_in):
    put_in(warehouse, [{"run_id": "1", "runtime_s": 1.0}], "old.csv", at=60)
    put_in(warehouse, [{"run_id": "1", "runtime_s": 2.0}], "new.csv", at=0)
    assert runs_in(warehouse) == [("log", "1", "completed", 2.0)]


def test_a_newer_reading_counts_though_the_clock_went_back(warehouse, put_in, runs_in):
    put_in(warehouse, [{"run_id": "1", "runtime_s": 1.0}], at=60)
    put_in(warehouse, [{"run_id": "1", "runtime_s": 2.0}], version="2", at=0)
    assert runs_in(warehouse) == [("log", "1", "completed", 2.0)]
    rebuild(warehouse)
    assert runs_in(warehouse) == [("log", "1", "completed", 2.0)]


def test_the_time_of_landing_is_utc_without_a_zone(warehouse, origin):
    batch = landing.land(warehouse.landing_folder, origin(), SCHEMAS, [])
    assert batch.landed_at.tzinfo is None
    assert abs(batch.landed_at - datetime.now(UTC).replace(tzinfo=None)) < timedelta(minutes=5)


@pytest.fixture
def in_memory(warehouse):
    """The same warehouse with its landing folder in fsspec's memory."""
    name = uuid.uuid4().hex
    yield warehouse.model_copy(update={"landing": f"memory://{name}/landing"})
    fsspec.filesystem("memory").rm(f"/{name}", recursive=True)


def test_a_landing_folder_may_be_on_other_storage(in_memory, put_in, land, runs_in):
    batch = put_in(in_memory, ROWS, refused=[{"place": 3, "reason": "odd", "raw": "?"}])
    expected = [("log", "1", "completed", 10.0), ("log", "2", "completed", 20.0)]
    assert runs_in(in_memory) == expected
    assert put_in(in_memory, []) == batch
    put_in(in_memory, [{"run_id": "2", "runtime_s": 5.0}], "b.csv")
    put_in(in_memory, [{"run_id": "1", "runtime_s": 10.0}], version="2")
    expected = [("log", "1", "completed", 10.0), ("log", "2", "completed", 5.0)]
    assert runs_in(in_memory) == expected
    rebuild(in_memory)
    assert runs_in(in_memory) == expected
    assert not (in_memory.home / "landing").exists()
    last = land(in_memory, [{"run_id": "9"}], "c.csv")
    fs, root = fsspec.url_to_fs(f"{in_memory.landing}/jobs")
    fs.pipe_file(f"{root}/{last.tables['runs'].name}", b"other")
    with pytest.raises(BadInput, match="the landing file has changed"):
        ingest(in_memory, "jobs", last.batch_id)


def test_two_threads_that_land_one_file_at_once_land_it_once(warehouse, chunk, origin, landed, manifests):
    met = threading.Barrier(2)
    found = []

    def chunks():
        met.wait(20)
        yield chunk(ROWS)
        met.wait(20)

    def work():
        found.append(landing.land(warehouse.landing_folder, origin(), SCHEMAS, chunks()))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0].batch_id == found[1].batch_id
    assert list(manifests(warehouse)) == [found[0].batch_id]
    assert set(landed(warehouse)) == {f"{found[0].batch_id}.json", *(one.name for one in found[0].tables.values())}
    assert ingest(warehouse, "jobs", found[0].batch_id)


def test_a_full_disk_while_landing_is_one_clear_line(warehouse, land, landed, monkeypatch):
    def refuse(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(WhorlError, match=r"landing/jobs: the disk is full \(No space left on device\); .*half done"):
        land(warehouse, ROWS)
    assert [name for name in landed(warehouse) if name.endswith(".json")] == []


def test_a_manifest_that_is_pruned_while_they_are_listed_does_not_count(warehouse, land, monkeypatch):
    first = land(warehouse, ROWS)
    second = land(warehouse, ROWS, "b.csv")
    (Path(warehouse.landing_folder) / "jobs" / f"{first.batch_id}.json").unlink()
    names = [f"{warehouse.landing_folder}/jobs/{one.batch_id}.json" for one in (first, second)]
    fs, _ = fsspec.url_to_fs(warehouse.landing_folder)
    monkeypatch.setattr(type(fs), "ls", lambda *_args, **_kwargs: names)
    assert landing.batches(warehouse.landing_folder, "jobs") == [second]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batch_id": "../../x"}, "not a manifest .batch_id: String should match pattern"),
        (
            {"batch_id": "0" * 16},
            "is the manifest of batch 0000000000000000 of 'jobs'; expected that of the batch whose",
        ),
        (
            {"tables": {"runs": {"name": "../x.parquet", "sha256": "0" * 64, "n_rows": 1}}},
            "tables.runs.name: String should",
        ),
    ],
)
def test_a_manifest_that_names_another_place_is_refused(warehouse, land, change, told):
    batch = land(warehouse, [{"run_id": "1"}])
    file = Path(warehouse.landing_folder) / "jobs" / f"{batch.batch_id}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(BadInput, match=told):
        landing.batches(warehouse.landing_folder, "jobs")


def test_landed_files_are_for_their_owner_alone(warehouse, land):
    folder = Path(warehouse.landing_folder) / "jobs"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    land(warehouse, [{"run_id": "1"}])
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


PLACES = {"runs": pa.schema([("run_id", pa.string()), ("place", pa.int64())])}


def land(folder: Path, number: int, version: str = "1.1") -> landing.Batch:
    origin = landing.Origin(
        word="jobs", source="s", reader="own", reader_version=version, options={}, path="x", sha256=f"{number:064x}"
    )
    rows = pd.DataFrame({"run_id": [str(number)], "place": [1]})
    return landing.land(str(folder), origin, PLACES, [Chunk(rows, no_refusals(), {})])


@pytest.fixture
def n_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    names: list[str] = []
    read = landing._manifest

    def counted(fs: Any, name: str) -> landing.Batch | None:
        names.append(name)
        return read(fs, name)

    monkeypatch.setattr(landing, "_manifest", counted)
    landing._manifest_of.cache_clear()
    yield names
    landing._manifest_of.cache_clear()


def test_each_manifest_is_read_once_while_others_are_landed(tmp_path: Path, n_read: list[str]) -> None:
    for number in range(20):
        land(tmp_path, number)
    assert len(n_read) == 19 == len(set(n_read))
    assert len(landing.batches(str(tmp_path), "jobs")) == 20


def test_a_manifest_that_was_replaced_or_removed_is_seen_at_once(tmp_path: Path, n_read: list[str]) -> None:
    first = land(tmp_path, 1)
    second = land(tmp_path, 1, version="2.1")
    again = land(tmp_path, 1)  # put last: the same manifest with a later time
    assert first.batch_id == again.batch_id and again.landed_at > second.landed_at
    found = {batch.batch_id: batch for batch in landing.batches(str(tmp_path), "jobs")}
    assert found == {again.batch_id: again, second.batch_id: second}
    (tmp_path / "jobs" / f"{second.batch_id}.json").unlink()
    assert landing.batches(str(tmp_path), "jobs") == [again]
    assert n_read
