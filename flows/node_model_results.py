"""What the flows about Perona's model return: keys and figures."""

from tasks.nodes.learned_steps import FingerprintedNodes, TrainedNodes, TunedNodes, WatchedNodes


class NodesTrained(TrainedNodes):
    """A training. report: path of the page."""

    report: str


class NodesTuned(TunedNodes):
    """A search. trained: the training with the best parameters; report: path of the page."""

    trained: TrainedNodes
    report: str


class NodesFingerprinted(FingerprintedNodes):
    """A fingerprinting. report: path of the page."""

    report: str


class NodesWatched(WatchedNodes):
    """A watch. asked: deployments that were started for suspected nodes; cannot_ask: suspected nodes without one.

    report: path of the page."""

    asked: list[str]
    cannot_ask: list[str]
    report: str
