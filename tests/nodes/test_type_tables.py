"""Tables of types hold what vectors over all types hold, without the empty places."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.params import PreprocessParams, ScoreParams
from tasks.nodes.preprocess.fitting import fit, learn_tables, tables_of, transform
from tasks.nodes.ranking.node_scores import counting
from tasks.nodes.type_tables import is_unstressed, type_names
from tests.nodes.synthetic import synthetic_history


@pytest.mark.parametrize("variant", ["robust", "paper"])
def test_a_table_has_the_values_of_the_vectors(variant):
    history = synthetic_history(nodes=2, runs=12)
    preprocessor = fit(history, PreprocessParams(variant=variant))
    prepared, tables = transform(preprocessor, history), tables_of(history, preprocessor)
    n_cells = 0
    for table in tables.tables:
        for at, metric in enumerate(table.metrics):
            column = prepared.columns.index(f"{table.name}/{metric}")
            np.testing.assert_array_equal(table.scaled[:, at], prepared.scaled[table.executions, column])
            n_cells += len(table.executions)
    assert n_cells == int(prepared.is_own.sum())


def test_nodes_types_and_aspects_are_those_of_the_history():
    history = synthetic_history(nodes=3, runs=4, types=8)
    tables = learn_tables(history, np.ones(len(history.executions), dtype=bool), PreprocessParams())
    names, executions = type_names(history.executions), history.executions
    assert len({table.name for table in tables.tables}) == 8  # two of them differ in their template alone
    for table in tables.tables:
        assert set(names.iloc[table.executions]) == {table.name}
        assert set(executions["aspect"].iloc[table.executions]) == {table.aspect}
        assert [tables.nodes[node] for node in table.nodes] == executions["node"].iloc[table.executions].tolist()
        assert (np.diff(table.executions) > 0).all()
    assert tables.machine_types == ("drawn",) * 3


def test_executions_that_did_not_train_are_in_the_tables_and_teach_nothing():
    history = synthetic_history(nodes=2, runs=10, types=2)
    is_train = np.arange(len(history.executions)) < 20
    tables = learn_tables(history, is_train, PreprocessParams())
    alone = learn_tables(history.where(is_train), np.ones(20, dtype=bool), PreprocessParams())
    assert sum(len(table.executions) for table in tables.tables) == len(history.executions)
    for table, other in zip(tables.tables, alone.tables, strict=True):
        np.testing.assert_array_equal(table.where(is_train[table.executions]).scaled, other.scaled)


def test_what_is_known_against_an_execution():
    executions = pd.DataFrame(
        {
            "status": ["completed", "failed", "completed", "completed", "completed"],
            "is_stressed": pd.array([False, False, True, pd.NA, pd.NA], dtype="boolean"),
            "is_contaminated": pd.array([pd.NA, False, False, True, False], dtype="boolean"),
        }
    )
    assert is_unstressed(executions).tolist() == [True, False, False, False, True]


def test_metrics_that_are_declared_neither_better_nor_worse_are_told_apart():
    history = synthetic_history(nodes=2, runs=12, types=4)
    is_ioping = (history.executions["benchmark"] == "disk-ioping").to_numpy()[history.metrics["execution"]]
    is_other = is_ioping & (history.metrics["metric"] == "latency_avg").to_numpy()
    told = {"metric": "generated_iops", "unit": "iops"}
    metrics = history.metrics.assign(**{name: history.metrics[name].mask(is_other, one) for name, one in told.items()})
    history = replace(history, metrics=metrics)
    [ioping] = [one for one in tables_of(history, fit(history, PreprocessParams())).tables if "ioping" in one.name]
    assert dict(zip(ioping.metrics, ioping.is_directed.tolist(), strict=True)) == {
        "generated_iops": False,
        "iops": True,
    }
    assert counting(ioping, ScoreParams()).tolist() == [metric == "iops" for metric in ioping.metrics]


def test_executions_that_the_preprocessing_does_not_know_are_counted():
    history = synthetic_history(nodes=2, runs=6, types=7)  # the seventh has a template of its own
    is_known = ~history.executions["template"].str.startswith("other").to_numpy()
    preprocessor = fit(history.where(is_known), PreprocessParams())
    assert tables_of(history, preprocessor).n_left_out == 12
    assert tables_of(history.where(is_known), preprocessor).n_left_out == 0
    foreign = replace(history, metrics=history.metrics.assign(unit="apples"))
    assert tables_of(foreign.where(is_known), preprocessor).n_left_out == 72  # no unit becomes that of its column


def test_a_node_is_of_the_type_that_any_of_its_executions_says():
    history = synthetic_history(nodes=3, runs=4, types=2)
    told = history.executions["machine_type"].astype(object)
    is_first = ~history.executions["node"].duplicated()
    told = told.mask(is_first, other=None).mask(history.executions["node"] == "node-3", "")
    history = replace(history, executions=history.executions.assign(machine_type=told))
    tables = learn_tables(history, np.ones(len(history.executions), dtype=bool), PreprocessParams())
    assert tables.machine_types == ("drawn", "drawn", "")
