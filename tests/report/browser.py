"""A headless Chromium that tests steer over its own protocol: what a page logs, asks for, measures and shows."""

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--remote-debugging-port=0", "--disable-dev-shm-usage"),
    *("--allow-file-access-from-files", "--remote-allow-origins=*"),
)
SETTLED_S = 1.0  # charts are drawn late, and move what is below them
START_S, WAIT_S = 60.0, 30.0
# Every text that is seen: the contrast of its colour with what lies behind it (WCAG 2.1), the least of all.
CONTRAST = """(() => {
  const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } return "rgb(255,255,255)"; };
  let least = [21, ""];
  for (const e of document.querySelectorAll("body *")) {
    if (e.closest("svg, .hidden, .skip, script, noscript, button:disabled") || !e.getClientRects().length) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < least[0]) least = [ratio, e.tagName + " " + e.className + ": " + e.textContent.slice(0, 40)];
  }
  return least;
})()"""  # noqa: E501
READY = "document.body && document.body.dataset.ready === 'yes'"  # a page of the site
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


class Browser:
    """One page. logged: errors of its console; asked: addresses that it asked for."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket, self.number, self.logged, self.asked = socket, 0, list[str](), list[str]()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """What the browser answers."""
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            told = json.loads(self.socket.recv(timeout=WAIT_S))
            self._note(told)
            if told.get("id") == self.number:
                assert "error" not in told, told
                return dict(told["result"])

    def _note(self, told: dict[str, Any]) -> None:
        params = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            self.logged.append(json.dumps(params["exceptionDetails"])[:600])
        elif told.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.logged.append(json.dumps(params["args"])[:600])
        elif told.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.logged.append(params["entry"]["text"][:600])
        elif told.get("method") == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])

    def evaluate(self, script: str) -> Any:
        """The value of a script, waited for."""
        told = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def open(
        self, address: str, *, width: int = 1280, height: int = 800, scheme: str = "light", ready: str = READY
    ) -> None:
        """Go to an address, and wait until the page is made: what holds of it then."""
        self.logged.clear()
        self.asked.clear()
        is_phone = width < 600
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=is_phone
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.until(ready)

    def type_into(self, of: str, text: str) -> None:
        """Type over what stands in a field. of: selects it; a return at the end is the key."""
        self.evaluate(f"document.querySelector({json.dumps(of)}).select()")
        self.call("Input.insertText", text=text.rstrip("\r"))
        for kind in ("keyDown", "keyUp") if text.endswith("\r") else ():
            self.call("Input.dispatchKeyEvent", type=kind, key="Enter", windowsVirtualKeyCode=13, text="\r")

    def until(self, claim: str) -> None:
        """Wait until a claim about the page holds."""
        deadline = time.monotonic() + WAIT_S
        while not self._holds(claim):
            assert time.monotonic() < deadline, f"{claim}: not so after {WAIT_S} s; {self.logged}"
            time.sleep(0.05)

    def _holds(self, claim: str) -> bool:
        """Whether a claim holds; not while the page goes elsewhere."""
        try:
            return bool(self.evaluate(claim))
        except AssertionError as error:
            if "navigated" in str(error) or "context" in str(error):
                return False
            raise

    def draw_all(self) -> int:
        """Open all parts, wait for their charts; gives how many there are."""
        self.evaluate("for (const e of document.querySelectorAll('details.part')) { e.fill(); e.open = true; }")
        self.evaluate("for (const e of document.querySelectorAll('.chart')) e.scrollIntoView()")
        self.evaluate(
            "(async () => { for (const e of document.querySelectorAll('.chart')) { e.scrollIntoView();"
            " for (let i = 0; i < 100 && !e.querySelector('svg'); i++)"
            " await new Promise((r) => setTimeout(r, 30)); } })()"
        )
        return int(self.evaluate("document.querySelectorAll('.chart svg').length"))

    def picture(self, path: Path, *, is_whole: bool = True, of: str = "") -> None:
        """Keep what is seen as an image; of: selects one element."""
        more: dict[str, Any] = {}
        if of:
            asked = (
                f"(({{ x, y, width, height }}) => ({{x: x + scrollX, y: y + scrollY, width, height, scale: 1}}))"
                f"(document.querySelector({json.dumps(of)}).getBoundingClientRect())"
            )
            self.evaluate("document.documentElement.style.scrollbarWidth = 'none'")  # a whole page has none: lines move
            time.sleep(SETTLED_S)
            place = self.evaluate(asked)
            more = {"clip": place}
        told = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=is_whole, **more)
        path.write_bytes(base64.b64decode(told["data"]))


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser for the duration of the block; folder: for its profile."""
    assert CHROMIUM is not None
    process = subprocess.Popen(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        place, deadline = folder / "DevToolsActivePort", time.monotonic() + START_S
        while not (place.exists() and place.read_text().count("\n")):
            assert process.poll() is None and time.monotonic() < deadline, "chromium does not start"
            time.sleep(0.05)
        import urllib.request

        port = place.read_text().splitlines()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=WAIT_S) as answer:
            [page] = [one for one in json.load(answer) if one["type"] == "page"]
        with connect(page["webSocketDebuggerUrl"], max_size=None, proxy=None) as socket:
            yield Browser(socket)
    finally:
        process.terminate()
        process.wait()
