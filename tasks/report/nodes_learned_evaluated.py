"""The detector and Perona's network in an evaluation, as values for the page's template: the verdict first."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.report.nodes_evaluation_words import LEARNED, PAPER, PROTOCOLS, VERDICTS, WITHOUT_LABELS, detector_name
from tasks.report.nodes_fitted import OWN, fitted_table, key_of, paper_table, short_lines
from tasks.report.nodes_injected import KINDS, UNALTERED, injected_behind_lines
from tasks.report.nodes_ranked_table import rank_behind_lines
from tasks.report.nodes_verdict import behind_lines, summary_words, verdict_tables

NOTHING_SHORT = "Nothing that was measured: it is behind no simple answer, and below nothing that it should reach."


def is_learned(figures: Mapping[str, Any]) -> bool:
    """Whether Perona's network was asked for at all."""
    return any(key_of(OWN, name, protocol) in figures for name in LEARNED for protocol in ("", PAPER))


def learned_values(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Tables and lines about the detector and the network; those of the latter empty where none was asked for.

    short: where it is behind a simple answer, or below what it should reach. missing: what could not be measured."""
    return {
        "is_asked": is_learned(figures),
        "is_measured": any(figures.get(key) is not None for key, _ in _asked(VERDICTS)),
        "summary": summary_words(figures),
        "verdicts": verdict_tables(figures),
        "short": falls_short(figures),
        "missing": missing_lines(figures),
        "fitted": fitted_table(figures),
        "beside_paper": paper_table(figures),
    }


def falls_short(figures: Mapping[str, Any]) -> list[str]:
    """Where detector, ranking or network are behind a simpler answer or what they should reach: one line each."""
    parts = (behind_lines, injected_behind_lines, rank_behind_lines, short_lines)
    return [line for part in parts for line in part(figures)]


def missing_lines(figures: Mapping[str, Any]) -> list[str]:
    """What could not be measured of each, and why: one line a reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for name in (VERDICTS, *LEARNED):
        for key, words in _asked(name):
            if figures.get(key, 0) is None:
                found.setdefault((name, str(figures.get(f"{key}.reason") or "")), []).append(words)
    return [f"{detector_name(name)}, {', '.join(words)}: {reason}" for (name, reason), words in found.items()]


def _asked(name: str) -> Iterator[tuple[str, str]]:
    """The main key of each part of an evaluation, and its words."""
    main = OWN if name in LEARNED else "detect.f1_outlier.{name}"
    for protocol, words in PROTOCOLS.items():
        yield key_of(main, name, protocol), words
    if name == VERDICTS:
        for kind, (title, _) in KINDS.items():
            measure = "false_alarms_per_1000" if kind == UNALTERED else "auprc"
            yield f"inject.{kind}.{measure}.{WITHOUT_LABELS}", title.lower()
