"""The campaign that a folder belongs to: its name, and that it is continued with the same plan and parameters."""

import json
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from tasks.errors import BadInput, BadSetting
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.parts import STEADY, Record, part_paths, read_keys, recorded_params, write_parts
from tasks.nodes.record.spool import SPOOL, spooled_paths

BEGUN = "campaign.json"  # beside the single executions, until these are in a part


def begin(folder: Path, params: RecordParams, digest: str, facts: Record, *, now: datetime | None = None) -> str:
    """The campaign's name: the one with which it was begun, whoever continues it; written down, with the facts.

    A new one is named after the time as well: ids of executions of two campaigns are never the same. Calls without a
    plan and a campaign may share a folder; what a killed one has left is put into parts. facts: of machine and nodes.
    Raises BadSetting if the folder holds another campaign, BadInput if a file cannot be read."""
    (folder / SPOOL).mkdir(parents=True, exist_ok=True)
    left = _left(folder)
    if left and STEADY in (left["plan"], digest):
        write_parts(folder, left)
        left = {}
    path = folder / SPOOL / BEGUN
    told = [*_told(folder, digest), *([(path, left)] if left else [])]
    for where, record in told:
        _check(where, record, params, digest)
    new = "-".join(filter(None, (params.campaign, f"{now or datetime.now(UTC):%Y%m%dt%H%M%S}")))
    name = str(told[0][1]["campaign"]) if told else new
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps({**facts, "plan": digest, "params": recorded_params(params), "campaign": name}))
    temporary.replace(path)
    return name


def _left(folder: Path) -> Record:
    """The record of the executions that are in no part yet; empty if there are none. Raises BadInput."""
    path = folder / SPOOL / BEGUN
    if not path.exists() or not spooled_paths(folder):
        return {}
    try:
        told: Record = json.loads(path.read_text())
        told["campaign"], told["params"], told["plan"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        expected = "what the recorder wrote at its begin"
        raise BadInput(path, f"cannot be read ({problem})", expected, "move its folder away") from problem
    return told


def _told(folder: Path, digest: str) -> list[tuple[Path, Record]]:
    """What the parts say of their campaign. Without a plan every call is one, and says nothing of later ones."""
    told = [] if digest == STEADY else [(path, read_keys(path)[1]) for path in part_paths(folder)]
    return [(path, record) for path, record in told if record.get("plan") != STEADY]


def _check(path: Path, theirs: Record, params: RecordParams, digest: str) -> None:
    try:  # what a campaign of an older recorder does not say it had by default
        recorded = recorded_params(RecordParams.model_validate(theirs.get("params") or {}))
    except ValidationError:
        recorded = {}
    ours = recorded_params(params)
    differing = sorted(key for key in ours if recorded.get(key) != ours[key])
    if differing or theirs.get("plan") != digest:
        what = ", ".join(differing) or "another plan"
        raise BadSetting(
            f"{path}: belongs to a campaign with other parameters ({what}); expected the same ones to continue "
            "it; use another folder or move its parts away"
        )
