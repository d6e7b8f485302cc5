from dataclasses import replace

import numpy as np
import pytest

from tasks.workloads.fingerprints import fingerprint
from tasks.workloads.identify.cutting import cut_run
from tasks.workloads.identify.fingerprinting import fingerprints_of, learn_fingerprinting
from tasks.workloads.identify.params import FingerprintParams
from tasks.workloads.identify.synthetic import draw_runs, draw_workload
from tasks.workloads.normalisation_params import NormalisationParams
from tasks.workloads.phase_params import PhaseParams


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(2)
    return draw_runs([draw_workload(name, 6, 3, rng) for name in ("redis", "nginx")], 3, rng)


def asked(normalisation="training", mode="counter"):
    return FingerprintParams(
        normalisation=NormalisationParams(normalisation=normalisation, clip=1e6), phases=PhaseParams(mode=mode)
    )


@pytest.mark.parametrize("normalisation", ["training", "zscore", "absolute"])
@pytest.mark.parametrize("mode", ["counter", "shared"])
def test_fingerprints_of_many_runs_are_those_made_one_by_one(runs, normalisation, mode):
    maker = learn_fingerprinting(runs, asked(normalisation, mode))
    for run, found in zip(runs, fingerprints_of(runs, maker), strict=True):
        expected = fingerprint(run, maker.one_by_one())
        assert found.counters == expected.counters
        assert [one.tolist() for one in found.bounds] == [one.tolist() for one in expected.bounds]
        np.testing.assert_allclose(found.workload_phases, expected.workload_phases, rtol=1e-6, atol=1e-9)
        for one, other in zip(found.summaries, expected.summaries, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_the_phases_that_were_drawn_are_found():
    rng = np.random.default_rng(5)
    workload = draw_workload("redis", 30, 3, rng)
    runs = draw_runs([workload], 4, rng)
    for one in fingerprints_of(runs, learn_fingerprinting(runs, asked())):
        assert one.workload_bounds[1:-1] == pytest.approx(np.ceil(workload.changes * 30), abs=1)


def test_where_a_run_is_cut_does_not_depend_on_the_other_runs(runs):
    alone = learn_fingerprinting(runs[:1], asked())
    together = learn_fingerprinting(runs, asked())
    [one], other = fingerprints_of(runs[:1], alone), fingerprints_of(runs, together)[0]
    assert [bounds.tolist() for bounds in one.bounds] == [bounds.tolist() for bounds in other.bounds]


@pytest.mark.parametrize("mode", ["counter", "shared"])
def test_phases_found_before_serve_for_some_of_the_counters(runs, mode):
    params = asked(mode=mode)
    maker = learn_fingerprinting(runs, params)
    cuts = {run.run_id: cut_run(run, maker.counters, params) for run in runs}
    fewer = learn_fingerprinting(
        [replace(run, counters=run.counters[:4], values=run.values[:, :4]) for run in runs], params
    )
    for one, other in zip(fingerprints_of(runs, fewer, cuts=cuts), fingerprints_of(runs, fewer), strict=True):
        np.testing.assert_array_equal(one.workload_phases, other.workload_phases)


def test_a_counter_that_a_run_lacks_has_one_phase_of_zeros(runs):
    maker = learn_fingerprinting(runs, asked())
    poorer = replace(runs[0], counters=runs[0].counters[1:], values=runs[0].values[:, 1:])
    lost = maker.names.index(runs[0].names[0])
    [found] = fingerprints_of([poorer], maker)
    assert found.summaries[lost].shape[0] == 1 and not found.summaries[lost].any()
