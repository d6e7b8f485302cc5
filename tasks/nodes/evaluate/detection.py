"""Stressed executions found by each detector, under each protocol."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed, is_unstressed, type_names
from tasks.nodes.detect.plain import BASELINE, DETECTORS, EVEN_ODDS, OUT_OF_FOLD, WITHOUT_LABELS, Case, Detector
from tasks.nodes.evaluate import alarms
from tasks.nodes.evaluate.measures import (
    MEASURES,
    PAPER,
    Figures,
    LearnedResults,
    average_precision,
    measures_of,
    precision_recall,
    put,
    put_mean,
    put_seeds,
)
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.evaluate.splits import PROTOCOLS, Protocol, Split, as_told, choose_threshold, splits_of
from tasks.nodes.history import History
from tasks.nodes.readers.labels import is_dose
from tasks.nodes.readers.vetting import slug
from tasks.nodes.type_tables import Bools, Floats, NodeTables
from tasks.progress import report_progress

Prepare = Callable[[History, Bools], NodeTables]  # learned from the executions of the mask
COLUMNS = ["protocol", "round", "split", "detector", "execution", "score", "threshold", "is_flagged"]
TRANSFER: Protocol = "transfer"
WARM: Protocol = "after_warm_up"
BUDGETED = ("detector", WITHOUT_LABELS)
BUDGETED_IN: tuple[Protocol, ...] = ("rolling", TRANSFER)
NOT_LABELLED = "no execution says whether it was stressed (is_stressed)"
ONE_CLASS = "stressed and unstressed executions are needed; all that say so are {0}"


@dataclass(frozen=True)
class Detection:
    """judged: one row a tested execution, split and detector: protocol, round (from 0; the splits of a round are
    measured together), split, detector, execution, score, threshold, is_flagged. reasons: of the protocols that were
    asked for, why one has none. budgets: thresholds by budgets of false alarms, as in alarms.py."""

    judged: pd.DataFrame
    reasons: dict[Protocol, str]
    budgets: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=alarms.COLUMNS))


def labels_reason(executions: pd.DataFrame) -> str:
    """Why detection cannot be measured; empty where it can."""
    known = executions["is_stressed"].dropna().astype(bool)
    if not len(known):
        return NOT_LABELLED
    if known.nunique() < 2:
        return ONE_CLASS.format("stressed" if known.iloc[0] else "unstressed")
    return ""


def detect(
    history: History,
    prepare: Prepare,
    detectors: Mapping[str, Detector],
    params: EvaluateParams,
    taught: Bools | None = None,
) -> Detection:
    """Judge the labelled executions of the history by every detector under every protocol.

    Each split preprocesses, fits and chooses its thresholds anew: tested executions teach nothing. taught:
    (n_executions,) executions that are learned from alone; the others are tested then, and there is no other protocol.
    """
    reason = labels_reason(history.executions)
    asked = tuple(protocol for protocol in PROTOCOLS if (protocol == TRANSFER) == (taught is not None))
    reasons: dict[Protocol, str] = dict.fromkeys(asked, reason)
    parts: list[pd.DataFrame] = []
    budgets: list[dict[str, Any]] = []
    types = type_names(history.executions).tolist()
    for protocol in () if reason else asked:
        found = splits_of(history.executions, types, protocol, params, taught)
        reasons[protocol] = found.reason
        is_told = params.model_copy(update={"without_labels": True}) if protocol == WARM else params
        used = {name: one for name, one in detectors.items() if protocol != WARM or name not in OUT_OF_FOLD}
        for number, splits in enumerate(found.rounds):
            for split in splits:
                report_progress(f"finding stressed executions, {protocol}", number, len(found.rounds))
                about = {"protocol": protocol, "round": number}
                case = case_of(as_told(history, is_told), split, prepare, params.seed)
                scores = {name: detector(case) for name, detector in used.items()}
                parts += [
                    _judged(history, case, split, name, told, is_told).assign(**about) for name, told in scores.items()
                ]
                if protocol in BUDGETED_IN:
                    learned = split.is_train | split.is_validation
                    calm = learned & is_unstressed(case.history.executions).to_numpy(dtype=bool)
                    for name in (name for name in BUDGETED if name in scores):
                        thresholds = alarms.thresholds_by_budget(history.executions, scores[name], calm, params)
                        budgets += [{**about, "detector": name, **one} for one in thresholds]
    judged = pd.concat(parts, ignore_index=True)[COLUMNS] if parts else pd.DataFrame(columns=COLUMNS)
    return Detection(judged, reasons, pd.DataFrame(budgets, columns=alarms.COLUMNS))


def case_of(history: History, split: Split, prepare: Prepare, seed: int) -> Case:
    """What a detector is given of a split."""
    is_normal = split.is_train & is_unstressed(history.executions).to_numpy(dtype=bool)
    tables = prepare(history, split.is_train)
    return Case(history, tables, split.is_train, is_normal, split.is_validation, seed)


def _judged(
    history: History, case: Case, split: Split, name: str, scores: Floats, params: EvaluateParams
) -> pd.DataFrame:
    """What a detector says of the tested executions. Without labels ours flag from even odds on."""
    is_fixed = name == WITHOUT_LABELS or (params.without_labels and name in OUT_OF_FOLD)
    may_choose = split.is_validation
    if name in OUT_OF_FOLD or not may_choose.any():
        may_choose = split.is_validation | split.is_train
    return judged_rows(
        history,
        split,
        name,
        scores,
        params.false_alarm_share,
        threshold=EVEN_ODDS if is_fixed else None,
        chosen_by=is_stressed(case.history.executions).to_numpy(dtype=bool),
        may_choose=may_choose,
    )


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
DOSES = tuple(f"dose_{level}" for level in (1, 2, 3))
STRONG_FROM = 2  # level of doses of about three standard deviations and above, which are measured together as well
STRONG = f"from_dose_{STRONG_FROM}"
MOST_NAMED = 20  # doses that have a name and no level: the most frequent ones have figures
NO_TESTED = "no tested execution says whether it was stressed"
NO_DOSE = "no tested execution was stressed at this dose, or none was not stressed"
UNNAMED = "unnamed"
NO_EPISODE = "no episode of stress was found"
ANY = "any"
KINDS = ("kind_between", "kind_two", "kind_neighbour", "kind_bandwidth", "kind_delay")  # as names of doses begin
LEFT: Protocol = "left_node"
WARM_FROM = 5  # executions of the node and type before, from which a node that was left out has a level of its own
LEFT_PARTS = ("left_node_warm", "left_node_cold")
SHARING = (RANDOM, PAPER)  # protocols whose rounds share executions: their spread is that over rounds
CURVED, CURVE, CURVE_DRAWS = "detector", (0, 1, 2, 5, 10, 20), 3
RESAMPLED = ("f1_outlier", "auprc", "false_alarms_per_1000")


def detection_results(
    executions: pd.DataFrame,
    found: Detection,
    detectors: Sequence[str],
    params: EvaluateParams,
    learned: LearnedResults | None = None,
) -> tuple[Figures, dict[str, pd.DataFrame]]:
    """The figures, and tables `detection` (one row a protocol, round, detector and dose) and `precision_recall`.

    learned: what the learned model flagged; its rounds are seeds as well. Of what it tests in the protocol of the paper
    the plain detectors have figures too. Of another recording the half that is asked for counts, without executions of
    which a limit was lowered for good: these are told apart, by delay."""
    plain = found.judged
    if TRANSFER in found.reasons:
        is_counted = alarms.halves_of(executions, params) & ~alarms.is_of_lowered(executions)
        plain = plain[is_counted[plain["execution"].to_numpy(dtype=np.int64)]]
    parts = [plain]
    if learned is not None:
        parts += [learned.judged, _as_the_paper_tests(plain, learned.judged)]
    parts.append(_of_left_node(executions, plain))
    judged = _with_truth(executions, pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True))
    named, n_left_out = _named_doses(judged)
    kinds = [kind for kind in KINDS if (judged["kind"] == kind).any()]
    doses = (*DOSES, STRONG, *named, *kinds)
    rows = list(_measured(judged, doses))
    table = pd.DataFrame(rows, columns=["protocol", "round", "detector", "dose", "n", "n_stressed", *MEASURES])
    figures: Figures = {"detect.doses_left_out": n_left_out} if n_left_out else {}
    reasons = {(str(protocol), name): why for protocol, why in found.reasons.items() for name in detectors}
    reasons = {key: why for key, why in reasons.items() if key[0] != WARM or key[1] not in OUT_OF_FOLD}
    learned_reasons = learned.verdict_reasons if learned is not None else {}
    reasons |= {(part, name): why for (of, name), why in reasons.items() if of == LEFT for part in LEFT_PARTS}
    if told := [reason for (protocol, _), reason in learned_reasons.items() if protocol == PAPER]:
        reasons |= {(PAPER, name): found.reasons[RANDOM] or min(told) for name in detectors}
    for protocol in dict.fromkeys(protocol for protocol, _ in (*reasons, *learned_reasons)):
        own = table[table["protocol"] == protocol]
        tested = judged[judged["protocol"] == protocol].drop_duplicates(["round", "execution"])
        why = _why_none(protocol, found, learned_reasons)
        put(figures, f"detect.n{_suffix(protocol)}", _count_tested(tested), why or NO_TESTED)
        for key, reason in (reasons | learned_reasons).items():
            if key[0] == protocol:
                is_learned = key in learned_reasons
                _put_all(figures, own, key[1], _suffix(protocol), reason, doses, is_learned=is_learned)
        if protocol not in SHARING:
            of_plain = judged[(judged["protocol"] == protocol) & judged["detector"].isin(list(detectors))]
            figures |= _intervals(of_plain, _suffix(protocol), kinds, params)
    figures |= alarms.budget_figures(executions, plain, found.budgets, params)
    figures |= alarms.lowered_figures(executions, found.judged[found.judged["protocol"] == TRANSFER], params)
    return figures, {"detection": table, "precision_recall": _curves(judged)}


def _of_left_node(executions: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """What was judged of left nodes once more, by whether the node had run the benchmark often enough before."""
    own = judged[judged["protocol"] == LEFT]
    series = [executions["node"].astype(str).to_numpy(), type_names(executions).to_numpy()]
    n_before = pd.Series(0, index=executions.index).groupby(series).cumcount().to_numpy()
    is_warm = n_before[own["execution"].to_numpy(dtype=np.int64)] >= WARM_FROM
    return own.assign(protocol=np.where(is_warm, *LEFT_PARTS))


def _intervals(judged: pd.DataFrame, suffix: str, kinds: Sequence[str], params: EvaluateParams) -> Figures:
    """`.low` and `.high` of RESAMPLED measures of every detector, and `.minus_<baseline>` with both: what it has over
    the baseline on the same executions. Of one protocol, over all doses and for each kind of stress.

    Executions are resampled within each round and class, for all detectors alike; nothing else is: not what was learned
    from, and executions count as independent."""
    figures: Figures = {}
    for kind in (ANY, *kinds):
        used = judged if kind == ANY else judged[~judged["is_stressed"] | (judged["kind"] == kind)]
        parts = {str(name): own for name, own in used.groupby("detector", sort=False)}
        each = {name: _resampled(own, params) for name, own in parts.items()}
        alike = {name for name, own in parts.items() if BASELINE in parts and _same_rows(own, parts[BASELINE])}
        slice_ = suffix if kind == ANY else f"{suffix}.{kind}"
        for name, drawn in each.items():
            for at, measure in enumerate(RESAMPLED if len(drawn) else ()):
                _put_interval(figures, f"detect.{measure}.{name}{slice_}", drawn[1:, at], params)
                if name in alike - {BASELINE}:
                    gained = drawn[:, at] - each[BASELINE][:, at]
                    key = f"detect.{measure}.{name}{slice_}.minus_{BASELINE}"
                    put(figures, key, float(gained[0]))
                    _put_interval(figures, key, gained[1:], params)
    return figures


def _same_rows(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two detectors judged the same executions in the same rounds."""
    return np.array_equal(one[["round", "execution"]].to_numpy(), other[["round", "execution"]].to_numpy())


def _put_interval(figures: Figures, key: str, drawn: Floats, params: EvaluateParams) -> None:
    beyond = (1 - params.score.confidence) / 2
    for end, share in (("low", beyond), ("high", 1 - beyond)):
        put(figures, f"{key}.{end}", float(np.nanquantile(drawn, share)) if np.isfinite(drawn).any() else None)


def _resampled(own: pd.DataFrame, params: EvaluateParams) -> Floats:
    """RESAMPLED measures of one detector, mean over rounds: as it is, then in each resample: (1 + resamples, 3).

    Empty where no round has both classes. The same executions are drawn for every detector that judged the same."""
    parts = []
    for number, of_round in own.groupby("round"):
        scores, stressed = of_round["score"].to_numpy(dtype=np.float64), of_round["is_stressed"].to_numpy(dtype=bool)
        if not stressed.any() or stressed.all():
            continue
        rng = np.random.default_rng([params.seed, int(str(number))])
        weights = np.ones((1 + params.resamples, len(scores)))
        for is_class in (stressed, ~stressed):
            n = int(is_class.sum())
            weights[1:, is_class] = rng.multinomial(n, np.full(n, 1 / n), size=params.resamples)
        parts.append(weighted_measures(scores, of_round["is_flagged"].to_numpy(dtype=bool), stressed, weights))
    return np.mean(parts, axis=0) if parts else np.empty((0, len(RESAMPLED)))


def weighted_measures(scores: Floats, is_flagged: Bools, is_stressed: Bools, weights: Floats) -> Floats:
    """RESAMPLED measures in which executions count more than once: (r, 3). weights: (r, n); the others (n,)."""
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    ordered = weights[:, order]
    hits = np.cumsum(ordered * is_stressed[order], axis=1)[:, ends]
    flagged = np.cumsum(ordered, axis=1)[:, ends]
    gained = np.diff(hits, axis=1, prepend=0.0)
    n_stressed, n_normal = weights @ is_stressed, weights @ ~is_stressed
    auprc = (gained * hits / np.maximum(flagged, 1.0)).sum(axis=1) / n_stressed
    found, wrong = weights @ (is_flagged & is_stressed), weights @ (is_flagged & ~is_stressed)
    return np.column_stack([2 * found / (found + wrong + n_stressed), auprc, 1000 * wrong / n_normal])


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
    """With is_stressed, dose and kind (the slices), is_strong and series (node and type) of each execution, in time
    order by detector."""
    if judged.empty:
        return judged.assign(is_stressed=False, dose="", kind="", is_strong=False, series=0)
    truth = pd.DataFrame(
        {
            "is_stressed": is_stressed(executions),
            "dose": _slices(executions),
            "kind": _kinds(executions),
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


def _kinds(executions: pd.DataFrame) -> pd.Series:
    """The slice of the kind of stress, where the name of a dose begins with one; empty for none."""
    named = "kind_" + executions["dose"].fillna("").astype(str).str.partition("-")[0]
    return named.where(named.isin(KINDS) & (_levels(executions) > 0), "")


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
            is_meant = own["is_strong"] if dose == STRONG else own["kind" if dose in KINDS else "dose"] == dose
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


def learning_curve(history: History, prepare: Prepare, params: EvaluateParams) -> Figures:
    """`curve.auprc.<n>`, and `.logistic` of the plain baseline: average precision on later executions where n stressed
    executions of each benchmark are known; mean over draws, with `.deviation`.

    The other stressed ones teach nothing: they have not been recorded as stressed, nor do they count as calm."""
    figures: Figures = {}
    reason = labels_reason(history.executions)
    for n in CURVE:
        put_mean(figures, f"curve.auprc.{n}", [], reason)
        put_mean(figures, f"curve.auprc.{n}.{BASELINE}", [], reason)
    if reason:
        return figures
    types = type_names(history.executions)
    split = splits_of(history.executions, types.tolist(), PLAIN_PROTOCOL, params).rounds[0][0]
    case = case_of(history, split, prepare, params.seed)
    known, stressed = history.executions["is_stressed"].notna().to_numpy(), is_stressed(history.executions).to_numpy()
    may_teach = np.flatnonzero(stressed & ~split.is_test)
    for n in CURVE:
        report_progress(f"learning from {n} stressed executions of each benchmark", CURVE.index(n), len(CURVE))
        each: dict[str, list[float | None]] = {CURVED: [], BASELINE: []}
        for draw in range(CURVE_DRAWS if n else 1):
            order = np.random.default_rng([params.seed, n, draw]).permutation(may_teach)
            drawn = order[pd.Series(types.to_numpy()[order]).groupby(types.to_numpy()[order]).cumcount().to_numpy() < n]
            is_used = ~stressed | np.isin(np.arange(len(stressed)), drawn)
            of_draw = replace(case, is_train=case.is_train & is_used, is_validation=case.is_validation & is_used)
            for name, told in each.items():
                scores = DETECTORS[name](of_draw)
                tested = split.is_test & known & ~np.isnan(scores)
                if stressed[tested].any():
                    told.append(average_precision(precision_recall(scores[tested], stressed[tested])))
        for name, told in each.items():
            key = f"curve.auprc.{n}" if name == CURVED else f"curve.auprc.{n}.{name}"
            figures.pop(f"{key}.reason", None)
            put_mean(figures, key, told, NO_TESTED)
    return figures
