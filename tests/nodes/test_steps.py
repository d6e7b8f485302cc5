"""Steps of nodes: from the folder of a recording to the landing folder that nodes share, and Perona's model."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput, NotFound
from tasks.nodes import steps
from tasks.nodes.history import benchmarks_of
from tasks.nodes.params import ScoreParams
from tasks.nodes.perona.fingerprints import fingerprint, load_trained, trained_in_use
from tasks.nodes.steps import land_recording
from tasks.warehouse import landing, sources
from tasks.warehouse.connection import fetch, transaction, writing
from tasks.warehouse.registry import cards, champion


@pytest.fixture
def recording(tmp_path, drawn_executions):
    folder = tmp_path / "recording"
    folder.mkdir()
    for number in (9999, 10000, 10001):
        shutil.copy(drawn_executions(nodes=1, runs=1, seed=number), folder / f"executions-{number}.parquet")
    return folder


def test_the_batches_that_are_there_are_read_once_a_call_and_not_once_a_part(tmp_path, recording, monkeypatch):
    calls = []
    batches = landing.batches
    monkeypatch.setattr(landing, "batches", lambda *asked: calls.append(asked) or batches(*asked))
    ids = land_recording(str(recording), str(tmp_path / "landing"), "fleet", 18)
    assert len(set(ids)) == 3
    assert len(calls) == 1
    assert land_recording(str(recording), str(tmp_path / "landing"), "fleet", 18) == ids
    assert len(calls) == 2
    landed = batches(str(tmp_path / "landing"), "nodes")
    assert [batch.batch_id for batch in landed] == ids
    names = [f"executions-{number}.parquet" for number in (9999, 10000, 10001)]
    assert [batch.origin.path.rpartition("/")[2] for batch in landed] == names


QUICK = ScoreParams(resamples=100)
TABLES = ("fingerprints", "fingerprint_scores", "fingerprintings")


def asked(warehouse):
    return steps.fingerprint(warehouse, "log", QUICK)


def test_a_model_learns_the_first_executions_of_each_node_and_is_measured_on_the_last(trained_log):
    card, model = trained_in_use(trained_log, "log")
    rows = fetch(
        trained_log,
        "SELECT execution_id, row_number() OVER own AS place FROM nodes.executions WHERE source = 'log' "
        "WINDOW own AS (PARTITION BY node, benchmark ORDER BY started_at, execution_id)",
    )
    learned, chosen = rows["execution_id"].isin(model.learned), rows["execution_id"].isin(model.validation)
    assert rows["place"][learned].max() == 12  # of 20: 60 %
    assert set(rows["place"][chosen]) == {13, 14, 15, 16}
    assert not model.learned & model.validation
    assert {"error_ratio", "mse_own", "type_accuracy", "score_spearman"} <= set(card.metrics)


def test_executions_that_the_detector_flags_are_in_no_score(trained_log):
    sql = "SELECT sum(n_executions) AS n FROM nodes.fingerprint_scores WHERE aspect = 'all'"
    before = fetch(trained_log, sql)["n"].iloc[0]
    with writing(trained_log) as connection, transaction(connection):
        connection.execute("UPDATE nodes.executions SET is_stressed = NULL")
        connection.execute("UPDATE nodes.verdicts SET is_flagged = ends_with(execution_id, '1')")
        connection.execute("UPDATE nodes.judgings SET key = 'another'")
    asked(trained_log)
    n_flagged = fetch(trained_log, "SELECT count(*) AS n FROM nodes.verdicts WHERE is_flagged")["n"].iloc[0]
    assert n_flagged > 0 and fetch(trained_log, sql)["n"].iloc[0] == 360 - n_flagged != before


def test_a_saved_model_gives_the_same_fingerprints_after_loading_and_is_not_asked_again(trained_log, monkeypatch):
    card, model = trained_in_use(trained_log, "log")
    again = load_trained(trained_log.models / "nodes" / card.model_id)
    history, _ = benchmarks_of(trained_log, "log", QUICK)
    nothing = np.zeros(len(history.executions), dtype=bool)
    one, other = (fingerprint(history, each, nothing, QUICK)[0] for each in (model, again))
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    first = asked(trained_log)
    monkeypatch.setattr("tasks.nodes.perona.fingerprints.fingerprint", lambda *_: pytest.fail("asked again"))
    assert asked(trained_log) == first


def test_a_broken_model_in_use_is_replaced(trained_log, train):
    broken = champion(trained_log.models, "nodes", "log", "fingerprint").model_id
    (trained_log.models / "nodes" / broken / "fingerprint.json").write_text("{}")
    with pytest.raises(BadInput, match="train again"):
        trained_in_use(trained_log, "log")
    assert train(trained_log, run_id="another", seed=5)["champion_id"] != broken


def test_the_next_training_takes_the_parameters_of_the_model_in_use_or_says_why_not(trained_log):
    """A model of another version may have parameters that this one does not know: that is one line, not a traceback."""
    card = champion(trained_log.models, "nodes", "log", "fingerprint")
    assert steps.in_use(trained_log, "log") == card.parameters["model"]
    file = trained_log.models / "nodes" / card.model_id / "model.json"
    content = json.loads(file.read_text())
    content["parameters"]["model"]["network"]["widened"] = 2
    file.write_text(json.dumps(content))
    with pytest.raises(BadInput, match=r"network\.widened: .*train with 'whorl nodes train --fresh'"):
        steps.in_use(trained_log, "log")


def test_too_few_executions_are_one_line(trained_log, train):
    with writing(trained_log) as connection, transaction(connection):
        connection.execute(
            "DELETE FROM nodes.executions WHERE source = 'log' AND execution_id NOT IN "
            "(SELECT min(execution_id) FROM nodes.executions GROUP BY node, benchmark)"
        )
    with pytest.raises(BadInput, match="none is left to"):
        train(trained_log, run_id="few", seed=1)


class Stopped(Exception):
    """In place of a kill."""


def stopping(*_, **__):
    raise Stopped


def in_use(warehouse):
    return champion(warehouse.models, "nodes", "log", "fingerprint").model_id


def test_a_training_that_was_stopped_before_its_model_was_used_uses_it_the_next_time(trained_log, train, monkeypatch):
    before, n_models = in_use(trained_log), len(cards(trained_log.models))
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr("tasks.nodes.perona.fingerprints.promote_if_better", stopping)
        train(trained_log, run_id="another", seed=5)
    assert in_use(trained_log) == before and len(cards(trained_log.models)) == n_models + 1
    values = iter((0.5, 0.9, 0.8))  # of the new one; of the present one and the new one on the same executions
    monkeypatch.setattr("tasks.nodes.perona.fingerprints.figures_of", lambda *_: {"error_ratio": next(values)})
    told = train(trained_log, run_id="another", seed=5)
    assert told["champion_id"] == told["model_id"] == in_use(trained_log)
    assert len(cards(trained_log.models)) == n_models + 1


def test_a_training_that_was_stopped_while_it_wrote_leaves_no_half_model(trained_log, train, monkeypatch):
    before = [card.model_id for card in cards(trained_log.models)]
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr("tasks.nodes.perona.fingerprints.save_network", stopping)
        train(trained_log, run_id="another", seed=5)
    assert [card.model_id for card in cards(trained_log.models)] == before
    assert {path.name for path in (trained_log.models / "nodes").iterdir() if path.is_dir()} == set(before)


def test_a_fingerprinting_that_was_stopped_while_it_wrote_leaves_what_was_there(trained_log, monkeypatch):
    def tables():
        every = "SELECT own::TEXT AS told FROM nodes.{} AS own ORDER BY 1"
        return [fetch(trained_log, every.format(name))["told"].tolist() for name in TABLES]

    before, own = tables(), sources.insert_rows

    def inserting(connection, table, *given):
        if table == "nodes.fingerprintings":
            raise Stopped
        own(connection, table, *given)

    other = ScoreParams(resamples=101)  # what stands there rests on others
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(sources, "insert_rows", inserting)
        steps.fingerprint(trained_log, "log", other)
    assert tables() == before and before[0]
    assert steps.fingerprint(trained_log, "log", other)["n_fingerprints"] == 360


def test_a_source_without_a_model_says_how_to_get_one(nodes_log):
    with pytest.raises(NotFound, match="no trained model of nodes yet; make one with whorl nodes train --source log"):
        asked(nodes_log)
