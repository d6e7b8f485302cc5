"""`whorl nodes preprocess`: which metrics of a source count, which way, and against which reference."""

from typing import Annotated, Any, Literal

import typer

from flows.commands.nodes_options import one_learning_source
from flows.commands.options import Json, Source
from flows.invocation import invocation_of
from flows.running import flow_running
from flows.shown import as_command
from flows.tables import show_facts


def preprocess(
    context: typer.Context,
    source: Source = None,
    variant: Annotated[
        Literal["robust", "paper"] | None,
        typer.Option(help="Whose rules hold: ours, or the paper's", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Decide which metrics count and which way, and freeze the reference that nodes are measured against.

    Done again with other data or settings, scores are no longer comparable with those before. 'whorl models rollback'
    brings the former reference back."""
    from flows.machine_output import show_json

    invocation = invocation_of(context)
    flags: dict[str, Any] = {} if variant is None else {"nodes": {"preprocess": {"variant": variant}}}
    settings = invocation.resolved(flags).settings
    chosen, nodes = one_learning_source(settings.warehouse, source), settings.nodes
    with flow_running(invocation):
        from flows.node_answer_params import NodePreprocessParams
        from flows.node_answers import preprocess_nodes

        found = preprocess_nodes(
            NodePreprocessParams(
                source=chosen,
                preprocess=nodes.preprocess,
                score=nodes.score,
                warehouse=settings.warehouse,
            )
        )
    if as_json:
        show_json({**found, "source": chosen})
        return
    show_facts(
        {
            "source": chosen,
            "model": found["model_id"],
            "executions": f"{found['n_executions']:,}",
            "metrics kept": f"{found['n_kept']:,} of {found['n_recorded']:,} (the paper: 54 of 153)",
            "the paper's rule contradicts": f"{found['n_disagree']:,} of them in what is declared",
            "reference": found["reference"],
        }
    )
    print(f"report: {found['report']}")
    invocation.note(f"next: {as_command('whorl', 'nodes', 'metrics', '--source', chosen)}")
