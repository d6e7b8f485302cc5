"""The clock of a campaign: submits runs when they are due, has them planned, and writes those that have ended."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from tasks.jobs.record.cluster import PLANNER, Cluster, offered_load
from tasks.jobs.record.composite import composite
from tasks.jobs.record.datasets import DATA_SETS, PARTS
from tasks.jobs.record.monitor import Monitor
from tasks.jobs.record.orders import Order, Planned
from tasks.jobs.record.params import LoadLevel, RecordParams
from tasks.jobs.record.phases import LoadPlan
from tasks.jobs.record.plan import PlannedRun
from tasks.jobs.record.pool import Answer, WorkerPool
from tasks.jobs.record.rows import make_row
from tasks.jobs.record.running import RunningJob, SkuNow, Submission
from tasks.jobs.record.scheduler import Scheduler
from tasks.jobs.record.writer import PartWriter

SAMPLE_S = 0.5
MONITOR_S = 1.0
NAP_S = 0.1
GAP_S = 10.0  # an idle stretch of the schedule that is skipped


class Session:
    """Runs planned runs to their end. `on_finished` is called with the number of finished runs after each."""

    def __init__(
        self,
        data_dir: Path,
        writer: PartWriter,
        params: RecordParams,
        cluster: Cluster,
        pool: WorkerPool,
        scheduler: Scheduler,
        on_finished: Callable[[int], None],
    ) -> None:
        self.data_dir, self.writer, self.params, self.cluster = data_dir, writer, params, cluster
        self.pool, self.scheduler, self.on_finished = pool, scheduler, on_finished
        self.monitor = Monitor()
        self.statuses: dict[str, int] = {}
        self._levels: dict[str, LoadLevel] = {}
        self._to_plan: deque[Submission] = deque()
        self._queue: deque[Submission] = deque()
        self._due = {"sample": 0.0, "monitor": 0.0, "part": time.monotonic() + params.part_minutes * 60}
        self._part_bytes = {name: self._mean_part_bytes(name) for name in DATA_SETS}

    def _mean_part_bytes(self, data_set: str) -> float:
        sizes = [(self.data_dir / DATA_SETS[data_set].path(part)).stat().st_size for part in range(PARTS)]
        return sum(sizes) / PARTS

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

    def _own(self) -> tuple[list[int], float]:
        """What is not foreign work: processes to look at, and CPU seconds of those that control groups count."""
        grouped_s = self.cluster.used_s()
        return ([*self.pool.pids, *self.cluster.load_pids], 0.0) if grouped_s is None else ([], grouped_s)

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
                **{key: None if value != value else value for key, value in asdict(self.monitor.state()).items()},
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

    def _planned(self, answer: Answer) -> None:
        if self._to_plan and self._to_plan[0].run.run_id == answer.order.vertex_id:  # not dropped meanwhile
            planned = Planned(**answer.told) if answer.told is not None else Planned(error=answer.error)
            self._queue.append(replace(self._to_plan.popleft(), planned=planned))

    def _finish(self, job: RunningJob) -> None:
        run, skus = job.submission.run, {name: state.sku for name, state in self.cluster.skus.items()}
        row = make_row(job, run.parts[1] * self._part_bytes[run.job.template.data_set], skus)
        self.writer.add(row)
        self.scheduler.clear(job)
        self.statuses[row["status"]] = self.statuses.get(row["status"], 0) + 1
        self.on_finished(sum(self.statuses.values()))

    def _keep_watch(self, now: float) -> None:
        if now >= self._due["sample"]:
            self.cluster.sample()
            self.scheduler.end_late_jobs()
            self._due["sample"] = now + SAMPLE_S
        if now >= self._due["monitor"]:
            self.monitor.sample(*self._own())
            self._due["monitor"] = now + MONITOR_S
        if now >= self._due["part"]:
            self.writer.flush()
            self._due["part"] = now + self.params.part_minutes * 60


def planning_order(run: PlannedRun) -> Order:
    """What the planner is asked: the whole job as one statement over the whole input."""
    template = run.job.template
    return Order(
        vertex_id=run.run_id,
        sql=composite(run.sql, run.merge),
        data_set=template.data_set,
        parts=run.parts,
        source=template.source,
        databases=template.databases,
        writes=template.writes,
        is_explain=True,
    )
