"""Why one run is expected to take long, and why its job varies, in words: of a past run or the next.

A family of features is a reason where together they change the prediction and one of them is not as usual: 9.1 h that
are as usual are no reason for anything, whatever the trees add there. What is no reason is in the rest. What is said
to be expected is the median of what `whorl jobs predict` predicts; the reasons are of the mean of its logarithm,
against the usual runs of the same job."""

import math
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import NotFound
from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import (
    FAMILIES,
    MIN_RUNS,
    Contributions,
    Family,
    against_usual,
    family_of,
    runtime_parts,
    variable_parts,
)
from tasks.jobs.params import FAMILY_WORDS, ExplainParams, Kind
from tasks.jobs.predict.features import feature_of
from tasks.jobs.predict.peers import Histories, earlier_runs
from tasks.jobs.predict.predicting import NextRuns, predict_next
from tasks.jobs.predict.preparation import read_runs, with_ends
from tasks.jobs.predict.trained import Trained, needed_champion
from tasks.quantities import duration, number, share, times
from tasks.warehouse.connection import fetch
from tasks.warehouse.place import Warehouse

Scale = Literal["factor", "odds"]
Whose = Literal["the job", "all runs"]
Style = Literal["bytes", "count", "seconds", "hours", "share", "multiple", "clock", "weekday", "yes_no"]
VARIABLE = "a variable runtime"
NOTABLE = 0.25  # of the largest part in a family: what may stand for it as well
LEAST = math.log(1.05)  # what makes a run, or the odds, less than 5 % longer or shorter is no reason
MOST_REASONS = 5
MOSTLY = 0.8  # share of a sum from which one feature stands for its family
NEAR_1 = (0.9, 1.1)
ALIKE = 0.1  # a tenth more or less is said to be as usual
# A ratio is said through what it is a ratio of: "3.2 GB, 2.1 times the job's usual 1.5 GB".
SHOWN_AS = {
    "input_ratio": "input_bytes",
    "input_usual": "input_bytes",
    "cost_ratio": "estimated_cost",
    "tokens_ratio": "requested_tokens",
}
# The first pattern that fits the whole name, and what undoes its logarithm; the rest goes by the unit of the feature.
PEERS = r"(job|user|user_request|request|log)_"
RUNTIMES = PEERS + r"(last|before_last|mean\d+|median\d*|q\d+)|input_usual|log_median_before"
STYLES: tuple[tuple[str, Style, Callable[[float], float] | None], ...] = (
    (PEERS + "runs", "count", math.expm1),
    (PEERS + "since", "seconds", math.expm1),
    (PEERS + "limit_share", "share", math.exp),
    (RUNTIMES, "seconds", math.exp),
    (r"log_ratio_.*|.*log_ratio", "multiple", math.exp),
    (r"(load_|sku_load_|vertex_share_|outlier_share|(recent_)?shape_).*", "share", None),
    (r".*_ratio|p25_p75.*", "multiple", None),
    (r"hour_of_day", "clock", None),
    (r"day_of_week", "weekday", None),
    (r"offered_.*", "yes_no", None),
)
BY_UNIT: dict[str, Style] = {"bytes": "bytes", "s": "seconds", "h": "hours"}
AMOUNTS = ("bytes", "count", "seconds", "hours")  # twice as much is a thing to say
BYTES = ("B", "kB", "MB", "GB", "TB", "PB")
KILO = 1000.0
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SINGULAR = {"vertices": "vertex"}
LOG_NOTE = re.compile(r" \(log[^)]*\)$")
HOUR_S, MINUTES = 3600.0, 60
UNKNOWN = "unknown"
NOTHING = pd.Series(dtype="float64")


@dataclass(frozen=True)
class Typical:
    """Usual values of features. of_job: medians over its usual runs, empty where it is compared with all; overall:
    medians over jobs."""

    of_job: pd.Series
    overall: pd.Series

    def beside(self, feature: str) -> tuple[float, Whose]:
        """The value to compare with: the job's usual one; that of all runs where the job's is unknown."""
        usual_of_job = float(self.of_job.get(feature, np.nan))
        is_known = not np.isnan(usual_of_job)
        return (usual_of_job, "the job") if is_known else (float(self.overall.get(feature, np.nan)), "all runs")


@dataclass(frozen=True)
class FamilyReason:
    """One family of features. contribution: log of the factor on the runtime, or log-odds; parts: of each feature.

    feature: the one that stands for the family; value, typical: in its unit, NaN where unknown."""

    family: Family
    feature: str
    value: float
    typical: float
    compared_with: Whose
    contribution: float
    parts: dict[str, float]
    text: str

    @property
    def factor(self) -> float:
        """On the expected runtime, or on the odds."""
        return math.exp(self.contribution)


@dataclass(frozen=True)
class Explanation:
    """base: score without this run's features; prediction = base + contributions of reasons + rest.

    reasons: the largest first; rest: what all other families add together. On the scale `factor` the scores are logs
    of runtime in seconds, on `odds` log-odds."""

    scale: Scale
    base: float
    prediction: float
    reasons: tuple[FamilyReason, ...]
    rest: float


def explain_run(parts: Contributions, frame: pd.DataFrame, typical: Typical, *, scale: Scale = "factor") -> Explanation:
    """Reasons for one run, at most MOST_REASONS, by size. parts: one score of one run; frame: its row of features.

    A family that changes the runtime or the odds by less than LEAST, or of which all is as usual, is no reason.
    Source: Zhu et al. 2023, section 6.1."""
    added = dict(zip(parts.features, parts.single[0].tolist(), strict=True))
    values = {str(name): float(value) for name, value in frame.iloc[0].items()}
    members = {family: {name: part for name, part in added.items() if family_of(name) == family} for family in FAMILIES}
    reasons: list[FamilyReason] = []
    for family in sorted(members, key=lambda one: -abs(sum(members[one].values()))):
        mine = members[family]
        effect = sum(mine.values())
        if abs(effect) < LEAST or len(reasons) == MOST_REASONS:
            break
        shown = _shown(mine, values, typical)
        if shown is not None:
            value = values.get(shown, math.nan)
            usual, whose = typical.beside(shown)
            text = f"{words_of(shown)}: {_compared(shown, value, usual, whose)}: {_effect(effect, scale)}"
            text += _others(family, mine, shown)
            reasons.append(FamilyReason(family, shown, value, usual, whose, effect, mine, text))
    base, total = float(parts.base[0, 0]), sum(added.values())
    rest = total - sum(reason.contribution for reason in reasons)
    return Explanation(scale, base, base + total, tuple(reasons), rest)


def _shown(parts: dict[str, float], values: dict[str, float], typical: Typical) -> str | None:
    """The feature that stands for its family: of those that add a notable part to its sum the first that is not as
    usual, known before unknown, a ratio as what it is a ratio of. None where all of them are as usual."""

    def is_unusual(name: str) -> bool:
        value = values.get(name, math.nan)
        usual = typical.beside(name)[0]
        return not (math.isnan(value) and math.isnan(usual)) and not is_as_usual(name, value, usual)

    sign = np.sign(sum(parts.values()))
    least = NOTABLE * max(part * sign for part in parts.values())
    by_part = sorted(parts, key=lambda name: -parts[name] * sign)
    unusual = [name for name in by_part if parts[name] * sign >= least and is_unusual(name)]
    if not unusual:
        return None
    shown = min(unusual, key=lambda name: math.isnan(values.get(name, math.nan)))
    base = SHOWN_AS.get(shown, shown)
    return base if not math.isnan(values.get(base, math.nan)) and is_unusual(base) else shown


def _others(family: Family, parts: dict[str, float], shown: str) -> str:
    """Says how many more features the sum is of, where the one shown, with its ratio, is not most of it."""
    same = {shown, *(ratio for ratio, base in SHOWN_AS.items() if base == shown)}
    n_more = sum(1 for name, part in parts.items() if part and name not in same)
    shown_sum = sum(part for name, part in parts.items() if name in same)
    return (
        f", with {n_more} more on {FAMILY_WORDS.get(family, family)}"
        if n_more and abs(shown_sum) < MOSTLY * abs(sum(parts.values()))
        else ""
    )


def _compared(feature: str, value: float, usual: float, whose: Whose) -> str:
    """The value beside the usual one: 3.2 GB, 2.1 times the usual 1.5 GB of the job.

    The usual time of a job is the median of its runs: of another runtime it is said before what it was that long."""
    text, then = in_words(feature, value), in_words(feature, usual)
    if math.isnan(usual):
        return text
    multiple = multiple_of(feature, value, usual)
    if re.fullmatch(RUNTIMES, feature):
        before = f"before {'earlier runs of the job' if whose == 'the job' else 'the runs of all jobs'}"
        is_more = multiple is not None and multiple >= 1
        return f"{text}, {number(multiple)} times the {then} {before}" if is_more else f"{text}, {before} {then}"
    if multiple is None or multiple < 1:
        return f"{text}, usual for {whose} {then}"
    return f"{text}, {number(multiple)} times the usual {then} of {whose}"


def _effect(contribution: float, scale: Scale) -> str:
    factor = math.exp(contribution)
    factor_text = f"{factor:.2f}" if NEAR_1[0] < factor < NEAR_1[1] else number(factor)
    if scale == "factor":
        return f"makes it {factor_text} times as long"
    return f"makes {VARIABLE} {'more' if contribution > 0 else 'less'} likely (odds × {factor_text})"


def words_of(name: str) -> str:
    """What a feature measures, as a noun; its name in plain letters if no catalogue has it.

    A logarithm is said as what it is a logarithm of, by in_words too, so its note is left out."""
    try:
        return LOG_NOTE.sub("", feature_of(name).words)
    except NotFound:
        return name.replace("_", " ")


def in_words(name: str, value: float) -> str:
    """One value of a feature with its unit, as people say it: 3.2 GB, 6 tokens, Tuesday; `unknown` for NaN."""
    if math.isnan(value):
        return UNKNOWN
    style, value = _plain(name, value)
    match style:
        case "bytes":
            power = 0
            while abs(value) >= KILO and power < len(BYTES) - 1:
                value, power = value / KILO, power + 1
            return f"{number(value)} {BYTES[power]}"
        case "seconds" | "hours":
            return duration(value * (HOUR_S if style == "hours" else 1))
        case "share":
            return share(value)
        case "multiple":
            return times(value)
        case "clock":
            hours, minutes = divmod(round(value * MINUTES), MINUTES)
            return f"{hours % 24:02d}:{minutes:02d}"
        case "weekday":
            return WEEKDAYS[int(value) % len(WEEKDAYS)]
        case "yes_no":
            return number(value) if value not in (0, 1) else "yes" if value else "no"
        case "count":
            unit = _unit(name)
            singular = SINGULAR.get(unit, unit.removesuffix("s"))
            return f"{number(value)} {singular if value == 1 else unit}".strip()


def multiple_of(name: str, value: float, typical: float) -> float | None:
    """How many times the typical value this is; None where that says nothing (shares, times of day, from 0)."""
    if math.isnan(value) or math.isnan(typical):
        return None
    (style, value), (_, typical) = _plain(name, value), _plain(name, typical)
    return value / typical if style in AMOUNTS and typical > 0 and value > 0 else None


def is_as_usual(name: str, value: float, usual: float) -> bool:
    """Whether two values of a feature differ by at most a tenth of the larger, or are said alike: < 0.1 %, < 0.1 %.

    Of a logarithm what counts is what it is of. Two unknown values are not alike."""
    if math.isnan(value) or math.isnan(usual):
        return False
    left, right = _plain(name, value)[1], _plain(name, usual)[1]
    return abs(left - right) <= ALIKE * max(abs(left), abs(right)) or in_words(name, value) == in_words(name, usual)


def _plain(name: str, value: float) -> tuple[Style, float]:
    """How the values of a feature are said, and this one without its logarithm."""
    for pattern, style, inverse in STYLES:
        if re.fullmatch(pattern, name):
            return style, inverse(value) if inverse else value
    return BY_UNIT.get(_unit(name), "count"), value


def _unit(name: str) -> str:
    try:
        return feature_of(name).unit
    except NotFound:
        return "bytes" if name.endswith("_bytes") else "s" if name.endswith("_s") else ""


KIND: Kind = "ratio"  # the shapes that say how variable a job is
USUAL_RUNS = 20  # runs of the same job that a run is compared with, the latest of them
MIN_SUPPORT = 3  # earlier runs that a job needs to have a usual time
RISK_RATIO = 2.0  # long: more than this many times the job's usual time
MOST_TYPICAL = 500  # jobs that say what is usual for all runs, one run each


@dataclass(frozen=True)
class Explainer:
    """The champion of a source and its finished runs, loaded once. overall: usual value of each feature over jobs."""

    source: str
    model_id: str
    trained: Trained
    runs: pd.DataFrame
    overall: pd.Series


@dataclass(frozen=True)
class RunReasons:
    """Why one run, run_id None for the next one of its job, is expected to take as long as it is.

    n_conditions: submissions that it is the mean over, several for the next run.
    usual_s: median of the job's earlier runs, NaN without one; expected_s: the median that is predicted from what was
    known at submission; n_usual: earlier runs that it is compared with, the latest, 0 where all runs are; last_s:
    median of these, NaN without one; n_longer: those above usual_s. runtime: factors on the
    expected runtime, against the job; variation: log-odds of the variable ones of the k shapes, against all jobs, None
    without a classifier; chance: probability of these. runtime_s: None for a run that has not ended."""

    source: str
    model_id: str
    run_id: str | None
    group_key: str
    submitted_at: pd.Timestamp
    runtime_s: float | None
    usual_s: float
    expected_s: float
    n_usual: int
    last_s: float
    n_longer: int
    n_conditions: int
    runtime: Explanation
    variation: Explanation | None
    chance: float | None
    k: int


def load_explainer(warehouse: Warehouse, source: str) -> Explainer:
    """What explanations of any run of a source need. Raises NotFound if it has no runs or no trained model."""
    card, trained = needed_champion(warehouse, source)
    runs = with_ends(read_runs(warehouse, source))
    last = runs.groupby("group_key", sort=True).tail(1).iloc[:MOST_TYPICAL]
    return Explainer(source, card.model_id, trained, runs, trained.features(last, runs).median())


def explain_run_of(warehouse: Warehouse, source: str, run_id: str) -> RunReasons:
    """The reasons of one run of a source, whatever became of it, also one that still runs or waits.

    Raises NotFound for a source without a model, or a run that is not there or has no submission and no start."""
    sql = "SELECT group_key, status FROM jobs.runs WHERE source = $source AND run_id = $run_id"
    matches = fetch(warehouse, sql, {"source": source, "run_id": run_id})
    for key, status in matches.itertuples(index=False):
        explainer = load_explainer(warehouse, source)
        rows = explainer.runs
        if not (rows["run_id"] == run_id).any():
            rows = read_runs(warehouse, source, statuses=(status,), with_what_ifs=True, group_key=key)
        rows = rows[(rows["run_id"] == run_id).to_numpy()]
        if len(rows):
            return explain_past(explainer, rows)[0]
    ids = "SELECT run_id, group_key, runtime_s FROM jobs.runs ORDER BY runtime_s DESC"
    see = f"see the ids with {shlex.join(['whorl', 'query', ids])}"
    raise NotFound(f"run {run_id!r}: source {source!r} has no run of this id; {see}")


def explain_next_of(warehouse: Warehouse, source: str, group_key: str) -> RunReasons:
    """The reasons of the next run of a job. Raises NotFound for a source without a model, or a job without runs."""
    explainer = load_explainer(warehouse, source)
    if not (explainer.runs["group_key"] == group_key).any():
        raise NotFound(f"job {group_key!r} of source {source!r} has no finished run to explain")
    return explain_next(explainer, [group_key])[0]


def explain_past(explainer: Explainer, rows: pd.DataFrame) -> list[RunReasons]:
    """The reasons of submissions, from what was known then; each is compared with the runs of its job that had ended.

    rows: runs of read_runs, of which those without a runtime have not ended."""
    trained, runs = explainer.trained, explainer.runs
    features, known = trained.known(rows, runs)
    expected_s, usual_s = trained.model.predict(features, known).quantile(0.5), usual_times(rows, runs)[0]
    return _explained(explainer, rows, np.arange(len(rows)), features, known, expected_s, usual_s, is_past=True)


def explain_next(explainer: Explainer, keys: Sequence[str]) -> list[RunReasons]:
    """The reasons of the next runs of jobs with finished runs, in order of their keys.

    Each is the mean over what was known before each of the last runs of its job."""
    return explain_next_runs(explainer, predict_next(explainer.trained, explainer.runs, keys=keys))


def explain_next_runs(explainer: Explainer, next_runs: NextRuns) -> list[RunReasons]:
    """The same of next runs that are predicted already, in their order."""
    expected_s, usual_s = next_runs.predicted.quantile(0.5), next_runs.jobs["usual_s"].to_numpy(dtype=float)
    rows, job = next_runs.conditions, next_runs.conditions["job"].to_numpy()
    return _explained(explainer, rows, job, next_runs.features, next_runs.known, expected_s, usual_s, is_past=False)


def explain_notable_runs(explainer: Explainer, params: ExplainParams) -> list[RunReasons]:
    """The reasons of the longest runs of the last days, then of the next runs of the jobs most at risk."""
    runs, longest, keys = explainer.runs, longest_runs(explainer, params), riskiest_jobs(explainer, params)
    place = pd.Index(runs["run_id"]).get_indexer(pd.Index(longest))
    past = explain_past(explainer, runs.iloc[place]) if longest else []
    following = {run_reasons.group_key: run_reasons for run_reasons in explain_next(explainer, keys)} if keys else {}
    return past + [following[key] for key in keys]


def longest_runs(explainer: Explainer, params: ExplainParams) -> list[str]:
    """Ids of the runs of the last days of the log that took the most times their job's usual time, longest first.

    Usual: the median of the runs of the job that had ended before, at least MIN_SUPPORT of them and above 0 s."""
    runs = explainer.runs
    recent = runs[(runs["ended_at"] > runs["ended_at"].max() - pd.Timedelta(days=params.look_back_days)).to_numpy()]
    usual_s, n_before = usual_times(recent, runs)
    times = pd.Series(recent["runtime_s"].to_numpy() / usual_s, index=recent["run_id"].to_numpy())
    times = times[(n_before >= MIN_SUPPORT) & (usual_s > 0) & (times > 1).to_numpy()]
    return [str(key) for key in times.sort_values(ascending=False, kind="stable").index[: params.n_longest]]


def riskiest_jobs(explainer: Explainer, params: ExplainParams) -> list[str]:
    """Keys of the jobs whose next run most probably takes more than RISK_RATIO times the usual time, first the most.

    Jobs with fewer than MIN_SUPPORT runs, or a usual time of 0 s, are left out."""
    next_runs = predict_next(explainer.trained, explainer.runs)
    jobs = next_runs.jobs
    chance = 1 - next_runs.predicted.cdf(RISK_RATIO * jobs["usual_s"].to_numpy(dtype=float))
    jobs = jobs.assign(chance=chance)[(jobs["n_before"] >= MIN_SUPPORT) & (jobs["usual_s"] > 0)]
    jobs = jobs.sort_values(["chance", "group_key"], ascending=[False, True])
    return [str(key) for key in jobs["group_key"].iloc[: params.n_riskiest]]


def usual_times(rows: pd.DataFrame, runs: pd.DataFrame) -> tuple[Floats, NDArray[np.int64]]:
    """Median of the runs of the job that had ended before each row, in seconds, NaN without one, and their number."""
    earlier = earlier_runs(rows, runs)
    return earlier.quantile(earlier.values("runtime_s"), 0.5, window=max(len(runs), 1)), earlier.n


def _explained(
    explainer: Explainer,
    rows: pd.DataFrame,
    of: NDArray[np.int64],
    features: pd.DataFrame,
    known: Histories,
    expected_s: Floats,
    usual_s: Floats,
    *,
    is_past: bool,
) -> list[RunReasons]:
    """Reasons for the mean of the submissions of each of m questions, against the usual runs of their job.

    rows: n submissions; of: (n,) the question of each; features: (n, p), known: of them; expected_s, usual_s: (m,);
    is_past: the rows are runs, each a question of its own."""
    trained, runs = explainer.trained, explainer.runs
    earlier = earlier_runs(rows, runs)
    last = [int(np.flatnonzero(of == question)[-1]) for question in range(len(expected_s))]
    n_usual = np.minimum(earlier.n[last], USUAL_RUNS)
    n_usual = np.where(n_usual < MIN_RUNS, 0, n_usual)
    ends = np.asarray(earlier.last)[last] + 1
    stretches = [earlier.order[end - n : end] for end, n in zip(ends, n_usual, strict=True)]
    usual = runs.iloc[np.concatenate([*stretches, np.zeros(0, dtype=np.int64)]).astype(np.int64)]
    usual_features, usual_known = trained.known(usual, runs)
    log_s = {peers: np.concatenate([before, known.log_s[peers]]) for peers, before in usual_known.log_s.items()}
    parts = runtime_parts(trained.model, pd.concat([usual_features, features]), Histories(log_s))  # trees are read once
    usual_parts, parts = parts.rows(slice(len(usual))), parts.rows(slice(len(usual), None))
    classifier, first, explanations = trained.classifiers.get(KIND), np.cumsum(n_usual) - n_usual, []
    variable = variable_parts(classifier, features) if classifier else None
    for question, n in enumerate(n_usual):
        is_this, row = of == question, rows.iloc[last[question]]
        key, before = str(row["group_key"]), usual_features.iloc[first[question] : first[question] + n]
        latest_s = usual["runtime_s"].iloc[first[question] : first[question] + n]
        within = Typical(before.median() if n else NOTHING, explainer.overall)
        shown = features[is_this].median().to_frame().T
        beside = against_usual(parts.rows(is_this).mean(), usual_parts, [first[question]], [n])
        variation = None
        if variable is not None:
            among_jobs = Typical(NOTHING, explainer.overall)
            variation = explain_run(variable.rows(is_this).mean(), shown, among_jobs, scale="odds")
        explanations.append(
            RunReasons(
                source=explainer.source,
                model_id=explainer.model_id,
                run_id=str(row["run_id"]) if is_past else None,
                group_key=key,
                submitted_at=row["submitted_at"],
                runtime_s=float(row["runtime_s"]) if is_past and not math.isnan(row["runtime_s"]) else None,
                usual_s=float(usual_s[question]),
                expected_s=float(expected_s[question]),
                n_usual=int(n),
                last_s=float(latest_s.median()),
                n_longer=int((latest_s > usual_s[question]).sum()),
                n_conditions=int(is_this.sum()),
                runtime=explain_run(beside, shown, within),
                variation=variation,
                chance=None if variation is None else 1 / (1 + math.exp(-variation.prediction)),
                k=len(trained.shapes[KIND].centres) if KIND in trained.shapes else 0,
            )
        )
    return explanations
