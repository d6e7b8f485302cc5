"""What tests of several words share."""

import contextlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasks import settings
from tasks.jobs.params import BinParams, CharacteriseParams, EvaluateParams, PredictParams, ShapeParams
from tasks.machine import CGROUP_ROOT
from tasks.params import Params
from tasks.storage import private
from tasks.warehouse import connection
from tasks.warehouse.connection import build, transaction, writing
from tasks.warehouse.place import Warehouse
from tasks.workloads.params import IdentifyParams

os.environ.setdefault("WHORL_WHORL__SERVER_IDLE_MINUTES", "0")  # no server outlives the commands of a test
MIDNIGHT = pd.Timestamp("2026-01-01")
JobLog = WarehouseIn = Callable[..., Warehouse]


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the recorders' lock, one that no other test waits for, nor a recording at work here."""
    name = f"whorl-test-{uuid.uuid4()}"
    monkeypatch.setattr("tasks.machine.LOCK", name)
    return name


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Where a recorder may make its folder: below one that any user can enter, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="whorl-test-"))
    folder.chmod(0o711)
    yield folder / "scratch"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def groups_of() -> Callable[[str, int], list[str]]:
    """A function that tells the control groups of a recorder, by the prefix of its word and its process id."""
    return lambda prefix, pid: [path.name for at in ("", "*/") for path in CGROUP_ROOT.glob(f"{at}{prefix}{pid}")]


@pytest.fixture
def killable(tmp_path: Path, lock: str) -> Iterator[Callable[[str, Params, str], "subprocess.Popen[str]"]]:
    """A function that runs a recorder in a process of its own: a script that is told parameters, folder (`out`) and
    lock, and may import `stand_ins`, the file given."""
    children: list[subprocess.Popen[str]] = []

    def begin(script: str, params: Params, stand_ins: str) -> "subprocess.Popen[str]":
        modules = tmp_path / "modules"
        modules.mkdir()
        shutil.copy(stand_ins, modules / "stand_ins.py")
        command = [sys.executable, "-c", script, params.model_dump_json(), str(tmp_path / "out"), lock]
        paths = os.environ | {"PYTHONPATH": os.pathsep.join((str(modules), str(Path.cwd())))}
        children.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=paths))
        return children[-1]

    yield begin
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def processes_below() -> Callable[[Path], list[int]]:
    """A function that tells the processes whose working folder is below a folder."""

    def found(folder: Path) -> list[int]:
        pids = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if str((path / "cwd").readlink()).startswith(str(folder)):
                    pids.append(int(path.name))
        return pids

    return found


@cache
def _asks_for_server(file: Path) -> bool:
    return "prefect_server" in file.read_text()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist loadfile, files that share what takes long to make are run by the same worker, which makes it once.

    That is the Prefect server (20 s), and the data sets and plans of recorded jobs (10 s)."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class SharedOnce(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            name = super()._split_scope(nodeid)
            if name.startswith("tests/flows/") and _asks_for_server(config.rootpath / name):
                return "tests/flows"
            return "tests/jobs/record" if name.startswith("tests/jobs/record/") else name

    return SharedOnce(config, log)


@pytest.fixture(autouse=True)
def _levels_of_our_loggers() -> Iterator[None]:
    """What a command of the test shows or hides of our logs does not outlive the test."""
    loggers = [logging.getLogger(name) for name in ("tasks", "flows")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def _settings_are_parsed_once() -> Iterator[None]:
    """The 1,500 lines of conf/ take a moment, and each command of a test reads them; a changed file is parsed again."""
    parse = settings._yaml
    parsed: dict[tuple[Path, bytes], dict[str, Any]] = {}

    def once(file: Path) -> dict[str, Any]:
        try:
            key = (file, file.read_bytes())
        except OSError:
            return parse(file)
        if key not in parsed:
            parsed[key] = parse(file)
        return parsed[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "_yaml", once)
        yield


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of an empty warehouse, made once: tests copy it."""
    warehouse = Warehouse(home=tmp_path_factory.mktemp("migrated"))
    build(warehouse, warehouse.file)
    return warehouse.file


@pytest.fixture(scope="session", autouse=True)
def _tables_are_made_once(migrated: Path) -> Iterator[None]:
    """All migrations take a third of a second, and many a test begins with a new warehouse, or builds one again."""

    def copy(warehouse: Warehouse, file: Path) -> None:
        with private():
            shutil.copyfile(migrated, file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "build", copy)
        yield


@pytest.fixture(scope="session")
def warehouse_in(migrated: Path) -> WarehouseIn:
    """A function that makes a folder with an empty warehouse, or with all that another home has, and returns it."""

    def make(home: Path, of: Path | None = None) -> Warehouse:
        if of:
            shutil.copytree(of, home)
        else:
            home.mkdir()
            shutil.copy(migrated, home)
        return Warehouse(home=home, memory_mb=256, threads=1)

    return make


@pytest.fixture
def warehouse(tmp_path: Path, warehouse_in: WarehouseIn) -> Warehouse:
    """An empty warehouse in the folder `home` of this test."""
    return warehouse_in(tmp_path / "home")


@pytest.fixture(scope="session")
def job_log_at(warehouse_in: WarehouseIn) -> Callable[[Path], JobLog]:
    """A function that makes a warehouse in a folder, and gives what puts job runs into it (see job_log)."""

    def make(home: Path) -> JobLog:
        warehouse, calls = warehouse_in(home), iter(range(1_000_000))

        def fill(runs: Sequence[dict[str, Any]] | pd.DataFrame, *, source: str = "log") -> Warehouse:
            _put(warehouse, pd.DataFrame(runs), source, f"batch-{next(calls):03}")
            return warehouse

        return fill

    return make


@pytest.fixture
def job_log(tmp_path: Path, job_log_at: Callable[[Path], JobLog]) -> JobLog:
    """A function that puts job runs into a warehouse of this test and returns it.

    A run is a dict with what matters to the test; the rest is filled in: job `job`, submitted one a minute from
    2026-01-01 on, completed. Each call is one more file of the source."""
    return job_log_at(tmp_path / "home")


def _put(warehouse: Warehouse, rows: pd.DataFrame, source: str, batch_id: str) -> None:
    n_rows = len(rows)
    defaults: dict[str, Any] = {
        "run_id": [f"{batch_id}-{i:06}" for i in range(n_rows)],
        "group_key": "job",
        "submitted_at": MIDNIGHT + pd.to_timedelta(range(n_rows), unit="min"),
        "status": "completed",
        "is_simulated": False,
    }
    rows = _with_defaults(rows.assign(source=source, batch_id=batch_id), defaults)
    rows = _with_defaults(rows, {"started_at": rows["submitted_at"]})
    rows = _with_defaults(rows, {"ended_at": rows["started_at"] + pd.to_timedelta(rows["runtime_s"], unit="s")})
    with writing(warehouse) as opened, transaction(opened):
        opened.execute("INSERT INTO jobs.runs BY NAME SELECT * FROM rows").fetchall()
        opened.execute(
            """INSERT INTO ops.files BY NAME SELECT $batch_id AS batch_id, 'jobs' AS word, $source AS source,
            'own' AS reader, '1' AS reader_version, '{}' AS options, '/logs/' || $batch_id || '.csv' AS origin,
            $batch_id AS origin_sha256, $at AS ordered_at, $n AS n_read, $n AS n_kept, 0 AS n_quarantined,
            $at AS landed_at""",
            {"batch_id": batch_id, "source": source, "at": MIDNIGHT.to_pydatetime(), "n": n_rows},
        ).fetchall()


def _with_defaults(rows: pd.DataFrame, defaults: dict[str, Any]) -> pd.DataFrame:
    """Columns that are missing, and missing values of those that are there."""
    filled = {}
    for name, value in defaults.items():
        default = pd.Series(value, index=rows.index)
        filled[name] = rows[name].fillna(default) if name in rows else default
    return rows.assign(**filled)


@pytest.fixture(scope="session")
def _the_same_runs_are_evaluated_once() -> Iterator[None]:
    """Most of a training is an evaluation, which depends on nothing but runs and parameters."""
    from tasks.jobs import evaluate as module
    from tasks.jobs.predict import training

    evaluate = module.evaluate_runs
    known: dict[tuple[Any, ...], Any] = {}

    def once(runs: pd.DataFrame, params: EvaluateParams, ended: Any = None, named: Any = ()) -> Any:
        frames = [one for one in (runs, ended) if one is not None and len(one)]
        content = tuple(pd.util.hash_pandas_object(one).to_numpy().tobytes() for one in frames)
        key = (content, *(tuple(one) for one in frames), params.model_dump_json(), tuple(sorted(named or ())))
        if key not in known:
            known[key] = evaluate(runs, params, ended, named)
        return replace(known[key], figures=dict(known[key].figures))  # a training adds its own

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "evaluate_runs", once)
        patch.setattr(training, "evaluate_runs", once)
        yield


@pytest.fixture(scope="session")
def quick_training(_the_same_runs_are_evaluated_once: None) -> EvaluateParams:
    """The parameters of a training of a few small trees."""
    shapes = ShapeParams(k=2, min_support=10)
    predict = PredictParams(
        characterise=CharacteriseParams(bins=BinParams(ranges="data"), shapes=shapes), n_rounds=40, n_trees=60
    )
    return EvaluateParams(predict=predict, baseline_trees=5)


@pytest.fixture(scope="session")
def varied_runs() -> Callable[..., pd.DataFrame]:
    """A function: n_runs of 12 jobs in turn, one a minute, the odd ones more varied; most take 10 to 30 s."""

    def draw(n_runs: int = 720, *, seed: int = 1) -> pd.DataFrame:
        rng, number = np.random.default_rng(seed), np.arange(n_runs) % 12
        inputs = np.exp(rng.normal(0, 0.3, n_runs))
        noise = np.exp(rng.normal(0, np.where(number % 2, 0.6, 0.05)))
        return pd.DataFrame(
            {
                "group_key": [f"job{i:02}#{i:08x}" for i in number],
                "runtime_s": np.round((10.0 + number) * inputs * noise, 3),
                "input_bytes": np.round(1e6 * inputs),
            }
        )

    return draw


@pytest.fixture(scope="session")
def trained_home(
    tmp_path_factory: pytest.TempPathFactory,
    job_log_at: Callable[[Path], JobLog],
    varied_runs: Callable[..., pd.DataFrame],
    quick_training: EvaluateParams,
) -> Path:
    """The home of a source `log` with a model, made once: tests copy it."""
    from tasks.jobs import steps

    home = tmp_path_factory.mktemp("trained") / "home"
    steps.train(job_log_at(home)(varied_runs()), "log", quick_training, "first-run")
    return home


@pytest.fixture
def trained_log(tmp_path: Path, trained_home: Path, warehouse_in: WarehouseIn) -> Warehouse:
    """A warehouse of this test with a source `log` of varied_runs and its model, in the folder that job_log uses."""
    return warehouse_in(tmp_path / "home", trained_home)


@pytest.fixture(scope="session")
def drawn_telemetry(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that writes drawn runs as whorl's own Parquet: n_runs of each named workload over three rounds.

    Four workloads a, b, c, d with nine counters each, three of them of their own group; others are like none of them.
    only: those runs alone. unlabelled: their labels are left out. machine_only: without counters of their own."""
    import pyarrow as pa

    from tasks.record.parts import write_table
    from tasks.workloads.record.parts import table_of
    from tests.workloads.identify.synthetic import draw_runs, draw_workload

    rng = np.random.default_rng(5)
    known = {name: draw_workload(name, 9, 3, rng) for name in "abcdxyz"}

    def write(
        name: str,
        *,
        workloads: str = "abcd",
        n_runs: int = 6,
        seed: int = 1,
        first_minute: int = 0,
        unlabelled: bool = False,
        machine_only: bool = False,
        prefix: str = "",
    ) -> Path:
        runs = draw_runs([known[one] for one in workloads], n_runs, np.random.default_rng(seed))
        runs = sorted(runs, key=lambda run: (str(run.round), run.run_id))
        tables = []
        for minute, run in enumerate(runs, first_minute):
            kept = [at for at, one in enumerate(run.counters) if not (machine_only and one.scope == "workload")]
            run = replace(
                run,
                run_id=f"{prefix}{run.run_id}",
                counters=tuple(run.counters[at] for at in kept),
                values=run.values[:, kept],  # noqa: PD011
                started_at=(MIDNIGHT + pd.Timedelta(minutes=minute)).to_pydatetime(),
                machine="node",
                workload=None if unlabelled else run.workload,
            )
            tables.append(table_of(run))
        path = tmp_path_factory.mktemp("telemetry") / f"{name}.parquet"
        write_table(path, pa.concat_tables(tables), {"is_simulated": True})
        return path

    return write


@pytest.fixture(scope="session")
def quick_identify() -> IdentifyParams:
    """The parameters of a model of workloads."""
    return IdentifyParams()


@pytest.fixture(scope="session")
def workloads_home(
    tmp_path_factory: pytest.TempPathFactory, warehouse_in: WarehouseIn, drawn_telemetry: Callable[..., Path]
) -> Path:
    """The home of a source `log` with 24 labelled runs of a, b, c, d in three rounds, made once: tests copy it."""
    from tasks.workloads import steps
    from tasks.workloads.params import ReadParams

    warehouse = warehouse_in(tmp_path_factory.mktemp("workloads") / "home")
    path = str(drawn_telemetry("labelled"))
    steps.ingest_batch(warehouse, steps.land_telemetry(warehouse, path, "log", "", ReadParams()))
    return warehouse.home


@pytest.fixture
def workloads_log(tmp_path: Path, workloads_home: Path, warehouse_in: WarehouseIn) -> Warehouse:
    """A warehouse of this test with the runs of workloads_home."""
    return warehouse_in(tmp_path / "home", workloads_home)


@pytest.fixture(scope="session")
def identifying_home(
    tmp_path_factory: pytest.TempPathFactory,
    workloads_home: Path,
    quick_identify: IdentifyParams,
    warehouse_in: WarehouseIn,
) -> Path:
    """The same with a model in use, made once: tests copy it."""
    from tasks.workloads import steps
    from tasks.workloads.params import TrainParams

    warehouse = warehouse_in(tmp_path_factory.mktemp("identifying") / "home", workloads_home)
    steps.train(warehouse, "log", quick_identify, TrainParams(), [], "first-run")
    return warehouse.home


@pytest.fixture
def identifying_log(tmp_path: Path, identifying_home: Path, warehouse_in: WarehouseIn) -> Warehouse:
    """A warehouse of this test with the runs and models of identifying_home."""
    return warehouse_in(tmp_path / "home", identifying_home)


@pytest.fixture(scope="session")
def drawn_executions(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that writes a part of executions that were drawn, and returns its path.

    What is asked is that of synthetic_history; is_emulated and is_simulated are what the part says of them."""
    from tasks.nodes.execution import FACTS, Execution, MetricValue, write_part
    from tests.nodes.synthetic import synthetic_history

    def write(*, is_emulated: bool = False, is_simulated: bool = True, **asked: Any) -> Path:
        history = synthetic_history(**{"runs": 20, **asked})
        measured: dict[int, list[MetricValue]] = {}
        for row in history.metrics.itertuples(index=False):
            measured.setdefault(int(row.execution), []).append(MetricValue(row.metric, float(row.value), row.unit))
        told = {"is_emulated": is_emulated, "is_simulated": is_simulated}
        executions = [
            Execution({name: row[name] for name in FACTS if row[name] is not None} | told, tuple(measured.get(at, ())))
            for at, row in enumerate(history.executions.to_dict("records"))
        ]
        path = tmp_path_factory.mktemp("drawn") / "executions-0001.parquet"
        write_part(path, executions)
        return path

    return write


@pytest.fixture(scope="session")
def nodes_home(
    tmp_path_factory: pytest.TempPathFactory, warehouse_in: WarehouseIn, drawn_executions: Callable[..., Path]
) -> Path:
    """The home of a source `log` with 20 executions of six benchmarks on three nodes, a fifth of them stressed."""
    from tasks.nodes import steps
    from tasks.nodes.params import ReadParams

    warehouse = warehouse_in(tmp_path_factory.mktemp("nodes") / "home")
    path = str(drawn_executions())
    steps.ingest_batch(warehouse, steps.land_executions(warehouse, path, "log", "", ReadParams()))
    return warehouse.home


@pytest.fixture
def nodes_log(tmp_path: Path, nodes_home: Path, warehouse_in: WarehouseIn) -> Warehouse:
    """A warehouse of this test with the executions of nodes_home."""
    return warehouse_in(tmp_path / "home", nodes_home)
