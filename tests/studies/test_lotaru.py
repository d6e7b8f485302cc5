"""Lotaru's executions: partitions, published estimators, and Perona's Table III."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.nodes.answers import thread_scores_of
from tasks.nodes.history import read_results
from tasks.nodes.params import ReadParams
from tests.studies.lotaru import (
    CLOUD,
    Case,
    cases,
    coverage,
    errors_of,
    line_always,
    lotaru,
    naive,
    online_m,
    online_p,
    ours,
    partitions,
    percentile,
    published_factor,
    read_executions,
    score_factor,
    sysbench_factor,
    task_factors,
    whole_workflows,
    with_intervals,
)

TYPES = {name: f"{name}-standard-4" for name in CLOUD}


def case_of(sizes: list[float], runtimes_s: list[float], size: float, **names: str) -> Case:
    about = {"workflow": "w", "task": "t", "source": "n2", "target": "n1"} | names
    runs = {"sizes": np.array(sizes), "runtimes_s": np.array(runtimes_s), "size": size, "truth_s": 1.0}
    return Case(**about, partition=1, tested=1, **runs)  # type: ignore[arg-type]


STRAIGHT = case_of([10.0, 20.0, 40.0], [3.0, 4.0, 6.0], 80.0)  # 2 + 0.1 a unit
CROOKED = case_of([10.0, 20.0, 30.0], [5.0, 9.0, 1.0], 40.0)  # correlated by -0.5


def test_ours_scales_whatever_it_draws() -> None:
    assert ours(STRAIGHT, 1.5).runtime_s == pytest.approx(15)
    assert ours(CROOKED, 3.0).runtime_s == pytest.approx(ours(CROOKED, 1.0).runtime_s * 3)


def test_a_full_size_run_belongs_to_the_partition_with_half_its_reads() -> None:
    rows = pd.DataFrame(
        {
            "label": ["test", "train-1", "train-1", "train-2", "test"],
            "reads": [2000.5, 500, 1000, 3000, 5000],
            "runtime_s": [1.0, 2, 3, 4, 5],
        }
    )
    found = partitions(rows)
    assert found[1]["reads"].tolist() == [500, 1000, 2000.5]
    assert found[2]["reads"].tolist() == [3000]


def test_a_folder_without_reports_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no execution report in it"):
        read_executions(str(tmp_path))


# ---- the data


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


@pytest.mark.slow
def test_online_p_is_as_published_but_for_its_draws(executions: pd.DataFrame) -> None:
    """Published .1955, .5969, .8088, without a seed."""
    median, p90, p95 = figures(errors_of(cases(executions, "n2", ["n1", "c2"]), online_p, published_factor))
    assert median == pytest.approx(0.1955, abs=0.005)
    assert p90 == pytest.approx(0.5969, abs=0.04)
    assert p95 == pytest.approx(0.8088, abs=0.04)


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


@pytest.mark.slow
def test_the_shape_was_chosen_on_machines_that_the_table_does_not_use(executions: pd.DataFrame) -> None:
    """Larger runs from smaller ones on one machine: no score plays a part. A line has the better 90th percentile."""
    found = [case for name in ("local", "asok01", "asok02") for case in cases(executions, name, [name])]
    told = {method: errors_of(found, method, lambda _: 1.0) for method in (lotaru, line_always, ours)}
    assert len(found) == 3 * 212
    assert figures(told[lotaru]) == pytest.approx([0.0551, 0.4225, 0.8024], abs=2e-3)
    assert figures(told[line_always]) == pytest.approx([0.0536, 0.3422, 0.7414], abs=2e-3)
    assert figures(told[ours]) == pytest.approx([0.0529, 0.3586, 0.5717], abs=2e-3)
    means = {method: errors["error"].clip(upper=2).mean() for method, errors in told.items()}
    assert means[ours] < means[line_always] < means[lotaru]


def test_factors_of_tasks_follow_their_microbenchmarks(folder: Path) -> None:
    factor = task_factors(str(folder / "lotaru" / "benchmarks"))
    told = factor(case_of([1.0], [1.0], 1.0, workflow="atacseq", task="BWA_MEM"))
    assert told == pytest.approx(12.832 / 10.367)
