"""What is learned from, what thresholds are chosen on, what is tested: by time, at random, by node.

rolling: of each node and type, all executions before an origin train, the next tenth tests, from 40 % on in steps of a
tenth: six rounds, each measured alone. chronological: of each node and type the first share trains, the next validates,
the rest tests. random: the paper's (IV-C): stratified by node, type and stress. left_node: the other nodes train and
validate, by time; all executions of the left node test, so that it has no history to learn from. after_warm_up: of each
node and type the first tenth is what is usual, and nothing is told of stress; the rest tests. transfer: what was
recorded before trains and validates, by time; another recording tests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.history import History
from tasks.nodes.type_tables import Bools, Floats

Protocol = Literal["rolling", "chronological", "random", "left_node", "after_warm_up", "transfer"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
ORIGINS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
STEP = 0.1
WARM_UP = 0.1
NOT_TAUGHT = "no results are named that are learned from alone (--train)"


@dataclass(frozen=True)
class Split:
    """Masks (n_executions,) that do not overlap. name: such as `repeat 3` or a node's."""

    name: str
    is_train: Bools
    is_validation: Bools
    is_test: Bools


@dataclass(frozen=True)
class Splits:
    """Rounds of splits; the executions that the splits of a round test are measured together. None, and why."""

    rounds: list[list[Split]]
    reason: str = ""


def splits_of(
    executions: pd.DataFrame,
    types: Sequence[str],
    protocol: Protocol,
    params: EvaluateParams,
    taught: Bools | None = None,
) -> Splits:
    """The splits of a protocol over executions in time order. types: (n_executions,) names.

    taught: (n_executions,) executions that `transfer` learns from; without them it has no split."""
    keys = pd.DataFrame({"node": executions["node"].to_numpy(), "type": np.asarray(types)})
    if protocol == "rolling":
        return Splits([[_from_origin(origin, _time_places(keys), params)] for origin in ORIGINS])
    if protocol == "chronological":
        return Splits([[_by_place("all nodes", _time_places(keys), params)]])
    if protocol == "after_warm_up":
        is_train = _time_places(keys) < WARM_UP
        return Splits([[Split("after warm-up", is_train, np.zeros(len(keys), dtype=bool), ~is_train)]])
    if protocol == "transfer":
        if taught is None:
            return Splits([], NOT_TAUGHT)
        is_train = _taught(keys, taught, params)
        return Splits([[Split("another recording", is_train, taught & ~is_train, ~taught)]])
    if protocol == "random":
        stress = is_stressed(executions).to_numpy(dtype=bool)
        strata = keys.assign(is_stressed=stress)
        return Splits(
            [[_by_place(f"repeat {at + 1}", _drawn_places(strata, at, params), params)] for at in range(params.repeats)]
        )
    nodes = sorted(keys["node"].unique())
    if len(nodes) < 2:
        return Splits([], "there is one node; at least two are needed, to leave one out")
    return Splits([[_without(str(node), keys, params) for node in nodes[: params.max_left_nodes]]])


def _time_places(keys: pd.DataFrame) -> Floats:
    """Where each execution lies among those of its node and type: from 0 to less than 1."""
    each = keys.groupby(list(keys.columns))
    return (each.cumcount() / each["node"].transform("size")).to_numpy(dtype=np.float64)


def _drawn_places(strata: pd.DataFrame, repeat: int, params: EvaluateParams) -> Floats:
    """The same in a drawn order."""
    order = np.random.default_rng([params.seed, repeat]).permutation(len(strata))
    places = np.empty(len(strata))
    places[order] = _time_places(strata.iloc[order])
    return places


def _from_origin(origin: float, places: Floats, params: EvaluateParams) -> Split:
    share = params.train_share / (params.train_share + params.validation_share)
    is_train, is_before = places < share * origin, places < origin
    return Split(f"from {origin:.0%}", is_train, is_before & ~is_train, ~is_before & (places < origin + STEP))


def _by_place(name: str, places: Floats, params: EvaluateParams) -> Split:
    is_train = places < params.train_share
    is_validation = ~is_train & (places < params.train_share + params.validation_share)
    return Split(name, is_train, is_validation, ~is_train & ~is_validation)


def _without(node: str, keys: pd.DataFrame, params: EvaluateParams) -> Split:
    is_left = (keys["node"] == node).to_numpy()
    is_train = _taught(keys, ~is_left, params)
    return Split(node, is_train, ~is_left & ~is_train, is_left)


def _taught(keys: pd.DataFrame, taught: Bools, params: EvaluateParams) -> Bools:
    """Of what may be learned from, what trains: the rest validates. (n_executions,) both."""
    places = np.full(len(keys), np.inf)
    places[taught] = _time_places(keys[taught])
    return places < params.train_share / (params.train_share + params.validation_share)


NEARBY = 0.02  # of the executions, on either side of a threshold, over which its F1 is averaged


def choose_threshold(scores: Floats, is_stressed: Bools, false_alarm_share: float) -> float:
    """The threshold with the best F1 on these executions, the highest of equals. Flagged: scores above it.

    scores: (n,) finite. It lies half way between two scores, so that it does not hang on one of them, and its F1 is the
    mean of its own and of those of the thresholds nearby, so that it stands on no lone peak. Without a stressed
    execution: the score that this share of them exceeds. Infinite without any: nothing is flagged."""
    if not len(scores):
        return np.inf
    if not is_stressed.any():
        return float(np.quantile(scores, 1 - false_alarm_share))
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(is_stressed[order])
    f1 = 2 * hits / (np.arange(1, len(scores) + 1) + is_stressed.sum())
    ends = np.flatnonzero(np.append(np.diff(ranked) != 0, True))  # equal scores are flagged together or not at all
    best = int(ends[mean_of_nearby(f1[ends], int(len(scores) * NEARBY)).argmax()])
    if best + 1 == len(ranked):
        return float(np.nextafter(ranked[best], -np.inf))
    return float((ranked[best] + ranked[best + 1]) / 2)


def mean_of_nearby(values: Floats, reach: int) -> Floats:
    """The mean of each value and of as many before and after it as `reach`, as far as there are so many: (n,)."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values))
    first, last = np.maximum(at - reach, 0), np.minimum(at + reach + 1, len(values))
    return np.asarray((sums[last] - sums[first]) / (last - first))


CLAIMS, LABELS = ("is_stressed", "stress_wanted"), ("dose", "dose_level")


def blinded(history: History, is_seen: Bools) -> History:
    """The history without what is known of stress where the mask (n_executions,) is false."""
    executions = history.executions
    seen = pd.Series(is_seen, index=executions.index)
    hidden = {name: executions[name].where(seen) for name in LABELS if name in executions.columns}
    hidden |= {name: executions[name].astype("boolean").where(seen) for name in CLAIMS if name in executions.columns}
    return replace(history, executions=executions.assign(**hidden))


def as_told(history: History, params: EvaluateParams) -> History:
    """What learns and chooses thresholds is told: everything, or nothing of stress (params.without_labels)."""
    return blinded(history, np.zeros(len(history.executions), dtype=bool)) if params.without_labels else history
