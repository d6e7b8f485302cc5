"""The learned model in an evaluation, as values for the page's template: the verdict first, then what it rests on."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.report.nodes_evaluation_words import LEARNED, MODEL, PROTOCOLS, detector_name
from tasks.report.nodes_fitted import ablation_table, fitted_table, key_of, paper_table, short_lines
from tasks.report.nodes_injected import KINDS, UNALTERED, injected_behind_lines
from tasks.report.nodes_ranked_table import rank_behind_lines
from tasks.report.nodes_verdict import behind_lines, summary_words, verdict_tables

NOTHING_SHORT = "Nothing that was measured: it is behind no simple answer, and below nothing that it should reach."


def is_learned(figures: Mapping[str, Any]) -> bool:
    """Whether a learned model was asked for at all."""
    return any(key.startswith(("detect.f1_outlier.", "inject.", "rank.")) and _is_of_learned(key) for key in figures)


def learned_values(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Tables and lines about the learned model; all of them empty where none was asked for.

    short: where it is behind a simple answer, or below what it should reach. missing: what could not be measured."""
    return {
        "is_asked": is_learned(figures),
        "is_measured": any(figures.get(key) is not None for key, _ in _asked(MODEL)),
        "summary": summary_words(figures),
        "verdicts": verdict_tables(figures),
        "short": falls_short(figures),
        "missing": missing_lines(figures),
        "fitted": fitted_table(figures),
        "beside_paper": paper_table(figures),
        "ablation": ablation_table(figures),
    }


def falls_short(figures: Mapping[str, Any]) -> list[str]:
    """Where the model is behind a simple answer, or below what it should reach: one line each."""
    parts = (behind_lines, injected_behind_lines, rank_behind_lines, short_lines)
    return [line for part in parts for line in part(figures)]


def missing_lines(figures: Mapping[str, Any]) -> list[str]:
    """Of each variant what could not be measured, and why: one line a reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in LEARNED:
        for key, words in _asked(name):
            if figures.get(key, 0) is None:
                found.setdefault((name, str(figures.get(f"{key}.reason") or "")), []).append(words)
    return [f"{detector_name(name)}, {', '.join(words)}: {reason}" for (name, reason), words in found.items()]


def _asked(name: str) -> Iterator[tuple[str, str]]:
    """The main key of each part of an evaluation, and its words."""
    for protocol, words in PROTOCOLS.items():
        yield key_of("detect.f1_outlier.{name}", name, protocol), words
    for kind, (title, _) in KINDS.items():
        measure = "false_alarms_per_1000" if kind == UNALTERED else "auprc"
        yield f"inject.{kind}.{measure}.{name}", title.lower()
    yield f"rank.spearman.{name}", "ranking beside applications"


def _is_of_learned(key: str) -> bool:
    return any(word in LEARNED for word in key.split(".")[2:])
