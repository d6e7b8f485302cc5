"""The flow that explains the runs of a source: reasons, what counts over all, and checks of both."""

from flows.forms import call, flow
from flows.job_reason_pages import reasons_page
from flows.job_reason_params import ExplainFlowParams, ReasonsFound
from flows.policies import step
from flows.publish import artifact_key, joined, publish
from flows.run_names import of_source
from flows.site_pages import report_part, write_report
from tasks.jobs import steps
from tasks.jobs.explain.params import ExplainParams
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

WORD = "jobs"
TAGS = [WORD]

explain_source = step(steps.explain_source)


@step
def explain_runs(warehouse: Warehouse, source: str, explain: ExplainParams, model_id: str) -> int:
    """Reasons of single runs. model_id: what they are by; a continued run with another model finds them again."""
    return steps.explain_runs(warehouse, source, explain, model_id)


@flow(name="jobs-explain", run_name=lambda: of_source("explain"), tags=TAGS)
def jobs_explain(params: ExplainFlowParams) -> ReasonsFound:
    """Say why the longest runs of the last days took so long, why the next runs of the riskiest jobs may, and what
    makes runs of this source long and its jobs variable; and check these reasons where causes were recorded."""
    warehouse, source = params.warehouse, params.source
    model_id = explain_source(warehouse, source, params.explain)
    n_reasons = explain_runs(warehouse, source, params.explain, model_id)
    asked = {"source": source}
    tables = {
        name: fetch(warehouse, f"SELECT * FROM jobs.{name} WHERE source = $source ORDER BY ALL", asked)
        for name in ("cause_families", "cause_checks", "insights")
    }
    reasons = fetch(warehouse, "SELECT * FROM jobs.reasons WHERE source = $source ORDER BY runtime_s DESC, rank", asked)
    path = write_report(warehouse, WORD, source, f"{model_id} {n_reasons}")
    page = reasons_page(source, reasons, tables["cause_families"], tables["cause_checks"], tables["insights"])
    publish(artifact_key(WORD, source, "reasons"), joined([page, report_part(path)]), f"Why runs of {source} take long")
    checks = tables["cause_checks"]
    ours = checks[(checks["order_name"] == "reasons") & (checks["cause"] == "all")]["mrr"]
    return ReasonsFound(
        model_id=model_id,
        n_runs=int(reasons["run_id"].nunique()),
        n_next=int(reasons["group_key"][reasons["run_id"].isna()].nunique()),
        n_reasons=n_reasons,
        mrr=float(ours.iloc[0]) if len(ours) else None,
        report=path,
    )


def explain_jobs(params: ExplainFlowParams) -> ReasonsFound:
    """Run jobs-explain here and now. Raises WhorlError."""
    return call(jobs_explain, params)
