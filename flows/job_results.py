"""What the flows about jobs return: keys and figures, which are also what ops.runs keeps of a run."""

from typing import TypedDict

from tasks.jobs.steps import (
    AskedWhatIf,
    Characterised,
    Predicted,
    TrainedModel,
)


class Ingested(TypedDict):
    """What an ingest found. batches: their ids; report: path of the page, empty without a summary.

    predictions_report: path of the page of what comes next, empty while nothing stands on it."""

    batches: list[str]
    n_rows: int
    n_quarantined: int
    data_version: str
    report: str
    predictions_report: str


class Summarised(TypedDict):
    """What a summary found. data_version: the files that it saw; report, predictions_report: as for an ingest."""

    data_version: str
    n_runs: int
    n_groups: int
    report: str
    predictions_report: str


class TrainedAndShown(TrainedModel):
    """What a training found. predictions_report: path of the page of what comes next."""

    predictions_report: str


class PredictedAndShown(Predicted):
    """What a prediction found. predictions_report: path of the page of what comes next."""

    predictions_report: str


class CharacterisedAndShown(Characterised):
    """What a characterisation found. predictions_report: path of the page of what comes next."""

    predictions_report: str


class AskedAndShown(AskedWhatIf):
    """What a what-if question found. predictions_report: path of the page of what comes next."""

    predictions_report: str


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
