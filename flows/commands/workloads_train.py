"""`whorl workloads train`: a model of the workloads of a source."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.options import Json, Seed, Source
from flows.commands.workloads_options import one_source_with_telemetry
from flows.invocation import Invocation, invocation_of
from flows.running import flow_running
from flows.shown import as_command, count, runs_or_windows
from flows.tables import show_facts
from tasks.quantities import share
from tasks.workloads.choices import HoldOut

if TYPE_CHECKING:
    from flows.workload_results import WorkloadTrained
    from tasks.settings import Settings

SHARES = {
    "held_out.accuracy": "identified",
    "held_out.macro_f1": "macro F1",
    "held_out.false_unknown": "called unknown",
}


def train(
    context: typer.Context,
    source: Source = None,
    hold_out: Annotated[
        HoldOut | None, typer.Option(help="What is held out: the last round, or the later part", show_default=False)
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(metavar="RUN", help="Id of a run that it must not see; repeatable")
    ] = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Train a model that identifies workloads.

    It learns from labelled runs, is measured on those held out, and is put into use if it is better than the model
    before. 'whorl models list' shows all, 'whorl models rollback' brings the former one back."""
    from flows.machine_output import show_json
    from tasks.workloads.figure_rows import read_figures

    invocation = invocation_of(context)
    flags: dict[str, Any] = {} if seed is None else {"identify": {"seed": seed}}
    flags |= {} if hold_out is None else {"train": {"hold_out": hold_out}}
    settings = invocation.resolved({"workloads": flags}).settings
    chosen = one_source_with_telemetry(settings.warehouse, source)
    found = _trained(invocation, settings, chosen, leave_out or [])
    figures = read_figures(settings.warehouse, chosen, found["model_id"])
    if as_json:
        show_json({**found, "source": chosen, "figures": figures})
        return
    show_facts(_facts(found, figures))
    print(f"report: {found['report']}")
    invocation.note(f"next: {as_command('whorl', 'workloads', 'identify', '--live', '--source', chosen)}")


def _trained(invocation: Invocation, settings: "Settings", source: str, left_out: list[str]) -> "WorkloadTrained":
    with flow_running(invocation):
        from flows.workload_model_params import WorkloadTrainParams
        from flows.workload_models import train_workloads

        workloads = settings.workloads
        return train_workloads(
            WorkloadTrainParams(
                source=source,
                identify=workloads.identify,
                train=workloads.train,
                left_out=left_out,
                warehouse=settings.warehouse,
            )
        )


def _facts(found: "WorkloadTrained", figures: dict[str, Any]) -> dict[str, str]:
    learned, held_out = (
        runs_or_windows(figures[f"{part}.n"], figures.get(f"{part}.n_windows")) for part in ("trained", "held_out")
    )
    champion = found["champion_id"]
    in_use = "this model" if champion == found["model_id"] else f"{champion}: no worse on the same runs, so it stays"
    return {
        "model": found["model_id"],
        "in use": in_use,
        "learned": f"{learned} of {count(figures['trained.classes'])} workloads",
        "held out": f"{held_out} ({found['held_out']}), which the figures below are of",
        **{words: share(figures[key]) for key, words in SHARES.items()},
        "data version": found["data_version"],
    }
