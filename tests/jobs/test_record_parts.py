"""Part files of a recording: whole or absent, numbered, tied to their campaign's parameters."""

import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput, BadSetting
from tasks.jobs.record.params import RecordParams
from tasks.jobs.record.parts import SCHEMA, finished_ids, part_paths, recorded_params, write_part

PARAMS = RecordParams(minutes=1, seed=5)
RECORD = {"params": recorded_params(PARAMS)}


def _row(run_id):
    return {"run_id": run_id, "name": "n", "runtime_s": 1.5, "status": "completed", "is_simulated": False}


def test_parts_are_numbered_on_and_their_runs_are_known_again(tmp_path):
    first, second = (write_part(tmp_path, [_row(run_id)], RECORD) for run_id in ("5-000001", "5-000002"))
    assert (
        [first.name, second.name]
        == ["runs-0001.parquet", "runs-0002.parquet"]
        == [p.name for p in part_paths(tmp_path)]
    )
    assert finished_ids(tmp_path, PARAMS) == {"5-000001", "5-000002"}
    assert pq.read_schema(first).names == SCHEMA.names


def test_a_part_that_was_cut_off_while_written_is_not_a_part(tmp_path):
    (tmp_path / "runs-0001.tmp").write_bytes(b"PAR1 half")
    assert finished_ids(tmp_path, PARAMS) == set()


def test_a_campaign_with_other_parameters_is_not_continued(tmp_path):
    write_part(tmp_path, [_row("5-000001")], RECORD)
    with pytest.raises(
        BadSetting, match=r"runs-0001.parquet: belongs to a campaign with other parameters \(seed\); expected"
    ):
        finished_ids(tmp_path, PARAMS.model_copy(update={"seed": 6}))


def test_another_scratch_folder_is_the_same_campaign(tmp_path):
    write_part(tmp_path, [_row("5-000001")], RECORD)
    assert finished_ids(tmp_path, PARAMS.model_copy(update={"scratch": str(tmp_path)})) == {"5-000001"}


def test_a_damaged_part_is_one_clear_line(tmp_path):
    (tmp_path / "runs-0001.parquet").write_bytes(b"not parquet at all")
    with pytest.raises(BadInput, match=r"runs-0001.parquet: cannot be read .*expected a part file of the recorder"):
        finished_ids(tmp_path, PARAMS)
