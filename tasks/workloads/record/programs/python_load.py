"""A load that is a Python process of its own: a script of `loads`, run by this Python, told its options as JSON."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tasks.workloads.record.programs.place import Place

LOADS = Path(__file__).parent / "loads"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def spawn_python(
    place: Place, script: str, options: Mapping[str, str | int | float], *, threads: int = 1
) -> "subprocess.Popen[bytes]":
    """Start a script under the name `load`. threads: what numpy and torch may use."""
    told = json.dumps({"seed": place.seed, "threads": threads, **options})
    # -P: the folder of the scripts is no place to import from
    command = [sys.executable, "-P", "-B", str(LOADS / f"{script}.py"), told]
    environment = dict.fromkeys(THREADS, str(threads))
    return place.spawn(command, name="load", reads_all=True, environment=environment)
