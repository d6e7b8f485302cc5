"""The figures behind an alarm as JSON has them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from tasks.utc import utc_text


def as_evidence(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The same with plain numbers and times as ISO 8601; what is missing, or is no number, is left out."""
    return {name: _plain(value) for name, value in figures.items() if value is not None and not pd.isna(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return utc_text(value)
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if not isinstance(plain, float) or np.isfinite(plain) else str(plain)
