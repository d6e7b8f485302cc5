"""How trained models of nodes are called in the registry, and the line for a source that has none. Light."""

import shlex

WORD = "nodes"
KIND = "fingerprint"  # Perona's network
DETECTOR = "detector"  # what verdicts are told by
LEARNED = "learned.parquet"  # in the folder of a model: what it has seen
TOO_GOOD = (
    "figures of detection, where stress was put on for the recording: this model sees node metrics, and a stressor "
    "shows in them; train --fresh with model.graph.node_metrics: false for figures of what benchmarks say"
)


def no_trained_model(source: str) -> str:
    """The line for a source without a trained model."""
    command = shlex.join(["whorl", "nodes", "train", "--source", source])
    return f"source {source!r} has no trained model of nodes yet; make one with {command}"
