"""Executions one after another: in the order of the plan and then again those that were disturbed, or what is next."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from tasks.errors import WhorlError
from tasks.nodes.record.bench import CLEAN, Bench, Outcome
from tasks.nodes.record.doses import doses_of
from tasks.nodes.record.ledger import Ledger
from tasks.nodes.record.plan import PlannedExecution
from tasks.nodes.record.sampler import NodeSampler
from tasks.nodes.record.steady import Past, next_benchmark
from tasks.nodes.record.templates import BenchmarkTemplate

Tell = Callable[[int, int], None]
Turn = Callable[[BenchmarkTemplate], AbstractContextManager[object]]
NAP_S = 0.02
logger = logging.getLogger(__name__)


@dataclass
class Schedule:
    """One call of the recorder. waiting: executions whose last samples are not taken yet; errors: of those that could
    not be run, by id; failed: their numbers; broken: without a plan, node and benchmark of these."""

    bench: Bench
    ledger: Ledger
    sampler: NodeSampler
    tell: Tell
    turn: Turn | None
    history: Mapping[str, Sequence[Past]]
    waiting: list[Outcome] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    broken: set[tuple[str, str]] = field(default_factory=set)
    n_run: int = 0
    spent_s: float = 0.0

    @property
    def overhead_s(self) -> float:
        """Mean time of an execution beside its tool's own."""
        return self.spent_s / self.n_run if self.n_run else 0.0

    def run(self, ends_s: float) -> None:
        """Run executions until none is left or the time (on the monotonic clock) is over; keep each of them.

        Those that have ended are kept even if this is interrupted."""
        margin_s = self.bench.params.margin_s
        self._wait_for(time.monotonic() + margin_s)  # there is a time before the first one
        began_s = time.monotonic()
        try:
            for planned in self._next():
                template = self.bench.templates[planned.benchmark]
                if time.monotonic() >= ends_s:
                    return
                self._record(planned, template)
                self._keep_complete()
        finally:
            self.spent_s += time.monotonic() - began_s
            with contextlib.suppress(KeyboardInterrupt, SystemExit):
                if self.waiting:
                    self._wait_for(self.waiting[-1].ended_s + margin_s)
            self._keep_complete(all_of_them=True)

    def _next(self) -> Iterator[PlannedExecution]:
        if self.ledger.plan is None:
            yield from self._steady()
            return
        yield from self.ledger.left(self.ledger.plan.executions)
        for n in range(self.bench.params.repeats):
            self._settle()
            again = [one for one in self.ledger.repetition(n + 1) if one.number not in self.failed]
            yield from again

    def _steady(self) -> Iterator[PlannedExecution]:
        for _ in range(self.bench.params.executions):
            for node in self.bench.places:
                yield from self._one_on(node)

    def _one_on(self, node: str) -> Iterator[PlannedExecution]:
        """What is next on a node; where it cannot be run, another in its place, and it no more in this call."""
        while templates := [one for one in self.bench.templates.values() if (node, one.benchmark) not in self.broken]:
            self._settle()
            template = next_benchmark((*self.history.get(node, ()), *self.ledger.past(node)), templates)
            number = len(self.ledger.done) + len(self.errors) + 1
            yield PlannedExecution(number, node, template.benchmark, template.template_hash, template.is_network)
            if number not in self.failed:
                return
            self.broken.add((node, template.benchmark))

    def _record(self, planned: PlannedExecution, template: BenchmarkTemplate) -> None:
        began_s = time.monotonic()
        doses = doses_of(self.bench.params.doses, planned.benchmark, planned.dose_level, planned.node)
        dose = next((one for one in doses if one.name == planned.dose), None)
        self._lower(planned)
        if self.turn and self.waiting:  # a turn may take longer than samples are kept
            margin_s = self.bench.params.margin_s
            self.sampler.put_aside(self.waiting[0].began_s - margin_s, self.waiting[-1].ended_s + margin_s)
        try:
            with self.turn(template) if self.turn else contextlib.nullcontext():
                waited_s = time.monotonic() - began_s
                outcome = self.bench.record(planned, dose)
        except (WhorlError, OSError) as error:  # any fault of one benchmark is its own, not the end of the campaign
            self.errors[planned.id_in(self.ledger.campaign)] = str(error)
            self.failed.add(planned.number)
            logger.warning("%s cannot be run: %s", planned.id_in(self.ledger.campaign), error)
            return
        self.waiting.append(outcome)
        self.n_run += 1
        self.spent_s -= waited_s + outcome.ended_s - outcome.began_s

    def _lower(self, planned: PlannedExecution) -> None:
        """Lower the limits of a node whose time has come. Repetitions come after the plan: they have them too."""
        n = len(self.ledger.plan.executions) if self.ledger.plan else 0
        place = self.bench.places[planned.node]
        for limit in self.bench.params.lowered:
            is_due = planned.repetition > 0 or planned.number > limit.after_ratio * n
            if n and limit.node == planned.node and is_due and limit.name not in place.lowered:
                place.lower(limit)
                logger.info("%s: %s from execution %d on", planned.node, limit.name, planned.number)

    def _settle(self) -> None:
        """Keep all that has ended: what comes next depends on it."""
        if self.waiting:
            self._wait_for(self.waiting[-1].ended_s + self.bench.params.margin_s)
            self._keep_complete(all_of_them=True)

    def _wait_for(self, at_s: float) -> None:
        while self.sampler.is_alive() and not self.sampler.covers(at_s):
            time.sleep(NAP_S)

    def _keep_complete(self, *, all_of_them: bool = False) -> None:
        """Keep the executions after which enough was sampled."""
        margin_s = self.bench.params.margin_s
        while self.waiting and (all_of_them or self.sampler.covers(self.waiting[0].ended_s + margin_s)):
            outcome = self.waiting[0]
            begin_s, end_s = outcome.began_s - margin_s, outcome.ended_s + margin_s
            telemetry = self.sampler.between(outcome.planned.node, begin_s, end_s, outcome.began_s)
            self.ledger.keep(outcome, telemetry)
            self.waiting.pop(0)
            self._say(outcome)

    def _say(self, outcome: Outcome) -> None:
        plan, done = self.ledger.plan, self.ledger.done.values()
        clean = sum(one.status == CLEAN for one in done)
        total = len(plan.executions) if plan else len(done)
        facts = outcome.execution.facts
        logger.log(
            logging.INFO if outcome.status == CLEAN else logging.WARNING,
            "%d of %d: %s %s, %.2f s, %d metrics, dose %s, %s foreign, %s stolen",
            len(done), total, facts["execution_id"], outcome.status, facts["duration_s"],
            len(outcome.execution.measured), facts["dose"] or "none", facts["foreign_cores"], facts["steal_cores"],
        )  # fmt: skip
        self.tell(clean, total)
