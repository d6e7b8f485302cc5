"""Verdicts of the network without labels: all at once as through time."""

import numpy as np
import pandas as pd
import pytest
import torch

from tasks.nodes.perona.judging import judge, logit_of, probability_of, undisturbed
from tasks.nodes.perona.params import FingerprintParams

PARAMS = FingerprintParams()
COUNT = 3


def drawn_verdict(seed, share):
    """A verdict that hangs on the execution and on all its predecessors in a way that has no pattern."""

    def answer(rows):
        mixed = seed
        for row in rows:
            mixed = (mixed * 1_000_003 + row + 7) % 2_147_483_647
        place = (mixed * 48_271 % 65_537) / 65_537
        return share - place  # above 0 as often as share says, and seldom the same twice

    return answer


def through_time(inputs, answer, may_precede, fewest=0, new_level_after=PARAMS.new_level_after):
    """One execution after another, as the definition says: logits and predecessors."""
    logits, beside = [], []
    for row in range(len(inputs)):
        before = [
            one
            for one in range(row)
            if inputs.node_of[one] == inputs.node_of[row]
            and inputs.type_of[one] == inputs.type_of[row]
            and may_precede[one]
        ]
        earlier = [one for one in before if not logits[one] > 0][-COUNT:]
        if not earlier and len(before) >= new_level_after > 0:
            earlier = sorted(sorted(before[:new_level_after], key=lambda one: (logits[one], one))[:COUNT])
        beside.append([-1] * (COUNT - len(earlier)) + earlier)
        logits.append(answer((*beside[-1], row)) if len(earlier) >= fewest else np.nan)
    return np.array(logits), np.array(beside)


@pytest.mark.parametrize("rounds", [0, 1, 2, 30])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_all_at_once_gives_what_going_through_time_gives(inputs, stub, share, rounds):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        found = inputs(rng.integers(0, 2, 60), rng.integers(0, 2, 60))
        may = rng.random(60) < 0.8
        answer = drawn_verdict(seed, share)
        judged = judge(found, stub(answer), PARAMS.model_copy(update={"rounds": rounds}), may_precede=may)
        logit, beside = through_time(found, answer, may)
        assert judged.logit == pytest.approx(logit, abs=1e-6)
        assert judged.predecessors.tolist() == beside.tolist()
        assert judged.is_flagged.tolist() == (logit > 0).tolist()


@pytest.mark.parametrize("rounds", [0, 1, 30])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_the_papers_variant_and_other_numbers_are_as_through_time_too(inputs, stub, share, rounds):
    rng = np.random.default_rng(1)
    found = inputs(rng.integers(0, 2, 60), rng.integers(0, 2, 60))
    may = rng.random(60) < 0.8
    answer = drawn_verdict(3, share)
    for variant, fewest, level in (("paper", COUNT, 5), ("ours", 0, 0), ("ours", 0, 2), ("ours", 0, 1)):
        params = PARAMS.model_copy(update={"rounds": rounds, "new_level_after": level})
        judged = judge(found, stub(answer, variant=variant), params, may_precede=may)
        logit, beside = through_time(found, answer, may, fewest, level)
        assert judged.logit == pytest.approx(logit, abs=1e-6, nan_ok=True)
        assert judged.predecessors.tolist() == beside.tolist()


def test_a_node_that_was_flagged_from_the_first_on_is_compared_with_itself(inputs, stub):
    """By itself each of node 0 is flagged, the second, fourth and fifth least; beside these it is not, until it changes
    at 10. Node 1 is calm from its first on: its history is as ever."""
    alone = [3.0, 1.0, 4.0, 1.5, 0.5, *[9.0] * 20]

    def answer(rows):
        if rows[-1] >= 30:
            return -1.0
        if rows[2] == -1:
            return alone[rows[-1]]
        return 2.0 if rows[-1] in (10, 11) else -1.0

    judged = judge(inputs([0] * 14 + [1] * 20, x=[[at] for at in (*range(14), *range(30, 50))]), stub(answer), PARAMS)
    assert judged.is_flagged[:14].tolist() == [True] * 5 + [False] * 5 + [True, True, False, False]
    assert (judged.predecessors[:5] == -1).all()
    assert judged.predecessors[5].tolist() == [1, 3, 4]  # of the first five the least suspicious, oldest first
    assert judged.predecessors[6].tolist() == [-1, -1, 5]  # who was not flagged takes their place
    assert judged.predecessors[12].tolist() == [7, 8, 9]
    assert judged.predecessors[16].tolist() == [-1, 14, 15]
    never = judge(inputs([0] * 14), stub(answer), PARAMS.model_copy(update={"new_level_after": 0}))
    assert never.is_flagged.all() and (never.predecessors == -1).all()


def test_what_was_disturbed_makes_no_new_level(inputs, stub):
    """All are flagged; 1 and 3 are disturbed, so the fifth that counts is 6 and the first beside others is 7."""
    may = np.array([True, False, True, False, True, True, True, True, True])
    judged = judge(inputs([0] * 9), stub(lambda rows: 1.0 + rows[-1]), PARAMS, may_precede=may)
    assert (judged.predecessors[:7] == -1).all()
    assert judged.predecessors[7:].tolist() == [[0, 2, 4]] * 2


def test_the_papers_variant_says_nothing_without_its_three_predecessors(inputs, stub):
    """It would say the same of each, whatever it measured: all flagged, or none. They stand beside later ones."""
    judged = judge(inputs([0] * 6), stub(lambda rows: 1.0 if rows[-1] in (0, 4) else -1.0, variant="paper"), PARAMS)
    assert np.isnan(judged.logit).tolist() == np.isnan(judged.probability).tolist() == [True] * 3 + [False] * 3
    assert judged.is_flagged.tolist() == [False, False, False, False, True, False]
    assert judged.predecessors[3].tolist() == [0, 1, 2] and judged.predecessors[5].tolist() == [1, 2, 3]


def test_a_chain_of_verdicts_that_each_hang_on_the_one_before_is_settled_either_way(inputs, stub):
    """Flagged unless its latest predecessor is the execution just before: the alternation runs through the series."""

    def answer(rows):
        return -1.0 if rows[0] == rows[1] == rows[2] == -1 or rows[-2] != rows[-1] - 1 else 1.0

    found = inputs([0] * 40)
    many, few = (judge(found, stub(answer), PARAMS.model_copy(update={"rounds": n})) for n in (100, 3))
    assert many.is_flagged.tolist() == few.is_flagged.tolist() == [at % 2 == 1 for at in range(40)]
    assert many.n_in_time == 0 and many.n_rounds > 20
    assert few.n_in_time == 40 and few.n_rounds == 4


def test_executions_are_judged_again_only_where_their_predecessors_changed(inputs, stub):
    """Nothing is flagged: once alone, then beside predecessors, all but the first of the series."""
    network = stub(lambda rows: -1.0)
    judged = judge(inputs([0] * 20), network, PARAMS)
    assert judged.n_rounds == 2 and network.n_asked == 20 + 19


def test_one_series_that_never_settles_leaves_the_others_alone(inputs, stub):
    """Node 0 alternates as above, node 1 is quiet: only node 0 is gone through in time."""

    def answer(rows):
        return -1.0 if rows[-1] % 2 else (1.0 if rows[-2] == rows[-1] - 2 else -1.0)

    judged = judge(inputs([0, 1] * 20), stub(answer), PARAMS.model_copy(update={"rounds": 2}))
    assert judged.n_in_time == 20
    assert judged.is_flagged[0::2].tolist() == [at % 2 == 1 for at in range(20)]
    assert not judged.is_flagged[1::2].any()


def test_flagged_and_disturbed_executions_stand_beside_none(inputs, stub):
    """1 is flagged, 3 is disturbed: 5 stands beside 0, 2 and 4."""
    may = np.array([True, True, True, False, True, True])
    judged = judge(inputs([0] * 6), stub(lambda rows: 1.0 if rows[-1] == 1 else -1.0), PARAMS, may_precede=may)
    assert judged.predecessors[5].tolist() == [0, 2, 4]
    assert judged.predecessors[2].tolist() == [-1, -1, 0]


def test_nothing_is_said_of_unknown_types_and_of_executions_without_a_measurement(inputs, stub):
    found = inputs([0] * 5, [0, -1, 0, 0, -1])
    found.is_own[2] = False
    judged = judge(found, stub(lambda rows: -1.0), PARAMS)
    assert np.isnan(judged.logit).tolist() == [False, True, True, False, True]
    assert np.isnan(judged.probability[1]) and not judged.is_flagged.any()
    assert judged.predecessors[3].tolist() == [-1, -1, 0]
    assert (judged.predecessors[[1, 2, 4]] == -1).all()


def test_columns_that_tell_the_type_are_no_measurement(inputs, stub):
    found = inputs([0, 0], x=[[0, 1], [1, 1]], columns=("cpu-a/metric_0", "type=cpu-a"))
    found.is_own[1, 0] = False
    judged = judge(found, stub(lambda rows: -1.0), PARAMS)
    assert np.isnan(judged.logit).tolist() == [False, True]


def test_no_execution_at_all_is_an_answer(inputs, stub):
    judged = judge(inputs([]), stub(lambda rows: 1.0), PARAMS)
    assert judged.logit.shape == (0,) and judged.predecessors.shape == (0, COUNT)


def test_the_threshold_decides_who_is_flagged_and_so_who_precedes(inputs, stub):
    def network():
        return stub(lambda rows: 2.0)  # probability 0.88

    found = inputs([0] * 4)
    strict, lax = (judge(found, network(), FingerprintParams(threshold=t)) for t in (0.85, 0.9))
    assert strict.is_flagged.all() and (strict.predecessors == -1).all()
    assert not lax.is_flagged.any() and lax.predecessors[3].tolist() == [0, 1, 2]
    assert judge(found, network(), FingerprintParams(threshold=1)).is_flagged.sum() == 0
    assert judge(found, network(), FingerprintParams(threshold=0)).is_flagged.all()


def test_probabilities_and_logits_are_each_others_inverse():
    assert probability_of(np.array([0.0, np.log(3), -1e4, 1e4])).tolist() == pytest.approx([0.5, 0.75, 0, 1])
    assert logit_of(0.75) == pytest.approx(np.log(3))
    for logit in (-200.0, -30.0, -1.0, 0.0, 20.0):
        assert logit_of(float(probability_of(np.array(logit)))) == pytest.approx(logit, rel=1e-6)
    assert logit_of(1.0) == np.inf and logit_of(0.0) == -np.inf


def test_a_real_network_judges_in_parts_as_in_one_and_is_left_as_it_was(case):
    case.network.train()
    state = torch.random.get_rng_state()
    whole = judge(case.inputs, case.network, PARAMS)
    parts = judge(case.inputs, case.network, PARAMS.model_copy(update={"graphs_at_once": 7}))
    assert case.network.training and torch.equal(state, torch.random.get_rng_state())
    assert np.isnan(whole.logit).tolist() == (whole.predecessors < 0).all(axis=1).tolist()  # beside nothing, nothing
    assert parts.logit == pytest.approx(whole.logit, abs=1e-5, nan_ok=True)
    np.testing.assert_array_equal(judge(case.inputs, case.network, PARAMS).logit, whole.logit)


def test_a_real_network_settles_on_what_it_says_of_each_execution_through_time(case):
    """Its own middle is the threshold, so that about half are flagged."""
    middle = float(np.nanmedian(judge(case.inputs, case.network, PARAMS).logit))
    params = PARAMS.model_copy(update={"threshold": float(probability_of(np.array(middle)))})
    quick = judge(case.inputs, case.network, params)
    slow = judge(case.inputs, case.network, params.model_copy(update={"rounds": 0}))
    assert 0.1 < quick.is_flagged.mean() < 0.9
    assert slow.n_in_time == len(case.inputs)
    assert quick.logit == pytest.approx(slow.logit, abs=1e-5, nan_ok=True)
    assert quick.predecessors.tolist() == slow.predecessors.tolist()


def test_what_comes_later_changes_no_earlier_verdict(case):
    """Where nothing is flagged the same executions are judged together in both cases, so bit for bit."""
    from dataclasses import replace

    n = len(case.inputs) // 2
    x = case.inputs.x.copy()
    x[n:] = -x[n:] + 1
    changed = replace(case.inputs, x=x)
    calm = PARAMS.model_copy(update={"threshold": 1.0})
    before, later = (judge(one, case.network, calm).logit for one in (case.inputs, changed))
    np.testing.assert_array_equal(later[:n], before[:n])
    assert (later[n:] != before[n:]).any()
    before, later = (judge(one, case.network, PARAMS).logit for one in (case.inputs, changed))
    assert later[:n] == pytest.approx(before[:n], abs=1e-5, nan_ok=True)


def test_labels_are_not_looked_at(case):
    from dataclasses import replace

    turned = replace(case.inputs, labels=np.int8(1) - case.inputs.labels, performance=-case.inputs.performance)
    same = judge(turned, case.network, PARAMS)
    np.testing.assert_array_equal(same.logit, judge(case.inputs, case.network, PARAMS).logit)


def test_failed_and_disturbed_executions_stand_beside_none():
    executions = pd.DataFrame(
        {
            "node": ["a", "a", "a"],
            "aspect": "cpu",
            "execution_id": ["1", "2", "3"],
            "started_at": pd.to_datetime(["2026-01-01"] * 3),
            "status": ["completed", "failed", "completed"],
            "is_contaminated": [None, False, True],
        }
    )
    assert undisturbed(executions).tolist() == [True, False, False]
