"""The flow about shapes of jobs: characterise."""

from flows.forms import call, flow
from flows.job_model_params import CharacteriseFlowParams
from flows.job_results import CharacterisedAndShown
from flows.policies import step
from flows.publish import artifact_key, publish
from flows.run_names import of_source
from flows.site_pages import report_part, write_report
from tasks.jobs import steps

WORD = "jobs"
TAGS = [WORD]

characterise = step(steps.characterise)


@flow(name="jobs-characterise", run_name=lambda: of_source("characterise"), tags=TAGS)
def jobs_characterise(params: CharacteriseFlowParams) -> CharacterisedAndShown:
    """Find the few typical runtime distributions of the first part of a source, and which of them each job follows."""
    warehouse, source = params.warehouse, params.source
    found = characterise(warehouse, source, params.evaluate.predict.characterise)
    from tasks.jobs.characterise import read_characterised
    from tasks.report.jobs_shapes import shapes_result
    from tasks.report.result import as_markdown

    path = write_report(warehouse, WORD, source, f"{found}")
    shown = shapes_result(source, read_characterised(warehouse, source), "")
    drawn = [f"{what}-{kind}" for kind in ("ratio", "delta") for what in ("shapes", "inertia")]
    text = f"{as_markdown(shown, pictures=drawn)}\n{report_part(path)}\n"
    publish(artifact_key(WORD, source, "shapes"), text, f"The typical runtime distributions of source {source}")
    return CharacterisedAndShown(**found, report=path)


def characterise_jobs(params: CharacteriseFlowParams) -> CharacterisedAndShown:
    """Run jobs-characterise here and now. Raises WhorlError."""
    return call(jobs_characterise, params)
