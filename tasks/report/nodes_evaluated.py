"""What an evaluation of benchmark results found, as tables of its page: by detector and dose, by way of ranking."""

from collections.abc import Mapping, Sequence
from typing import Any

from tasks.nodes.evaluate.measures import their_figures
from tasks.quantities import MISSING, number, ratio, share
from tasks.report.nodes_detected import told_of
from tasks.report.nodes_evaluation_words import (
    ANY,
    DETECTORS,
    MEASURES,
    METHODS,
    MODEL,
    PROTOCOLS,
    Show,
    detector_name,
)
from tasks.report.nodes_fitted import FITTED, SAYS_NOTHING, key_of
from tasks.report.nodes_words import sentence

REASON = ".reason"
SORTED_BY = "f1_outlier"
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
    """A row a way of splitting and detector that has figures: split, detector, and each measure that is known.

    Of each way of splitting the detector that tells stressed executions best stands on top."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for measure in MEASURES:
        for (protocol, dose, detector), told in told_of(figures, measure).items():
            if dose == ANY:
                found.setdefault((protocol, detector), {})[measure] = told.value
    splits = list(PROTOCOLS)
    order = sorted(found, key=lambda one: (splits.index(one[0]), -found[one].get(SORTED_BY, -1.0)))
    return [{"split": PROTOCOLS[one[0]], "detector": detector_name(one[1]), **found[one]} for one in order]


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
    keys |= {
        key_of(template, MODEL, ""): (f"{detector_name(MODEL)}: {words}", show)
        for template, (words, show) in FITTED.items()
        if (template, MODEL) not in SAYS_NOTHING
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
