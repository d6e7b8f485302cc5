"""Stressed executions told by each detector: what is learned from, what chooses a threshold, what is tested, and how
well that goes.

rolling: of each node and type, all executions before an origin train, the next tenth tests, from 40 % on in steps of a
tenth: six rounds, each measured alone. chronological: of each node and type the first share trains, the next validates,
the rest tests. random: the paper's (IV-C): stratified by node, type and stress. left_node: the other nodes train and
validate, by time; all executions of the left node test, so that it has no history to learn from. after_warm_up: of each
node and type the first tenth is what is usual, and nothing is said of stress; the rest tests. transfer: what was
recorded before trains and validates, by time; another recording tests."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

import numpy as np
import pandas as pd

from tasks.errors import report_progress
from tasks.nodes.detect.detector import EVEN_ODDS
from tasks.nodes.detect.plain import BASELINE, DETECTORS, OUT_OF_FOLD, WITHOUT_LABELS, DetectionCase, Detector
from tasks.nodes.evaluate import alarms
from tasks.nodes.evaluate.measures import MEASURES, measures_of, put_seeds
from tasks.nodes.history import History
from tasks.nodes.params import CONFIDENCE, EvaluateParams
from tasks.nodes.preprocess.fitting import learn_tables
from tasks.nodes.readers.labels import is_dose
from tasks.nodes.readers.vetting import slug
from tasks.nodes.type_tables import Bools, Floats, is_stressed, is_unstressed, time_places, type_names
from tasks.report.evaluation import Figures, put, put_mean

Protocol = Literal["rolling", "chronological", "random", "left_node", "after_warm_up", "transfer"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
BY_TIME: Final = "chronological"  # its figures have no protocol in their keys
RANDOM, LEFT, WARM, TRANSFER = "random", "left_node", "after_warm_up", "transfer"
PAPER = "paper"  # the protocol of Perona's authors, and the variant of the network that gives verdicts
TRAIN, SEEN = 0.6, 0.8  # shares of the executions that are learned from, and with those that choose a threshold
FLAGGED_WITHOUT = 0.01  # share of validation that is flagged where it has no stressed execution to choose by
ORIGINS, STEP, WARM_UP = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9), 0.1, 0.1
NEARBY = 0.02  # of the executions, on either side of a threshold, over which its F1 is averaged
CLAIMS, LABELS = ("is_stressed", "stress_wanted"), ("dose", "dose_level")
COLUMNS = ["protocol", "round", "split", "detector", "execution", "score", "threshold", "is_flagged"]
BUDGETED, BUDGETED_IN = ("detector", WITHOUT_LABELS), ("rolling", TRANSFER)
DOSES = tuple(f"dose_{level}" for level in (1, 2, 3))
STRONG_FROM = 2  # level of doses of about three standard deviations and above, which are measured together as well
STRONG = f"from_dose_{STRONG_FROM}"
KINDS = ("kind_between", "kind_two", "kind_neighbour", "kind_bandwidth", "kind_delay")  # as names of doses begin
ANY = "any"
MOST_NAMED = 20  # doses that have a name and no level: the most frequent ones have figures
WARM_FROM = 5  # executions of the node and type before, from which a node that was left out has a level of its own
LEFT_PARTS = ("left_node_warm", "left_node_cold")
SHARING = (RANDOM, PAPER)  # protocols whose rounds share executions: their spread is that over rounds
RESAMPLED = ("f1_outlier", "auprc", "false_alarms_per_1000")
CURVE, CURVE_DRAWS = (0, 1, 2, 5, 10, 20), 3
ONE_NODE = "there is one node; at least two are needed, to leave one out"
NOT_LABELLED = "no execution says whether it was stressed (is_stressed)"
ONE_CLASS = "stressed and unstressed executions are needed; all that say so are {0}"
NO_TESTED = "no tested execution says whether it was stressed"
NO_DOSE = "no tested execution was stressed at this dose, or none was not stressed"
NO_EPISODE = "no episode of stress was found"


@dataclass(frozen=True)
class LearnedResults:
    """judged: one row an execution that the paper's variant tested, and fit, as in Detection. fits: one row a fit:
    FIT_COLUMNS. reasons: by protocol and detector, all that were asked for; empty where there is a fit."""

    judged: pd.DataFrame
    fits: pd.DataFrame
    reasons: dict[tuple[str, str], str]


@dataclass(frozen=True)
class Split:
    """Masks (n_executions,) that do not overlap. name: such as `repeat 3` or a node's."""

    name: str
    is_train: Bools
    is_validation: Bools
    is_test: Bools


@dataclass(frozen=True)
class Detection:
    """judged: one row a tested execution, split and detector: protocol, round (from 0; the splits of a round are
    measured together), split, detector, execution, score, threshold, is_flagged. reasons: of the protocols that were
    asked for, why one has none. budgets: thresholds by budgets of false alarms, as in alarms.py."""

    judged: pd.DataFrame
    reasons: dict[str, str]
    budgets: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=alarms.COLUMNS))


def splits_of(
    executions: pd.DataFrame, protocol: Protocol, params: EvaluateParams, taught: Bools | None = None
) -> list[list[Split]]:
    """Rounds of splits over executions in time order; those of a round are measured together. None: left_node with one
    node. taught: (n_executions,) executions that `transfer` learns from."""
    keys = pd.DataFrame({"node": executions["node"].to_numpy(), "type": type_names(executions).to_numpy()})
    if protocol == "rolling":
        share = TRAIN / SEEN
        places = _time_places(keys)
        bounds = [(share * origin, origin, origin + STEP) for origin in ORIGINS]
        return [[_by_place(f"from {cut[1]:.0%}", places, *cut)] for cut in bounds]
    if protocol == "chronological":
        return [[split_by_time(executions, TRAIN, SEEN)]]
    if protocol == "after_warm_up":
        return [[_by_place("after warm-up", _time_places(keys), WARM_UP, WARM_UP)]]
    if protocol == "random":
        strata = keys.assign(is_stressed=is_stressed(executions).to_numpy(dtype=bool))
        drawn = (_drawn_places(strata, at, params.seed) for at in range(params.repeats))
        return [[_by_place(f"repeat {at + 1}", places, TRAIN, SEEN)] for at, places in enumerate(drawn)]
    if protocol == "transfer":
        of_others = np.zeros(len(keys), dtype=bool) if taught is None else taught
        return [[_beside("another recording", keys, of_others)]]
    nodes = sorted(keys["node"].unique())
    left = nodes[: params.max_left_nodes] if len(nodes) > 1 else []
    splits = [_beside(str(node), keys, (keys["node"] != node).to_numpy()) for node in left]
    return [splits] if splits else []


def split_by_time(executions: pd.DataFrame, train: float, seen: float) -> Split:
    """Of each node and type what lies before `train` trains, before `seen` validates, and the rest tests."""
    return _by_place("all nodes", time_places(executions), train, seen)


def _time_places(keys: pd.DataFrame) -> Floats:
    """Where each execution lies among those of its node and type: from 0 to less than 1."""
    groups = keys.groupby(list(keys.columns))
    return (groups.cumcount() / groups["node"].transform("size")).to_numpy(dtype=np.float64)


def _drawn_places(strata: pd.DataFrame, repeat: int, seed: int) -> Floats:
    """The same in a drawn order."""
    order = np.random.default_rng([seed, repeat]).permutation(len(strata))
    places = np.empty(len(strata))
    places[order] = _time_places(strata.iloc[order])
    return places


def _by_place(name: str, places: Floats, train: float, seen: float, tested: float = np.inf) -> Split:
    """What lies before `train` trains, before `seen` validates, before `tested` tests."""
    is_train, is_seen = places < train, places < seen
    return Split(name, is_train, is_seen & ~is_train, ~is_seen & (places < tested))


def _beside(name: str, keys: pd.DataFrame, taught: Bools) -> Split:
    """The executions of the mask (n_executions,) train and validate, by time; all others test."""
    places = np.full(len(keys), np.inf)
    places[taught] = _time_places(keys[taught])
    is_train = places < TRAIN / SEEN
    return Split(name, is_train, taught & ~is_train, ~taught)


def choose_threshold(scores: Floats, is_stressed: Bools) -> float:
    """The threshold with the best F1 on these executions, the highest of equals. Flagged: scores above it.

    scores: (n,) finite. It lies half way between two scores, so that it does not hang on one of them, and its F1 is the
    mean of its own and of those of the thresholds nearby, so that it stands on no lone peak. Without a stressed
    execution: the score that one in a hundred of them exceeds. Infinite without any: nothing is flagged."""
    if not len(scores):
        return np.inf
    if not is_stressed.any():
        return float(np.quantile(scores, 1 - FLAGGED_WITHOUT))
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


def visible_history(history: History, params: EvaluateParams) -> History:
    """What learns and chooses thresholds is told: everything, or nothing of stress (params.without_labels)."""
    if not params.without_labels:
        return history
    executions = history.executions
    nowhere = pd.Series(False, index=executions.index)
    hidden = {name: executions[name].where(nowhere) for name in LABELS if name in executions.columns}
    hidden |= {name: executions[name].astype("boolean").where(nowhere) for name in CLAIMS if name in executions.columns}
    return replace(history, executions=executions.assign(**hidden))


def labels_reason(executions: pd.DataFrame) -> str:
    """Why detection cannot be measured; empty where it can."""
    known = executions["is_stressed"].dropna().astype(bool).unique().tolist()
    if not known:
        return NOT_LABELLED
    return "" if len(known) > 1 else ONE_CLASS.format("stressed" if known[0] else "unstressed")


def detect(
    history: History, detectors: Mapping[str, Detector], params: EvaluateParams, taught: Bools | None = None
) -> Detection:
    """Judge the labelled executions of the history by every detector under every protocol.

    Each split preprocesses, fits and chooses its thresholds anew: tested executions teach nothing. taught:
    (n_executions,) executions that are learned from alone; the others are tested then, and there is no other protocol.
    """
    reason = labels_reason(history.executions)
    protocols = tuple(protocol for protocol in PROTOCOLS if (protocol == TRANSFER) == (taught is not None))
    reasons: dict[str, str] = dict.fromkeys(protocols, reason)
    parts: list[pd.DataFrame] = []
    budgets: list[dict[str, Any]] = []
    for protocol in () if reason else protocols:
        rounds = splits_of(history.executions, protocol, params, taught)
        reasons[protocol] = "" if rounds else ONE_NODE
        protocol_params = params.model_copy(update={"without_labels": True}) if protocol == WARM else params
        used = {name: detector for name, detector in detectors.items() if protocol != WARM or name not in OUT_OF_FOLD}
        for number, split in ((number, split) for number, splits in enumerate(rounds) for split in splits):
            report_progress(f"finding stressed executions, {protocol}", number, len(rounds))
            about = {"protocol": protocol, "round": number}
            case = case_of(visible_history(history, protocol_params), split, protocol_params)
            scores = {name: detector(case) for name, detector in used.items()}
            for name, detector_scores in scores.items():
                threshold = _threshold_of(history, case, name, detector_scores, protocol_params)
                parts.append(judged_rows(history, split, name, detector_scores, threshold).assign(**about))
            if protocol in BUDGETED_IN:
                learned = split.is_train | split.is_validation
                calm = learned & is_unstressed(case.history.executions).to_numpy(dtype=bool)
                for name in (name for name in BUDGETED if name in scores):
                    thresholds = alarms.thresholds_by_budget(history.executions, scores[name], calm, params)
                    budgets += [{**about, "detector": name, **row} for row in thresholds]
    judged = pd.concat(parts, ignore_index=True)[COLUMNS] if parts else pd.DataFrame(columns=COLUMNS)
    return Detection(judged, reasons, pd.DataFrame(budgets, columns=alarms.COLUMNS))


def case_of(history: History, split: Split, params: EvaluateParams) -> DetectionCase:
    """What a detector is given of a split, preprocessed with what its training executions teach."""
    is_normal = split.is_train & is_unstressed(history.executions).to_numpy(dtype=bool)
    tables = learn_tables(history, split.is_train, params.preprocess)
    return DetectionCase(history, tables, split.is_train, is_normal, split.is_validation, params.seed)


def _threshold_of(history: History, case: DetectionCase, name: str, scores: Floats, params: EvaluateParams) -> float:
    """By what the case knows of stress in validation, and in training where scores of what was learned are out of fold.
    Without labels ours flag from even odds on."""
    if name == WITHOUT_LABELS or (params.without_labels and name in OUT_OF_FOLD):
        return EVEN_ODDS
    may_choose = case.is_validation
    if name in OUT_OF_FOLD or not may_choose.any():
        may_choose = case.is_validation | case.is_train
    is_used = may_choose & history.executions["is_stressed"].notna().to_numpy() & ~np.isnan(scores)
    stressed = is_stressed(case.history.executions).to_numpy(dtype=bool)
    return choose_threshold(scores[is_used], stressed[is_used])


def judged_rows(history: History, split: Split, name: str, scores: Floats, threshold: float) -> pd.DataFrame:
    """One row a labelled, tested execution that a detector scored: COLUMNS but for protocol and round.

    scores: (n_executions,), NaN where it said nothing."""
    is_known = history.executions["is_stressed"].notna().to_numpy()
    tested = np.flatnonzero(split.is_test & is_known & ~np.isnan(scores))
    columns = {"split": split.name, "detector": name, "execution": tested, "score": scores[tested]}
    return pd.DataFrame({**columns, "threshold": threshold, "is_flagged": scores[tested] > threshold})


def detection_results(
    executions: pd.DataFrame,
    detection: Detection,
    detectors: Sequence[str],
    params: EvaluateParams,
    learned: LearnedResults | None = None,
) -> tuple[Figures, dict[str, pd.DataFrame]]:
    """The figures, and tables `detection` (one row a protocol, round, detector and dose) and `precision_recall`.

    learned: what the network flagged; its rounds are seeds as well. Of what it tests in the protocol of the paper
    the plain detectors have figures too."""
    plain = detection.judged
    parts = [plain, _of_left_node(executions, plain)]
    reasons = {(protocol, name): why for protocol, why in detection.reasons.items() for name in detectors}
    reasons = {key: why for key, why in reasons.items() if key[0] != WARM or key[1] not in OUT_OF_FOLD}
    reasons |= {(part, name): why for (of, name), why in reasons.items() if of == LEFT for part in LEFT_PARTS}
    of_network: dict[tuple[str, str], str] = {}
    if learned is not None:
        parts += [learned.judged, _as_the_paper_tests(plain, learned.judged)]
        of_network = {key: why for key, why in learned.reasons.items() if key[1] == PAPER}  # ours gives no verdicts
        if paper_reasons := [reason for (protocol, _), reason in of_network.items() if protocol == PAPER]:
            reasons |= {(PAPER, name): detection.reasons[RANDOM] or min(paper_reasons) for name in detectors}
    judged = _with_truth(executions, pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True))
    named, n_left_out = _named_doses(judged)
    kinds = [kind for kind in KINDS if (judged["kind"] == kind).any()]
    doses = (*DOSES, STRONG, *named, *kinds)
    about = ["protocol", "round", "detector", "dose", "n", "n_stressed"]
    table = pd.DataFrame(list(_measured(judged, doses)), columns=[*about, *MEASURES])
    figures: Figures = {"detect.doses_left_out": n_left_out} if n_left_out else {}
    every = reasons | of_network
    for protocol in dict.fromkeys(protocol for protocol, _ in every):
        suffix = "" if protocol == BY_TIME else f".{protocol}"
        tested = judged[judged["protocol"] == protocol]
        once = tested.drop_duplicates(["round", "execution"])
        why = next(reason for (of, _), reason in every.items() if of == protocol)
        n_tested = len(once) // once["round"].nunique() if len(once) else None  # of a round
        put(figures, f"detect.n{suffix}", n_tested, why or NO_TESTED)
        of_protocol = table[table["protocol"] == protocol]
        for (of, name), reason in every.items():
            if of == protocol:
                write = put_seeds if (of, name) in of_network else put_mean
                for dose in (ANY, *doses):
                    rows = of_protocol[(of_protocol["detector"] == name) & (of_protocol["dose"] == dose)]
                    reason_of_dose = reason or (NO_EPISODE if len(rows) else NO_DOSE)
                    slice_ = suffix if dose == ANY else f"{suffix}.{dose}"
                    for measure in MEASURES:
                        write(figures, f"detect.{measure}.{name}{slice_}", rows[measure].tolist(), reason_of_dose)
        if protocol not in SHARING:
            figures |= _intervals(tested[tested["detector"].isin(list(detectors))], suffix, kinds, params)
    figures |= alarms.budget_figures(executions, plain, detection.budgets, params)
    return figures, {"detection": table, "precision_recall": _curves(judged)}


def _of_left_node(executions: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """What was judged of left nodes once more, by whether the node had run the benchmark often enough before."""
    left_rows = judged[judged["protocol"] == LEFT]
    series = [executions["node"].astype(str).to_numpy(), type_names(executions).to_numpy()]
    n_before = pd.Series(0, index=executions.index).groupby(series).cumcount().to_numpy()
    is_warm = n_before[left_rows["execution"].to_numpy(dtype=np.int64)] >= WARM_FROM
    return left_rows.assign(protocol=np.where(is_warm, *LEFT_PARTS))


def _as_the_paper_tests(plain: pd.DataFrame, learned: pd.DataFrame) -> pd.DataFrame:
    """What plain detectors say, in the same split, of the executions that the protocol of the paper tests."""
    random_rows = plain[plain["protocol"] == RANDOM]
    rounds = sorted(random_rows["round"].unique())
    tested = learned[learned["protocol"] == PAPER] if rounds else learned[:0]
    parts = [random_rows[:0]]
    for number, executions in tested.groupby("round")["execution"]:
        of_split = random_rows[random_rows["round"] == rounds[int(str(number)) % len(rounds)]]
        parts.append(of_split[of_split["execution"].isin(executions)].assign(protocol=PAPER, round=number))
    return pd.concat(parts, ignore_index=True)


def _with_truth(executions: pd.DataFrame, judged: pd.DataFrame) -> pd.DataFrame:
    """With is_stressed, dose and kind (the slices), is_strong and series (node and type) of each execution, in time
    order by detector."""
    level = executions["dose_level"].astype("Float64").fillna(0).astype(int)  # 0 where nobody says any
    dose = executions["dose"].fillna("").astype(str)
    names = {label: f"dose_{slug(label) or 'unnamed'}" if is_dose(label) else "" for label in set(dose)}
    kind = "kind_" + dose.str.partition("-")[0]
    truth = pd.DataFrame(
        {
            "is_stressed": is_stressed(executions),
            "dose": ("dose_" + level.astype(str)).where(level > 0, dose.map(names)),
            "kind": kind.where(kind.isin(KINDS) & (level > 0), ""),
            "is_strong": level >= STRONG_FROM,
            "series": pd.factorize(executions["node"].astype(str) + "\n" + type_names(executions))[0],
        }
    )
    of = judged["execution"].to_numpy(dtype=np.int64)
    joined = pd.concat([judged.reset_index(drop=True), truth.iloc[of].reset_index(drop=True)], axis=1)
    return joined.sort_values(["protocol", "round", "detector", "execution"], kind="stable", ignore_index=True)


def _named_doses(judged: pd.DataFrame) -> tuple[list[str], int]:
    """Slices beside those of DOSES that stressed executions have, and how many more are left out."""
    counts = judged.loc[judged["is_stressed"].astype(bool) & (judged["dose"] != ""), "dose"].value_counts()
    names = [str(dose) for dose in counts.index if dose not in DOSES]
    return sorted(names[:MOST_NAMED]), max(len(names) - MOST_NAMED, 0)


def _measured(judged: pd.DataFrame, doses: Sequence[str]) -> Iterator[dict[str, object]]:
    """One row a protocol, round, detector and dose. At a dose: all normal executions, and those stressed with it, at
    STRONG those stressed with any that is strong."""
    for (protocol, number, detector), group in judged.groupby(["protocol", "round", "detector"], sort=False):
        for dose in (ANY, *doses):
            is_meant = group["is_strong"] if dose == STRONG else group["kind" if dose in KINDS else "dose"] == dose
            used = group if dose == ANY else group[~group["is_stressed"] | is_meant]
            stressed = used["is_stressed"].to_numpy(dtype=bool)
            if not stressed.any() or stressed.all():
                continue
            scores, flags = used["score"].to_numpy(dtype=np.float64), used["is_flagged"].to_numpy(dtype=bool)
            about = {"protocol": protocol, "round": number, "detector": detector, "dose": dose}
            counts = {"n": len(used), "n_stressed": int(stressed.sum())}
            yield {**about, **counts, **measures_of(scores, flags, stressed, used["series"].to_numpy())}


def _curves(judged: pd.DataFrame) -> pd.DataFrame:
    """Precision over recall: protocol, round, detector, threshold (flagged: scores from it on), precision, recall."""
    from sklearn.metrics import precision_recall_curve  # type: ignore[import-untyped, unused-ignore]

    parts = []
    for (protocol, number, detector), group in judged.groupby(["protocol", "round", "detector"], sort=False):
        stressed = group["is_stressed"].to_numpy(dtype=bool)
        if stressed.any():
            precision, recall, threshold = precision_recall_curve(stressed, group["score"].to_numpy(dtype=np.float64))
            curve = {"threshold": threshold[::-1], "precision": precision[-2::-1], "recall": recall[-2::-1]}
            parts.append(pd.DataFrame({"protocol": protocol, "round": number, "detector": detector, **curve}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _intervals(judged: pd.DataFrame, suffix: str, kinds: Sequence[str], params: EvaluateParams) -> Figures:
    """`.low` and `.high` of RESAMPLED measures of every detector, and `.minus_<baseline>` with both: what it has over
    the baseline on the same executions. Of one protocol, over all doses and for each kind of stress.

    Executions are resampled within each round and class, for all detectors alike; nothing else is: not what was learned
    from, and executions count as independent."""
    figures: Figures = {}
    beyond = (1 - CONFIDENCE) / 2

    def put_interval(key: str, drawn: Floats) -> None:
        for end, share in (("low", beyond), ("high", 1 - beyond)):
            put(figures, f"{key}.{end}", float(np.nanquantile(drawn, share)) if np.isfinite(drawn).any() else None)

    for kind in (ANY, *kinds):
        used = judged if kind == ANY else judged[~judged["is_stressed"] | (judged["kind"] == kind)]
        parts = {str(name): group for name, group in used.groupby("detector", sort=False)}
        tested = {name: group[["round", "execution"]].to_numpy() for name, group in parts.items()}
        resampled = {name: _resampled(group, params) for name, group in parts.items()}
        slice_ = suffix if kind == ANY else f"{suffix}.{kind}"
        for name, drawn in resampled.items():
            is_beside = name != BASELINE and BASELINE in resampled and np.array_equal(tested[name], tested[BASELINE])
            for at, measure in enumerate(RESAMPLED if len(drawn) else ()):
                key = f"detect.{measure}.{name}{slice_}"
                put_interval(key, drawn[1:, at])
                if is_beside:
                    gained = drawn[:, at] - resampled[BASELINE][:, at]
                    put(figures, f"{key}.minus_{BASELINE}", float(gained[0]))
                    put_interval(f"{key}.minus_{BASELINE}", gained[1:])
    return figures


def _resampled(judged: pd.DataFrame, params: EvaluateParams) -> Floats:
    """RESAMPLED measures of one detector, mean over rounds: as it is, then in each resample: (1 + resamples, 3).

    Empty where no round has both classes. The same executions are drawn for every detector that judged the same."""
    parts = []
    for number, of_round in judged.groupby("round"):
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
    correct, wrong = weights @ (is_flagged & is_stressed), weights @ (is_flagged & ~is_stressed)
    return np.column_stack([2 * correct / (correct + wrong + n_stressed), auprc, 1000 * wrong / n_normal])


def learning_curve(history: History, params: EvaluateParams) -> Figures:
    """`curve.auprc.<n>`, and `.logistic` of the plain baseline: average precision on later executions where n stressed
    executions of each benchmark are known; mean over draws, with `.deviation`.

    The other stressed ones teach nothing: they have not been recorded as stressed, nor do they count as calm."""
    from sklearn.metrics import average_precision_score  # type: ignore[import-untyped, unused-ignore]

    keys = {"detector": "curve.auprc.{0}", BASELINE: f"curve.auprc.{{0}}.{BASELINE}"}
    figures: Figures = {}
    if reason := labels_reason(history.executions):
        for n in CURVE:
            for key in keys.values():
                put(figures, key.format(n), None, reason)
        return figures
    types = type_names(history.executions).to_numpy()
    split = splits_of(history.executions, BY_TIME, params)[0][0]
    case = case_of(history, split, params)
    known, stressed = history.executions["is_stressed"].notna().to_numpy(), is_stressed(history.executions).to_numpy()
    may_teach = np.flatnonzero(stressed & ~split.is_test)
    for at, n in enumerate(CURVE):
        report_progress(f"learning from {n} stressed executions of each benchmark", at, len(CURVE))
        precisions: dict[str, list[float | None]] = {name: [] for name in keys}
        for draw in range(CURVE_DRAWS if n else 1):
            order = np.random.default_rng([params.seed, n, draw]).permutation(may_teach)
            drawn = order[pd.Series(types[order]).groupby(types[order]).cumcount().to_numpy() < n]
            is_used = ~stressed | np.isin(np.arange(len(stressed)), drawn)
            of_draw = replace(case, is_train=case.is_train & is_used, is_validation=case.is_validation & is_used)
            for name, values in precisions.items():
                scores = DETECTORS[name](of_draw)
                tested = split.is_test & known & ~np.isnan(scores)
                if stressed[tested].any():
                    values.append(float(average_precision_score(stressed[tested], scores[tested])))
        for name, key in keys.items():
            put_mean(figures, key.format(n), precisions[name], NO_TESTED)
    return figures
