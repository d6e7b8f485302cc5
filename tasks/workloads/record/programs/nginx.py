"""nginx and static files under wrk."""

import random
import subprocess

from tasks.workloads.record.programs.place import Place
from tasks.workloads.record.programs.program import Input
from tasks.workloads.record.programs.service import Service
from tasks.workloads.record.programs.web import NGINX, WRK, start_nginx, start_wrk

SMALL_FILES, SMALL_BYTES = 400, (1_000, 16_000)
LARGE_FILES, LARGE_BYTES = 40, (500_000, 2_000_000)
FILES_SEED = 7


class Nginx(Service):
    """Two workers; an access log is written, as on a real server."""

    name = "nginx"
    title = "nginx: static files under wrk"
    kin = "redis"
    needs = (NGINX, WRK)
    inputs = (
        Input(
            "small",
            {"connections": 4, "pause_ms": 1, "files": "small", "n_files": SMALL_FILES},
            "4 connections that pause 1 ms on average, 400 files of 1 to 16 kB",
        ),
        Input(
            "large",
            {"connections": 16, "files": "large", "n_files": LARGE_FILES},
            "16 connections without a pause, 40 files of 0.5 to 2 MB",
        ),
    )

    other_inputs = (
        Input(
            "crowd",
            {"connections": 16, "files": "small", "n_files": SMALL_FILES},
            "16 connections without a pause, 400 files of 1 to 16 kB",
        ),
        Input(
            "downloads",
            {"connections": 2, "pause_ms": 30, "files": "large", "n_files": LARGE_FILES},
            "2 connections that pause 30 ms on average, 40 files of 0.5 to 2 MB",
        ),
    )

    def fill(self, place: Place) -> None:
        """Write the files."""
        rng = random.Random(FILES_SEED)
        for kind, n_files, size in (("small", SMALL_FILES, SMALL_BYTES), ("large", LARGE_FILES, LARGE_BYTES)):
            folder = place.folder / "www" / kind
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(n_files):
                (folder / f"{number}.html").write_bytes(rng.randbytes(rng.randint(*size)))
        place.give(place.folder / "www")

    def start(self, place: Place) -> None:
        """Start nginx over the files."""
        place.remember("port", start_nginx(self.name, place, root=str(place.folder / "www")))

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start wrk on random files."""
        pages = [f"/{input.options['files']}/{number}.html" for number in range(int(input.options["n_files"]))]
        return start_wrk(place, input, place.recall("port"), pages)
