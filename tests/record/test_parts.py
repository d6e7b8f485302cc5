"""Files of a recording: whole, self-explaining, and no run lost or doubled by a kill."""

import json
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import Field

from tasks.errors import BadInput, BadSetting
from tasks.params import Params
from tasks.record import parts as module
from tasks.record.parts import SPOOL, Parts, check_same, deciding, part_paths, read_table, write_json, write_table

START = datetime(2026, 11, 21, 12)
PACE = frozenset({"minutes"})


class Asked(Params):
    minutes: float = Field(2, description="how long a call goes on")
    samples: int = Field(4, description="what it records")


def table_of(*numbers, **columns):
    times = [START + timedelta(seconds=number) for number in numbers]
    return pa.table({"run_id": [f"run{n}" for n in numbers], "started_at": times, **columns})


def keep(parts, number, status="clean", **record):
    parts.keep(f"run{number}", table_of(number), {"runs": {f"run{number}": {"status": status}}, **record})


def ids(parts):
    return [run_id for path in parts.paths() for run_id in pq.read_table(path)["run_id"].to_pylist()]


def names(paths):
    return [path.name for path in paths]


@pytest.fixture
def parts(tmp_path):
    return Parts(tmp_path, ("runs", "flagged"))


def test_a_part_holds_all_runs_in_the_order_of_their_starts_with_what_is_known_of_each(parts, tmp_path):
    for number in (2, 10, 1):
        keep(parts, number, machine={"cores": number})
    parts.close()
    assert ids(parts) == ["run1", "run2", "run10"]
    assert names(tmp_path.iterdir()) == ["runs-0001.parquet"]
    _, record = read_table(tmp_path / "runs-0001.parquet")
    assert record == {
        "runs": {name: {"status": "clean"} for name in ("run1", "run2", "run10")},
        "machine": {"cores": 10},
    }


def test_disturbed_runs_are_kept_apart_and_a_word_may_have_kinds_of_its_own(tmp_path):
    parts = Parts(tmp_path / "a", ("runs", "flagged"))
    for number, status in enumerate(("clean", "disturbed", "short")):
        keep(parts, number, status)
    parts.close()
    assert names(parts.paths()) == ["runs-0001.parquet", "flagged-0001.parquet"]
    assert ids(parts) == ["run0", "run1", "run2"]
    by_role = Parts(tmp_path / "b", ("history", "held-back"), kind_of=lambda table, _: table["role"][0].as_py())
    for number, role in enumerate(("held-back", "history")):
        by_role.keep(str(number), table_of(number, role=[role]), {})
    by_role.close()
    assert ids(by_role) == ["run1", "run0"]


def test_rows_with_other_columns_share_a_part_and_what_one_lacks_stays_missing(parts):
    parts.keep("a", table_of(1, value=[5.0]), {"runs": {"run1": {"status": "clean"}}})
    keep(parts, 2)
    parts.close()
    assert pq.read_table(parts.paths()[0])["value"].to_pylist() == [5.0, None]


def test_a_word_says_what_a_part_tells_of_its_runs(tmp_path):
    parts = Parts(tmp_path, ("runs", "flagged"), record_of=lambda records: {"n": len(records), "runs": {}})
    keep(parts, 1)
    keep(parts, 2)
    parts.close()
    assert read_table(parts.paths()[0])[1] == {"n": 2, "runs": {key: {"status": "clean"} for key in ("run1", "run2")}}


def test_runs_of_two_plans_do_not_share_a_part(parts):
    keep(parts, 1, plan="steady", campaign="a")
    keep(parts, 2, plan="f00", campaign="b")
    keep(parts, 3, plan="steady", campaign="a")
    parts.close()
    told = [read_table(path) for path in parts.paths()]
    assert [(table["run_id"].to_pylist(), record["campaign"]) for table, record in told] == [
        (["run1", "run3"], "a"),
        (["run2"], "b"),
    ]


def test_parts_stay_small(parts, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES", 400)
    for number in range(3):
        keep(parts, number)
    parts.write()
    assert names(parts.paths()) == [f"runs-000{n}.parquet" for n in (1, 2, 3)]
    assert ids(parts) == ["run0", "run1", "run2"]


def test_a_part_is_written_when_it_is_due_or_many_wait_and_not_before(tmp_path):
    parts = Parts(tmp_path, ("runs", "flagged"), most_waiting=3)
    keep(parts, 1)
    assert parts.paths() == []
    parts.due_s = 0.0
    keep(parts, 2)
    assert ids(parts) == ["run1", "run2"]
    for number in (3, 4, 5):
        keep(parts, number)
    assert names(parts.paths()) == ["runs-0001.parquet", "runs-0002.parquet"]
    assert parts.spooled() == []


def test_a_finished_run_outlives_a_kill_before_its_part_was_written(parts, tmp_path):
    keep(parts, 1)
    again = Parts(tmp_path, parts.kinds)  # nothing was called in between
    assert [table["run_id"].to_pylist() for _, table, _ in again.recorded()] == [["run1"]]
    again.close()
    assert ids(again) == ["run1"]


@pytest.mark.parametrize("at", ["replace", "unlink"])
def test_a_kill_while_a_part_is_written_or_before_runs_are_tidied_away_loses_and_doubles_nothing(
    parts, tmp_path, monkeypatch, at
):
    keep(parts, 1)
    with monkeypatch.context() as patched:
        patched.setattr(f"pathlib.Path.{at}", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            parts.write()
    assert ids(parts) == ([] if at == "replace" else ["run1"])  # what was half written is no part
    again = Parts(tmp_path, parts.kinds)
    keep(again, 2)
    again.close()
    assert sorted(ids(again)) == ["run1", "run2"]
    assert not list(tmp_path.glob("*.large"))
    assert not (tmp_path / SPOOL).exists()


def test_one_attempt_of_a_run_does_not_hide_another(tmp_path):
    parts = Parts(tmp_path, ("runs", "flagged"), key=("run_id", "attempt"))
    for attempt in (0, 1):
        facts = {"runs": {f"run1.{attempt}": {"status": "clean"}}}
        parts.keep(f"run1.{attempt}", table_of(1, attempt=[attempt]), facts)
        parts.write()
    assert ids(parts) == ["run1", "run1"]


def test_parts_beyond_the_9999th_are_seen_in_order_and_not_written_over(parts, tmp_path):
    for number in (1, 2, 3):
        keep(parts, number)
        parts.write()
        if number == 1:
            (tmp_path / "runs-0001.parquet").rename(tmp_path / "runs-9999.parquet")
    (tmp_path / "runs-notes.parquet").touch()
    assert names(part_paths(tmp_path, ("runs",))) == [f"runs-{n}.parquet" for n in (9999, 10000, 10001)]
    assert ids(parts) == ["run1", "run2", "run3"]


@pytest.mark.parametrize("name", ["flagged-0001.parquet", f"{SPOOL}/run1.parquet"])
def test_a_damaged_file_is_one_clear_line(parts, tmp_path, name):
    (tmp_path / SPOOL).mkdir()
    (tmp_path / name).write_bytes(b"PAR1 and nothing\nelse")
    file = name.rpartition("/")[2]
    with pytest.raises(BadInput, match=rf"{file}: cannot be read .*expected a part file of the recorder") as told:
        list(parts.recorded())
    assert "\n" not in str(told.value)


def test_a_table_without_a_record_or_a_column_is_no_part(tmp_path):
    pq.write_table(table_of(1), tmp_path / "a.parquet")
    write_table(tmp_path / "b.parquet", table_of(1), {})
    for name, columns in (("a", None), ("b", ["speed"])):
        with pytest.raises(BadInput, match=f"{name}.parquet: cannot be read"):
            read_table(tmp_path / f"{name}.parquet", columns)


def test_json_is_written_whole(tmp_path):
    write_json(tmp_path / "campaign.json", {"plan": "x"})
    assert names(tmp_path.iterdir()) == ["campaign.json"]
    assert json.loads((tmp_path / "campaign.json").read_text()) == {"plan": "x"}


def test_what_decides_a_campaign_has_to_be_the_same_and_its_pace_has_not(tmp_path):
    record = {"params": deciding(Asked(), PACE), "plan": "x"}
    assert record["params"] == {"samples": 4}
    check_same(tmp_path, record, Asked(minutes=9), PACE, "x")
    with pytest.raises(BadSetting, match=r"belongs to a campaign with other parameters \(samples\); expected the same"):
        check_same(tmp_path, record, Asked(samples=9), PACE, "x")
    with pytest.raises(BadSetting, match=r"other parameters \(another plan, by another version of whorl\)"):
        check_same(tmp_path, record, Asked(), PACE, "y")


def test_a_campaign_of_an_older_recorder_had_by_default_what_it_does_not_say(tmp_path):
    check_same(tmp_path, {"params": {}}, Asked(), PACE, "x")
    with pytest.raises(BadSetting, match=r"\(samples\)"):
        check_same(tmp_path, {"params": {}}, Asked(samples=9), PACE, "x")
    check_same(tmp_path, {"params": {"samples": 4, "gone": 1}, "plan": "x"}, Asked(), PACE, "x")
