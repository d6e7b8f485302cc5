"""Which words in a column `dose` name a stress, and which say that there was none."""

from tasks.workloads.readers.tables import MISSING

NONE = frozenset({*MISSING, "no", "false", "off"})


def is_dose(text: object) -> bool:
    """Whether a dose names a stress: not for nothing, none, no, false, off, a dash, or any form of 0."""
    told = "" if text is None else str(text).strip().lower()
    if told in NONE:
        return False
    try:
        return float(told.removesuffix("%")) != 0
    except ValueError:
        return True
