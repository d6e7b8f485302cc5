"""The notebook about experiments runs from top to bottom, and its frames are what it says."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tasks.warehouse.runs import RunRecord, record_run
from tests.conftest import JobLog

NOTEBOOK = Path(__file__).with_name("experiments.ipynb")


def test_the_notebook_compares_evaluations(job_log: JobLog, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = job_log([{"runtime_s": 1.0}])
    noon = datetime(2026, 1, 1, 12)
    for k, crps in ((4, 0.5), (8, 0.25)):
        made = RunRecord(
            run_id=f"with-{k}-shapes", flow="jobs-evaluate", word="jobs", source="log", status="completed",
            started_at=noon, ended_at=noon, parameters={"k": k}, figures={"crps": crps},
        )  # fmt: skip
        record_run(warehouse, made)
    monkeypatch.setenv("WHORL_HOME", str(warehouse.home))
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert len(names["evaluations"]) == 2
    assert names["scores"]["best"].to_dict() == {"figures.crps": "with-8-shapes"}
    assert sorted(names["compared"]["key"]) == ["figures.crps", "parameters.k"]
