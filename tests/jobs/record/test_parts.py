"""Part files of a recording: whole or absent, numbered, tied to their campaign's parameters."""

import json

import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput, BadSetting
from tasks.jobs.columns import RUNS_SCHEMA
from tasks.jobs.record import parts as writer_module
from tasks.jobs.record.params import Campaign
from tasks.jobs.record.parts import (  # fmt: skip
    EXTRA_COLUMNS,
    RECORD_KEY,
    SCHEMA,
    PartWriter,
    finished_ids,
    part_paths,
    recorded_params,
    write_part,
)
from tasks.jobs.record.plan import Plan

PARAMS = Campaign(minutes=1, seed=5)
NO_PLAN = Plan((), ())
RECORD = {"params": recorded_params(PARAMS), "plan": NO_PLAN.digest()}


def _row(run_id, what_if=None):
    return {
        "run_id": run_id, "name": "n", "runtime_s": 1.5, "status": "completed", "is_simulated": False,
        "what_if": what_if, "matched_run_id": "5-000001" if what_if else None,
    }  # fmt: skip


def _names(paths):
    return [path.name for path in paths]


def test_parts_are_numbered_on_and_their_runs_are_known_again(tmp_path):
    for run_id in ("5-000001", "5-000002"):
        path = write_part(tmp_path, "runs", [_row(run_id)], RECORD)
    assert _names(part_paths(tmp_path)) == ["runs-0001.parquet", "runs-0002.parquet"]
    assert finished_ids(tmp_path, PARAMS, NO_PLAN) == {"5-000001", "5-000002"}
    schema = pq.read_schema(path)
    assert schema.names == SCHEMA.names
    assert json.loads(schema.metadata[RECORD_KEY]) == json.loads(json.dumps(RECORD))


def _written(folder, rows, record=RECORD):
    with PartWriter(folder, record) as writer:
        for row in rows:
            writer.add(row)


def test_what_ifs_lie_in_parts_of_their_own(tmp_path):
    rows = [_row("5-000001"), _row("5-000001-no_spare", "no_spare"), _row("5-000002")]
    _written(tmp_path, rows)
    _written(tmp_path, rows[1:2])
    assert _names(part_paths(tmp_path)) == ["runs-0001.parquet", "pairs-0001.parquet", "pairs-0002.parquet"]
    assert pq.read_table(tmp_path / "runs-0001.parquet")["run_id"].to_pylist() == ["5-000001", "5-000002"]
    assert finished_ids(tmp_path, PARAMS, NO_PLAN) == {"5-000001", "5-000001-no_spare", "5-000002"}


def test_what_could_not_be_written_is_written_with_the_next_part_and_nothing_twice(tmp_path, monkeypatch):
    written, failing = writer_module.write_part, [OSError("no space")]

    def write(folder, kind, rows, record):
        if kind == "pairs" and failing:
            raise failing.pop()
        return written(folder, kind, rows, record)

    monkeypatch.setattr(writer_module, "write_part", write)
    with pytest.raises(OSError, match="no space"), PartWriter(tmp_path, RECORD) as writer:
        writer.add(_row("5-000001"))
        writer.add(_row("5-000001-no_spare", "no_spare"))
    writer._write()
    assert _names(part_paths(tmp_path)) == ["runs-0001.parquet", "pairs-0001.parquet"]
    assert pq.read_table(tmp_path / "pairs-0001.parquet")["run_id"].to_pylist() == ["5-000001-no_spare"]


def test_columns_of_the_recorder_do_not_hide_those_of_the_log():
    names = {field.name for field in RUNS_SCHEMA}
    assert not names & EXTRA_COLUMNS.keys()
    assert len(set(SCHEMA.names)) == len(SCHEMA.names)


def test_a_part_that_was_cut_off_while_written_is_not_a_part(tmp_path):
    (tmp_path / "runs-0001.tmp").write_bytes(b"PAR1 half")
    assert finished_ids(tmp_path, PARAMS, NO_PLAN) == set()


@pytest.mark.parametrize(("change", "named"), [({"seed": 6}, "seed"), ({"jobs": 9, "pairs": 1}, "jobs, pairs")])
def test_a_campaign_with_other_parameters_is_not_continued(tmp_path, change, named):
    write_part(tmp_path, "runs", [_row("5-000001")], RECORD)
    expected = rf"runs-0001.parquet: belongs to a campaign with other parameters \({named}\); expected"
    with pytest.raises(BadSetting, match=expected):
        finished_ids(tmp_path, PARAMS.model_copy(update=change), NO_PLAN)


def test_a_longer_call_with_another_scratch_folder_is_the_same_campaign(tmp_path):
    write_part(tmp_path, "runs", [_row("5-000001")], RECORD)
    changes = {"scratch": str(tmp_path), "minutes": 99.0, "part_minutes": 1.0}
    assert finished_ids(tmp_path, PARAMS.model_copy(update=changes), NO_PLAN) == {"5-000001"}


def test_a_campaign_that_was_planned_otherwise_is_not_continued(tmp_path):
    write_part(tmp_path, "runs", [_row("5-000001")], RECORD | {"plan": "of another version"})
    with pytest.raises(BadSetting, match=r"runs-0001\.parquet: was planned by another version of whorl"):
        finished_ids(tmp_path, PARAMS, NO_PLAN)


@pytest.mark.parametrize("name", ["runs-0001.parquet", "pairs-0001.parquet"])
def test_a_damaged_part_is_one_clear_line(tmp_path, name):
    (tmp_path / name).write_bytes(b"not parquet at all")
    with pytest.raises(BadInput, match=rf"{name}: cannot be read .*expected a part file of the recorder"):
        finished_ids(tmp_path, PARAMS, NO_PLAN)
