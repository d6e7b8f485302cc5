"""What the demo shows of workloads: the recording that whorl ships is read, learned but for one run, which is named."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from flows.forms import call
from flows.workload_model_params import WorkloadIdentifyParams, WorkloadTrainParams
from flows.workload_models import workloads_identify, workloads_train
from flows.workload_params import WorkloadIngestParams
from flows.workloads import workloads_ingest
from tasks.errors import BadInput
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import champion
from tasks.workloads.champions import KIND, WORD
from tasks.workloads.identification_rows import latest_labelled_run, read_identifications
from tasks.workloads.params import WorkloadsParams
from tasks.workloads.quick_training_params import quick

RECORDED = Path(__file__).parents[1] / "data" / "recorded" / WORD
UNDISTURBED = "runs-*.parquet"  # beside them lie the runs that something disturbed


class WorkloadTold(TypedDict):
    """What was found about the run that was held out: what it was, and what the model called it (None: unknown).

    nearest_distance: in multiples of what is usual between runs of the nearest workload; accuracy: of the model on the
    round that it held out; report: path of the page."""

    run_id: str
    label: str
    workload: str | None
    confidence: float
    nearest: str
    nearest_distance: float
    reasons: list[str]
    model_id: str
    accuracy: float
    n_runs: int
    report: str


def tell_workload(warehouse: Warehouse, workloads: WorkloadsParams, source: str) -> WorkloadTold:
    """Read the recorded workloads, learn all runs but the last one, and say what that is. Raises WhorlError.

    A model of these very data that has not seen the run is used again."""
    paths = [str(path) for path in sorted(RECORDED.glob(UNDISTURBED))]
    if not paths:
        raise BadInput(RECORDED, "no recording of workloads", UNDISTURBED, "bring the files back")
    read = call(
        workloads_ingest,
        WorkloadIngestParams(telemetry=paths, source=source, read=workloads.read, warehouse=warehouse),
    )
    run_id, label = latest_labelled_run(warehouse, source)
    in_use = champion(warehouse.models, WORD, source, KIND)
    version, left_out = (in_use.data_version, in_use.parameters.get("left_out", [])) if in_use else ("", [])
    if version != read["data_version"] or run_id not in left_out:
        call(
            workloads_train,
            WorkloadTrainParams(
                source=source,
                identify=quick(workloads.identify),
                train=workloads.train.model_copy(update={"with_machine": False}),
                left_out=[run_id],
                report=workloads.report,
                warehouse=warehouse,
            ),
        )
    found = call(
        workloads_identify,
        WorkloadIdentifyParams(source=source, run_ids=[run_id], report=workloads.report, warehouse=warehouse),
    )
    in_use = champion(warehouse.models, WORD, source, KIND)
    [row] = read_identifications(warehouse, source, [run_id]).to_dict("records")
    return _told(row, run_id, label, in_use.metrics if in_use else {}, found["report"])


def _told(row: Mapping[Any, Any], run_id: str, label: str, metrics: Mapping[str, float], report: str) -> WorkloadTold:
    return WorkloadTold(
        run_id=run_id,
        label=label,
        workload=str(row["workload"]) if row["is_known"] else None,
        confidence=float(row["confidence"]),
        nearest=str(row["nearest"]),
        nearest_distance=float(row["nearest_distance"]),
        reasons=[str(reason) for reason in row["reasons"]],
        model_id=str(row["model_id"]),
        accuracy=metrics.get("held_out.accuracy", float("nan")),
        n_runs=int(metrics.get("trained.n", 0)),
        report=report,
    )
