"""Whole fits, scales, vectors and tables, what became of each metric, files; and what must not change them."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.nodes.history import History
from tasks.nodes.params import PreprocessParams
from tasks.nodes.preprocess.fitting import (
    CLIP_AT,
    decisions,
    fit,
    learn_scale,
    load_preprocessor,
    robust_width,
    save_preprocessor,
    scaled,
    softly_clipped,
    tables_of,
    transform,
)  # fmt: skip
from tasks.nodes.preprocess.selection import spread_of
from tasks.nodes.tools.parsing import MetricFacts
from tests.nodes.synthetic import synthetic_history

LATENCY = MetricFacts("s", False, None, "disk", "a time")
OURS, THEIRS = PreprocessParams(), PreprocessParams(variant="paper")


@pytest.mark.parametrize("params", [OURS, THEIRS])
def test_without_executions_nothing_is_kept_and_others_can_still_be_transformed(params) -> None:
    history = synthetic_history(runs=2)
    preprocessor = fit(history.where(np.zeros(len(history.executions), dtype=bool)), params)
    assert (preprocessor.types, preprocessor.metrics, preprocessor.n_executions) == ((), (), 0)
    found = transform(preprocessor, history)
    assert (found.scaled.shape, found.one_hot.shape) == ((36, 0), (36, 0))
    assert tables_of(history, preprocessor).n_left_out == 36


def test_one_execution_has_no_spread_and_no_kept_metric() -> None:
    history = synthetic_history(nodes=1, types=1, runs=1)
    preprocessor = fit(history, OURS)
    assert len(preprocessor.metrics) == 4 and preprocessor.kept == ()
    assert {metric.why for metric in preprocessor.metrics} == {
        "distinct values: 1, at least 2 needed",
        "a setting or a version, not a result",
    }


def test_labels_that_are_missing_count_as_unstressed(history_of) -> None:
    measured = [{"m": one} for one in (1.0, 2.0, 3.0, 9.0)]
    preprocessor = fit(history_of(measured, is_stressed=[None, pd.NA, False, True]), OURS)
    orientation = preprocessor.metrics[0].orientation
    assert (orientation.rule_with_stressed, orientation.rule_without_stressed) == (-1, 1)


def test_the_only_metric_of_a_benchmark_that_was_a_column_is_told_by_the_name_of_that(history_of) -> None:
    runs = history_of([{"result": 1.0}, {"result": 2.0}] * 2, benchmark=["p99", "p99", "marks", "marks"])
    assert {metric.benchmark: metric.orientation.sign for metric in fit(runs, OURS).metrics} == {"p99": -1, "marks": 1}


def test_a_slow_and_a_fast_template_of_one_benchmark_are_learned_apart() -> None:
    preprocessor = fit(synthetic_history(types=8, runs=20, stressed=0), OURS)
    assert len(preprocessor.types) == 8
    names = [metric.name for metric in preprocessor.metrics if metric.metric == "events_per_second"]
    assert names == ["cpu-sysbench@00000001/events_per_second", "cpu-sysbench@00000007/events_per_second"]


def test_the_truth_of_drawn_executions_is_recovered() -> None:
    """Every drawn metric but the settings is kept, and oriented as it was drawn."""
    preprocessor = fit(synthetic_history(runs=60), OURS, facts={})
    dropped = [metric for metric in preprocessor.metrics if not metric.is_kept]
    assert {metric.metric for metric in dropped} == {"num_threads", "number_of_threads"}
    for metric in preprocessor.kept:
        is_rate = any(part in metric.metric for part in ("second", "rate", "bw_avg", "iops", "bandwidth"))
        assert metric.orientation.sign == (1 if is_rate else -1), metric.name
        assert metric.orientation.origin == "unit"


def test_events_of_sysbench_become_events_a_second(history_of) -> None:
    told = ((1800.0, 2.0), (3000.0, 2.5))
    measured = [{"total_number_of_events": n, "total_time": (s, "s"), "num_threads": 16.0} for n, s in told]
    history = history_of(measured, benchmark="cpu-sysbench", template_hash="0123456789")
    [found] = tables_of(history, fit(history, OURS)).tables
    at = found.metrics.index("total_number_of_events")
    np.testing.assert_allclose(found.natural[:, at], [900, 1200])
    assert (found.name, found.units[at], found.orientation[at]) == ("cpu-sysbench@01234567", "1/s", 1)
    assert "num_threads" not in found.metrics


def test_a_total_without_any_time_is_dropped_with_the_reason(history_of) -> None:
    facts = {"own-tool": {"size": MetricFacts("B", True, "run_time", "disk", "moved")}}
    [metric] = fit(history_of([{"size": (4, "B")}, {"size": (5, "B")}]), OURS, facts=facts).metrics
    assert (metric.why, metric.n_apart) == ("no usable value", 2)
    assert metric.note == "2 values without run_time: apart"


def learn(values, sign=1, **changed):
    values = np.array(values, dtype=float)
    return learn_scale(values, spread_of(values), sign, **changed)


def z(scale, values, sign=1):
    return scaled(np.array(values, dtype=float), sign, scale)


@pytest.mark.parametrize("values", [[-1, 2, 3, 4], [0, 0, 0, 1, 2]])
def test_a_metric_that_reaches_nothing_is_scaled_without_a_logarithm(values) -> None:
    assert not learn(values).is_logarithmic


def test_a_few_zeros_among_many_values_leave_the_scale_logarithmic_and_end_at_the_limit() -> None:
    scale = learn([0.0] + [float(one) for one in range(50, 150)])
    assert scale.is_logarithmic and z(scale, [scale.fill / 2]) == pytest.approx(-z(scale, [2 * scale.fill]))
    assert softly_clipped(z(scale, [0.0]))[0] == -10
    assert softly_clipped(z(scale, [0.0], sign=-1))[0] == 10  # a latency below what the tool can print


def test_the_neutral_value_is_where_the_scale_has_its_zero() -> None:
    for values in ([1, 2, 3, 10], [-1, 2, 3, 10]):
        scale = learn(values)
        assert scale.fill == 2.5
        assert z(scale, [scale.fill])[0] == 0


def test_a_spread_is_found_even_if_most_values_are_equal() -> None:
    assert robust_width(np.array([5.0] * 8 + [6.0] * 2)) == pytest.approx(1 / 3.2897072539)
    assert robust_width(np.array([5.0] * 99 + [6.0])) == pytest.approx(np.sqrt(0.01 * 0.99))
    assert robust_width(np.array([5.0, 5.0])) == 0


def test_one_outlier_in_a_hundred_does_not_move_the_scale_of_the_others() -> None:
    values = np.linspace(90, 110, 100)
    calm, shaken = learn(values), learn([*values[:-1], 1e9])
    assert shaken.centre == calm.centre
    assert shaken.spread == pytest.approx(calm.spread, rel=1e-6)
    theirs = learn([*values[:-1], 1e9], is_paper=True)
    assert z(theirs, values[:-1]).max() < 1e-6  # the authors' scale: all that was not the outlier is 0


def test_soft_clipping_is_the_identity_up_to_its_start_and_continuous_there() -> None:
    inside = np.linspace(-4, 4, 9)
    assert softly_clipped(inside).tolist() == inside.tolist()
    around = softly_clipped(np.array([4 - 1e-6, 4 + 1e-6]))
    assert np.diff(around)[0] == pytest.approx(2e-6, rel=1e-3)  # slope 1 on both sides


@pytest.mark.parametrize("params", [OURS, THEIRS])
def test_more_stress_means_lower_values_whatever_the_metric(params) -> None:
    history = synthetic_history(nodes=1, runs=200, stressed=0.3, quality={})
    found = transform(fit(history, params), history)
    level = history.executions["dose_level"].to_numpy()
    own = [(found.scaled[:, at], found.is_own[:, at]) for at in range(len(found.columns))]
    means = [[values[is_own & (level == dose)].mean() for dose in (0, 2, 3)] for values, is_own in own]
    assert (np.diff(means, axis=1) < 0).all()


def test_a_new_and_faster_machine_stays_ahead_of_all_that_was_seen() -> None:
    train = synthetic_history(nodes=2, types=1, runs=40, quality={})
    test = synthetic_history(
        nodes=3, types=1, runs=1, stressed=0, quality={"node-2": {"cpu": 8}, "node-3": {"cpu": 64}}
    )
    preprocessor = fit(train, OURS)
    seen, new = transform(preprocessor, train).scaled, transform(preprocessor, test)
    by_node = {node: new.scaled[(test.executions["node"] == node).to_numpy()][0] for node in ("node-2", "node-3")}
    assert (by_node["node-2"] > seen.max(axis=0)).all()
    assert (by_node["node-3"] > by_node["node-2"]).all()
    assert (by_node["node-3"] < CLIP_AT).all()


def test_what_training_lacked_is_left_out_and_counted(history_of) -> None:
    train = history_of([{"a": (1, "ms")}, {"a": (2, "ms")}, {"a": (3, "ms")}])
    measured = [{"a": (2, "MB"), "b": 5.0}, {"a": (4, "s"), "b": 6.0}, {"a": (9, "s")}]
    test = history_of(measured, benchmark=["own-tool", "own-tool", "other"])
    preprocessor = fit(train, OURS)
    assert transform(preprocessor, test).one_hot.tolist() == [[1], [1], [0]]
    found = tables_of(test, preprocessor)
    assert found.n_left_out == 2 and found.tables[0].natural.tolist() == [[4]]


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


@pytest.mark.parametrize("params", [OURS, THEIRS])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_other_units_give_the_same_vectors(params, share) -> None:
    history = synthetic_history(runs=30)
    changed = in_other_units(history, np.random.default_rng(0).random(len(history.metrics)) < share)
    one, other = fit(history, params), fit(changed, params)
    assert [metric.why for metric in one.metrics] == [metric.why for metric in other.metrics]
    assert [metric.orientation for metric in one.metrics] == [metric.orientation for metric in other.metrics]
    first, second = transform(one, history), transform(other, changed)
    for table, other_table in zip(tables_of(history, one).tables, tables_of(changed, other).tables, strict=True):
        assert table.units == other_table.units
        np.testing.assert_allclose(table.natural, other_table.natural, rtol=1e-12)
    np.testing.assert_allclose(first.scaled, second.scaled, atol=1e-9)
    np.testing.assert_allclose(transform(one, changed).scaled, first.scaled, atol=1e-9)


@pytest.mark.parametrize("params", [OURS, THEIRS])
def test_the_order_of_executions_changes_nothing(params) -> None:
    history = synthetic_history(runs=30)
    mixed, order = shuffled(history, np.random.default_rng(0))
    one, other = fit(history, params), fit(mixed, params)
    assert one == other
    np.testing.assert_array_equal(transform(one, history).scaled[order], transform(other, mixed).scaled)


@pytest.mark.parametrize("params", [OURS, THEIRS])
def test_another_type_changes_nothing_for_the_others(params) -> None:
    history = synthetic_history(runs=30, types=7)
    told = history.executions
    is_few = (told["template"].eq("standard") & (told["benchmark"] != "disk-fio")).to_numpy()
    few, all_of_them = fit(history.where(is_few), params), fit(history, params)
    learned = {metric.name: metric for metric in all_of_them.metrics}
    assert 0 < len(few.metrics) < len(learned)
    assert all(learned[metric.name] == metric for metric in few.metrics)


def test_every_recorded_metric_has_a_row_and_every_dropped_one_a_reason() -> None:
    table = decisions(fit(synthetic_history(runs=20), OURS))
    assert (len(table), table["is_kept"].sum()) == (18, 16)
    assert (table["why"].eq("") == table["is_kept"]).all()
    assert table["n_values"].eq(60).all()


def test_a_row_says_unit_dispersion_orientation_and_what_the_rule_says(history_of) -> None:
    measured = [{"lat": (value, unit)} for value, unit in ((1, "ms"), (2, "ms"), (3, "ms"), (9000, "us"))]
    history = history_of(measured, is_stressed=[False, False, False, True])
    row = decisions(fit(history, OURS, facts={"own-tool": {"lat": LATENCY}})).iloc[0]
    assert (row["type"], row["metric"], row["unit_written"], row["unit"]) == ("own-tool", "lat", "ms, us", "s")
    assert (row["n_values"], row["n_distinct"], row["n_apart"], row["is_kept"]) == (4, 4, 0, True)
    assert (row["orientation"], row["orientation_from"]) == (-1, "declared")
    assert (row["rule_with_stressed"], row["rule_without_stressed"], row["agrees"]) == (-1, 1, True)


@pytest.mark.parametrize("params", [OURS, THEIRS])
def test_a_loaded_preprocessor_gives_the_same_numbers_to_the_last_bit(tmp_path, params) -> None:
    history, new = synthetic_history(runs=15), synthetic_history(runs=15, seed=1, types=7)
    preprocessor = fit(history, params)
    save_preprocessor(preprocessor, tmp_path / "folder" / "preprocessor.json")
    loaded = load_preprocessor(tmp_path / "folder" / "preprocessor.json")
    assert loaded == preprocessor
    np.testing.assert_array_equal(transform(loaded, new).scaled, transform(preprocessor, new).scaled)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "FileNotFoundError"),
        ("{", "JSONDecodeError"),
        ("[]", "not of the format"),
        ('{"format": "whorl.nodes.preprocess", "version": 1}', "version 1 of the format, this whorl reads 2"),
        ('{"format": "whorl.nodes.preprocess", "version": 2}', "ValidationError"),
    ],
)
def test_a_file_that_is_missing_damaged_or_foreign_is_refused_in_one_line(tmp_path, text, problem) -> None:
    file = tmp_path / "p.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadInput, match=re.escape(problem)) as refused:
        load_preprocessor(file)
    assert "\n" not in str(refused.value) and str(file) in str(refused.value)
