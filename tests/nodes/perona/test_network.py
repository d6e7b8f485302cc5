"""The network: what depends on what, in our variant and in the paper's; norms and convolutions by hand; its files."""

import json
from dataclasses import fields, replace

import pytest
import torch

from tasks.errors import BadInput
from tasks.nodes.params import ModelParams, NetworkParams
from tasks.nodes.perona.network import (
    DESCRIPTION,
    WEIGHTS,
    GraphOutputs,
    PeronaNetwork,
    load_network,
    p_norms,
    save_network,
)
from tests.nodes.perona.conftest import drawn_batch, drawn_network

OURS, PAPER = ModelParams(), ModelParams(variant="paper")


def with_network(params, **changed):
    return params.model_copy(update={"network": params.network.model_copy(update=changed)})


def values(outputs):
    return [getattr(outputs, one.name) for one in fields(outputs)]


@pytest.mark.parametrize(("heads", "count"), [(1, 24_455), (3, 36_231), (5, 48_007)])
def test_the_papers_network_has_as_many_parameters_as_its_authors(heads, count):
    # 54 inputs, 6 types, edges of 85: 24.5k, 36.2k and 48.0k. By hand, for h heads:
    # encoder 54·64 + 64·32 = 5,504, decoder the same, classifier 32·6 + 6 = 198, keys, queries and values
    # 3·h·(32·32 + 32) = 3,168 h, edges 85·32·h = 2,720 h, skip 32·32 = 1,024, hops 4·(32·32 + 32) = 4,224,
    # last 1,024, detector 32·32 + 32 + 33 = 1,089: 18,567 + 5,888 h
    network = PeronaNetwork(54, 6, 85, with_network(PAPER, heads=heads))
    assert sum(one.numel() for one in network.parameters()) == count


def test_shapes_and_finite_numbers():
    batch = drawn_batch()
    outputs = drawn_network(PAPER)(batch)
    assert outputs.enc.shape == outputs.nxt.shape == (8, 32)
    assert outputs.decoded.shape == outputs.decoded_nxt.shape == (8, 5)
    assert outputs.type_logits.shape == outputs.type_logits_nxt.shape == (8, 3)
    assert outputs.logit.shape == outputs.is_inferred.shape == (8,)
    assert all(torch.isfinite(one).all() for one in values(outputs))
    assert outputs.is_inferred.tolist() == 2 * [False, False, False, True]  # three others than itself are needed
    codes = drawn_network(OURS)(drawn_batch(is_paper=False))
    assert not isinstance(codes, GraphOutputs) and codes.enc.shape == (2, 32) and codes.decoded.shape == (2, 5)


@pytest.mark.parametrize("changed", [{}, {"root_weight": True}, {"root_weight": True, "beta": True}])
def test_in_the_papers_variant_a_vertex_predicts_itself(changed):
    batch, network = drawn_batch(), drawn_network(with_network(PAPER, **changed))
    x = batch.x.clone()
    x[3] += 1
    assert not torch.allclose(network(replace(batch, x=x)).nxt[3], network(batch).nxt[3])


def test_nothing_flows_from_later_to_earlier_executions_nor_through_what_stands_in_for_a_missing_promise():
    batch, network = drawn_batch(1), drawn_network(PAPER)
    x = batch.x.clone()
    x[2] += 1
    before, after = network(batch), network(replace(batch, x=x))
    for was, now in zip(values(before), values(after), strict=True):
        assert torch.equal(was[:2], now[:2])
    assert not torch.allclose(before.nxt[3], after.nxt[3])
    x.requires_grad_()
    outputs = network(replace(batch, x=x))
    outputs.nxt[~outputs.is_inferred].sum().backward()
    assert not x.grad.any()


def test_a_permutation_of_the_vertices_permutes_the_outputs():
    batch, network = drawn_batch(3, stressed=(0,)), drawn_network(PAPER)
    order = torch.randperm(len(batch.x), generator=torch.Generator().manual_seed(5))
    place = torch.argsort(order)  # of each vertex among the permuted
    edges = torch.randperm(batch.edge_index.shape[1], generator=torch.Generator().manual_seed(6))
    of_vertices = {name: getattr(batch, name)[order] for name in ("x", "is_own", "type_of", "label", "performance")}
    permuted = replace(
        batch, **of_vertices, edge_index=place[batch.edge_index[:, edges]], edge_attr=batch.edge_attr[edges]
    )
    for was, now in zip(values(network(batch)), values(network(permuted)), strict=True):
        torch.testing.assert_close(was[order], now, rtol=1e-4, atol=1e-5)


def test_a_stressed_vertex_does_not_teach_the_aggregation_but_by_its_verdict():
    batch, network = drawn_batch(stressed=(0,)), drawn_network(PAPER)
    outputs = network(batch)
    weight = network.aggregation.last.weight
    for one in (outputs.decoded_nxt, outputs.type_logits_nxt):
        (own,) = torch.autograd.grad(one[3].sum(), weight, retain_graph=True)
        (other,) = torch.autograd.grad(one[7].sum(), weight, retain_graph=True)
        assert not own.any() and other.any()
    torch.testing.assert_close(outputs.decoded_nxt[3], outputs.decoded[3])
    (by_detector,) = torch.autograd.grad(outputs.logit[3], weight)
    assert by_detector.any()


def test_verdicts_start_from_the_share_of_stressed_executions():
    network = drawn_network(PAPER)
    torch.nn.init.zeros_(network.detector[-1].weight)
    network.set_prior(20, 80)
    assert network(drawn_batch()).logit.tolist() == pytest.approx([-1.3862944] * 8)  # ln(20 / 80)
    network.set_prior(0, 80)  # as if there were one
    assert network.detector[-1].bias.item() == pytest.approx(-4.3820266)  # -ln 80


def test_the_papers_decoder_stays_between_0_and_1_and_ours_does_not():
    for params, is_bounded in ((OURS, False), (PAPER, True)):
        network = drawn_network(params)
        torch.nn.init.constant_(network.decoder[3].weight, 3.0)
        decoded = network(drawn_batch(is_paper=is_bounded)).decoded
        assert bool((decoded.abs().max() > 1).item()) == (not is_bounded)
        assert not is_bounded or decoded.min() >= 0


def test_a_training_step_leaves_edges_out_and_judging_does_not():
    batch, network = drawn_batch(40), drawn_network(with_network(PAPER, edge_dropout=0.2))
    assert network(batch).is_inferred.sum() == 40
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        n_inferred = int(network.train()(batch).is_inferred.sum())
        network.eval()
    assert 5 < n_inferred < 35


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_norms_by_hand_also_of_sizes_whose_tenth_power_does_not_fit(size):
    # √(3² + 4²) = 5; |1| + |-2| = 3; (1 + 1)^(1/10) = 1.0717735
    assert p_norms(torch.tensor([[3.0, -4.0]]), 2).item() == pytest.approx(5)
    assert p_norms(torch.tensor([[1.0, -2.0]]), 1).item() == pytest.approx(3)
    vectors = torch.tensor([[size, size]], requires_grad=True)
    norms = p_norms(vectors, 10)
    norms.sum().backward()
    assert norms.item() == pytest.approx(1.0717735 * size)
    # of each entry (v / norm)^9 = 1.0717735^-9 = 0.5358867
    assert vectors.grad[0].tolist() == pytest.approx([0.5358867] * 2)


@pytest.mark.parametrize("power", [1.0, 2.0, 10.0])
def test_a_row_of_zeros_has_a_logarithm_and_no_gradient(power):
    vectors = torch.zeros(1, 3, requires_grad=True)
    told = p_norms(vectors, power).log()
    told.sum().backward()
    assert torch.isfinite(told).all() and vectors.grad.tolist() == [[0.0, 0.0, 0.0]]


GATED = ModelParams(variant="paper", network=NetworkParams(root_weight=True, beta=True, heads=1))


@pytest.mark.parametrize("params", [ModelParams(), GATED], ids=["ours", "paper"])
def test_a_loaded_network_says_the_same(params, tmp_path):
    network, batch = drawn_network(params), drawn_batch(is_paper=params == GATED)
    save_network(network, tmp_path / "new" / "folder")
    loaded = load_network(tmp_path / "new" / "folder")
    assert type(loaded) is type(network) and loaded.params == params and not loaded.training
    was, now = network(batch), loaded(batch)
    assert all(torch.equal(getattr(was, one.name), getattr(now, one.name)) for one in fields(was))


def flip_a_byte(folder):
    told = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(told[:-1] + bytes([told[-1] ^ 1]))


def not_finite(folder):
    network = drawn_network()
    with torch.no_grad():
        network.classifier.bias[0] = torch.nan
    save_network(network, folder)


def rewritten(**changed):
    """A damage: other values in the description."""

    def write(folder):
        told = json.loads((folder / DESCRIPTION).read_text())
        for key, value in changed.items():
            told[key] = {**told[key], **value} if isinstance(value, dict) else value
        (folder / DESCRIPTION).write_text(json.dumps(told))

    return write


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (flip_a_byte, "is not the file"),
        (not_finite, "classifier.bias is not finite"),
        (lambda folder: (folder / WEIGHTS).unlink(), "FileNotFoundError"),
        (lambda folder: (folder / DESCRIPTION).write_text("{"), "JSONDecodeError"),
        (rewritten(version=99), "not version 3"),
        (rewritten(sizes={"n_inputs": 6}), "size mismatch"),
        (rewritten(sizes={"n_inputs": 10**12}), "n_inputs Input should be less than or equal to 100000"),
        (rewritten(params={"colour": "red"}), "colour"),
    ],
)
def test_damage_is_told_in_one_line(damage, told, tmp_path):
    save_network(drawn_network(), tmp_path)
    damage(tmp_path)
    with pytest.raises(BadInput) as found:
        load_network(tmp_path)
    line = str(found.value)
    assert told in line and "\n" not in line and len(line) < 600
    assert str(tmp_path) in line and "train again" in line
