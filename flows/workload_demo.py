"""What the demo shows of workloads: the recording that whorl ships is read, learned but for one run, which is named."""

from typing import TYPE_CHECKING, TypedDict

from flows.forms import call
from flows.workload_model_params import WorkloadIdentifyParams, WorkloadTrainParams
from flows.workload_models import workloads_identify, workloads_train
from flows.workload_params import WorkloadIngestParams
from flows.workloads import workloads_ingest
from tasks import datasets
from tasks.errors import BadInput
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, champion, read_card
from tasks.workloads.champions import KIND, WORD
from tasks.workloads.identification_rows import latest_labelled_run
from tasks.workloads.identifying import identify_runs
from tasks.workloads.params import WorkloadsParams
from tasks.workloads.stored import fetch_runs

if TYPE_CHECKING:
    from tasks.workloads.identify.identification import Identification

N_NEAREST = 3
UNDISTURBED = "runs-*.parquet"  # beside them lie the runs that something disturbed


class Near(TypedDict):
    """A known workload near a run. distance: mean squared deviation of its counters from it."""

    workload: str
    distance: float


class WorkloadTold(TypedDict):
    """What was found about the run that was held out: what it was, and what the model called it (None: unknown).

    nearest: the known workloads that it is most like, nearest first; accuracy: of the model on the n_held_out runs of
    the round that it held out; n_runs, n_workloads: that it has learned; report: path of the page."""

    run_id: str
    label: str
    workload: str | None
    confidence: float
    nearest: list[Near]
    reasons: list[str]
    model_id: str
    accuracy: float
    n_held_out: int
    n_runs: int
    n_workloads: int
    report: str


def tell_workload(warehouse: Warehouse, workloads: WorkloadsParams, source: str) -> WorkloadTold:
    """Read the recorded workloads, learn all runs but the last one, and say what that is. Raises WhorlError.

    A model of these very data that has not seen the run is used again."""
    recorded = datasets.RECORDED / WORD
    paths = [str(path) for path in sorted(recorded.glob(UNDISTURBED))]
    if not paths:
        raise BadInput(recorded, "no recording of workloads", UNDISTURBED, "bring the files back")
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
                identify=workloads.identify,
                train=workloads.train,
                left_out=[run_id],
                warehouse=warehouse,
            ),
        )
    found = call(
        workloads_identify,
        WorkloadIdentifyParams(source=source, run_ids=[run_id], warehouse=warehouse),
    )
    asked = identify_runs(warehouse, source, fetch_runs(warehouse, source, [run_id]))
    if asked.refused:
        raise asked.refused[0]
    [one] = asked.found
    return _told(one, label, read_card(warehouse.models, WORD, asked.model_id), found["report"])


def _told(one: "Identification", label: str, card: ModelCard, report: str) -> WorkloadTold:
    return WorkloadTold(
        run_id=one.run_id,
        label=label,
        workload=one.workload if one.is_known else None,
        confidence=one.confidence,
        nearest=[Near(workload=near.workload, distance=near.distance) for near in one.nearest[:N_NEAREST]],
        reasons=list(one.reasons),
        model_id=card.model_id,
        accuracy=card.metrics["held_out.accuracy"],
        n_held_out=int(card.metrics["held_out.n"]),
        n_runs=int(card.metrics["trained.n"]),
        n_workloads=int(card.metrics["trained.classes"]),
        report=report,
    )
