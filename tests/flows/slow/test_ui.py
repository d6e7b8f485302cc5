"""Prefect's UI of a real `whorl serve` in a browser: it asks for the key, and draws the forms of the flows."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from flows.engine.deploying import read_deployments
from flows.engine.servers import load_key
from tests.loopback import Quiet, listening
from tests.report.browser import CHROMIUM, browsing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)"),
]
WIDTH, SCREEN, MOST_SCREENS = 1920, 1080, 1.5
HEIGHT = "Math.max(...[...document.querySelectorAll('*')].map((part) => part.scrollHeight))"  # a page scrolls inside
SHOWN = "document.body?.innerText.includes('{}')"


def test_the_key_of_the_home_logs_in_and_no_other_and_each_form_fits_on_a_screen_and_a_half(
    served: Any, tmp_path: Path
) -> None:
    page = served.url.removesuffix("/api")
    with browsing(tmp_path) as browser:
        browser.open(page, ready="document.querySelector('input') !== null")
        browser.type_into("input", "whorl:another-key\r")
        browser.until(SHOWN.format("Invalid credentials"))
        browser.type_into("input", f"{load_key(served.home)}\r")
        browser.until("location.pathname.endsWith('/dashboard')")
        heights = {}
        for name in (entry.name for entry in read_deployments()):
            form = f"{page}/deployments/deployment/{served.deployment(name)['id']}/run"
            browser.open(form, width=WIDTH, height=SCREEN, ready=SHOWN.format("Expert"))
            heights[name] = browser.evaluate(HEIGHT)
        assert {name: height for name, height in heights.items() if height > MOST_SCREENS * SCREEN} == {}


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
