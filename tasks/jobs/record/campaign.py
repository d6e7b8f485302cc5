"""A recording campaign from end to end: plan, data sets, workers, load, part files. The way in is `record_jobs`."""

import contextlib
import hashlib
import logging
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.jobs.record.cluster import open_cluster
from tasks.jobs.record.load import load_source
from tasks.jobs.record.machine import machine_facts
from tasks.jobs.record.params import RecordParams
from tasks.jobs.record.parts import finished_ids, part_paths, recorded_params
from tasks.jobs.record.pool import WorkerPool, build_data
from tasks.jobs.record.scheduler import Scheduler
from tasks.jobs.record.session import PLANNER, Place, Session
from tasks.jobs.record.whatifs import make_plan

DIGEST_DIGITS = 10
SIGTERM_STATUS = 128 + signal.SIGTERM
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RecordSummary:
    """What a call did. statuses: its runs by status; already: runs that earlier calls had finished.

    isolation: what held vertices to their tokens; own_cpu_s: CPU time of the recorder itself, jobs not counted,
    in recorded_s: the seconds from the first submission to the last end; duration_s counts all of the call."""

    planned: int
    already: int
    statuses: dict[str, int]
    jobs: int
    parts: tuple[str, ...]
    load_source: str
    isolation: str
    own_cpu_s: float
    recorded_s: float
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


def scratch_folder(params: RecordParams, out_dir: Path) -> Path:
    """Where the campaign's data sets live: the same folder whenever it is continued."""
    if params.scratch:
        return Path(params.scratch)
    told = f"{out_dir.resolve()}\n{params.seed}\n{params.data_scale}"
    digest = hashlib.sha256(told.encode()).hexdigest()[:DIGEST_DIGITS]
    return Path(tempfile.gettempdir()) / f"whorl-record-{digest}"


def record_jobs(
    params: RecordParams, out_dir: Path, progress: Callable[[int, int], None] | None = None
) -> RecordSummary:
    """Record a campaign into part files `runs-NNNN.parquet` and `pairs-NNNN.parquet` under out_dir.

    progress: called with (finished, planned) after each run. The plan follows from the parameters; each call goes on
    for params.minutes, and runs only what no part holds yet. When the call ends, by return, exception or SIGTERM,
    the finished runs are written and no child process and no control group is left. Raises MissingTool, BadSetting
    (out_dir holds a campaign with other parameters), BadInput (a part cannot be read), RecorderFailed.
    """
    began = time.monotonic()
    source = load_source(params)
    plan = make_plan(params)
    out_dir.mkdir(parents=True, exist_ok=True)
    already = finished_ids(out_dir, params)
    to_run = [run for run in plan.runs if run.run_id not in already]
    scratch, statuses, isolation, own_cpu_s = scratch_folder(params, out_dir), {}, "none", 0.0
    recorded_s = 0.0
    logger.info("%d of %d runs of %d jobs are still to record", len(to_run), len(plan.runs), params.jobs)
    if to_run:
        with _sigterm_unwinds(), contextlib.ExitStack() as stack:
            build_data(scratch, params.data_scale, params.seed)
            cluster = stack.enter_context(open_cluster(params, source, scratch))
            slots = cluster.slots()
            pool = stack.enter_context(WorkerPool(slots | {PLANNER: None}, scratch))
            isolation = cluster.isolation
            record = {"params": recorded_params(params), "machine": machine_facts(), "load_source": source}
            place = Place(out_dir, scratch, record | {"isolation": isolation})
            scheduler = Scheduler(params, cluster, pool, slots, scratch / "partials")
            session = Session(
                place,
                params,
                cluster,
                pool,
                scheduler,
                on_finished=lambda n: progress(len(already) + n, len(plan.runs)) if progress else None,
            )
            stack.callback(session.flush)
            cpu_before_s, run_began = time.process_time(), time.monotonic()
            session.run(to_run, plan.phases)
            own_cpu_s, recorded_s = time.process_time() - cpu_before_s, time.monotonic() - run_began
        statuses = session.statuses
    n_finished = len(already) + sum(statuses.values())
    if not params.scratch and n_finished >= len(plan.runs):
        shutil.rmtree(scratch, ignore_errors=True)
    return RecordSummary(
        planned=len(plan.runs),
        already=len(already),
        statuses=statuses,
        jobs=len({run.job.name for run in plan.runs}),
        parts=tuple(path.name for path in part_paths(out_dir)),
        load_source=source,
        isolation=isolation,
        own_cpu_s=own_cpu_s,
        recorded_s=recorded_s,
        duration_s=time.monotonic() - began,
    )
