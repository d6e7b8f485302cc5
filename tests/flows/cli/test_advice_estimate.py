"""`whorl advice estimate` as somebody at a shell uses it: tasks from traces, and what is refused, in one line."""

import json
from pathlib import Path

import pytest

TRACE = "task_id\tname\tstatus\trealtime\trchar\n" + "\n".join(
    f"{at}\tALIGN (s{at})\tCOMPLETED\t{10 * size}s\t{size} GB" for at, size in enumerate((1, 2, 4, 8))
)
SCORES = "machine_type,score\nlocal,1\nn2-standard-4,2\nunknown,\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A trace in a folder `local`, and scores of one thread."""
    (tmp_path / "local").mkdir()
    trace, scores = tmp_path / "local" / "trace.txt", tmp_path / "scores.csv"
    trace.write_text(TRACE)
    scores.write_text(SCORES)
    return {"trace": trace, "scores": scores}


def test_tasks_and_workflow_are_told_on_another_machine(whorl, files, tmp_path) -> None:  # type: ignore[no-untyped-def]
    asked = ("advice", "estimate", "--traces", files["trace"], "--onto", "n2-standard-4", "--scores", files["scores"])
    ended = whorl(*asked, "--out", tmp_path / "out")
    assert ended.out.startswith("trace takes 40 s on n2-standard-4 (")
    assert "4 runs of 1 tasks on local, times 0.500" in ended.out
    [page] = (tmp_path / "out").glob("*.html")
    assert str(page) in ended.err
    found = json.loads(whorl(*asked, "--json", "--size-ratio", "2").out)
    assert found["tasks"][0]["runtime_s"] == pytest.approx(80)
    assert found["tasks"][0]["low_s"] < 80 < found["tasks"][0]["high_s"]
    assert (found["source"], found["target"], found["confidence"]) == ("local", "n2-standard-4", 0.9)


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (["--onto", "n2-standard-4"], 2, "no scores of the machines; expected --scores FILE or --scores-of SOURCE"),
        (["--onto", "x", "--scores", "SCORES"], 4, "machine 'x' has no score of 'cpu_one_thread'"),
        (["--onto", "unknown", "--scores", "SCORES"], 4, "machine 'unknown' has no score of 'cpu_one_thread'"),
        (["--onto", "n2-standard-4", "--scores", "SCORES", "--from", "lab"], 4, "no run on machine 'lab'"),
        (["--onto", "n2-standard-4", "--scores", "SCORES", "--size-ratio", "0"], 2, "expected a number above 0"),
        (["--onto", "n2-standard-4", "--scores", "SCORES", "--map", "size=nothing"], 3, "no column 'nothing'"),
        (["--onto", "n2-standard-4", "--job", "j"], 2, "expected --traces PATH or --job JOB, one of them"),
    ],
)
def test_what_cannot_be_answered_is_one_line(  # type: ignore[no-untyped-def]
    whorl, files, options: list[str], code: int, problem: str
) -> None:
    given = [str(files["scores"]) if option == "SCORES" else option for option in options]
    ended = whorl("advice", "estimate", "--traces", files["trace"], *given)
    assert ended.code == code
    assert problem in " ".join(ended.err.split())
    assert ended.out == ""
