"""What is known of a run when it is submitted, as one row of numbers: the input of the predictor and the classifiers.

Each feature is what the log says of the submission (its input, plan and request, the state of the machines), or a
statistic of runs that had ended strictly before it: how long those of the job took and waited, what they used, what
they say about its shape, and how long those of other peers took (`peers.py`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import softmax

from tasks.jobs.normalisation import historic_medians, normalise
from tasks.jobs.predict.earlier import EarlierRuns, Floats, earlier_runs
from tasks.jobs.predict.feature_words import in_order, pattern_of
from tasks.jobs.predict.peers import LEAST_RUNTIME_S, peer_features
from tasks.jobs.predict.rows import OWN
from tasks.jobs.shape_params import Kind, NormalisationParams
from tasks.jobs.shapes import ShapeSet, log_shapes

OPERATOR, BY_SKU = "op_", "vertices_"
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
class History:
    """Shapes of period D1 by kind, and what runs are compared with them by.

    medians_s: historic median of each group of D1, in seconds; a group without one takes the median of its runs that
    had ended before, as historic_medians has it. Shapes and medians of D1 are no secret from D2 on; rows of D1 would
    see their own future in them. empty_bin_prior: as log_shapes takes it. categories: of each own column of texts its
    values before the test, the most frequent first."""

    shapes: Mapping[Kind, ShapeSet]
    medians_s: Mapping[str, float]
    empty_bin_prior: float
    normalisation: NormalisationParams = field(default_factory=NormalisationParams)
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)


def make_features(
    runs: pd.DataFrame, past: pd.DataFrame, history: History | None = None, *, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """One row of features for each of `runs`: float64, NaN where unknown, on the index of `runs`.

    runs: group_key, submitted_at and whatever read_runs has of the log: only what is known at submission is read.
    past: finished runs of all jobs as read_runs has them; only those that ended strictly before the row's submission
    count, so past and runs may overlap. The names are those of FEATURES, in its order.
    A feature of which the log has nothing is left out. With `columns`, those of a trained model, exactly these come
    back in their order: NaN where the log has nothing, 0 for an operator or SKU that is new to it only by its
    absence here. Raises BadInput without a needed column, NotFound for a name that no feature has.
    Source: Zhu et al. 2023, section 5.1."""
    earlier, history = earlier_runs(runs, past), history or History({}, {}, 0.0)
    found = _known(runs, earlier) | _own(runs, history.categories) | _usage(earlier)
    found |= _of_runtimes(runs, earlier, history) | peer_features(runs, past)
    names = in_order(found) if columns is None else list(columns)
    return pd.DataFrame(
        {name: found[name] if name in found else _absent(name, found, len(runs)) for name in names},
        index=runs.index,
        dtype=float,
    )


def _known(runs: pd.DataFrame, earlier: EarlierRuns) -> dict[str, Floats]:
    """What the log says of a run at its submission: its input and plan, what it asks for, the state of the machines."""
    names = AS_THEY_ARE | {str(name): str(name) for name in runs if str(name).startswith(BY_NAME)}
    found = {
        name: runs[column].to_numpy(dtype=float, na_value=np.nan)
        for name, column in names.items()
        if column in runs and runs[column].notna().any()
    }
    operators = [values for name, values in found.items() if name.startswith(OPERATOR)]
    if operators:
        found["n_operators"] = np.sum(operators, axis=0)
    for name, column in AGAINST_MEDIAN.items():
        if column in found and earlier.has(column):
            found[name] = _over(found[column], earlier.quantile(earlier.values(column), MIDDLE, window=WINDOW_RUNS))
    if "requested_tokens" in found and earlier.has("requested_cpus"):
        found["tokens_ratio"] = _over(found["requested_tokens"], earlier.mean(earlier.values("requested_cpus")))
    clock = runs["submitted_at"].dt
    hours = clock.hour + clock.minute / MINUTES + clock.second / SECONDS
    days = clock.day_of_week.to_numpy(dtype=float)
    return found | {"hour_of_day": hours.to_numpy(dtype=float), "day_of_week": days}


def _own(runs: pd.DataFrame, categories: Mapping[str, Sequence[str]]) -> dict[str, Floats]:
    """Own columns of a table: numbers as they are, texts by their place among the most frequent, rare ones last."""
    found: dict[str, Floats] = {}
    for name in [str(name) for name in runs if str(name).startswith(OWN) and runs[name].notna().any()]:
        if name in categories:
            places = {value: float(place) for place, value in enumerate(categories[name])}
            ranks = runs[name].map(lambda value, places=places: places.get(str(value), len(places)))
            found[name] = ranks.where(runs[name].notna()).to_numpy(dtype=float)
        else:
            found[name] = pd.to_numeric(runs[name], errors="coerce").to_numpy(dtype=float)
    return found


def _usage(earlier: EarlierRuns) -> dict[str, Floats]:
    """What earlier runs of the job used: data read, vertices by SKU, and tokens."""
    found: dict[str, Floats] = {}
    for name, column in MEANS_AND_SDS.items():
        if earlier.has(column):
            found[f"{name}_mean"], found[f"{name}_sd"] = earlier.mean_sd(earlier.values(column))
    for name, column in MEANS.items():
        if earlier.has(column):
            found[name] = earlier.mean(earlier.values(column))
    if not earlier.has("n_vertices"):
        return found
    total = earlier.values("n_vertices")
    for column in [str(name) for name in earlier.past if str(name).startswith(BY_SKU)]:
        vertices, sku = earlier.values(column), column.removeprefix(BY_SKU)
        found[f"vertices_{sku}_mean"] = earlier.mean(vertices)
        found[f"vertex_share_{sku}_mean"] = earlier.mean(vertices / np.where(total > 0, total, np.nan))
    return found


def _of_runtimes(runs: pd.DataFrame, earlier: EarlierRuns, history: History) -> dict[str, Floats]:
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
    found = {
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
        found |= _shape_features(earlier, shapes, past_s, history.empty_bin_prior)
    return found


def _medians_of_past(earlier: EarlierRuns, history: History) -> Floats:
    """The median that each earlier run is compared with, of D1 or of the runs before it, in seconds: (n_past,)."""
    past = pd.DataFrame(
        {
            "group_key": earlier.past_codes,
            "submitted_at": earlier.past["submitted_at"].to_numpy()[earlier.order],
            "ended_at": earlier.known_at,
            "runtime_s": earlier.values("runtime_s"),
        }
    )
    medians = historic_medians(past, pd.Series(earlier.by_job(history.medians_s)), history.normalisation)
    return medians["median_s"].to_numpy(dtype=float)


def _shape_features(earlier: EarlierRuns, shapes: ShapeSet, medians_s: Floats, prior: float) -> dict[str, Floats]:
    """The probability of each shape (equations 1 to 8), given all earlier runs and given the last RECENT_RUNS.

    medians_s: (n_past,) as _medians_of_past has them. All shapes are alike before the first run; missing for a row
    whose job has no earlier run with a median."""
    bins = shapes.bins.index(normalise(earlier.values("runtime_s"), medians_s, shapes.bins.kind))
    log_theta = log_shapes(shapes.centres, empty_bin_prior=prior)
    # what each run says (eq. 2), and that it says something; nothing without a median
    evidence = np.where((bins >= 0)[:, None], np.column_stack([log_theta.T[bins], np.ones(len(bins))]), 0.0)
    found: dict[str, Floats] = {}
    for prefix, window in (("shape", None), ("recent_shape", RECENT_RUNS)):
        sums = earlier.sums(evidence, window=window)
        posterior = np.where(sums[:, -1:] > 0, softmax(sums[:, :-1], axis=1), np.nan)  # (n_rows, k)
        found |= {f"{prefix}_{shapes.bins.kind}_{k}": posterior[:, k] for k in range(posterior.shape[1])}
    return found


def _over(values: Floats, usual: Floats) -> Floats:
    """Ratios; missing where the usual is 0 or missing."""
    return np.asarray(values / np.where(usual > 0, usual, np.nan))


def _absent(name: str, found: dict[str, Floats], n_rows: int) -> Floats:
    """A column that the log lacks: 0 where others of its kind are known, as for an operator that no plan here has."""
    pattern = pattern_of(name)
    values = np.full(n_rows, np.nan)
    if pattern in COUNTED:
        for sibling in (other for other in found if pattern_of(other) == pattern):
            values[np.isfinite(found[sibling])] = 0.0
    return values
