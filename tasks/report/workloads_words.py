"""What was identified and measured, as words and numbers of a page."""

from collections.abc import Mapping
from typing import Any

from tasks.quantities import number, ratio, share
from tasks.report.style import plain_label
from tasks.workloads.choices import said

REASONS_SHOWN = 4
SENTENCE_CHARS = 600
NAME_CHARS = 60


def whole(value: float) -> str:
    """A count, with thousands separators."""
    return f"{value:,.0f}"


FIGURES = {
    "unknown.auroc": ("AUROC of unknown against known workloads", ratio),
    "unknown.false_known_at_95": ("unknown runs called known, where 95 % of the known ones are", share),
    "threshold.false_reject": ("own runs that the distance threshold rejects", share),
    "threshold.false_accept": ("runs of other workloads that it accepts", share),
    "held_out.accuracy": ("held-out runs called right by the model", share),
    "held_out.macro_f1": ("macro-F1 of the same", ratio),
    "held_out.false_unknown": ("held-out runs of known workloads that it calls unknown", share),
    "held_out.nearest_accuracy": ("held-out runs nearest to their own workload", share),
    "held_out.confidence": ("its mean confidence in them", share),
    "held_out.n": ("held-out runs or windows of known workloads", whole),
    "held_out.n_windows": ("of these windows of longer runs", whole),
    "held_out.n_new": ("held-out runs of workloads that it has never seen", whole),
    "held_out.n_new_unknown": ("of these called unknown", whole),
    "trained.n": ("runs or windows that it learned from", whole),
    "trained.n_windows": ("of these windows of longer runs", whole),
    "trained.classes": ("workloads that it knows", whole),
    "unknown.auroc.least": ("the least AUROC of any two held-out workloads", ratio),
    "unknown.auroc.nearest": ("AUROC by the distance to the nearest run alone", ratio),
    "unknown.said_known": ("unknown runs that the model's own limit calls known", share),
    "unknown.known_said_unknown": ("known runs that the model's own limit calls unknown", share),
    "unknown.pairs": ("choices of two workloads held out", whole),
    "window.accuracy": ("called right from the middle half of a run", share),
    "window.macro_f1": ("macro-F1 of the same", ratio),
    "pairs.accuracy": ("pairs of runs rightly called the same or different workloads", share),
    "pairs.f1": ("F1 of the same workload among pairs", ratio),
    "adf.determined_share": ("phases with a determined Dickey–Fuller statistic", share),
    "phases.mean": ("phases of a workload as a whole, mean", number),
    "phases.mean_of_counters": ("phases of a counter, mean", number),
    "phases.most": ("most phases of a counter", whole),
    "counters.n": ("counters compared", whole),
    "counters.giveaways": ("counters left out, as they give the session away", whole),
    "counters.not_common": ("counters left out, as not every run has them", whole),
}
ONLINE = "online.accuracy."


def called(row: Mapping[Any, Any]) -> str:
    """What a run was called: its workload, or unknown with what it is most like."""
    if row["is_known"] and isinstance(row["workload"], str):
        return plain_label(said(row), NAME_CHARS)
    return f"unknown, most like {plain_label(str(row['nearest']), NAME_CHARS)}"


def reasons_of(row: Mapping[Any, Any]) -> list[str]:
    """The first reasons of an identification, each on one line."""
    return [sentence(reason) for reason in list(row["reasons"])[:REASONS_SHOWN]]


def sentence(text: str) -> str:
    """Words from elsewhere on one line."""
    return plain_label(str(text), SENTENCE_CHARS)


def other_figures(figures: Mapping[str, Any]) -> list[dict[str, str]]:
    """A row a figure beside those of known workloads that has words: words and value, or why there is none."""
    rows = []
    for key, (words, show) in FIGURES.items():
        if key in figures:
            value = figures[key]
            reason = figures.get(f"{key}.reason", "not measured")
            rows.append({"words": words, "value": show(value) if value is not None else sentence(reason)})
    for after_s, value in online_accuracy(figures).items():
        rows.append({"words": f"called right after {number(after_s)} s", "value": share(value)})
    return rows


def online_accuracy(figures: Mapping[str, Any], method: str = "") -> dict[float, float]:
    """Accuracy by seconds seen, rising. method: keys `online.accuracy.<n>s.<method>`; without one that of the model."""
    found = {}
    for key, value in figures.items():
        if key.startswith(ONLINE) and value is not None:
            after, _, told_by = key.removeprefix(ONLINE).partition("s")
            if told_by.strip(".") == method and after.replace(".", "", 1).isdigit():
                found[float(after)] = float(value)
    return dict(sorted(found.items()))
