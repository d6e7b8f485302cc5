"""Answers about a source say what they rest on: data version, reference, and what the preprocessing does not know."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.nodes import answers, steps
from tasks.nodes.params import PreprocessParams, ReadParams, ScoreParams
from tasks.report.nodes import NodesData, fetch_nodes, nodes_result
from tasks.report.result import as_markdown
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.place import Warehouse

QUICK = ScoreParams(resamples=100)


def ranked(warehouse: Warehouse, score: ScoreParams = QUICK) -> answers.Ranked:
    """Rank the source `log`."""
    return answers.rank(warehouse, "log", score, "")


def shown(warehouse: Warehouse) -> NodesData:
    """What the page shows."""
    with reading(warehouse) as connection:
        return fetch_nodes(connection, "log")


@pytest.fixture
def preprocessed(nodes_log: Warehouse) -> Warehouse:
    """The source `log`, preprocessed."""
    answers.preprocess(nodes_log, "log", PreprocessParams(), QUICK, "")
    return nodes_log


@pytest.mark.slow
def test_answers_of_older_data_say_so_until_it_is_ranked_again(
    preprocessed: Warehouse, drawn_executions: Callable[..., Path]
) -> None:
    assert ranked(preprocessed)["n_left_out"] == 0
    first = shown(preprocessed)
    assert first.ranked_version == first.data_version and not first.is_outdated
    path = str(drawn_executions(types=7, runs=1))  # the seventh type is a known benchmark with a template of its own
    steps.ingest_batch(preprocessed, steps.land_executions(preprocessed, path, "log", "", ReadParams()))
    then = shown(preprocessed)
    assert then.is_outdated and then.ranked_version == first.data_version != then.data_version
    text = as_markdown(nodes_result(then))
    assert f"**Older data: ranking and repeatability are of data version {first.data_version}" in text

    again = ranked(preprocessed)
    assert (again["n_executions"], again["n_left_out"]) == (363, 3)
    now = shown(preprocessed)
    text = as_markdown(nodes_result(now))
    assert not now.is_outdated and "Older data:" not in text
    assert "3 executions are left out: the preprocessing knows none of their metrics" in text
    answers.preprocess(preprocessed, "log", PreprocessParams(), QUICK, "")
    assert ranked(preprocessed)["n_left_out"] == 0


def test_metrics_are_marked_as_counting_by_the_reference_and_not_by_todays_parameters(preprocessed: Warehouse) -> None:
    ranked(preprocessed, ScoreParams(resamples=100, basis="all"))
    marked = fetch(
        preprocessed, "SELECT DISTINCT benchmark_type, metric FROM nodes.repeatability WHERE is_counted ORDER BY ALL"
    )
    _, reference = answers.load_model(preprocessed, answers.require_model(preprocessed, "log"))
    assert list(marked.itertuples(index=False, name=None)) == sorted(reference.counted)
    assert len(marked) == 7  # the rates: two of fio, one of each other


def test_the_same_answers_are_not_made_twice(preprocessed: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ranked(preprocessed)
    monkeypatch.setattr("tasks.nodes.answers.answer", None)  # whoever answered again would fail
    assert ranked(preprocessed) == first


def test_what_stress_does_to_a_node_says_nothing_against_it(campaign):
    history, _ = campaign(nodes=2, runs=30, types=1, quality={})
    preprocessor, reference = answers.learn(history, PreprocessParams(), QUICK)
    found = answers.answer(history, preprocessor, reference, QUICK)
    assert found.watched["n_executions"].tolist() == [24, 24]  # of 30 each a fifth was stressed
    assert found.watched["n_low"].sum() <= 1
