"""Figures of detection: `detect.<measure>.<detector>[.<protocol>][.dose_<dose>]`; without a protocol: by time."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed, type_names
from tasks.nodes.benchmark_names import slug
from tasks.nodes.evaluate.alarms import MEASURES, measures_of, precision_recall
from tasks.nodes.evaluate.detection import Detection
from tasks.nodes.evaluate.figures import Figures, put, put_mean
from tasks.nodes.evaluate.learned_figures import LearnedResults, put_seeds
from tasks.nodes.evaluate.splits import PROTOCOLS, Protocol
from tasks.nodes.labels import is_dose

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
