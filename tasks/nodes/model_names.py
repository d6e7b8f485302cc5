"""How models of nodes are called in the registry, and the line for a source that has none. Light: no pandas."""

import shlex

WORD = "nodes"
KIND = "preprocessor"
DETECTOR = "detector"  # what verdicts are told by
NETWORK = "fingerprint"  # Perona's network
LEARNED = "learned.parquet"  # in the folder of a network: what it has seen
TOO_GOOD = (
    "figures of detection, where stress was put on for the recording: this model sees node metrics, and a stressor "
    "shows in them; train --fresh with model.graph.node_metrics: false for figures of what benchmarks say"
)


def no_model(source: str) -> str:
    """The line for a source without a model."""
    command = shlex.join(["whorl", "nodes", "preprocess", "--source", source])
    return f"source {source!r}: its metrics have not been preprocessed yet; do so with {command}"


def left_out(n_executions: int, source: str) -> str:
    """The line for executions of which the preprocessing in use knows no metric; empty if there is none."""
    if not n_executions:
        return ""
    command = shlex.join(["whorl", "nodes", "preprocess", "--source", source])
    told = "1 execution is" if n_executions == 1 else f"{n_executions:,} executions are"
    return f"{told} left out: the preprocessing knows none of their metrics; preprocess again with {command}"


def no_trained_model(source: str) -> str:
    """The line for a source without a trained model."""
    command = shlex.join(["whorl", "nodes", "train", "--source", source])
    return f"source {source!r} has no trained model of nodes yet; make one with {command}"
