"""Measures how far each dose of stress moves each benchmark, and chooses the ladder.

    python -m tasks.nodes.record.measure_doses [--node NAME] [--benchmark NAME] [--calm 8] [--stressed 4]

Prints a line a dose, and the ladder as it stands in conf/nodes.yaml. Needs root and an idle machine: the spread of the
unstressed executions is the measure."""

import argparse
import logging
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from tasks.errors import WhorlError
from tasks.machine_lock import only_recorder
from tasks.nodes.preprocess.units import conversion_of
from tasks.nodes.record.bench import Bench, Outcome
from tasks.nodes.record.distances import Rung, chosen_ladder, rungs_of
from tasks.nodes.record.disturbance import Usages
from tasks.nodes.record.doses import Dose
from tasks.nodes.record.ladder import WATCHED, candidates_for
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.plan import PlannedExecution
from tasks.nodes.record.staging import staged
from tasks.nodes.record.templates import BenchmarkTemplate
from tasks.nodes.record.tools import check_tools, chosen_templates
from tasks.nodes.record.unwinding import sigterm_unwinds
from tasks.nodes.tools import PARSERS

Case = tuple[str, BenchmarkTemplate, Dose | None]
logger = logging.getLogger(__name__)


@dataclass
class Seen:
    """Values of the watched metric of one benchmark, in base units."""

    calm: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    stressed: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    applied: dict[str, tuple[int, int]] = field(default_factory=dict)


def measure_doses(
    params: RecordParams,
    *,
    candidates: Mapping[str, Sequence[Dose]] | None = None,
    n_calm: int = 8,
    n_stressed: int = 4,
    lock: str | None = None,
) -> dict[str, list[Rung]]:
    """The distance that each candidate moves its benchmark by, over the nodes of the parameters.

    Each candidate runs n_stressed times on each node, mixed with n_calm unstressed executions; disturbed ones do not
    count. Raises MissingTool, BadSetting."""
    templates = [one for one in chosen_templates(params) if one.benchmark in WATCHED]
    tried = {one.benchmark: (candidates or {}).get(one.benchmark, candidates_for(one.benchmark)) for one in templates}
    doses = [dose for some in tried.values() for dose in some]
    check_tools(templates, doses)
    seen = {one.benchmark: Seen() for one in templates}
    with sigterm_unwinds(), only_recorder("nodes", lock, wait_s=params.lock_wait_s):
        with staged(params, templates, doses, "doses") as stage:
            by_name = {one.benchmark: one for one in stage.templates}
            bench = Bench(params, "doses", by_name, stage.places, PARSERS, Usages(stage.group))
            cases = _cases(list(stage.places), stage.templates, tried, n_calm, n_stressed, params.seed)
            for number, (node, template, dose) in enumerate(cases, start=1):
                planned = PlannedExecution(
                    number, node, template.benchmark, template.template_hash, template.is_network,
                    dose.name if dose else "", dose.level if dose else 0,
                )  # fmt: skip
                try:
                    outcome = bench.record(planned, dose)
                except WhorlError as error:
                    logger.warning("%s", error)
                    continue
                value = watched_value(outcome)
                logger.info("%d of %d: %s %s %s: %s", number, len(cases), node, template.benchmark, planned.dose, value)
                _note(seen[template.benchmark], outcome, value)
    return {name: rungs_of(tried[name], one.stressed, one.calm, one.applied) for name, one in seen.items()}


def watched_value(outcome: Outcome) -> float | None:
    """The value that tells how the benchmark went, in base units; None where it has none."""
    benchmark = outcome.planned.benchmark
    for one in outcome.execution.measured:
        if one.metric == WATCHED[benchmark]:
            return one.value * conversion_of(one.unit, benchmark).factor
    return None


def _cases(
    nodes: Sequence[str],
    templates: Sequence[BenchmarkTemplate],
    tried: Mapping[str, Sequence[Dose]],
    n_calm: int,
    n_stressed: int,
    seed: int,
) -> list[Case]:
    cases: list[Case] = []
    for node in nodes:
        for template in templates:
            cases += [(node, template, None)] * n_calm
            cases += [(node, template, dose) for dose in tried[template.benchmark]] * n_stressed
    random.Random(seed).shuffle(cases)
    return cases


def _note(seen: Seen, outcome: Outcome, value: float | None) -> None:
    planned, facts = outcome.planned, outcome.execution.facts
    if value is None or facts["is_contaminated"]:
        return
    if not planned.dose:
        seen.calm[planned.node].append(value)
        return
    n, n_applied = seen.applied.get(planned.dose, (0, 0))
    seen.applied[planned.dose] = (n + 1, n_applied + bool(facts["is_stressed"]))
    if facts["is_stressed"]:
        seen.stressed[planned.node, planned.dose].append(value)


def show(found: Mapping[str, Sequence[Rung]]) -> None:
    """Print every rung, and the ladder in the words of conf/nodes.yaml."""
    for benchmark, rungs in found.items():
        for rung in rungs:
            told = f"{rung.sd:+9.1f} SD  {rung.ratio:7.3f} of its value  applied {rung.n_applied} of {rung.n}"
            print(f"{benchmark:16} {rung.dose.name:14} {told}")
    print("doses:")
    for benchmark, rungs in found.items():
        is_more = PARSERS[benchmark].metrics[WATCHED[benchmark]].higher_is_better is True
        for dose in chosen_ladder(rungs, higher_is_better=is_more):
            line = yaml.safe_dump(dose.model_dump(mode="json"), default_flow_style=True, width=1000, sort_keys=False)
            print(f"  - {line.strip()}")


def main(words: Sequence[str] | None = None) -> None:
    """Measure on the emulated nodes, and print."""
    asked = argparse.ArgumentParser(description="Measure how far each dose of stress moves each benchmark.")
    asked.add_argument("--node", action="append", default=[], help="only this emulated node; may be repeated")
    asked.add_argument("--benchmark", action="append", default=[], help="only this benchmark; may be repeated")
    asked.add_argument("--calm", type=int, default=8, help="unstressed executions of each benchmark on each node")
    asked.add_argument("--stressed", type=int, default=4, help="executions with each dose on each node")
    told = asked.parse_args(words)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    params = RecordParams(place="emulated", benchmarks=tuple(told.benchmark))
    if told.node:
        params = params.model_copy(update={"emulated": tuple(one for one in params.emulated if one.name in told.node)})
    show(measure_doses(params, n_calm=told.calm, n_stressed=told.stressed))


if __name__ == "__main__":
    main()
