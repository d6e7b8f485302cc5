"""A real Prometheus that scrapes a real node exporter, both on loopback, from Debian's packages."""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress

import httpx
import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.intake import read_file
from tasks.workloads.reading_params import PrometheusParams, ReadParams, RegularParams

PROGRAMS = ("prometheus", "prometheus-node-exporter")
DEADLINE_S = 60
CONFIG = """global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
- job_name: node
  static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""

pytestmark = pytest.mark.slow


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def running(command, folder):
    """A program as an unprivileged user, stopped again in any case."""
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **user) as process:
        try:
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a Prometheus that has scraped for some seconds."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        pytest.skip(f"needs {', '.join(missing)} (apt-get install {' '.join(missing)})")
    if sys.platform != "linux":
        pytest.skip("needs Linux")
    folder = tmp_path_factory.mktemp("prometheus")
    for part in (folder, *list(folder.parents)[:2]):
        part.chmod(0o755)
    (folder / "data").mkdir()
    (folder / "data").chmod(0o777)
    exporter, port = free_port(), free_port()
    (folder / "p.yml").write_text(CONFIG.format(port=exporter))
    (folder / "p.yml").chmod(0o644)
    with ExitStack() as stack:
        stack.enter_context(running([PROGRAMS[1], f"--web.listen-address=127.0.0.1:{exporter}"], folder))
        command = [
            "prometheus",
            "--config.file=p.yml",
            "--storage.tsdb.path=data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        stack.enter_context(running(command, folder))
        url = f"http://127.0.0.1:{port}"
        wait_for_samples(url, 8)
        yield url


def wait_for_samples(url, n_samples):
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        with suppress(httpx.HTTPError, KeyError, IndexError, ValueError):
            asked = {"query": 'count_over_time(up{job="node"}[1m])'}
            found = httpx.get(f"{url}/api/v1/query", params=asked, trust_env=False).json()["data"]["result"]
            if int(found[0]["value"][1]) >= n_samples:
                return
        time.sleep(0.2)
    pytest.fail(f"no sample within {DEADLINE_S} s")


def read(url, **params):
    asked = PrometheusParams(match=['{job="node"}'], last_s=5, **params)
    return read_file(url, ReadParams(prometheus=asked, regular=RegularParams(min_samples=1)))


def test_the_counters_of_a_real_machine_arrive_as_rates(server):
    (run,), refused = read(server)
    told = run.telemetry
    assert (told.interval_s, len(refused), told.n_samples) == (1.0, 0, 6)
    assert len(told.names) > 200
    kinds = {one.name: one.is_rate for one in told.counters}
    assert (kinds["node_cpu_seconds.cpu_0.mode_idle"], kinds["node_memory_memfree_bytes"]) == (True, False)
    cores = [at for at, name in enumerate(told.names) if name.startswith("node_cpu_seconds.cpu_0.")]
    assert np.nanmax(told.values[:, cores].sum(axis=1)) <= 2.5  # a core is busy or idle for a second a second
    assert np.nanmin(told.values[:, cores]) >= 0


def test_parts_of_a_range_are_the_range(server):
    end = str(int(time.time()) - 1)
    (whole,), _ = read(server, end=end, step_s=1)
    (parts,), _ = read(server, end=end, step_s=1, max_points=1000)
    assert np.array_equal(whole.telemetry.values, parts.telemetry.values, equal_nan=True)


def test_a_broken_selector_is_told_in_the_servers_words(server):
    with pytest.raises(BadInput, match=r"the server refuses the question \(.*parse error"):
        read_file(server, ReadParams(prometheus=PrometheusParams(match=["{job=node}"], last_s=5)))
