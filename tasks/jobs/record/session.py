"""The clock of a campaign: submits runs when they are due, gives them to workers, collects, samples, writes parts."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.jobs.record.datasets import DATA_SETS, PARTS
from tasks.jobs.record.load import BackgroundLoad
from tasks.jobs.record.monitor import Monitor
from tasks.jobs.record.orders import Order
from tasks.jobs.record.parts import write_part
from tasks.jobs.record.plan import LoadPhase, PlannedRun
from tasks.jobs.record.pool import WorkerPool
from tasks.jobs.record.rows import Submission, Surroundings, make_row

SAMPLE_S = 1.0
LONGEST_NAP_S = 1.0


@dataclass(frozen=True)
class Place:
    """Where a campaign writes and reads: part files, data sets, and what each part file says about its making."""

    out_dir: Path
    data_dir: Path
    record: dict[str, Any]


def order_of(run: PlannedRun) -> Order:
    """What a worker is told about a planned run."""
    job, template = run.job, run.job.template
    return Order(
        run_id=run.run_id,
        sql=run.sql,
        data_set=template.data_set,
        parts=run.parts,
        source=template.source,
        databases=template.databases,
        writes=template.writes,
        threads=run.threads,
        memory_mb=job.memory_mb,
        time_limit_s=job.time_limit_s,
        is_cold=run.is_cold,
    )


class Session:
    """Runs planned runs to their end. `on_finished` is called with the rows' number after each finished run."""

    def __init__(
        self,
        place: Place,
        pool: WorkerPool,
        load: BackgroundLoad,
        *,
        part_s: float,
        on_finished: Callable[[int], None],
    ) -> None:
        self.place, self.pool, self.load = place, pool, load
        self.part_s, self.on_finished = part_s, on_finished
        self.monitor = Monitor()
        self.statuses: dict[str, int] = {}
        self._waiting: deque[Submission] = deque()
        self._given: dict[str, tuple[Submission, Surroundings]] = {}
        self._rows: list[dict[str, Any]] = []
        self._part_due = self._sample_due = 0.0
        self._part_bytes = {name: self._mean_part_bytes(name) for name in DATA_SETS}

    def _mean_part_bytes(self, data_set: str) -> float:
        sizes = [(self.place.data_dir / DATA_SETS[data_set].path(part)).stat().st_size for part in range(PARTS)]
        return sum(sizes) / PARTS

    def run(self, runs: Sequence[PlannedRun], phases: Sequence[LoadPhase]) -> None:
        """Submit every run at its time, counted from the first one, and return when all have ended."""
        to_come, phases_left = deque(runs), deque(phases)
        started = time.monotonic() - runs[0].submit_s
        self._part_due = time.monotonic() + self.part_s
        while to_come or self._waiting or self._given:
            now_s = time.monotonic() - started
            while phases_left and phases_left[0].start_s <= now_s:
                self.load.switch(phases_left.popleft().level)
            while to_come and to_come[0].submit_s <= now_s:
                self._waiting.append(Submission(to_come.popleft(), time.time(), len(self._waiting)))
            self._keep_watch()
            self._give_out()
            nap_s = to_come[0].submit_s - now_s if to_come else LONGEST_NAP_S
            for answer in self.pool.collect(min(max(nap_s, 0.0), LONGEST_NAP_S)):
                self._finish(answer)

    def flush(self) -> None:
        """Write the finished runs that no part holds yet."""
        if self._rows:
            write_part(self.place.out_dir, self._rows, self.place.record)
            self._rows = []

    def _keep_watch(self) -> None:
        now = time.monotonic()
        if now >= self._sample_due:
            self.monitor.sample([*self.pool.pids, *self.load.pids])
            self._sample_due = now + SAMPLE_S
        if now >= self._part_due:
            self.flush()
            self._part_due = now + self.part_s

    def _may_start(self, submission: Submission) -> bool:
        """Exports and loads leave one worker to the others."""
        running = [self._given[order.run_id][0].run.job.queue for order in self.pool.running()]
        return submission.run.job.queue != "etl" or running.count("etl") < max(1, self.pool.size - 1)

    def _give_out(self) -> None:
        while (worker := self.pool.idle()) is not None:
            submission = next(filter(self._may_start, self._waiting), None)
            if submission is None:
                return
            self._waiting.remove(submission)
            run = submission.run
            self._given[run.run_id] = (
                submission,
                Surroundings(
                    state=self.monitor.state(),
                    load_level=self.load.level,
                    running_jobs=len(self.pool.running()),
                    input_bytes=run.parts[1] * self._part_bytes[run.job.template.data_set],
                ),
            )
            self.pool.give(worker, order_of(run))

    def _finish(self, answer: dict[str, Any]) -> None:
        submission, around = self._given.pop(answer["run_id"])
        self._rows.append(make_row(submission, around, answer))
        self.statuses[answer["status"]] = self.statuses.get(answer["status"], 0) + 1
        self.on_finished(sum(self.statuses.values()))
