"""A probability of degradation for each execution, by verdicts that nobody had to be asked for.

In use no label is known. So predecessors are chosen by verdicts (see settling.py), not by labels as in the paper."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.fingerprint.asking import targets_of
from tasks.nodes.fingerprint.fingerprint_params import FingerprintParams
from tasks.nodes.fingerprint.settling import Question, settle
from tasks.nodes.perona.inputs import NO_TYPE, Bools, Floats, Inputs, Ints
from tasks.nodes.perona.network import PeronaNetwork

ONE_HOT = "type="  # how the names of columns begin that tell the type, not a measurement


@dataclass(frozen=True)
class Judged:
    """logit, probability: (n,), NaN for executions that cannot be judged. is_flagged: (n,) probability above the
    threshold. predecessors: (n, p) rows beside which each was judged, oldest first, -1 where there were fewer.

    n_rounds: rounds until no verdict changed. n_in_time: executions that had to be judged one after another."""

    logit: Floats
    probability: Floats
    is_flagged: Bools
    predecessors: Ints
    n_rounds: int
    n_in_time: int


def judge(
    inputs: Inputs, network: PeronaNetwork, params: FingerprintParams, *, may_precede: Bools | None = None
) -> Judged:
    """Judge all executions, each beside the latest earlier ones of its node and type that are not flagged.

    Nothing is said of the first ones of a node, which stand beside nothing (in the paper's variant: beside fewer than
    it was taught with). Nothing flagged is a predecessor, but where everything was flagged from the
    first on (see settling.py), nor what may_precede (n,) denies, such as disturbed executions. Executions of a type
    that training did not have, and those without any measurement, are not judged. 100,000 take less than 10 s."""
    is_judged = can_be_judged(inputs)
    may = is_judged if may_precede is None else is_judged & may_precede

    def score(rows: Ints, predecessors: Ints) -> Floats:
        found = [part.logit for part in targets_of(inputs, network, rows, predecessors, params.graphs_at_once)]
        return np.concatenate(found) if found else np.empty(0)

    count, limit = network.params.graph.predecessors, logit_of(params.threshold)
    rows, fewest = np.flatnonzero(is_judged), network.fewest
    asked = Question(inputs, score, rows, may, count, limit, fewest=fewest, new_level_after=params.new_level_after)
    found = settle(asked, params.rounds)
    is_flagged = found.logit > limit
    told = (found.predecessors, found.n_rounds, found.n_in_time)
    return Judged(found.logit, probability_of(found.logit), is_flagged, *told)


def can_be_judged(inputs: Inputs) -> Bools:
    """Executions of a type of training with at least one measurement: (n,)."""
    return np.asarray((inputs.type_of != NO_TYPE) & inputs.is_own[:, is_metric(inputs)].any(axis=1))


def is_metric(inputs: Inputs) -> Bools:
    """Which columns of x are measurements: (f,); the others tell the type."""
    return np.array([not name.startswith(ONE_HOT) for name in inputs.columns], dtype=bool)


def probability_of(logit: Floats) -> Floats:
    """1 / (1 + exp(-logit)), without overflow, and exact in small ones as well."""
    small = np.exp(-np.abs(logit))
    return np.asarray(np.where(logit >= 0, 1.0, small) / (1 + small))


def logit_of(probability: float) -> float:
    """ln(p / (1 - p)): infinite for 1, minus infinity for 0."""
    with np.errstate(divide="ignore"):
        return float(np.log(np.float64(probability)) - np.log1p(-np.float64(probability)))


def undisturbed(executions: pd.DataFrame) -> Bools:
    """Executions that completed and during which nobody else used the machine: (n,); labels are not looked at.

    Others are judged, but stand beside none (may_precede)."""
    contaminated = executions["is_contaminated"].astype("boolean").fillna(False).to_numpy(dtype=bool)
    return np.asarray((executions["status"] == "completed").to_numpy(dtype=bool) & ~contaminated)


def verdicts_of(executions: pd.DataFrame, judged: Judged) -> pd.DataFrame:
    """The verdicts as alarms want them, one row an execution: node, aspect, execution_id, started_at, probability,
    is_flagged, is_contaminated. executions: of the history, as rows of the inputs."""
    told = executions[["node", "aspect", "execution_id", "started_at", "is_contaminated"]].reset_index(drop=True)
    return told.assign(probability=judged.probability, is_flagged=judged.is_flagged)
