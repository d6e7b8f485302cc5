"""Where a search keeps its trials: in memory, or in Optuna's journal, from which a killed search goes on."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from tasks.jobs.predict.classifier_params import SearchParams

if TYPE_CHECKING:
    import optuna


def open_study(name: str, search: SearchParams, journal: Path | None) -> "optuna.Study":
    """A new study, or the one of that name in the journal; trials that a killed sweep left open are closed."""
    import optuna
    from optuna.storages.journal import JournalFileBackend

    storage = None if journal is None else optuna.storages.JournalStorage(JournalFileBackend(str(journal)))
    pruners: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
        "median": lambda: optuna.pruners.MedianPruner(
            n_startup_trials=search.warm_up_trials, n_warmup_steps=search.report_every
        ),
        "hyperband": lambda: optuna.pruners.HyperbandPruner(search.report_every, search.max_rounds),
        "none": optuna.pruners.NopPruner,
    }
    study = optuna.create_study(
        storage=storage, study_name=name, pruner=pruners[search.pruner](), direction="minimize", load_if_exists=True
    )
    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def finished_trials(study: "optuna.Study") -> list["optuna.trial.FrozenTrial"]:
    """Trials that ended with a figure, given up or not, in the order of their start."""
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))


def trial_table(study: "optuna.Study") -> pd.DataFrame:
    """One row a finished trial: number from 0, state, log_loss (a pruned one's last) and its parameters."""
    rows = [
        {"number": place, "state": trial.state.name, "log_loss": trial.value, **trial.params}
        for place, trial in enumerate(finished_trials(study))
    ]
    return pd.DataFrame(rows)


@contextmanager
def quiet() -> Iterator[None]:
    """Optuna without a line for each trial."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
