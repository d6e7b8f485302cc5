"""What is known of a run when it is submitted, as one row of numbers: the input of the predictor and the classifiers.

Each feature is what the log says of the submission (its input, plan and request, the state of the machines), or a
statistic of runs that had ended strictly before it: how long those of the job took and waited, what they used, what
they say about its shape, and how long those of other peers took (`peers.py`)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd

from tasks.errors import NotFound
from tasks.jobs.distribution import Floats
from tasks.jobs.normalisation import historic_medians, normalise
from tasks.jobs.params import Kind
from tasks.jobs.predict.peers import JOB, LEAST_RUNTIME_S, EarlierRuns, peer_features, peers_of
from tasks.jobs.shapes import ShapeSet, log_shapes

FeatureKind = Literal["intrinsic", "resource", "environment", "vertices", "tokens", "history"]
PEERS = {
    "job": "the job",
    "user": "the user",
    "user_request": "the user with the same request",
    "request": "this request (processors, limit, queue)",
    "log": "the log",
}
PLACEHOLDERS = {
    "<peers>": f"(?P<peers>{'|'.join(PEERS)})",
    "<sku>": r"(?P<sku>.+)",
    "<operator>": r"(?P<operator>.+)",
    "<column>": r"(?P<column>.+)",
    "<k>": r"(?P<k>\d+)",
}


@dataclass(frozen=True)
class Feature:
    """kind: the group of section 5.1 that it belongs to; unit: empty for a share, a ratio or a logarithm; words: what
    it measures, as a noun."""

    kind: FeatureKind
    unit: str
    words: str


# In the order of the columns. <peers> stand for a word of PEERS, <sku>, <operator>, <column> and <k> for
# names of the log and numbers of shapes.
FEATURES: dict[str, Feature] = {
    "input_bytes": Feature("intrinsic", "bytes", "input of this run"),
    "input_ratio": Feature("intrinsic", "", "input of this run over the job's median input"),
    "estimated_rows": Feature("intrinsic", "rows", "result rows estimated by the optimiser"),
    "estimated_cost": Feature("intrinsic", "rows", "cost estimated by the optimiser"),
    "cost_ratio": Feature("intrinsic", "", "estimated cost over the job's median cost"),
    "n_operators": Feature("intrinsic", "operators", "operators in the plan"),
    "op_<operator>": Feature("intrinsic", "operators", "<operator> operators in the plan"),
    "hour_of_day": Feature("intrinsic", "h", "time of day of the submission (UTC)"),
    "day_of_week": Feature("intrinsic", "days", "day of the week of the submission (UTC, from Monday)"),
    "own_<column>": Feature("intrinsic", "", "<column>"),
    "requested_runtime_s": Feature("intrinsic", "s", "time limit that was asked for"),
    "requested_memory_bytes": Feature("intrinsic", "bytes", "memory that was asked for"),
    "read_bytes_mean": Feature("intrinsic", "bytes", "data read by earlier runs of the job, on average"),
    "read_bytes_sd": Feature("intrinsic", "bytes", "spread of the data read by earlier runs of the job"),
    "temp_bytes_mean": Feature("intrinsic", "bytes", "data spilled to disk by earlier runs of the job"),
    "requested_tokens": Feature("resource", "processors", "processors (tokens) asked for"),
    "tokens_ratio": Feature("resource", "", "processors asked for over the job's mean request"),
    "spare_tokens_available": Feature("resource", "tokens", "spare tokens free at submission"),
    "queue_length": Feature("environment", "runs", "queue at submission"),
    "load_mean": Feature("environment", "", "load of the machines at submission"),
    "load_sd": Feature("environment", "", "unevenness of the load at submission"),
    "sku_load_mean_<sku>": Feature("environment", "", "load of SKU <sku> at submission"),
    "sku_load_sd_<sku>": Feature("environment", "", "unevenness of the load of SKU <sku> at submission"),
    "sku_free_tokens_<sku>": Feature("environment", "tokens", "free tokens of SKU <sku> at submission"),
    "offered_<sku>": Feature("environment", "", "offer of SKU <sku> to this run (0 no, 1 yes)"),
    "n_vertices_mean": Feature("vertices", "vertices", "vertices of earlier runs of the job, on average"),
    "vertices_<sku>_mean": Feature("vertices", "vertices", "vertices of earlier runs of the job on SKU <sku>"),
    "vertex_share_<sku>_mean": Feature("vertices", "", "share of the job's earlier vertices on SKU <sku>"),
    "min_tokens_mean": Feature("tokens", "tokens", "fewest tokens in use in earlier runs of the job"),
    "min_tokens_sd": Feature("tokens", "tokens", "spread of the fewest tokens in use in earlier runs"),
    "mean_tokens_mean": Feature("tokens", "tokens", "mean tokens in use in earlier runs of the job"),
    "mean_tokens_sd": Feature("tokens", "tokens", "spread of the mean tokens in use in earlier runs"),
    "peak_tokens_mean": Feature("tokens", "tokens", "peak of tokens in use in earlier runs of the job"),
    "peak_tokens_sd": Feature("tokens", "tokens", "spread of the peak of tokens in use in earlier runs"),
    "spare_tokens_mean": Feature("tokens", "tokens", "spare tokens used by earlier runs of the job"),
    "spare_tokens_sd": Feature("tokens", "tokens", "spread of the spare tokens used by earlier runs"),
    "n_before": Feature("history", "runs", "earlier runs of the job"),
    "log_median_before": Feature("history", "", "median runtime of the job before (logarithm of seconds)"),
    "log_ratio_mean": Feature("history", "", "runtime of earlier runs against the job's median (log)"),
    "log_ratio_sd": Feature("history", "", "spread of the job's earlier runtimes (log)"),
    "last_log_ratio": Feature("history", "", "runtime of the last run against the job's median (log)"),
    "ewma_log_ratio": Feature("history", "", "runtime of recent runs against the job's median (log)"),
    "p25_p75_before": Feature("history", "", "middle half of earlier runtimes, in medians of the job"),
    "outlier_share_before": Feature("history", "", "how often the job was slow before"),
    "wait_mean_s": Feature("history", "s", "wait of earlier runs of the job before they started"),
    "hours_since_last": Feature("history", "h", "time since the last run of the job ended"),
    "input_usual": Feature("history", "", "runtime of the job for an input of this size (log)"),
    "<peers>_runs": Feature("history", "", "earlier runs of <peers> (log)"),
    "<peers>_last": Feature("history", "", "runtime of the last run of <peers> (log of seconds)"),
    "<peers>_before_last": Feature("history", "", "runtime of the run of <peers> before the last (log)"),
    "<peers>_mean5": Feature("history", "", "mean runtime of the last 5 runs of <peers> (log)"),
    "<peers>_median10": Feature("history", "", "median runtime of the last 10 runs of <peers> (log)"),
    "<peers>_q10": Feature("history", "", "short runtimes among the last 50 runs of <peers> (log)"),
    "<peers>_median": Feature("history", "", "median runtime of the last 50 runs of <peers> (log)"),
    "<peers>_q90": Feature("history", "", "long runtimes among the last 50 runs of <peers> (log)"),
    "<peers>_since": Feature("history", "", "time since the last run of <peers> ended (log)"),
    "<peers>_limit_share": Feature("history", "", "share of their limit that runs of <peers> took (log)"),
    "shape_ratio_<k>": Feature("history", "", "chance of ratio shape <k> by earlier runs"),
    "shape_delta_<k>": Feature("history", "", "chance of delta shape <k> by earlier runs"),
    "recent_shape_ratio_<k>": Feature("history", "", "chance of ratio shape <k> by the last runs"),
    "recent_shape_delta_<k>": Feature("history", "", "chance of delta shape <k> by the last runs"),
}


def feature_of(name: str) -> Feature:
    """What stands in FEATURES for this column, with the name of the SKU, operator or shape in its words.

    Raises NotFound for a name that no feature has."""
    pattern, placeholders = _match(name)
    feature = FEATURES[pattern]
    words = feature.words
    for key, value in placeholders:
        readable = {"operator": value.replace("_", " "), "peers": PEERS.get(value, value)}.get(key, value)
        words = words.replace(f"<{key}>", readable)
    return replace(feature, words=words)


def pattern_of(name: str) -> str:
    """The key of FEATURES that this column belongs to. Raises NotFound for a name that no feature has."""
    return _match(name)[0]


def is_of_peers(name: str) -> bool:
    """Whether a feature tells of runs that share more or less than the job with a submission (`peers.py`)."""
    return pattern_of(name).startswith("<peers>") or name == "input_usual"


def in_order(names: Iterable[str]) -> list[str]:
    """The names as FEATURES has them; those of one pattern by number or by alphabet. Raises NotFound as feature_of."""
    return sorted(set(names), key=_place)


def _place(name: str) -> tuple[int, int, str]:
    pattern, placeholders = _match(name)
    numbers = [int(value) for key, value in placeholders if key == "k"]
    return list(FEATURES).index(pattern), numbers[0] if numbers else 0, name


@cache
def _match(name: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    if name in FEATURES:
        return name, ()
    for pattern in FEATURES:
        if "<" not in pattern:
            continue
        expression = pattern
        for placeholder, group in PLACEHOLDERS.items():
            expression = expression.replace(placeholder, group)
        if match := re.fullmatch(expression, name):
            return pattern, tuple(match.groupdict().items())
    raise NotFound(f"feature {name!r}: no feature has this name; see FEATURES in tasks/jobs/predict/features.py")


OPERATOR, OWN, BY_SKU = "op_", "own_", "vertices_"
AS_THEY_ARE = {  # feature: column
    "input_bytes": "input_bytes",
    "estimated_rows": "estimated_rows",
    "estimated_cost": "estimated_cost",
    "requested_runtime_s": "requested_runtime_s",
    "requested_memory_bytes": "requested_memory_bytes",
    "requested_tokens": "requested_cpus",
    "spare_tokens_available": "spare_tokens_available",
    "queue_length": "queue_length",
    "load_mean": "load_mean",
    "load_sd": "load_sd",
}
BY_NAME = (OPERATOR, "sku_load_mean_", "sku_load_sd_", "sku_free_tokens_", "offered_")
AGAINST_MEDIAN = {"input_ratio": "input_bytes", "cost_ratio": "estimated_cost"}
MEANS_AND_SDS = {  # of earlier runs; feature, without _mean or _sd: column
    "read_bytes": "read_bytes",
    "min_tokens": "min_tokens",
    "mean_tokens": "used_cpus",
    "peak_tokens": "peak_tokens",
    "spare_tokens": "spare_tokens_used",
}
MEANS = {"temp_bytes_mean": "temp_bytes", "n_vertices_mean": "n_vertices", "wait_mean_s": "wait_s"}
COUNTED = ("op_<operator>", "offered_<sku>", "vertices_<sku>_mean", "vertex_share_<sku>_mean")
WINDOW_RUNS = 200  # medians and quartiles are over at most so many earlier runs, the last ones
RECENT_RUNS = 10  # evidence of their own for the shape of a job: jobs change their shape
HALF_LIFE_RUNS = 5.0  # after which a run counts half in the mean of recent runtimes
SLOW_RATIO = 2.0  # times its median from which on a run counts as slow
LOW, MIDDLE, HIGH = 0.25, 0.5, 0.75
MINUTES, SECONDS = 60, 3600  # in an hour


@dataclass(frozen=True)
class HistoricShapes:
    """Shapes of period D1 by kind, and what runs are compared with them by.

    medians_s: historic median of each group of D1, in seconds; a group without one takes the median of its runs that
    had ended before, as historic_medians has it. Shapes and medians of D1 are no secret from D2 on; rows of D1 would
    see their own future in them. categories: of each own column of texts its values before the test, the most frequent
    first."""

    shapes: Mapping[Kind, ShapeSet]
    medians_s: Mapping[str, float] | pd.Series
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)


def make_features(
    runs: pd.DataFrame,
    past: pd.DataFrame,
    history: HistoricShapes | None = None,
    *,
    columns: Sequence[str] | None = None,
    peers: Mapping[str, EarlierRuns] | None = None,
) -> pd.DataFrame:
    """One row of features for each of `runs`: float64, NaN where unknown, on the index of `runs`.

    runs: group_key, submitted_at and whatever read_runs has of the log: only what is known at submission is read.
    past: finished runs of all jobs as read_runs has them; only those that ended strictly before the row's submission
    count, so past and runs may overlap. The names are those of FEATURES, in its order.
    A feature of which the log has nothing is left out. With `columns`, those of a trained model, exactly these come
    back in their order: NaN where the log has nothing, 0 for an operator or SKU that is new to it only by its
    absence here. peers: of peers_of(runs, past), where they are known already. Raises BadInput without a needed
    column, NotFound for a name that no feature has.
    Source: Zhu et al. 2023, section 5.1."""
    peers, history = peers_of(runs, past) if peers is None else peers, history or HistoricShapes({}, {})
    earlier = peers[JOB]
    features = _known(runs, earlier) | _table_columns(runs, history.categories) | _usage(earlier)
    features |= _of_runtimes(runs, earlier, history) | peer_features(runs, peers)
    names = in_order(features) if columns is None else list(columns)
    return pd.DataFrame(
        {name: features[name] if name in features else _absent(name, features, len(runs)) for name in names},
        index=runs.index,
        dtype=float,
    )


def _known(runs: pd.DataFrame, earlier: EarlierRuns) -> dict[str, Floats]:
    """What the log says of a run at its submission: its input and plan, what it asks for, the state of the machines."""
    names = AS_THEY_ARE | {str(name): str(name) for name in runs if str(name).startswith(BY_NAME)}
    features = {
        name: runs[column].to_numpy(dtype=float, na_value=np.nan)
        for name, column in names.items()
        if column in runs and runs[column].notna().any()
    }
    operators = [values for name, values in features.items() if name.startswith(OPERATOR)]
    if operators:
        features["n_operators"] = np.sum(operators, axis=0)
    for name, column in AGAINST_MEDIAN.items():
        if column in features and earlier.has(column):
            features[name] = _over(
                features[column], earlier.quantile(earlier.values(column), MIDDLE, window=WINDOW_RUNS)
            )
    if "requested_tokens" in features and earlier.has("requested_cpus"):
        features["tokens_ratio"] = _over(features["requested_tokens"], earlier.mean(earlier.values("requested_cpus")))
    clock = runs["submitted_at"].dt
    hours = clock.hour + clock.minute / MINUTES + clock.second / SECONDS
    days = clock.day_of_week.to_numpy(dtype=float)
    return features | {"hour_of_day": hours.to_numpy(dtype=float), "day_of_week": days}


def _table_columns(runs: pd.DataFrame, categories: Mapping[str, Sequence[str]]) -> dict[str, Floats]:
    """Own columns of a table: numbers as they are, texts by their place among the most frequent, rare ones last."""
    features: dict[str, Floats] = {}
    for name in [str(name) for name in runs if str(name).startswith(OWN) and runs[name].notna().any()]:
        if name in categories:
            places = {value: float(place) for place, value in enumerate(categories[name])}
            ranks = runs[name].map(lambda value, places=places: places.get(str(value), len(places)))
            features[name] = ranks.where(runs[name].notna()).to_numpy(dtype=float)
        else:
            features[name] = pd.to_numeric(runs[name], errors="coerce").to_numpy(dtype=float)
    return features


def _usage(earlier: EarlierRuns) -> dict[str, Floats]:
    """What earlier runs of the job used: data read, vertices by SKU, and tokens."""
    features: dict[str, Floats] = {}
    for name, column in MEANS_AND_SDS.items():
        if earlier.has(column):
            features[f"{name}_mean"], features[f"{name}_sd"] = earlier.mean_sd(earlier.values(column))
    for name, column in MEANS.items():
        if earlier.has(column):
            features[name] = earlier.mean(earlier.values(column))
    if not earlier.has("n_vertices"):
        return features
    total = earlier.values("n_vertices")
    for column in [str(name) for name in earlier.past if str(name).startswith(BY_SKU)]:
        vertices, sku = earlier.values(column), column.removeprefix(BY_SKU)
        features[f"vertices_{sku}_mean"] = earlier.mean(vertices)
        features[f"vertex_share_{sku}_mean"] = earlier.mean(vertices / np.where(total > 0, total, np.nan))
    return features


def _of_runtimes(runs: pd.DataFrame, earlier: EarlierRuns, history: HistoricShapes) -> dict[str, Floats]:
    """How long earlier runs of the job took: level, spread, trend, slow runs, and the shapes that they tell of.

    All but n_before are missing for a job without an earlier run. The logarithms are against the median of D1, else
    that of the last WINDOW_RUNS runs."""
    runtimes_s = earlier.values("runtime_s")
    logs = np.log(np.maximum(runtimes_s, LEAST_RUNTIME_S))
    low, middle, high = (earlier.quantile(runtimes_s, q, window=WINDOW_RUNS) for q in (LOW, MIDDLE, HIGH))
    historic = np.append(earlier.by_job(history.medians_s), np.nan)[earlier.codes]  # code -1: no job
    against_s = np.where(np.isfinite(historic) & (historic >= 0), historic, middle)
    against = np.log(np.maximum(against_s, LEAST_RUNTIME_S))
    mean, sd = earlier.mean_sd(logs)
    past_s = _medians_of_past(earlier, history)
    ratios = normalise(runtimes_s, past_s, "ratio")
    features = {
        "n_before": earlier.n.astype(float),
        "log_median_before": np.log(np.maximum(middle, LEAST_RUNTIME_S)),
        "log_ratio_mean": mean - against,
        "log_ratio_sd": sd,
        "last_log_ratio": earlier.at_last(logs) - against,
        "ewma_log_ratio": earlier.recent_mean(logs, half_life=HALF_LIFE_RUNS) - against,
        "p25_p75_before": (high - low) / np.where(against_s > 0, against_s, np.nan),
        "outlier_share_before": earlier.mean(np.where(np.isnan(ratios), np.nan, ratios >= SLOW_RATIO)),
        "hours_since_last": earlier.since_last_s(runs["submitted_at"]) / SECONDS,
    }
    for shapes in history.shapes.values():
        features |= _shape_features(earlier, shapes, past_s)
    return features


def _medians_of_past(earlier: EarlierRuns, history: HistoricShapes) -> Floats:
    """The median that each earlier run is compared with, of D1 or of the runs before it, in seconds: (n_past,)."""
    past = pd.DataFrame(
        {
            "group_key": earlier.past_codes,
            "submitted_at": earlier.past["submitted_at"].to_numpy()[earlier.order],
            "ended_at": earlier.known_at,
            "runtime_s": earlier.values("runtime_s"),
        }
    )
    medians = historic_medians(past, pd.Series(earlier.by_job(history.medians_s)))
    return medians["median_s"].to_numpy(dtype=float)


def _shape_features(earlier: EarlierRuns, shapes: ShapeSet, medians_s: Floats) -> dict[str, Floats]:
    """The probability of each shape (equations 1 to 8), given all earlier runs and given the last RECENT_RUNS.

    medians_s: (n_past,) as _medians_of_past has them. All shapes are alike before the first run; missing for a row
    whose job has no earlier run with a median."""
    from scipy.special import softmax  # not above: pages import this module, and need none of it

    bins = shapes.bins.index(normalise(earlier.values("runtime_s"), medians_s, shapes.bins.kind))
    log_theta = log_shapes(shapes.centres)
    # what each run says (eq. 2), and that it says something; nothing without a median
    evidence = np.where((bins >= 0)[:, None], np.column_stack([log_theta.T[bins], np.ones(len(bins))]), 0.0)
    features: dict[str, Floats] = {}
    for prefix, sums in zip(("shape", "recent_shape"), earlier.sums_and_recent(evidence, RECENT_RUNS), strict=True):
        posterior = np.where(sums[:, -1:] > 0, softmax(sums[:, :-1], axis=1), np.nan)  # (n_rows, k)
        features |= {f"{prefix}_{shapes.bins.kind}_{k}": posterior[:, k] for k in range(posterior.shape[1])}
    return features


def _over(values: Floats, usual: Floats) -> Floats:
    """Ratios; missing where the usual is 0 or missing."""
    return np.asarray(values / np.where(usual > 0, usual, np.nan))


def _absent(name: str, features: dict[str, Floats], n_rows: int) -> Floats:
    """A column that the log lacks: 0 where others of its kind are known, as for an operator that no plan here has."""
    pattern = pattern_of(name)
    values = np.full(n_rows, np.nan)
    if pattern in COUNTED:
        for sibling in (other for other in features if pattern_of(other) == pattern):
            values[np.isfinite(features[sibling])] = 0.0
    return values
