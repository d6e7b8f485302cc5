import numpy as np
import pandas as pd
import pytest

from tasks.nodes.preprocess.unification import (
    choose_columns,
    in_base_units,
    recorded,
)
from tasks.nodes.tools.facts import Of


def test_megabytes_here_and_gigabytes_there_become_one_scale(history_of) -> None:
    found = recorded(history_of([{"bw": (900.0, "MB/sec")}, {"bw": (1.1, "GB/sec")}, {"bw": (1.0, "GiB/s")}]))
    columns = choose_columns(found, {})
    assert columns[["metric", "base", "n_apart"]].to_numpy().tolist() == [["bw", "B/s", 0]]
    assert sorted(columns["units"][0]) == ["GB/sec", "GiB/s", "MB/sec"]
    np.testing.assert_allclose(in_base_units(found, columns).value, [9e8, 1.1e9, 2**30], rtol=1e-14)


def test_the_same_name_in_two_types_is_two_metrics(history_of) -> None:
    history = history_of(
        [{"latency": (1, "s")}, {"latency": (1, "ms")}, {"latency": (1, "us")}],
        benchmark=["x", "x", "y"],
        template_hash=["1234567890", "abcdefgh00", "1234567890"],
    )
    found = recorded(history)
    columns = choose_columns(found, {})
    assert columns["type"].tolist() == ["x@12345678", "x@abcdefgh", "y@12345678"]
    unified = in_base_units(found, columns)
    assert unified.value.tolist() == pytest.approx([1, 1e-3, 1e-6])
    assert [unified.execution[unified.of(at)].tolist() for at in range(3)] == [[0], [1], [2]]


def test_values_in_a_unit_that_cannot_become_that_of_most_stay_apart_and_are_counted(history_of) -> None:
    found = recorded(history_of([{"m": (5, "ms")}, {"m": (7, "ms")}, {"m": (3, "MB")}, {"m": (4, "parsec")}]))
    columns = choose_columns(found, {})
    assert columns["base"].tolist() == ["s"] and columns["n_apart"].tolist() == [2]
    assert columns["note"][0] == (
        "1 values in 'MB', which cannot become s: apart; 1 values in 'parsec', which is not known: apart"
    )
    unified = in_base_units(found, columns)
    assert unified.value.tolist() == pytest.approx([0.005, 0.007])
    assert unified.apart["reason"].tolist() == ["unit", "unit"]


def test_the_declared_unit_decides_even_where_few_values_have_it(history_of) -> None:
    found = recorded(history_of([{"m": (5, "MB")}, {"m": (7, "MB")}, {"m": (3, "ms")}]))
    facts = {"own-tool": {"m": Of("cpu").less("s", "a time")}}
    assert choose_columns(found, facts)["base"].tolist() == ["s"]
    assert choose_columns(found, {})["base"].tolist() == ["B"]


def test_an_unknown_unit_alone_is_kept_on_a_scale_of_its_own_with_the_reason(history_of) -> None:
    found = recorded(history_of([{"m": (5, "points")}, {"m": (7, "points")}]))
    columns = choose_columns(found, {})
    assert columns["note"].tolist() == ["unit 'points' is not known: a scale of its own"]
    assert in_base_units(found, columns).value.tolist() == [5, 7]


def test_a_missing_unit_is_a_plain_number(history_of) -> None:
    history = history_of([{"m": 5.0}])
    history.metrics["unit"] = pd.Series([None], dtype="str")
    assert choose_columns(recorded(history), {})["base"].tolist() == ["1"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused_with_its_place(history_of, value) -> None:
    with pytest.raises(ValueError, match=r"metric 'm' of execution 1 has the value .*expected finite numbers"):
        recorded(history_of([{"m": 1.0}, {"m": value}]))
