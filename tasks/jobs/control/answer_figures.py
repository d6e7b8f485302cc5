"""An answer in plain figures and sentences: what the command line prints as JSON, and what the tables hold."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from tasks.jobs.control.answering import Answer, Measured
from tasks.jobs.control.measures import MEASURES, changes_by_group
from tasks.jobs.control.migration import Migration, describe_moves
from tasks.jobs.control.outcomes import Outcome
from tasks.jobs.control.pair_scores import PairScore
from tasks.jobs.control.support import Support
from tasks.jobs.shape_params import Kind

UNITS: dict[Kind, str] = {"ratio": "", "delta": "s"}
BY = "p95_s"  # what the jobs are ordered by
MOST_JOBS = 10


def answer_figures(answer: Answer) -> dict[str, Any]:
    """One tree of plain values. changes: by measure; moves: by normalisation, of runs and of jobs, as counts
    [before][after]; pairs: None with pairs_reason where nothing was measured."""
    outcome = answer.outcome
    changes = {str(name): _plain(row) for name, row in outcome.changes.iterrows()}
    return {
        "scenario": answer.scenario.name,
        "edits": str(answer.scenario),
        "features": outcome.features,
        "n_runs": len(outcome.before),
        "changes": {name: {"words": MEASURES[name], **row} for name, row in changes.items()},
        "moves": {kind: {"runs": _moves(one.runs), "jobs": _moves(one.groups)} for kind, one in outcome.moves.items()},
        "moves_in_words": moves_in_words(outcome),
        "placement": asdict(answer.placement),
        "support": _support(outcome.support),
        "companions": [] if outcome.companions is None else _rows(outcome.companions),
        "pairs": None if answer.measured is None else _pairs(answer.measured),
        "pairs_reason": answer.reason,
        "can": answer.claims.can,
        "cannot": answer.claims.cannot,
    }


def moves_in_words(outcome: Outcome) -> dict[str, list[str]]:
    """The most frequent moves of runs in sentences, by normalisation."""
    return {str(kind): describe_moves(one.run_moves, unit=UNITS[kind]) for kind, one in outcome.moves.items()}


def most_helped(outcome: Outcome, groups: Any) -> list[dict[str, Any]]:
    """Jobs by how much their 95th percentile falls, in seconds; groups: (n,) the job of each run."""
    found = changes_by_group(outcome.before, outcome.after, groups)
    return _rows(found.sort_values(BY, kind="stable").head(MOST_JOBS).reset_index())


def _moves(found: Migration) -> dict[str, Any]:
    return {"counts": found.counts.tolist(), "n": found.n, "share_moved": found.share_moved}


def _support(found: Support | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "n_changed": found.n_changed,
        "share": found.share,
        "share_outside": found.share_outside,
        "share_unlike": found.share_unlike,
        "outside": found.outside,
        "reason": found.reason,
    }


def _pairs(measured: Measured) -> dict[str, Any]:
    found = measured.comparison
    return {
        "what_if": found.what_if,
        "score": _score(found.score),
        "seconds": _score(found.seconds),
        "spread": {name: _score(one) for name, one in found.spread.items()},
        "overall": {str(name): _plain(row) for name, row in found.overall.iterrows()},
        "told_conditions": _score(measured.told),
        "conditions": _rows(measured.conditions),
        "noise": asdict(measured.noise),
    }


def _score(score: PairScore) -> dict[str, Any]:
    return {name: _value(value) for name, value in asdict(score).items()}


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [_plain(row) for _, row in frame.iterrows()]


def _plain(row: pd.Series) -> dict[str, Any]:
    return {str(name): _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _value(inner) for name, inner in value.items()}
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value
