"""What must not change the vectors: units, order, and what else was recorded."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.nodes.history import History
from tasks.nodes.preprocess.fitting import fit, transform
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.synthetic import synthetic_history

VARIANTS = [
    PreprocessParams(),
    PreprocessParams(variant="paper"),
    PreprocessParams(scaling="robust", imputation="mean"),
]
OTHER_UNITS = {
    "MiB/sec": ("B/s", 2**20), "KiB/s": ("MB/sec", 1.024e-3), "ms": ("ns", 1e6), "nsec": ("usec", 1e-3),
    "usec": ("s", 1e-6), "us": ("ms", 1e-3), "ms/GB": ("sec/GB", 1e-3), "Gbits/sec": ("KiB/s", 1.25e8 / 1024),
    "k iops": ("/sec", 1e3), "/sec": ("K/sec", 1e-3),
}  # fmt: skip


def in_other_units(history: History, is_changed: np.ndarray) -> History:
    rows = history.metrics
    known = rows["unit"].isin(OTHER_UNITS).to_numpy() & is_changed
    units = [OTHER_UNITS[unit] if change else (unit, 1.0) for unit, change in zip(rows["unit"], known, strict=True)]
    value = rows["value"] * np.array([factor for _, factor in units])
    return replace(history, metrics=rows.assign(value=value, unit=[unit for unit, _ in units]))


def shuffled(history: History, rng: np.random.Generator) -> tuple[History, np.ndarray]:
    """The same executions in another order, and where each of them was."""
    order = rng.permutation(len(history.executions))
    place = np.argsort(order)
    rows = history.metrics.assign(execution=place[history.metrics["execution"]])
    rows = rows.sample(frac=1, random_state=1, ignore_index=True)
    return History(history.executions.iloc[order].reset_index(drop=True), rows, history.telemetry), order


@pytest.mark.parametrize("params", VARIANTS)
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_other_units_give_the_same_vectors(params, share) -> None:
    history = synthetic_history(runs=30)
    changed = in_other_units(history, np.random.default_rng(0).random(len(history.metrics)) < share)
    one, other = fit(history, params), fit(changed, params)
    assert [metric.why for metric in one.metrics] == [metric.why for metric in other.metrics]
    assert [metric.orientation for metric in one.metrics] == [metric.orientation for metric in other.metrics]
    first, second = transform(one, history), transform(other, changed)
    assert first.units == second.units
    np.testing.assert_allclose(first.natural, second.natural, rtol=1e-12)
    np.testing.assert_allclose(first.scaled, second.scaled, atol=1e-9)
    np.testing.assert_allclose(transform(one, changed).scaled, first.scaled, atol=1e-9)


@pytest.mark.parametrize("params", VARIANTS)
def test_the_order_of_executions_changes_nothing(params) -> None:
    history = synthetic_history(runs=30)
    mixed, order = shuffled(history, np.random.default_rng(0))
    one, other = fit(history, params), fit(mixed, params)
    assert one == other
    np.testing.assert_array_equal(transform(one, history).scaled[order], transform(other, mixed).scaled)


@pytest.mark.parametrize("params", VARIANTS)
def test_another_type_changes_nothing_for_the_others(params) -> None:
    history = synthetic_history(runs=30, types=7)
    is_few = (
        history.executions["template"].eq("standard").to_numpy()
        & (history.executions["benchmark"] != "disk-fio").to_numpy()
    )
    few, all_of_them = fit(history.where(is_few), params), fit(history, params)
    learned = {metric.name: metric for metric in all_of_them.metrics}
    assert 0 < len(few.metrics) < len(learned)
    assert all(learned[metric.name] == metric for metric in few.metrics)


def test_text_columns_that_are_categories_change_nothing() -> None:
    history = synthetic_history(runs=10)
    rows = history.metrics.astype({"metric": "category", "unit": "category"})
    one, other = fit(history, VARIANTS[0]), fit(replace(history, metrics=rows), VARIANTS[0])
    assert one == other
