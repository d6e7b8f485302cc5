"""A recording of benchmarks from end to end. The way in is `record_nodes`."""

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tasks.errors import BadSetting
from tasks.machine_lock import only_recorder
from tasks.nodes.record.bench import CLEAN, Bench
from tasks.nodes.record.disturbance import Usages
from tasks.nodes.record.doses import Dose
from tasks.nodes.record.ledger import Ledger
from tasks.nodes.record.local import nodes_of
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.parts import part_paths
from tasks.nodes.record.plan import Plan, make_plan
from tasks.nodes.record.possible_stress import lacking_stress, possible_doses
from tasks.nodes.record.schedule import Schedule, Tell, Turn
from tasks.nodes.record.staging import Stage, staged
from tasks.nodes.record.steady import Past
from tasks.nodes.record.templates import BenchmarkTemplate
from tasks.nodes.record.tools import check_parsers, check_tools, chosen_templates
from tasks.nodes.record.unwinding import sigterm_unwinds
from tasks.nodes.tools import PARSERS
from tasks.nodes.tools.parsing import Parser

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RecordSummary:
    """What a call did. planned, clean: executions of the campaign, and those of them that were recorded undisturbed so
    far (without a plan: of this call); recorded: executions of this call by status; errors: of those that could not be
    run; unavailable: what of a node does not work here, by node; sampler_cores: the sampler's own cost; isolation:
    cgroups, or none; overhead_s: mean time of an execution beside its tool's own; parts: all of the folder."""

    campaign: str
    planned: int
    clean: int
    recorded: dict[str, int]
    errors: dict[str, str]
    nodes: tuple[str, ...]
    unavailable: dict[str, tuple[str, ...]]
    sampler_cores: float
    isolation: str
    overhead_s: float
    parts: tuple[str, ...]
    duration_s: float


def planned(
    params: RecordParams, templates: Sequence[BenchmarkTemplate] | None = None, *, has_groups: bool = True
) -> Plan | None:
    """The plan of these parameters, as a dry run shows it; None without one. Raises BadSetting.

    has_groups: without control groups, doses that are a share of the node's processors are left out."""
    if not params.runs:
        return None
    nodes = nodes_of(params)
    if len({node.name for node in nodes}) < len(nodes):
        raise BadSetting("nodes.record.emulated: two nodes of the same name; name them differently")
    names = {node.name for node in nodes}
    if strangers := [limit.node for limit in params.lowered if limit.node not in names]:
        raise BadSetting(f"nodes.record.lowered: no node {strangers[0]}; expected some of {', '.join(sorted(names))}")
    if params.lowered and not has_groups:
        raise BadSetting("nodes.record.lowered: no control groups here; take it out, or record as root")
    return make_plan(
        [node.name for node in nodes],
        chosen_templates(params) if templates is None else templates,
        possible_doses(params.doses, has_groups=has_groups),
        runs=params.runs,
        stressed_ratio=params.stressed_ratio,
        seed=params.seed,
    )


def runnable(
    params: RecordParams, parsers: Mapping[str, Parser] = PARSERS
) -> tuple[tuple[BenchmarkTemplate, ...], list[Dose]]:
    """The benchmarks of these parameters, and the doses of stress. Raises MissingTool, BadSetting as record_nodes."""
    templates = chosen_templates(params)
    check_parsers(templates, parsers, params.profile)
    names = {one.benchmark for one in templates} if params.runs and params.stressed_ratio else set()
    doses = [dose for dose in params.doses if dose.benchmark in names]
    check_tools(templates, doses)
    planned(params, templates)
    return templates, doses


def record_nodes(
    params: RecordParams,
    out_dir: Path,
    progress: Tell | None = None,
    *,
    history: Mapping[str, Sequence[Past]] | None = None,
    turn: Turn | None = None,
    parsers: Mapping[str, Parser] = PARSERS,
    lock: str | None = None,
) -> RecordSummary:
    """Record executions into `executions-NNNN.parquet` under out_dir; disturbed ones go to `flagged-NNNN.parquet`.

    progress: called with (clean, planned) after each execution. With params.runs each call goes on for params.minutes
    where the last one stopped; without, it runs params.executions of what the nodes lack, or what is stalest, given
    what they have in out_dir and in `history` (by node). turn: entered around each execution, so that the network's
    can wait for each other across machines. When it ends, by return, exception or SIGTERM, all that was recorded is in
    parts, and no process, control group or namespace is left; after a kill the next call finds every finished
    execution and ends what the dead one has left. Raises MissingTool, BadSetting (another campaign in out_dir, another
    recording at work, an unknown benchmark, one whose logs nobody reads), BadInput (a part cannot be read)."""
    began_s = time.monotonic()
    templates, doses = runnable(params, parsers)
    out_dir.mkdir(parents=True, exist_ok=True)
    with sigterm_unwinds(), only_recorder("nodes", lock, wait_s=params.lock_wait_s):
        with staged(params, templates, doses, str(out_dir.resolve())) as bare:
            plan = planned(params, bare.templates, has_groups=bare.group is not None)
            stage = _with_lacking_stress(bare, params, plan)
            ledger = Ledger(out_dir, params, plan, stage.facts())
            before = set(ledger.done)
            try:
                schedule = _schedule(params, stage, ledger, progress, turn, history, parsers)
                schedule.run(began_s + params.minutes * 60)
            finally:
                ledger.close()
        return _summary(stage, ledger, schedule, before, began_s)


def _with_lacking_stress(stage: Stage, params: RecordParams, plan: Plan | None) -> Stage:
    """The stage with what of the campaign's stress it cannot have, which is told before anything runs."""
    lacking = lacking_stress(params, stage.templates, has_groups=stage.group is not None)
    if plan is None or not lacking:
        return stage
    n, n_stressed = len(plan.executions), sum(one.stress_wanted for one in plan.executions)
    told = "%d of the %d executions will be stressed, and not %.0f: %s"
    logger.warning(told, n_stressed, n, n * params.stressed_ratio, "; ".join(lacking))
    return replace(stage, unavailable={name: (*stage.unavailable.get(name, ()), *lacking) for name in stage.places})


def _schedule(
    params: RecordParams,
    stage: Stage,
    ledger: Ledger,
    progress: Tell | None,
    turn: Turn | None,
    history: Mapping[str, Sequence[Past]] | None,
    parsers: Mapping[str, Parser],
) -> Schedule:
    by_name = {one.benchmark: one for one in stage.templates}
    bench = Bench(params, ledger.campaign, by_name, stage.places, parsers, Usages(stage.group))
    return Schedule(bench, ledger, stage.sampler, progress or (lambda *_: None), turn, history or {})


def _summary(stage: Stage, ledger: Ledger, schedule: Schedule, before: set[str], began_s: float) -> RecordSummary:
    new = [done for execution_id, done in ledger.done.items() if execution_id not in before]
    plan = ledger.plan
    n_clean = sum(map(ledger.has_clean, plan.executions)) if plan else sum(done.status == CLEAN for done in new)
    return RecordSummary(
        campaign=ledger.campaign,
        planned=len(plan.executions) if plan else len(new),
        clean=n_clean,
        recorded=dict(Counter(done.status for done in new)),
        errors=schedule.errors,
        nodes=tuple(stage.places),
        unavailable=dict(stage.unavailable),
        sampler_cores=stage.sampler.cores,
        isolation=stage.isolation,
        overhead_s=schedule.overhead_s,
        parts=tuple(path.name for path in part_paths(ledger.folder)),
        duration_s=time.monotonic() - began_s,
    )
