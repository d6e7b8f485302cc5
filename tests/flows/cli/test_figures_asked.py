"""--out of characterise, explain and whatif: figures of a person's own choice, and one clear line if there are none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli import jobs
from tasks.jobs import steps
from tasks.jobs.predict.params import EvaluateParams
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

Whorl = Callable[..., Any]
POSTERIOR = "SELECT posterior FROM jobs.group_shapes WHERE kind = 'ratio' AND part = 'all' AND group_key LIKE 'job03%'"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, quick_training: EvaluateParams) -> list[str]:
    """Characterising is the step alone, without a flow around it; each call is counted here."""
    found: list[str] = []

    def characterised(_: Any, settings: Any, source: str) -> Any:
        found.append(source)
        return steps.characterise(settings.warehouse, source, settings.jobs.evaluate.predict.characterise)

    monkeypatch.setattr(jobs, "_written", characterised)
    monkeypatch.setenv("WHORL_JOBS__EVALUATE__PREDICT__CHARACTERISE__SHAPES__K", "2")
    return found


def test_a_job_is_told_how_likely_each_shape_makes_its_runs(
    whorl: Whorl, trained_log: Warehouse, calls: list[str]
) -> None:
    ended = whorl("jobs", "characterise", "--job", "job03", "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert (found["job"], found["normalisation"], found["n_runs"]) == ("job03#00000003", "ratio", 60)
    kept = fetch(trained_log, POSTERIOR, {})["posterior"].iloc[0]
    assert [row["posterior"] for row in found["shapes"]] == pytest.approx(list(kept), abs=1e-12)
    shown = whorl("jobs", "characterise", "--job", "job03")
    assert [line.split()[0] for line in shown.out.splitlines() if line] == ["job", "runs", "most", "shape", "0", "1"]
    assert len(calls) <= 1  # the shapes of now are kept


def test_any_two_shapes_are_drawn_against_a_job(
    whorl: Whorl, trained_log: Warehouse, calls: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "figures"
    asked = ("jobs", "characterise", "--job", "job03", "--shapes", "1,0", "--normalisation", "delta", "--out", out)
    ended = whorl(*asked)
    assert ended.code == 0, ended.err
    page, image = sorted(path for path in out.iterdir() if path.is_file())
    assert (page.suffix, image.suffix) == (".html", ".png")
    assert f"written: {page}" in ended.err
    assert "shape 1: log-likelihood" in page.read_text()  # the panel of the chart
    assert "--shapes 1,0 --normalisation delta" in page.read_text()


WRONG = (
    (("--job", "nowhere"), 4, "job 'nowhere': no job of source 'log' is called so"),
    (("--job", "job"), 4, "12 jobs of source 'log' fit"),
    (("--job", "job03", "--shapes", "0,9"), 2, "shapes 0 and 9: expected two different ones of the 2 shapes"),
    (("--job", "job03", "--shapes", "1,1"), 2, "shapes 1 and 1: expected two different ones"),
    (("--job", "job03", "--shapes", "1"), 2, "'1'; expected two numbers of shapes, such as 0,3"),
    (("--job", "job03", "--shapes", "a,b"), 2, "'a,b'; expected two numbers of shapes"),
    (("--job", "job03", "--shapes", "-1,0"), 2, "'-1,0'; expected two numbers of shapes"),
    (("--shapes", "0,1"), 2, "say which job with --job KEY"),
)


def test_a_job_or_shape_that_is_none_is_said_in_one_line(
    whorl: Whorl, trained_log: Warehouse, calls: list[str]
) -> None:
    for arguments, code, line in WRONG:
        ended = whorl("jobs", "characterise", *arguments)
        assert (ended.code, ended.out) == (code, ""), arguments
        told = [said for said in ended.err.splitlines() if line in said]
        assert len(told) == 1, (arguments, ended.err)


@pytest.mark.slow
def test_the_shapes_of_a_source_are_drawn_with_bins_and_rivals(
    whorl: Whorl, trained_log: Warehouse, calls: list[str], tmp_path: Path
) -> None:
    ended = whorl("jobs", "characterise", "--out", tmp_path / "figures")
    assert ended.code == 0, ended.err
    names = sorted(path.stem for path in (tmp_path / "figures").glob("*.png"))
    kinds = ("delta", "ratio")
    assert names == sorted(f"{name}-{kind}" for name in ("bins", "inertia", "rivals", "shapes") for kind in kinds)


def test_what_speaks_for_shapes_is_drawn_for_any_of_them(whorl: Whorl, trained_log: Warehouse, tmp_path: Path) -> None:
    out = tmp_path / "figures"
    ended = whorl("jobs", "explain", "--out", out, "--shapes", "1,0", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["source"] == "log"
    assert sorted(path.stem for path in out.glob("*.png")) == [
        "beeswarm-ratio-0", "beeswarm-ratio-1", "two-shapes-ratio-1-0",
    ]  # fmt: skip
    page = (out / "jobs-log-reasons-ratio-1-0.html").read_text()
    assert "n = 144 runs" in page
    assert "What tells shape 1 and shape 0 apart" in page


def test_a_shape_that_the_model_does_not_know_is_said_in_one_line(
    whorl: Whorl, trained_log: Warehouse, tmp_path: Path
) -> None:
    ended = whorl("jobs", "explain", "--out", tmp_path / "figures", "--shapes", "5")
    assert (ended.code, ended.out) == (2, "")
    assert "knows the ratio shapes 0, 1" in ended.err
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize("arguments", [("--shapes", "1"), ("--shapes", "1", "--job", "job03", "--out", "x")])
def test_shapes_need_a_folder_and_no_job(whorl: Whorl, trained_log: Warehouse, arguments: tuple[str, ...]) -> None:
    ended = whorl("jobs", "explain", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "it needs --out DIR, and neither a run nor a job" in ended.err


def test_the_reasons_of_the_next_run_are_drawn(whorl: Whorl, trained_log: Warehouse, tmp_path: Path) -> None:
    ended = whorl("jobs", "explain", "--job", "job03", "--out", tmp_path / "figures")
    assert ended.code == 0, ended.err
    (page,) = (tmp_path / "figures").glob("*.html")
    assert "What speaks" not in page.read_text()
    assert "Why this run is predicted so" in page.read_text()


def test_a_what_if_is_drawn_and_says_why_nothing_was_measured(
    whorl: Whorl, trained_log: Warehouse, tmp_path: Path
) -> None:
    ended = whorl("jobs", "whatif", "--set", "input=x2", "--out", tmp_path / "figures")
    assert ended.code == 0, ended.err
    (page,) = (tmp_path / "figures").glob("*.html")
    text = page.read_text()
    assert "No run was done again with this change, so nothing was measured." in text
    assert "What would change: input_bytes=x2 (ratio)" in text
    assert "--set input=x2 --out" in text
    assert "What they do not" in text
