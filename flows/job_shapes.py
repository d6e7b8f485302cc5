"""The flow about shapes of jobs: characterise."""

from flows.forms import call, flow
from flows.job_model_params import CharacteriseFlowParams
from flows.job_reports import fresh_page, page_part
from flows.job_results import CharacterisedAndShown
from flows.policies import step
from flows.publish import artifact_key, publish
from flows.run_names import of_source
from tasks.jobs import steps

WORD = "jobs"
TAGS = [WORD]

characterise = step(steps.characterise)


@flow(name="jobs-characterise", run_name=lambda: of_source("characterise"), tags=TAGS)
def jobs_characterise(params: CharacteriseFlowParams) -> CharacterisedAndShown:
    """Find the few typical runtime distributions of the first part of a source, and which of them each job follows."""
    warehouse, source = params.warehouse, params.source
    found = characterise(warehouse, source, params.evaluate.predict.characterise)
    from tasks.report.shapes_artifact import shapes_artifact  # matplotlib: a second that other flows need not pay

    path = fresh_page(warehouse, source, found)
    text = f"{shapes_artifact(warehouse, source)}\n{page_part(path)}\n"
    publish(artifact_key(WORD, source, "shapes"), text, f"The typical runtime distributions of source {source}")
    return CharacterisedAndShown(**found, predictions_report=path)


def characterise_jobs(params: CharacteriseFlowParams) -> CharacterisedAndShown:
    """Run jobs-characterise here and now. Raises WhorlError."""
    return call(jobs_characterise, params)
