"""The loads that are our own: answers of the length that was reckoned, a right gradient, the shape of the network."""

import random

import numpy as np
import pytest

from tasks.workloads.record.programs import loads


def test_the_length_of_a_memcached_answer_is_reckoned_as_the_protocol_says() -> None:
    sent, answer = loads.get_request([7, 12], value_bytes=3)
    assert sent == b"get key:0000000007 key:0000000012\r\n"
    assert answer == len(b"VALUE key:0000000007 0 3\r\nabc\r\nVALUE key:0000000012 0 3\r\nabc\r\nEND\r\n")
    assert loads.store_request(7, b"abc") == b"set key:0000000007 0 0 3\r\nabc\r\n"


def test_a_batch_holds_as_many_sets_as_its_share_says() -> None:
    options = {"keys": 10, "value_bytes": 3, "set_share": 1.0, "keys_a_get": 2}
    sent, answer = loads.make_batch(options, random.Random(1))
    assert sent.count(b"set ") == loads.REQUESTS_A_BATCH
    assert answer == loads.REQUESTS_A_BATCH * len(b"STORED\r\n")
    sent, _ = loads.make_batch(options | {"set_share": 0.0}, random.Random(1))
    assert sent.count(b"get ") == loads.REQUESTS_A_BATCH


def test_the_gradient_of_the_hierarchical_model_is_that_of_its_density() -> None:
    rng = np.random.default_rng(5)
    posterior = loads.hierarchy(4, 30, rng)
    at, step = rng.normal(size=6), 1e-6
    _, slope = posterior(at)
    unit = np.eye(6) * step
    numeric = [(posterior(at + one)[0] - posterior(at - one)[0]) / (2 * step) for one in unit]
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-5)


def test_the_network_gives_one_score_a_class_for_each_picture() -> None:
    torch = pytest.importorskip("torch")
    model = loads.network(channels=4, blocks=3)
    assert model(torch.rand(2, 3, 32, 32)).shape == (2, loads.CLASSES)
