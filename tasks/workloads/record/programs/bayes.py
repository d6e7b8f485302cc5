"""Bayesian inference by Markov chain Monte Carlo in numpy."""

import subprocess

from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import Place
from tasks.workloads.record.programs.program import Input
from tasks.workloads.record.programs.python_load import spawn_python
from tasks.workloads.record.programs.service import Service


class Bayes(Service):
    """Data are simulated at the start of the run, then chains go on until the time is over."""

    name = "bayes"
    title = "Bayesian inference: Markov chain Monte Carlo in numpy"
    kin = "cnn"
    needs = (Need(("numpy",), "numpy", "module"),)
    inputs = (
        Input(
            "hierarchy",
            {"model": "hierarchy", "groups": 2_000, "rows": 40_000, "chains": 1},
            "Hamiltonian Monte Carlo, a hierarchical normal model of 2,000 groups and 40,000 rows, one chain",
        ),
        Input(
            "logistic",
            {"model": "logistic", "columns": 24, "rows": 60_000, "chains": 2},
            "random-walk Metropolis, a logistic regression of 24 coefficients and 60,000 rows, two chains at once",
        ),
    )

    other_inputs = (
        Input(
            "small",
            {"model": "hierarchy", "groups": 200, "rows": 4_000, "chains": 2},
            "Hamiltonian Monte Carlo, 200 groups and 4,000 rows, two chains",
        ),
        Input(
            "broad",
            {"model": "logistic", "columns": 96, "rows": 10_000, "chains": 1},
            "random-walk Metropolis, 96 coefficients and 10,000 rows, one chain",
        ),
    )

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start the chains."""
        return spawn_python(place, "bayes_load", input.options)
