"""`whorl query`: questions in SQL that can change nothing and reach nothing but the warehouse."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Whorl = Callable[..., Any]


def test_a_question_is_answered_as_a_table(whorl: Whorl, varied_log: Any) -> None:
    ended = whorl("query", "SELECT group_key, count(*) AS n FROM jobs.runs GROUP BY ALL ORDER BY n DESC LIMIT 1")
    assert ended.out.splitlines() == ["group_key              n", "steady_load#aaaaaaaa  30"]
    assert ended.err == "1 row\n"


REFUSED = (
    "DROP TABLE jobs.runs",
    "INSERT INTO ops.machines VALUES ('a', 'b', 'c')",
    "CREATE TEMP TABLE t AS SELECT 1",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "ATTACH '{folder}/other.duckdb'",
    "EXPORT DATABASE '{folder}/out'",
    "INSTALL httpfs",
    "SET memory_limit = '10GB'",
    "SET enable_external_access = true",
    "SELECT 1; DROP TABLE jobs.runs",
    "EXPLAIN ANALYZE DELETE FROM jobs.runs",
    "SELECT * FROM query('DELETE FROM jobs.runs')",
    "SELECT * FROM read_text('/etc/hostname')",
    "SELECT * FROM read_csv('{folder}/secret.csv')",
    "SELECT * FROM '{folder}/secret.csv'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM batches",  # no variable of the program is a table
    "SELECT nothing FROM jobs.runs",
    "SELEC 1",
    "SELECT CAST(group_key AS INTEGER) FROM jobs.runs",
    "",
)


def test_what_is_no_question_to_the_warehouse_is_refused_in_one_line(
    whorl: Whorl, varied_log: Any, tmp_path: Path
) -> None:
    (tmp_path / "secret.csv").write_text("a\nsecret\n")
    before = whorl("warehouse", "hashes", "--json").out
    files = sorted(tmp_path.iterdir())
    for sql in REFUSED:
        ended = whorl("query", sql.format(folder=tmp_path))
        assert (ended.code, ended.out) == (3, ""), sql
        assert ended.err.startswith("whorl: query: "), sql
        assert ended.err.count("\n") == 1, sql
        assert "; expected one SELECT over the tables of the warehouse; " in ended.err, sql
        assert sorted(tmp_path.iterdir()) == files, sql
    assert whorl("warehouse", "hashes", "--json").out == before


def test_a_late_error_is_told_like_an_early_one(whorl: Whorl, varied_log: Any) -> None:
    late = "SELECT CASE WHEN range < 200000 THEN 1 ELSE CAST('x' || range AS INTEGER) END FROM range(300000)"
    ended = whorl("query", late, "--csv")
    assert ended.code == 3
    assert "Could not convert string 'x2" in ended.err


def test_a_table_stops_at_its_limit_and_says_so(whorl: Whorl, varied_log: Any) -> None:
    ended = whorl("query", "SELECT range AS i FROM range(1000)")
    assert len(ended.out.splitlines()) == 1 + 100
    assert ended.err == "100 rows; there are more: --limit N shows N of them, --limit 0 all\n"
    assert len(whorl("query", "SELECT range AS i FROM range(1000)", "--limit", 0).out.splitlines()) == 1001


def test_machines_get_all_rows_unless_they_ask_for_fewer(whorl: Whorl, varied_log: Any) -> None:
    sql = "SELECT range AS i FROM range(1000)"
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


def test_a_long_question_comes_from_stdin(whorl: Whorl, varied_log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 7 AS seven"))
    assert json.loads(whorl("query", "-", "--json").out)["rows"] == [{"seven": 7}]


def test_brackets_are_no_markup(whorl: Whorl, varied_log: Any) -> None:
    assert whorl("query", "SELECT '[red]x[/red]' AS \"[b]\"").out.splitlines() == ["[b]", "[red]x[/red]"]


def test_a_question_with_too_little_memory_says_what_to_raise(
    whorl: Whorl, varied_log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHORL_WHORL__MEMORY_MB", "64")
    ended = whorl("query", "SELECT list(repeat('x', 1000) || range) FROM range(1000000)")
    assert ended.code in (2, 3)
    assert "whorl.memory_mb" in ended.err


BEYOND = """SELECT TIMESTAMP '12000-01-01' AS t, DATE '12000-01-01' AS d, INTERVAL '3 months 2 days' AS i,
    170141183460469231731687303715884105727::HUGEINT AS h, 'infinity'::TIMESTAMP AS never, 'infinity'::DOUBLE AS x"""
HUGE = 170141183460469231731687303715884105727


def test_values_beyond_those_of_python_are_shown_in_a_table(whorl: Whorl, varied_log: Any) -> None:
    ended = whorl("query", BEYOND)
    assert ended.code == 0
    cells = ["12000-01-01 00:00:00", "12000-01-01", "3 months 2 days", str(HUGE), "infinity", "inf"]
    assert [cell for cell in ended.out.splitlines()[1].split("  ") if cell] == cells


def test_values_beyond_those_of_python_are_texts_in_json_and_csv(whorl: Whorl, varied_log: Any) -> None:
    (row,) = json.loads(whorl("query", BEYOND, "--json").out)["rows"]
    expected = {"t": "12000-01-01 00:00:00", "d": "12000-01-01", "i": "3 months 2 days", "h": HUGE}
    assert row == {**expected, "never": "infinity", "x": "inf"}
    ended = whorl("query", BEYOND, "--csv")
    assert ended.out.splitlines()[1] == f"12000-01-01 00:00:00,12000-01-01,3 months 2 days,{HUGE},infinity,inf"


ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range, b.range) = 1"


def test_a_query_beyond_its_time_limit_is_one_line(whorl: Whorl, varied_log: Any) -> None:
    ended = whorl("query", ENDLESS, "--limit-s", "0.05")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err == (
        "whorl: query: stopped after 0.05 s, its time limit: whoever wants to write waits for it; expected an answer "
        "within that time; ask for less, or allow more with --limit-s or whorl.query_limit_s (0: no limit)\n"
    )


def test_the_time_limit_can_be_set_and_a_flag_wins(
    whorl: Whorl, varied_log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHORL_WHORL__QUERY_LIMIT_S", "0.04")
    assert "stopped after 0.04 s" in whorl("query", ENDLESS).err
    assert "stopped after 0.06 s" in whorl("query", ENDLESS, "--limit-s", "0.06", "--home", varied_log.home).err
    assert whorl("query", "SELECT count(*) AS n FROM range(10000000)", "--limit-s", "0", "--json").code == 0


@pytest.mark.parametrize("wrong", ["-1", "nan", "inf", "1e9"])
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
