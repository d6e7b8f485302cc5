"""What the flows about nodes return: keys and figures, which are also what ops.runs keeps of a run."""

from typing import TypedDict

from tasks.nodes.answers import Preprocessed, Ranked
from tasks.nodes.steps import Recording


class NodesRecorded(Recording):
    """A recording. batches: ids of what was put into the landing folder; empty without one."""

    batches: list[str]


class ResultsIngested(TypedDict):
    """What an ingest found. batches: their ids; n_landed: those of them that a recorder had landed.

    n_quarantined: rows of the files that no execution could be made of, and single values of others; data_version: of
    the source, empty where nothing was read."""

    batches: list[str]
    n_landed: int
    n_executions: int
    n_quarantined: int
    data_version: str


class NodesPreprocessed(Preprocessed):
    """What a preprocessing found. report: path of the page."""

    report: str


class NodesRanked(Ranked):
    """What a ranking found. report: path of the page."""

    report: str
