"""What tests of several words share."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasks.jobs.characterise_params import CharacteriseParams
from tasks.jobs.predict.classifier_params import ClassifierParams
from tasks.jobs.predict.evaluation_params import EvaluateParams, PredictParams
from tasks.jobs.predict.predictor_params import LeanParams, LocationParams, PredictorParams, SpreadParams
from tasks.jobs.shape_params import BinParams, ShapeParams
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.place import Warehouse

MIDNIGHT = pd.Timestamp("2026-01-01")
JobLog = Callable[..., Warehouse]


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty warehouse, made once: tests copy it."""
    warehouse = Warehouse(home=tmp_path_factory.mktemp("migrated"))
    with writing(warehouse):
        pass
    return warehouse.file


@pytest.fixture(scope="session")
def job_log_at(migrated: Path) -> Callable[[Path], JobLog]:
    """A function that makes a warehouse in a folder, and gives what puts job runs into it (see job_log)."""

    def make(home: Path) -> JobLog:
        warehouse = Warehouse(home=home, memory_mb=256, threads=1)
        home.mkdir()
        shutil.copy(migrated, warehouse.file)
        calls = iter(range(1_000_000))

        def fill(runs: Sequence[dict[str, Any]] | pd.DataFrame, *, source: str = "log") -> Warehouse:
            _put(warehouse, pd.DataFrame(runs), source, f"batch-{next(calls):03}")
            return warehouse

        return fill

    return make


@pytest.fixture
def job_log(tmp_path: Path, job_log_at: Callable[[Path], JobLog]) -> JobLog:
    """A function that puts job runs into a warehouse of this test and returns it.

    A run is a dict with what matters to the test; the rest is filled in: job `job`, submitted one a minute from
    2026-01-01 on, completed. Each call is one more file of the source."""
    return job_log_at(tmp_path / "home")


def _put(warehouse: Warehouse, rows: pd.DataFrame, source: str, batch_id: str) -> None:
    n_rows = len(rows)
    defaults: dict[str, Any] = {
        "run_id": [f"{batch_id}-{i:06}" for i in range(n_rows)],
        "group_key": "job",
        "submitted_at": MIDNIGHT + pd.to_timedelta(range(n_rows), unit="min"),
        "status": "completed",
        "is_simulated": False,
    }
    rows = _with_defaults(rows.assign(source=source, batch_id=batch_id), defaults)
    rows = _with_defaults(rows, {"started_at": rows["submitted_at"]})
    rows = _with_defaults(rows, {"ended_at": rows["started_at"] + pd.to_timedelta(rows["runtime_s"], unit="s")})
    with writing(warehouse) as connection, transaction(connection):
        connection.execute("INSERT INTO jobs.runs BY NAME SELECT * FROM rows").fetchall()
        connection.execute(
            """INSERT INTO ops.files BY NAME SELECT $batch_id AS batch_id, 'jobs' AS word, $source AS source,
            'own' AS reader, '1' AS reader_version, '{}' AS options, '/logs/' || $batch_id || '.csv' AS origin,
            $batch_id AS origin_sha256, $at AS ordered_at, $n AS n_read, $n AS n_kept, 0 AS n_quarantined,
            $at AS landed_at""",
            {"batch_id": batch_id, "source": source, "at": MIDNIGHT.to_pydatetime(), "n": n_rows},
        ).fetchall()


def _with_defaults(rows: pd.DataFrame, defaults: dict[str, Any]) -> pd.DataFrame:
    """Columns that are missing, and missing values of those that are there."""
    filled = {}
    for name, value in defaults.items():
        default = pd.Series(value, index=rows.index)
        filled[name] = rows[name].fillna(default) if name in rows else default
    return rows.assign(**filled)


@pytest.fixture(scope="session")
def quick_training() -> EvaluateParams:
    """The parameters of a training of a few small trees."""
    predictor = PredictorParams(
        location=LocationParams(n_rounds=20, num_leaves=7, learning_rate=0.2, min_leaf_runs=10, n_folds=2),
        spread=SpreadParams(n_trees=5, num_leaves=15, min_leaf_runs=15, n_bins=60),
        lean=LeanParams(prior_runs=(20,), ways=("residual",)),
    )
    shapes = ShapeParams(k=2, min_support=10, n_init=2, max_k=4, compared_n_bins=(20, 200))
    predict = PredictParams(
        characterise=CharacteriseParams(bins=BinParams(ranges="data"), shapes=shapes),
        classifier=ClassifierParams(n_rounds=10, min_leaf=10, row_share=1, feature_share=1),
        predictor=predictor,
    )
    return EvaluateParams(predict=predict, with_rivals=False, forest_trees=5, min_group_runs=5)


@pytest.fixture(scope="session")
def varied_runs() -> Callable[..., pd.DataFrame]:
    """A function: n_runs of 12 jobs in turn, one a minute, the odd ones more varied; most take 10 to 30 s."""

    def draw(n_runs: int = 720, *, seed: int = 1) -> pd.DataFrame:
        rng, number = np.random.default_rng(seed), np.arange(n_runs) % 12
        inputs = np.exp(rng.normal(0, 0.3, n_runs))
        noise = np.exp(rng.normal(0, np.where(number % 2, 0.6, 0.05)))
        return pd.DataFrame(
            {
                "group_key": [f"job{i:02}#{i:08x}" for i in number],
                "runtime_s": np.round((10.0 + number) * inputs * noise, 3),
                "input_bytes": np.round(1e6 * inputs),
            }
        )

    return draw


@pytest.fixture(scope="session")
def trained_home(
    tmp_path_factory: pytest.TempPathFactory,
    job_log_at: Callable[[Path], JobLog],
    varied_runs: Callable[..., pd.DataFrame],
    quick_training: EvaluateParams,
) -> Path:
    """The home of a source `log` with a model, made once: tests copy it."""
    from tasks.jobs import model_steps

    home = tmp_path_factory.mktemp("trained") / "home"
    model_steps.train(job_log_at(home)(varied_runs()), "log", quick_training, "first-run")
    return home


@pytest.fixture
def trained_log(tmp_path: Path, trained_home: Path) -> Warehouse:
    """A warehouse of this test with a source `log` of varied_runs and its model, in the folder that job_log uses."""
    shutil.copytree(trained_home, tmp_path / "home")
    return Warehouse(home=tmp_path / "home", memory_mb=256, threads=1)
