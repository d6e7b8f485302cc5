"""`whorl jobs evaluate`: figures of any readable log, from its paths alone."""

import json

import numpy as np
import pandas as pd
import pytest

CONF = """
evaluate:
  baseline_trees: 5
  predict: {n_rounds: 5, n_trees: 5}
"""
PARTS = ("model", "history", "forest", "global")


@pytest.fixture
def log(tmp_path):
    rng = np.random.default_rng(1)
    n = 1000
    inputs = np.exp(rng.normal(0, 1, n))
    submitted = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n) * 600, unit="s")
    runtime = 10.0 * inputs * np.exp(rng.normal(0, 0.1, n)) * (1 + np.arange(n) % 10)
    path = tmp_path / "log.parquet"
    pd.DataFrame(
        {
            "run_id": [f"r{i:04}" for i in range(n)],
            "name": [f"job{chr(97 + i % 10)}" for i in range(n)],
            "submitted_at": submitted,
            "started_at": submitted,
            "runtime_s": runtime,
            "status": "completed",
            "input_bytes": 1e6 * inputs,
        }
    ).to_parquet(path, index=False)
    return path


@pytest.fixture
def quick(tmp_path, monkeypatch):
    """Settings with models of a few small trees."""
    import yaml

    for key, value in _flat(yaml.safe_load(CONF)["evaluate"], "WHORL_JOBS__EVALUATE"):
        monkeypatch.setenv(key, json.dumps(value))


def _flat(values, prefix):
    for key, value in values.items():
        name = f"{prefix}__{key.upper()}"
        yield from _flat(value, name) if isinstance(value, dict) else [(name, value)]


def test_one_json_object_holds_every_promised_figure(whorl, log, quick):
    ended = whorl("jobs", "evaluate", log, "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert (found["n"], found["groups"], found["recurring_share"], found["seed"]) == (1000, 10, 1.0, 0)
    assert len(found["data_sha256"]) == 64 and found["version"]
    for kind in ("ratio", "delta"):
        assert found[f"shapes.k.{kind}"] >= 1
        for name in ("accuracy", "accuracy_group", "ceiling", "split_half", "history_baseline"):
            assert 0 <= found[f"label.{name}.{kind}"] <= 1
    for name in PARTS:
        for measure in ("crps", "log_score", "coverage90", "ks_group", "ks_pooled"):
            assert isinstance(found[f"predict.{measure}.{name}"], float), (measure, name)
        assert found[f"unseen.crps.{name}"] is None and found[f"unseen.crps.{name}.reason"]
    # what decides the runtime is known: the job's own runtimes cannot tell as well
    assert found["predict.crps.model"] < 0.8 * found["predict.crps.history"]


def test_a_person_sees_predictors_side_by_side(whorl, log, quick):
    ended = whorl("jobs", "evaluate", log)
    assert ended.code == 0, ended.err
    assert "1,000 of 10 jobs; 200 later ones are predicted" in ended.out
    assert all(words in ended.out for words in ("the job's own runs", "random forest", "one shape for all"))


@pytest.mark.slow
def test_nothing_is_kept_but_the_tables_and_the_page_that_were_asked_for(whorl, log, quick, home, tmp_path):
    ended = whorl("jobs", "evaluate", log, "--out", tmp_path / "tables", "--json")
    assert ended.code == 0, ended.err
    assert not (home / "warehouse.duckdb").exists()
    told = pd.read_parquet(tmp_path / "tables" / "predictions.parquet")
    assert len(told) == 200 and (told["p05_s"] < told["p95_s"]).all()
    page = (tmp_path / "tables" / "jobs-evaluation.html").read_text()
    assert "log.parquet" in page and "1,000 runs of 10 jobs" in " ".join(page.split())
    titles = ("Predictors side by side", "What was predicted, and what came", "Right labels")
    assert all(title in page for title in titles)
    assert page.count('"spec":{') >= 10


@pytest.mark.slow
def test_columns_with_other_names_are_mapped(whorl, log, quick, tmp_path):
    other = tmp_path / "other.parquet"
    pd.read_parquet(log).rename(columns={"runtime_s": "seconds"}).to_parquet(other, index=False)
    ended = whorl("jobs", "evaluate", other, "--map", "runtime_s=seconds", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["n"] == 1000


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("run_id,name,started_at,runtime_s\na,x,2026-01-01T00:00:00Z,5\n", "at least three"),
        ("run_id,name,started_at,runtime_s,status\na,x,2026-01-01T00:00:00Z,,running\n", "no finished run"),
    ],
)
def test_a_log_that_is_too_small_gets_one_line(whorl, quick, tmp_path, content, words):
    path = tmp_path / "small.csv"
    path.write_text(content)
    ended = whorl("jobs", "evaluate", path, "--json")
    said = ended.err.strip().removeprefix("whorl: ")
    assert json.loads(ended.out) == {"error": {"message": said, "exit_code": 3}} and ended.code == 3
    assert words in ended.err and ended.err.count("\n") == 1


def test_of_all_columns_those_known_before_are_used_and_the_others_named(whorl, log, quick):
    runs = pd.read_parquet(log)
    runs.assign(took_ms=1000 * runs["runtime_s"], branch=np.where(runs.index % 3, "main", "dev")).to_parquet(log)
    ended = whorl("jobs", "evaluate", log, "--features", "all", "--known-before", "branch", "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert found["own.used"] == ["branch"]
    assert found["own.left_out.took_ms"] == "is the runtime in 100.0% of the runs"
    assert found["predict.coverage90_tenth.model.1"] is None or "predict.coverage90_tenth.model.10" in found
    assert found["group.by"] == "as the log is grouped" and found["group.crps.as the log is grouped"] > 0


def test_what_a_job_is_can_be_set(whorl, log, quick):
    ended = whorl("jobs", "evaluate", log, "--group-by", "queue,name", "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert (found["group.by"], found["group.reason"], found["groups"]) == ("queue,name", "as it was set", 10)
