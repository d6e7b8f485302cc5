"""Training on a source of the warehouse: learn from what came first, score on what came last, keep the better model."""

import logging
from dataclasses import dataclass, replace

import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput
from tasks.jobs.evaluate import Evaluation, evaluate_runs, key_figures
from tasks.jobs.job_keys import choose_key, read_key
from tasks.jobs.params import EvaluateParams
from tasks.jobs.predict.classifier import LightGbm
from tasks.jobs.predict.outcomes import ENDED
from tasks.jobs.predict.predicting import predict_rows
from tasks.jobs.predict.preparation import fetch_runs, named_columns
from tasks.jobs.predict.trained import KIND, WORD, Trained
from tasks.jobs.predict.trained import champion_of as champion_of
from tasks.jobs.scores import Figures
from tasks.jobs.summary import refuse_mixture
from tasks.report.evaluation import REASON, rows_of
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, new_card, promote, register
from tasks.warehouse.sources import code_version, data_version, replace_rows

METRIC = "predict.crps.model"
HEADLINE = (METRIC, "predict.crps.history", "predict.coverage90.model")  # first in the card, for lists of models
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Training:
    """model_id: of the new model; champion_id: of the one in use afterwards; figures: of the held-out runs."""

    model_id: str
    champion_id: str
    data_version: str
    figures: Figures


def train_source(warehouse: Warehouse, source: str, params: EvaluateParams, *, run_id: str) -> Training:
    """Train on D1 and D2 of a source, score on D3, register the model, and promote it if it is the better one.

    Better: a lower CRPS on the held-out runs than the present champion has on the very same runs. run_id: of the
    flow run. The same data, parameters and run give the same model id. Raises NotFound, BadInput as evaluate_runs."""
    evaluation, version = _evaluated(warehouse, source, params)
    trained = trained_of(evaluation, params)
    headline = {key: evaluation.figures[key] for key in HEADLINE if key in evaluation.figures}
    card = new_card(
        word=WORD,
        source=source,
        kind=KIND,
        run_id=run_id,
        data_version=version,
        seed=params.seed,
        parameters=params.model_dump(mode="json"),
        figures={**headline, **evaluation.figures},
        identity=run_id + params.model_dump_json(),
    )
    register(warehouse, card, trained.save)
    in_use = _promoted(warehouse, card, evaluation)
    logger.info(
        "trained %s of source %s: CRPS %.4g s; champion %s", card.model_id, source, card.metrics[METRIC], in_use
    )
    return Training(card.model_id, in_use, version, evaluation.figures)


def evaluate_source(warehouse: Warehouse, source: str, params: EvaluateParams) -> Evaluation:
    """The same on a source of the warehouse, without a model that is kept; with seed, data_sha256, version.

    data_sha256: hash over the files of the source as the warehouse knows them. Raises as train_source."""
    evaluation, data_sha256 = _evaluated(warehouse, source, params)
    evaluation.figures.update(data_sha256=data_sha256, version=code_version(), seed=params.seed)
    return evaluation


def _evaluated(warehouse: Warehouse, source: str, params: EvaluateParams) -> tuple[Evaluation, str]:
    """The evaluation of a source, and the version of its data."""
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        version = data_version(connection, WORD, source)
        runs, ended = fetch_runs(connection, source), fetch_runs(connection, source, statuses=ENDED)
        named = named_columns(connection, source)
    if runs.empty:
        raise BadInput(f"source {source!r}", "no finished run with a runtime", "runs that have ended")
    key = read_key(warehouse, source)
    with threadpool_limits(1):
        evaluation = evaluate_runs(runs, params, ended, named)
        choice = choose_key(runs, params.predict.characterise.split, key.by if key else ())
    choice = replace(choice, by=key.by, reason=key.reason) if key else replace(choice, by=())
    evaluation.figures.update(key_figures(choice, []))
    return evaluation, version


def trained_of(evaluated: Evaluation, params: EvaluateParams) -> Trained:
    """What an evaluation has learnt, as the files of a model hold it."""
    is_old = ~evaluated.prepared.is_part("D3")
    seen = pd.DataFrame({"run_id": evaluated.prepared.runs["run_id"], "residual": evaluated.runtimes.residuals})[is_old]
    classifiers = {kind: label.fitted for kind, label in evaluated.labels.items() if isinstance(label.fitted, LightGbm)}
    return Trained(
        evaluated.runtimes.model,
        evaluated.prepared.shapes,
        classifiers,
        evaluated.prepared.history_s,
        seen.reset_index(drop=True),
        params.predict,
        evaluated.outcomes,
        evaluated.prepared.categories,
    )


def _promoted(warehouse: Warehouse, card: ModelCard, evaluation: Evaluation) -> str:
    """The id of the model in use after the new one was compared with the champion on the same held-out runs."""
    new = card.metrics[METRIC]
    reason = "first of its kind"
    try:
        present = champion_of(warehouse, card.source)
    except BadInput as error:  # it says: train again
        present, reason = None, "the model in use before cannot be read"
        logger.warning("%s: %s", reason, error)
    if present is None:
        promote(warehouse, WORD, card.model_id, f"{reason}, CRPS {new:.4g} s")
        return card.model_id
    old_card, old = present
    if old_card.model_id == card.model_id:
        return card.model_id
    runs, rows = evaluation.prepared.runs, evaluation.runtimes.rows
    score = score_of(old, runs.iloc[rows], runs)
    if new >= score:
        logger.info("kept %s: CRPS %s s against %.4g s of %s", old_card.model_id, score, new, card.model_id)
        return old_card.model_id
    promote(warehouse, WORD, card.model_id, f"CRPS {new:.4g} s, {old_card.model_id} had {score:.4g} s on the same runs")
    return card.model_id


def score_of(trained: Trained, rows: pd.DataFrame, past: pd.DataFrame) -> float:
    """Mean CRPS of a model on finished runs, in seconds."""
    return float(predict_rows(trained, rows, past).crps(rows["runtime_s"].to_numpy(dtype=float)).mean())


def write_figures(warehouse: Warehouse, source: str, model_id: str, figures: Figures) -> None:
    """Write the figures of one model; twice changes nothing. `<key>.reason` becomes the reason of `<key>`."""
    about = {"source": source, "model_id": model_id}
    replace_rows(warehouse, "jobs", about, {"model_figures": rows_of(figures)}, within=tuple(about))


def read_figures(warehouse: Warehouse, source: str, model_id: str) -> Figures:
    """The figures of one model as its training returned them; none for a model that is not known."""
    with reading(warehouse) as connection:
        rows = connection.execute(
            "SELECT key, value, reason FROM jobs.model_figures WHERE source = $source AND model_id = $model_id "
            "ORDER BY key",
            {"source": source, "model_id": model_id},
        ).fetchall()
    figures: Figures = {}
    for key, value, reason in rows:
        figures |= {key: value} if value is not None else {key: None, f"{key}{REASON}": reason}
    return figures
