"""`whorl workloads fingerprint`: the phases of every run of a source."""

from typing import Annotated

import typer

from flows.commands.options import Json, Source
from flows.commands.workloads_options import one_source_with_telemetry
from flows.invocation import invocation_of
from flows.running import flow_running
from flows.shown import as_command
from flows.tables import show_facts


def fingerprint(
    context: typer.Context,
    source: Source = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Ray that does it, such as ray://head:10001, or local", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Cut every run of a source into phases and summarise them.

    A run whose samples and settings have not changed is not done again."""
    from flows.machine_output import show_json
    from tasks.workloads.champions import sources_with_model

    invocation = invocation_of(context)
    flags = {} if ray is None else {"workloads": {"fan_out": {"ray_address": ray}}}
    settings = invocation.resolved(flags).settings
    chosen, workloads = one_source_with_telemetry(settings.warehouse, source), settings.workloads
    with flow_running(invocation):
        from flows.workload_fingerprints import fingerprint_workloads
        from flows.workload_params import FingerprintFlowParams

        asked = FingerprintFlowParams(
            source=chosen,
            identify=workloads.identify,
            fan_out=workloads.fan_out,
            warehouse=settings.warehouse,
        )
        found = fingerprint_workloads(asked)
    if as_json:
        show_json({**found, "source": chosen})
        return
    show_facts(
        {
            "source": chosen,
            "runs": f"{found['n_runs']:,}",
            "cut now": f"{found['n_new']:,}",
            "had their phases": f"{found['n_done']:,}",
        }
    )
    print(f"report: {found['report']}")
    if chosen in sources_with_model(settings.warehouse):
        invocation.note(f"next: {as_command('whorl', 'workloads', 'identify', 'RUN', '--source', chosen)}")
