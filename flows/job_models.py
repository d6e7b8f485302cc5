"""The flows about models of jobs: train, predict, evaluate."""

from typing import Any

from prefect.runtime import flow_run

from flows.forms import call, flow
from flows.job_model_figures import draw_largest_job, draw_riskiest_job
from flows.job_model_pages import evaluation_page, predictions_page, training_page
from flows.job_model_params import EvaluateFlowParams, PredictFlowParams, TrainFlowParams
from flows.job_results import PredictedAndShown, TrainedAndShown
from flows.policies import step
from flows.publish import artifact_key, joined, publish
from flows.run_names import files_or_source, of_evaluation, of_source
from flows.site_pages import report_part, write_report
from tasks.jobs import steps
from tasks.jobs.offered_names import reader_asked_for
from tasks.jobs.predict.training import read_figures

WORD = "jobs"
TAGS = [WORD]

train = step(steps.train)
predict = step(steps.predict)
evaluate_logs = step(steps.evaluate_logs)
evaluate_source = step(steps.evaluate_source)


@flow(name="jobs-train", run_name=lambda: of_source("train on"), tags=TAGS)
def jobs_train(params: TrainFlowParams) -> TrainedAndShown:
    """Train a model of the runtimes of a source, and put it into use if it is better than the one before.

    It learns from the earlier runs and is measured on the later ones, beside its baselines; better is a lower CRPS on
    the very same runs. Models stay until they are pruned, so 'whorl models rollback' brings the former one back."""
    warehouse, source = params.warehouse, params.source
    found = train(warehouse, source, params.evaluate, str(flow_run.id))
    path = write_report(warehouse, WORD, source, f"{found}")
    page = training_page(source, found, read_figures(warehouse, source, found["model_id"]))
    parts = [page, draw_largest_job(warehouse, source, found["model_id"]), report_part(path)]
    publish(artifact_key(WORD, source, "model"), joined(parts), f"The model of the jobs of source {source}")
    return TrainedAndShown(**found, report=path)


@flow(name="jobs-predict", run_name=lambda: of_source("predict"), tags=TAGS)
def jobs_predict(params: PredictFlowParams) -> PredictedAndShown:
    """Predict the next run of every job of a source by the model in use; the riskiest jobs are listed first."""
    from tasks.jobs.predict.predicting import read_predictions

    warehouse, source, least = params.warehouse, params.source, params.summary.min_support
    found = predict(warehouse, source)
    path = write_report(warehouse, WORD, source, f"{found}")
    riskiest = read_predictions(warehouse, source, min_before=least)
    page = predictions_page(source, found, riskiest, len(riskiest), least)
    figure = draw_riskiest_job(warehouse, source, found["model_id"], least, found["data_version"])
    page = joined([page, figure, report_part(path)])
    publish(artifact_key(WORD, source, "predictions"), page, f"The next runs of source {source}")
    return PredictedAndShown(**found, report=path)


@flow(name="jobs-evaluate", run_name=lambda: of_evaluation("logs", "logs"), tags=TAGS)
def jobs_evaluate(params: EvaluateFlowParams) -> dict[str, Any]:
    """Measure how well runtimes are predicted with these parameters; figures, tables and a page are kept, no model.

    The figures are the result of the run, so 'whorl runs compare A B' shows two experiments beside each other."""
    folder = str(params.warehouse.home / "reports" / f"jobs-evaluation-{str(flow_run.id)[:8]}")
    if params.logs:
        reader, memory_mb = reader_asked_for(params.reader), params.warehouse.memory_mb
        figures = evaluate_logs(params.logs, reader, params.read, params.group, params.evaluate, memory_mb, folder)
        what = "job logs"
    else:
        figures = evaluate_source(params.warehouse, params.source, params.evaluate, folder)
        what = f"source {params.source}"
    shown = files_or_source("logs", "logs") if params.logs else what
    page = joined([evaluation_page(shown, figures), report_part(figures["report"])])
    publish(artifact_key(WORD, "logs" if params.logs else params.source, "evaluation"), page, f"Evaluation of {what}")
    return figures


def train_jobs(params: TrainFlowParams) -> TrainedAndShown:
    """Run jobs-train here and now. Raises WhorlError."""
    return call(jobs_train, params)


def predict_jobs(params: PredictFlowParams) -> PredictedAndShown:
    """Run jobs-predict here and now. Raises WhorlError."""
    return call(jobs_predict, params)


def evaluate_jobs(params: EvaluateFlowParams) -> dict[str, Any]:
    """Run jobs-evaluate here and now. Raises WhorlError."""
    return call(jobs_evaluate, params)
