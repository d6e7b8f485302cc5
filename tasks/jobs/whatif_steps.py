"""The step of what-if questions: keys in, keys and figures out."""

import logging
from typing import TypedDict

from tasks.errors import BadInput
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.scenarios import Scenario, parse_scenario
from tasks.warehouse.place import Warehouse

logger = logging.getLogger(__name__)


class AskedWhatIf(TypedDict):
    """What stands in jobs.what_ifs now. scenarios: their names; refused: line by name of those that the log has not."""

    model_id: str
    scenarios: list[str]
    refused: dict[str, str]
    right_share: dict[str, float | None]


def ask_what_ifs(
    warehouse: Warehouse,
    source: str,
    scenarios: list[str],
    sets: list[str],
    shifts: list[str],
    stds: list[str],
    whatif: WhatIfParams,
) -> AskedWhatIf:
    """Answer named scenarios, and one of the free-form changes together, and write the answers.

    A scenario that the log does not have the features for is refused with a line, and does not hold up the others.
    Raises BadInput if none is left, and as ask_source does."""
    from tasks.jobs.control.answer_rows import write_answer
    from tasks.jobs.control.answering import ask_source

    asked = [parse_scenario(scenario=name) for name in scenarios]
    asked += [parse_scenario(sets=sets, shifts=shifts, stds=stds)] if [*sets, *shifts, *stds] else []
    ground = ask_source(warehouse, source)
    found = AskedWhatIf(model_id=ground.model_id, scenarios=[], refused={}, right_share={})
    errors: list[BadInput] = []
    for scenario in asked:
        try:
            answer = ground.answer(scenario, whatif)
        except BadInput as error:
            found["refused"][scenario.name] = str(error)
            errors.append(error)
            continue
        write_answer(warehouse, source, ground.model_id, answer, whatif)
        found["scenarios"].append(scenario.name)
        directions = answer.measured.comparison.score.directions if answer.measured else None
        found["right_share"][scenario.name] = directions.share if directions else None
        _log(source, scenario, found)
    if errors and not found["scenarios"]:
        raise errors[0]
    return found


def _log(source: str, scenario: Scenario, found: AskedWhatIf) -> None:
    right = found["right_share"][scenario.name]
    told = "not measured" if right is None else f"{100 * right:.0f} % of the measured directions right"
    logger.info("what if %s in source %s: %s", scenario.name, source, told)
