"""How models of nodes are called in the registry, and the line for a source that has none. Light: no pandas."""

import shlex

WORD = "nodes"
KIND = "preprocessor"


def no_model(source: str) -> str:
    """The line for a source without a model."""
    command = shlex.join(["whorl", "nodes", "preprocess", "--source", source])
    return f"source {source!r}: its metrics have not been preprocessed yet; do so with {command}"
