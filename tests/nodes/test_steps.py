"""From the folder of a recording to the landing folder that nodes share."""

import shutil

import pytest

from tasks.nodes.steps import land_recording
from tasks.warehouse import landing


@pytest.fixture
def recording(tmp_path, drawn_executions):
    folder = tmp_path / "recording"
    folder.mkdir()
    for number in (9999, 10000, 10001):
        shutil.copy(drawn_executions(nodes=1, runs=1, seed=number), folder / f"executions-{number}.parquet")
    return folder


def test_the_batches_that_are_there_are_read_once_a_call_and_not_once_a_part(tmp_path, recording, monkeypatch):
    calls = []
    batches = landing.batches
    monkeypatch.setattr(landing, "batches", lambda *asked: calls.append(asked) or batches(*asked))
    ids = land_recording(str(recording), str(tmp_path / "landing"), "fleet", 18)
    assert len(set(ids)) == 3
    assert len(calls) == 1
    assert land_recording(str(recording), str(tmp_path / "landing"), "fleet", 18) == ids
    assert len(calls) == 2


def test_parts_are_landed_in_the_order_of_their_numbers(tmp_path, recording):
    folder = str(tmp_path / "landing")
    ids = land_recording(str(recording), folder, "fleet", 18)
    by_id = {batch.batch_id: batch for batch in landing.batches(folder, "nodes")}
    names = [by_id[batch_id].origin.path.rpartition("/")[2] for batch_id in ids]
    assert names == ["executions-9999.parquet", "executions-10000.parquet", "executions-10001.parquet"]
    assert [batch.batch_id for batch in landing.batches(folder, "nodes")] == ids
