"""What an evaluation of benchmark results found, as tables of its page: by detector and dose, by way of ranking."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tasks.nodes.evaluate.figures import their_figures
from tasks.quantities import MISSING, number, ratio, share
from tasks.report.nodes_words import sentence

Show = Callable[[float | None], str]
REASON = ".reason"
MEASURES: dict[str, tuple[str, Show]] = {
    "f1_outlier": ("F1 of stressed", ratio),
    "f1_normal": ("F1 of others", ratio),
    "weighted_f1": ("weighted F1", ratio),
    "auprc": ("area under precision over recall", ratio),
    "precision": ("precision", share),
    "recall": ("recall", share),
    "false_alarms_per_1000": ("false alarms in 1,000", number),
    "delay_executions": ("executions until it is told", number),
}
DETECTORS = {
    "model": "learned model",
    "zscore": "robust z-scores",
    "forest": "isolation forest",
    "lastk": "median of the last executions",
    "changepoint": "change points",
}
PROTOCOLS = {"": "later executions", "random": "random executions", "left_node": "a node left out"}
METHODS = {
    "spearman": "the score of all microbenchmarks",
    "best_single": "the one metric that did best on other nodes",
    "best_oracle": "the one metric that does best here, known afterwards",
    "pc1": "the first principal component",
}
REPEATED: dict[str, tuple[str, Show]] = {
    "cv": ("spread", share),
    "rerun_median": ("a rerun differs by", share),
    "rerun_p90": ("in one of ten by", share),
    "runs_for_5": ("executions to see 5 %", number),
    "runs_for_10": ("executions to see 10 %", number),
    "runs_to_tell_apart": ("executions to tell two nodes apart", number),
}
OVERVIEW: dict[str, tuple[str, Show]] = {
    "n": ("executions", number),
    "n_nodes": ("nodes", number),
    "n_types": ("benchmark types", number),
    "n_stressed": ("executions that were stressed", number),
    "n_contaminated": ("executions that others disturbed", number),
    "n_not_completed": ("executions that did not complete", number),
    "n_refused": ("rows of files that were refused", number),
    "n_values_refused": ("values of other rows that were refused", number),
    "n_replaced": ("executions that a later file or row gives again", number),
    "metrics.recorded": ("metrics recorded", number),
    "metrics.kept": ("metrics kept", number),
}


def detection_figures(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row a way of splitting and detector that has figures: split, detector, and each measure that is known."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for key, value in figures.items():
        parts = key.split(".")
        if parts[0] != "detect" or len(parts) not in (3, 4) or parts[1] not in MEASURES or parts[-1] == "reason":
            continue
        split = parts[3] if len(parts) == 4 else ""
        if split in PROTOCOLS and value is not None:
            found.setdefault((split, parts[2]), {})[parts[1]] = float(value)
    return [
        {"split": PROTOCOLS[split], "detector": DETECTORS.get(detector, detector), **measures}
        for (split, detector), measures in sorted(found.items(), key=lambda one: list(PROTOCOLS).index(one[0][0]))
    ]


def detection_rows(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same as words: split, detector, and the values of all measures in their order."""
    return [
        {
            "split": row["split"],
            "detector": row["detector"],
            "values": [show(row[name]) if name in row else MISSING for name, (_, show) in MEASURES.items()],
        }
        for row in detection_figures(figures)
    ]


def dose_rows(figures: Mapping[str, Any], measure: str = "f1_outlier") -> tuple[list[str], list[dict[str, Any]]]:
    """The doses, and a row a detector: one measure of the plain split, by dose."""
    rows: dict[str, dict[str, str]] = {}
    for key, value in figures.items():
        parts = key.split(".")
        if parts[:2] == ["detect", measure] and len(parts) == 4 and parts[3].startswith("dose_") and value is not None:
            rows.setdefault(parts[2], {})[parts[3]] = MEASURES[measure][1](float(value))
    doses = sorted({dose for row in rows.values() for dose in row})
    told = [
        {"detector": DETECTORS.get(name, name), "values": [row.get(dose, MISSING) for dose in doses]}
        for name, row in rows.items()
    ]
    return [dose.replace("_", " ") for dose in doses], told


def rank_rows(figures: Mapping[str, Any]) -> tuple[list[str], list[dict[str, Any]]]:
    """The machine types that nodes were ranked in, and a row a way of ranking: correlation with applications."""
    types = [key.removeprefix("rank.nodes.") for key in figures if key.startswith("rank.nodes.")]
    rows = []
    for method, words in METHODS.items():
        values = [figures.get(f"rank.{method}.{one}") for one in types] + [figures.get(f"rank.{method}")]
        if any(value is not None for value in values):
            rows.append({"method": words, "values": [ratio(value) for value in values]})
    return [*types, "all together"], rows


def repeated_rows(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row a benchmark type, and one for all: how much a rerun differs."""
    names = dict.fromkeys(
        key.removeprefix("repeatability.cv").removeprefix(".")
        for key in figures
        if key.startswith("repeatability.cv") and not key.endswith(REASON)
    )
    return [
        {
            "type": name or "all benchmarks",
            "values": [
                show(figures.get(f"repeatability.{key}.{name}".rstrip("."))) for key, (_, show) in REPEATED.items()
            ],
        }
        for name in names
        if figures.get(f"repeatability.cv.{name}".rstrip(".")) is not None
    ]


def figure_rows(figures: Mapping[str, Any]) -> list[dict[str, str]]:
    """The main figures with words and value, or why there is none.

    theirs: the same by the paper's preprocessing; empty where that was not asked for, or does not matter."""
    keys: dict[str, tuple[str, Show]] = dict(OVERVIEW)
    for measure in ("f1_outlier", "f1_normal", "auprc"):
        for detector, name in DETECTORS.items():
            keys[f"detect.{measure}.{detector}"] = (f"{MEASURES[measure][0]}, by {name}", MEASURES[measure][1])
    keys |= {
        f"rank.{method}": (f"correlation with applications of {words}", ratio) for method, words in METHODS.items()
    }
    keys |= {f"repeatability.{key}": (f"reruns: {words}", show) for key, (words, show) in REPEATED.items()}
    theirs = their_figures(figures)
    return [
        {
            "words": words,
            "value": _told(figures, key, show),
            "theirs": _told(theirs, key, show) if key in theirs else "",
        }
        for key, (words, show) in keys.items()
        if key in figures
    ]


def reasons(figures: Mapping[str, Any], parts: Sequence[str]) -> list[str]:
    """Why figures of these parts cannot be had, each reason once."""
    told = [
        str(value) for key, value in figures.items() if key.endswith(REASON) and key.startswith(tuple(parts)) and value
    ]
    return [sentence(reason) for reason in dict.fromkeys(told)]


def _told(figures: Mapping[str, Any], key: str, show: Show) -> str:
    value = figures[key]
    return show(float(value)) if value is not None else sentence(figures.get(f"{key}{REASON}") or "not measured")
