"""`whorl nodes explain`: why an execution or a node was flagged, or was not."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.nodes_options import one_trained_source
from flows.commands.options import Json, Source
from flows.invocation import invocation_of

if TYPE_CHECKING:
    from tasks.nodes.verdict_steps import Explained

MOST = 5  # flagged executions of a node that are told one by one


def explain(
    context: typer.Context,
    what: Annotated[str, typer.Argument(metavar="NODE|EXECUTION", help="A node, or the id of one of its executions")],
    source: Source = None,
    as_json: Json = False,
) -> None:
    """Say why an execution or a node looks degraded or does not, in the tool's own metrics and units.

    Verdicts are those of the last 'whorl nodes fingerprint' or 'watch'; without any they are made now."""
    from tasks.nodes.verdict_steps import explain as steps_explain

    settings = invocation_of(context).settings
    chosen = one_trained_source(settings.warehouse, source)
    found = steps_explain(settings.warehouse, chosen, what, settings.nodes.score)
    if as_json:
        from flows.machine_output import show_json

        show_json({**found, "source": chosen})
        return
    for line in _lines(found):
        print(line)


def _lines(found: "Explained") -> list[str]:
    """The answer first, then each flagged execution with its reasons, the latest first."""
    lines = [found["answer"], *found["states"]]
    for one in found["executions"][:MOST]:
        lines += ["", _head(one), *(f"  {reason}" for reason in one["reasons"] or ["no metric alone says so"])]
    if len(found["executions"]) > MOST:
        lines += ["", f"and {len(found['executions']) - MOST:,} more; --json has them all"]
    return lines


def _head(one: dict[str, Any]) -> str:
    when = f" at {one['started_at'][:16].replace('T', ' ')} UTC" if one["started_at"] else ""
    sure = "no verdict" if one["probability"] is None else f"probability {one['probability']:.2f}"
    return (
        f"{one['execution_id']} ({one['benchmark']}){when}: {'flagged' if one['is_flagged'] else 'not flagged'}, {sure}"
    )
