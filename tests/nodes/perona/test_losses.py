"""The terms of the loss by hand, in the paper's form and in ours, and their sum: none is lost, none is NaN."""

import math
from dataclasses import fields, replace

import pytest
import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.miners import TripletMarginMiner

from tasks.nodes.params import ALL, LossParams
from tasks.nodes.perona.losses import (
    ClassCounts,
    focal,
    loss_terms,
    lowest_norms,
    margin_ranking,
    margin_stressed_ranking,
    own_squared_error,
    per_stressed,
    ratio_ranking,
    stressed_pairs,
    stressed_weight,
    summed,
    triplet_margin,
    type_cross_entropy,
    weighted_cross_entropy,
)
from tasks.nodes.perona.network import Outputs
from tests.nodes.perona.conftest import drawn_batch, drawn_outputs, labelled_batch

PAPER = LossParams(mined_per_type=ALL)
COUNTS = ClassCounts(20, 80)
INFERRED = ("reconstruction", "classification", "ranking", "stressed_ranking")
TERMS = [*LossParams().terms, *(f"{one}_inferred" for one in INFERRED)]
OF_OURS = ["classification", "clustering", "ranking", "reconstruction"]


def ours_of(outputs):
    """What our variant says, of what the paper's does."""
    return Outputs(outputs.enc, outputs.decoded, outputs.type_logits)


@pytest.mark.parametrize("left_out", ["", *LossParams().terms])
def test_every_term_that_is_named_has_a_value_of_its_own_and_the_sum_has_them_all(left_out):
    batch = labelled_batch()
    loss = PAPER.model_copy(update={"terms": tuple(one for one in PAPER.terms if one != left_out)})
    for outputs, names in ((drawn_outputs(batch), TERMS), (ours_of(drawn_outputs(batch)), OF_OURS)):
        terms = loss_terms(batch, outputs, loss, COUNTS)
        assert sorted(terms) == sorted(set(names) - {left_out, f"{left_out}_inferred"})
        assert all(one.ndim == 0 and one.item() > 0 for one in terms.values()), terms
        assert summed(terms).item() == pytest.approx(sum(one.item() for one in terms.values()))


def test_both_rankings_of_stressed_executions_count():
    # the authors' code loses the one by encoded norms: it shares its key with that by inferred norms
    batch = labelled_batch()
    outputs = drawn_outputs(batch)
    before = loss_terms(batch, outputs, PAPER, COUNTS)
    is_stressed = (batch.label == 1)[:, None]
    enc = torch.where(is_stressed, 2 * outputs.enc, outputs.enc)
    assert loss_terms(batch, replace(outputs, enc=enc), PAPER, COUNTS)["stressed_ranking"] > before["stressed_ranking"]
    nxt = torch.where(is_stressed, 2 * outputs.nxt, outputs.nxt)
    by_nxt = loss_terms(batch, replace(outputs, nxt=nxt), PAPER, COUNTS)
    assert by_nxt["stressed_ranking_inferred"] > before["stressed_ranking_inferred"]
    assert torch.equal(by_nxt["stressed_ranking"], before["stressed_ranking"])


@pytest.mark.parametrize("is_selection", [False, True])
@pytest.mark.parametrize(
    ("asked", "zero"),
    [
        ({}, ("stressed_ranking", "stressed_ranking_inferred")),
        ({"unknown": (0, 1, 2)}, ("stressed_ranking",)),
        ({"n_graphs": 1}, ("stressed_ranking_inferred", "clustering")),
    ],
)
def test_terms_that_need_what_a_batch_lacks_are_0_and_all_are_finite(is_selection, asked, zero):
    batch = labelled_batch(stressed=(), **asked)
    outputs = drawn_outputs(batch)
    terms = loss_terms(batch, outputs, PAPER, ClassCounts(0, 3), is_selection=is_selection)
    assert all(torch.isfinite(one) for one in terms.values()), terms
    assert [terms[name].item() for name in zero] == [0] * len(zero)
    summed(terms).backward()
    for one in fields(outputs):
        gradient = getattr(outputs, one.name).grad
        assert gradient is None or torch.isfinite(gradient).all()


def test_detection_is_of_inferred_executions_of_which_somebody_knows():
    batch = labelled_batch(2, stressed=(), unknown=(1,))
    outputs = drawn_outputs(batch)
    loss_terms(batch, outputs, PAPER, COUNTS)["detection"].backward()
    assert outputs.logit.grad.ne(0).tolist() == [False, False, False, True, False, False, False, False]


def test_ours_looks_at_no_label():
    told, untold = labelled_batch(), labelled_batch(stressed=(), unknown=(0, 1, 2))
    one, other = (loss_terms(batch, ours_of(drawn_outputs(told)), PAPER, COUNTS) for batch in (told, untold))
    assert all(torch.equal(one[name], other[name]) for name in OF_OURS)


def test_the_papers_ranks_by_inputs_without_noise_and_by_the_lowest_of_the_training():
    batch = labelled_batch()
    outputs = drawn_outputs(batch)
    noisy = replace(batch, x=batch.x.flip(0))
    clean = loss_terms(batch, outputs, PAPER, COUNTS)
    told = loss_terms(noisy, outputs, PAPER, COUNTS, clean=batch)
    assert torch.equal(told["ranking"], clean["ranking"])
    assert not torch.equal(told["ranking"], loss_terms(noisy, outputs, PAPER, COUNTS)["ranking"])
    lower = loss_terms(batch, outputs, PAPER, COUNTS, lowest=torch.full((2,), 0.1))
    assert lower["stressed_ranking"] > clean["stressed_ranking"]


def test_a_few_mined_vectors_are_encoded_and_inferred_ones():
    """Eight graphs of four vertices in two types; of each type 8 vectors are mined, not of the first graphs alone."""
    batch = labelled_batch(8, stressed=())
    loss = PAPER.model_copy(update={"mined_per_type": 8, "triplet_margin": 2.0, "mining_margin": 2.0})
    outputs = drawn_outputs(batch)
    loss_terms(batch, outputs, loss, COUNTS)["clustering"].backward()
    encoded, inferred = (one.grad.ne(0).any(dim=1) for one in (outputs.enc, outputs.nxt))
    for number in (0, 1):
        own = batch.type_of == number
        assert 3 <= inferred[own].sum() <= 5 and encoded[own].sum() + inferred[own].sum() == 8
    assert encoded[-8:].any()


DECODED = torch.tensor([[1.0, 2.0, 9.0], [0.0, 4.0, 0.0]])
X = torch.tensor([[0.0, 2.0, 0.0], [0.0, 1.0, 0.0]])
IS_OWN = torch.tensor([[True, True, False], [False, True, False]])


def test_ours_counts_own_metrics_and_every_vertex_alike():
    # vertex 0: (1² + 0²) / 2 = 0.5; vertex 1: 3² / 1 = 9
    assert own_squared_error(DECODED, X, IS_OWN).item() == pytest.approx(4.75)


STRESSED, CALM = torch.tensor([True]), torch.tensor([False])


def test_the_rarer_class_weighs_more():
    # β = 1/2, 1 stressed and 2 calm: w_1 = 0.5 / 0.5 = 1, w_0 = 0.5 / 0.75 = 2/3, α = 1 / (1 + 2/3)
    assert stressed_weight(ClassCounts(1, 2), 0.5) == pytest.approx(0.6)
    assert stressed_weight(ClassCounts(7, 7), 0.99) == pytest.approx(0.5)
    assert stressed_weight(ClassCounts(20, 80), 0.0) == pytest.approx(0.5)  # β = 0: no weights


def test_focal_loss_by_hand():
    # stressed, logit 0: p_t = 1/2; 0.6 · (1/2)² · ln 2 = 0.1039721
    assert focal(torch.zeros(1), STRESSED, 2.0, 0.6).item() == pytest.approx(0.1039721)
    # calm, logit ln 3: p_t = 1/4; 0.4 · (3/4)² · ln 4 = 0.3119162
    assert focal(torch.tensor([math.log(3)]), CALM, 2.0, 0.6).item() == pytest.approx(0.3119162)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 5.0])
def test_certain_verdicts_have_finite_losses_and_gradients(gamma):
    logits = torch.tensor([500.0, -500.0, 500.0, -500.0], requires_grad=True)
    losses = focal(logits, torch.tensor([True, True, False, False]), gamma, 0.5)
    losses.sum().backward()
    assert torch.isfinite(losses).all() and torch.isfinite(logits.grad).all()
    assert losses.tolist() == pytest.approx([0, 250, 250, 0])


def test_cross_entropy_with_a_class_weight():
    counts = ClassCounts(n_stressed=1, n_calm=4)
    assert weighted_cross_entropy(torch.zeros(1), STRESSED, counts).item() == pytest.approx(4 * math.log(2))
    assert weighted_cross_entropy(torch.zeros(1), CALM, counts).item() == pytest.approx(math.log(2))
    assert torch.isfinite(weighted_cross_entropy(torch.zeros(1), STRESSED, ClassCounts(0, 4))).all()


def test_the_sum_is_divided_by_the_stressed_or_else_by_all():
    losses = torch.tensor([1.0, 2.0, 3.0])
    assert per_stressed(losses, torch.tensor(2), 6).item() == 3
    assert per_stressed(losses, torch.tensor(0), 6).item() == 1
    assert per_stressed(losses[:0], torch.tensor(0), 0).item() == 0


LOGITS = torch.tensor([[math.log(3), 0.0], [0.0, 0.0], [5.0, 0.0]])


def test_the_mean_over_vertices_of_a_known_type():
    # vertex 0: p = 3 / 4, -ln p = 0.2876821; vertex 1: p = 1 / 2, 0.6931472; vertex 2 has a type that nobody trained
    found = type_cross_entropy(LOGITS, torch.tensor([0, 1, -1]))
    assert found.item() == pytest.approx((0.2876821 + 0.6931472) / 2)


PAIR = torch.tensor([[0], [1]])
ONE_TYPE = torch.zeros(3, dtype=torch.int64)


def test_the_papers_ratio_of_norms_is_at_least_that_of_the_inputs():
    # X = (2, 1), n = (1, 2): (0, 1): t = 1, f = 2, -(1 - 2·2) = 3; (1, 0): t = -1, f = 1/2, 2 - 1/2 = 1.5
    norms, truth = torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.0])
    assert margin_ranking(norms, truth, PAIR).item() == pytest.approx(2.25)
    # n = (4, 1): a ratio of 4, more extreme than 2
    assert margin_ranking(torch.tensor([4.0, 1.0]), truth, PAIR).item() == 0


def test_our_ratio_of_norms_is_that_of_performance():
    # ln n - ln P = 1 - 0, 3 - 1, 0 - 0 = 1, 2, 0: |1 - 2|, |1 - 0|, |2 - 0|, mean 4/3
    norms, performance = torch.exp(torch.tensor([1.0, 3.0, 0.0])), torch.tensor([0.0, 1.0, 0.0])
    assert ratio_ranking(norms, performance, ONE_TYPE).item() == pytest.approx(4 / 3)
    assert ratio_ranking(7 * torch.exp(performance), performance, ONE_TYPE).item() == pytest.approx(0, abs=1e-6)


def test_our_sum_over_sorted_values_is_that_over_all_pairs():
    generator = torch.Generator().manual_seed(0)
    norms, performance = torch.rand(40, generator=generator) + 0.1, torch.randn(40, generator=generator)
    type_of = torch.randint(3, (40,), generator=generator)
    a = torch.log(norms) - performance
    pairs = [(i, j) for i in range(40) for j in range(i) if type_of[i] == type_of[j]]
    plain = torch.stack([(a[i] - a[j]).abs() for i, j in pairs]).mean()
    torch.testing.assert_close(ratio_ranking(norms, performance, type_of), plain)


STRESSED_PAIR = torch.tensor([[1], [0]])  # vertex 1 is stressed, 0 calm
NORMS, TRUTH = torch.tensor([1.0, 1.0]), torch.tensor([2.0, 1.0])
ONE = torch.tensor(1)


def test_pairs_are_of_a_stressed_vertex_and_a_calm_one():
    pairs = torch.tensor([[0, 0, 1], [1, 2, 2]])
    assert stressed_pairs(pairs, torch.tensor([False, False, True])).tolist() == [[2, 2], [0, 1]]
    assert stressed_pairs(pairs, torch.tensor([True, False, True])).tolist() == [[0, 2], [1, 1]]
    assert stressed_pairs(pairs, torch.tensor([False, False, False])).shape == (2, 0)


def test_lowest_norms_are_of_calm_executions_less_their_deviation():
    # type 0: calm 1 and 3, deviation √2; type 1: a single 2; type 2: a stressed one alone
    told = {"type_of": torch.tensor([0, 0, 0, 1, 2]), "label": torch.tensor([0, 0, 1, 0, 1])}
    batch = replace(drawn_batch(1), **told)
    found = lowest_norms(torch.tensor([1.0, 3.0, 0.5, 2.0, 4.0]), batch, 3)
    assert found.tolist() == pytest.approx([1 - math.sqrt(2), 2, math.nan], nan_ok=True)


def test_the_papers_margin():
    # r = max(2, 1) / 1.6 = 1.25, q = 0.8: max(0, 1 - 0.8·1) + max(0, 1 / 0.8 - 1) = 0.2 + 0.25
    lowest = torch.full((2,), 1.6)
    assert margin_stressed_ranking(NORMS, TRUTH, lowest, STRESSED_PAIR, ONE).item() == pytest.approx(0.45)
    assert margin_stressed_ranking(NORMS, TRUTH, lowest, STRESSED_PAIR, torch.tensor(2)).item() == pytest.approx(0.225)
    # r = 2 / 2.5 = 0.8, q = 0.8 as well
    assert margin_stressed_ranking(NORMS, TRUTH, lowest / 0.64, STRESSED_PAIR, ONE).item() == pytest.approx(0.45)
    below = torch.tensor([1.0, 0.79])
    assert margin_stressed_ranking(below, TRUTH, lowest, STRESSED_PAIR, ONE).item() == 0


@pytest.mark.parametrize("lowest", [math.nan, 0.0, -1.0])
def test_the_papers_margin_without_a_usable_lowest_norm_is_the_calm_norm(lowest):
    told = torch.full((2,), lowest)
    assert margin_stressed_ranking(NORMS, TRUTH, told, STRESSED_PAIR, ONE).item() == 0
    # q = 1: twice 1.5 - 1
    assert margin_stressed_ranking(torch.tensor([1.0, 1.5]), TRUTH, told, STRESSED_PAIR, ONE).item() == pytest.approx(1)


def test_three_vectors_by_hand():
    # a at 0° and b at 60° of one type, c at 90° of another: cos ab = 1/2, ac = 0, bc = √3/2
    # (a, b, c): 0 - 1/2 + 0.05 < 0; (b, a, c): 0.8660254 - 0.5 + 0.05 = 0.4160254; c has no positive
    vectors = torch.tensor([[1.0, 0.0], [0.5, 0.8660254], [0.0, 1.0]], dtype=torch.float64)
    assert triplet_margin(vectors, torch.tensor([0, 0, 1]), 0.05, 0.2).item() == pytest.approx(0.4160254)
    # margin 0.6: (a, b, c) gives 0.1 and (b, a, c) 0.9660254, but only the second has s_ap - s_an = -0.37 <= 0.2
    assert triplet_margin(vectors, torch.tensor([0, 0, 1]), 0.6, 0.2).item() == pytest.approx(0.9660254)
    assert triplet_margin(vectors, torch.tensor([0, 0, 1]), 0.6, 1.0).item() == pytest.approx((0.1 + 0.9660254) / 2)


@pytest.mark.parametrize(("margin", "mining_margin"), [(0.05, 0.2), (0.3, 0.1), (0.2, 0.2), (0.05, 0.0)])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_has_the_numbers_and_gradients_of_pytorch_metric_learning(seed, margin, mining_margin):
    generator = torch.Generator().manual_seed(seed)
    vectors, type_of = torch.randn(24, 4, generator=generator), torch.randint(3, (24,), generator=generator)
    miner = TripletMarginMiner(margin=mining_margin, type_of_triplets="all", distance=CosineSimilarity())
    loss = TripletMarginLoss(margin=margin, distance=CosineSimilarity())
    ours, theirs = (vectors.double().requires_grad_() for _ in range(2))
    own = triplet_margin(ours, type_of, margin, mining_margin)
    other = loss(theirs, type_of, miner(theirs, type_of))
    torch.testing.assert_close(own, other)
    own.backward()
    other.backward()
    torch.testing.assert_close(ours.grad, theirs.grad)
