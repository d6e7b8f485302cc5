"""Names that forms and flags offer: sources, readers, orders, changes. Light, so that help stays quick."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from tasks.errors import BadSetting
from tasks.quantities import share

DEFAULT_SOURCE = "main"
ONLY_SOURCE = ""  # as the name of a source to ask: the only one there is
MAX_SOURCE_CHARS = 100


def checked_source(source: str) -> str:
    """The name itself. Raises BadSetting if not everyone could type it."""
    if not source or source != source.strip() or not source.isprintable() or len(source) > MAX_SOURCE_CHARS:
        expected = f"1 to {MAX_SOURCE_CHARS} printable characters without blanks at the ends"
        raise BadSetting(f"source {source!r}: not a name that everyone can type; expected {expected}; choose another")
    return source


ReaderName = Literal["auto", "swf", "slurm", "pbs", "grid-engine", "spark", "airflow", "prefect-api", "table"]
NodeReader = Literal["auto", "recorded", "azure-vm-noise", "long", "perona-sqlite", "sparecores", "logs"]
TelemetryReader = Literal["auto", "prometheus", "perf", "perfspect", "sadf", "vmstat", "wide"]
AUTO: Final = "auto"


def intake_reader(name: str) -> str:
    """The reader's name for an intake: empty where the file decides."""
    return "" if name == AUTO else name


Risk = Literal["chance", "excess", "limit", "cost"]
RISKS: dict[Risk, str] = {
    "chance": "exceeds_2x_share", "excess": "expected_excess_s", "limit": "p95_s", "cost": "cost_s_per_day"
}  # fmt: skip
SORTED: dict[Risk, str] = {
    "chance": "most likely to take twice the usual first",
    "excess": "most time beyond the usual first",
    "limit": "longest first",
    "cost": "most time beyond the usual a day first",
}

Named = Literal["no_spare", "newest_sku", "steady_load", "even_load"]  # changes that the paper tries, and one more
ChangePointMethod = Literal["bayes", "pelt", "kernel", "binseg"]
HoldOut = Literal["auto", "round", "time"]
Statement = Literal["known", "known and something unknown", "unknown", "idle"]
UNKNOWN = "unknown"
EVEN_ODDS = 0.5


def identification_words(row: Mapping[Any, Any], *, how_sure: bool = False) -> str:
    """An identification in words: "redis", "redis + perhaps nginx, and something unknown", "unknown", "idle".

    Perhaps: a name that has no even odds. how_sure: with the probability of each: "redis (74.3 % sure)"."""

    def with_probability(name: str, probability: Any) -> str:
        return f"{name} ({share(probability)} sure)" if how_sure else name

    def named(workload: Any, probability: Any) -> str:
        has_even_odds = probability is None or not probability < EVEN_ODDS
        return with_probability(str(workload) if has_even_odds else f"perhaps {workload}", probability)

    if not row["is_known"]:
        return with_probability(UNKNOWN, row.get("confidence"))
    present = row.get("present")  # missing where an older whorl said it
    parts = [named(part["workload"], part["probability"]) for part in ([] if present is None else present)]
    has_rest = row.get("statement") == "known and something unknown"
    rest = f", and {with_probability(f'something {UNKNOWN}', row.get('unknown_score'))}" if has_rest else ""
    return (" + ".join(parts) or named(row["workload"], row.get("confidence"))) + rest
