"""The network: what depends on what, in our variant and in the paper's."""

from dataclasses import fields, replace

import pytest
import torch

from tasks.nodes.perona.network import Outputs, PeronaNetwork
from tasks.nodes.perona.params import ModelParams, NetworkParams

OURS, PAPER = ModelParams(), ModelParams(variant="paper")
VARIANTS = pytest.mark.parametrize("params", [OURS, PAPER], ids=["ours", "paper"])


def with_network(params, **changed):
    return params.model_copy(update={"network": params.network.model_copy(update=changed)})


def values(outputs):
    return [getattr(outputs, one.name) for one in fields(Outputs)]


@pytest.mark.parametrize(("heads", "count"), [(1, 24_455), (3, 36_231), (5, 48_007)])
def test_the_papers_network_has_as_many_parameters_as_its_authors(heads, count):
    # 54 inputs, 6 types, edges of 85: 24.5k, 36.2k and 48.0k. By hand, for h heads:
    # encoder 54·64 + 64·32 = 5,504, decoder the same, classifier 32·6 + 6 = 198, keys, queries and values
    # 3·h·(32·32 + 32) = 3,168 h, edges 85·32·h = 2,720 h, skip 32·32 = 1,024, hops 4·(32·32 + 32) = 4,224,
    # last 1,024, detector 32·32 + 32 + 33 = 1,089: 18,567 + 5,888 h
    network = PeronaNetwork(54, 6, 85, 0, with_network(PAPER, heads=heads))
    assert sum(one.numel() for one in network.parameters()) == count


def test_in_our_variant_every_parameter_is_used(batch_of):
    network = PeronaNetwork(5, 3, 7, 2, with_network(OURS, dropout=0.0, edge_dropout=0.0))
    outputs = network(batch_of())
    sum(one.square().sum() for one in values(outputs) if one.is_floating_point()).backward()
    unused = [name for name, one in network.named_parameters() if one.grad is None]
    assert unused == []


@VARIANTS
def test_shapes_and_finite_numbers(params, batch_of, network_of):
    batch = batch_of((4, 2, 1), is_paper=params == PAPER)
    outputs = network_of(params)(batch)
    assert outputs.enc.shape == outputs.nxt.shape == (7, 32)
    assert outputs.decoded.shape == outputs.decoded_nxt.shape == (7, 5)
    assert outputs.type_logits.shape == outputs.type_logits_nxt.shape == (7, 3)
    assert outputs.logit.shape == outputs.logit_alone.shape == outputs.is_inferred.shape == (7,)
    assert all(torch.isfinite(one).all() for one in values(outputs))


def test_in_our_variant_nothing_is_inferred_from_a_vertex_itself(batch_of, network_of):
    batch, network = batch_of(), network_of(OURS)
    before = network(batch)
    for vertex in range(len(batch.x)):
        x = batch.x.clone()
        x[vertex] += 1
        after = network(replace(batch, x=x))
        assert torch.equal(after.nxt[vertex], before.nxt[vertex]) == bool(before.is_inferred[vertex])
        assert not torch.allclose(after.enc[vertex], before.enc[vertex])


@pytest.mark.parametrize("changed", [{}, {"root_weight": True}, {"root_weight": True, "beta": True}])
def test_in_the_papers_variant_a_vertex_predicts_itself(changed, batch_of, network_of):
    batch, network = batch_of(is_paper=True), network_of(with_network(PAPER, **changed))
    x = batch.x.clone()
    x[3] += 1
    assert not torch.allclose(network(replace(batch, x=x)).nxt[3], network(batch).nxt[3])


@VARIANTS
def test_nothing_flows_from_later_to_earlier_executions(params, batch_of, network_of):
    batch, network = batch_of((4,), is_paper=params == PAPER), network_of(params)
    x = batch.x.clone()
    x[2] += 1
    before, after = network(batch), network(replace(batch, x=x))
    for was, now in zip(values(before), values(after), strict=True):
        assert torch.equal(was[:2], now[:2])
    assert not torch.allclose(before.nxt[3], after.nxt[3])


@VARIANTS
def test_two_graphs_of_a_batch_do_not_influence_each_other(params, batch_of, network_of):
    batch, network = batch_of((4, 4), is_paper=params == PAPER), network_of(params)
    is_other = batch.graph == 1
    x = torch.where(is_other[:, None], batch.x + 1, batch.x)
    edge_attr = torch.where(is_other[batch.edge_index[0]][:, None], batch.edge_attr + 1, batch.edge_attr)
    for was, now in zip(values(network(batch)), values(network(replace(batch, x=x, edge_attr=edge_attr))), strict=True):
        torch.testing.assert_close(was[~is_other], now[~is_other], rtol=0, atol=1e-6)


@VARIANTS
def test_a_permutation_of_the_vertices_permutes_the_outputs(params, batch_of, network_of):
    batch, network = batch_of((4, 3, 4), is_paper=params == PAPER, is_stressed=(0,)), network_of(params)
    order = torch.randperm(len(batch.x), generator=torch.Generator().manual_seed(5))
    place = torch.argsort(order)  # of each vertex among the permuted
    edges = torch.randperm(batch.edge_index.shape[1], generator=torch.Generator().manual_seed(6))
    of_vertices = {
        one.name: getattr(batch, one.name)[order] for one in fields(batch) if not one.name.startswith("edge")
    }
    permuted = replace(
        batch, **of_vertices, edge_index=place[batch.edge_index[:, edges]], edge_attr=batch.edge_attr[edges]
    )
    for was, now in zip(values(network(batch)), values(network(permuted)), strict=True):
        torch.testing.assert_close(was[order], now, rtol=1e-4, atol=1e-5)


def test_in_our_variant_one_neighbour_is_enough(batch_of, network_of):
    outputs = network_of(OURS)(batch_of((4, 2, 1)))
    assert outputs.is_inferred.tolist() == [False, True, True, True, False, True, False]


def test_in_the_papers_variant_three_neighbours_other_than_itself_are_needed(batch_of, network_of):
    outputs = network_of(PAPER)(batch_of((4, 3, 1), is_paper=True))
    assert outputs.is_inferred.tolist() == [False, False, False, True, False, False, False, False]


@VARIANTS
def test_without_predecessors_the_encoder_alone_answers(params, batch_of, network_of):
    batch, network = batch_of((1, 1, 1), is_paper=params == PAPER), network_of(params)
    outputs = network(batch)
    assert not outputs.is_inferred.any()
    assert torch.equal(outputs.nxt, outputs.enc)
    assert torch.equal(outputs.logit, outputs.logit_alone)
    assert torch.equal(network.judge_alone(batch.x, batch.evidence), outputs.logit_alone)
    assert torch.equal(network.encode(batch.x), outputs.enc)
    torch.testing.assert_close(network.norms(outputs.enc, 2.0), (outputs.enc**2).sum(1).sqrt())


def test_the_papers_detector_says_the_same_of_all_executions_without_predecessors(batch_of, network_of):
    logit = network_of(PAPER)(batch_of((1, 1, 1), is_paper=True)).logit
    torch.testing.assert_close(logit, logit[:1].expand(3))


def test_our_verdict_alone_follows_the_metrics_and_not_the_neighbours(batch_of, network_of):
    batch, network = batch_of(), network_of(OURS)
    before, after = network(batch).logit_alone, network(replace(batch, edge_attr=batch.edge_attr + 1)).logit_alone
    assert torch.equal(before, after)
    assert not torch.allclose(before, network(replace(batch, x=batch.x + 1)).logit_alone)


@pytest.mark.parametrize(
    ("params", "is_heeded"), [(OURS, True), (with_network(OURS, evidence=False), False), (PAPER, False)]
)
def test_evidence_changes_verdicts_where_it_is_heeded_and_nothing_else(params, is_heeded, batch_of, network_of):
    batch, network = batch_of(is_paper=params == PAPER), network_of(params)
    before, after = network(batch), network(replace(batch, evidence=batch.evidence + 1))
    for one in fields(Outputs):
        was, now = getattr(before, one.name), getattr(after, one.name)
        assert torch.equal(was, now) == (not is_heeded or not one.name.startswith("logit"))


@VARIANTS
def test_no_gradient_flows_through_what_stands_in_for_a_missing_promise(params, batch_of, network_of):
    batch, network = batch_of(is_paper=params == PAPER), network_of(params)
    x = batch.x.clone().requires_grad_()
    outputs = network(replace(batch, x=x))
    outputs.nxt[~outputs.is_inferred].sum().backward()
    assert not x.grad.any()


def test_a_promise_teaches_the_encoder_by_its_neighbours(batch_of, network_of):
    batch, network = batch_of((4,)), network_of(OURS)
    x = batch.x.clone().requires_grad_()
    network(replace(batch, x=x)).nxt[3].sum().backward()
    assert x.grad[:3].abs().sum(1).gt(0).all() and not x.grad[3].any()


def test_in_the_papers_variant_a_stressed_execution_does_not_teach_the_aggregation(batch_of, network_of):
    batch, network = batch_of((4, 4), is_paper=True, is_stressed=(0,)), network_of(PAPER)
    outputs = network(batch)
    told = (outputs.nxt_taught, outputs.decoded_taught, outputs.type_logits_taught)
    weight = network.aggregation.last.weight
    for one in told:
        (own,) = torch.autograd.grad(one[3].sum(), weight, retain_graph=True)
        (other,) = torch.autograd.grad(one[7].sum(), weight, retain_graph=True)
        assert not own.any() and other.any()
    assert torch.equal(outputs.nxt_taught[3], outputs.enc[3])
    (by_detector,) = torch.autograd.grad(outputs.logit[3], weight)
    assert by_detector.any()


@VARIANTS
def test_labels_change_nothing_but_what_is_taught(params, batch_of, network_of):
    network = network_of(params)
    calm, stressed = (network(batch_of(is_paper=params == PAPER, is_stressed=told)) for told in ((), (0, 1)))
    for one in fields(Outputs):
        if not one.name.endswith("taught"):
            assert torch.equal(getattr(calm, one.name), getattr(stressed, one.name))


@VARIANTS
def test_verdicts_start_from_the_share_of_stressed_executions(params, batch_of, network_of):
    network = network_of(params)
    for detector in (network.detector, network.lone_detector):
        if detector is not None:
            torch.nn.init.zeros_(detector.last.weight)
    network.set_prior(20, 80)
    assert network(batch_of(is_paper=params == PAPER)).logit.tolist() == pytest.approx([-1.3862944] * 8)  # ln(20 / 80)
    network.set_prior(0, 80)  # as if there were one
    assert network.detector.last.bias.item() == pytest.approx(-4.3820266)  # -ln 80


def test_the_papers_decoder_stays_between_0_and_1_and_ours_does_not(batch_of, network_of):
    for params, is_bounded in ((OURS, False), (PAPER, True)):
        network = network_of(params)
        torch.nn.init.constant_(network.decoder.layers[3].weight, 3.0)
        decoded = network(batch_of(is_paper=params == PAPER)).decoded
        assert bool((decoded.abs().max() > 1).item()) == (not is_bounded)
        assert not is_bounded or decoded.min() >= 0


def test_a_typical_execution_has_a_norm_in_our_variant(network_of):
    network = network_of(OURS)
    assert network.norms(network.encode(torch.zeros(1, 5)), 10.0).item() > 0.01


def test_a_training_step_leaves_edges_out_and_judging_does_not(batch_of, network_of):
    batch, network = batch_of((2,) * 40), network_of(with_network(OURS, edge_dropout=0.5))
    assert network(batch).is_inferred.sum() == 40
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        n_inferred = int(network.train()(batch).is_inferred.sum())
        network.eval()
    assert 5 < n_inferred < 35


def test_the_same_seed_gives_the_same_weights():
    def weights():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            return PeronaNetwork(5, 3, 7, 2, OURS).state_dict()

    first, second = weights(), weights()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_plain_layers_start_with_a_variance_of_one_over_their_inputs():
    params = ModelParams(network=NetworkParams(intermediate=1024, hidden=512))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = PeronaNetwork(64, 3, 7, 2, params)
    assert network.encoder.layers[0].weight.std().item() == pytest.approx(1 / 8, rel=0.02)
    assert not network.encoder.layers[0].bias.any()
