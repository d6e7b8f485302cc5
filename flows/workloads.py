"""The flows of the word `workloads`: recording."""

from prefect.runtime import flow_run

from flows.forms import call, flow
from flows.policies import step
from flows.workload_params import WorkloadRecordParams
from tasks.workloads import steps
from tasks.workloads.steps import Recording

WORD = "workloads"
TAGS = [WORD]

record = step(steps.record)


@flow(
    name="workloads-record",
    run_name=lambda: f"record workloads for {flow_run.parameters['record'].minutes:g} minutes",
    tags=TAGS,
)
def workloads_record(params: WorkloadRecordParams) -> Recording:
    """Run real workloads on the worker's machine and record its telemetry; a run that is continued goes on."""
    return Recording(**record(params.record, params.folder.replace("{run}", str(flow_run.id)[:8])))


def record_workloads(params: WorkloadRecordParams) -> Recording:
    """Run workloads-record here and now. Raises WhorlError."""
    return call(workloads_record, params)
