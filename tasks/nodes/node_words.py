"""Nodes, models and decisions as words; an emulated node is called so wherever it is shown. Light: no pandas."""

import math
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from tasks.quantities import is_missing, number, ratio

if TYPE_CHECKING:
    import pandas as pd

EMULATED = "emulated"
IS_EMULATED = "node IN (SELECT node FROM nodes.executions WHERE source = $source AND is_emulated) AS is_emulated"
STATES = f"""
SELECT *, {IS_EMULATED} FROM nodes.states WHERE source = $source
ORDER BY list_position(['confirmed', 'suspected', 'cleared', 'healthy'], state), node, aspect
"""
NO_VALUE = "–"
MINUTE = "%Y-%m-%d %H:%M"
FAR_BEHIND = 0.8  # as of the peers of a node (ranking/suspicion.py)
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
        return NO_VALUE
    return "agrees" if agrees else "disagrees"


def counts_as(row: Mapping[Any, Any]) -> str:
    """Which way a metric counts; a metric that is declared to be neither better nor worse counts in no score."""
    is_directed = row.get("is_directed")
    return better(row["orientation"]) if is_missing(is_directed) or is_directed else "neither is better"


def agreement_without(row: Mapping[Any, Any]) -> str:
    """Whether the paper's rule says what is declared by the executions that were not stressed alone."""
    rule = row["rule_without_stressed"]
    if is_missing(rule) or row["orientation_from"] in UNDECLARED:
        return NO_VALUE
    return agreement(rule == row["orientation"])


def called_all(names: str, emulated: Collection[str]) -> str:
    """Nodes with commas between, as figures name them; emulated ones are called so."""
    nodes = [names] if names in emulated else names.split(", ")
    return ", ".join(called(node, node in emulated) for node in nodes)


def decision(row: Mapping[Any, Any]) -> str:
    """Whether a metric is kept, or why it is not."""
    return "kept" if row["is_kept"] else f"dropped: {row['why']}"


def interval(row: Mapping[Any, Any]) -> str:
    """The interval of a score; empty where nobody repeated an execution."""
    is_unknown = is_missing(row["low"]) or is_missing(row["high"])
    return "" if is_unknown else f"{ratio(row['low'])} to {ratio(row['high'])}"


def best_words(best: Sequence[str], n_nodes: int, names: Mapping[str, str]) -> str:
    """Which node is best, or which cannot be told apart; no difference where that is all of them.

    best: those at the first place; n_nodes: that have a score; names: of the nodes, as they are shown."""
    if not best:
        return "none: no metric counts, so no node has a score; whorl nodes metrics says why"
    nodes = ", ".join(names.get(node, node) for node in best)
    if n_nodes == 1:
        return f"cannot be told: no other node to compare {nodes} with"
    if len(best) == 1:
        return nodes
    if len(best) == n_nodes:
        return f"no difference can be told between {nodes}: their intervals say that chance alone may order them so"
    return f"{nodes}: no difference can be told between these {len(best):,} of {n_nodes:,} nodes"


def standing_out(watched: Sequence[Mapping[Any, Any]], names: Mapping[str, str]) -> str:
    """Which nodes stand out by slow executions, since when, and how sure that is; or that none does, and why.

    watched: rows as in nodes.watched, in their order; names: of the nodes, as they are shown."""
    slow_nodes = [_slow_node(row, names.get(row["node"], row["node"])) for row in watched if is_true(row["stands_out"])]
    if slow_nodes:
        return "; ".join(slow_nodes)
    if not watched:
        return "cannot be told: no node ran a benchmark that counts often enough"
    if len(watched) == 1:
        return "cannot be told: no other node to compare with"
    first = watched[0]
    most = [f"{row['n_low']:,} of {row['n_executions']:,}" for row in watched[:MOST_COUNTS]]
    counts = ", ".join(most) + (" …" if len(watched) > MOST_COUNTS else "")
    why = _chance(first["p_value"]) if first["p_value"] >= CHANCE else "too few of any benchmark to matter"
    return f"no difference can be told, no node stands out: {counts} executions slow ({why})"


def behind_words(scores: Sequence[Mapping[Any, Any]], names: Mapping[str, str]) -> str:
    """Which nodes of no stated machine type lie far behind the median one in an aspect; empty for none.

    scores: rows as in nodes.scores; names: of the nodes, as they are shown. A node that was always slow does not stand
    out by slow executions: nobody but its peers, nodes of its machine type, shows that it could be faster."""
    usual: dict[str, float] = {}
    for aspect in dict.fromkeys(row["aspect"] for row in scores):
        usual[aspect] = median(row["score"] for row in scores if row["aspect"] == aspect)
    far = [
        f"{names.get(row['node'], row['node'])} in {row['aspect']}, at {ratio(row['score'] / usual[row['aspect']])}"
        for row in scores
        if row["aspect"] != "all" and is_missing(row["machine_type"])
        and (row["score"] if is_missing(row["high"]) else row["high"]) < FAR_BEHIND * usual[row["aspect"]]
    ]  # fmt: skip
    hint = "of the median node; name machine types (a column, or a manifest) to tell whether that is by design"
    return f"{'; '.join(far[:MOST_COUNTS])}{' …' * (len(far) > MOST_COUNTS)} {hint}" if far else ""


def degrading_words(states: Sequence[Mapping[Any, Any]], names: Mapping[str, str]) -> str:
    """Which nodes degrade by the last watch, in which aspect and since when; empty where nobody watched.

    states: rows as in nodes.states, those that need looking at first; names: of the nodes, as they are shown."""
    degrading = [
        f"{names.get(row['node'], row['node'])} in {row['aspect']} ({row['state']}), since {row['since']:{MINUTE}} UTC"
        for row in states
        if row["state"] in GOING_ON
    ]
    return "; ".join(degrading) or ("none" if states else "")


def slow_time(row: Mapping[Any, Any]) -> str:
    """How the slow executions of a node lie in time; empty without any. row: as in nodes.watched."""
    first, last = ("" if is_missing(row[at]) else f"{row[at]:{MINUTE}}" for at in ("first_at", "last_at"))
    if row["course"] == "lasting":
        return f"slow since {first} UTC" if first else "slow until now"
    if row["course"] == "recovered":
        return (f"was slow from {first} to {last} UTC" if first else "was slow") + ", has recovered"
    return ("now and then" + (f", last {last} UTC" if last else "")) if row["course"] else ""


def _slow_node(row: Mapping[Any, Any], name: str) -> str:
    counts = f"{row['n_low']:,} of {row['n_executions']:,} executions slow"
    worst = f"most in {row['worst_type'].partition('@')[0]}, there at {ratio(row['worst_ratio'])} of what is usual"
    return f"{name}: {counts}, {worst}; {slow_time(row)} ({_chance(row['p_value'])})"


def _chance(p_value: float) -> str:
    text = number(max(p_value, math.ulp(0.0)))
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def is_true(value: Any) -> bool:
    """True for a truth, false for a falsehood and for what nobody says."""
    return not is_missing(value) and bool(value)


def shared_words(row: Mapping[Any, Any]) -> str:
    """What tools say of a node in common, and its place by that among the nodes of its machine type; empty without."""
    if is_missing(row["shared"]):
        return ""
    return number(row["shared"]) + ("" if is_missing(row["shared_place"]) else f", place {int(row['shared_place'])}")


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
GOING_ON = ("confirmed", "suspected")  # states of a node that has to be looked at
DETECTOR = "detector"  # what verdicts are told by
NETWORK = "fingerprint"  # Perona's network
HOW_TO_DATE = "give it as started_at in a --manifest, or in the names of the files (20260131T120000)"
CLEARED_KIND = "cleared-degradation"  # of an alarm that is over
LEARNED = "learned.parquet"  # in the folder of a network: what it has seen


def no_model(source: str) -> str:
    """The line for a source without a model."""
    command = shlex.join(["whorl", "nodes", "preprocess", "--source", source])
    return f"source {source!r}: its metrics have not been preprocessed yet; do so with {command}"


def left_out(n_executions: int, source: str) -> str:
    """The line for executions of which the preprocessing in use knows no metric; empty if there is none."""
    if not n_executions:
        return ""
    command = shlex.join(["whorl", "nodes", "preprocess", "--source", source])
    subject = "1 execution is" if n_executions == 1 else f"{n_executions:,} executions are"
    return f"{subject} left out: the preprocessing knows none of their metrics; preprocess again with {command}"


def no_trained_model(source: str) -> str:
    """The line for a source without a trained model."""
    command = shlex.join(["whorl", "nodes", "train", "--source", source])
    return f"source {source!r} has no trained model of nodes yet; make one with {command}"


FAR = 100.0  # deviations beyond which one is like another
LEAST_DEVIATION = 2.0  # from which a metric says something by itself: of 100 usual values five are as far away
TOGETHER = "no metric is unusual by itself; these count most, together:"
NO_REASON = "no metric says so: the benchmark's level of stress does"
MORE_DIGITS, MOST_PLACES = 2, 6
SCALES = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "B/s": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


@dataclass(frozen=True)
class MetricReason:
    """One metric of an execution, as a person reads it."""

    metric: str
    unit: str
    value: float
    usual_low: float
    usual_high: float
    deviation: float

    @property
    def is_usual(self) -> bool:
        """Whether it says nothing by itself."""
        return abs(self.deviation) < LEAST_DEVIATION

    def words(self) -> str:
        """Such as "write_clat_avg 11.3 ms, usually 4.1 to 4.9: worse (9 deviations)"; of one that is usual alone "on
        the worse side (1.4 deviations)"."""
        factor, unit = _scale(self.unit, max(abs(self.value), abs(self.usual_high)))
        ends = [end / factor for end in (self.value, self.usual_low, self.usual_high)]
        value, low, high = apart(ends)
        size, way = abs(self.deviation), "worse" if self.deviation > 0 else "better"
        tail = f"beyond {FAR:.0f} deviations" if size >= FAR else f"{size:.0f} deviations"
        if self.is_usual:
            way, tail = f"on the {way} side", f"{size:.1f} deviations"
        usual = low if low == high else f"{low} to {high}"
        return f"{self.metric} {value}{f' {unit}' if unit else ''}, usually {usual}: {way} ({tail})"


def reason_of_row(row: "Mapping[Any, Any] | pd.Series") -> MetricReason:
    """A row of reasons_of as a MetricReason."""
    return MetricReason(**{name: row[name] for name in MetricReason.__dataclass_fields__})


def apart(numbers: Sequence[float]) -> list[str]:
    """A value and the ends of a range, with three digits of the largest, or as many more as tell them apart."""
    known = [abs(value) for value in numbers if math.isfinite(value) and value]
    places = max(0, 2 - math.floor(math.log10(max(known)))) if known else 0
    for more in range(MORE_DIGITS + 1):
        words = [f"{value:,.{min(places + more, MOST_PLACES)}f}" if math.isfinite(value) else "–" for value in numbers]
        if words[0] not in words[1:]:
            break
    return ["0" if word.strip("-0.,") == "" else word for word in words]


def _scale(unit: str, largest: float) -> tuple[float, str]:
    """The unit that a number of this size is read in, and how many base units it is."""
    if unit in ("", "1"):
        return 1.0, ""
    ladder = SCALES.get(unit, ((1.0, "a second" if unit == "1/s" else unit),))
    return next(((factor, name) for factor, name in ladder if largest >= factor), ladder[-1])
