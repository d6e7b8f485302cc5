"""The flow that explains: what it writes, returns and publishes."""

from pathlib import Path

import pytest

from flows.jobs import reasons_page
from flows.parameters import ExplainFlowParams
from tasks.errors import NotFound
from tasks.jobs.explain.params import ExplainParams
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

EXPLAIN = ExplainParams(n_longest=4, n_riskiest=3)


def artifact(key: str) -> str:
    """The latest artifact under a key."""
    from prefect.artifacts import Artifact

    found = Artifact.get(key)
    assert found is not None
    assert isinstance(found.data, str)
    return found.data


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.slow
def test_the_longest_runs_and_the_riskiest_jobs_get_reasons(trained_log: Warehouse) -> None:
    from flows.jobs import explain_jobs

    params = ExplainFlowParams(source="log", explain=EXPLAIN, warehouse=trained_log)
    found = explain_jobs(params)
    reasons = fetch(trained_log, "SELECT * FROM jobs.reasons")
    assert (found["n_runs"], found["n_next"], found["n_reasons"]) == (4, 3, len(reasons))
    assert found["mrr"] is None  # nobody recorded a cause here
    assert set(reasons["model_id"]) == {found["model_id"]}
    past = reasons[reasons["run_id"].notna() & (reasons["question"] == "runtime") & (reasons["rank"] == 1)]
    assert (past["runtime_s"] > past["usual_s"]).all()
    page = artifact("jobs-log-reasons")
    assert "## Longest runs of the last days" in page
    assert "## Next runs of the riskiest jobs" in page
    assert "## What makes runs long or short" in page
    assert "need not be causes" in page
    assert found["report"] in page.replace("\\", "")
    assert "whorl jobs explain --source log" not in Path(found["report"]).read_text()  # nothing lacks
    assert explain_jobs(params) == found
    assert len(fetch(trained_log, "SELECT * FROM jobs.reasons")) == len(reasons)


@pytest.mark.usefixtures("prefect_server")
def test_a_source_without_a_model_fails_with_one_line(trained_log: Warehouse) -> None:
    from flows.jobs import explain_jobs

    with pytest.raises(NotFound, match="source 'other' has no trained model yet; make one with whorl jobs train"):
        explain_jobs(ExplainFlowParams(source="other", explain=EXPLAIN, warehouse=trained_log))


def test_a_long_run_that_nothing_explains_is_said_to_be_so(trained_log: Warehouse) -> None:
    tables = [
        fetch(trained_log, f"SELECT * FROM jobs.{name}") for name in ("cause_families", "cause_checks", "insights")
    ]
    reasons = fetch(
        trained_log,
        """SELECT 'r1' AS run_id, 'a' AS group_key, 'runtime' AS question, 1 AS rank, 0.5 AS factor,
        'input of this run: 3 MB' AS words, 20.0 AS runtime_s, 10.0 AS usual_s, 5.0 AS expected_s""",
    )
    assert "| a: run r1 | 20 s | 10 s | 5 s | nothing that was known at submission |" in reasons_page(
        "log", reasons, *tables
    )


def test_names_of_a_log_are_no_markup_on_the_page(trained_log: Warehouse) -> None:
    empty = fetch(trained_log, "SELECT * FROM jobs.cause_families")
    checks, insights = (fetch(trained_log, f"SELECT * FROM jobs.{name}") for name in ("cause_checks", "insights"))
    reasons = fetch(
        trained_log,
        """SELECT 'log' AS source, 'r|1' AS run_id, 'a <b>' AS group_key, 'runtime' AS question, 1 AS rank,
        1.9 AS factor, 'input of this run: 3 MB' AS words, 20.0 AS runtime_s, 10.0 AS usual_s, 19.0 AS expected_s""",
    )
    page = reasons_page("log", reasons, empty, checks, insights)
    assert "| a &lt;b&gt;: run r\\|1 | 20 s | 10 s | 19 s | input of this run: 3 MB |" in page
    assert "## What makes" not in page
    assert "## The paper" not in page
