"""Figures of known workloads: `known.<measure>.<slice>.<method>`."""

from collections.abc import Mapping, Sequence

from tasks.workloads.evaluate.figures import Figures, put, put_summary
from tasks.workloads.evaluate.known import METHODS, Method, Told
from tasks.workloads.evaluate.scores import MEASURES, summary_of
from tasks.workloads.evaluate.splits import Slice

DISTANCES = ("ed", "dtw")
FIRST: Method = "model"  # what a key without a method means: what `whorl workloads identify` says


def known_figures(told: Mapping[Slice, Sequence[Told]], reasons: Mapping[Slice, str], base: Slice) -> Figures:
    """Means over the splits of each slice. Without a method: of the model; without a slice: of the base slice."""
    figures: Figures = {}
    for slice_, own in told.items():
        figures[f"known.splits.{slice_}"] = len(own)
        figures[f"known.n.{slice_}"] = sum(len(one.truth) for one in own)
        figures[f"known.n_unseen.{slice_}"] = sum(one.n_unseen for one in own)
        reason = reasons.get(slice_) or "no tested run is of a workload that was learned from"
        for method in METHODS:
            scores = [one.score(method) for one in own]
            for measure in MEASURES:
                found = summary_of([getattr(score, measure) for score in scores])
                put_summary(figures, f"known.{measure}.{slice_}.{method}", found, reason)
        for name in DISTANCES:
            confirmed = summary_of([one.confirmed[name] for one in own])
            put_summary(figures, f"known.confirmed.{slice_}.{name}", confirmed, reason)
        for measure in MEASURES:
            _same(figures, f"known.{measure}.{slice_}", f"known.{measure}.{slice_}.{FIRST}")
    for measure in MEASURES:
        _same(figures, f"known.{measure}", f"known.{measure}.{base}.{FIRST}")
    figures["known.base"] = base
    return figures


def _same(figures: Figures, key: str, of: str) -> None:
    put(figures, key, figures[of], str(figures.get(f"{of}.reason", "")))
