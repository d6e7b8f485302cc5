"""100,000 executions judged in time order by predicted labels, and fingerprinted."""

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tasks.nodes.aspects import is_unstressed
from tasks.nodes.detect.plain import Case
from tasks.nodes.evaluate.network import fit_prepared, prepare_case
from tasks.nodes.evaluate.params import EvaluateParams, LearnedParams
from tasks.nodes.perona.inputs import inputs_of
from tasks.nodes.perona.judging import judge
from tasks.nodes.perona.params import FingerprintParams
from tasks.nodes.preprocess.fitting import learn_tables
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.synthetic import synthetic_history

pytestmark = pytest.mark.bench
N_LEARNED, EPOCHS = 1_500, 10
MOST_S = 10.0


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and the seconds of one core that it takes: in use it has no more (tasks/nodes/learned/asking.py),
    and what else runs on the machine does not count."""
    with threadpool_limits(1):
        started = time.process_time()
        return work(), time.process_time() - started


def test_100_000_executions_are_judged_in_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    history = synthetic_history(nodes=10, types=6, runs=1_667)
    n = len(history.executions)
    assert n >= 100_000
    is_train = np.arange(n) < N_LEARNED
    is_validation = (np.arange(n) < 2 * N_LEARNED) & ~is_train
    is_normal = is_train & is_unstressed(history.executions).to_numpy(dtype=bool)
    params = EvaluateParams(learned=LearnedParams(variants=("ours",), epochs=EPOCHS))
    case = Case(history, learn_tables(history, is_train, PreprocessParams()), is_train, is_normal, is_validation)
    model = params.learned.asked("ours", 0)
    prepared = prepare_case(case, model, params)
    network = fit_prepared(prepared, model, params.learned).network
    inputs, inputs_s = timed(lambda: inputs_of(history, prepared.scales, model))
    judged, judged_s = timed(lambda: judge(inputs, network, FingerprintParams()))
    with capsys.disabled():
        print(f"\n{n:,} executions, {judged.is_flagged.sum():,} flagged, load {os.getloadavg()[0]:.1f}")
        print("  seconds of one core:")
        print(f"  inputs {inputs_s:6.2f} s")
        print(f"  judged in {judged.n_rounds} rounds {judged_s:6.2f} s")
    assert inputs_s + judged_s < MOST_S
