"""A result described once: terminal, JSON, artifact and page say the same."""

import json

from tasks.report.page import data_block, describe, file_slug, page_text, write_figures
from tasks.report.result import (
    Cell,
    Column,
    Fact,
    Figure,
    Result,
    Section,
    Table,
    as_markdown,
    cell_table,
    columns,
    command,
    count,
    extra,
    one_line,
    prose,
    spoken,
    table,
    table_markdown,
)

HOSTILE = "</script><script>alert(1)</script>| `x`\x00\n[a](http://x)"
TABLE = Table(
    "Jobs", "", columns(Column("name", "job", link="job.html#"), ("n", "runs", count)), [{"name": HOSTILE, "n": 1234}]
)
RESULT = Result(
    "A title",
    "The answer.",
    "Quite sure.",
    ("a reason",),
    (TABLE,),
    facts=(Fact("jobs.n", 1234, "runs", count),),
    sections=(Section("Empty", tables=(Table("", "", (), ()),), nothing="Made by a command."),),
)


def test_every_rendering_has_answer_numbers_and_what_is_missing():
    page, text = describe(RESULT), as_markdown(RESULT)
    assert page["answer"] == "The answer."
    assert text.startswith("# A title\n\n**The answer.**")
    assert page["facts"][0]["text"] == "1,234"
    assert page["sections"][1]["words"] == "Made by a command."
    assert "Made by a command" in text


def test_a_name_that_leads_somewhere_is_encoded_in_its_address():
    [name, n] = describe(RESULT)["sections"][0]["tables"][0]["rows"][0]
    assert (
        name[2]
        == "job.html#%3C%2Fscript%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E" + "%7C%20%60x%60%00%0A%5Ba%5D(http%3A%2F%2Fx)"
    )
    assert n == ["1,234", 1234.0]


def test_nothing_in_a_page_or_an_artifact_is_taken_as_markup():
    page = page_text(describe(RESULT))
    assert page.count("<script") == 4  # three of ours and the data
    assert "alert(1)</script>" not in page
    assert json.loads(str(data_block({"a": HOSTILE}))) == {"a": HOSTILE}
    assert "<script" not in as_markdown(RESULT)
    assert "](http" not in as_markdown(RESULT)


def test_cells_have_notes_and_are_sorted_by_their_value():
    table = cell_table("node", ("score",), [(Cell("n1", ("type a",)), Cell("1.20", ("1.1 to 1.3",), True, 1.2))])
    assert table.cells() == [["n1 (type a)", "1.20 (1.1 to 1.3)"]]
    [row] = describe(Result("t", "a", tables=(table,)))["sections"][0]["tables"][0]["rows"]
    assert row[1] == ["1.20", 1.2, None, ["1.1 to 1.3"], True]


def test_a_long_table_in_an_artifact_says_how_many_rows_it_leaves_out():
    table = Table("", "", (Column("n", "n"),), [{"n": at} for at in range(60)])
    assert table_markdown(table).endswith("10 more are in the warehouse.")


def test_a_figure_without_a_chart_keeps_its_words():
    text = as_markdown(Result("t", "a", figures=(Figure("f", "Fig", "Nothing to draw.", "n = 0"),)), pictures=["f"])
    assert "Nothing to draw" in text
    assert "data:image" not in text


def test_a_label_is_one_line_and_keeps_both_ends_of_a_long_name():
    assert one_line("a\nb\x1b[31m") == "a b [31m"
    assert one_line("x" * 100 + "end", 20).endswith("end")
    assert len(one_line("x" * 100, 20)) <= 20


def test_the_source_names_the_file_and_cannot_leave_the_folder():
    assert file_slug("jobs-nasa_1.2") == "jobs-nasa_1.2"
    assert "/" not in file_slug("jobs-../../etc/passwd")
    assert file_slug("jobs-a b") != file_slug("jobs-a-b")


def test_a_page_and_its_scripts_are_written_whole(tmp_path):
    [page] = write_figures(tmp_path, "one", RESULT)
    assert page.name == "one.html"
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "nav.js", "one.html", "site.css", "site.js", "vega.js",
    ]  # fmt: skip


def test_a_command_in_a_sentence_is_code_and_a_backtick_alone_stays_text():
    told = f"Next: {command('whorl', 'jobs', 'train', '--source', 'a b')}."
    assert prose(told) == "Next: `whorl jobs train --source 'a b'`."
    assert spoken(told) == [("Next: ", False), ("whorl jobs train --source 'a b'", True), (".", False)]
    assert prose("a ` b *c*") == "a \\` b \\*c\\*"


def test_names_lead_to_their_pages_where_the_site_is_known():
    shown = table([{"job": "a (b)", "n": 2}], Column("job", "job", link="job.html#"), ("n", "runs", count))
    assert "| a \\(b\\) | 2 |" in table_markdown(shown)
    assert "| [a \\(b\\)](http://host/job.html#a%20%28b%29) | 2 |" in table_markdown(shown, "http://host")


def test_columns_of_quantities_are_numbers_and_extras_are_marked():
    name, n, more = columns(("job", "job", "key"), ("n", "runs", count), *extra(("note", "note")))
    assert [name.kind, n.kind, more.kind] == ["key", "number", "text"]
    assert [one.is_extra for one in (name, n, more)] == [False, False, True]


def test_a_part_is_empty_where_something_would_fill_it_and_nothing_did() -> None:
    assert Section("Shapes", nothing="Made by a command.").is_empty
    assert not Section("Shapes", lines=("8 shapes",), nothing="Made by a command.").is_empty
    assert not Section("Alarms", "None was raised.", tables=(Table("", "", (), ()),)).is_empty  # that is the answer
