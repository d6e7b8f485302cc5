"""Lotaru's executions: Perona's Table III by the published estimators, and ours beside them."""

import os
from pathlib import Path

import pandas as pd
import pytest

from tasks.nodes.answers import thread_scores_of
from tasks.nodes.history import read_results
from tasks.nodes.params import ReadParams
from tests.studies.lotaru import (
    CLOUD,
    cases,
    coverage,
    errors_of,
    lotaru,
    naive,
    online_m,
    ours,
    percentile,
    published_factor,
    read_executions,
    score_factor,
    sysbench_factor,
    whole_workflows,
    with_intervals,
)

TYPES = {name: f"{name}-standard-4" for name in CLOUD}


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of reference data, or a skip with a reason."""
    path = Path(os.environ.get("WHORL_DATASETS", "-"))
    if not (path / "lotaru").exists() or not (path / "sparecores").exists():
        pytest.skip("needs lotaru/ and sparecores/ in the folder WHORL_DATASETS")
    return path


@pytest.fixture(scope="module")
def executions(folder: Path) -> pd.DataFrame:
    return read_executions(str(folder / "lotaru" / "execution_reports"))


def figures(errors: pd.DataFrame) -> list[float]:
    return [round(percentile(errors["error"], q), 4) for q in (50, 90, 95)]


def test_table_iii_is_reproduced_to_the_last_digit(executions: pd.DataFrame) -> None:
    found = cases(executions, "n2", ["n1", "c2"])
    assert len(found) == 424
    assert figures(errors_of(found, naive, published_factor)) == [0.6692, 13.9303, 47.2588]
    assert figures(errors_of(found, online_m, published_factor)) == [0.1955, 0.5967, 0.8010]
    assert figures(errors_of(found, lotaru, published_factor)) == [0.1237, 0.4741, 0.7935]


@pytest.mark.parametrize(
    "scores",
    [pytest.param("whorl", marks=pytest.mark.slow), pytest.param("stress-ng", marks=pytest.mark.slow), "sysbench"],
)
def test_ours_is_better_than_the_published_with_each_source_of_scores(
    folder: Path, executions: pd.DataFrame, scores: str
) -> None:
    if scores == "whorl":
        recorded = read_results([str(folder / "sparecores" / "gcp")], ReadParams()).history
        factors = score_factor(thread_scores_of(recorded), TYPES)
    elif scores == "stress-ng":
        rows = pd.read_csv(folder / "sparecores" / "summary_scores.csv")
        rows = rows[rows["vendor"] == "gcp"].rename(columns={"instance": "machine_type", "stressng_1": "score"})
        factors = score_factor(rows.assign(aspect="cpu_one_thread"), TYPES)
    else:
        factors = sysbench_factor
    errors = errors_of(cases(executions, "n2", ["n1", "c2"]), ours, factors)
    median, p90, p95 = figures(errors)
    assert median <= 0.088
    assert p90 <= 0.470
    assert p95 <= 0.7935
    held, width = coverage(with_intervals(errors))
    assert 0.87 <= held <= 0.93
    assert width <= 0.65
    held, _ = coverage(whole_workflows(errors))
    assert 0.85 <= held <= 0.95
