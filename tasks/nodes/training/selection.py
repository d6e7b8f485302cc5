"""The epoch whose network is kept: the one with the least validation loss. Source: Perona, IV-B."""

import math
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytorch_lightning as pl
from torch import Tensor

from tasks.nodes.training.module import PeronaModule, mean_loss, weights_of

Report = Callable[[int, float], None]
COLUMNS = ("epoch", "train_loss", "validation_loss", "seconds")


class Selection(pl.Callback):
    """Keeps the weights of the best epoch so far in memory, and a row for each epoch.

    best_epoch: from 1, 0 before there is one with a finite loss. report: called after each epoch with its number and
    the least validation loss so far, infinite before there is one; what it raises ends the training. patience: epochs
    without a better one after which the training stops, 0: never. A training whose loss is not finite stops."""

    def __init__(self, *, report: Report | None = None, patience: int = 0) -> None:
        self.best_epoch, self.best_loss = 0, math.inf
        self.best_weights: dict[str, Tensor] = {}
        self._report, self._patience = report, patience
        self._rows: list[tuple[int, float, float, float]] = []
        self._started = 0.0

    def on_train_start(self, trainer: pl.Trainer, pl_module: Any) -> None:  # noqa: ARG002
        """Starts the clock."""
        self._started = time.perf_counter()

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: Any) -> None:
        """Judges the epoch that has just been."""
        module: PeronaModule = pl_module
        train_loss, validation_loss = mean_loss(module.training_losses), mean_loss(module.validation_losses)
        module.training_losses.clear()
        module.validation_losses.clear()
        if trainer.sanity_checking:
            return
        epoch = len(self._rows) + 1
        if validation_loss < self.best_loss:  # never for NaN
            self.best_epoch, self.best_loss = epoch, validation_loss
            self.best_weights = weights_of(module.network)
        self._rows.append((epoch, train_loss, validation_loss, time.perf_counter() - self._started))
        if self._report is not None:
            self._report(epoch, self.best_loss)
        if not math.isfinite(train_loss) or 0 < self._patience <= epoch - self.best_epoch:
            trainer.should_stop = True

    @property
    def history(self) -> pd.DataFrame:
        """One row an epoch: epoch from 1, train_loss (with noise and dropout), validation_loss, seconds since the
        start."""
        return pd.DataFrame(self._rows, columns=list(COLUMNS)).astype({"epoch": "int64"})
