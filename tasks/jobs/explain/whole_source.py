"""What makes the runs of a source long and its jobs variable, the insights of the paper about variation, each tested on
this log (holds, does not hold, or cannot be told), and the rows of all this in the warehouse."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.jobs.distribution import Floats
from tasks.jobs.explain.contributions import Contributions, against_usual, by_family, runtime_parts, variable_parts
from tasks.jobs.explain.reasons import USUAL_RUNS, Explainer, RunReasons
from tasks.jobs.normalisation import historic_medians
from tasks.jobs.params import NO_COLUMN, ExplainParams
from tasks.jobs.predict.peers import Histories, earlier_runs
from tasks.jobs.predict.preparation import assign_periods
from tasks.jobs.predict.shape_labels import label_groups, label_instances
from tasks.jobs.predict.trained import Trained
from tasks.jobs.scores import CONFIDENCE
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.sources import data_version, json_of, replace_rows

Places = NDArray[np.intp]
MAX_RUNS = 4000  # held-out runs that are explained, an even sample over time of more
SEED = 0  # of the resamples
RUNTIME = "runtime"
LONG = 2.0  # times the usual time: the runs whose reasons are counted
SHORTEST_S = 1e-3


@dataclass(frozen=True)
class HeldOut:
    """runs: of read_runs with median_s (usual time of the job, from D1); features: (n, p), known: of them, row by row.

    test: rows of D3 that the model did not learn from; usual: (m,) rows, the latest runs of the job before each test
    row, one stretch after the other; first, n_usual: (n_test,) where each begins and how long it is."""

    runs: pd.DataFrame
    features: pd.DataFrame
    known: Histories
    test: Places
    usual: Places
    first: Places
    n_usual: Places


def describe_held_out(trained: Trained, runs: pd.DataFrame) -> HeldOut:
    """Split as in training, draw at most MAX_RUNS evenly over time, and describe by the features of the model.

    runs: of read_runs, all of the source, with ended_at filled; index 0 … n - 1. Raises BadInput without a run to hold
    out."""
    runs = runs.assign(median_s=historic_medians(runs, trained.history_s)["median_s"])
    test = held_out_places(trained, runs, MAX_RUNS)
    earlier = earlier_runs(runs.iloc[test], runs)  # those of the job that had ended before the submission, by their end
    n_usual = np.minimum(earlier.n, USUAL_RUNS).astype(np.intp)
    stretches = [earlier.order[last + 1 - n : last + 1] for last, n in zip(earlier.last, n_usual, strict=True)]
    usual, first = np.concatenate(stretches).astype(np.intp), np.cumsum(n_usual) - n_usual
    rows = np.unique(np.concatenate([test, usual]))
    described = runs.iloc[rows]
    features, known = trained.known(described, runs)
    test, usual = (np.searchsorted(rows, some) for some in (test, usual))
    runs, features = described.reset_index(drop=True), features.reset_index(drop=True)
    return HeldOut(runs, features, known, test, usual, first, n_usual)


def held_out_places(trained: Trained, runs: pd.DataFrame, most: int) -> Places:
    """Places of runs of D3 that the model did not learn from, at most so many, evenly over time. runs: all of the log.

    Raises BadInput without one."""
    is_last = assign_periods(runs, trained.params.characterise.split) == "D3"
    is_test = (is_last & ~runs["run_id"].isin(trained.seen["run_id"])).to_numpy()
    if not is_test.any():
        problem = "no run of the last part of the log that the model did not learn from"
        raise BadInput("job log", problem, "later runs, to try the model on", "ingest more of the log")
    return _even(np.flatnonzero(is_test), most)


def training_places(trained: Trained, runs: pd.DataFrame, most: int) -> Places:
    """Places of runs that the model learnt from, at most so many, evenly over time."""
    return _even(np.flatnonzero(runs["run_id"].isin(trained.seen["run_id"])), most)


def _even(places: Places, most: int) -> Places:
    return places[np.unique(np.linspace(0, len(places) - 1, min(most, len(places))).astype(np.intp))]


@dataclass(frozen=True)
class SourceReasons:
    """Of the held-out runs of a source: the rows of jobs.cause_families (see family_table) and of jobs.insights.

    data_version: of the files that they were read for, empty where they were just made."""

    source: str
    model_id: str
    families: pd.DataFrame
    insights: pd.DataFrame
    data_version: str = ""


def explain_source(explainer: Explainer) -> SourceReasons:
    """Families and insights over the held-out runs. Raises BadInput if the model has seen all runs."""
    trained, rng = explainer.trained, np.random.default_rng(SEED)
    held_out = describe_held_out(trained, explainer.runs)
    known = runtime_parts(trained.model, held_out.features, held_out.known)
    parts = against_usual(known.rows(held_out.test), known.rows(held_out.usual), held_out.first, held_out.n_usual)
    runs, features = held_out.runs.iloc[held_out.test], held_out.features.iloc[held_out.test]
    jobs, n_before = runs["group_key"].to_numpy(), features.get("n_before", pd.Series(np.nan, index=features.index))
    ratio = np.log(np.maximum(runs["runtime_s"], SHORTEST_S) / runs["median_s"].where(runs["median_s"] > 0))
    questions: dict[str, Contributions] = {RUNTIME: parts}
    insights: list[dict[str, Any]] = []
    for kind, classifier in trained.classifiers.items():
        variable = variable_parts(classifier, features)
        if variable is not None:
            questions[kind] = variable
            rows = judge_insights(variable, features, jobs, rng, variation=np.abs(ratio).to_numpy())
            actual = label_instances(runs["group_key"], label_groups(runs, trained.shapes[kind]))
            is_right, is_known = classifier.predict_proba(features).argmax(axis=1) == actual, actual >= 0
            rows.append(judge_history(n_before[is_known], is_right[is_known], jobs[is_known], rng))
            insights += [{"kind": kind, "rank": rank, **row} for rank, row in enumerate(rows, 1)]
    families = family_table(questions, runs)
    families = families.assign(rank=families.groupby("question").cumcount() + 1)
    return SourceReasons(explainer.source, explainer.model_id, families, pd.DataFrame(insights))


def family_table(questions: Mapping[str, Contributions], runs: pd.DataFrame) -> pd.DataFrame:
    """What each family of features adds to each question: one row a question and family, the largest first.

    questions: `runtime` (log factors), or a kind of shapes (log-odds of the variable ones), of the same n runs with
    runtime_s and median_s. Columns: question, family, share (of the mean absolute contributions of all families),
    typical_factor (exp of that mean: by how much it changes a run on average, up or down), first_share (how often it
    is the first reason of a run that took at least twice its job's usual time, if any makes it longer; None for the
    shapes), n_runs, n_long."""
    is_long = (runs["runtime_s"] >= LONG * runs["median_s"]).to_numpy()
    tables = []
    for question, parts in questions.items():
        sums, families = by_family(parts)
        size, long = np.abs(sums).mean(axis=0), sums[is_long]
        first_share, total = None, float(size.sum())
        if question == RUNTIME and len(long):
            first = long.argmax(axis=1)[long.max(axis=1) > 0]
            first_share = np.bincount(first, minlength=len(families)) / len(long)
        columns = {"question": question, "family": families, "share": size / total if total > 0 else size}
        columns |= {"typical_factor": np.exp(size), "first_share": first_share}
        table = pd.DataFrame({**columns, "n_runs": len(sums), "n_long": int(is_long.sum())})
        tables.append(table.sort_values("share", ascending=False, kind="stable"))
    return pd.concat(tables, ignore_index=True)


RESAMPLES = 1000  # of the jobs, for each interval
ROUNDING = 1e-12
MIN_GROUPS = 10  # fewer groups drawn with replacement give too narrow an interval
SKU_FEATURE = re.compile(r"(?:vertices|vertex_share)_(.+)_mean")
Verdict = Literal["holds", "does not hold", "cannot be told"]
# The insight; the features that it is about (the whole name); 1 if more of them should mean more variation, -1 if less
CLAIMS = (
    ("inputs", "larger inputs vary more", r"input_bytes|read_bytes_mean", 1),
    ("tokens", "fewer tokens vary more", r"requested_tokens|requested_cpus|(min|mean|peak)_tokens_mean", -1),
    ("index_lookup", "Index-Lookup operators vary more", r"op_(.*_)?INDEX_?(LOOKUP|SCAN|JOIN|SEEK)(_.*)?", 1),
    ("window", "Window operators vary more", r"op_(.*_)?WINDOW(_.*)?", 1),
    ("range", "Range operators vary more", r"op_(.*_)?RANGE(_.*)?", 1),
    ("load", "higher CPU load varies more", r"load_mean|sku_load_mean_.+", 1),
    ("load_deviation", "more uneven CPU load varies more", r"load_sd|sku_load_sd_.+", 1),
    ("spare_tokens", "more use of spare tokens varies more", r"spare_tokens_mean", 1),
)
NEWER_SKUS = "more vertices on newer SKUs vary less"
HISTORY = "more history gives better accuracy"


@dataclass(frozen=True)
class RankCorrelation:
    """value: mean of the correlations, weighted; low, high: its interval over groups; n_runs, n_groups behind it."""

    value: float | None
    low: float | None
    high: float | None
    n_runs: int
    n_groups: int
    reason: str | None = None

    def verdict(self, sign: int) -> tuple[Verdict, str | None]:
        """By the interval, against a claim's sign; and why it cannot be told."""
        if self.low is None or self.high is None:
            return "cannot be told", self.reason
        if self.n_groups < MIN_GROUPS:
            return "cannot be told", f"{self.n_groups} groups; an interval needs {MIN_GROUPS}"
        if self.low <= 0 <= self.high:
            return "cannot be told", "the interval holds 0"
        return ("holds" if (self.low > 0) == (sign > 0) else "does not hold"), None


def judge_insights(
    variable: Contributions, frame: pd.DataFrame, groups: Any, rng: np.random.Generator, *, variation: Floats
) -> list[dict[str, Any]]:
    """One insight for each of CLAIMS, and one for the newer half of the SKUs, in the order of their names.

    variable: contributions to the log-odds of the variable shapes, one score; frame: (n, p); groups: (n,); variation:
    (n,), how far each run was from usual, such as |log ratio|. Source: Zhu et al. 2023, section 6."""
    skus = sorted({match[1] for name in variable.features if (match := SKU_FEATURE.fullmatch(name))})
    newer = "|".join(re.escape(sku) for sku in skus[(len(skus) + 1) // 2 :])
    rows = []
    for name, words, pattern, sign in (
        *CLAIMS,
        ("newer_skus", NEWER_SKUS, rf"(vertices|vertex_share)_({newer})_mean", -1),
    ):
        fits = re.compile(pattern, re.IGNORECASE).fullmatch
        places = [place for place, feature in enumerate(variable.features) if fits(feature)]
        parts = variable.single[:, places]
        weights = np.abs(parts).mean(axis=0) if len(parts) else np.zeros(len(places))
        columns = [frame[variable.features[place]] for place in places]
        model = rank_correlation(list(zip(columns, parts.T, weights.tolist(), strict=True)), groups, rng)
        in_log = [feature for feature in frame if fits(str(feature))]  # also features that the model does without
        measured = rank_correlation([(frame[feature], variation, 1.0) for feature in in_log], groups, rng)
        reason = None if model.value is not None else "the model uses no such feature, or it is the same in all runs"
        if not in_log:
            reason = NO_COLUMN
        elif not places:
            reason = "no such feature helped to tell shapes apart, so the model does without"
        rows.append(_insight_row(name, words, sign, model, measured, reason))
    return rows


def judge_history(n_before: Any, is_right: Any, groups: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Whether runs with more earlier runs of their job are predicted right more often: rho of the two, (n,) each."""
    return _insight_row("history", HISTORY, 1, rank_correlation([(n_before, is_right, 1.0)], groups, rng))


def _insight_row(
    name: str,
    words: str,
    sign: int,
    model: RankCorrelation,
    measured: RankCorrelation | None = None,
    reason: str | None = None,
) -> dict[str, Any]:
    """model: Spearman's rho of the features and what they add to the log-odds of the variable shapes, the mean over
    features weighted by their importance. measured: rho of the features and the variation that was seen, without a
    model. verdict, measured_verdict: by the interval of each, against the claim's sign. The two can differ: a model
    tells jobs apart by their features, whatever makes them differ."""
    verdict, why = model.verdict(sign)
    row: dict[str, Any] = {"insight": name, "words": words, "verdict": verdict, "reason": reason or why}
    row |= {"n_runs": model.n_runs, "rho": model.value, "low": model.low, "high": model.high, "measured_verdict": None}
    if measured is not None:
        row |= {"measured_rho": measured.value, "measured_low": measured.low, "measured_high": measured.high}
        row["measured_verdict"] = measured.verdict(sign)[0]
    return row


def rank_correlation(pairs: list[tuple[Any, Any, float]], groups: Any, rng: np.random.Generator) -> RankCorrelation:
    """Weighted mean of Spearman's rho over pairs of columns, with a percentile interval from drawing groups.

    pairs: (x, y, weight), x and y (n,), runs where either is NaN left out of that pair; groups: (n,). Ranks (ties:
    mean) are taken once, over all runs, and drawn with their groups. A pair whose x or y is constant is left out, its
    weight with it. Source: Spearman 1904; Efron & Tibshirani 1993, 13.3 (groups drawn whole)."""
    _, number = np.unique(np.asarray(groups), return_inverse=True)
    n_groups = int(number.max(initial=-1)) + 1
    used = [pair for x, y, weight in pairs if (pair := _moments(x, y, weight, number, n_groups)) is not None]
    if not used:
        return RankCorrelation(None, None, None, 0, 0, "nothing that varies and is known")
    has_runs = np.any([moments[:, 0] > 0 for moments, _ in used], axis=0)
    used = [(moments[has_runs], weight) for moments, weight in used]
    n_runs, n_used = int(max(moments[:, 0].sum() for moments, _ in used)), int(has_runs.sum())
    value = float(_weighted([(moments.sum(axis=0)[None], weight) for moments, weight in used])[0])
    if n_used < 2:
        return RankCorrelation(value, None, None, n_runs, n_used, "one group: nothing to draw from")
    counts = rng.multinomial(n_used, np.full(n_used, 1 / n_used), size=RESAMPLES).astype(np.float64)  # (…, n_used)
    drawn = _weighted([(counts @ moments, weight) for moments, weight in used])
    low, high = np.nanquantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return RankCorrelation(value, float(low), float(high), n_runs, n_used)


def _moments(x: Any, y: Any, weight: float, number: Any, n_groups: int) -> tuple[Floats, float] | None:
    """Sums over the runs of each group of 1, u, v, u², v², u v of centred ranks u, v: (n_groups, 6)."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    is_known = ~(np.isnan(first) | np.isnan(second))
    first, second, of_group = first[is_known], second[is_known], number[is_known]
    if weight <= 0 or not len(first) or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    u, v = (2 * pd.Series(values).rank().to_numpy() / len(values) - 1 for values in (first, second))
    columns = (np.ones(len(u)), u, v, u * u, v * v, u * v)
    return np.stack([np.bincount(of_group, weights=column, minlength=n_groups) for column in columns], axis=1), weight


def _weighted(sums: list[tuple[Floats, float]]) -> Floats:
    """Weighted mean of the correlations; sums: (m, 6) each, returns (m,), NaN where none is defined.

    Each is Pearson's of the ranks: (n sum uv - sum u sum v) / sqrt((n sum u² - (sum u)²) (n sum v² - (sum v)²))."""
    total, value = np.zeros(len(sums[0][0])), np.zeros(len(sums[0][0]))
    for moments, weight in sums:
        n, u, v, uu, vv, uv = moments.T
        spread = (n * uu - u * u) * (n * vv - v * v)
        is_defined = spread > ROUNDING
        correlation = (n * uv - u * v) / np.sqrt(np.where(is_defined, spread, 1.0))
        value += np.where(is_defined, weight * correlation, 0.0)
        total += np.where(is_defined, weight, 0.0)
    return np.where(total > 0, value / np.where(total > 0, total, 1), np.nan)


WORD = "jobs"
ORDERS = {"cause_families": "question, rank", "insights": "kind, rank"}
OF_RUN = ("run_id", "group_key", "model_id", "runtime_s", "usual_s", "expected_s")
OF_REASON = ("family", "feature", "value", "typical", "compared_with", "factor")


def write_source(warehouse: Warehouse, source: str, reasons: SourceReasons, params: ExplainParams) -> None:
    """Write families and insights of a source anew, in one transaction; twice changes nothing."""
    with reading(warehouse) as connection:
        version = data_version(connection, WORD, source)
    made_of = {"data_version": version, "parameters": json_of(params.model_dump(mode="json"))}
    frames = {"cause_families": reasons.families, "insights": reasons.insights, "explanations": pd.DataFrame([made_of])}
    replace_rows(warehouse, WORD, {"source": source, "model_id": reasons.model_id}, frames)


def write_reasons(warehouse: Warehouse, source: str, explanations: Sequence[RunReasons]) -> int:
    """Write the reasons of a source anew, in one transaction; returns the number of rows."""
    rows = [row for run_reasons in explanations for row in reason_rows(run_reasons)]
    replace_rows(warehouse, WORD, {"source": source}, {"reasons": pd.DataFrame(rows)})
    return len(rows)


def read_source(warehouse: Warehouse, source: str, model_id: str) -> SourceReasons | None:
    """What write_source wrote, if it was of this model and the present files; else None."""
    parameters = {"source": source}
    with reading(warehouse) as connection:
        sql = "SELECT model_id, data_version FROM jobs.explanations WHERE source = $source"
        version = data_version(connection, WORD, source)
        if connection.execute(sql, parameters).fetchone() != (model_id, version):
            return None
        families, insights = (
            connection.execute(f"SELECT * FROM jobs.{name} WHERE source = $source ORDER BY {order}", parameters).df()
            for name, order in ORDERS.items()
        )
    return SourceReasons(source, model_id, families, insights, version)


def reason_rows(run_reasons: RunReasons) -> list[dict[str, Any]]:
    """The reasons of one run as rows of jobs.reasons."""
    same = {name: getattr(run_reasons, name) for name in OF_RUN}
    return [
        {**same, "question": question, "rank": rank, "words": reason.text, **{n: getattr(reason, n) for n in OF_REASON}}
        for question, explanation in (("runtime", run_reasons.runtime), ("variation", run_reasons.variation))
        for rank, reason in enumerate(explanation.reasons if explanation else (), 1)
    ]
