"""Stressed executions found by each detector, under each protocol."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed, is_unstressed, type_names
from tasks.nodes.benchmark_names import slug
from tasks.nodes.detect.contenders import OUT_OF_FOLD, Detector
from tasks.nodes.detect.plain import Case
from tasks.nodes.evaluate.measures import (
    MEASURES,
    Figures,
    LearnedResults,
    measures_of,
    precision_recall,
    put,
    put_mean,
    put_seeds,
)
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.splits import PROTOCOLS, Protocol, Split, as_told, choose_threshold, splits_of
from tasks.nodes.history import History
from tasks.nodes.labels import is_dose
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


PLAIN_PROTOCOL: Protocol = "chronological"
RANDOM: Protocol = "random"
PAPER = "paper"  # the protocol of its authors, in the splits of RANDOM
DOSES = tuple(f"dose_{level}" for level in (1, 2, 3))
STRONG_FROM = 2  # level of doses of about three standard deviations and above, which are measured together as well
STRONG = f"from_dose_{STRONG_FROM}"
MOST_NAMED = 20  # doses that have a name and no level: the most frequent ones have figures
NO_TESTED = "no tested execution says whether it was stressed"
NO_DOSE = "no tested execution was stressed at this dose, or none was not stressed"
UNNAMED = "unnamed"
NO_EPISODE = "no episode of stress was found"
ANY = "any"


def detection_results(
    executions: pd.DataFrame, found: Detection, detectors: Sequence[str], learned: LearnedResults | None = None
) -> tuple[Figures, dict[str, pd.DataFrame]]:
    """The figures, and tables `detection` (one row a protocol, round, detector and dose) and `precision_recall`.

    learned: what the learned model flagged; its rounds are seeds as well. Of what it tests in the protocol of the paper
    the plain detectors have figures too."""
    parts = [found.judged]
    if learned is not None:
        parts += [learned.judged, _as_the_paper_tests(found.judged, learned.judged)]
    judged = _with_truth(executions, pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True))
    named, n_left_out = _named_doses(judged)
    doses = (*DOSES, STRONG, *named)
    rows = list(_measured(judged, doses))
    table = pd.DataFrame(rows, columns=["protocol", "round", "detector", "dose", "n", "n_stressed", *MEASURES])
    figures: Figures = {"detect.doses_left_out": n_left_out} if n_left_out else {}
    reasons = {(str(protocol), name): found.reasons[protocol] for protocol in PROTOCOLS for name in detectors}
    learned_reasons = learned.reasons if learned is not None else {}
    if told := [reason for (protocol, _), reason in learned_reasons.items() if protocol == PAPER]:
        reasons |= {(PAPER, name): found.reasons[RANDOM] or min(told) for name in detectors}
    for protocol in dict.fromkeys([*PROTOCOLS, *(protocol for protocol, _ in learned_reasons)]):
        own = table[table["protocol"] == protocol]
        tested = judged[judged["protocol"] == protocol].drop_duplicates(["round", "execution"])
        why = _why_none(protocol, found, learned_reasons)
        put(figures, f"detect.n{_suffix(protocol)}", _count_tested(tested), why or NO_TESTED)
        for key, reason in (reasons | learned_reasons).items():
            if key[0] == protocol:
                is_learned = key in learned_reasons
                _put_all(figures, own, key[1], _suffix(protocol), reason, doses, is_learned=is_learned)
    return figures, {"detection": table, "precision_recall": _curves(judged)}


def _as_the_paper_tests(plain: pd.DataFrame, learned: pd.DataFrame) -> pd.DataFrame:
    """What plain detectors say, in the same split, of the executions that the protocol of the paper tests."""
    own = plain[plain["protocol"] == RANDOM]
    rounds = sorted(own["round"].unique())
    tested = learned[learned["protocol"] == PAPER] if rounds else learned[:0]
    parts = [own[:0]]
    for number in sorted({int(one) for one in tested["round"]}):
        executions = tested.loc[tested["round"] == number, "execution"]
        of_split = own[own["round"] == rounds[number % len(rounds)]]
        parts.append(of_split[of_split["execution"].isin(executions)].assign(protocol=PAPER, round=number))
    return pd.concat(parts, ignore_index=True)


def _count_tested(tested: pd.DataFrame) -> int | None:
    """Executions of a round; None where nothing could be tested."""
    return len(tested) // tested["round"].nunique() if len(tested) else None


def _why_none(protocol: str, found: Detection, learned: Mapping[tuple[str, str], str]) -> str:
    told = [reason for of, reason in found.reasons.items() if of == protocol]
    return next(iter([*told, *(reason for key, reason in learned.items() if key[0] == protocol)]), "")


def _put_all(
    figures: Figures,
    own: pd.DataFrame,
    detector: str,
    suffix: str,
    reason: str,
    doses: Sequence[str],
    *,
    is_learned: bool,
) -> None:
    """All measures of a detector under one protocol, over all doses and at each; the learned ones with intervals."""
    write = put_seeds if is_learned else put_mean
    for dose in (ANY, *doses):
        mine = own[(own["detector"] == detector) & (own["dose"] == dose)]
        slice_ = f"{suffix}.{dose}" if dose != ANY else suffix
        for measure in MEASURES:
            told = reason or (NO_DOSE if not len(mine) else NO_EPISODE)
            write(figures, f"detect.{measure}.{detector}{slice_}", mine[measure].tolist(), told)


def _suffix(protocol: str) -> str:
    return "" if protocol == PLAIN_PROTOCOL else f".{protocol}"


def _with_truth(executions: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """With is_stressed, dose (the slice), is_strong and series (node and type) of each execution, in time order by
    detector."""
    if judged.empty:
        return judged.assign(is_stressed=False, dose="", is_strong=False, series=0)
    truth = pd.DataFrame(
        {
            "is_stressed": is_stressed(executions),
            "dose": _slices(executions),
            "is_strong": _levels(executions) >= STRONG_FROM,
            "series": pd.factorize(executions["node"].astype(str) + "\n" + type_names(executions))[0],
        }
    )
    of = judged["execution"].to_numpy(dtype=np.int64)
    joined = pd.concat([judged.reset_index(drop=True), truth.iloc[of].reset_index(drop=True)], axis=1)
    return joined.sort_values(["protocol", "round", "detector", "execution"], kind="stable", ignore_index=True)


def _slices(executions: pd.DataFrame) -> list[str]:
    """The slice of the dose of each execution: by level, where none is given by name; empty for none."""
    levels = _levels(executions)
    doses = executions["dose"].fillna("").astype(str).tolist()
    names = {dose: f"dose_{slug(dose) or UNNAMED}" if is_dose(dose) else "" for dose in set(doses)}
    return [f"dose_{level}" if level > 0 else names[dose] for level, dose in zip(levels, doses, strict=True)]


def _levels(executions: pd.DataFrame) -> pd.Series:
    """The level of the dose of each execution, 0 where nobody says any."""
    return executions["dose_level"].astype("Float64").fillna(0).astype(int)


def _named_doses(judged: pd.DataFrame) -> tuple[list[str], int]:
    """Slices beside those of DOSES that stressed executions have, and how many more are left out."""
    told = judged.loc[judged["is_stressed"].astype(bool) & (judged["dose"] != ""), "dose"].value_counts()
    found = [str(dose) for dose in told.index if dose not in DOSES]
    return sorted(found[:MOST_NAMED]), max(len(found) - MOST_NAMED, 0)


def _measured(judged: pd.DataFrame, doses: Sequence[str]) -> Iterator[dict[str, object]]:
    """One row a protocol, round, detector and dose. At a dose: all normal executions, and those stressed with it, at
    STRONG those stressed with any that is strong."""
    for (protocol, number, detector), own in judged.groupby(["protocol", "round", "detector"], sort=False):
        for dose in (ANY, *doses):
            is_meant = own["is_strong"] if dose == STRONG else own["dose"] == dose
            used = own if dose == ANY else own[~own["is_stressed"] | is_meant]
            stressed = used["is_stressed"].to_numpy(dtype=bool)
            if not stressed.any() or stressed.all():
                continue
            told = measures_of(
                used["score"].to_numpy(dtype=np.float64),
                used["is_flagged"].to_numpy(dtype=bool),
                stressed,
                used["series"].to_numpy(),
            )
            about = {"protocol": protocol, "round": number, "detector": detector}
            about |= {"dose": dose, "n": len(used), "n_stressed": int(stressed.sum())}
            yield {**about, **told}


def _curves(judged: pd.DataFrame) -> pd.DataFrame:
    """Precision over recall: protocol, round, detector, threshold, precision, recall, n_flagged."""
    parts = []
    for (protocol, _, detector), own in judged.groupby(["protocol", "round", "detector"], sort=False):
        stressed = own["is_stressed"].to_numpy(dtype=bool)
        if stressed.any():
            curve = precision_recall(own["score"].to_numpy(dtype=np.float64), stressed)
            parts.append(curve.assign(protocol=str(protocol), round=own["round"].iloc[0], detector=str(detector)))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
