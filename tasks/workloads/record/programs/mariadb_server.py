"""A MariaDB server of our own: made, started and filled in a temporary folder."""

import signal

from tasks.workloads.record.programs.need import Need
from tasks.workloads.record.programs.place import LOOPBACK, Place
from tasks.workloads.record.programs.service import finish, wait_until_it_listens

SERVER = Need(("mariadbd", "mysqld"), "mariadb-server")
INSTALL = Need(("mariadb-install-db", "mysql_install_db"), "mariadb-server")
CLIENT = Need(("mariadb", "mysql"), "mariadb-client")
NEEDS = (SERVER, INSTALL, CLIENT)
USER, PASSWORD = "whorl", "whorl"  # of a server that only this machine reaches, and that is gone after the round
BUFFER_POOL = "64M"


def make_server(workload: str, place: Place) -> None:
    """Lay out an empty data directory."""
    data = f"--datadir={place.folder}/mariadb"
    root = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
    finish(workload, place, "mariadb-install", [INSTALL.path(), "--no-defaults", data, *root])


def start_server(workload: str, place: Place) -> int:
    """Start the server and wait until it listens. Returns its port."""
    port = place.free_port()
    command = [
        SERVER.path(),
        "--no-defaults",
        f"--datadir={place.folder}/mariadb",
        f"--socket={place.folder}/mariadb.sock",
        f"--pid-file={place.folder}/mariadb.pid",
        f"--tmpdir={place.folder}",
        f"--bind-address={LOOPBACK}",
        f"--port={port}",
        f"--innodb-buffer-pool-size={BUFFER_POOL}",
        "--skip-name-resolve",
    ]
    server = place.spawn(command, name="mariadbd", first_signal=signal.SIGTERM)
    wait_until_it_listens(workload, place, "mariadbd", server, port)
    return port


def make_database(workload: str, place: Place, name: str) -> None:
    """Make an empty database and the user that may do all in it."""
    sql = (
        f"CREATE DATABASE {name}; CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}'; "
        f"CREATE USER '{USER}'@'localhost' IDENTIFIED BY '{PASSWORD}'; "
        f"GRANT ALL ON {name}.* TO '{USER}'@'%'; GRANT ALL ON {name}.* TO '{USER}'@'localhost'"
    )
    socket = f"--socket={place.folder}/mariadb.sock"
    finish(workload, place, "mariadb", [CLIENT.path(), "--no-defaults", socket, "--user=root", "--execute", sql])
