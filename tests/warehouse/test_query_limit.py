"""The time limit of a query: nobody waits for a question that somebody forgot."""

import threading
import time

import pytest

from tasks.errors import BadInput
from tasks.settings import Settings
from tasks.warehouse.connection import writing
from tasks.warehouse.query import ask

ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range, b.range) = 1"
MANY_ROWS = "SELECT a.range FROM range(1000000000) a, range(1000000000) b"


@pytest.mark.parametrize("sql", [ENDLESS, MANY_ROWS])
def test_a_query_beyond_its_limit_is_stopped_with_one_clear_line(warehouse, sql):
    with pytest.raises(BadInput) as error:
        ask(warehouse, sql, limit_s=0.05)
    assert str(error.value) == (
        "query: stopped after 0.05 s, its time limit: whoever wants to write waits for it; expected an answer within "
        "that time; ask for less, or allow more with --limit-s or whorl.query_limit_s (0: no limit)"
    )


def test_a_writer_gets_its_turn_when_a_query_was_stopped(warehouse):
    patient = warehouse.model_copy(update={"lock_wait_s": 60})
    told = []

    def forget():
        try:
            ask(patient, ENDLESS, limit_s=0.3)
        except BadInput as error:
            told.append(error)

    forgotten = threading.Thread(target=forget)
    forgotten.start()
    with writing(patient) as connection:
        connection.execute("INSERT INTO ops.machines VALUES ('log', 'node', 'big')")
    forgotten.join()
    assert len(told) == 1


def test_without_a_limit_a_query_takes_its_time(warehouse):
    assert ask(warehouse, "SELECT count(*) AS n FROM range(3000000)", limit_s=0).rows.to_pylist() == [{"n": 3_000_000}]


def test_the_shipped_limit_lets_a_writer_wait_for_it(warehouse):
    """Else a writer would give up while a query is still allowed to go on."""
    common = Settings().whorl
    assert 0 < common.query_limit_s < common.lock_wait_s


def test_the_connection_is_closed_after_a_stop(warehouse):
    with pytest.raises(BadInput, match="its time limit"):
        ask(warehouse, ENDLESS, limit_s=0.01)
    begun = time.monotonic()
    with writing(warehouse):
        assert time.monotonic() - begun < warehouse.lock_wait_s
