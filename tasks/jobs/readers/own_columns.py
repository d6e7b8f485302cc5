"""Which columns of a table are ours: by name, or by the names that the user gives."""

import logging
from collections.abc import Collection, Mapping, Sequence

from tasks.errors import BadInput, headless, quoted
from tasks.jobs.columns import ALL_COLUMNS, LIST_COLUMNS

logger = logging.getLogger(__name__)

NEEDED = (("run_id",), ("name", "group_key"), ("started_at", "submitted_at"), ("runtime_s", "ended_at"))
EXPECTED = "the columns " + ", ".join(" or ".join(names) for names in NEEDED)
PANDAS_INDEX = "__index_level_"


def choose_columns(
    path: str, names: Sequence[str], renamed: Mapping[str, str], known: Collection[str] = ALL_COLUMNS
) -> dict[str, str]:
    """Our columns and their names in the file, in our order.

    names: the columns of the file; renamed: our name to theirs; known: ours that this format can hold. Unknown
    columns are logged and left out. Raises BadInput if a column that is needed is missing or stands there twice, or
    is renamed to nowhere."""
    names = [name.strip() for name in names]
    for ours, theirs in renamed.items():
        if ours not in known:
            fix = "lists need Parquet" if ours in LIST_COLUMNS else "mend --map"
            raise BadInput(path, f"cannot map '{theirs}' to '{ours}'", f"one of {', '.join(known)}", fix)
        if theirs not in names:
            raise BadInput(path, f"no column '{theirs}' to read '{ours}' from", f"one of {quoted(names)}", "mend --map")
    taken = set(renamed.values())
    own = {name: name for name in names if name in known and name not in renamed and name not in taken}
    chosen = {ours: (own | dict(renamed))[ours] for ours in known if ours in own or ours in renamed}
    for theirs in chosen.values():
        if names.count(theirs) > 1:
            raise BadInput(path, f"the column '{theirs}' stands there twice", "each column once", "export it again")
    missing = [needed for needed in NEEDED if not any(name in chosen for name in needed)]
    if not missing and not {"runtime_s", "started_at", "wait_s"} & set(chosen):
        raise BadInput(path, "ended_at without started_at gives no runtime", EXPECTED, "export one of the two as well")
    if missing:
        raise BadInput(
            path,
            f"no column {' and no '.join(' or '.join(needed) for needed in missing)} among {quoted(names)}",
            EXPECTED,
            headless(names) or f"name yours, as in --map {missing[0][0]}=THEIRS",
        )
    lists = [name for name in names if name in LIST_COLUMNS and name not in known]
    if lists:
        logger.warning("%s: %s left out: lists need Parquet", path, ", ".join(lists))
    _log_unknown(path, names, {*chosen.values(), *lists})
    return chosen


def _log_unknown(path: str, names: Sequence[str], known: set[str]) -> None:
    unknown = [name for name in names if name not in known and not name.startswith(PANDAS_INDEX)]
    if unknown:
        logger.info("%s: %d unknown columns are ignored: %s", path, len(unknown), quoted(unknown))
