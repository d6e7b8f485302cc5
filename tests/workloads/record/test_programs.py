"""The list of workloads, what they lack, and the loads that are our own."""

import random
from dataclasses import replace

import numpy as np
import pytest

from tasks.errors import MissingTool
from tasks.machine import TOOLS
from tasks.workloads.record.programs import PROGRAMS, loads
from tasks.workloads.record.programs.program import N_USUAL, Need, lacks

ABSENT = Need(("whorl-no-such-server", "whorl-nor-this"), "no-such-package")


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_inputs_differ_in_what_they_ask_for_not_in_name_alone(name: str) -> None:
    inputs = PROGRAMS[name].inputs
    assert len(inputs) >= N_USUAL
    assert len({str(sorted(options.items())) for options in inputs.values()}) == len(inputs)


def test_what_is_missing_is_one_line_with_the_debian_or_pip_package() -> None:
    module = Need(("whorl_no_such_module",), "no-such-wheel", "module")
    file = Need(("/no/such/header.h",), "no-such-dev", "file")
    assert lacks([ABSENT, module, file, Need(("sh",), "dash"), Need(("json",), "python", "module")]) == [
        "whorl-no-such-server is not installed (Debian: apt-get install no-such-package)",
        "whorl_no_such_module is not installed (pip install no-such-wheel)",
        "/no/such/header.h is not installed (Debian: apt-get install no-such-dev)",
    ]


def test_a_need_has_no_path_where_it_is_not_installed() -> None:
    with pytest.raises(MissingTool, match="apt-get install no-such-package"):
        ABSENT.path()
    assert replace(ABSENT, names=("whorl-no-such-server", "sh")).path().endswith("/sh")


def test_doctor_knows_every_debian_program_that_a_workload_needs() -> None:
    known = {tool.package for tool in TOOLS}
    needed = {need.package for program in PROGRAMS.values() for need in program.needs if need.kind == "program"}
    assert needed - known == set()


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
