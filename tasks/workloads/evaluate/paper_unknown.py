"""The paper's second case study: learned from four workloads, which of them are two others taken for (Table III)?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.workloads.evaluate.cohort import Cohort
from tasks.workloads.identify.identification import identify_all
from tasks.workloads.identify.model import fit_model
from tasks.workloads.identify.params import IdentifyParams


@dataclass(frozen=True)
class TableIII:
    """table: one row an unknown and a known workload: unknown, known, share (of its runs for which that one is most
    probable), nearest_share (to which it is nearest), said_unknown (of its runs, whatever the known one). reason: why
    there is none."""

    table: pd.DataFrame
    reason: str = ""


def table_iii(cohort: Cohort, known: Sequence[str], unknown: Sequence[str], params: IdentifyParams) -> TableIII:
    """Learn from all runs of the known workloads and name those of the unknown ones."""
    missing = sorted({*known, *unknown} - set(cohort.labels.tolist()))
    if missing:
        return TableIII(
            pd.DataFrame(), f"no runs of {', '.join(missing)}; the split is set by paper_known, paper_unknown"
        )
    train = np.flatnonzero(np.isin(cohort.labels, list(known)))
    model = fit_model(cohort.runs(train), params, cuts=cohort.cuts)
    rows = []
    for workload in unknown:
        runs = cohort.runs(np.flatnonzero(cohort.labels == workload))
        found = identify_all(runs, model, cuts=cohort.cuts, with_reasons=False)
        named = [max(one.probabilities, key=lambda name: one.probabilities[name]) for one in found]
        nearest = [one.nearest[0].workload for one in found]
        said_unknown = float(np.mean([not one.is_known for one in found]))
        rows += [
            {
                "unknown": workload,
                "known": name,
                "share": named.count(name) / len(named),
                "nearest_share": nearest.count(name) / len(nearest),
                "said_unknown": said_unknown,
                "n": len(found),
            }
            for name in known
        ]
    return TableIII(pd.DataFrame(rows))
