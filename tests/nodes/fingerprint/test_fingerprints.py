"""Fingerprints of a small real network: what they hang on, and what has none."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.nodes.perona.fingerprints import fingerprints_of


def test_the_norm_is_the_p_norm_of_the_encoding(drawn):
    found = fingerprints_of(drawn.inputs, drawn.network)
    with torch.no_grad():
        enc = drawn.network.eval().encode(torch.from_numpy(drawn.inputs.x)).double().numpy()
    assert found.enc == pytest.approx(enc, abs=1e-6)
    power = drawn.params.loss.norm_power
    assert np.exp(found.log_norm) == pytest.approx((np.abs(enc) ** power).sum(axis=1) ** (1 / power))


def test_a_fingerprint_hangs_on_the_measurements_alone(drawn):
    """Neither on other executions, nor on time, labels, node or performance: a new machine has one at once."""
    whole = fingerprints_of(drawn.inputs, drawn.network)
    turned = replace(
        drawn.inputs,
        started_s=drawn.inputs.started_s[::-1],
        node_of=1 - drawn.inputs.node_of,
        labels=np.int8(1) - drawn.inputs.labels,
        performance=np.full(len(drawn.inputs), np.nan, dtype=np.float32),
    )
    assert fingerprints_of(turned, drawn.network).log_norm.tolist() == whole.log_norm.tolist()


def test_what_cannot_be_judged_has_no_fingerprint(drawn):
    type_of, is_own = drawn.inputs.type_of.copy(), drawn.inputs.is_own.copy()
    type_of[3], is_own[5] = -1, False
    found = fingerprints_of(replace(drawn.inputs, type_of=type_of, is_own=is_own), drawn.network)
    assert np.flatnonzero(np.isnan(found.log_norm)).tolist() == [3, 5]
    assert np.isnan(found.enc[[3, 5]]).all() and np.isfinite(np.delete(found.enc, [3, 5], axis=0)).all()


def test_without_any_execution_to_judge_all_is_unknown(drawn):
    nothing = replace(drawn.inputs, type_of=np.full(len(drawn.inputs), -1))
    found = fingerprints_of(nothing, drawn.network)
    assert found.enc.shape == (len(drawn.inputs), drawn.params.network.hidden) and np.isnan(found.log_norm).all()


def test_the_network_is_left_as_it_was(drawn):
    drawn.network.train()
    fingerprints_of(drawn.inputs, drawn.network)
    assert drawn.network.training
    assert all(one.grad is None for one in drawn.network.parameters())
