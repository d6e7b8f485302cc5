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

from tasks.jobs.record.load import BackgroundLoad, load_source
from tasks.jobs.record.machine import machine_facts
from tasks.jobs.record.params import RecordParams
from tasks.jobs.record.parts import finished_ids, part_paths, recorded_params
from tasks.jobs.record.plan import make_plan
from tasks.jobs.record.pool import WorkerPool, build_data
from tasks.jobs.record.session import Place, Session

DIGEST_DIGITS = 10
SIGTERM_STATUS = 128 + signal.SIGTERM
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RecordSummary:
    """What a campaign did. statuses: runs of this call by status; already: runs that earlier calls had finished."""

    planned: int
    already: int
    statuses: dict[str, int]
    jobs: int
    parts: tuple[str, ...]
    load_source: str
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
    """Record a campaign into part files `runs-NNNN.parquet` under out_dir; continues one that was interrupted.

    progress: called with (finished, planned) after each run. The plan follows from the parameters, so that
    another call with the same ones runs only what no part holds yet. When the call ends, by return, exception or
    SIGTERM, the finished runs are written and no child process is left. Raises MissingTool, BadSetting (out_dir
    holds a campaign with other parameters), BadInput (a part cannot be read), RecorderFailed.
    """
    began = time.monotonic()
    source = load_source(params)
    plan = make_plan(params)
    out_dir.mkdir(parents=True, exist_ok=True)
    already = finished_ids(out_dir, params)
    to_run = [run for run in plan.runs if run.run_id not in already]
    scratch, statuses = scratch_folder(params, out_dir), {}
    logger.info("recording %d of %d runs of %d jobs", len(to_run), len(plan.runs), params.jobs)
    if to_run:
        record = {"params": recorded_params(params), "machine": machine_facts(), "load_source": source}
        with _sigterm_unwinds(), contextlib.ExitStack() as stack:
            build_data(scratch, params.data_scale, params.seed)
            pool = stack.enter_context(WorkerPool(params.workers, scratch))
            load = stack.enter_context(BackgroundLoad(source, scratch))
            session = Session(
                Place(out_dir, scratch, record),
                pool,
                load,
                part_s=params.part_minutes * 60,
                on_finished=lambda n: progress(len(already) + n, len(plan.runs)) if progress else None,
            )
            stack.callback(session.flush)
            session.run(to_run, plan.phases)
        statuses = session.statuses
    if not params.scratch:
        shutil.rmtree(scratch, ignore_errors=True)
    return RecordSummary(
        planned=len(plan.runs),
        already=len(already),
        statuses=statuses,
        jobs=len({run.job.name for run in plan.runs}),
        parts=tuple(path.name for path in part_paths(out_dir)),
        load_source=source,
        duration_s=time.monotonic() - began,
    )
