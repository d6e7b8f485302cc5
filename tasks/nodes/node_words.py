"""Nodes, models and decisions as words; an emulated node is called so wherever it is shown. Light: no pandas."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tasks.quantities import number, ratio

if TYPE_CHECKING:
    import pandas as pd

EMULATED = "emulated"
NOT_TOLD = "–"
MOST_COUNTS = 6  # of nodes of which none stands out
CHANCE = 0.01  # as suspicion.ALPHA, which needs numpy
UNDECLARED = ("rule", "none")  # origins of an orientation that nobody declared


def called(node: str, is_emulated: Any) -> str:
    """A node with the word for an emulated one; a name that says so itself says it once."""
    return f"{node} ({EMULATED})" if is_true(is_emulated) and EMULATED not in node else node


def better(orientation: Any) -> str:
    """Which way a metric counts."""
    return "more is better" if orientation > 0 else "less is better"


def agreement(agrees: Any) -> str:
    """Whether the paper's rule of orientation says what is declared."""
    if is_missing(agrees):
        return NOT_TOLD
    return "agrees" if agrees else "disagrees"


def counts_as(row: Mapping[Any, Any]) -> str:
    """Which way a metric counts; a metric that is declared to be neither better nor worse counts in no score."""
    told = row.get("is_directed")
    return better(row["orientation"]) if is_missing(told) or told else "neither is better"


def agreement_without(row: Mapping[Any, Any]) -> str:
    """Whether the paper's rule says what is declared by the executions that were not stressed alone."""
    rule = row["rule_without_stressed"]
    if is_missing(rule) or row["orientation_from"] in UNDECLARED:
        return NOT_TOLD
    return agreement(rule == row["orientation"])


def called_all(names: str, emulated: Collection[str]) -> str:
    """Nodes with commas between, as figures name them; emulated ones are called so."""
    each = [names] if names in emulated else names.split(", ")
    return ", ".join(called(node, node in emulated) for node in each)


def decision(row: Mapping[Any, Any]) -> str:
    """Whether a metric is kept, or why it is not."""
    return "kept" if row["is_kept"] else f"dropped: {row['why']}"


def interval(row: Mapping[Any, Any]) -> str:
    """The interval of a score; empty where nobody repeated an execution."""
    is_unknown = is_missing(row["low"]) or is_missing(row["high"])
    return "" if is_unknown else f"{ratio(row['low'])} to {ratio(row['high'])}"


def standing_out(watched: Sequence[Mapping[Any, Any]], names: Mapping[str, str]) -> str:
    """Which nodes stand out by slow executions, since when, and how sure that is; or that none does, and why.

    watched: rows as in nodes.watched, in their order; names: of the nodes, as they are shown."""
    told = [_slow_node(row, names.get(row["node"], row["node"])) for row in watched if is_true(row["stands_out"])]
    if told:
        return "; ".join(told)
    if not watched:
        return "cannot be told: no node ran a benchmark often enough"
    if len(watched) == 1:
        return "cannot be told: no other node to compare with"
    first = watched[0]
    most = [f"{row['n_low']:,} of {row['n_executions']:,}" for row in watched[:MOST_COUNTS]]
    counts = ", ".join(most) + (" …" if len(watched) > MOST_COUNTS else "")
    why = _chance(first["p_value"]) if first["p_value"] >= CHANCE else "too few of any benchmark to matter"
    return f"no node stands out: {counts} executions slow ({why})"


def slow_time(row: Mapping[Any, Any]) -> str:
    """How the slow executions of a node lie in time; empty without any. row: as in nodes.watched."""
    first, last = ("" if is_missing(row[at]) else f"{row[at]:%Y-%m-%d %H:%M}" for at in ("first_at", "last_at"))
    if row["course"] == "lasting":
        return f"slow since {first} UTC" if first else "slow until now"
    if row["course"] == "recovered":
        return (f"was slow from {first} to {last} UTC" if first else "was slow") + ", has recovered"
    return ("now and then" + (f", last {last} UTC" if last else "")) if row["course"] else ""


def _slow_node(row: Mapping[Any, Any], name: str) -> str:
    counts = f"{row['n_low']:,} of {row['n_executions']:,} executions slow"
    worst = f"most in {row['worst_type'].partition('@')[0]}, there at {ratio(row['worst_ratio'])} of its level"
    return f"{name}: {counts}, {worst}; {slow_time(row)} ({_chance(row['p_value'])})"


def _chance(p_value: float) -> str:
    told = number(p_value)
    return f"p {told}" if told.startswith("<") else f"p = {told}"


def is_true(value: Any) -> bool:
    """True for a truth, false for a falsehood and for what nobody says."""
    return not is_missing(value) and bool(value)


def is_missing(value: Any) -> bool:
    """None, NaN, and pandas' own missing value, which is no truth when compared."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def placed_by(scores: "pd.DataFrame") -> str:
    """What the places of nodes rest on. scores: rows of nodes.scores."""
    nodes = scores[scores["aspect"] == "all"]
    by_shared = nodes.loc[nodes["shared"].notna(), "machine_type"].fillna("unknown machine type")
    if by_shared.empty:
        return "by the score, as fewer than ten nodes of a machine type ran two tools or more"
    if len(by_shared) == len(nodes) and len(set(by_shared)) == 1:
        return "by what tools say in common (shared component); by the score in each aspect"
    return f"by the score; within {', '.join(sorted(set(by_shared)))} by what tools say in common (shared component)"


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
