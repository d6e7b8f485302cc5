"""Landing many small files reads each manifest a few times, not once for every file that follows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from tasks.intake.files import Chunk, no_refusals
from tasks.warehouse import landing

SCHEMAS = {"runs": pa.schema([("run_id", pa.string()), ("place", pa.int64())])}


def land(folder: Path, number: int, version: str = "1.1") -> landing.Batch:
    origin = landing.Origin(
        word="jobs", source="s", reader="own", reader_version=version, options={}, path="x", sha256=f"{number:064x}"
    )
    rows = pd.DataFrame({"run_id": [str(number)], "place": [1]})
    return landing.land(str(folder), origin, SCHEMAS, [Chunk(rows, no_refusals(), {})])


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
