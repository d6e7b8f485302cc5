"""What the artifacts about Perona's model say, as markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from flows.node_pages import MAX_ROWS, rest
from flows.publish import joined, table
from flows.shown import counted
from tasks.markdown import plain
from tasks.nodes.network_steps import FingerprintedNodes, TrainedNodes, TunedNodes
from tasks.nodes.node_words import called, interval
from tasks.nodes.verdict_steps import Judged, LearnedVerdicts, WatchedNodes
from tasks.quantities import number, ratio
from tasks.report.nodes import cost_words, counted_states, excluded_nodes, states_table
from tasks.report.result import table_markdown

WORDS = {
    "auprc": "average precision",
    "f1_outlier": "F1, degraded",
    "precision": "precision",
    "recall": "recall",
    "false_alarms_per_1000": "flagged of 1,000 calm",
}


def training_page(source: str, found: TrainedNodes) -> str:
    """What a training learned, and how good it is on executions that it did not see."""
    is_used = found["champion_id"] == found["model_id"]
    in_use = "this model" if is_used else f"{found['champion_id']}: this one was not found to be better"
    in_use += "; made before, of the same data, with the same parameters and code" if found["is_from_before"] else ""
    rows = [(name, number(value)) for name, value in found["figures"].items()]
    return joined(
        [
            f"# The model of the nodes of source {plain(source)}",
            f"Model {plain(found['model_id'])}, data version {plain(found['data_version'])}. In use: {plain(in_use)}.",
            f"It learned {counted(found['n_learned'], 'execution')}; the figures are of the latest "
            f"{found['n_tested']:,}, which it did not see. The better model is chosen by {plain(found['metric'])}.",
            table(("figure", "value"), rows) if rows else "",
        ]
    )


def detector_page(source: str, found: LearnedVerdicts) -> str:
    """What a detector learned, how good it is on executions that taught it nothing, and what its threshold costs."""
    rows = [(WORDS.get(name, name), number(value)) for name, value in found["figures"].items()]
    return joined(
        [
            f"# The detector of the nodes of source {plain(source)}",
            f"{budget_words(found)} Model {plain(found['model_id'])}, data version {plain(found['data_version'])}.",
            f"It learned {counted(found['n_learned'], 'execution')}, {found['n_stressed']:,} of them known to be "
            "stressed; the figures are of each by what the other fifths of its type taught."
            if rows
            else f"It learned {counted(found['n_learned'], 'execution')}; no stress is known, so nothing can be "
            "measured, and verdicts rest on the headline metrics of each tool.",
            table(("figure", "value"), rows) if rows else "",
        ]
    )


def budget_words(found: LearnedVerdicts) -> str:
    """What the threshold costs, in a sentence."""
    if found["alarms_per_day"] is None or found["executions_per_day"] is None:
        return "The threshold was chosen by the share of flags that is asked for."
    return (
        f"To be expected over this fleet: about {number(found['alarms_per_day'])} false alarms a day, at "
        f"{found['executions_per_day']:,.0f} executions a day."
    )


def verdicts_page(source: str, found: Judged) -> str:
    """How many executions look degraded."""
    return joined(
        [
            f"# Degraded executions of source {plain(source)}",
            f"{found['n_flagged']:,} of {counted(found['n_judged'], 'execution')} with a verdict look degraded, by "
            f"{plain(found['model_id'])}; {found['n_executions'] - found['n_judged']:,} others are of benchmarks that "
            "it did not learn.",
        ]
    )


def tuning_page(source: str, found: TunedNodes) -> str:
    """What a search found."""
    resumed = f", {found['n_resumed']:,} of them from before" if found["n_resumed"] else ""
    return joined(
        [
            f"# The search for source {plain(source)}",
            f"{counted(found['n_trials'], 'trial')}{resumed}; the least validation loss is "
            f"{number(found['validation_loss'])}. All of them: {plain(found['trials'])}",
            table(("parameter", "value"), [(key, str(value)) for key, value in _flat(found["best"])]),
        ]
    )


def fingerprints_page(source: str, found: FingerprintedNodes, scores: pd.DataFrame) -> str:
    """The nodes by their fingerprints, one number each and by aspect. scores: with is_emulated beside them."""
    names = {str(row["node"]): called(str(row["node"]), row["is_emulated"]) for row in scores.to_dict("records")}
    rows = [
        (
            row["aspect"],
            int(row["rank"]),
            names[str(row["node"])],
            ratio(row["score"]),
            interval(row),
            bool(row["is_tied"]),
            int(row["n_executions"]),
        )
        for row in scores.head(MAX_ROWS).to_dict("records")
    ]
    best = [names[node] for node in found["best"]]
    header = ("aspect", "place", "node", "score", "interval", "tied", "executions")
    return joined(
        [
            f"# The fingerprints of the nodes of source {plain(source)}",
            f"{found['n_fingerprints']:,} of {counted(found['n_executions'], 'execution')} have one by model "
            f"{plain(found['model_id'])}. Best: {plain(', '.join(best))}.",
            table(header, rows) + rest(len(scores)) if rows else "No node has a score.",
        ]
    )


def states_page(
    source: str,
    found: WatchedNodes,
    states: pd.DataFrame,
    alarms: pd.DataFrame,
    asked: Sequence[str],
    cannot: Sequence[str],
) -> str:
    """Which nodes are degrading, what was told anew, and which fresh benchmarks were asked for.

    states: with is_emulated beside them."""
    excluded = "; ".join(excluded_nodes(states)) or "none"
    new = [f"- {plain(str(message))}" for message in alarms["message"]] if len(alarms) else []
    return joined(
        [
            f"# Which nodes of source {plain(source)} are degrading",
            f"{counted(found['n_nodes'], 'node')} watched by model {plain(found['model_id'])}. To be left out: "
            f"{plain(excluded)}.",
            "\n".join(["## New alarms", *new]) if new else "",
            f"Fresh benchmarks were asked for: {plain(', '.join(asked))}." if asked else "",
            f"Suspected, without a deployment nodes-record/<node> on this server: {plain(', '.join(cannot))}. Record "
            "them by hand."
            if cannot
            else "",
            f"{counted_states(states)}. {plain(cost_words(states))}" if len(states) else "",
            table_markdown(states_table(states)) if len(states) else "",
        ]
    )


def _flat(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Nested parameters as one list, by dotted name."""
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        name = f"{before}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, Mapping) else [(name, value)]
    return found
