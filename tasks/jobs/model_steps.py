"""The steps of shapes and models of `jobs`: keys in, keys and figures out. Flows wrap them, and commands that ask."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from tasks.jobs.params import (
    GroupParams,
    ReadParams,
)
from tasks.jobs.predict.params import EvaluateParams
from tasks.jobs.shape_params import CharacteriseParams
from tasks.utc import utc_text
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    from tasks.jobs.evaluate import Evaluation

logger = logging.getLogger(__name__)


class TrainedModel(TypedDict):
    """model_id: of the new model; champion_id: of the one in use now; crps: of the new one on held-out runs, seconds.

    shapes: by normalisation the name of the shapes that it used."""

    model_id: str
    champion_id: str
    data_version: str
    crps: float
    shapes: dict[str, str]


class Predicted(TypedDict):
    """What stands in jobs.predictions now. predicted_at: ISO, UTC."""

    model_id: str
    data_version: str
    predicted_at: str
    n_jobs: int


class Characterised(TypedDict):
    """What stands in jobs.shapes and its sisters now. k: number of shapes by normalisation."""

    data_version: str
    n_groups: int
    k: dict[str, int]


def train(warehouse: Warehouse, source: str, evaluate: EvaluateParams, run_id: str) -> TrainedModel:
    """Train a model on a source, measure it on held-out runs, and put it into use if it is the better one.

    run_id: of the flow run; the same run, data and parameters make the same model once."""
    from tasks.jobs.predict.training import (
        METRIC,
        train_source,
        write_figures,
    )
    from tasks.jobs.summary import kind_of_runs

    kind_of_runs(warehouse, source)  # a line in the log where all are simulated
    found = train_source(warehouse, source, evaluate, run_id=run_id)
    write_figures(warehouse, source, found.model_id, found.figures)
    return TrainedModel(
        model_id=found.model_id,
        champion_id=found.champion_id,
        data_version=found.data_version,
        crps=float(found.figures[METRIC]),
        shapes=shapes_of(warehouse, found.model_id),
    )


def shapes_of(warehouse: Warehouse, model_id: str) -> dict[str, str]:
    """By normalisation the name of the shapes that a model uses."""
    from tasks.jobs.predict.trained import WORD, load_trained, shape_names
    from tasks.warehouse.registry import folder_of

    return shape_names(load_trained(folder_of(warehouse.models, WORD, model_id)).shapes)


def predict(warehouse: Warehouse, source: str) -> Predicted:
    """Write the next run of every job of a source, as its champion predicts it, to jobs.predictions."""
    from tasks.jobs.predict.predicting import predict_source

    found = predict_source(warehouse, source)
    logger.info("predicted the next run of %d jobs of source %s by %s", found.n_jobs, source, found.model_id)
    return Predicted(
        model_id=found.model_id,
        data_version=found.data_version,
        predicted_at=utc_text(found.predicted_at.to_pydatetime()),
        n_jobs=found.n_jobs,
    )


def characterise(warehouse: Warehouse, source: str, params: CharacteriseParams) -> Characterised:
    """Find the typical runtime distributions of a source, and the shape of each of its jobs."""
    from tasks.jobs import characterise as characterising

    found = characterising.characterise(warehouse, source, params)
    return Characterised(
        data_version=found.data_version, n_groups=found.n_groups, k={str(kind): k for kind, k in found.k.items()}
    )


def evaluate_logs(
    logs: list[str],
    reader: str,
    read: ReadParams,
    group: GroupParams,
    evaluate: EvaluateParams,
    memory_mb: int,
    folder: str,
) -> dict[str, Any]:
    """The figures of an evaluation of job logs, read into a temporary warehouse; `report`: path of its page.

    folder: where the page and the tables behind it are written."""
    from tasks.jobs import evaluate as evaluating
    from tasks.jobs.intake import Intake

    found = evaluating.evaluate_logs(logs, Intake(evaluating.SOURCE, reader, read, group), evaluate, memory_mb)
    return {**found.figures, "report": write_evaluation(found, ", ".join(Path(log).name for log in logs[:3]), folder)}


def evaluate_source(warehouse: Warehouse, source: str, evaluate: EvaluateParams, folder: str) -> dict[str, Any]:
    """The figures of an evaluation of the runs of a source; no model is kept. folder, `report`: as for logs."""
    from tasks.jobs.predict import training

    found = training.evaluate_source(warehouse, source, evaluate)
    return {**found.figures, "report": write_evaluation(found, f"source {source}", folder)}


def write_evaluation(found: "Evaluation", name: str, folder: str) -> str:
    """Write the tables of an evaluation as Parquet, and a page with its figures; returns the path of the page."""
    from tasks.jobs.evaluate import write_tables
    from tasks.report.evaluation_page import render_evaluation

    write_tables(found, Path(folder))
    return str(render_evaluation(found, name, Path(folder)))
