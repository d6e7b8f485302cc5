"""The sum of all terms: none is lost, none is NaN, and each can be left out."""

from dataclasses import fields, replace

import pytest
import torch

from tasks.nodes.perona.losses import TERMS, loss_terms, summed
from tasks.nodes.perona.params import ALL, LossParams, ModelParams

OURS, PAPER = ModelParams(), ModelParams(variant="paper")
VARIANTS = pytest.mark.parametrize("params", [OURS, PAPER], ids=["ours", "paper"])
COUNTS = (20, 80)


def names_of(params):
    return [name for name in TERMS if params.variant == "ours" or name != "detection_alone"]


@VARIANTS
def test_every_term_has_a_name_of_its_own_and_a_value(params, batch_of, outputs_of):
    batch = batch_of(is_paper=params == PAPER)
    terms = loss_terms(batch, outputs_of(batch), params, COUNTS)
    assert sorted(terms) == sorted(names_of(params))
    assert all(one.ndim == 0 and one.item() > 0 for one in terms.values()), terms


@VARIANTS
def test_each_term_changes_the_sum(params, batch_of, outputs_of):
    batch = batch_of(is_paper=params == PAPER)
    terms = loss_terms(batch, outputs_of(batch), params, COUNTS)
    total = summed(terms).item()
    assert total == pytest.approx(sum(one.item() for one in terms.values()))
    for name in terms:
        assert summed({**terms, name: terms[name] + 1}).item() == pytest.approx(total + 1)


@VARIANTS
def test_both_rankings_of_stressed_executions_count(params, batch_of, outputs_of):
    # the authors' code loses the one by encoded norms: it shares its key with that by inferred norms
    batch = batch_of(is_paper=params == PAPER)
    outputs = outputs_of(batch)
    before = loss_terms(batch, outputs, params, COUNTS)
    is_stressed = (batch.label == 1)[:, None]
    enc = torch.where(is_stressed, 2 * outputs.enc, outputs.enc)
    by_enc = loss_terms(batch, replace(outputs, enc=enc), params, COUNTS)
    assert by_enc["stressed_ranking"] > before["stressed_ranking"]
    nxt = torch.where(is_stressed, outputs.nxt * (2 if params == PAPER else 0.5), outputs.nxt)
    by_nxt = loss_terms(batch, replace(outputs, nxt=nxt), params, COUNTS)
    assert by_nxt["stressed_ranking_inferred"] > before["stressed_ranking_inferred"]
    assert torch.equal(by_nxt["stressed_ranking"], before["stressed_ranking"])


@VARIANTS
@pytest.mark.parametrize(
    "left_out", [name for name, kind in LossParams.model_fields.items() if kind.annotation is bool]
)
def test_a_term_that_is_left_out_is_not_there(params, left_out, batch_of, outputs_of):
    batch = batch_of(is_paper=params == PAPER)
    fewer = params.model_copy(update={"loss": params.loss.model_copy(update={left_out: False})})
    own = {left_out, f"{left_out}_inferred", f"{left_out}_alone"}
    assert sorted(loss_terms(batch, outputs_of(batch), fewer, COUNTS)) == sorted(set(names_of(params)) - own)


@VARIANTS
def test_without_any_term_the_sum_is_0(params, batch_of, outputs_of):
    switches = {name: False for name, kind in LossParams.model_fields.items() if kind.annotation is bool}
    batch = batch_of(is_paper=params == PAPER)
    terms = loss_terms(batch, outputs_of(batch), params.model_copy(update={"loss": LossParams(**switches)}), COUNTS)
    assert terms == {} and summed(terms).item() == 0


@VARIANTS
@pytest.mark.parametrize("is_selection", [False, True])
@pytest.mark.parametrize(
    ("asked", "zero"),
    [
        ({"stressed": ()}, ("stressed_ranking", "stressed_ranking_inferred")),
        ({"stressed": (0, 1, 2), "sizes": (1, 1, 1)}, ("ranking", "stressed_ranking", "stressed_ranking_inferred")),
        ({"stressed": (), "unknown": (0, 1, 2), "sizes": (1, 1, 1)}, ("detection", "stressed_ranking")),
        ({"sizes": (1,), "stressed": ()}, ("ranking", "ranking_inferred", "stressed_ranking_inferred")),
        ({"sizes": (1,), "stressed": (0,)}, ("ranking", "clustering", "stressed_ranking")),
    ],
)
def test_terms_that_need_what_a_batch_lacks_are_0_and_all_are_finite(
    params, is_selection, asked, zero, batch_of, outputs_of
):
    batch = batch_of(is_paper=params == PAPER, **asked)
    outputs = outputs_of(batch)
    if len(batch.x) == 1:  # nothing to tell two vectors apart
        outputs = replace(outputs, nxt=outputs.enc, nxt_taught=outputs.enc)
    terms = loss_terms(batch, outputs, params, (0, 3), is_selection=is_selection)
    assert all(torch.isfinite(one) for one in terms.values()), terms
    assert [terms[name].item() for name in zero] == [0] * len(zero)
    summed(terms).backward()
    for one in fields(outputs):
        gradient = getattr(outputs, one.name).grad
        assert gradient is None or torch.isfinite(gradient).all()


def test_unknown_types_and_performances_are_left_out(batch_of, outputs_of):
    batch = batch_of()
    batch = replace(batch, type_of=torch.full_like(batch.type_of, -1), performance=batch.performance * torch.nan)
    for params in (OURS, PAPER):
        terms = loss_terms(batch, outputs_of(batch), params, COUNTS)
        assert all(torch.isfinite(one) for one in terms.values())
        assert terms["classification"] == terms["clustering"] == 0


def test_our_detection_is_of_targets_alone_and_with_a_verdict_alone_for_all(batch_of, outputs_of):
    batch = batch_of((3, 1), stressed=())
    outputs = outputs_of(batch)
    terms = loss_terms(batch, outputs, OURS, COUNTS)
    (terms["detection"] + terms["detection_alone"]).backward()
    assert outputs.logit.grad.ne(0).tolist() == [False, False, True, False]  # the last has no predecessors
    assert outputs.logit_alone.grad.ne(0).tolist() == [False, False, True, True]


def test_an_execution_of_which_nobody_knows_is_not_judged(batch_of, outputs_of):
    batch = batch_of((2, 2), stressed=(), unknown=(1,))
    outputs = outputs_of(batch)
    for params, is_counted in ((OURS, [False, True, False, False]), (PAPER, [False, True, False, False])):
        outputs.logit.grad = None
        loss_terms(batch, outputs, params, COUNTS)["detection"].backward()
        assert outputs.logit.grad.ne(0).tolist() == is_counted


def test_in_our_variant_a_stressed_execution_teaches_no_promise(batch_of, outputs_of):
    batch = batch_of((3, 3), stressed=(0,))
    outputs = outputs_of(batch)
    terms = loss_terms(batch, outputs, OURS, COUNTS)
    parts = ("reconstruction", "classification", "ranking", "stressed_ranking")
    sum(terms[f"{name}_inferred"] for name in parts).backward()
    for promised in (outputs.decoded_nxt, outputs.type_logits_nxt):
        # vertices 0 and 3 have no predecessors, 2 is stressed
        assert promised.grad.ne(0).any(dim=1).tolist() == [False, True, False, False, True, True]
    assert not outputs.nxt.grad[2].any() and outputs.enc.grad[2].any()


def test_the_papers_ranks_by_inputs_without_noise_and_by_the_lowest_of_the_training(batch_of, outputs_of):
    batch = batch_of(is_paper=True)
    outputs = outputs_of(batch)
    noisy = replace(batch, x=batch.x.flip(0))
    clean = loss_terms(batch, outputs, PAPER, COUNTS)
    told = loss_terms(noisy, outputs, PAPER, COUNTS, clean=batch)
    assert torch.equal(told["ranking"], clean["ranking"])
    assert not torch.equal(told["ranking"], loss_terms(noisy, outputs, PAPER, COUNTS)["ranking"])
    lower = loss_terms(batch, outputs, PAPER, COUNTS, lowest=torch.full((2,), 0.1))
    assert lower["stressed_ranking"] > clean["stressed_ranking"]


@VARIANTS
def test_a_few_mined_vectors_are_encoded_and_inferred_ones(params, batch_of, outputs_of):
    """Eight graphs of four vertices in two types; of each type 8 vectors are mined, most of which had been encoded ones
    of the first graphs."""
    batch = batch_of((4,) * 8, is_paper=params == PAPER, stressed=())
    loss = params.loss.model_copy(update={"mined_per_type": 8, "triplet_margin": 2.0, "mining_margin": 2.0})
    outputs = outputs_of(batch)
    loss_terms(batch, outputs, params.model_copy(update={"loss": loss}), COUNTS)["clustering"].backward()
    encoded, inferred = (one.grad.ne(0).any(dim=1) for one in (outputs.enc, outputs.nxt))
    for number in (0, 1):
        own = batch.type_of == number
        assert 3 <= inferred[own].sum() <= 5 and encoded[own].sum() + inferred[own].sum() == 8
    assert encoded[-4:].any() or encoded[-8:-4].any()  # and not of the first graphs alone


def test_what_is_left_to_the_variant_is_mined_in_ours_and_not_in_the_papers(batch_of, outputs_of):
    batch = batch_of((4,) * 16, stressed=())  # 32 encoded vectors of each type
    for params, mined in ((OURS, 16), (PAPER, ALL)):
        told = params.model_copy(update={"loss": params.loss.model_copy(update={"mined_per_type": mined})})
        left, asked = (loss_terms(batch, outputs_of(batch), one, COUNTS)["clustering"] for one in (params, told))
        assert torch.equal(left, asked)
    few, everything = (
        loss_terms(batch, outputs_of(batch), OURS.model_copy(update={"loss": LossParams(mined_per_type=n)}), COUNTS)
        for n in (16, ALL)
    )
    assert not torch.equal(few["clustering"], everything["clustering"])


@VARIANTS
def test_the_order_of_graphs_does_not_change_the_loss(params, batch_of, outputs_of):
    batch = batch_of((3, 3), is_paper=params == PAPER)
    outputs = outputs_of(batch)
    order = torch.tensor([3, 4, 5, 0, 1, 2])
    swapped = {one.name: getattr(batch, one.name)[order] for one in fields(batch) if not one.name.startswith("edge")}
    others = {one.name: getattr(outputs, one.name)[order] for one in fields(outputs)}
    other = replace(batch, **swapped, edge_index=order[batch.edge_index])
    was, now = (
        loss_terms(one, said, params, COUNTS) for one, said in ((batch, outputs), (other, replace(outputs, **others)))
    )
    for name in was:
        torch.testing.assert_close(was[name], now[name])
