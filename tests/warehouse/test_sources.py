"""Sources: a data version changes if and only if the files of its source do."""

import subprocess
from importlib import metadata

import pytest

from tasks.warehouse import sources
from tasks.warehouse.connection import reading, writing
from tasks.warehouse.copies import rebuild
from tasks.warehouse.ingest import ingest
from tasks.warehouse.sources import code_version, data_version

ROWS = [{"run_id": "1", "runtime_s": 10.0}]


@pytest.fixture(autouse=True)
def another_process():
    """One that has not asked for the version of the code yet."""
    code_version.cache_clear()
    yield
    code_version.cache_clear()


def version_of(warehouse, source="log", word="jobs"):
    with reading(warehouse) as connection:
        return data_version(connection, word, source)


def test_a_new_file_and_a_new_reading_change_the_version_and_nothing_else_does(warehouse, put_in, land):
    seen = [version_of(warehouse)]
    assert seen == [version_of(warehouse, "two", "nodes")] == [""]  # of nothing
    first = put_in(warehouse, ROWS, "a.csv")
    seen.append(version_of(warehouse))
    put_in(warehouse, ROWS, "b.csv")
    seen.append(version_of(warehouse))
    put_in(warehouse, ROWS, "b.csv", version="2")
    seen.append(version_of(warehouse))
    assert len(set(seen)) == 4

    put_in(warehouse, ROWS, "a.csv", source="other")
    ingest(warehouse, "jobs", first.batch_id)
    with writing(warehouse) as connection:
        connection.execute("INSERT INTO ops.machines VALUES ('log', 'node', 'big')")
    rebuild(warehouse)
    assert version_of(warehouse) == seen[-1]


def test_the_order_of_ingest_does_not_change_the_version(bare, tmp_path, land):
    found = []
    for order in (slice(None), slice(None, None, -1)):
        warehouse = bare.model_copy(update={"home": tmp_path / f"home{order.step}"})
        batches = [land(warehouse, ROWS, file, at=at) for at, file in enumerate("ab")]
        for batch in batches[order]:
            ingest(warehouse, "jobs", batch.batch_id)
        found.append(version_of(warehouse))
    assert found[0] == found[1]


def test_the_code_version_names_the_commit_where_there_is_one(monkeypatch):
    release = metadata.version("whorl")
    done = subprocess.CompletedProcess([], 0, stdout="1a2b3c4d5e6f\n")
    monkeypatch.setattr(sources.subprocess, "run", lambda *args, **kwargs: done)
    assert code_version() == f"{release}+1a2b3c4d5e6f"


def test_the_code_version_is_the_release_where_there_is_no_checkout(monkeypatch):
    def no_git(*_args, **_kwargs):
        raise FileNotFoundError("git")

    monkeypatch.setattr(sources.subprocess, "run", no_git)
    assert code_version() == metadata.version("whorl")


def test_a_checkout_that_is_not_installed_has_a_version_too(monkeypatch):
    def not_installed(_name):
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(sources.metadata, "version", not_installed)
    assert code_version().split("+")[0] == "0"
