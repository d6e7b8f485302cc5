"""`whorl query`, `config`, `warehouse`."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tasks.jobs.intake import Intake, land_log
from tasks.jobs.params import GroupParams, ReadParams
from tasks.warehouse.connection import fetch
from tasks.warehouse.copies import hash_tables
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse
from tests.flows.cli.conftest import Whorl


def test_a_question_is_answered_as_a_table_whatever_stands_in_it_and_wherever_it_comes_from(
    whorl: Whorl, varied_log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = whorl("query", 'SELECT group_key, count(*) AS "[b]" FROM jobs.runs GROUP BY ALL ORDER BY 2 DESC LIMIT 1')
    assert ended.out.splitlines() == ["group_key             [b]", "steady_load#aaaaaaaa   30"]
    assert ended.err == "1 row\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT '[red]x[/red]' AS a"))
    assert whorl("query", "-").out.splitlines() == ["a", "[red]x[/red]"]


def test_what_is_no_question_to_the_warehouse_is_refused_in_one_line(whorl: Whorl, varied_log: Any) -> None:
    ended = whorl("query", "COPY (SELECT 1) TO 'out.csv'")
    assert (ended.code, ended.out, ended.err.count("\n")) == (3, "", 1)
    assert ended.err.startswith("whorl: query: ")
    assert "; expected one SELECT over the tables of the warehouse; " in ended.err
    late = "SELECT CASE WHEN range < 200000 THEN 1 ELSE CAST('x' || range AS INTEGER) END FROM range(300000)"
    ended = whorl("query", late, "--csv")
    assert (ended.code, "Could not convert string 'x2" in ended.err) == (3, True)


def test_a_table_stops_at_its_limit_and_machines_get_all_unless_they_ask_for_fewer(
    whorl: Whorl, varied_log: Any
) -> None:
    sql = "SELECT range AS i FROM range(1000)"
    ended = whorl("query", sql)
    assert len(ended.out.splitlines()) == 1 + 100
    assert ended.err == "100 rows; there are more: --limit N shows N of them, --limit 0 all\n"
    assert len(whorl("query", sql, "--limit", 0).out.splitlines()) == 1001
    assert len(json.loads(whorl("query", sql, "--json").out)["rows"]) == 1000
    cut = whorl("query", sql, "--json", "--limit", 3)
    assert json.loads(cut.out)["rows"] == [{"i": 0}, {"i": 1}, {"i": 2}]
    assert cut.err == "whorl: cut after 3 rows (--limit)\n"


def test_json_has_numbers_times_and_nulls_and_one_key_a_column(whorl: Whorl, varied_log: Any) -> None:
    sql = """SELECT sum(range) AS a, 'NaN'::DOUBLE AS a, NULL AS b, TIMESTAMP '2026-01-02 03:04:05' AS t,
        [1, 2] AS list, {'x': 1.5} AS struct FROM range(3)"""
    (row,) = json.loads(whorl("query", sql, "--json").out)["rows"]
    assert row == {"a": 3, "a_2": None, "b": None, "t": "2026-01-02T03:04:05Z", "list": [1, 2], "struct": {"x": 1.5}}


def test_csv_has_a_header_and_empty_fields_for_nothing(whorl: Whorl, varied_log: Any) -> None:
    ended = whorl("query", "SELECT 1 AS a, 'x,\"y\"' AS b, NULL AS c", "--csv")
    assert ended.out == 'a,b,c\n1,"x,""y""",\n'


ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range, b.range) = 1"


def test_the_time_limit_can_be_set_and_a_flag_wins(
    whorl: Whorl, varied_log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHORL_WHORL__QUERY_LIMIT_S", "0.04")
    assert "stopped after 0.04 s" in whorl("query", ENDLESS).err
    assert "stopped after 0.06 s" in whorl("query", ENDLESS, "--limit-s", "0.06", "--home", varied_log.home).err
    whorl.done("query", "SELECT count(*) AS n FROM range(10000000)", "--limit-s", "0", "--json")


@pytest.mark.parametrize("wrong", ["-1", "nan"])
def test_a_time_limit_that_is_none_is_one_line(whorl: Whorl, varied_log: Any, wrong: str) -> None:
    ended = whorl("query", "SELECT 1", "--limit-s", wrong)
    assert ended.code == 2
    assert ended.err.startswith("whorl: flag: whorl.query_limit_s: ")
    assert ended.err.endswith("expected a number at least 0 and at most 86,400\n")


LONG_LIST = "SELECT range(100) AS numbers, repeat('x', 90) AS word"


def test_a_long_list_is_cut_on_a_terminal_and_nowhere_else(
    whorl: Whorl, varied_log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ", ".join(map(str, range(100)))
    assert whole in whorl("query", LONG_LIST).out
    monkeypatch.setenv("COLUMNS", "200")
    shown = whorl("query", LONG_LIST).out
    assert f"{whole[:59]}…" in shown and whole[:61] not in shown and "x" * 90 in shown
    assert json.loads(whorl("query", LONG_LIST, "--json").out)["rows"][0]["numbers"] == list(range(100))
    assert whole in whorl("query", LONG_LIST, "--csv").out


def test_each_key_says_where_its_value_came_from(whorl: Whorl, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHORL_JOBS__SUMMARY__MIN_SUPPORT", "5")
    found = json.loads(whorl("config", "--json").out)
    assert found["jobs.summary.min_support"] == {"value": 5, "from": "WHORL_JOBS__SUMMARY__MIN_SUPPORT"}
    assert found["whorl.home"] == {"value": str(home), "from": "WHORL_HOME"}
    assert found["whorl.port"]["from"] == "default"
    monkeypatch.chdir(home.parent)  # where a relative home starts
    found = json.loads(whorl("config", "whorl", "--home", "here", "--json").out)
    assert found["whorl.home"] == {"value": str(home.parent / "here"), "from": "flag"}


def test_a_word_shows_its_own_keys_only(whorl: Whorl) -> None:
    shown = whorl("config", "jobs").out.splitlines()
    assert {line.split(".")[0] for line in shown if not line.startswith(" ")} == {"jobs"}
    assert "jobs.read.time_zone: ''  (default)" in shown


@pytest.mark.parametrize("columns", [None, "80", "100"])
def test_no_line_is_wider_than_the_terminal_and_what_was_set_comes_first(
    whorl: Whorl, monkeypatch: pytest.MonkeyPatch, columns: str | None
) -> None:
    monkeypatch.setenv("WHORL_NODES__SCORE__RESAMPLES", "700")
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    shown = whorl("config").out.splitlines()
    assert "nodes.score.resamples: 700  (WHORL_NODES__SCORE__RESAMPLES)" in shown[:6]  # beside the path of the home
    assert max(map(len, shown)) <= int(columns or 100)
    listed = whorl("datasets", "list")
    assert max(map(len, listed.out.splitlines())) <= int(columns or 100)
    assert "left out at a width of" in listed.err and "licence, public home (--json has all)" in listed.err


def test_the_defaults_of_a_word_are_yaml_that_can_be_used(whorl: Whorl) -> None:
    shown = whorl("config", "--defaults", "jobs").out
    assert yaml.safe_load(shown)["summary"]["min_support"] == 3
    assert "# Finished runs that a job needs" in shown


@pytest.mark.parametrize("arguments", [["jobz"], ["--defaults", "jobz"]])
def test_an_unknown_word_names_those_that_there_are(whorl: Whorl, arguments: list[str]) -> None:
    ended = whorl("config", *arguments)
    assert ended.code == 4
    assert ended.err == "whorl: 'jobz': no such word; there are settings of whorl, jobs, workloads, nodes, advice\n"


def test_a_backup_comes_back(whorl: Whorl, varied_log: Warehouse, home: Path, tmp_path: Path) -> None:
    before = whorl("warehouse", "hashes", "--json").out
    folder = whorl("warehouse", "backup", tmp_path / "backups").out.strip()
    (home / "warehouse.duckdb").unlink()
    ended = whorl("warehouse", "restore", folder)
    assert ended.out.startswith(f"{home}: restored from {folder}, ")
    assert whorl("warehouse", "hashes", "--json").out == before


def test_a_dry_prune_removes_nothing(whorl: Whorl, varied_log: Warehouse) -> None:
    before = whorl("warehouse", "hashes", "--json").out
    ended = whorl("warehouse", "prune", "--dry-run")
    assert ended.out == "would remove: 0 runs, 0 models, 0 landing files\n"
    assert json.loads(whorl("warehouse", "prune", "--json").out)["n_runs"] == 0
    assert whorl("warehouse", "hashes", "--json").out == before


def test_rebuilding_says_from_how_many_files(whorl: Whorl, home: Path) -> None:
    ended = whorl.done("warehouse", "rebuild")
    assert ended.out.startswith(f"{home}/warehouse.duckdb: rebuilt from 0 files of jobs")
    assert "not made again" not in ended.err  # there was nothing


@pytest.mark.slow
def test_a_rebuild_says_what_it_does_not_make_again_and_by_which_commands_it_is(
    whorl: Whorl, csv_log: Path, home: Path
) -> None:
    intake = Intake("a b", "table", ReadParams(), GroupParams())
    warehouse = Warehouse(home=home)
    ingest(warehouse, "jobs", land_log(warehouse, str(csv_log), intake).batch_id)
    first = whorl("warehouse", "rebuild").err.splitlines()
    assert len(first) == 1
    assert "predictions, reasons and what-ifs stand as they did; anew by whorl jobs summary --source 'a b'" in first[0]
    warehouse.file.unlink()
    assert "what-ifs are lost; anew by " in whorl("warehouse", "rebuild").err.splitlines()[-1]
    assert whorl("warehouse", "rebuild", "--json").err == ""


def test_hashes_see_rows_and_not_their_order(job_log_at: Callable[[Path], Any], tmp_path: Path) -> None:
    at = pd.Timestamp("2026-01-01")
    rows: list[dict[str, Any]] = [{"runtime_s": float(i), "run_id": f"r{i}", "submitted_at": at} for i in range(30)]

    def hashed(name: str, chosen: list[dict[str, Any]]) -> dict[str, str]:
        return {one.table: one.hash for one in hash_tables(job_log_at(tmp_path / name)(chosen))}

    first = hashed("a", rows)
    assert hashed("b", rows[::-1])["jobs.runs"] == first["jobs.runs"]
    assert hashed("c", rows[:-1])["jobs.runs"] != first["jobs.runs"]
    assert hashed("d", [*rows, rows[0]])["jobs.runs"] != first["jobs.runs"]
    doubled_pair = [*rows[2:], rows[1], rows[1]]  # as many rows, two the same: an exclusive or would not see it
    assert hashed("e", [*doubled_pair, rows[0]])["jobs.runs"] != hashed("f", [*rows, rows[0]])["jobs.runs"]


def test_the_dictionary_explains_every_column_of_a_query_also_to_machines(whorl: Whorl) -> None:
    shown = whorl("warehouse", "dictionary").out
    assert shown.startswith("# Data dictionary\n")
    assert "| `runtime_s` | DOUBLE | seconds from start to end" in shown
    told = json.loads(whorl("warehouse", "dictionary", "--json").out)["tables"]
    assert set(told["jobs.runs"]) == {"meaning", "columns"}
    assert told["jobs.runs"]["columns"]["runtime_s"]["type"] == "DOUBLE"
    assert told["jobs.runs"]["columns"]["run_id"]["is_nullable"] is False


def test_a_snapshot_is_a_warehouse_of_its_own_and_machines_are_told_what_a_copy_is(
    whorl: Whorl, varied_log: Warehouse, tmp_path: Path
) -> None:
    file = tmp_path / "copy" / "warehouse.duckdb"
    assert whorl("warehouse", "snapshot", file).out == f"{file}\n"
    assert fetch(Warehouse(home=file.parent), "SELECT count(*) AS n FROM jobs.runs")["n"][0] == 41
    told = json.loads(whorl("warehouse", "snapshot", file, "--json").out)
    assert told == {"file": str(file), "size_bytes": file.stat().st_size}
    made = json.loads(whorl("warehouse", "backup", tmp_path / "backups", "--json").out)
    sizes = [one.stat().st_size for one in Path(made["folder"]).rglob("*") if one.is_file()]
    folder = str(next((tmp_path / "backups").iterdir()))
    assert made == {"folder": folder, "n_files": len(sizes), "size_bytes": sum(sizes)}
    back = json.loads(whorl("warehouse", "restore", folder, "--json").out)
    assert back == {"home": str(varied_log.home), "folder": folder, "n_files": 1}  # the list counts no list


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("warehouse.duckdb.rebuilding", "1 leftover of killed processes"),
        ("warehouse.duckdb.broken-20200101T120000000000", "1 old copy"),
        ("recordings/workloads-live/live-one.parquet", "0 recorded runs and 1 recording"),
    ],
)
def test_what_is_old_or_left_behind_goes_and_is_named(
    whorl: Whorl, varied_log: Warehouse, name: str, told: str
) -> None:
    file = varied_log.home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("half")
    os.utime(file, (0, 0))
    assert json.loads(whorl("warehouse", "prune", "--json", "--live-kept-days", 36_500).out)["recordings"] == []
    file.write_text("half")
    os.utime(file, (0, 0))
    ended = whorl("warehouse", "prune")
    assert ended.out.splitlines() == [str(file), f"removed: 0 runs, 0 models, 0 landing files, {told}"]
    assert not file.exists()


def test_what_prune_keeps_can_be_set_and_a_flag_wins(
    whorl: Whorl, varied_log: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = varied_log.file.with_name(f"{varied_log.file.name}.broken-20200101T120000000000")
    kept.write_text("not whole")
    monkeypatch.setenv("WHORL_WHORL__PRUNE__COPIES_KEPT_DAYS", "36500")
    assert json.loads(whorl("warehouse", "prune", "--json", "--home", varied_log.home).out)["copies"] == []
    told = whorl("warehouse", "prune", "--json", "--home", varied_log.home, "--copies-kept-days", 1, "--dry-run").out
    assert json.loads(told)["copies"] == [str(kept)]
    assert kept.exists()


@pytest.mark.parametrize(
    ("flag", "value", "key"),
    [
        ("--runs-kept-days", "-1", "runs_kept_days"),
        ("--models-kept", "10001", "models_kept"),
        ("--orphans-kept-hours", "nan", "orphans_kept_hours"),
        ("--copies-kept-days", "inf", "copies_kept_days"),
        ("--live-kept-days", "-0.5", "live_kept_days"),
    ],
)
def test_a_wrong_flag_of_prune_is_one_line(
    whorl: Whorl, varied_log: Warehouse, flag: str, value: str, key: str
) -> None:
    ended = whorl("warehouse", "prune", flag, value)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"whorl: flag: whorl.prune.{key}: ")
    assert ended.err.count("\n") == 1


def test_half_backups_are_looked_for_where_a_flag_says(whorl: Whorl, varied_log: Warehouse, tmp_path: Path) -> None:
    half = tmp_path / "far" / "whorl-20200101T120000000000Z"
    half.mkdir(parents=True)
    os.utime(half, (0, 0))
    assert json.loads(whorl("warehouse", "prune", "--json").out)["copies"] == []
    assert json.loads(whorl("warehouse", "prune", "--json", "--backups", tmp_path / "far").out)["copies"] == [str(half)]
    assert not half.exists()
