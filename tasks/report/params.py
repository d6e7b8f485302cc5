"""The parameters of the pages; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params


class WorkloadsReportParams(Params):
    """What the page about workloads shows."""

    n_counters: int = Field(5, ge=1, le=20, description="Counters in the figure of a run over time")
    n_workloads: int = Field(
        12, ge=1, le=24, description="Workloads whose phases are drawn side by side, those with the most runs first"
    )
