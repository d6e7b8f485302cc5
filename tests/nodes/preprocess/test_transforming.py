import numpy as np
import pytest

from tasks.nodes.preprocess.fitting import fit, transform
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.synthetic import synthetic_history

OURS, THEIRS = PreprocessParams(), PreprocessParams(variant="paper")


def test_each_execution_has_its_own_metrics_and_neutral_values_elsewhere() -> None:
    history = synthetic_history(runs=20)
    found = transform(fit(history, OURS), history)
    own_type = np.array(found.column_types)[None, :] == np.array(found.types)[found.one_hot.argmax(axis=1)][:, None]
    np.testing.assert_array_equal(found.is_own, own_type)
    assert (found.scaled[~found.is_own] == 0).all()
    assert (found.one_hot.sum(axis=1) == 1).all()
    assert np.isfinite(found.scaled).all()


def test_columns_are_named_after_type_and_metric() -> None:
    history = synthetic_history(nodes=1, types=2, runs=5)
    found = transform(fit(history, OURS), history)
    assert found.columns == tuple(f"{a}/{b}" for a, b in zip(found.column_types, found.metrics, strict=True))
    assert found.columns[0] == "cpu-sysbench@00000001/events_per_second"
    assert found.units[0] == "1/s"
    assert len(found.executions) == 10


@pytest.mark.parametrize("params", [OURS, THEIRS, PreprocessParams(scaling="robust")])
def test_more_stress_means_lower_values_whatever_the_metric(params) -> None:
    history = synthetic_history(nodes=1, runs=200, stressed=0.3, quality={})
    found = transform(fit(history, params), history)
    level = history.executions["dose_level"].to_numpy()
    n_columns = len(found.columns)
    means = [
        [found.scaled[found.is_own[:, at] & (level == dose), at].mean() for dose in (0, 2, 3)]
        for at in range(n_columns)
    ]
    assert (np.diff(means, axis=1) < 0).all()


def test_larger_is_better_among_the_oriented_values() -> None:
    history = synthetic_history(nodes=2, types=1, runs=50, stressed=0, quality={"node-2": {"cpu": 0.5}})
    found = transform(fit(history, OURS), history)
    is_slow = (history.executions["node"] == "node-2").to_numpy()
    assert (np.median(found.oriented[is_slow], axis=0) < np.median(found.oriented[~is_slow], axis=0)).all()


def test_a_new_and_faster_machine_stays_ahead_of_all_that_was_seen() -> None:
    train = synthetic_history(nodes=2, types=1, runs=40, quality={})
    test = synthetic_history(
        nodes=3, types=1, runs=1, stressed=0, quality={"node-2": {"cpu": 8}, "node-3": {"cpu": 64}}
    )
    preprocessor = fit(train, OURS)
    seen, new = transform(preprocessor, train).scaled, transform(preprocessor, test)
    by_node = {node: new.scaled[(new.executions["node"] == node).to_numpy()][0] for node in ("node-2", "node-3")}
    assert (by_node["node-2"] > seen.max(axis=0)).all()
    assert (by_node["node-3"] > by_node["node-2"]).all()
    assert (by_node["node-3"] < OURS.clip_at).all()


def test_what_training_lacked_is_left_out_and_counted(history_of) -> None:
    train = history_of([{"a": (1, "ms")}, {"a": (2, "ms")}, {"a": (3, "ms")}])
    test = history_of(
        [{"a": (2, "MB"), "b": 5.0}, {"a": (4, "s"), "b": 6.0}, {"a": (9, "s")}],
        benchmark=["own-tool", "own-tool", "other"],
    )
    found = transform(fit(train, OURS), test)
    assert found.left_out.types == {"other": 1}
    assert found.left_out.metrics == {"own-tool/b": 2}
    assert found.left_out.units == {"own-tool/a": 1}
    assert found.one_hot.tolist() == [[1], [1], [0]]
    np.testing.assert_array_equal(found.natural[:, 0], [np.nan, 4, np.nan])


def test_nothing_of_the_tested_executions_is_learned() -> None:
    train, test = synthetic_history(runs=20), synthetic_history(runs=20, seed=1, quality={"node-1": {"cpu": 9}})
    preprocessor = fit(train, OURS)
    both = transform(preprocessor, test).scaled
    few = transform(preprocessor, test.where(np.arange(len(test.executions)) < 30)).scaled
    np.testing.assert_array_equal(both[:30], few)


def test_the_papers_vectors_are_between_0_and_1_on_training_data_with_means_for_missing_values() -> None:
    history = synthetic_history(runs=40)
    found = transform(fit(history, THEIRS), history)
    assert found.scaled.min() == 0 and found.scaled.max() == 1
    at = 0
    own = found.scaled[found.is_own[:, at], at]
    np.testing.assert_allclose(found.scaled[~found.is_own[:, at], at], own.mean())


def test_imputation_and_scaling_can_be_chosen_apart_from_the_variant() -> None:
    history = synthetic_history(runs=40)
    found = transform(fit(history, PreprocessParams(imputation="mean", scaling="min_max")), history)
    ours = transform(fit(history, OURS), history)
    assert found.columns == ours.columns
    assert found.scaled.max() == 1
    own = found.scaled[found.is_own[:, 0], 0]
    np.testing.assert_allclose(found.scaled[~found.is_own[:, 0], 0], own.mean())
