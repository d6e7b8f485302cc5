"""A hundred kills and more over all verbs: in a home whose commands are killed at random moments nothing is lost,
nothing comes twice, and nothing stays behind. Another home, which nobody disturbs, says what must come out."""

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tasks.warehouse import copies, landing, registry
from tasks.warehouse.connection import reading, writing
from tasks.warehouse.copies import hash_tables
from tasks.warehouse.place import Warehouse

pytestmark = pytest.mark.slow
SEED = 2026
ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "data" / "recorded"
WHORL = "from flows.cli import main; main()"
LONGEST_S, GONE_S = 1200.0, 60.0
QUICK = {
    "JOBS__EVALUATE__BASELINE_TREES": "5",
    "JOBS__EVALUATE__PREDICT__N_ROUNDS": "10",
    "JOBS__EVALUATE__PREDICT__N_TREES": "5",
    "NODES__SCORE__RESAMPLES": "100",
    "WHORL__SERVER_IDLE_MINUTES": "0",  # a server that a command has started ends with it
}
STORY = [  # how often each is killed, before it may end; {} is the home, {new} the later model of jobs
    (6, f"jobs ingest {RECORDED}/jobs/runs-0006.parquet {RECORDED}/jobs/runs-0009.parquet -s log"),
    (4, f"workloads ingest {RECORDED}/workloads/runs-0001.parquet -s log"),
    (4, f"nodes ingest {RECORDED}/nodes/executions-0001.parquet -s log"),
    (2, "jobs summary -s log"),
    (2, "nodes summary -s log"),
    (3, "jobs watch -s log"),
    (5, "jobs train -s log"),
    (4, "workloads fingerprint -s log"),
    (4, "workloads train -s log"),
    (4, "nodes preprocess -s log"),
    (4, "nodes train -s log"),
    (4, "nodes fingerprint -s log"),
    (3, "warehouse rebuild"),
    (2, "jobs predict -s log"),
    (3, "jobs characterise -s log"),
    (2, "jobs explain -s log"),
    (2, "jobs whatif -s log --scenario no_spare"),
    (2, "workloads identify round1-001-memcached-reads -s log"),
    (3, "workloads watch -s log --newest 5"),
    (3, "nodes rank -s log"),
    (3, "nodes watch -s log"),
    (3, "jobs train -s log --seed 2"),
    (3, "models promote {new}"),
    (3, "models rollback jobs runtime -s log"),
    (2, "report jobs -s log"),
    (2, "report nodes -s log"),
    (3, "query 'SELECT count(*), sum(hash(range)) FROM range(30000000)' --json"),
    (2, "warehouse hashes --json"),
    (4, "warehouse backup {}/backups"),
    (3, "warehouse snapshot {}/copy.duckdb"),
    (3, f"jobs ingest {RECORDED}/jobs/runs-0010.parquet -s log"),
    (4, "warehouse restore {}/backups/{backup}"),
    (3, f"jobs ingest {RECORDED}/jobs/runs-0010.parquet -s log"),
    (3, "warehouse rebuild"),
    (3, "warehouse prune --runs-kept-days 0 --orphans-kept-hours 0 --copies-kept-days 0"),
]
OF_ITS_OWN = 3  # kills of the first command while it starts a Prefect server of its own, as in a plain shell
IDS = {"model_id", "champion_id", "key"}  # made anew where a flow that was killed late is run again
MODEL_ID = "([a-z]+-[0-9a-f]{12})-[0-9a-f]{8}"  # in a reason or evidence; its end is drawn
DATA_TIMES = {"submitted_at", "started_at", "ended_at", "queued_at", "first_at", "last_at"}


@dataclass
class Home:
    """A home, and how its commands are run. api: the variables that name a Prefect server, and its key."""

    folder: Path
    api: dict[str, str]
    took_s: dict[int, float] = field(default_factory=dict)

    @property
    def warehouse(self) -> Warehouse:
        """Its warehouse."""
        return Warehouse(home=self.folder, lock_wait_s=30)

    def begin(self, words: Sequence[str], *, alone: bool = False) -> "subprocess.Popen[bytes]":
        """Start a command. alone: with a server of its own."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PREFECT_", "WHORL_"))}
        quick = {f"WHORL_{key}": value for key, value in QUICK.items()}
        api = {} if alone else self.api
        environment = inherited | quick | api | {"WHORL_HOME": str(self.folder), "OMP_NUM_THREADS": "1"}
        with (self.folder.parent / f"{self.folder.name}.log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-c", WHORL, *words], cwd=ROOT, env=environment, stdout=log, stderr=log
            )

    def words(self, command: str) -> list[str]:
        """The words of a line of the story."""
        if "{new}" in command:
            newest = [one for one in registry.cards(self.warehouse.models) if one.word == "jobs" and one.seed == 2]
            command = command.replace("{new}", newest[-1].model_id)
        if "{backup}" in command:
            whole = [one.parent.name for one in self.folder.glob("backups/*/backup.json")]
            command = command.replace("{backup}", max(whole))
        return shlex.split(command.replace("{}", str(self.folder)))

    def end(self, command: str, number: int) -> None:
        """Run a command to its end."""
        begun = time.monotonic()
        process = self.begin(self.words(command))
        status = process.wait(LONGEST_S)
        self.took_s[number] = time.monotonic() - begun
        assert status == 0, f"{command}: {status}\n{self.said()}"

    def said(self) -> str:
        """What the last command said."""
        return (self.folder.parent / f"{self.folder.name}.log").read_text(errors="replace")[-3000:]

    def processes(self) -> list[psutil.Process]:
        """Whatever runs for this home."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if str(self.folder) in process.environ().get("PREFECT_HOME", ""):
                    found.append(process)
        return found


def look(home: Home) -> None:
    """Fail unless the warehouse opens, its tables can be read, and each landed batch is whole."""
    if home.warehouse.file.exists():
        hash_tables(home.warehouse)
    for word in ("jobs", "workloads", "nodes"):
        for batch in landing.batches(home.warehouse.landing_folder, word):
            for table in batch.tables:
                with landing.local_file(home.warehouse.landing_folder, batch, table):
                    pass


def kill(home: Home, command: str, took_s: float, rng: random.Random, *, alone: bool) -> bool:
    """Kill a command at a random moment; false if it had ended before."""
    process = home.begin(home.words(command), alone=alone)
    try:
        process.wait(rng.uniform(0.2, 1.0) * took_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
    killed = process.wait() == -signal.SIGKILL
    _, left = psutil.wait_procs(home.processes(), timeout=GONE_S)  # what dies with it takes a moment
    assert left == [], command
    return killed


def rows(home: Home) -> dict[str, Any]:
    """Number and hash of the different rows of each table, without what a run that is done again makes anew."""
    found = {}
    with reading(home.warehouse) as connection:
        columns = connection.execute(
            "SELECT schema_name || '.' || table_name, column_name FROM duckdb_columns() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        for name in sorted({table for table, _ in columns} - {"ops.runs", "ops.models"}):
            kept = [one for table, one in columns if table == name and not is_of_this_machine(name, one)]
            distinct = f"SELECT DISTINCT {', '.join(kept)} FROM {name}"
            told = [f"regexp_replace({one}::VARCHAR, '{MODEL_ID}', '\\1', 'g')" for one in kept]
            hashed = f"SELECT count(*), sum(hash({', '.join(told)})::HUGEINT)::VARCHAR FROM ({distinct})"
            found[name] = connection.execute(hashed).fetchone()
    return found


def is_of_this_machine(table: str, column: str) -> bool:
    """Whether a column says when something was done here, or which run of a flow did it."""
    if column == "run_id":
        return table.startswith("ops")
    return column in IDS or (column.endswith("_at") and column not in DATA_TIMES)


def champions(home: Home) -> dict[tuple[str, str, str], Any]:
    """The figures of each model in use."""
    models = home.warehouse.models
    found = {}
    for card in registry.cards(models):
        in_use = registry.champion(models, card.word, card.source, card.kind)
        if in_use:
            found[card.word, card.source, card.kind] = (in_use.seed, in_use.metrics)
    return found


def left_over(home: Home) -> list[str]:
    """What kills have left in the home and no command has taken away."""
    patterns = (
        "models/*/.*", "landing/**/*.part*", "landing/fingerprints/**/*.parquet", "spill/*", "*.new*", "*.before*",
    )  # fmt: skip
    found = [path for pattern in patterns for path in home.folder.glob(pattern)]
    halves = [one for one in (home.folder / "backups").iterdir() if not (one / "backup.json").exists()]
    return sorted(str(path.relative_to(home.folder)) for path in (*found, *halves))


@pytest.fixture
def homes(tmp_path: Path, prefect_server: None) -> Iterator[tuple[Home, Home]]:
    """The calm one and the killed one."""
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

    key = str(PREFECT_API_AUTH_STRING.value())
    api = {"PREFECT_API_URL": PREFECT_API_URL.value(), "PREFECT_API_AUTH_STRING": key}
    made = tuple(Home(tmp_path / name, api) for name in ("calm", "killed"))
    for home in made:
        home.folder.mkdir()
    yield made[0], made[1]
    for home in made:
        for left in home.processes():
            left.kill()


def test_a_hundred_kills_over_all_verbs_lose_nothing_double_nothing_and_leave_nothing(
    homes: tuple[Home, Home], capsys: pytest.CaptureFixture[str]
) -> None:
    calm, home = homes
    rng, n_killed, n_all_late, n_again = random.Random(SEED), 0, 0, 0
    for number, (n_kills, command) in enumerate(STORY):
        n_late = 0
        calm.end(command, number)
        for n in range(2 * n_kills):  # some come too late
            if n - n_late >= n_kills:
                break
            former = champions(home)
            was_killed = kill(home, command, calm.took_s[number], rng, alone=number == 0 and n < OF_ITS_OWN)
            n_killed, n_late = n_killed + was_killed, n_late + (not was_killed)
            look(home)
            if "rollback" in command and champions(home) != former:  # it was done: bring it about again
                home.end("models promote {new}", number)
                n_again += 1
        home.end(command, number)
        n_all_late += n_late
        with capsys.disabled():
            print(f"{n_killed:4} kills, {n_all_late} too late: {command[:70]}", flush=True)
    assert n_killed >= 100
    there, expected = rows(home), rows(calm)
    if n_again:  # each time two decisions more, which stay
        decided, once = there.pop("ops.champions"), expected.pop("ops.champions")
        assert decided[0] == once[0] + 2 * n_again
    assert there == expected
    assert champions(home) == champions(calm)
    assert left_over(home) == left_over(calm) == []
    assert home.processes() == []
    for folder in (home.folder / "backups").iterdir():
        copies._checked(folder)
    with writing(home.warehouse.model_copy(update={"lock_wait_s": 0})):
        pass
