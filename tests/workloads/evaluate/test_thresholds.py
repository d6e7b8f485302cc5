from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tasks.workloads.evaluate.thresholds import threshold_figures, threshold_table
from tasks.workloads.fingerprints import Fingerprint
from tasks.workloads.similarity.params import SimilarityParams
from tasks.workloads.similarity.thresholds import Spread

PARAMS = SimilarityParams(distance="euclidean", deviations=1)


def one_phase(workload, value):
    """A run of one phase that is one number."""
    phase = np.array([[float(value)]])
    return Fingerprint(f"{workload}-{value}", workload, ("c",), (), (), np.array([0, 1]), phase)


def trial(known, tested, spreads):
    distances = np.array([[abs(a.workload_phases - b.workload_phases).item() for b in known] for a in tested])
    learned = SimpleNamespace(
        params=SimpleNamespace(similarity=PARAMS),
        known=known,
        judge=SimpleNamespace(classes=tuple(sorted({one.workload for one in known}))),
        spreads={"ed": spreads, "dtw": spreads},
    )
    seen = SimpleNamespace(fingerprints=tested, to_known={"ed": distances, "dtw": distances})
    return SimpleNamespace(split=SimpleNamespace(name="s"), learned=learned, seen=seen)


KNOWN = [one_phase("a", 0), one_phase("a", 2), one_phase("b", 10), one_phase("b", 14)]
SPREADS = {"a": Spread(2, 0.5, 1), "b": Spread(4, 2, 1)}


def test_the_three_rules_by_hand():
    """a at 2.4 is 0.4 from a, 7.6 from b; a at 6 is 4 from both; b at 12.5 is 1.5 from b, 10.5 from a."""
    tested = [one_phase("a", 2.4), one_phase("a", 6), one_phase("b", 12.5)]
    table = threshold_table([trial(KNOWN, tested, SPREADS)])
    own = table[(table["measure"] == "ed") & (table["level"] == "workload")].set_index("rule")
    assert own["n_own"].tolist() == [3, 3, 3] and own["n_other"].tolist() == [3, 3, 3]
    # within: 0.4 is too near a, 4 too far, 1.5 too near b; radius and one-sided: only 4 is too far from a
    assert own["n_rejected"].to_dict() == {"within": 3, "radius": 1, "one_sided": 1}
    # others: b takes a at 6 (4 is its mean) by every rule
    assert own["n_accepted"].to_dict() == {"within": 1, "radius": 1, "one_sided": 1}


def test_a_workload_seen_once_takes_no_run():
    table = threshold_table([trial([one_phase("a", 0), one_phase("b", 9)], [one_phase("a", 0)], {})])
    assert (table["n_rejected"] == 1).all() and (table["n_accepted"] == 0).all()


def test_figures_add_up_over_splits_and_name_the_chosen_rule():
    tested = [one_phase("a", 2.4), one_phase("a", 6), one_phase("b", 12.5)]
    table = threshold_table([trial(KNOWN, tested, SPREADS)] * 2)
    figures = threshold_figures(table, PARAMS)
    assert figures["threshold.false_reject.radius.workload.ed"] == pytest.approx(1 / 3)
    assert figures["threshold.false_reject"] == figures["threshold.false_reject.one_sided.workload.ed"]
    assert figures["threshold.false_accept"] == pytest.approx(1 / 3)


def test_without_a_split_every_rule_says_why():
    figures = threshold_figures(pd.DataFrame(), PARAMS, "one workload")
    assert figures["threshold.false_reject"] is None and figures["threshold.false_reject.reason"] == "one workload"
    assert len([key for key in figures if not key.endswith(".reason")]) == 2 + 2 * 3 * 2 * 2
