"""`whorl nodes report`, also `whorl report nodes`: the page about the nodes of a source."""

import typer

from flows.commands.nodes_options import one_node_source
from flows.commands.options import Json, Source
from flows.invocation import Invocation, invocation_of
from flows.progress_bar import progress_bar


def report(context: typer.Context, source: Source = None, as_json: Json = False) -> None:
    """Write the page of a source and print its path.

    The page is one HTML file that needs no network: ranking, scores by aspect, repeatability, and
    what became of each metric."""
    show_report(invocation_of(context), source, as_json=as_json)


def show_report(invocation: Invocation, source: str | None, *, as_json: bool) -> None:
    """Write the page of a source, and print its path."""
    from flows.machine_output import show_json
    from tasks.report.nodes_page import render_nodes

    settings = invocation.settings
    chosen = one_node_source(settings.warehouse, source)
    with progress_bar(invocation):
        path = render_nodes(settings.warehouse, chosen, settings.nodes.report)
    if as_json:
        show_json({"word": "nodes", "source": chosen, "path": str(path)})
    else:
        print(path)
