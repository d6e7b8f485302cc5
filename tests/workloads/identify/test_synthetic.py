import numpy as np

from tests.workloads.identify.synthetic import (
    draw_kin,
    draw_run,
    draw_runs,
    draw_workload,
    shuffled,
)


def test_runs_repeat_their_workload_up_to_noise():
    rng = np.random.default_rng(0)
    workload = draw_workload("redis", 9, 3, rng)
    run = draw_run(workload, "r", rng, n_samples=60, noise=0.05)
    assert run.values.shape == (60, 9) and run.workload == "redis" and run.interval_s == 1
    np.testing.assert_allclose(np.log(run.values), workload.expected(60), atol=0.5)


def test_phases_change_some_counters_by_the_factors_drawn():
    workload = draw_workload("redis", 200, 3, np.random.default_rng(1))
    expected = workload.expected(30)
    n_values = np.array([len(np.unique(column.round(6))) for column in expected.T])
    assert set(n_values.tolist()) == {1, 3} and 0.3 < (n_values == 3).mean() < 0.7
    assert len(workload.changes) == 2 and (np.diff(workload.changes) > 0).all()


def test_kin_share_phases_and_most_levels():
    rng = np.random.default_rng(2)
    workload = draw_workload("mariadb", 40, 2, rng)
    kin = draw_kin(workload, "postgresql", rng)
    assert (kin.levels != workload.levels).sum() == 6
    np.testing.assert_array_equal(kin.factors, workload.factors)


def test_runs_are_dealt_over_rounds_and_shuffling_keeps_them():
    rng = np.random.default_rng(3)
    runs = draw_runs([draw_workload("a", 5, 1, rng), draw_workload("b", 5, 1, rng)], 6, rng)
    assert [run.round for run in runs] == ["1", "2", "3"] * 4
    assert {run.names for run in shuffled(runs, rng)} != {runs[0].names}
    for run in shuffled(runs, rng):
        before = next(one for one in runs if one.run_id == run.run_id)
        assert {name: column.tolist() for name, column in zip(run.names, run.values.T, strict=True)} == {
            name: column.tolist() for name, column in zip(before.names, before.values.T, strict=True)
        }
