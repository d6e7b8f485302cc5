"""Lightning's loop with nothing beside it: no logger, no progress bar, no files, one thread, a seed of its own."""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.warnings import PossibleUserWarning

from tasks.nodes.model.params import FitParams

CHATTY = ("pytorch_lightning", "lightning_fabric")


def lean_trainer(params: FitParams, callbacks: Sequence[pl.Callback]) -> pl.Trainer:
    """A trainer on the CPU that trains and validates, and does nothing else."""
    return pl.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=params.epochs,
        gradient_clip_val=params.clip_norm,
        callbacks=list(callbacks),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch's generator on the CPU starts from the seed, and goes on afterwards as if nothing had been."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """torch on one thread: as fast for matrices this small, and sums come in the same order on every machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def silent() -> Iterator[None]:
    """Lightning without its hints: which devices there are, that an epoch has few steps, that it has stopped."""
    before = {name: logging.getLogger(name).level for name in CHATTY}
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=PossibleUserWarning)
            warnings.filterwarnings("ignore", module=r"pytorch_lightning|lightning_fabric")
            yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
