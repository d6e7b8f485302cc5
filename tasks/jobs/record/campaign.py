"""A recording campaign from end to end: plan, data sets, workers, load, part files. The way in is `record_jobs`."""

import contextlib
import fcntl
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import gettempdir

from tasks.errors import BadSetting
from tasks.jobs.record.cluster import PLANNER, open_cluster
from tasks.jobs.record.load import load_source
from tasks.jobs.record.machine import machine_facts
from tasks.jobs.record.params import RecordParams
from tasks.jobs.record.parts import finished_ids, part_paths, recorded_params
from tasks.jobs.record.plan import PlannedRun
from tasks.jobs.record.pool import WorkerPool, build_data
from tasks.jobs.record.scheduler import Scheduler
from tasks.jobs.record.session import Session
from tasks.jobs.record.whatifs import Plan, make_plan
from tasks.jobs.record.writer import PartWriter
from tasks.machine_lock import only_recorder
from tasks.machine_scratch import remove_scratch, scratch_folder

SIGTERM_STATUS = 128 + signal.SIGTERM
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recorded:
    """What a call recorded. statuses: its runs by status; already: runs that earlier calls had finished.

    isolation: what held vertices to their tokens; own_cpu_s: CPU time of the recorder and its planner, jobs not
    counted, over recorded_s."""

    planned: int
    already: int
    load_source: str
    isolation: str
    statuses: dict[str, int] = field(default_factory=dict)
    own_cpu_s: float = 0.0
    recorded_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RecordSummary(Recorded):
    """What a call did; parts: all of the folder."""

    jobs: int
    parts: tuple[str, ...]
    duration_s: float


@contextlib.contextmanager
def _sigterm_unwinds() -> Iterator[None]:
    """SIGTERM raises SystemExit here, so that every `finally` runs; only the main thread can have it so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(*_: object) -> None:
        raise SystemExit(SIGTERM_STATUS)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _scratch(params: RecordParams, out_dir: Path) -> Path:
    """Where the campaign's data sets live."""
    campaign = f"{out_dir.resolve()}\n{params.seed}\n{params.data_scale}"
    return scratch_folder("record", campaign, place=params.scratch, shared=Path(gettempdir()))


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Nobody else records into this folder meanwhile. Raises BadSetting."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise BadSetting(
            f"{folder}: another recording is at work here; wait for its end, or use another folder"
        ) from error
    finally:
        os.close(handle)


def _say_nothing(_finished: int, _planned: int) -> None:
    """Progress that nobody asked for."""


def _possible(plan: Plan, isolation: str) -> list[PlannedRun]:
    """The runs that can be what they say: without control groups spare tokens and SKUs change nothing."""
    if isolation == "cgroups":
        return list(plan.runs)
    return [run for run in plan.runs if run.what_if not in ("no_spare", "newest_sku")]


def _record(params: RecordParams, out_dir: Path, scratch: Path, told: Callable[[int, int], None]) -> Recorded:
    source, plan = load_source(params), make_plan(params)
    already = finished_ids(out_dir, params, plan)
    with open_cluster(params, source, scratch) as cluster:
        runs = _possible(plan, cluster.isolation)
        to_run = [run for run in runs if run.run_id not in already]
        found = Recorded(len(runs), len(already), source, cluster.isolation)
        logger.info("%d of %d runs of %d jobs are still to record", len(to_run), len(runs), params.jobs)
        if not to_run:
            return found
        build_data(scratch, params.data_scale, params.seed)
        record = {
            "params": recorded_params(params),
            "plan": plan.digest(),
            "machine": machine_facts(),
            "load_source": source,
            "isolation": cluster.isolation,
        }
        slots = cluster.slots()
        with WorkerPool(slots, scratch) as pool, PartWriter(out_dir, record) as writer:
            scheduler = Scheduler(params, cluster, pool, slots, scratch / "partials")

            def on_finished(n: int) -> None:
                told(len(already) + n, len(runs))

            session = Session(scratch, writer, params, cluster, pool, scheduler, on_finished)
            began, before_s = time.monotonic(), time.process_time() + pool.cpu_s(PLANNER)
            session.run(to_run, plan.load)
            own_cpu_s = time.process_time() + pool.cpu_s(PLANNER) - before_s
    return replace(found, statuses=session.statuses, own_cpu_s=own_cpu_s, recorded_s=time.monotonic() - began)


def record_jobs(
    params: RecordParams, out_dir: Path, progress: Callable[[int, int], None] | None = None
) -> RecordSummary:
    """Record a campaign into part files `runs-NNNN.parquet` and `pairs-NNNN.parquet` under out_dir.

    progress: called with (finished, planned) after each run. The plan follows from the parameters; each call goes on
    for params.minutes, and runs only what no part holds yet. When the call ends, by return, exception or SIGTERM,
    the finished runs are written and no child process and no control group is left. Raises MissingTool, BadSetting
    (out_dir holds another campaign, or somebody else records there or on this machine), BadInput (a part cannot be
    read), RecorderFailed.
    """
    began = time.monotonic()
    out_dir.mkdir(parents=True, exist_ok=True)
    with _sigterm_unwinds(), _alone_in(out_dir), only_recorder("jobs"):
        scratch = _scratch(params, out_dir)
        with _alone_in(scratch):
            found = _record(params, out_dir, scratch, progress or _say_nothing)
            if found.already + sum(found.statuses.values()) >= found.planned:
                remove_scratch(scratch, params.scratch)
    return RecordSummary(
        **asdict(found),
        jobs=params.jobs,
        parts=tuple(path.name for path in part_paths(out_dir)),
        duration_s=time.monotonic() - began,
    )
