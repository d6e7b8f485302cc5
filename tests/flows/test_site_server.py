"""The site over HTTP: for those alone who show the key, and nothing but its own files."""

import base64
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.engine.serving import serving_site
from tasks.warehouse.place import Warehouse

KEY = "whorl:a-secret"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "index.html").write_text("<p>hello")
    (reports / ".hidden.html").write_text("no")
    (tmp_path / "api.key").write_text(KEY)
    (reports / "link.html").symlink_to(tmp_path / "api.key")
    (reports / "data.parquet").write_text("no")
    with serving_site(Warehouse(home=tmp_path), KEY, "127.0.0.1", 0) as found:
        yield found


def answer(port: int, path: str, key: str | None = KEY) -> tuple[int, str, str]:
    """Status, text and content security policy."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if key:
        asked.add_header("Authorization", f"Basic {base64.b64encode(key.encode()).decode()}")
    try:
        with urllib.request.urlopen(asked, timeout=10) as told:
            return told.status, told.read().decode(), told.headers["Content-Security-Policy"]
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers["Content-Security-Policy"]


def test_who_shows_the_key_gets_the_index_under_a_strict_policy(port: int) -> None:
    status, text, policy = answer(port, "/")
    assert (status, text) == (200, "<p>hello")
    assert "script-src 'self';" in policy
    assert "unsafe-eval" not in policy


@pytest.mark.parametrize("key", [None, "whorl:other", "x"])
def test_nobody_else_gets_anything(port: int, key: str | None) -> None:
    for path in ("/", "/metrics", "/nothing"):
        assert answer(port, path, key)[0] == 401


@pytest.mark.parametrize(
    "path", ["/../api.key", "/%2e%2e/api.key", "/.hidden.html", "/link.html", "/data.parquet", "/none.html", "/%00"]
)
def test_nothing_but_pages_of_the_site_is_given_out(port: int, path: str) -> None:
    assert answer(port, path)[0] == 404


def test_metrics_are_there_before_there_is_a_warehouse(port: int) -> None:
    assert "whorl_up 0.0" in answer(port, "/metrics")[1]
