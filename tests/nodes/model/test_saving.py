"""A saved network gives the same numbers, and a damaged one a single line."""

import json
from dataclasses import fields

import pytest
import torch

from tasks.errors import BadInput
from tasks.nodes.perona.network import DESCRIPTION, WEIGHTS, load_network, save_network
from tasks.nodes.perona.params import ModelParams, NetworkParams

META = {"types": ["a", "b"], "threshold": 0.5}
GATED = ModelParams(variant="paper", network=NetworkParams(root_weight=True, beta=True, heads=1))


@pytest.mark.parametrize("params", [ModelParams(), GATED], ids=["ours", "paper"])
def test_a_loaded_network_says_the_same(params, batch_of, network_of, tmp_path):
    network, batch = network_of(params), batch_of(is_paper=params == GATED)
    save_network(network, META, tmp_path / "new" / "folder")
    loaded, meta = load_network(tmp_path / "new" / "folder")
    assert meta == META and loaded.params == params and not loaded.training
    was, now = network(batch), loaded(batch)
    assert all(torch.equal(getattr(was, one.name), getattr(now, one.name)) for one in fields(was))


def test_loading_draws_nothing(network_of, tmp_path):
    save_network(network_of(), META, tmp_path)
    before = torch.random.get_rng_state()
    load_network(tmp_path)
    assert torch.equal(torch.random.get_rng_state(), before)


def cut(folder):
    (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:100])


def flip_a_byte(folder):
    told = bytearray((folder / WEIGHTS).read_bytes())
    told[-1] ^= 1
    (folder / WEIGHTS).write_bytes(bytes(told))


def remove(folder):
    (folder / WEIGHTS).unlink()


def garble(folder):
    (folder / DESCRIPTION).write_text("{")


def rewritten(folder, **changed):
    told = json.loads((folder / DESCRIPTION).read_text())
    for key, value in changed.items():
        told[key] = {**told[key], **value} if isinstance(value, dict) else value
    (folder / DESCRIPTION).write_text(json.dumps(told))


def another_format(folder):
    rewritten(folder, format="other")


def another_version(folder):
    rewritten(folder, version=99)


def other_sizes(folder):
    rewritten(folder, sizes={"n_inputs": 6})


def huge(folder):
    rewritten(folder, sizes={"n_inputs": 10**12})


def unknown_parameter(folder):
    rewritten(folder, params={"colour": "red"})


def no_object(folder):
    (folder / DESCRIPTION).write_text("[]")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (cut, "is not the file"),
        (flip_a_byte, "is not the file"),
        (remove, "FileNotFoundError"),
        (garble, "JSONDecodeError"),
        (another_format, "not version 1"),
        (another_version, "not version 1"),
        (other_sizes, "size mismatch"),
        (huge, "n_inputs is 1000000000000"),
        (unknown_parameter, "colour"),
        (no_object, "not version 1"),
    ],
)
def test_damage_is_told_in_one_line(damage, told, network_of, tmp_path):
    save_network(network_of(), META, tmp_path)
    damage(tmp_path)
    with pytest.raises(BadInput) as found:
        load_network(tmp_path)
    line = str(found.value)
    assert told in line and "\n" not in line and len(line) < 600
    assert str(tmp_path) in line and "train again" in line


def test_weights_that_are_not_finite_are_refused(network_of, tmp_path):
    network = network_of()
    with torch.no_grad():
        network.classifier.bias[0] = torch.nan
    save_network(network, META, tmp_path)
    with pytest.raises(BadInput, match=r"classifier\.bias is not finite"):
        load_network(tmp_path)
