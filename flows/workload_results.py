"""What the flows about workloads return: keys and figures, which are also what ops.runs keeps of a run."""

from typing import TypedDict

from tasks.workloads.model_steps import IdentifiedRuns, TrainedModel


class TelemetryIngested(TypedDict):
    """What an ingest found. batches: their ids; n_quarantined: rows of the files that no run could be made of.

    data_version: of the source, empty where nothing was read."""

    batches: list[str]
    n_runs: int
    n_quarantined: int
    data_version: str


class Fingerprinted(TypedDict):
    """What a fingerprinting found. n_new: runs that were cut; n_done: that had the same phases already.

    report: path of the page."""

    n_runs: int
    n_new: int
    n_done: int
    n_parts: int
    data_version: str
    report: str


class WorkloadTrained(TrainedModel):
    """What a training found. report: path of the page."""

    report: str


class WorkloadsIdentified(IdentifiedRuns):
    """What was identified. report: path of the page."""

    report: str


class WorkloadsWatched(TypedDict):
    """What a watch looked at, and the ids of the alarms that nobody was told of before. model_id: in use.

    report: path of the page that shows them, empty where there is no new alarm."""

    run_ids: list[str]
    model_id: str
    alarms: list[str]
    n_alarms: int
    report: str
