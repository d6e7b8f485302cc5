"""What is learned from, what thresholds are chosen on, what is tested: by time, at random, by node.

rolling: of each node and type, all executions before an origin train, the next tenth tests, from 40 % on in steps of a
tenth: six rounds, each measured alone. chronological: of each node and type the first share trains, the next validates,
the rest tests. random: the paper's
(IV-C): stratified by node, type and stress. left_node: the other nodes train and validate, by time; all executions of
the left node test, so that it has no history to learn from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.type_tables import Bools, Floats

Protocol = Literal["rolling", "chronological", "random", "left_node"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
ORIGINS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
STEP = 0.1


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


def splits_of(executions: pd.DataFrame, types: Sequence[str], protocol: Protocol, params: EvaluateParams) -> Splits:
    """The splits of a protocol over executions in time order. types: (n_executions,) names."""
    keys = pd.DataFrame({"node": executions["node"].to_numpy(), "type": np.asarray(types)})
    if protocol == "rolling":
        return Splits([[_from_origin(origin, _time_places(keys), params)] for origin in ORIGINS])
    if protocol == "chronological":
        return Splits([[_by_place("all nodes", _time_places(keys), params)]])
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
    share = params.train_share / (params.train_share + params.validation_share)
    is_train = ~is_left & (_time_places(keys) < share)
    return Split(node, is_train, ~is_left & ~is_train, is_left)
