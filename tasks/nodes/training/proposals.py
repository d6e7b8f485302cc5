"""Optuna's proposals for Ray Tune, with the number of epochs of each trial kept beside its loss. Importing it brings
Ray."""

from typing import Any

from ray.tune.search.optuna import OptunaSearch

from tasks.nodes.training.search_study import EPOCHS

EPOCH = "epoch"  # what a trial reports beside its loss


class Proposals(OptunaSearch):
    """OptunaSearch does not tell Optuna of the last epoch of a trial, only of its loss."""

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """A trial has ended, by itself or not."""
        if result and EPOCH in result:
            self._ot_trials[trial_id].set_user_attr(EPOCHS, result[EPOCH])
        super().on_trial_complete(trial_id, result, error)
