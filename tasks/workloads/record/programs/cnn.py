"""Inference of a small convolutional network in torch."""

import subprocess

from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import Place
from tasks.workloads.record.programs.program import Input
from tasks.workloads.record.programs.python_load import spawn_python
from tasks.workloads.record.programs.service import Service


class Cnn(Service):
    """Weights and pictures are random, from the seed: what is recorded is the work, not the answer."""

    name = "cnn"
    title = "AI inference: a small convolutional network in torch, on the CPU"
    kin = "bayes"
    needs = (Need(("torch",), "torch", "module"),)
    inputs = (
        Input(
            "requests",
            {"batch": 1, "side": 64, "channels": 16, "blocks": 3, "rate": 60, "threads": 1},
            "one picture of 64 x 64 at a time, 60 a second, 3 blocks, one thread",
        ),
        Input(
            "batches",
            {"batch": 32, "side": 96, "channels": 32, "blocks": 4, "rate": 0, "threads": 2},
            "batches of 32 pictures of 96 x 96 as fast as it can, 4 blocks, two threads",
        ),
    )

    other_inputs = (
        Input(
            "pictures",
            {"batch": 1, "side": 160, "channels": 16, "blocks": 3, "rate": 15, "threads": 1},
            "one picture of 160 x 160 at a time, 15 a second, one thread",
        ),
        Input(
            "stream",
            {"batch": 8, "side": 64, "channels": 24, "blocks": 3, "rate": 0, "threads": 1},
            "batches of 8 pictures of 64 x 64 as fast as it can, one thread",
        ),
    )

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Load the network and infer."""
        return spawn_python(place, "cnn_load", input.options, threads=int(input.options["threads"]))
