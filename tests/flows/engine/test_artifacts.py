"""Artifacts: keys that Prefect takes, and texts of a log that cannot do anything in a page."""

import re

import pytest

from flows.engine.artifacts import artifact_key, table
from tasks.markdown import plain


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        (("jobs", "main", "summary"), "jobs-main-summary"),
        (("jobs", "NASA iPSC/860", "summary"), r"jobs-nasa-ipsc-860-[0-9a-f]{8}-summary"),
        (("jobs", "∆∆∆", "alarms"), r"jobs-[0-9a-f]{8}-alarms"),
        (("jobs", "x" * 100, "alarms"), r"jobs-x{60}-[0-9a-f]{8}-alarms"),
    ],
)
def test_a_key_holds_only_what_prefect_allows(parts: tuple[str, ...], key: str) -> None:
    assert re.fullmatch(key, artifact_key(*parts))


def test_no_two_sources_share_a_report() -> None:
    sources = ["a/b", "A b", "a-b", "∆", "ø", "x" * 99, "x" * 100]
    assert len({artifact_key("jobs", source, "summary") for source in sources}) == len(sources)


def test_a_job_named_like_markup_stays_text() -> None:
    assert plain("<script>alert(1)</script>") == "&lt;script&gt;alert\\(1\\)&lt;/script&gt;"
    assert plain("a|b\nc") == "a\\|b c"
    assert plain("![x](http://evil)") == "\\!\\[x\\]\\(http://evil\\)"


def test_numbers_stand_right_and_have_separators() -> None:
    assert table(("job", "runs"), [("load", 12345)]) == "| job | runs |\n| --- | ---: |\n| load | 12,345 |"


def test_a_table_without_rows_is_a_head() -> None:
    assert table(("job", "runs"), []) == "| job | runs |\n| --- | --- |"
