"""The flow of what-if questions about jobs: what would reduce the variation of the next run."""

from flows.forms import call, flow
from flows.job_results import AskedAndShown
from flows.job_whatif_pages import whatif_page
from flows.job_whatif_params import WhatIfFlowParams
from flows.policies import step
from flows.publish import artifact_key, joined, publish
from flows.run_names import of_source
from flows.site_pages import report_part, write_report
from tasks.jobs import steps

WORD = "jobs"
TAGS = [WORD]

ask_what_ifs = step(steps.ask_what_ifs)


@flow(name="jobs-whatif", run_name=lambda: of_source("what if in"), tags=TAGS)
def jobs_whatif(params: WhatIfFlowParams) -> AskedAndShown:
    """Say what would follow from changes of the jobs of a source, by the model in use, and what must not be concluded.

    Where runs were done again with a change, the predicted effect is held against the measured one."""
    from tasks.report.jobs import fetch_what_ifs

    warehouse, source = params.warehouse, params.source
    names: list[str] = list(params.scenarios)
    found = ask_what_ifs(warehouse, source, names, params.sets, params.shifts, params.stds, params.whatif)
    answers = [one for one in fetch_what_ifs(warehouse, source) if one.scenario in found["scenarios"]]
    path = write_report(warehouse, WORD, source, f"{found}")
    page = joined([whatif_page(source, answers, found["refused"]), report_part(path)])
    publish(artifact_key(WORD, source, "whatif"), page, f"What would change the runtimes of the jobs of {source}")
    return AskedAndShown(**found, report=path)


def ask_jobs(params: WhatIfFlowParams) -> AskedAndShown:
    """Run jobs-whatif here and now. Raises WhorlError."""
    return call(jobs_whatif, params)
