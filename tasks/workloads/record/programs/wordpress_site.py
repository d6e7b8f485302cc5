"""WordPress on PHP and MariaDB behind nginx, set up without a browser."""

import secrets
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from tasks.tools import PHP_FPM
from tasks.workloads.record.programs import mariadb_server
from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import LOOPBACK, Place, ProgramFailed
from tasks.workloads.record.programs.program import Input
from tasks.workloads.record.programs.service import Service, failure
from tasks.workloads.record.programs.session import wait_for_end
from tasks.workloads.record.programs.web import NGINX, WRK, start_nginx, start_wrk

FPM = Need(PHP_FPM, "php-fpm")
MYSQLI = Need(tuple(f"/etc/php/8.{minor}/mods-available/mysqli.ini" for minor in range(9, -1, -1)), "php-mysql", "file")
SOURCE = Need(("/usr/share/wordpress/wp-load.php",), "wordpress", "file")
THEME = Need(
    ("/usr/share/wordpress/wp-content/themes/twentytwentythree/style.css",), "wordpress-theme-twentytwentythree", "file"
)
SETUP_S, FPM_READY_S, NAP_S = 90.0, 10.0, 0.02
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


class WordPress(Service):
    """Debian's WordPress with 60 posts and their comments; what it writes lies in the place."""

    name = "wordpress"
    title = "WordPress: PHP pages over MariaDB behind nginx, under wrk"
    kin = "mariadb"
    needs = (SOURCE, THEME, FPM, MYSQLI, NGINX, WRK, *mariadb_server.NEEDS)
    inputs = (
        Input(
            "reader",
            {"connections": 1, "pause_ms": 60, "pages": "posts"},
            "one visitor that reads single posts, 60 ms between pages on average",
        ),
        Input(
            "crowd",
            {"connections": 4, "pause_ms": 0, "pages": "lists"},
            "4 visitors without a pause: front page, archive pages, search, feed",
        ),
    )

    other_inputs = (
        Input("pair", {"connections": 2, "pause_ms": 20, "pages": "posts"}, "2 visitors that read posts, 20 ms apart"),
        Input("browser", {"connections": 1, "pause_ms": 150, "pages": "lists"}, "one visitor of lists, 150 ms apart"),
    )

    def fill(self, place: Place) -> None:
        """Lay WordPress out, install it into a database of its own and write the posts."""
        site = place.folder / "site"
        lay_out(Path(SOURCE.path()).parent, site)
        here = Path(__file__).parent / "wordpress_files"
        config = (here / "wp-config.php").read_text()
        for mark, text in {"{folder}": str(place.folder), "{salt}": secrets.token_hex()}.items():
            config = config.replace(mark, text)
        (site / "wp-config.php").write_text(config)
        shutil.copyfile(here / "fill.php", site / "fill.php")
        place.give(site)
        mariadb_server.make_server(self.name, place)
        mariadb_server.start_server(self.name, place)
        mariadb_server.make_database(self.name, place, "wordpress")
        self._serve(place)
        self._install(place)
        (site / "fill.php").unlink()

    def _install(self, place: Place) -> None:
        url = f"http://{LOOPBACK}:{place.recall('port')}/fill.php?posts={POSTS}"
        try:
            with build_opener(ProxyHandler({})).open(url, timeout=SETUP_S) as answer:
                told = answer.read().decode(errors="replace").strip()
        except (URLError, OSError) as error:
            raise ProgramFailed(
                f"{self.name}: the installation did not answer: {error}; see {place.folder.parent}"
            ) from None
        if not told.endswith(f"{POSTS} posts"):
            raise ProgramFailed(
                f"{self.name}: the installation failed: {told[-300:] or 'no message'}; see {place.folder.parent}"
            )

    def start(self, place: Place) -> None:
        """Start MariaDB, PHP and nginx."""
        mariadb_server.start_server(self.name, place)
        self._serve(place)

    def _serve(self, place: Place) -> None:
        settings = place.write("php-fpm.conf", FPM_SETTINGS.format(folder=place.folder))
        socket = place.folder / "php.sock"
        socket.unlink(missing_ok=True)
        # SIGTERM: the master must live long enough to end its workers
        fpm = place.spawn([FPM.path(), "-F", "-y", str(settings)], name="php-fpm", first_signal=signal.SIGTERM)
        for _ in range(round(FPM_READY_S / NAP_S)):
            if socket.exists():
                break
            if wait_for_end(fpm.pid, NAP_S):
                raise failure(self.name, place, "php-fpm", "ended before it was ready")
        else:
            raise failure(self.name, place, "php-fpm", f"was not ready after {FPM_READY_S:.0f} s")
        locations = PHP.format(folder=place.folder, parameters="/etc/nginx/fastcgi_params")
        place.remember("port", start_nginx(self.name, place, root=str(place.folder / "site"), locations=locations))

    def load(self, place: Place, input: Input) -> "subprocess.Popen[bytes]":
        """Start the visitors."""
        posts = [f"/?name=post-{number}" for number in range(1, POSTS + 1)]
        lists = ["/", "/?paged=2", "/?paged=3", "/?s=river", "/?s=stone", "/?feed=rss2"]
        pages = posts if input.options["pages"] == "posts" else lists
        return start_wrk(place, input, place.recall("port"), pages)


def lay_out(source: Path, site: Path) -> None:
    """Make a site of its own from the package: pages are copied, since they look for their settings beside them,
    and what they include is linked, as it is only read."""
    (site / "wp-content" / "uploads").mkdir(parents=True, exist_ok=True)
    for page in source.glob("*.php"):
        shutil.copyfile(page, site / page.name)
    for folder in ("wp-admin", "wp-includes", "wp-content/themes", "wp-content/plugins"):
        (site / folder).unlink(missing_ok=True)
        (site / folder).symlink_to(source / folder)
