"""`whorl advice choose` on a user's own tables and on a recording: the answer first, and one line for what is wrong."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

RECORDED = Path(__file__).parents[3] / "data/recorded/advice"


@pytest.fixture
def tables(tmp_path):
    """Runs of a job that is bound by the CPU, with names of their own, and three types with scores."""
    runtimes_s = 20 * np.exp(0.1 * np.random.default_rng(1).standard_normal(20))
    runs = pd.DataFrame({"task": "nightly", "machine_type": "m5", "runtime_s": runtimes_s, "cpu_s": runtimes_s})
    runs.to_csv(tmp_path / "runs.csv", index=False)
    kinds = [("m5", 1, 4, 0.2), ("slow", 1, 4, 0.05), ("fast", 1, 4, 0.5)]
    columns = ["machine_type", "vcpu", "memory_gb", "price_per_h"]
    pd.DataFrame(kinds, columns=columns).to_csv(tmp_path / "machines.csv", index=False)
    scores = [("m5", "cpu", 100), ("slow", "cpu", 50), ("fast", "cpu", 200)]
    pd.DataFrame(scores, columns=["machine_type", "aspect", "score"]).to_csv(tmp_path / "scores.csv", index=False)
    return tmp_path


def choose(whorl, tables, *more, deadline="1min"):
    asked = ("--history", tables / "runs.csv", "--machines", tables / "machines.csv", "--scores", tables / "scores.csv")
    return whorl("advice", "choose", *asked, "--deadline", deadline, "--map", "job=task", *more)


def test_the_answer_comes_first_then_how_sure_then_why(whorl, tables):
    said = choose(whorl, tables)
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("Run nightly on slow: late in") and "% cheaper a run than m5" in lines[0]
    assert lines[1].startswith("80% interval of the chance")
    assert "bound by CPU" in lines[2]
    assert "safe, dearer" in said.out


def test_as_json_the_figures_are_one_object(whorl, tables):
    told = json.loads(choose(whorl, tables, "--json", deadline="18s").out)
    assert (told["machine_type"], told["source"], told["deadline_s"], told["n_runs"]) == ("fast", "m5", 18, 20)
    assert {one["machine_type"] for one in told["types"]} == {"m5", "slow", "fast"}


def test_a_page_is_written_where_it_is_asked_for(whorl, tables):
    said = choose(whorl, tables, "--out", tables / "pages")
    assert said.code == 0
    assert "Run nightly on slow" in (tables / "pages" / "advice-choose-nightly.html").read_text()


@pytest.mark.parametrize(
    ("more", "deadline", "said"),
    [
        (("--job", "other"), "30s", "other"),
        (("--source", "m9"), "30s", "job 'nightly' has no runs on 'm9'"),
        ((), "never", "expected a time above 0, such as 90s"),
        (("--recording", "."), "30s", "--recording has its own tables"),
    ],
)
def test_what_is_wrong_is_said_in_words(whorl, tables, more, deadline, said):
    ended = choose(whorl, tables, *more, deadline=deadline)
    assert ended.code != 0
    assert said in " ".join(ended.err.replace("│", " ").split())


def test_without_tables_what_is_expected_is_said(whorl):
    ended = whorl("advice", "choose", "--deadline", "30s")
    assert ended.code != 0
    assert "expected --history and --machines" in ended.err


def test_the_recording_answers_and_is_checked(whorl, tmp_path):
    ended = whorl("advice", "choose", "--recording", RECORDED, "--json")
    assert ended.code == 0
    told = json.loads(ended.out)
    assert len(told["jobs"]) == 20
    assert {"choose", "stay on the source", "oracle (held-back runs)"} <= {one["rule"] for one in told["rules"]}
    assert told["chosen"]["runs"] == 200 and told["everywhere"]["runs"] == 1200
    named = whorl("advice", "choose", "--recording", RECORDED, "--job", "key_overlap")
    assert named.out.startswith("Run key_overlap on ")
    assert "no job 'nothing'" in whorl("advice", "choose", "--recording", RECORDED, "--job", "nothing").err
