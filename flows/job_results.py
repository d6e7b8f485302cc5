"""What the flows about jobs return: keys and figures, which are also what ops.runs keeps of a run."""

from typing import TypedDict

from tasks.jobs.steps import (
    AskedWhatIf,
    Characterised,
    Predicted,
    TrainedModel,
)


class Ingested(TypedDict):
    """What an ingest found. batches: their ids; report: path of the page, empty without a summary."""

    batches: list[str]
    n_rows: int
    n_quarantined: int
    data_version: str
    report: str


class Summarised(TypedDict):
    """What a summary found. data_version: the files that it saw; report: as for an ingest."""

    data_version: str
    n_runs: int
    n_groups: int
    report: str


class TrainedAndShown(TrainedModel):
    """What a training found. report: path of the page of the source, empty without a summary."""

    report: str


class PredictedAndShown(Predicted):
    """What a prediction found. report: path of the page of the source, empty without a summary."""

    report: str


class CharacterisedAndShown(Characterised):
    """What a characterisation found. report: path of the page of the source, empty without a summary."""

    report: str


class AskedAndShown(AskedWhatIf):
    """What a what-if question found. report: path of the page of the source, empty without a summary."""

    report: str


class Watched(TypedDict):
    """The ids of the new alarms. report: path of the page that shows them, "" where it was not written anew."""

    alarms: list[str]
    n_alarms: int
    report: str


class Recorded(TypedDict):
    """The folder of a recording, the runs that were added, and the recorder's own cost in cores.

    isolation: what held vertices to their tokens: cgroups or threads; none where nothing was left to run."""

    folder: str
    isolation: str
    n_runs: int
    own_cores_ratio: float
