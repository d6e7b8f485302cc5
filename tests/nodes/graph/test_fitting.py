from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.perona.inputs import inputs_of, learn_inputs, start_seconds
from tasks.nodes.perona.params import GraphParams, ModelParams, NetworkParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.preprocess.transforming import transform
from tasks.nodes.score_params import ScoreParams
from tasks.nodes.synthetic import no_telemetry, synthetic_history

BY_ROW = ("x", "is_own", "type_of", "started_s", "before", "during", "evidence", "performance", "labels")


def learned(history, params=None, is_train=None):
    """The scales that some executions teach, all unless said."""
    train = np.ones(len(history.executions), dtype=bool) if is_train is None else is_train
    return learn_inputs(history, train, params or ModelParams(), PreprocessParams(), ScoreParams())


@pytest.fixture(scope="session")
def scales(small, ours):
    """What all executions teach our variant."""
    return learned(small, ours)


@pytest.fixture(scope="session")
def paper_scales(small, paper):
    """What all executions teach the paper's."""
    return learned(small, paper)


def same_rows(one, other, rows):
    """Whether two inputs say the same of some rows, bit for bit."""
    return all(
        np.array_equal(getattr(one, name)[rows], getattr(other, name)[rows], equal_nan=name != "is_own")
        for name in BY_ROW
    )


def changed_from(history, first):
    """The history with every execution from a row on changed in all that it measured."""
    executions, metrics, telemetry = history.executions, history.metrics, history.telemetry
    is_late = np.arange(len(executions)) >= first
    stressed = executions["is_stressed"].to_numpy(dtype=bool)
    late = telemetry["execution"].to_numpy() >= first
    samples = [own / 5 if is_changed else own for own, is_changed in zip(telemetry["samples"], late, strict=True)]
    return replace(
        history,
        executions=executions.assign(
            is_stressed=stressed ^ is_late, duration_s=executions["duration_s"].to_numpy() + is_late
        ),
        metrics=metrics.assign(value=metrics["value"] * np.where(metrics["execution"] >= first, 3.0, 1.0)),
        telemetry=telemetry.assign(samples=samples),
    )


def first_rows(history, count):
    return np.arange(len(history.executions)) < count


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_executions_that_are_not_of_training_teach_nothing(small, variant):
    params = ModelParams(variant=variant, graph=GraphParams(node_metrics=True))
    is_train = first_rows(small, 30)
    other = changed_from(small, 30)
    scales, again = learned(small, params, is_train), learned(other, params, is_train)
    assert scales.preprocessor.model_dump_json() == again.preprocessor.model_dump_json()
    assert scales.node_metrics == again.node_metrics
    pd.testing.assert_frame_equal(scales.reference.table, again.reference.table, check_exact=True)
    one, two = inputs_of(small, scales, params), inputs_of(other, again, params)
    assert same_rows(one, two, np.flatnonzero(is_train))
    for name in ("x", "during", "performance", "labels"):
        assert not np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True), name
    everything = learned(other, params)
    assert everything.preprocessor.model_dump_json() != scales.preprocessor.model_dump_json()
    assert everything.node_metrics != scales.node_metrics


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_later_executions_change_nothing_of_earlier_ones(small, variant):
    params = ModelParams(variant=variant)
    scales = learned(small, params, first_rows(small, 20))
    evidence = np.random.default_rng(0).normal(size=(len(small.executions), 2))
    whole = inputs_of(small, scales, params, evidence=evidence)
    cut = inputs_of(small.where(first_rows(small, 31)), scales, params, evidence=evidence[:31])
    changed = inputs_of(changed_from(small, 31), scales, params, evidence=evidence)
    assert len(cut) == 31
    assert same_rows(whole, cut, np.arange(31))
    assert same_rows(whole, changed, np.arange(31))


def test_x_is_what_preprocessing_prepares(small, ours, scales):
    untold = ours.model_copy(update={"network": NetworkParams(type_in_input=False)})
    inputs, prepared = inputs_of(small, scales, untold), transform(scales.preprocessor, small)
    assert inputs.columns == prepared.columns
    assert inputs.x.dtype == np.float32
    assert np.array_equal(inputs.x, prepared.scaled.astype(np.float32))
    assert (inputs.x[~inputs.is_own] == 0).all()
    own_type = (
        np.array([name.split("/")[0] for name in inputs.columns])[None, :]
        == np.array([inputs.types[number] for number in inputs.type_of])[:, None]
    )
    assert np.array_equal(inputs.is_own, own_type)
    assert inputs.nodes == ("node-1", "node-2")
    assert [inputs.nodes[number] for number in inputs.node_of] == small.executions["node"].tolist()


def test_columns_without_a_direction_are_told_but_for_types_that_have_no_other(
    small, scales, ours, paper, paper_scales
):
    first, second = scales.types
    kept = scales.preprocessor.kept
    one = next(metric.name for metric in kept if metric.type == first)

    def guessed(metric):
        if metric.name != one and metric.type != second:
            return metric
        return metric.model_copy(update={"orientation": metric.orientation.model_copy(update={"is_directed": False})})

    metrics = tuple(guessed(metric) for metric in scales.preprocessor.metrics)
    other = replace(scales, preprocessor=scales.preprocessor.model_copy(update={"metrics": metrics}))
    inputs = inputs_of(small, other, ours)
    assert [name for name, told in zip(inputs.columns, inputs.has_direction, strict=True) if not told] == [one]
    assert inputs_of(small, scales, ours).has_direction.all()
    found = inputs_of(small, paper_scales, paper)
    assert found.has_direction.shape == (len(found.columns),) and found.has_direction.all()


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_a_value_far_beyond_all_of_training_stays_a_number(small, variant):
    """The paper's scale has no end: 1e300 would be infinite in float32, and nothing could be said of the execution."""
    params = ModelParams(variant=variant)
    scales = learned(small, params, first_rows(small, 30))
    value = np.where(small.metrics["execution"] == 40, 1e300, small.metrics["value"])
    inputs = inputs_of(replace(small, metrics=small.metrics.assign(value=value)), scales, params)
    assert np.isfinite(inputs.x).all() and np.isfinite(inputs.performance).all()
    assert np.isfinite(np.square(inputs.x)).all()
    assert np.abs(inputs.x[40]).max() == pytest.approx(10 if variant == "ours" else 1e6, abs=0.1)
    others = np.arange(len(inputs)) != 40
    assert same_rows(inputs, inputs_of(small, scales, params), np.flatnonzero(others))


def test_performance_is_the_logarithm_of_the_ratio_to_the_reference(small, ours, scales):
    inputs = inputs_of(small, scales, ours)
    rate = small.metrics[small.metrics["metric"] == "events_per_second"].iloc[5]
    reference = scales.reference.table.set_index("metric").loc["events_per_second", "median"]
    assert inputs.performance[rate["execution"]] == pytest.approx(np.log(rate["value"] / reference), abs=1e-5)
    assert not np.isnan(inputs.performance).any()


def test_columns_of_types_are_appended_where_the_network_is_told_the_type(small, paper, scales, paper_scales):
    told = ModelParams(network=NetworkParams(type_in_input=True))
    for params, taught, is_own, scale in ((told, scales, False, 4), (paper, paper_scales, True, 1)):
        inputs = inputs_of(small, taught, params)
        assert inputs.columns[-2:] == tuple(f"type={name}" for name in inputs.types)
        assert inputs.x.shape == inputs.is_own.shape == (48, len(inputs.columns))
        assert (inputs.x[:, -2:].argmax(axis=1) == inputs.type_of).all()
        assert (inputs.x[:, -2:].sum(axis=1) == scale).all()  # ours: beside metrics that reach 10
        assert (inputs.is_own[:, -2:] == is_own).all()


def test_the_papers_inputs_lie_between_0_and_1_in_training(small, paper, paper_scales):
    inputs = inputs_of(small, paper_scales, paper)
    assert inputs.x.min() == 0
    assert inputs.x.max() == pytest.approx(1)
    assert inputs.before.shape == (48, 0)
    assert inputs.during.min() == 0
    assert inputs.during.max() == 1


def test_executions_of_an_unknown_type_have_no_number_no_own_metrics_and_no_performance(small, ours):
    is_cpu = (small.executions["benchmark"] == "cpu-sysbench").to_numpy()
    inputs = inputs_of(small, learned(small, is_train=is_cpu), ours)
    assert len(inputs.types) == 1
    assert inputs.type_of.tolist() == np.where(is_cpu, 0, -1).tolist()
    assert not inputs.is_own[~is_cpu].any()
    assert (inputs.x[~is_cpu] == 0).all()
    assert np.isnan(inputs.performance[~is_cpu]).all()


def test_without_any_telemetry_there_are_no_node_metrics(ours):
    history = synthetic_history(nodes=2, types=2, runs=6)
    inputs = inputs_of(history, learned(history), ours)
    assert inputs.before.shape == inputs.during.shape == (24, 0)


def test_executions_without_telemetry_have_node_metrics_of_0(small, ours, scales):
    inputs = inputs_of(replace(small, telemetry=no_telemetry()), scales, ours)
    assert scales.node_metrics.metrics == ("cpu_busy", "disk_write_bytes")  # the third was 0 throughout
    assert inputs.before.shape == inputs.during.shape == (48, 6)
    assert not inputs.before.any()
    assert not inputs.during.any()


def test_node_metrics_can_be_left_out(small):
    params = ModelParams(graph=GraphParams(node_metrics=False))
    assert inputs_of(small, learned(small, params), params).during.shape == (48, 0)


def test_one_node_alone_can_be_learned_from(with_telemetry, ours):
    history = with_telemetry(synthetic_history(nodes=1, types=1, runs=5))
    inputs = inputs_of(history, learned(history), ours)
    assert inputs.nodes == ("node-1",)
    assert np.isfinite(inputs.x).all()
    assert np.isfinite(inputs.before).all()


def test_evidence_is_on_a_signed_logarithmic_scale_and_never_missing(small, ours, paper, scales, paper_scales):
    evidence = np.zeros((48, 2))
    evidence[0], evidence[1] = [np.sinh(2.0), -np.sinh(2.0)], [np.nan, np.inf]
    found = inputs_of(small, scales, ours, evidence=evidence).evidence
    assert found[0].tolist() == pytest.approx([2.0, -2.0])
    assert found[1].tolist() == pytest.approx([0.0, np.arcsinh(1e6)])
    off = ModelParams(network=NetworkParams(evidence=False))
    assert inputs_of(small, scales, off, evidence=evidence).evidence.shape == (48, 0)
    assert inputs_of(small, paper_scales, paper, evidence=evidence).evidence.shape == (48, 0)
    with pytest.raises(ValueError, match="expected one row for each of 48 executions"):
        inputs_of(small, scales, ours, evidence=evidence[:5])


def test_labels_say_where_nobody_knows(small, ours, scales):
    labels = pd.array([True, False, None] * 16, dtype="boolean")
    history = replace(small, executions=small.executions.assign(is_stressed=labels))
    assert inputs_of(history, scales, ours).labels.tolist() == [1, 0, -1] * 16


def test_starts_are_seconds_and_where_nobody_says_follow_the_row_before():
    told = pd.to_datetime(["1970-01-01 00:00:10", "1970-01-02 00:00:00", None, None])
    assert start_seconds(pd.DataFrame({"started_at": told})).tolist() == [10.0, 86400.0, 86401.0, 86402.0]
    nobody = pd.DataFrame({"started_at": pd.Series([None, None, None], dtype="datetime64[us]")})
    assert start_seconds(nobody).tolist() == [0.0, 1.0, 2.0]
