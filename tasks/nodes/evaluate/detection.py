"""Stressed executions found by each detector, under each protocol."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed, is_unstressed, type_names
from tasks.nodes.detect.contenders import OUT_OF_FOLD, Detector
from tasks.nodes.detect.plain import Case
from tasks.nodes.evaluate.hidden_labels import as_told
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.splits import PROTOCOLS, Protocol, Split, splits_of
from tasks.nodes.evaluate.thresholds import choose_threshold
from tasks.nodes.history import History
from tasks.nodes.type_tables import Bools, Floats, NodeTables
from tasks.progress import report_progress

Prepare = Callable[[History, Bools], NodeTables]  # learned from the executions of the mask
COLUMNS = ["protocol", "round", "split", "detector", "execution", "score", "threshold", "is_flagged"]
NOT_LABELLED = "no execution says whether it was stressed (is_stressed)"
ONE_CLASS = "stressed and unstressed executions are needed; all that say so are {0}"


@dataclass(frozen=True)
class Detection:
    """judged: one row a tested execution, split and detector: protocol, round (from 0; the splits of a round are
    measured together), split, detector, execution, score, threshold, is_flagged. reasons: why a protocol has none."""

    judged: pd.DataFrame
    reasons: dict[Protocol, str]


def labels_reason(executions: pd.DataFrame) -> str:
    """Why detection cannot be measured; empty where it can."""
    known = executions["is_stressed"].dropna().astype(bool)
    if not len(known):
        return NOT_LABELLED
    if known.nunique() < 2:
        return ONE_CLASS.format("stressed" if known.iloc[0] else "unstressed")
    return ""


def detect(history: History, prepare: Prepare, detectors: Mapping[str, Detector], params: EvaluateParams) -> Detection:
    """Judge the labelled executions of the history by every detector under every protocol.

    Each split preprocesses, fits and chooses its thresholds anew: tested executions teach nothing."""
    reason = labels_reason(history.executions)
    reasons: dict[Protocol, str] = dict.fromkeys(PROTOCOLS, reason)
    parts: list[pd.DataFrame] = []
    types = type_names(history.executions).tolist()
    for protocol in () if reason else PROTOCOLS:
        found = splits_of(history.executions, types, protocol, params)
        reasons[protocol] = found.reason
        for number, splits in enumerate(found.rounds):
            for split in splits:
                report_progress(f"finding stressed executions, {protocol}", number, len(found.rounds))
                found_here = _judge(history, split, prepare, detectors, params)
                parts += [judged.assign(protocol=protocol, round=number) for judged in found_here]
    judged = pd.concat(parts, ignore_index=True)[COLUMNS] if parts else pd.DataFrame(columns=COLUMNS)
    return Detection(judged, reasons)


def case_of(history: History, split: Split, prepare: Prepare, seed: int) -> Case:
    """What a detector is given of a split."""
    is_normal = split.is_train & is_unstressed(history.executions).to_numpy(dtype=bool)
    tables = prepare(history, split.is_train)
    return Case(history, tables, split.is_train, is_normal, split.is_validation, seed)


def _judge(
    history: History, split: Split, prepare: Prepare, detectors: Mapping[str, Detector], params: EvaluateParams
) -> list[pd.DataFrame]:
    case = case_of(as_told(history, params), split, prepare, params.seed)
    chosen_by, share = is_stressed(case.history.executions).to_numpy(dtype=bool), params.false_alarm_share
    judged = []
    for name, detector in detectors.items():
        scores = detector(case)
        may_choose = split.is_validation | split.is_train if name in OUT_OF_FOLD else split.is_validation
        judged.append(judged_rows(history, split, name, scores, share, chosen_by=chosen_by, may_choose=may_choose))
    return judged


def judged_rows(
    history: History,
    split: Split,
    name: str,
    scores: Floats,
    false_alarm_share: float,
    *,
    threshold: float | None = None,
    chosen_by: Bools | None = None,
    may_choose: Bools | None = None,
) -> pd.DataFrame:
    """One row a labelled, tested execution that a detector scored: COLUMNS but for protocol and round.

    scores: (n_executions,), NaN where it said nothing. threshold: None: chosen on the validation executions, by what is
    known of their stress (chosen_by, (n_executions,); None: what the history says), or on others (may_choose,
    (n_executions,)) where a detector's scores of what it learned are out of fold."""
    is_known = history.executions["is_stressed"].notna().to_numpy()
    stressed = is_stressed(history.executions).to_numpy(dtype=bool) if chosen_by is None else chosen_by
    is_scored = is_known & ~np.isnan(scores)
    if threshold is None:
        chosen = (split.is_validation if may_choose is None else may_choose) & is_scored
        threshold = choose_threshold(scores[chosen], stressed[chosen], false_alarm_share)
    tested = np.flatnonzero(split.is_test & is_scored)
    told = {"split": split.name, "detector": name, "execution": tested, "score": scores[tested]}
    return pd.DataFrame({**told, "threshold": threshold, "is_flagged": scores[tested] > threshold})
