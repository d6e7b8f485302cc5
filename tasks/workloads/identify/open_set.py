"""Known or unknown: a score learned by leaving each known workload out in turn, on training runs alone.

In each turn one workload is left out and one block of the others is held out; what remains learns. The left-out runs
show what evidence of an unknown workload looks like, the held-out ones that of a known one, from another round. The
limit is the score that the stated share of the held-out known runs stays at or below, but never above even odds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.workloads.identify.calibration import Calibration, fit_calibration
from tasks.workloads.identify.evidence import EVIDENCE
from tasks.workloads.identify.judge import TrainingTable, chosen_classes, learn_judge
from tasks.workloads.identify.params import IdentifyParams
from tasks.workloads.telemetry import FloatArray

EVEN = 0.5  # as likely unknown as known; also the limit where no known run could be held out


@dataclass(frozen=True)
class OpenSet:
    """limit: a score above it makes a run unknown."""

    calibration: Calibration
    limit: float

    def scores(self, evidence: FloatArray) -> FloatArray:
        """How likely each run is of no known workload, 0 to 1: (n,)."""
        return self.calibration.scores(evidence)


def learn_open_set(table: TrainingTable, params: IdentifyParams) -> OpenSet:
    """Learn the score and its limit from training runs. With one workload nothing can be left out: only the limit."""
    evidence, is_unknown = _episodes(table, params)
    calibration = fit_calibration(evidence, is_unknown, params.open_set.l2)
    known = calibration.scores(evidence[~is_unknown])
    if not len(known):
        return OpenSet(calibration, EVEN)
    limit = float(np.quantile(known, params.open_set.known_recall, method="higher"))
    return OpenSet(calibration, min(limit, EVEN) if calibration.is_learned else limit)


def _episodes(table: TrainingTable, params: IdentifyParams) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Evidence of all turns, and whether each row is of a left-out workload."""
    classes = sorted(set(table.labels))
    blocks = sorted(set(table.folds.tolist()))
    turns: list[str | None] = list(chosen_classes(classes, params.open_set.most_left_out)) if len(classes) > 1 else []
    turns = turns or [None] * len(blocks)
    found, unknown = [np.zeros((0, len(EVIDENCE)))], [np.zeros(0, dtype=bool)]
    for turn, left_out in enumerate(turns):
        one, is_unknown = _episode(table, left_out, blocks[turn % len(blocks)], params)
        found.append(one)
        unknown.append(is_unknown)
    return np.concatenate(found), np.concatenate(unknown)


def _episode(
    table: TrainingTable, left_out: str | None, block: int, params: IdentifyParams
) -> tuple[FloatArray, NDArray[np.bool_]]:
    labels = np.asarray(table.labels)
    is_out = labels == left_out if left_out is not None else np.zeros(len(labels), dtype=bool)
    is_held = ~is_out & (table.folds == block)
    is_learned = ~is_out & ~is_held
    if not is_learned.any():  # every run is of one block
        is_learned, is_held = ~is_out, np.zeros(len(labels), dtype=bool)
    is_judged = is_out | (is_held & np.isin(labels, labels[is_learned]))
    judge = learn_judge(table.rows(is_learned), params, params.trees.model_copy(update={"seeds": 1}))
    between = table.fingerprint_distances[np.ix_(is_judged, is_learned)]
    judgement = judge.judge(table.features[is_judged], table.points[is_judged], between)
    return judgement.evidence, is_out[is_judged]
