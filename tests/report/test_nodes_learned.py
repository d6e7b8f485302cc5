"""The page and the artifacts of nodes show what a trained model says, beside the plain answers, from tables alone."""

import shutil

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup

from tasks.nodes.answers import insert_rows
from tasks.report.nodes_artifact import nodes_artifact
from tasks.report.nodes_data import fetch_nodes_data
from tasks.report.nodes_learned import (
    agreement_words,
    aspects_table,
    fingerprints_artifact,
    flagged_table,
    known_words,
    one_number_table,
    states_table,
)
from tasks.report.nodes_page import nodes_text, render_nodes
from tasks.report.nodes_params import NodesReportParams
from tasks.report.nodes_watching import cost_words, counted_states, excluded_nodes
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.place import Warehouse

ASPECTS = ("all", "cpu", "disk", "memory", "network")
ABOUT = {"source": "log", "model_id": "model-1"}
NOW = pd.Timestamp("2026-01-06 12:00")
PARAMS = NodesReportParams()
STATES = {"node-1": "healthy", "node-2": "suspected", "node-3": "confirmed"}  # of the disk


def put(warehouse, **tables):
    """Rows into tables of nodes."""
    with writing(warehouse) as connection, transaction(connection):
        for name, rows in tables.items():
            insert_rows(connection, f"nodes.{name}", rows, ABOUT)


def fingerprints(executions):
    """A fingerprint of each: types on a circle, stressed ones with smaller norms."""
    number = executions["benchmark"].astype("category").cat.codes.to_numpy(dtype=float)
    is_stressed = executions["is_stressed"].to_numpy(dtype=bool)
    return pd.DataFrame(
        {
            "execution_id": executions["execution_id"],
            "log_norm": number - np.where(is_stressed, 0.7, 0.0),
            "score": np.where(is_stressed, 0.5, 1.0),
            "x": np.cos(number),
            "y": np.sin(number),
            "encoding": [[1.0, 2.0]] * len(executions),
        }
    )


def verdicts(executions):
    """Stressed ones are flagged."""
    is_stressed = executions["is_stressed"].to_numpy(dtype=bool)
    probability = np.where(is_stressed, 0.9, 0.1)
    return pd.DataFrame({"execution_id": executions["execution_id"], "probability": probability}).assign(
        is_flagged=is_stressed, is_cold=False, by_labels=True
    )


def reasons(flagged):
    """Two metrics for each flagged execution but the latest."""
    rate = {"place": 1, "metric": "rate", "unit": "B/s", "value": 4e6, "deviation": 8.5, "higher_is_better": True}
    late = {"place": 2, "metric": "latency", "unit": "s", "value": 0.012, "deviation": 3.0, "higher_is_better": False}
    usual = {"rate": (9e6, 9.5e6, 1e7), "latency": (0.009, 0.01, 0.011)}
    ranges = {name: dict(zip(("usual_low", "usual", "usual_high"), ends, strict=True)) for name, ends in usual.items()}
    rows = [
        {"execution_id": execution, "is_headline": True, **reason, **ranges[reason["metric"]]}
        for execution in flagged["execution_id"].iloc[:-1]
        for reason in (rate, late)
    ]
    return pd.DataFrame(rows)


def scores(order):
    """A ranking of three nodes by aspect, the best first."""
    rows = [
        {"aspect": aspect, "node": node, "machine_type": "drawn", "score": 1.2 - 0.2 * at, "low": 1.1 - 0.2 * at}
        | {"high": 1.3 - 0.2 * at, "rank": at + 1, "is_tied": False, "n_executions": 96, "n_types": 6}
        for aspect in ASPECTS
        for at, node in enumerate(order)
    ]
    return pd.DataFrame(rows)


def states():
    """One node of each state in the disk, the others healthy; watching takes 2, 4 and 6 % of their time."""
    rows = [
        {"node": node, "aspect": aspect, "state": state if aspect == "disk" else "healthy", "since_execution": "e"}
        | {"is_excluded": state == "confirmed", "asks_for_benchmark": state == "suspected" and aspect == "disk"}
        | {"cost_share": 0.02 * at, "n_executions": 40, "n_recent_flagged": at, "n_left_out": 1}
        for at, (node, state) in enumerate(STATES.items(), 1)
        for aspect in ASPECTS[1:]
    ]
    found = pd.DataFrame(rows)
    since = found["state"].map(lambda state: pd.NaT if state == "healthy" else NOW)
    return found.assign(since=pd.to_datetime(since), last_at=NOW, watched_at=NOW)


def copied(home, folder):
    """A warehouse of its own with what is in a home."""
    shutil.copytree(home, folder / "home")
    return Warehouse(home=folder / "home", memory_mb=256, threads=1)


@pytest.fixture(scope="module")
def asked_home(tmp_path_factory, nodes_home):
    """The home of the source `log` after a fingerprinting and a ranking of the other order, but not yet watched."""
    warehouse = copied(nodes_home, tmp_path_factory.mktemp("asked"))
    executions = fetch(warehouse, "SELECT * FROM nodes.executions WHERE source = 'log' ORDER BY started_at")
    prints = fingerprints(executions)
    flagged = executions[executions["is_stressed"]].reset_index(drop=True)
    version = fetch_nodes_data(warehouse, "log", PARAMS).data_version
    made = {"key": "k", "data_version": version, "n_executions": 360}
    judged = {
        "n_judged": 350,
        "n_flagged": len(flagged),
        "threshold": 0.0,
        "alarms_per_day": 0.9,
        "executions_per_day": 120.0,
        "judged_at": NOW,
    }
    printed = {"n_fingerprints": 360, "shown": 0.75, "fingerprinted_at": NOW}
    put(
        warehouse,
        fingerprints=prints,
        verdicts=verdicts(executions),
        verdict_reasons=reasons(flagged),
        judgings=pd.DataFrame([made | judged]),
        fingerprint_scores=scores(["node-1", "node-2", "node-3"]),
        scores=scores(["node-2", "node-1", "node-3"]).assign(key="k", scored_at=NOW),
        fingerprintings=pd.DataFrame([made | printed]),
    )
    return warehouse.home


@pytest.fixture
def asked(tmp_path, asked_home):
    """That source, for a test to change."""
    return copied(asked_home, tmp_path)


@pytest.fixture(scope="module")
def watched(tmp_path_factory, asked_home):
    """The source after a watch; no test changes it."""
    warehouse = copied(asked_home, tmp_path_factory.mktemp("watched"))
    put(warehouse, states=states())
    return warehouse


@pytest.fixture(scope="module")
def learned(watched):
    """What the page shows after a watch."""
    return fetch_nodes_data(watched, "log", PARAMS).learned


@pytest.fixture
def without_pictures(monkeypatch):
    """Pages of words: figures are drawn, but not written as SVG, which takes most of the time of a page."""
    monkeypatch.setattr("tasks.report.jobs_page.to_svg", lambda *_: Markup("<svg></svg>"))


def texts(table):
    return {row.name: [cell.text for cell in row.cells] for row in table.rows}


def test_the_ranking_by_fingerprint_stands_beside_the_plain_one(learned):
    found = texts(one_number_table(learned.prints, 10))
    assert list(found) == ["node-1", "node-2", "node-3"]
    assert found["node-1"] == ["1", "1.20", "2", "1.00", "96"]
    assert found["node-2"] == ["2", "1.00", "1", "1.20", "96"]
    aspects = aspects_table(learned.prints, 10)
    assert aspects.heads == ASPECTS[1:]
    assert aspects.rows[0].cells[0].notes == ("plain: 1.00",)
    # places 1, 2, 3 and 2, 1, 3: 1 - 6 · 2 / (3 · 8)
    assert "is 0.50, over 3 nodes" in agreement_words(learned.prints)


def test_a_node_without_a_plain_score_says_so(asked):
    with writing(asked) as connection:
        connection.execute("DELETE FROM nodes.scores WHERE node <> 'node-1'").fetchall()
    learned = fetch_nodes_data(asked, "log", PARAMS).learned
    assert texts(one_number_table(learned.prints, 10))["node-3"][2:4] == ["–", "–"]
    assert aspects_table(learned.prints, 10).rows[2].cells[0].notes == ("plain: not ranked",)
    assert agreement_words(learned.prints) == ""


def test_flagged_executions_have_their_metrics_as_reasons_the_latest_first(learned):
    table = flagged_table(learned)
    assert len(table.rows) == PARAMS.n_rows < learned.n_flagged
    why = [row.cells[2].text for row in table.rows]
    assert why[0] == "no metric alone says so"
    assert set(why[1:]) == {
        "rate 4.0 MB/s, usually 9.0 to 10.0: worse (8 deviations); "
        "latency 12.0 ms, usually 9.0 to 11.0: worse (3 deviations)"
    }
    started = [row.cells[0].text for row in table.rows]
    assert started == sorted(started, reverse=True)
    assert {row.cells[3].text for row in table.rows} == {"stressed on purpose"}
    assert f"Of {learned.n_flagged} executions that were stressed on purpose {learned.n_flagged}" in known_words(
        learned
    )


def test_states_name_who_is_to_be_left_out_and_what_watching_costs(learned):
    table = states_table(learned, 3)
    assert [(row.name, row.cells[1].text) for row in table.rows[:2]] == [
        ("node-3", "confirmed"),
        ("node-2", "suspected"),
    ]
    assert table.rows[0].cells[2].text == "2026-01-06 12:00" and table.rows[2].cells[2].text == "–"
    assert counted_states(learned.states) == "1 confirmed, 1 suspected, 0 cleared, 10 healthy"
    assert excluded_nodes(learned.states) == ["node-3 (disk)"]
    assert "take 4.0 % of a node's time (median of 3 nodes), 6.0 % at most (node-3)" in cost_words(learned.states)


def test_what_watching_costs_is_not_made_up(learned):
    unknown = learned.states.assign(cost_share=np.nan)
    assert "not known" in cost_words(unknown)
    assert excluded_nodes(unknown.head(0)) == []


def test_the_page_shows_all_of_it_and_leaves_no_tag_open(watched, words_of, tags_of):
    page = nodes_text(fetch_nodes_data(watched, "log", PARAMS))
    assert tags_of(page).open == []
    words = words_of(page)
    for told in (
        "To be left out: node-3 (disk).",
        "By fingerprint, beside the plain ranking",
        "Fingerprints by benchmark, and their norms",
        "n = 360 fingerprints of 6 benchmarks; x and y hold 75.0 %",
        "Executions that look degraded, and why",
        "of 350 executions are flagged",
        "about 0.9 false alarms a day",
        "1 confirmed, 1 suspected, 0 cleared, 10 healthy",
        "6.0 % at most (node-3)",
        "model model-1",
    ):
        assert told in words, told


@pytest.mark.usefixtures("without_pictures")
def test_the_same_tables_give_the_same_words(watched):
    """And the same picture of them: tests/report/test_nodes_plane.py."""
    one, other = (nodes_text(fetch_nodes_data(watched, "log", PARAMS)) for _ in range(2))
    assert one == other


@pytest.mark.usefixtures("without_pictures")
def test_before_a_watch_and_before_the_first_verdicts_the_page_says_which_command_gives_it(asked, words_of):
    words = words_of(render_nodes(asked, "log").read_text())
    assert "Nobody has watched these nodes yet. whorl nodes watch --source log does so." in words
    with writing(asked) as connection:
        connection.execute("DELETE FROM nodes.judgings").fetchall()
    words = words_of(render_nodes(asked, "log").read_text())
    assert "whorl nodes train --source log makes one, whorl nodes fingerprint --source log asks it" in words


@pytest.mark.usefixtures("without_pictures")
def test_verdicts_without_a_network_are_shown_and_no_empty_sections(asked, words_of):
    with writing(asked) as connection:
        for name in ("fingerprintings", "fingerprints", "fingerprint_scores"):
            connection.execute(f"DELETE FROM nodes.{name}").fetchall()
    words = words_of(nodes_text(fetch_nodes_data(asked, "log", PARAMS)))
    assert "Executions that look degraded, and why" in words
    assert "By fingerprint, beside" not in words and "Fingerprints by benchmark" not in words
    text = fingerprints_artifact(asked, "log", PARAMS)
    assert "## Flagged executions, and why" in text and "ingerprint" not in text


@pytest.mark.usefixtures("without_pictures")
def test_verdicts_and_fingerprints_of_older_data_say_so(asked, words_of):
    with writing(asked) as connection:
        connection.execute("UPDATE nodes.fingerprintings SET data_version = 'older'").fetchall()
        connection.execute("UPDATE nodes.judgings SET data_version = 'older'").fetchall()
    words = words_of(nodes_text(fetch_nodes_data(asked, "log", PARAMS)))
    for asked_one in ("network", "detector"):
        assert (
            f"the {asked_one} was asked about data version older. whorl nodes fingerprint --source log asks it again"
            in words
        )


def test_the_artifact_of_a_fingerprinting_has_the_figure_both_rankings_and_the_reasons(asked):
    text = fingerprints_artifact(asked, "log", PARAMS).replace("\\", "")
    assert text.count("data:image/png;base64,") == 1
    assert "## Fingerprints by benchmark, and their norms" in text
    assert "| node-1 | 1.20 (plain: 1.00) |" in text
    assert "rate 4.0 MB/s" in text and "stressed on purpose" in text
    with writing(asked) as connection:
        connection.execute("DELETE FROM nodes.judgings").fetchall()
    assert fingerprints_artifact(asked, "log", PARAMS) == ""


def test_the_artifact_of_the_source_has_the_figure_and_who_is_to_be_left_out(watched):
    text = nodes_artifact(watched, "log").replace("\\", "")
    assert "## Fingerprints by benchmark, and their norms" in text
    assert "To be left out: node-3 (disk)." in text
