"""The flow of what-if questions, run here and now as the command line runs it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from flows.jobs import (
    ask_jobs,
    pair_rows,
    whatif_page,
)
from flows.parameters import WhatIfFlowParams
from tasks.errors import BadInput, NotFound
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.predict.params import EvaluateParams
from tasks.report.jobs import change_rows, fetch_what_ifs
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

PARAMS = WhatIfParams()
N_PAIRS = 24


def with_spare(runs: pd.DataFrame) -> pd.DataFrame:
    """The same runs, of which half find no spare tokens and take three times as long; then pairs of it."""
    spare = np.where(np.random.default_rng(4).random(len(runs)) < 0.5, 3.0, 0.0)
    log = runs.assign(requested_cpus=2.0, spare_tokens_available=spare, spare_tokens_used=spare / 2)
    log = log.assign(runtime_s=log["runtime_s"] * np.where(spare > 0, 1, 3), run_id=[f"r{i}" for i in range(len(log))])
    last = log[log["spare_tokens_available"] > 0].tail(N_PAIRS)
    parts = [log]
    for kind, factor, spare_tokens in (("baseline", 1.0, 3.0), ("no_spare", 3.0, 0.0)):
        partner = last["run_id"] if kind == "baseline" else last["run_id"] + "-baseline"
        changed = {"runtime_s": last["runtime_s"] * factor, "spare_tokens_available": spare_tokens}
        parts.append(last.assign(what_if=kind, matched_run_id=partner, run_id=last["run_id"] + f"-{kind}", **changed))
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(submitted_at=pd.Timestamp("2026-01-01") + pd.to_timedelta(range(len(frame)), unit="min"))


@pytest.fixture(scope="module")
def spare_home(
    tmp_path_factory: pytest.TempPathFactory,
    job_log_at: Callable[[Path], Any],
    varied_runs: Callable[..., pd.DataFrame],
    quick_training: EvaluateParams,
) -> Path:
    """A source `log` with spare tokens, runs done again without them, and a model."""
    from tasks.jobs.predict.training import train_source

    home = tmp_path_factory.mktemp("spare") / "home"
    train_source(job_log_at(home)(with_spare(varied_runs())), "log", quick_training, run_id="test")
    return home


@pytest.fixture
def spare_log(spare_home: Path) -> Warehouse:
    return Warehouse(home=spare_home, memory_mb=256, threads=1)


def artifact(key: str) -> str:
    """The latest artifact under a key."""
    from prefect.artifacts import Artifact

    found = Artifact.get(key)
    assert found is not None
    assert isinstance(found.data, str)
    return found.data


@pytest.mark.usefixtures("prefect_server")
def test_scenarios_are_answered_written_and_told_and_what_the_log_has_not_is_a_line(spare_log: Warehouse) -> None:
    params = WhatIfFlowParams(source="log", whatif=PARAMS, sets=["spare_multiplier=1", "input=x2"], warehouse=spare_log)
    found = ask_jobs(params)
    assert found["scenarios"] == ["no_spare", "spare_multiplier=1, input_bytes=x2"]
    assert set(found["refused"]) == {"newest_sku", "steady_load"}
    assert found["right_share"]["no_spare"] == pytest.approx(1.0, abs=0.1)
    rows = fetch(spare_log, "SELECT scenario, measure, model_id FROM jobs.what_ifs")
    assert set(rows["scenario"]) == set(found["scenarios"])
    assert set(rows["model_id"]) == {found["model_id"]}
    page = artifact("jobs-log-whatif")
    assert "What the figures support" in page
    assert "What they do not" in page
    assert "the log says nothing of kinds of machine" in page
    assert page.count("data:image/png;base64,") == 2  # who moves where, for each answer
    assert found["report"] in page.replace("\\", "")
    assert "spare_multiplier=1" in Path(found["report"]).read_text()
    again = ask_jobs(params)
    assert again == found
    assert len(fetch(spare_log, "SELECT 1 FROM jobs.what_ifs")) == len(rows)


@pytest.mark.usefixtures("prefect_server")
def test_a_log_that_no_scenario_fits_is_one_line(trained_log: Warehouse) -> None:
    with pytest.raises(BadInput, match=r"^what-if spare_multiplier=0: the log says nothing of spare tokens"):
        ask_jobs(WhatIfFlowParams(source="log", whatif=PARAMS, warehouse=trained_log))


@pytest.mark.usefixtures("prefect_server")
def test_a_source_without_a_model_is_told_how_to_get_one(spare_log: Warehouse) -> None:
    with pytest.raises(NotFound, match="source 'other' has no trained model yet"):
        ask_jobs(WhatIfFlowParams(source="other", whatif=PARAMS, warehouse=spare_log))


def test_the_page_shows_what_was_measured_beside_what_was_foretold(spare_log: Warehouse) -> None:
    from tasks.jobs.steps import ask_what_ifs

    ask_what_ifs(spare_log, "log", ["no_spare"], [], [], [], PARAMS)
    answers = [one for one in fetch_what_ifs(spare_log, "log") if one.scenario == "no_spare"]
    page = whatif_page("log", answers, {"newest_sku": "no SKUs"})
    assert f"| no_spare | {N_PAIRS} | 100.0 % (" in page.replace("\\", "")
    assert "no SKUs" in page.replace("\\", "")


def test_figures_get_their_unit_and_sign_and_what_is_unknown_is_left_out() -> None:
    rows = pd.DataFrame(
        {
            "before": [0.02, 1.5, None],
            "after": [0.01, 3.0, None],
            "change": [-0.01, 1.5, None],
            "low": [-0.02, None, None],
            "high": [0.0, None, None],
        },
        index=["outlier_share", "p95_s", "money"],
    )
    assert [tuple(row.values()) for row in change_rows(rows)] == [
        (
            "probability of an outlier, over the ratio to the historic median",
            "2.0 %",
            "1.0 %",
            "−1.0 %",
            "−2.0 % to 0.0 %",
        ),
        ("95th percentile, in seconds", "1.5 s", "3 s", "+1.5 s", "–"),
    ]


def test_pairs_that_were_not_measured_say_why() -> None:
    assert pair_rows({"n_pairs": 0, "reason": "no run"})[0] == "none: no run"
