"""`whorl serve` before anything is started: what it refuses, in one line."""

import os
import socket
from pathlib import Path

import pytest

from flows.serve import serve
from flows.server_file import NoServer, server_file, write_server_file
from tasks.settings import Settings


def settings_of(home: Path, port: int = 4200) -> Settings:
    return Settings.model_validate({"whorl": {"home": str(home), "port": port}})


def test_a_home_is_served_once(tmp_path: Path) -> None:
    write_server_file(tmp_path, "http://127.0.0.1:4200/api", os.getpid())
    expected = rf"{tmp_path}: process {os.getpid()} serves it already at http://127.0.0.1:4200/api; stop that one first"
    with pytest.raises(NoServer, match=expected):
        serve(settings_of(tmp_path))
    assert server_file(tmp_path).exists()


def test_a_taken_port_is_named_with_the_way_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(NoServer, match=rf"port {port} of 127.0.0.1 is taken .*whorl.port"):
            serve(settings_of(tmp_path, port))
    assert not server_file(tmp_path).exists()


def test_a_server_that_ends_at_once_is_told_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    command = [sys.executable, "-c", "print('no module named prefect'); raise SystemExit(3)"]
    monkeypatch.setattr("flows.serve._server_command", lambda port: command)
    said: list[str] = []
    with pytest.raises(NoServer, match=r"Prefect's server ended: no module named prefect \(log: .*server.log\)"):
        serve(settings_of(tmp_path), port=0, say=said.append)
    assert not server_file(tmp_path).exists()
