"""The plan of a campaign: which benchmark runs on which node, when, and under which stress; or what is next."""

import math
import random
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from itertools import takewhile

from tasks.errors import BadSetting
from tasks.nodes.record.params import LEVELS, PAPER, BenchmarkTemplate, Dose, RecordParams, doses_of
from tasks.record.campaign import AGAIN, digest_of, mixed
from tasks.record.parts import CLEAN

EPSILON = 1e-9  # 0.2 of 35 is 7, whatever binary fractions say
MOST_REPEATS = 2  # of a flagged benchmark before it waits for its turn like the others
NO_GROUPS = "no control groups here"


@dataclass(frozen=True)
class PlannedExecution:
    """One execution. number: from 1, in the order of the plan; dose_level: 0 without stress, which has no dose."""

    number: int
    node: str
    benchmark: str
    template_hash: str
    is_network: bool
    dose: str = ""
    dose_level: int = 0
    repetition: int = 0

    @property
    def stress_wanted(self) -> bool:
        """Whether a stressor is to run beside it."""
        return self.dose_level > 0

    def id_in(self, campaign: str) -> str:
        """Its id, unique in the campaign."""
        again = f"{AGAIN}{self.repetition}" if self.repetition else ""
        return f"{campaign}-{self.number:04d}-{self.node}-{self.benchmark}{again}"

    def again(self, n: int) -> "PlannedExecution":
        """The n-th repetition of this execution."""
        return replace(self, repetition=n)


Plan = tuple[PlannedExecution, ...]  # in order: one after another, so never two of the network at a time


def plan_digest(plan: Plan) -> str:
    """A short hash of all that a plan says."""
    return digest_of("\n".join(repr(astuple(execution)) for execution in plan))


def make_plan(
    nodes: Sequence[str],
    templates: Sequence[BenchmarkTemplate],
    doses: Sequence[Dose],
    *,
    runs: int,
    stressed_ratio: float,
    seed: int,
) -> Plan:
    """Each benchmark on each node `runs` times: once in every stretch of len(nodes) × len(templates) executions.

    So any window of the campaign holds all pairs of node and benchmark equally often, give or take two. The stressed
    executions of a pair are spread over the campaign in the same way, and their doses over those: levels in turn, and
    in turn the doses of a level that are meant for the node."""
    dice = random.Random(seed)
    pairs = [(node, template) for node in nodes for template in templates]
    levels = _levels(len(pairs), runs, stressed_ratio, dice)
    executions: list[PlannedExecution] = []
    for run in range(runs):
        last = executions[-1].node if executions else ""
        for place in mixed(range(len(pairs)), lambda at: pairs[at][0], dice, last):
            node, template = pairs[place]
            dose = _dose_of(doses, node, template.benchmark, levels[place], run, place)
            executions.append(
                PlannedExecution(
                    number=len(executions) + 1,
                    node=node,
                    benchmark=template.benchmark,
                    template_hash=template.template_hash,
                    is_network=template.is_network,
                    dose=dose.name if dose else "",
                    dose_level=dose.level if dose else 0,
                )
            )
    return tuple(executions)


def _dose_of(
    doses: Sequence[Dose], node: str, benchmark: str, levels: Sequence[int], run: int, pair: int
) -> Dose | None:
    """The dose of a run: where a level has several they are dealt in turn, each pair and level beginning at another."""
    if not levels[run]:
        return None
    ours = doses_of(doses, benchmark, levels[run], node)
    return ours[(levels[:run].count(levels[run]) + levels[run] + pair) % len(ours)] if ours else None


def _levels(n_pairs: int, runs: int, ratio: float, dice: random.Random) -> list[list[int]]:
    """The dose level of each run of each pair, 0 for most: as many of each level as of the others, give or take one."""
    ranks = list(range(n_pairs))
    dice.shuffle(ranks)
    upto = [math.floor(rank * runs * ratio + 0.5 + EPSILON) for rank in range(n_pairs + 1)]
    levels = [[0] * runs for _ in range(n_pairs)]
    counts = {pair: upto[rank + 1] - upto[rank] for pair, rank in enumerate(ranks)}
    dealt = {pair: _dealt(counts[pair], upto[ranks[pair]], dice) for pair in counts}
    for k in range(max(counts.values(), default=0)):
        dice.shuffle(ranks)
        for pair, rank in enumerate(ranks):
            if k < counts[pair]:
                first, end = k * runs // counts[pair], (k + 1) * runs // counts[pair]
                at = first + math.floor((rank + 0.5) / n_pairs * (end - first))
                levels[pair][at] = dealt[pair][k]
    return levels


def _dealt(n: int, start: int, dice: random.Random) -> list[int]:
    """n levels in turn, from wherever the pair before has stopped, mixed within each three."""
    turn = [LEVELS[(start + k) % len(LEVELS)] for k in range(n)]
    mixed: list[int] = []
    for first in range(0, n, len(LEVELS)):
        three = turn[first : first + len(LEVELS)]
        dice.shuffle(three)
        mixed += three
    return mixed


def selected_templates(params: RecordParams) -> tuple[BenchmarkTemplate, ...]:
    """The templates of the profile that are asked for. Raises BadSetting for an unknown name, or a doubled one."""
    templates = params.short if params.profile == "short" else PAPER
    names = [template.benchmark for template in templates]
    unknown = [name for name in params.benchmarks if name not in names]
    if unknown:
        raise BadSetting(
            f"nodes.record.benchmarks: no benchmark {', '.join(unknown)} in the profile {params.profile}; "
            f"expected some of {', '.join(names)}"
        )
    if len(set(names)) < len(names):
        raise BadSetting(f"nodes.record.{params.profile}: two templates of the same benchmark; name them differently")
    return tuple(template for template in templates if not params.benchmarks or template.benchmark in params.benchmarks)


@dataclass(frozen=True)
class Done:
    """An execution that is kept somewhere. status: clean, or why it is to be repeated: it failed, or was disturbed."""

    execution_id: str
    node: str
    benchmark: str
    template_hash: str
    started_at: datetime
    status: str


def next_benchmark(history: Sequence[Done], templates: Sequence[BenchmarkTemplate]) -> BenchmarkTemplate:
    """The benchmark to run now: one that the node lacks, else one whose last execution is flagged, else the stalest.

    One of another template does not count. A flagged benchmark is repeated twice at most before others have their
    turn: on a machine that is never quiet nothing else would ever run."""
    behind: dict[tuple[str, str], list[Done]] = {(kind.benchmark, kind.template_hash): [] for kind in templates}
    for done in sorted(history, key=lambda done: done.started_at):
        behind.get((done.benchmark, done.template_hash), []).append(done)
    doubtful = []
    for template, past in zip(templates, behind.values(), strict=True):
        if not past:
            return template
        n_flagged = len(list(takewhile(lambda done: done.status != CLEAN, reversed(past))))  # of the last in a row
        doubtful += [template] if 1 <= n_flagged <= MOST_REPEATS else []
    return min(doubtful or templates, key=lambda kind: behind[kind.benchmark, kind.template_hash][-1].started_at)


def possible_doses(doses: Sequence[Dose], *, has_groups: bool) -> list[Dose]:
    """Those that can be applied here."""
    return [dose for dose in doses if has_groups or (dose.cpu_ratio >= 1 and dose.throttle_ratio >= 1)]


def lacking_stress(
    params: RecordParams, templates: Sequence[BenchmarkTemplate], *, has_groups: bool
) -> tuple[str, ...]:
    """A line for each benchmark that a campaign cannot stress at every level here: it runs unstressed instead."""
    if not params.runs or not params.stressed_ratio:
        return ()
    doses, possible = params.doses, possible_doses(params.doses, has_groups=has_groups)
    lines = []
    for benchmark in (template.benchmark for template in templates):
        lacking = [level for level in LEVELS if not doses_of(possible, benchmark, level)]
        lost = [dose.name for level in lacking for dose in doses_of(doses, benchmark, level)]
        levels = ", ".join(str(level) for level in lacking if not doses_of(doses, benchmark, level))
        reasons = [f"by {', '.join(lost)} ({NO_GROUPS})"] if lost else []
        reasons += [f"at level {levels} (none in nodes.record.doses)"] if levels else []
        if reasons:
            lines.append(f"{benchmark} is not stressed {', '.join(reasons)}")
    return tuple(lines)
