"""Whatever is stopped in the middle: nothing is lost, nothing stands there half, and the next call goes on."""

import pytest
from tasks.nodes.learned import rows

from tasks.nodes import learned_steps
from tasks.nodes.detect.params import AlarmParams
from tasks.nodes.perona.params import FingerprintParams
from tasks.nodes.perona.trained import Compared, Measured
from tasks.nodes.score_params import ScoreParams
from tasks.warehouse.connection import fetch
from tasks.warehouse.registry import cards, champion

EAGER = AlarmParams(threshold=0.001, flagged=2, last=2, min_executions=2, confirm=500)  # what is judged at all alarms
NOTHING = Measured({}, "error_ratio")


class Stopped(Exception):
    """In place of a kill."""


def stopping(*_, **__):
    raise Stopped


def in_use(warehouse):
    return champion(warehouse.models, "nodes", "log", "fingerprint").model_id


def test_a_training_that_was_stopped_before_its_model_was_used_uses_it_the_next_time(trained_log, train, monkeypatch):
    before, n_models = in_use(trained_log), len(cards(trained_log.models))
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr("tasks.nodes.perona.trained.promote_if_better", stopping)
        train(trained_log, run_id="another", seed=5)
    assert in_use(trained_log) == before and len(cards(trained_log.models)) == n_models + 1
    found = Compared(NOTHING, NOTHING, 0, can_old=False, can_new=True)
    monkeypatch.setattr("tasks.nodes.perona.trained.compared", lambda *_: found)
    told = train(trained_log, run_id="another", seed=5)
    assert told["champion_id"] == told["model_id"] == in_use(trained_log)
    assert len(cards(trained_log.models)) == n_models + 1


def test_a_training_that_was_stopped_while_it_wrote_leaves_no_half_model(trained_log, train, monkeypatch):
    before = [card.model_id for card in cards(trained_log.models)]
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr("tasks.nodes.perona.trained.save_network", stopping)
        train(trained_log, run_id="another", seed=5)
    assert [card.model_id for card in cards(trained_log.models)] == before
    assert {path.name for path in (trained_log.models / "nodes").iterdir() if path.is_dir()} == set(before)


def test_a_fingerprinting_that_was_stopped_while_it_wrote_leaves_what_was_there(trained_log, monkeypatch):
    def tables():
        every = "SELECT own::TEXT AS told FROM nodes.{} AS own ORDER BY 1"
        return [fetch(trained_log, every.format(name))["told"].tolist() for name in rows.TABLES]

    before, own = tables(), rows.insert_rows

    def inserting(connection, table, *given):
        if table == "nodes.fingerprintings":
            raise Stopped
        own(connection, table, *given)

    other = ScoreParams(resamples=101)  # what stands there rests on others
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(rows, "insert_rows", inserting)
        learned_steps.fingerprint(trained_log, "log", FingerprintParams(), other)
    assert tables() == before and before[0]
    assert learned_steps.fingerprint(trained_log, "log", FingerprintParams(), other)["n_fingerprints"] == 360


def test_a_watch_that_was_stopped_before_its_alarms_raises_them_the_next_time(trained_log, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr("tasks.warehouse.alarms.raise_alarms", stopping)
        learned_steps.watch(trained_log, "log", EAGER, "")
    assert fetch(trained_log, "SELECT count(*) AS n FROM ops.alarms")["n"].iloc[0] == 0
    found = learned_steps.watch(trained_log, "log", EAGER, "")
    assert found["alarms"] and found["suspected"]
    again = learned_steps.watch(trained_log, "log", EAGER, "")
    assert again["alarms"] == found["alarms"]  # nobody was told of them yet
