"""The cells of the runs that are held: their job, part of the log, and bin of each kind, against one median a job."""

from collections.abc import Iterator

import numpy as np

from tasks.jobs.characterise_held import N_LOG_PARTS, HeldRuns
from tasks.jobs.characterise_medians import medians_of
from tasks.jobs.characterise_tails import UpperTail
from tasks.jobs.group_counts import N_PARTS, CellNumbers, Ints, sort_and_count
from tasks.jobs.normalisation import normalise
from tasks.jobs.pmf import Bins, Floats
from tasks.jobs.shape_params import Kind


def historic_medians_of(held: HeldRuns) -> Floats:
    """The median of each job over its runs in D1: (n_jobs,), missing without one. Source: section 4.2."""
    history = held.starts[:-1:N_LOG_PARTS]
    return medians_of(held.runtime_s, history, held.starts[1::N_LOG_PARTS] - history)


def cells_of(held: HeldRuns, medians_s: Floats, bins: dict[Kind, Bins]) -> Iterator[tuple[Ints, Ints]]:
    """The different cells of some of the runs, ascending, and how often each came; one may come again later.

    medians_s: (n_jobs,) of D1; a run of a job without one is in no cell. Of one job the bins of both kinds rise with
    the runtime, so there are few different cells."""
    numbers = CellNumbers(bins["ratio"].n_bins, bins["delta"].n_bins)
    for stretches, sizes, runtime_s in held.pieces():
        jobs, parts = np.divmod(stretches, N_LOG_PARTS)
        known_s = np.repeat(medians_s[jobs], sizes)
        rows = np.repeat((held.first + jobs) * N_PARTS + parts, sizes)
        found = {kind: one.index(normalise(runtime_s, known_s, kind)) for kind, one in bins.items()}
        cells = numbers.of(rows, found["ratio"], found["delta"])
        yield sort_and_count(cells if not np.isnan(medians_s[jobs]).any() else cells[~np.isnan(known_s)])


def add_tails(tails: dict[Kind, UpperTail], held: HeldRuns, medians_s: Floats, *, min_history: int) -> None:
    """Let the runs in D1 of jobs with at least min_history of them there tell how far bins must reach.

    A job that ran once is its own median. medians_s: (n_jobs,)."""
    n_history = np.diff(held.starts)[::N_LOG_PARTS]
    counts = np.where(n_history >= min_history, medians_s, np.nan)  # others add nothing
    for stretches, sizes, runtime_s in held.pieces():
        jobs, parts = np.divmod(stretches, N_LOG_PARTS)
        known_s = np.repeat(np.where(parts == 0, counts[jobs], np.nan), sizes)
        for kind, tail in tails.items():
            tail.add(normalise(runtime_s, known_s, kind))
