"""Every feature by name: what kind it is, its unit, and how it is said to people."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from tasks.errors import NotFound

FeatureKind = Literal["intrinsic", "resource", "environment", "vertices", "tokens", "history"]
OPPOSITES = {
    "larger": "smaller",
    "higher": "lower",
    "more": "less",
    "later": "earlier",
    "longer": "shorter",
    "wider": "narrower",
    "more often": "less often",
    "more likely": "less likely",
}
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
    it measures, as a noun; higher: what `words` are when the value is high."""

    kind: FeatureKind
    unit: str
    words: str
    higher: str

    @property
    def lower(self) -> str:
        """What `words` are when the value is low."""
        return OPPOSITES[self.higher]


# In the order of the columns. <peers> stand for a word of PEERS, <sku>, <operator>, <column> and <k> for
# names of the log and numbers of shapes.
FEATURES: dict[str, Feature] = {
    "input_bytes": Feature("intrinsic", "bytes", "input of this run", "larger"),
    "input_ratio": Feature("intrinsic", "", "input of this run over the job's median input", "larger"),
    "estimated_rows": Feature("intrinsic", "rows", "result rows estimated by the optimiser", "more"),
    "estimated_cost": Feature("intrinsic", "rows", "cost estimated by the optimiser", "higher"),
    "cost_ratio": Feature("intrinsic", "", "estimated cost over the job's median cost", "higher"),
    "n_operators": Feature("intrinsic", "operators", "operators in the plan", "more"),
    "op_<operator>": Feature("intrinsic", "operators", "<operator> operators in the plan", "more"),
    "hour_of_day": Feature("intrinsic", "h", "time of day of the submission (UTC)", "later"),
    "day_of_week": Feature("intrinsic", "days", "day of the week of the submission (UTC, from Monday)", "later"),
    "own_<column>": Feature("intrinsic", "", "<column>", "higher"),
    "requested_runtime_s": Feature("intrinsic", "s", "time limit that was asked for", "longer"),
    "requested_memory_bytes": Feature("intrinsic", "bytes", "memory that was asked for", "larger"),
    "read_bytes_mean": Feature("intrinsic", "bytes", "data read by earlier runs of the job, on average", "more"),
    "read_bytes_sd": Feature("intrinsic", "bytes", "spread of the data read by earlier runs of the job", "wider"),
    "temp_bytes_mean": Feature("intrinsic", "bytes", "data spilled to disk by earlier runs of the job", "more"),
    "requested_tokens": Feature("resource", "tokens", "tokens (processors) that were asked for", "more"),
    "tokens_ratio": Feature("resource", "", "tokens asked for over the job's mean request", "more"),
    "spare_tokens_available": Feature("resource", "tokens", "spare tokens free at submission", "more"),
    "queue_length": Feature("environment", "runs", "queue at submission", "longer"),
    "load_mean": Feature("environment", "", "load of the machines at submission", "higher"),
    "load_sd": Feature("environment", "", "unevenness of the load at submission", "higher"),
    "sku_load_mean_<sku>": Feature("environment", "", "load of SKU <sku> at submission", "higher"),
    "sku_load_sd_<sku>": Feature("environment", "", "unevenness of the load of SKU <sku> at submission", "higher"),
    "sku_free_tokens_<sku>": Feature("environment", "tokens", "free tokens of SKU <sku> at submission", "more"),
    "offered_<sku>": Feature("environment", "", "offer of SKU <sku> to this run (0 no, 1 yes)", "more likely"),
    "n_vertices_mean": Feature("vertices", "vertices", "vertices of earlier runs of the job, on average", "more"),
    "vertices_<sku>_mean": Feature("vertices", "vertices", "vertices of earlier runs of the job on SKU <sku>", "more"),
    "vertex_share_<sku>_mean": Feature("vertices", "", "share of the job's earlier vertices on SKU <sku>", "larger"),
    "min_tokens_mean": Feature("tokens", "tokens", "fewest tokens in use in earlier runs of the job", "higher"),
    "min_tokens_sd": Feature("tokens", "tokens", "spread of the fewest tokens in use in earlier runs", "wider"),
    "mean_tokens_mean": Feature("tokens", "tokens", "mean tokens in use in earlier runs of the job", "higher"),
    "mean_tokens_sd": Feature("tokens", "tokens", "spread of the mean tokens in use in earlier runs", "wider"),
    "peak_tokens_mean": Feature("tokens", "tokens", "peak of tokens in use in earlier runs of the job", "higher"),
    "peak_tokens_sd": Feature("tokens", "tokens", "spread of the peak of tokens in use in earlier runs", "wider"),
    "spare_tokens_mean": Feature("tokens", "tokens", "spare tokens used by earlier runs of the job", "more"),
    "spare_tokens_sd": Feature("tokens", "tokens", "spread of the spare tokens used by earlier runs", "wider"),
    "n_before": Feature("history", "runs", "earlier runs of the job", "more"),
    "log_median_before": Feature("history", "", "median runtime of the job before (logarithm of seconds)", "longer"),
    "log_ratio_mean": Feature("history", "", "runtime of earlier runs against the job's median (log)", "longer"),
    "log_ratio_sd": Feature("history", "", "spread of the job's earlier runtimes (log)", "wider"),
    "last_log_ratio": Feature("history", "", "runtime of the last run against the job's median (log)", "longer"),
    "ewma_log_ratio": Feature("history", "", "runtime of recent runs against the job's median (log)", "longer"),
    "p25_p75_before": Feature("history", "", "middle half of earlier runtimes, in medians of the job", "wider"),
    "outlier_share_before": Feature("history", "", "how often the job was slow before", "more often"),
    "wait_mean_s": Feature("history", "s", "wait of earlier runs of the job before they started", "longer"),
    "hours_since_last": Feature("history", "h", "time since the last run of the job ended", "longer"),
    "input_usual": Feature("history", "", "usual runtime of the job for an input of this size (log)", "longer"),
    "<peers>_runs": Feature("history", "", "earlier runs of <peers> (log)", "more"),
    "<peers>_last": Feature("history", "", "runtime of the last run of <peers> (log of seconds)", "longer"),
    "<peers>_before_last": Feature("history", "", "runtime of the run of <peers> before the last (log)", "longer"),
    "<peers>_mean5": Feature("history", "", "mean runtime of the last 5 runs of <peers> (log)", "longer"),
    "<peers>_median10": Feature("history", "", "median runtime of the last 10 runs of <peers> (log)", "longer"),
    "<peers>_q10": Feature("history", "", "short runtimes among the last 50 runs of <peers> (log)", "longer"),
    "<peers>_median": Feature("history", "", "median runtime of the last 50 runs of <peers> (log)", "longer"),
    "<peers>_q90": Feature("history", "", "long runtimes among the last 50 runs of <peers> (log)", "longer"),
    "<peers>_since": Feature("history", "", "time since the last run of <peers> ended (log)", "longer"),
    "<peers>_limit_share": Feature("history", "", "share of their limit that runs of <peers> took (log)", "larger"),
    "shape_ratio_<k>": Feature("history", "", "evidence of earlier runs for ratio shape <k>", "more likely"),
    "shape_delta_<k>": Feature("history", "", "evidence of earlier runs for delta shape <k>", "more likely"),
    "recent_shape_ratio_<k>": Feature("history", "", "evidence of the last runs for ratio shape <k>", "more likely"),
    "recent_shape_delta_<k>": Feature("history", "", "evidence of the last runs for delta shape <k>", "more likely"),
}


def feature_of(name: str) -> Feature:
    """What stands in FEATURES for this column, with the name of the SKU, operator or shape in its words.

    Raises NotFound for a name that no feature has."""
    pattern, found = _match(name)
    feature = FEATURES[pattern]
    words = feature.words
    for key, value in found:
        words = words.replace(f"<{key}>", _said(key, value))
    return replace(feature, words=words)


def _said(key: str, value: str) -> str:
    return {"operator": value.replace("_", " "), "peers": PEERS.get(value, value)}.get(key, value)


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
    pattern, found = _match(name)
    numbers = [int(value) for key, value in found if key == "k"]
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
    raise NotFound(f"feature {name!r}: no feature has this name; see FEATURES in tasks/jobs/predict/feature_words.py")
