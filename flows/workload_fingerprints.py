"""The flow about fingerprints: the phases of every run of a source, each found once."""

from flows.forms import call, flow
from flows.policies import step
from flows.publish import artifact_key, publish
from flows.run_names import of_source
from flows.site_pages import publish_summary, write_report
from flows.workload_pages import fingerprints_page
from flows.workload_params import FingerprintFlowParams
from flows.workload_ray import fanned_out
from flows.workload_results import Fingerprinted
from tasks.workloads import fingerprint_steps

WORD = "workloads"
TAGS = [WORD]

plan_fingerprints = step(fingerprint_steps.plan_fingerprints)
cut_phases = step(fingerprint_steps.cut_phases)
keep_phases = step(fingerprint_steps.keep_phases)
clear_parts = step(fingerprint_steps.clear_parts)


@flow(
    name="workloads-fingerprint",
    run_name=lambda: of_source("fingerprint the runs of"),
    tags=TAGS,
)
def workloads_fingerprint(params: FingerprintFlowParams) -> Fingerprinted:
    """Find the phases of every run of a source, and write them to the warehouse.

    A run whose samples and parameters have not changed is not done again. The work is shared out in parts, which are
    tried again on their own, and run on Ray where an address is set; a run that is continued goes on with the parts
    that are missing."""
    warehouse, source = params.warehouse, params.source
    plan = plan_fingerprints(warehouse, source, params.identify.fingerprint, params.fan_out)
    n_new = sum(keep_phases(warehouse, source, path) for path in fanned_out(cut_phases, plan["parts"], params.fan_out))
    clear_parts(plan["parts"])
    found = Fingerprinted(
        n_runs=plan["n_runs"],
        n_new=n_new,
        n_done=plan["n_done"],
        n_parts=len(plan["parts"]),
        data_version=plan["data_version"],
        report=write_report(warehouse, WORD, source, f"{plan['data_version']} {plan['parts']}"),
    )
    publish_summary(warehouse, WORD, source, found["report"])
    publish(artifact_key(WORD, source, "fingerprints"), fingerprints_page(warehouse, source, found), _title(source))
    return found


def fingerprint_workloads(params: FingerprintFlowParams) -> Fingerprinted:
    """Run workloads-fingerprint here and now. Raises WhorlError."""
    return call(workloads_fingerprint, params)


def _title(source: str) -> str:
    return f"The phases of the runs of source {source}"
