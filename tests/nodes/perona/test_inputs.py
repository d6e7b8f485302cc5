"""Inputs of the network: learned from training executions alone, by hand, and the same after loading."""

import json
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import torch

from tasks.errors import BadInput
from tasks.nodes.params import GraphParams, ModelParams, PreprocessParams, ScoreParams
from tasks.nodes.perona.inputs import (
    Batches,
    edge_size,
    encode_intervals,
    graphs_of,
    inputs_of,
    learn_inputs,
    learn_scales,
    load_inputs,
    node_changes,
    predecessors_of,
    save_inputs,
    scale_changes,
    start_seconds,
)
from tasks.nodes.preprocess.fitting import transform
from tests.nodes.perona.conftest import make_inputs
from tests.nodes.synthetic import no_telemetry

PAPER = ModelParams(variant="paper")
BY_ROW = ("x", "is_own", "type_of", "started_s", "node_metrics", "performance", "labels")


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
    params = ModelParams(variant=variant)
    is_train = first_rows(small, 30)
    other = changed_from(small, 30)
    scales, again = learned(small, params, is_train), learned(other, params, is_train)
    assert scales.preprocessor.model_dump_json() == again.preprocessor.model_dump_json()
    assert scales.node_metrics == again.node_metrics
    pd.testing.assert_frame_equal(scales.reference.table, again.reference.table, check_exact=True)
    one, two = inputs_of(small, scales, params), inputs_of(other, again, params)
    assert same_rows(one, two, np.flatnonzero(is_train))  # nor do later executions change anything of earlier ones
    assert same_rows(one, inputs_of(small.where(first_rows(small, 31)), scales, params), np.arange(31))
    for name in ("x", "performance", "labels", *(["node_metrics"] if variant == "paper" else [])):
        assert not np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True), name
    everything = learned(other, params)
    assert everything.preprocessor.model_dump_json() != scales.preprocessor.model_dump_json()
    assert (everything.node_metrics != scales.node_metrics) == (variant == "paper")


def test_x_is_what_preprocessing_prepares(small, ours, scales):
    inputs, prepared = inputs_of(small, scales, ours), transform(scales.preprocessor, small)
    x, is_own = inputs.x[:, inputs.is_metric], inputs.is_own[:, inputs.is_metric]
    assert inputs.columns[: x.shape[1]] == prepared.columns
    assert x.dtype == np.float32
    assert np.array_equal(x, prepared.scaled.astype(np.float32))
    assert (x[~is_own] == 0).all()
    own_type = (
        np.array([name.split("/")[0] for name in prepared.columns])[None, :]
        == np.array([inputs.types[number] for number in inputs.type_of])[:, None]
    )
    assert np.array_equal(is_own, own_type)
    assert inputs.nodes == ("node-1", "node-2")
    assert [inputs.nodes[number] for number in inputs.node_of] == small.executions["node"].tolist()


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


def test_the_papers_inputs_lie_between_0_and_1_in_training(small, paper, paper_scales):
    inputs = inputs_of(small, paper_scales, paper)
    assert inputs.x.min() == 0
    assert inputs.x.max() == pytest.approx(1)
    assert inputs.node_metrics.min() == 0
    assert inputs.node_metrics.max() == 1


def test_executions_of_an_unknown_type_have_no_number_no_own_metrics_and_no_performance(small, ours):
    is_cpu = (small.executions["benchmark"] == "cpu-sysbench").to_numpy()
    inputs = inputs_of(small, learned(small, is_train=is_cpu), ours)
    assert len(inputs.types) == 1
    assert inputs.type_of.tolist() == np.where(is_cpu, 0, -1).tolist()
    assert not inputs.is_own[~is_cpu].any()
    assert (inputs.x[~is_cpu] == 0).all()
    assert inputs.is_measured.tolist() == is_cpu.tolist()
    assert np.isnan(inputs.performance[~is_cpu]).all()


def test_node_metrics_are_of_the_paper_where_it_is_asked_for_them_and_somebody_sampled_any(small, ours, paper_scales):
    without = ModelParams(variant="paper", graph=GraphParams(node_metrics=False))
    for history, params in ((small, ours), (small, without), (replace(small, telemetry=no_telemetry()), PAPER)):
        assert inputs_of(history, learned(history, params), params).node_metrics.shape == (48, 0)
    silent = inputs_of(replace(small, telemetry=no_telemetry()), paper_scales, PAPER).node_metrics
    assert silent.shape == (48, 6) and (silent == silent[0]).all()  # no change; the third metric was 0 throughout


def test_starts_are_seconds_and_where_nobody_says_follow_the_row_before():
    told = pd.to_datetime(["1970-01-01 00:00:10", "1970-01-02 00:00:00", None, None])
    assert start_seconds(pd.DataFrame({"started_at": told})).tolist() == [10.0, 86400.0, 86401.0, 86402.0]
    nobody = pd.DataFrame({"started_at": pd.Series([None, None, None], dtype="datetime64[us]")})
    assert start_seconds(nobody).tolist() == [0.0, 1.0, 2.0]


def telemetry_of(*rows):
    """Rows of (execution, metric, at_s, samples)."""
    told = [
        (execution, metric, "%", np.array(at_s, dtype=float), np.array(samples, dtype=float))
        for execution, metric, at_s, samples in rows
    ]
    frame = pd.DataFrame(told, columns=["execution", "metric", "unit", "at_s", "samples"])
    return frame.astype({"execution": "int64", "metric": "str"})


def inverse(*values):
    return [1 / (value + 0.001) for value in values]


def test_windows_have_the_percentiles_worked_out_by_hand():
    # before, [-50, 0]: 1, 2, 3; during, [0, 2]: 3, 5, 9; what lies beyond either end does not count
    rows = telemetry_of((0, "cpu", [-51, -50, -25, 0, 1, 2, 3], [1000, 1, 2, 3, 5, 9, 1000]))
    told = node_changes(rows, np.array([2.0]))
    assert list(told) == ["cpu/p10", "cpu/p50", "cpu/p90"]
    expected = np.subtract(inverse(3.4, 5.0, 8.2), inverse(1.2, 2.0, 2.8))
    assert told.iloc[0].tolist() == pytest.approx(expected.tolist())


def test_missing_samples_and_empty_windows_say_nothing_and_are_no_change_of_their_metric_alone():
    told = [(0, "cpu", [-2, -1, 1], [np.nan, 4, 2]), (1, "cpu", [-1, 1], [4, np.nan]), (2, "cpu", [], [])]
    rows = telemetry_of(*told, (2, "disk", [-1, 1], [7, 9]), (3, "disk", [-1, 1], [7, 8]))
    found, seconds = node_changes(rows, np.full(4, 2.0)), np.full(4, 2.0)
    assert found["cpu/p50"].isna().tolist() == [False, True, True, True]
    assert found["disk/p50"].isna().tolist() == [True, True, False, False]
    scales = learn_scales(found)
    assert scales.columns == ("disk/p10", "disk/p50", "disk/p90")  # one value alone does not vary
    scaled = scale_changes(rows, seconds, scales)[:, 0]
    assert scaled[0] == scaled[1] and {float(one) for one in scaled[2:]} == {0.0, 1.0}


def test_metrics_that_training_lacked_are_left_out_and_those_nobody_sampled_are_no_change():
    learned = telemetry_of((0, "disk", [-1, 1], [7, 9]), (1, "disk", [-1, 1], [7, 8]), (2, "disk", [-1, 1], [7, 7]))
    scales = learn_scales(node_changes(learned, np.full(3, 2.0)))
    no_change = scale_changes(learned, np.full(3, 2.0), scales)[2]
    other = telemetry_of((1, "cpu", [-1], [7]), (1, "net", [1], [9]))
    found = scale_changes(other, np.full(2, 2.0), scales)
    assert found.shape == (2, 3) and (found == no_change).all()
    assert (scale_changes(other.iloc[:0], np.full(2, 2.0), scales) == no_change).all()


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_what_was_saved_gives_the_same_numbers(small, variant, tmp_path):
    params = ModelParams(variant=variant)
    is_train = np.arange(len(small.executions)) < 30
    scales = learn_inputs(small, is_train, params, PreprocessParams(), ScoreParams(basis="all"))
    save_inputs(scales, tmp_path / "model")
    loaded = load_inputs(tmp_path / "model")
    assert loaded.node_metrics == scales.node_metrics
    assert loaded.types == scales.types
    one, two = inputs_of(small, scales, params), inputs_of(small, loaded, params)
    for name in ("x", "node_metrics", "performance"):
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True), name


@pytest.mark.parametrize(
    "damage", [lambda main: main.update(version=99), lambda main: main["node_metrics"].update(colour="red")]
)
def test_damaged_inputs_are_refused(small, ours, tmp_path, damage):
    everything = np.ones(len(small.executions), dtype=bool)
    save_inputs(learn_inputs(small, everything, ours, PreprocessParams(), ScoreParams()), tmp_path)
    main = json.loads((tmp_path / "inputs.json").read_text())
    damage(main)
    (tmp_path / "inputs.json").write_text(json.dumps(main))
    with pytest.raises(BadInput, match=r"no inputs of a model of nodes.*train again"):
        load_inputs(tmp_path)


def test_predecessors_worked_out_by_hand():
    inputs = make_inputs([0, 0, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, -1, -1, 0])
    is_normal = np.array([True, False, True, True, True, True, True, True, True])
    assert predecessors_of(inputs, is_normal, 2).tolist() == [
        [-1, -1],
        [-1, 0],
        [-1, -1],  # the first of its node
        [-1, 0],  # row 1 is not normal
        [-1, -1],  # the first of its type
        [0, 3],
        [-1, -1],  # nobody knows the type
        [-1, -1],
        [3, 5],
    ]
    assert predecessors_of(inputs, is_normal, 7)[8].tolist() == [-1, -1, -1, -1, 0, 3, 5]


def all_normal(inputs, count=3):
    return predecessors_of(inputs, np.ones(len(inputs), dtype=bool), count)


def test_graphs_are_of_those_asked_for_that_have_all_predecessors():
    inputs = make_inputs([0] * 6, [0] * 6)
    graphs = graphs_of(inputs, np.array([5, 1, 3]), all_normal(inputs))
    assert graphs.targets.tolist() == [5, 3] and graphs.predecessors.tolist() == [[2, 3, 4], [0, 1, 2]]
    assert graphs.of(np.array([1])).targets.tolist() == graphs.of(np.array([False, True])).targets.tolist() == [3]
    assert len(graphs_of(inputs, np.arange(6), all_normal(inputs, 0))) == 6  # ours: alone


def gathered(inputs, params, targets=None, is_normal=None):
    """The batches of some targets, all executions being normal unless said."""
    normal = np.ones(len(inputs), dtype=bool) if is_normal is None else is_normal
    predecessors = predecessors_of(inputs, normal, params.n_predecessors)
    rows = np.arange(len(inputs)) if targets is None else np.asarray(targets)
    return Batches(graphs_of(inputs, rows, predecessors), params)


def same(one, other):
    """Whether two batches are equal bit for bit."""
    pairs = [(getattr(one, of.name), getattr(other, of.name)) for of in fields(one) if of.name != "n_graphs"]
    return all(a.dtype == b.dtype and a.shape == b.shape and torch.equal(_bits(a), _bits(b)) for a, b in pairs)


def _bits(tensor):
    return tensor.view(torch.int32) if tensor.dtype == torch.float32 else tensor


def test_a_graph_worked_out_by_hand(paper):
    inputs = make_inputs([0, 1, 0, 0, 0], [0] * 5, started_s=[0.0, 7.0, 60.0, 3600.0, 3660.0])
    batch = gathered(inputs, paper, targets=[4]).of(np.array([0]))
    rows = [0, 2, 3, 4]
    assert np.array_equal(batch.x.numpy(), inputs.x[rows]) and batch.n_graphs == 1
    assert batch.edge_index.tolist() == [[0, 0, 0, 1, 1, 2, 0, 1, 2, 3], [1, 2, 3, 2, 3, 3, 0, 1, 2, 3]]
    assert batch.edge_attr.shape == (10, edge_size(inputs, paper)) == (10, 2 + 2 + 1 + 4)
    decay = [0.5, 0.25, 0.125, 0.5, 0.25, 0.5, 1, 1, 1, 1]
    for at, (before, after) in enumerate(batch.edge_index.T.tolist()):
        earlier, later = rows[before], rows[after]
        elapsed = np.array(inputs.started_s[later] - inputs.started_s[earlier])
        told = [*inputs.node_metrics[earlier], *inputs.node_metrics[later], decay[at]]
        expected = [*told, *encode_intervals(elapsed, paper.graph.interval_scales_s)]
        assert batch.edge_attr[at].tolist() == pytest.approx(expected, abs=1e-6)
    assert edge_size(make_inputs([0], [0], c=39), paper) == 83  # 85 in the paper's code, of which two never vary


def test_graphs_of_a_batch_lie_in_the_order_asked_for(paper, ours):
    inputs = make_inputs([0] * 9, [0] * 9)
    batch = gathered(inputs, paper).of(np.array([5, 0, 5]))
    assert batch.n_graphs == 3 and np.array_equal(batch.x[3::4].numpy(), inputs.x[[8, 3, 8]])
    ends = batch.edge_index // 4
    assert torch.equal(ends[0], ends[1]) and batch.edge_index.shape == (2, 30)  # edges stay within a graph
    assert np.array_equal(gathered(inputs, ours).of(np.array([5, 0])).x.numpy(), inputs.x[[5, 0]])


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_later_executions_change_nothing_of_earlier_graphs(variant):
    params = ModelParams(variant=variant)
    rng = np.random.default_rng(2)
    nodes, types = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    whole = make_inputs(nodes, types)
    other = make_inputs(nodes, types, seed=9)
    changed = {
        name: np.concatenate([getattr(whole, name)[:40], getattr(other, name)[40:]])
        for name in ("x", "is_own", "node_metrics", "performance")
    }
    changed |= {"labels": np.append(whole.labels[:40], -whole.labels[40:])}
    early = gathered(whole, params, np.arange(40))
    numbers = np.arange(len(early))
    assert same(early.of(numbers), gathered(replace(whole, **changed), params, np.arange(40)).of(numbers))
    one, other = gathered(whole, params), gathered(replace(whole, **changed), params)
    assert not same(one.of(np.arange(len(one))), other.of(np.arange(len(one))))


DAY_S = 86_400.0


def test_intervals_have_the_values_worked_out_by_hand():
    # ln(1 + (e - 1)) = 1, so 2^-1; and two days at a scale of one day: 2^-ln 3 = exp(-0.69315 * 1.09861)
    found = encode_intervals(np.array([0.0, 60 * (np.e - 1), 2 * DAY_S]), [60.0, DAY_S])
    assert found[0].tolist() == [1.0, 1.0]
    assert found[1, 0] == pytest.approx(0.5, abs=1e-12)
    assert found[2, 1] == pytest.approx(0.466965, abs=1e-6)
