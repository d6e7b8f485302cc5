"""The campaign that a folder belongs to: its name, and that it is continued with the same plan and parameters."""

import json
from datetime import UTC, datetime
from pathlib import Path

from tasks.errors import BadInput, BadSetting
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.parts import Record, part_paths, read_keys, recorded_params
from tasks.nodes.record.spool import SPOOL, spooled_paths

BEGUN = "campaign.json"  # beside the single executions, until these are in a part
STEADY = "steady"  # instead of a plan's digest where what runs next follows from what ran


def begin(folder: Path, params: RecordParams, digest: str) -> str:
    """The campaign's name: the one with which it was begun, whoever continues it; written down.

    Raises BadSetting if the folder holds another campaign, BadInput if a file cannot be read."""
    (folder / SPOOL).mkdir(parents=True, exist_ok=True)
    told = _told(folder, digest)
    for path, record in told:
        _check(path, record, params, digest)
    ours: Record = {"plan": digest, "params": recorded_params(params)}
    name = str(told[0][1]["campaign"]) if told else params.campaign or f"{datetime.now(UTC):%Y%m%dt%H%M%S}"
    path = folder / SPOOL / BEGUN
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(ours | {"campaign": name}))
    temporary.replace(path)
    return name


def _told(folder: Path, digest: str) -> list[tuple[Path, Record]]:
    """What the files say of their campaign. Without a plan every call is one, and parts are of earlier ones."""
    told = [] if digest == STEADY else [(path, read_keys(path)[1]) for path in part_paths(folder)]
    path = folder / SPOOL / BEGUN
    if path.exists() and spooled_paths(folder):
        try:
            record = json.loads(path.read_text())
            record["campaign"], record["params"], record["plan"]
        except (OSError, ValueError, KeyError, TypeError) as problem:
            expected = "what the recorder wrote at its begin"
            raise BadInput(path, f"cannot be read ({problem})", expected, "move its folder away") from problem
        told.append((path, record))
    return told


def _check(path: Path, theirs: Record, params: RecordParams, digest: str) -> None:
    recorded = theirs.get("params") or {}
    ours = recorded_params(params)
    differing = sorted(key for key in ours if recorded.get(key) != ours[key])
    if differing or theirs.get("plan") != digest:
        what = ", ".join(differing) or "another plan"
        raise BadSetting(
            f"{path}: belongs to a campaign with other parameters ({what}); expected the same ones to continue "
            "it; use another folder or move its parts away"
        )
