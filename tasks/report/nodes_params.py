"""The parameters of the page about nodes; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params


class NodesReportParams(Params):
    """What the page about nodes shows."""

    n_rows: int = Field(40, ge=1, le=10_000, description="Rows of each table of scores, repeatability and files")
    n_nodes: int = Field(12, ge=1, le=100, description="Nodes in each figure, the best first")
