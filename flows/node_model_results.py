"""What the flows about Perona's model return: keys and figures."""

from tasks.nodes.network_steps import TrainedNodes, TunedNodes
from tasks.nodes.verdict_steps import Judged, LearnedVerdicts, WatchedNodes


class NodesTrained(TrainedNodes):
    """A training. report: path of the page."""

    report: str


class NodesTuned(TunedNodes):
    """A search. trained: the training with the best parameters; report: path of the page."""

    trained: TrainedNodes
    report: str


class NodesDetector(LearnedVerdicts):
    """The training of a detector. report: path of the page."""

    report: str


class NodesFingerprinted(Judged):
    """Verdicts, and fingerprints where a network was trained (network_id; empty where none was).

    n_fingerprints: executions that have one. best: first place by fingerprints. report: path of the page."""

    network_id: str
    n_fingerprints: int
    best: list[str]
    report: str


class NodesWatched(WatchedNodes):
    """A watch. asked: deployments that were started for suspected nodes; cannot_ask: suspected nodes without one.

    report: path of the page."""

    asked: list[str]
    cannot_ask: list[str]
    report: str
