"""The nodes of a source in one result: the verdict first, what it rests on, and what is missing."""

import json

import pandas as pd
import pytest

from tasks.errors import NotFound
from tasks.nodes import answers
from tasks.nodes.node_words import NO_REASON
from tasks.nodes.params import PreprocessParams, ScoreParams
from tasks.report.nodes import cost_words, fetch_nodes, node_items, nodes_result
from tasks.report.result import as_markdown
from tasks.warehouse.connection import reading, writing

QUICK = ScoreParams(resamples=100)


def result_of(warehouse, source="log"):
    with reading(warehouse) as connection:
        return nodes_result(fetch_nodes(connection, source), "node.html")


@pytest.fixture
def watched(nodes_log, fill_verdicts):
    return fill_verdicts(nodes_log)


def test_a_confirmed_node_is_the_answer_and_what_to_do_stands_beside_it(watched, rows_of):
    result = result_of(watched)
    assert result.answer == "Leave out node-3 (disk): its degradation is confirmed."
    assert (result.state, result.action) == ("look", "Run no work there until it is repaired.")
    assert "about 0.9 false alarms a day" in result.certainty
    text = as_markdown(result, only=["Which nodes are degrading"])
    assert "Leave out node\\-3" in text.replace("node-3", "node\\-3")
    assert "Flagged executions" not in text
    nodes = rows_of(result, "Nodes")
    assert [(row["name"], row["rank"], row["state"]) for row in nodes] == [
        *(("node-2", "1", "suspected"), ("node-1", "2", "healthy"), ("node-3", "3", "confirmed")),
    ]
    assert nodes[0]["disk"] == "1.20 (1.10 to 1.30)"
    beside = rows_of(result, "By fingerprint, beside the plain ranking")
    places = [(row["name"].split(" ")[0], row["plain_place"]) for row in beside]
    assert places == [("node-1", "2"), ("node-2", "1"), ("node-3", "3")]


def test_a_suspected_node_is_told_with_the_command_that_clears_it_and_a_healthy_fleet_is_good(watched):
    with writing(watched) as connection:
        connection.execute("DELETE FROM nodes.states WHERE node = 'node-3'").fetchall()
    result = result_of(watched)
    assert result.answer == "Suspected to be degrading: node-2 in disk, since 2026-01-06 12:00 UTC."
    assert result.action == (
        "Why: `whorl nodes explain --source log node-2`. A fresh benchmark there confirms the alarm or clears it "
        "(`whorl nodes record --source log`)."
    )
    assert not any("older" in line for line in result.notices)
    with writing(watched) as connection:
        connection.execute("DELETE FROM nodes.states WHERE node <> 'node-1'").fetchall()
        connection.execute("UPDATE nodes.judgings SET data_version = 'older'").fetchall()
    result = result_of(watched)
    assert result.state == "good"
    assert any("asked about data version older" in line for line in result.notices)


def test_before_any_step_each_part_says_which_command_gives_it(nodes_log, told):
    words = told(result_of(nodes_log))
    for verb in ("rank", "preprocess", "train", "fingerprint", "watch"):
        assert f"whorl nodes {verb} --source log" in words


def test_flagged_executions_have_their_metrics_as_reasons(watched, rows_of):
    rows = rows_of(result_of(watched), "Flagged executions, and why")
    said = {row["because"] for row in rows}
    assert NO_REASON in said
    assert any(words.startswith("rate 4.0 MB/s, usually 9.0") and "; latency 12.0 ms" in words for words in said)
    assert {row["known"] for row in rows} == {"stressed on purpose"}


def test_verdicts_without_a_network_leave_out_what_a_network_gives(nodes_log, fill_verdicts):
    result = result_of(fill_verdicts(nodes_log, has_prints=False))
    assert not {"By fingerprint, beside the plain ranking"} & {part.title for part in result.sections}


def test_what_watching_costs_is_not_made_up():
    states = pd.DataFrame({"node": ["a"], "cost_share": [None]})
    assert cost_words(states).startswith("What watching costs is not known")


def test_a_ranked_source_shows_ranking_decisions_and_repeatability(nodes_log, told):
    answers.preprocess(nodes_log, "log", PreprocessParams(), QUICK, "")
    answers.rank(nodes_log, "log", QUICK, "")
    result = result_of(nodes_log)
    assert {figure.name for part in result.sections for figure in part.figures if figure.chart} == {"ranking"}
    words = told(result)
    assert "Simulated: these executions were drawn, not measured." in words
    assert "whorl nodes rank --source log" not in words
    assert json.dumps(words).count("NaN") == 0


def test_every_node_has_a_page_with_its_verdicts_over_time(watched):
    with reading(watched) as connection:
        items = dict(node_items(connection, fetch_nodes(connection, "log")))
    assert set(items) == {"node-1", "node-2", "node-3"}
    assert items["node-3"].answer == "node-3 needs looking at: confirmed in disk since 2026-01-06 12:00 UTC."
    assert "`whorl nodes explain --source log node-3`" in items["node-3"].action
    assert items["node-1"].action == ""
    assert {figure.use for part in items["node-3"].sections for figure in part.figures} == {"verdicts"}


def test_a_source_without_executions_is_told(nodes_log):
    with pytest.raises(NotFound):
        result_of(nodes_log, "other")
