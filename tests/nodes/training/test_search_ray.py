"""The search through Ray Tune: as many trials as are asked for, the journal kept, and one line if Ray is not there."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.errors import BadSetting, MissingTool, WhorlError
from tasks.nodes.perona import search as search_module
from tasks.nodes.perona.params import RAY_SETTING, WITHOUT_RAY, SearchParams
from tasks.nodes.perona.search import search, space_of
from tasks.ray_address import check_ray, connected

FEW = SearchParams(n_trials=4, warm_up_trials=2, grace_epochs=2, concurrency=2)

NAMED = {"setting": RAY_SETTING, "otherwise": WITHOUT_RAY}

KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from conftest import draw_inputs, small_params, split
from ray.tune.search.optuna import OptunaSearch
from tasks.nodes.perona.search import search
from tasks.nodes.perona.params import SearchParams

own, n_done = OptunaSearch.on_trial_complete, 0

def complete(self, *arguments, **named):
    global n_done
    own(self, *arguments, **named)
    n_done += 1
    if n_done == 2:
        os.kill(os.getpid(), signal.SIGKILL)

OptunaSearch.on_trial_complete = complete
train, validation, _ = split(draw_inputs())
search(train, validation, small_params(epochs=3), SearchParams.model_validate_json({search!r}),
       journal=Path({journal!r}))
"""


def unused_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_that_does_not_answer_is_one_line(parts, quick, scheme):
    address = f"{scheme}127.0.0.1:{unused_port()}"
    with pytest.raises(WhorlError) as caught:
        search(*parts[:2], quick(), FEW.model_copy(update={"ray_address": address}))
    message = str(caught.value)
    assert message.startswith(f"search.ray_address '{address}': nothing answers at 127.0.0.1:")
    assert message.endswith("start it with `ray start --head`, or set search.runner to `here`")
    assert "\n" not in message


@pytest.mark.parametrize("address", ["head", "head:ray", "ray://", "head:99999"])
def test_what_is_no_address_is_one_line(address):
    with pytest.raises(BadSetting, match=r"^search.ray_address '.*': not an address; expected a running Ray"):
        check_ray(address, **NAMED)


def test_an_address_that_answers_is_taken_and_local_is_not_looked_for():
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_ray(f"127.0.0.1:{server.getsockname()[1]}", **NAMED)
    check_ray("local", **NAMED)


def test_a_ray_that_is_not_installed_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingTool, match="the Python package ray is not installed; install it"):
        with connected("local", 2, **NAMED):
            pass


def test_a_ray_that_does_not_start_is_one_line(monkeypatch):
    class Broken:
        @staticmethod
        def is_initialized():
            return False

        @staticmethod
        def init(**_):
            raise ConnectionError("no head\nmany lines")

    monkeypatch.setitem(sys.modules, "ray", Broken)
    with pytest.raises(BadSetting, match=r"Ray does not start there \(no head\); expected"):
        with connected("local", 2, **NAMED):
            pass


@pytest.mark.slow
def test_trials_on_ray_are_those_asked_for_and_a_search_begun_without_it_goes_on_there(parts, quick, tmp_path):
    pytest.importorskip("ray")
    import ray

    journal = tmp_path / "journal.log"
    here = search(
        *parts[:2], quick(epochs=3), FEW.model_copy(update={"runner": "here", "n_trials": 2}), journal=journal
    )
    found = search(*parts[:2], quick(epochs=3), FEW, journal=journal)
    assert (found.n_resumed, len(found.trials)) == (2, 4)
    assert found.trials["validation_loss"].iloc[:2].tolist() == here.trials["validation_loss"].tolist()
    assert found.validation_loss == found.trials["validation_loss"].min()
    for name, choices in space_of(found.best).items():
        assert set(found.trials[name]) <= set(choices)
    assert set(found.trials["epochs"]) <= {1, 2, 3}  # the grace is at most half of the passes
    assert not ray.is_initialized()
    assert [path.name for path in tmp_path.iterdir()] == ["journal.log"]


@pytest.mark.slow
def test_a_search_on_ray_that_was_killed_goes_on_from_its_journal(parts, quick, tmp_path):
    pytest.importorskip("ray")
    journal, six = tmp_path / "journal.log", FEW.model_copy(update={"n_trials": 6})
    script = KILLED.format(tests=str(Path(__file__).parent), search=six.model_dump_json(), journal=str(journal))
    root = Path(search_module.__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    told = tmp_path / "told.txt"
    with told.open("w") as out:  # not a pipe, which processes of Ray may hold open
        killed = subprocess.run([sys.executable, "-c", script], env=environment, stdout=out, stderr=out)
    assert killed.returncode == -signal.SIGKILL, told.read_text()
    found = search(*parts[:2], quick(epochs=3), six, journal=journal)
    assert (found.n_resumed, len(found.trials)) == (2, 6)
