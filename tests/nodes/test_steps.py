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
    landed = batches(str(tmp_path / "landing"), "nodes")
    assert [batch.batch_id for batch in landed] == ids
    names = [f"executions-{number}.parquet" for number in (9999, 10000, 10001)]
    assert [batch.origin.path.rpartition("/")[2] for batch in landed] == names
