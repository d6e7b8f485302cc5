"""A Ray that does not answer, or is not there, is one line that names the setting."""

import socket
import sys

import pytest

from tasks.errors import BadSetting, MissingTool
from tasks.ray_address import check_ray, connected

NAMED = {"setting": "search.ray_address", "otherwise": "leave it empty"}


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
