"""What the flows that read files share: names of runs, files that can be read, and one line about the others."""

from typing import Any

import pytest

from flows.engine import kept_runs
from flows.engine.file_intake import load_each, not_all_read
from flows.engine.kept_runs import in_short, of_evaluation, of_ingest
from tasks.errors import BadInput


def load(path: str) -> str:
    """The name of a file in capital letters; one that is called bad cannot be read."""
    if "bad" in path:
        raise BadInput(path, "no results", "results", "name another")
    return path.upper()


def test_a_file_that_cannot_be_read_does_not_hold_up_the_others() -> None:
    loaded, refused = load_each(["a", "bad-1", "b"], load)
    assert loaded == ["A", "B"]
    assert str(not_all_read(refused, 3, "results", {})) == (
        "bad-1: no results; expected results; name another; the other 2 of 3 files are loaded"
    )


def test_several_that_cannot_be_read_are_one_line_with_the_first() -> None:
    _, refused = load_each(["bad-1", "bad-2"], load)
    assert str(not_all_read(refused, 2, "results", {})) == (
        "2 of 2 files: could not be read, the first: bad-1: no results; expected results; name another; "
        "expected results"
    )


@pytest.mark.parametrize(
    ("paths", "told"),
    [(["/a/b.csv"], "b.csv"), (["s3://bucket"], "bucket"), (["/"], "/"), (["a", "b", "c"], "3 paths")],
)
def test_a_run_is_named_after_its_only_file_or_their_number(paths: list[str], told: str) -> None:
    assert in_short(paths) == told


@pytest.mark.parametrize(
    ("asked", "ingest", "evaluation"),
    [
        ({"logs": ["/x/y.log"], "source": "s"}, "ingest y.log into s", "evaluate y.log"),
        ({"logs": [], "source": "s"}, "ingest the inbox into s", "evaluate s"),
        ({"logs": ["a", "b"], "source": "s"}, "ingest 2 paths into s", "evaluate 2 logs"),
    ],
)
def test_a_run_says_what_it_reads_and_into_which_source(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], ingest: str, evaluation: str
) -> None:
    monkeypatch.setattr(kept_runs, "flow_run", type("Run", (), {"parameters": asked}))
    assert of_ingest("logs", "the inbox") == ingest
    assert of_evaluation("logs", "logs") == evaluation
