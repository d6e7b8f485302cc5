"""The site of a home over HTTP, and its metrics: for those alone who show its key. Nothing here imports prefect."""

import base64
import hmac
import http.server
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tasks.errors import WhorlError
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".png": "image/png", ".md": "text/plain"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "frame-ancestors 'none'"
)
METRICS = "text/plain; version=0.0.4"


@contextmanager
def serving_site(warehouse: Warehouse, key: str, host: str, port: int) -> Iterator[int]:
    """Serve reports/ and /metrics in a thread for the duration of the block; gives the port. key: user:secret."""
    folder, wanted = warehouse.home / "reports", f"Basic {base64.b64encode(key.encode()).decode()}"

    class Handler(http.server.BaseHTTPRequestHandler):
        """One request; nothing outside the folder, and no kind of file that pages do not need."""

        server_version, sys_version = "whorl", ""

        def do_GET(self) -> None:
            shown = self.headers.get("Authorization", "")
            if not hmac.compare_digest(shown.encode(), wanted.encode()):
                self._answer(HTTPStatus.UNAUTHORIZED, b"log in with the line in api.key of the home folder\n")
            elif urlsplit(self.path).path == "/metrics":
                self._metrics()
            elif (path := _file(folder, self.path)) is None:
                self._answer(HTTPStatus.NOT_FOUND, b"no such page; whorl report writes them\n")
            else:
                self._answer(HTTPStatus.OK, path.read_bytes(), KINDS[path.suffix])

        do_HEAD = do_GET  # noqa: N815

        def _metrics(self) -> None:
            from tasks.report.metrics import metrics_text

            try:
                self._answer(HTTPStatus.OK, metrics_text(warehouse), METRICS)
            except WhorlError as error:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{error}\n".encode())

        def _answer(self, status: HTTPStatus, content: bytes, kind: str = "text/plain") -> None:
            self.send_response(status)
            if status == HTTPStatus.UNAUTHORIZED:
                self.send_header("WWW-Authenticate", 'Basic realm="whorl", charset="UTF-8"')
            self.send_header("Content-Type", f"{kind}; charset=utf-8" if kind.startswith("text/") else kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-cache")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            logger.debug(format, *args)

    server = http.server.ThreadingHTTPServer((host, port), Handler)
    thread = threading.Thread(target=server.serve_forever, name="site", daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _file(folder: Path, address: str) -> Path | None:
    """The file of the site that an address names; None for any other. The first page is the index."""
    name = unquote(urlsplit(address).path).lstrip("/") or "index.html"
    if any(part.startswith(".") for part in name.split("/")) or "\0" in name:
        return None
    path = (folder / name).resolve()
    is_ours = path.is_relative_to(folder.resolve()) and path.suffix in KINDS and path.is_file()
    return path if is_ours else None
