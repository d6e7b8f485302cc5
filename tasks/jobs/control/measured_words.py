"""What all pairs of a change together say of variation, in sentences: which claims they bear out, and which not."""

import numpy as np
import pandas as pd

from tasks.jobs.control.claims import Claims
from tasks.jobs.control.comparisons import Noise
from tasks.quantities import digits

WORDS = {"p95": "95th percentile", "gap": "25th-75th gap"}


def describe_overall(overall: pd.DataFrame) -> Claims:
    """One sentence for each of WORDS: a claim where it was foretold to go as it went. overall: of Comparison."""
    can: list[str] = []
    cannot: list[str] = []
    for name, words in WORDS.items():
        if name not in overall.index or overall.loc[name].isna().any():
            continue
        before, after, old, new = (float(x) for x in np.asarray(overall.loc[name], dtype=np.float64))
        line = (
            f"Measured over all pairs together: the {words}, over the historic median, went from {digits(before)} to "
            f"{digits(after)}; foretold was {digits(old)} to {digits(new)}"
        )
        is_right = (after - before) * (new - old) > 0
        (can if is_right else cannot).append(f"{line}." if is_right else f"{line}, the other way.")
    return Claims(can, cannot)


def describe_noise(noise: Noise) -> list[str]:
    """How much runs differ anyway; nothing without runs that were repeated unchanged."""
    if noise.mean_absolute is None:
        return []
    return [
        f"How long a single run will take: {noise.n:,} runs that were repeated unchanged differ by "
        f"{noise.mean_absolute:.3f} in the logarithm on average."
    ]
