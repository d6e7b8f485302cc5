"""Figures of a what-if question that somebody asked: who moves to which shape, and matched pairs if there are any."""

import numpy as np

from tasks.jobs.control.answering import (
    Answer,
    Measured,
)
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.whatif_figures import migration_figure, pairs_figure
from tasks.report.whatif_migration import MigrationMap
from tasks.report.whatif_pairs import PairChanges


def what_if_figures(answer: Answer) -> list[FigureOfPage]:
    """A migration of runs for each normalisation, and predicted beside measured change; the latter says why if not."""
    name = str(answer.scenario)
    moves = [
        migration_figure(MigrationMap(one.runs.counts, f"{name} ({kind})"), f"migration-{kind}")
        for kind, one in answer.outcome.moves.items()
    ]
    pairs = None if answer.measured is None else pair_changes(answer.measured, name)
    return [*moves, pairs_figure(pairs)]


def pair_changes(measured: Measured, scenario: str) -> PairChanges:
    """The factors of each matched pair, with the share of right directions and its interval."""
    found = measured.comparison
    right, interval = found.score.directions, None
    if right is not None and right.low is not None and right.high is not None:
        interval = (right.low, right.high)
    told, real = np.exp(found.predicted), np.exp(found.measured)
    return PairChanges(told, real, scenario, right.share if right else None, interval, right.n if right else None)
