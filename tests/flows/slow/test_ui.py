"""Prefect's UI of a real `whorl serve` in a browser: it asks for the key, and draws the forms of the flows."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from flows.engine.servers import load_key
from tests.loopback import Quiet, listening
from tests.report.browser import CHROMIUM, browsing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)"),
]
SCREEN, MOST_SCREENS = 1080, 1.5
HEIGHT = "document.documentElement.scrollHeight"
SHOWN = "document.body?.innerText.includes('{}')"


def test_the_key_of_the_home_logs_in_and_no_other_and_a_form_fits_on_a_screen_and_a_half(
    served: Any, tmp_path: Path
) -> None:
    page = served.url.removesuffix("/api")
    form = f"{page}/deployments/deployment/{served.deployment('jobs-train')['id']}/run"
    with browsing(tmp_path) as browser:
        browser.open(page, ready="document.querySelector('input') !== null")
        browser.type_into("input", "whorl:another-key\r")
        browser.until(SHOWN.format("Invalid credentials"))
        browser.type_into("input", f"{load_key(served.home)}\r")
        browser.until("location.pathname.endsWith('/dashboard')")
        browser.open(form, height=SCREEN, ready=SHOWN.format("Expert"))
        assert browser.evaluate(HEIGHT) <= MOST_SCREENS * SCREEN


def test_pages_of_the_ui_ask_no_other_server(served: Any, tmp_path: Path) -> None:
    asked: list[str] = []

    class Other(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

    with browsing(tmp_path) as browser, listening(Other) as other:
        browser.open(served.url.removesuffix("/api"), ready="document.querySelector('input') !== null")
        fetched = f"fetch('http://127.0.0.1:{other.server_port}/count').then(() => 'asked', () => 'refused')"
        assert browser.evaluate(fetched) == "refused"
        assert browser.evaluate(f"fetch('{served.url}/health').then((answer) => answer.text())") == "true"
    assert asked == []
