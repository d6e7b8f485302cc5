"""Web servers under wrk: nginx over files, and WordPress on PHP and MariaDB behind nginx."""

import random
import secrets
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from tasks.machine import PHP_FPM
from tasks.record.processes import LOOPBACK, free_port
from tasks.workloads.record.programs.program import (
    Client,
    Need,
    Options,
    Program,
    ProgramFailed,
    ProgramPlace,
    inputs_of,
    spawn_client,
)
from tasks.workloads.record.programs.stores import MariaDbServer

NGINX = Need(("nginx",), "nginx-light")
WRK = Need(("wrk",), "wrk")
TIMEOUT_S, URL = 20, "http://{address}:{port}/"
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
SMALL_FILES, SMALL_BYTES = 400, (1_000, 16_000)
LARGE_FILES, LARGE_BYTES = 40, (500_000, 2_000_000)
FILES_SEED = 7


class NginxServer(Program):
    """What a workload behind nginx can do: start it, and load it with wrk."""

    def start_nginx(self, place: ProgramPlace, *, root: str, locations: str = "") -> None:
        """Start nginx over a folder of the place and wait until it listens."""
        port = free_port()
        text = SETTINGS.format(folder=place.folder, address=LOOPBACK, port=port, root=root, locations=locations)
        place.write("nginx.conf", text)
        # SIGTERM: the master must live long enough to end its workers
        self.serve(place, NGINX, "-e stderr -p {folder} -c {folder}/nginx.conf", signal.SIGTERM, port=port)

    def start_wrk(self, place: ProgramPlace, options: Options, pages: Sequence[str]) -> Client:
        """Start wrk on random pages, one thread: `connections` and the mean `pause_ms` before a request are options."""
        pause_ms = int(options.get("pause_ms", 0))
        delay = DELAY.format(most_ms=2 * pause_ms) if pause_ms else ""
        listed = ", ".join(f'"{page}"' for page in pages)
        place.write("visitors.lua", VISITORS.format(pages=listed, seed=place.seed, delay=delay))
        flags = f"-c{{connections}} -t1 -d{{longest}}s --timeout={TIMEOUT_S}s -s {{folder}}/visitors.lua {URL}"
        return spawn_client(place, WRK, flags, options)


class Nginx(NginxServer):
    """Two workers; an access log is written, as on a real server."""

    name = "nginx"
    needs = (NGINX, WRK)
    inputs = inputs_of(
        "connections pause_ms files n_files",
        small=(4, 1, "small", 400),
        large=(16, 0, "large", 40),
        crowd=(16, 0, "small", 400),
        downloads=(2, 30, "large", 40),
    )

    def fill(self, place: ProgramPlace) -> None:
        """Write the files."""
        rng = random.Random(FILES_SEED)
        for kind, n_files, size in (("small", SMALL_FILES, SMALL_BYTES), ("large", LARGE_FILES, LARGE_BYTES)):
            folder = place.folder / "www" / kind
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(n_files):
                (folder / f"{number}.html").write_bytes(rng.randbytes(rng.randint(*size)))
        place.give(place.folder / "www")

    def start(self, place: ProgramPlace) -> None:
        """Start nginx over the files."""
        self.start_nginx(place, root=str(place.folder / "www"))

    def load(self, place: ProgramPlace, options: Options) -> Client:
        """Start wrk on random files."""
        pages = [f"/{options['files']}/{number}.html" for number in range(int(options["n_files"]))]
        return self.start_wrk(place, options, pages)


FPM = Need(PHP_FPM, "php-fpm")
MYSQLI = Need(tuple(f"/etc/php/8.{minor}/mods-available/mysqli.ini" for minor in range(9, -1, -1)), "php-mysql", "file")
SOURCE = Need(("/usr/share/wordpress/wp-load.php",), "wordpress", "file")
THEME = Need(
    ("/usr/share/wordpress/wp-content/themes/twentytwentythree/style.css",), "wordpress-theme-twentytwentythree", "file"
)
SETUP_S = 90.0
POSTS = 60
FPM_SETTINGS = """
[global]
daemonize = no
error_log = {folder}/php.log
[www]
listen = {folder}/php.sock
pm = static
pm.max_children = 4
clear_env = no
php_admin_value[memory_limit] = 128M
"""
PHP = """
        index index.php;
        location / {{ try_files $uri $uri/ /index.php?$args; }}
        location ~ \\.php$ {{
            include {parameters};
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_pass unix:{folder}/php.sock;
            fastcgi_read_timeout 60s;
        }}
"""


class WordPress(NginxServer, MariaDbServer):
    """Debian's WordPress with 60 posts and their comments; what it writes lies in the place."""

    name = "wordpress"
    needs = (SOURCE, THEME, FPM, MYSQLI, NGINX, WRK, *MariaDbServer.mariadb_needs)
    inputs = inputs_of(
        "connections pause_ms pages",
        reader=(1, 60, "posts"),
        crowd=(4, 0, "lists"),
        pair=(2, 20, "posts"),
        browser=(1, 150, "lists"),
    )

    def fill(self, place: ProgramPlace) -> None:
        """Lay WordPress out, install it into a database of its own and write the posts."""
        site = place.folder / "site"
        _lay_out(Path(SOURCE.path()).parent, site)
        here = Path(__file__).parent / "wordpress_files"
        config = (here / "wp-config.php").read_text()
        for mark, text in {"{folder}": str(place.folder), "{salt}": secrets.token_hex()}.items():
            config = config.replace(mark, text)
        (site / "wp-config.php").write_text(config)
        shutil.copyfile(here / "fill.php", site / "fill.php")
        place.give(site)
        self.make_mariadb(place, "wordpress")
        self._serve(place)
        self._install(place)
        (site / "fill.php").unlink()

    def _install(self, place: ProgramPlace) -> None:
        url = f"http://{LOOPBACK}:{place.facts['port']}/fill.php?posts={POSTS}"
        try:
            with build_opener(ProxyHandler({})).open(url, timeout=SETUP_S) as answer:
                body = answer.read().decode(errors="replace").strip()
            problem = f"the installation failed: {body[-300:] or 'no message'}"
        except (URLError, OSError) as error:
            body, problem = "", f"the installation did not answer: {error}"
        if not body.endswith(f"{POSTS} posts"):
            raise ProgramFailed(f"{self.name}: {problem}; see {place.folder.parent}")

    def start(self, place: ProgramPlace) -> None:
        """Start MariaDB, PHP and nginx."""
        self.start_mariadb(place)
        self._serve(place)

    def _serve(self, place: ProgramPlace) -> None:
        settings = place.write("php-fpm.conf", FPM_SETTINGS.format(folder=place.folder))
        socket = place.folder / "php.sock"
        socket.unlink(missing_ok=True)
        # SIGTERM: the master must live long enough to end its workers
        fpm = place.spawn([FPM.path(), "-F", "-y", str(settings)], name="php-fpm", first_signal=signal.SIGTERM)
        self.wait_until(place, fpm, "php-fpm", socket.exists)
        locations = PHP.format(folder=place.folder, parameters="/etc/nginx/fastcgi_params")
        self.start_nginx(place, root=str(place.folder / "site"), locations=locations)

    def load(self, place: ProgramPlace, options: Options) -> Client:
        """Start the visitors."""
        posts = [f"/?name=post-{number}" for number in range(1, POSTS + 1)]
        lists = ["/", "/?paged=2", "/?paged=3", "/?s=river", "/?s=stone", "/?feed=rss2"]
        pages = posts if options["pages"] == "posts" else lists
        return self.start_wrk(place, options, pages)


def _lay_out(source: Path, site: Path) -> None:
    """Make a site of its own from the package: pages are copied, since they look for their settings beside them,
    and what they include is linked, as it is only read."""
    (site / "wp-content" / "uploads").mkdir(parents=True, exist_ok=True)
    for page in source.glob("*.php"):
        shutil.copyfile(page, site / page.name)
    for folder in ("wp-admin", "wp-includes", "wp-content/themes", "wp-content/plugins"):
        (site / folder).unlink(missing_ok=True)
        (site / folder).symlink_to(source / folder)
