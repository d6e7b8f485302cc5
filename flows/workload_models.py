"""The flows about models of workloads: train, identify, evaluate."""

from typing import Any

from prefect.runtime import flow_run

from flows.forms import call, flow
from flows.policies import step
from flows.publish import artifact_key, joined, publish
from flows.run_names import files_or_source, of_evaluation, of_source
from flows.site_pages import confusion_part, publish_summary, report_part, timeline_part, write_report
from flows.workload_model_pages import evaluation_page, identifications_page, training_page
from flows.workload_model_params import WorkloadEvaluateParams, WorkloadIdentifyParams, WorkloadTrainParams
from flows.workload_results import WorkloadsIdentified, WorkloadTrained
from tasks.workloads import model_steps
from tasks.workloads.figure_rows import read_confusion, read_figures
from tasks.workloads.identification_rows import read_identifications
from tasks.workloads.reader_names import reader_asked_for

WORD = "workloads"
TAGS = [WORD]

train = step(model_steps.train)
identify = step(model_steps.identify)
evaluate_files = step(model_steps.evaluate_files)
evaluate_source = step(model_steps.evaluate_source)


@flow(name="workloads-train", run_name=lambda: of_source("train on workloads of"), tags=TAGS)
def workloads_train(params: WorkloadTrainParams) -> WorkloadTrained:
    """Train a model of the workloads of a source, and put it into use if it is better than the one before.

    It learns from labelled runs and is measured on those that were held out: the last round, or the later part of each
    workload. Better: more of the very same held-out runs identified. Models stay until they are pruned, so
    'whorl models rollback' brings the former one back."""
    warehouse, source = params.warehouse, params.source
    found = train(warehouse, source, params.identify, params.train, params.left_out, str(flow_run.id))
    path = write_report(warehouse, WORD, source, found["model_id"])
    figures = read_figures(warehouse, source, found["model_id"])
    confusion = read_confusion(warehouse, source, found["model_id"])
    told = training_page(source, found, figures, confusion)
    parts = [told, confusion_part(confusion, found["model_id"]), report_part(path)]
    publish(artifact_key(WORD, source, "model"), joined(parts), f"The model of the workloads of source {source}")
    return WorkloadTrained(**found, report=path)


@flow(name="workloads-identify", run_name=lambda: of_source("identify workloads of"), tags=TAGS)
def workloads_identify(params: WorkloadIdentifyParams) -> WorkloadsIdentified:
    """Say what ran, run by run, by the model in use, and keep it; an unknown workload is told with its nearest.

    A run that lacks the counters of the model is listed, and does not hold up the others."""
    warehouse, source = params.warehouse, params.source
    found = identify(warehouse, source, params.run_ids or None, params.which)
    path = write_report(warehouse, WORD, source, f"{found['model_id']} {found['run_ids']}")
    rows = read_identifications(warehouse, source, found["run_ids"])
    parts = [identifications_page(source, found, rows), timeline_part(rows), report_part(path)]
    publish_summary(warehouse, WORD, source, path)
    publish(artifact_key(WORD, source, "identifications"), joined(parts), f"What ran in source {source}")
    return WorkloadsIdentified(**found, report=path)


@flow(name="workloads-evaluate", run_name=lambda: of_evaluation("telemetry"), tags=TAGS)
def workloads_evaluate(params: WorkloadEvaluateParams) -> dict[str, Any]:
    """Measure how well workloads are told apart, and known from unknown; figures, tables and a page are kept, no model.

    The figures are the result of the run, so 'whorl runs compare A B' shows two experiments beside each other; the page
    of a source shows the last ones."""
    warehouse, source = params.warehouse, params.source
    folder = str(warehouse.home / "reports" / f"workloads-evaluation-{str(flow_run.id)[:8]}")
    if params.telemetry or params.read.manifest:
        reader = reader_asked_for(params.reader)
        figures = evaluate_files(params.telemetry, reader, params.read, params.evaluate, params.identify, folder)
        what, key = files_or_source("telemetry"), "files"
    else:
        figures = evaluate_source(warehouse, source, params.evaluate, params.identify, folder)
        write_report(warehouse, WORD, source, str(flow_run.id))
        what, key = f"source {source}", source
    page = joined(
        [evaluation_page(what, figures, model_steps.drawn_evaluation(folder)), report_part(figures["report"])]
    )
    publish(artifact_key(WORD, key, "evaluation"), page, f"Evaluation of {what}")
    return figures


def train_workloads(params: WorkloadTrainParams) -> WorkloadTrained:
    """Run workloads-train here and now. Raises WhorlError."""
    return call(workloads_train, params)


def identify_workloads(params: WorkloadIdentifyParams) -> WorkloadsIdentified:
    """Run workloads-identify here and now. Raises WhorlError."""
    return call(workloads_identify, params)


def evaluate_workloads(params: WorkloadEvaluateParams) -> dict[str, Any]:
    """Run workloads-evaluate here and now. Raises WhorlError."""
    return call(workloads_evaluate, params)
