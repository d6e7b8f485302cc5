"""A recording campaign from end to end: plan, data sets, workers, load, part files. The way in is `record_jobs`."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import gettempdir

from tasks.jobs.params import Campaign, LoadLevel, RecordParams
from tasks.jobs.record.cluster import PLANNER, Monitor, load_source, offered_load, open_cluster, versions
from tasks.jobs.record.plan import LoadPlan, PlannedRun, make_plan
from tasks.jobs.record.pool import OrderResult, WorkerPool, build_data
from tasks.jobs.record.run_rows import RunLedger, make_row
from tasks.jobs.record.scheduler import RunningJob, Scheduler, SkuNow, Submission
from tasks.jobs.record.templates import DATA_SETS, PARTS, Order, PlannerEstimate, composite
from tasks.machine import remove_scratch, scratch_folder
from tasks.record.campaign import Progress, RecordSummary, alone_in, recording
from tasks.record.facts import machine_facts

logger = logging.getLogger(__name__)
SAMPLE_S = 0.5
MONITOR_S = 1.0
NAP_S = 0.1
GAP_S = 10.0  # an idle stretch of the schedule that is skipped


class Session:
    """Runs planned runs to their end. `on_finished` is called with the number of finished runs after each."""

    def __init__(
        self,
        data_dir: Path,
        ledger: RunLedger,
        scheduler: Scheduler,
        on_finished: Callable[[int], None],
    ) -> None:
        self.ledger, self.scheduler, self.on_finished = ledger, scheduler, on_finished
        self.params, self.cluster, self.pool = scheduler.params, scheduler.cluster, scheduler.pool
        self.monitor = Monitor()
        self.statuses: dict[str, int] = {}
        self._levels: dict[str, LoadLevel] = {}
        self._to_plan: deque[Submission] = deque()
        self._queue: deque[Submission] = deque()
        self._due = {"sample": 0.0, "monitor": 0.0}
        self._part_bytes = {
            name: sum((data_dir / kind.path(part)).stat().st_size for part in range(PARTS)) / PARTS
            for name, kind in DATA_SETS.items()
        }

    def run(self, runs: Sequence[PlannedRun], load: LoadPlan) -> None:
        """Submit runs at their times, counted from the first one; return when all that were started have ended.

        The clock stands still while too many runs wait, and nothing more starts when the call's time is over."""
        to_come = deque(runs)
        self.cluster.sample()
        self._due["sample"] = time.monotonic() + SAMPLE_S
        clock_s, before = runs[0].submit_s, time.monotonic()
        load_zero, ends = before - clock_s, before + self.params.minutes * 60
        while to_come or not self._is_idle():
            now = time.monotonic()
            if len(self._queue) + len(self._to_plan) <= self.params.most_waiting:
                clock_s += now - before
            before = now
            if to_come and self._is_idle() and to_come[0].submit_s - clock_s > GAP_S:
                clock_s = to_come[0].submit_s  # recorded before, by an earlier call
            if now >= ends:
                to_come.clear()
                self._to_plan.clear()
                self._queue.clear()
            if (levels := load.levels(now - load_zero, clock_s)) != self._levels:
                self._set_load(levels)
            while to_come and to_come[0].submit_s <= clock_s:
                self._to_plan.append(self._submit(to_come.popleft()))
            self._keep_watch(now)
            self._advance()
            next_s = to_come[0].submit_s - clock_s if to_come else NAP_S
            self._collect(min(max(next_s, 0.001), NAP_S))

    def _set_load(self, levels: dict[str, LoadLevel]) -> None:
        for sku, level in levels.items():
            if self._levels.get(sku) != level:
                self.cluster.skus[sku].set_load(level)
        self._levels = levels

    def _is_idle(self) -> bool:
        return not (self._to_plan or self._queue or self.scheduler.jobs)

    def _submit(self, run: PlannedRun) -> Submission:
        states = [self.cluster.skus[name] for name in run.skus]
        loads = [state.load_mean_sd(self.cluster.busy, self.monitor.cores) for state in states]
        mean, sd = offered_load(loads)
        return Submission(
            run=run,
            submitted_at=time.time(),
            queue_length=len(self._queue) + len(self._to_plan),
            spare_tokens_available=self.scheduler.spare_available(run.skus),
            skus=tuple(
                SkuNow(state.sku.name, float(state.sku.tokens), float(state.free_tokens), *load)
                for state, load in zip(states, loads, strict=True)
            ),
            load_mean=mean,
            load_sd=sd,
            surroundings={
                "load_levels": ", ".join(f"{name} {state.load.level}" for name, state in self.cluster.skus.items()),
                "running_jobs": len(self.scheduler.jobs),
                **{key: None if math.isnan(value) else value for key, value in self.monitor.state().items()},
            },
        )

    def _advance(self) -> None:
        if self._to_plan and self.pool.is_idle(PLANNER):
            self.pool.give(PLANNER, planning_order(self._to_plan[0].run))
        self.scheduler.start_jobs(self._queue)
        self.scheduler.advance()

    def _collect(self, timeout_s: float) -> None:
        for answer in self.pool.collect(timeout_s):
            if answer.slot == PLANNER:
                self._planned(answer)
            elif job := self.scheduler.finish_vertex(answer):
                self._finish(job)

    def _planned(self, answer: OrderResult) -> None:
        if self._to_plan and self._to_plan[0].run.run_id == answer.order.vertex_id:  # not dropped meanwhile
            planned = PlannerEstimate(**(answer.measured or {"error": answer.error}))
            self._queue.append(replace(self._to_plan.popleft(), planned=planned))

    def _finish(self, job: RunningJob) -> None:
        run, skus = job.submission.run, {name: state.sku for name, state in self.cluster.skus.items()}
        row = make_row(job, run.parts[1] * self._part_bytes[run.job.template.data_set], skus)
        self.ledger.keep(row)
        self.scheduler.clear(job)
        self.statuses[row["status"]] = self.statuses.get(row["status"], 0) + 1
        self.on_finished(sum(self.statuses.values()))

    def _keep_watch(self, now: float) -> None:
        if now >= self._due["sample"]:
            self.cluster.sample()
            self.scheduler.end_late_jobs()
            self._due["sample"] = now + SAMPLE_S
        if now >= self._due["monitor"]:
            grouped_s = self.cluster.used_s()  # control groups count what is not foreign work
            stressors = [pid for state in self.cluster.skus.values() for pid in state.load.pids]
            own_pids = [*self.pool.pids, *stressors] if grouped_s is None else []
            self.monitor.sample(own_pids, grouped_s or 0.0)
            self._due["monitor"] = now + MONITOR_S


def planning_order(run: PlannedRun) -> Order:
    """What the planner is asked: the whole job as one statement over the whole input."""
    return run.job.template.order(run.run_id, composite(run.sql, run.merge), run.parts, is_explain=True)


def _record(params: Campaign, out_dir: Path, scratch: Path, report: Progress) -> RecordSummary:
    source, plan = load_source(params), make_plan(params)
    with RunLedger(out_dir, params, plan) as ledger, open_cluster(params, source, scratch) as cluster:
        isolation, runs = cluster.isolation, list(plan.runs)
        ledger.record |= {"machine": machine_facts(**versions()), "load_source": source, "isolation": isolation}
        if isolation != "cgroups":  # spare tokens and SKUs change nothing then
            runs = [run for run in runs if run.what_if not in ("no_spare", "newest_sku")]
        to_run, n_already = [run for run in runs if run.run_id not in ledger.finished], len(ledger.finished)
        logger.info("%d of %d runs of %d jobs are still to record", len(to_run), len(runs), params.jobs)
        statuses: dict[str, int] = {}
        own_cores = 0.0
        if to_run:
            build_data(scratch, params.data_scale, params.seed)
            slots = cluster.slots()
            with WorkerPool(slots, scratch) as pool:
                scheduler = Scheduler(params, cluster, pool, slots, scratch / "partials")
                session = Session(scratch, ledger, scheduler, lambda n: report(n_already + n, len(runs)))
                began_s, before_s = time.monotonic(), time.process_time() + pool.cpu_s(PLANNER)
                session.run(to_run, plan.load)
                own_cpu_s = time.process_time() + pool.cpu_s(PLANNER) - before_s
                statuses, own_cores = session.statuses, own_cpu_s / (time.monotonic() - began_s)
        n_finished = n_already + sum(statuses.values())
        return RecordSummary(len(runs), n_finished, statuses, {}, isolation, {"own_cores_ratio": own_cores})


def record_jobs(params: RecordParams, out_dir: Path, progress: Progress | None = None) -> RecordSummary:
    """Record a campaign into part files `runs-NNNN.parquet` and `pairs-NNNN.parquet` under out_dir.

    progress: called with (finished, planned) after each run. The plan follows from the parameters; each call goes on
    for params.minutes, and runs only what no part holds yet. What it returns counts as clean all that have ended,
    and has as `more` own_cores_ratio, the mean cores that the recorder and its planner took.

    When the call ends, by return, exception or SIGTERM, the finished runs are written and no child process and no
    control group is left. Raises MissingTool, BadSetting (out_dir holds another campaign, or somebody else records
    there or on this machine), BadInput (a part cannot be read), RecorderFailed.
    """
    campaign = Campaign(**dict(params))
    with recording("jobs", out_dir), alone_in(out_dir):
        name = f"{out_dir.resolve()}\n{params.seed}\n{params.data_scale}"
        scratch = scratch_folder("record", name, place=params.scratch, shared=Path(gettempdir()))
        with alone_in(scratch):
            summary = _record(campaign, out_dir, scratch, progress or (lambda *_: None))
            if summary.clean >= summary.planned:
                remove_scratch(scratch, params.scratch)
    return summary
