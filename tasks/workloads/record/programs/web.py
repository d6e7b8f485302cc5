"""What the two web workloads share: nginx's settings, and wrk with a list of pages."""

import signal
import subprocess
from collections.abc import Sequence

from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import LOOPBACK, Place
from tasks.workloads.record.programs.program import Input
from tasks.workloads.record.programs.service import LONGEST_S, wait_until_it_listens

NGINX = Need(("nginx",), "nginx-light")
WRK = Need(("wrk",), "wrk")
TIMEOUT_S = 20
SETTINGS = """
daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 256; }}
http {{
    default_type application/octet-stream;
    types {{ text/html html; text/css css; application/javascript js; }}
    access_log {folder}/access.log;
    sendfile on;
    client_body_temp_path {folder}/nginx-body;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    proxy_temp_path {folder}/nginx-proxy;
    scgi_temp_path {folder}/nginx-scgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    server {{
        listen {address}:{port};
        root {root};
{locations}
    }}
}}
"""
# every thread of wrk draws its own pages; a mean pause of 0 asks for the next page at once
VISITORS = """
local pages = {{ {pages} }}
local threads = 0
function setup(thread) thread:set("number", threads); threads = threads + 1 end
function init(args) math.randomseed({seed} * 1000 + number) end
function request() return wrk.format("GET", pages[math.random(#pages)]) end
{delay}
"""
DELAY = "function delay() return math.random(0, {most_ms}) end"


def start_nginx(workload: str, place: Place, *, root: str, locations: str = "") -> int:
    """Start nginx over a folder of the place and wait until it listens. Returns its port."""
    port = place.free_port()
    text = SETTINGS.format(folder=place.folder, address=LOOPBACK, port=port, root=root, locations=locations)
    settings = place.write("nginx.conf", text)
    command = [NGINX.path(), "-e", "stderr", "-p", str(place.folder), "-c", str(settings)]
    # SIGTERM: the master must live long enough to end its workers
    server = place.spawn(command, name="nginx", first_signal=signal.SIGTERM)
    wait_until_it_listens(workload, place, "nginx", server, port)
    return port


def start_wrk(place: Place, input: Input, port: int, pages: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start wrk on random pages, one thread: `connections` and the mean `pause_ms` before a request are options."""
    pause_ms = int(input.options.get("pause_ms", 0))
    delay = DELAY.format(most_ms=2 * pause_ms) if pause_ms else ""
    listed = ", ".join(f'"{page}"' for page in pages)
    script = place.write("visitors.lua", VISITORS.format(pages=listed, seed=place.seed, delay=delay))
    size = [f"-c{input.options['connections']}", "-t1", f"-d{LONGEST_S}s"]
    url = f"http://{LOOPBACK}:{port}/"
    return place.spawn([WRK.path(), *size, f"--timeout={TIMEOUT_S}s", "-s", str(script), url], name="load")
