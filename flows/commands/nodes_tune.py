"""`whorl nodes tune`: the parameters of a source's model, searched."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.nodes_options import one_learning_source
from flows.commands.nodes_train import facts_of
from flows.commands.options import Json, Source
from flows.invocation import invocation_of
from flows.running import flow_running
from flows.shown import as_command, counted
from flows.tables import show_facts
from tasks.quantities import number

if TYPE_CHECKING:
    from flows.node_model_results import NodesTuned


def tune(
    context: typer.Context,
    source: Source = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Configurations that are tried (paper: 100)", show_default=False)
    ] = None,
    ray_address: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Ray that runs the trials, such as ray://head:10001", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search the parameters of the model with Optuna through Ray, and train with the best.

    The latest executions, which models are measured on, have no part in it. A search of the same data that was stopped
    goes on; asked for more trials it adds to them."""
    from flows.machine_output import show_json
    from tasks.nodes.perona.params import RAY_SETTING, WITHOUT_RAY
    from tasks.ray_address import check_ray

    invocation = invocation_of(context)
    asked = {"n_trials": trials, "ray_address": ray_address}
    flags: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    settings = invocation.resolved({"nodes": {"search": flags} if flags else {}}).settings
    chosen = one_learning_source(settings.warehouse, source)
    if settings.nodes.search.runner == "ray":
        address = settings.nodes.search.ray_address  # before minutes of work that would end with this line
        check_ray(address, setting=RAY_SETTING, otherwise=WITHOUT_RAY)
    with flow_running(invocation):
        from flows.node_model_params import NodeTuneParams, filled_in
        from flows.node_models import tune_nodes

        found = tune_nodes(filled_in(NodeTuneParams, settings.nodes, settings.warehouse, chosen))
    if as_json:
        show_json({**found, "source": chosen})
        return
    show_facts(_facts(found) | facts_of(found["trained"]))
    print(f"report: {found['report']}")
    invocation.note(f"next: {as_command('whorl', 'nodes', 'fingerprint', '--source', chosen)}")


def _facts(found: "NodesTuned") -> dict[str, str]:
    """What a search came to, in words."""
    from tasks.nodes.perona.params import ModelParams
    from tasks.nodes.perona.search import space_of

    names = [name.split(".") for name in space_of(ModelParams.model_validate(found["best"]))]
    values = [f"{key.replace('_', ' ')} {found['best'][part][key]}" for part, key in names]
    before = f", {found['n_resumed']:,} of them from before" if found["n_resumed"] else ""
    return {
        "searched": f"{counted(found['n_trials'], 'trial')}{before}",
        "least validation loss": number(found["validation_loss"]),
        "best": ", ".join(values),
        "trials": found["trials"],
    }
