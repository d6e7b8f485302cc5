"""`whorl nodes report`, also `whorl report nodes`: the page about the nodes of a source."""

import typer

from flows.commands.options import Json, Source


def report(context: typer.Context, source: Source = None, as_json: Json = False) -> None:
    """Write the page of a source and print its path.

    Ranking, scores by aspect, verdicts, repeatability, and what became of each metric; each node has a page."""
    from flows.commands import pages

    pages.report(context, "nodes", source, as_json=as_json)
