"""A reference fleet as JSON: it gives the same numbers after loading."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.nodes.reference_fleet import COLUMNS, ReferenceFleet

FORMAT, VERSION = "whorl.nodes.reference", 1
NUMBERS = ("orientation", "median", "weight")
COUNTS = ("n_nodes", "n_executions")


def save_reference(reference: ReferenceFleet, file: Path) -> None:
    """Write a reference fleet; a median that nobody measured is null."""
    rows = reference.table.astype(object).where(reference.table.notna(), None).to_dict("records")
    main = {"format": FORMAT, "version": VERSION, "stated": reference.stated, "rows": rows}
    file.write_text(json.dumps(main, indent=1, default=_number), encoding="utf-8")


def load_reference(file: Path) -> ReferenceFleet:
    """What save_reference wrote. Raises BadInput if the file is missing, damaged or foreign."""
    try:
        main = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(main, dict) or (main.get("format"), main.get("version")) != (FORMAT, VERSION):
            raise ValueError(f"not version {VERSION} of the format {FORMAT}")
        table = pd.DataFrame(main["rows"], columns=COLUMNS)
        table = table.astype({**dict.fromkeys(NUMBERS, np.float64), **dict.fromkeys(COUNTS, np.int64)})
        return ReferenceFleet(table, str(main["stated"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"no reference fleet ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(file, problem, "what 'whorl nodes preprocess' wrote", "preprocess again") from error


def _number(value: object) -> float:
    if isinstance(value, np.generic):
        return float(value.item())
    raise TypeError(f"{type(value).__name__} is no number; expected the values of a reference")
