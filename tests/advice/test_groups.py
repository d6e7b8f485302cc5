"""Machines are grouped as far as the noise of their scores allows, and no further."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

from tasks.advice.groups import group_machines, kubectl_script, quartile_levels, score_table
from tasks.advice.params import MachineGroupParams
from tasks.errors import BadInput

ASPECTS = ("cpu", "memory", "disk")
KINDS = {"big": (4.0, 3.0, 2.0), "mid": (2.0, 3.0, 1.0), "small": (1.0, 1.0, 1.0)}
Z95 = 1.959964


def fleet(sizes, noise=0.02, seed=0, *, kinds=KINDS, interval=None):
    """Rows of scores, and the kind of each machine by its name."""
    rng, rows, kind_of = np.random.default_rng(seed), [], {}
    names = [kind for kind, size in sizes.items() for _ in range(size)]
    for number, kind in enumerate(names):
        kind_of[f"n{number:02d}"] = kind
        for aspect, level in zip(ASPECTS, kinds[kind], strict=True):
            score = level * np.exp(noise * rng.standard_normal())
            rows.append({"machine": f"n{number:02d}", "aspect": aspect, "score": score})
    frame = pd.DataFrame(rows)
    if interval is not None:
        frame = frame.assign(low=frame.score * np.exp(-Z95 * interval), high=frame.score * np.exp(Z95 * interval))
    return frame, kind_of


def partition(grouping):
    return {frozenset(group.machines) for group in grouping.groups}


def truth(kind_of):
    return {frozenset(name for name in kind_of if kind_of[name] == kind) for kind in kind_of.values()}


@pytest.mark.parametrize("interval", [None, 0.02])
def test_three_kinds_are_three_groups_with_and_without_intervals(interval):
    rows, kind_of = fleet({"big": 5, "mid": 5, "small": 5}, interval=interval)
    grouping = group_machines(rows)
    assert partition(grouping) == truth(kind_of)
    assert not grouping.cannot_be_told_apart
    assert [group.name for group in grouping.groups] == ["A", "B", "C"]
    assert grouping.groups[0].machines == ("n00", "n01", "n02", "n03", "n04")  # the best first
    assert grouping.sentence.startswith("15 machines are of 3 kinds: A (n00, n01, n02, n03 and n04), B (")
    assert grouping.last_split_p < 0.01 < grouping.next_split_p
    assert grouping.certainty.startswith("2 would look like this by noise with probability 0.005 at most; ")
    assert grouping.reasons[0].endswith("times as much as B in disk") or "in cpu" in grouping.reasons[0]


def test_kinds_that_differ_in_one_aspect_alone_are_told_where_the_others_hardly_vary():
    kinds = {"base": (1.0, 1.0, 1.0), "fast": (1.3, 1.0, 1.0), "disk": (1.0, 1.0, 1.8)}
    rows, kind_of = fleet({"base": 5, "fast": 5, "disk": 5}, 0.005, kinds=kinds)
    assert partition(group_machines(rows)) == truth(kind_of)


@pytest.mark.parametrize("interval", [None, 0.03])
def test_machines_of_one_kind_are_one_group_in_nearly_every_draw(interval):
    alike = [group_machines(fleet({"mid": 10}, 0.03, seed, interval=interval)[0]) for seed in range(10)]
    assert sum(len(grouping.groups) == 1 for grouping in alike) >= 9
    assert alike[0].cannot_be_told_apart
    assert alike[0].sentence.startswith("10 machines cannot be told apart")


def test_kinds_that_differ_by_less_than_the_intervals_are_one_group():
    kinds = {"a": (1.0, 1.0, 1.0), "b": (1.05, 1.0, 1.0)}
    rows, _ = fleet({"a": 5, "b": 5}, 0.0, kinds=kinds, interval=0.10)
    assert len(group_machines(rows).groups) == 1
    rows, kind_of = fleet({"a": 5, "b": 5}, 0.0, kinds=kinds, interval=0.005)
    assert partition(group_machines(rows, MachineGroupParams(spread_ratio=0.005))) == truth(kind_of)


def test_a_difference_that_is_called_spread_is_no_reason_for_a_group():
    rows, _ = fleet({"a": 5, "b": 5}, 0.0, kinds={"a": (1.0, 1.0, 1.0), "b": (1.05, 1.0, 1.0)}, interval=0.001)
    assert len(group_machines(rows, MachineGroupParams(spread_ratio=0.05)).groups) == 1


def test_a_machine_between_two_kinds_cannot_be_told_apart_from_the_other():
    kinds = {"a": (1.0, 1.0, 1.0), "b": (1.5, 1.0, 1.0), "between": (1.23, 1.0, 1.0)}
    rows, _ = fleet({"a": 6, "b": 6, "between": 1}, 0.01, kinds=kinds, interval=0.08)
    grouping = group_machines(rows)
    assert len(grouping.groups) == 2
    assert [doubt.machine for doubt in grouping.doubts] == ["n12"]
    assert "n12 cannot be told apart from" in grouping.sentence
    assert grouping.cannot_be_told_apart


def test_the_order_of_rows_and_the_units_of_scores_do_not_matter():
    rows, _ = fleet({"big": 4, "mid": 3, "small": 2}, 0.03)
    plain = group_machines(rows)
    shuffled = group_machines(rows.sample(frac=1, random_state=1))
    other_units = group_machines(
        rows.assign(score=rows.score * rows.aspect.map({"cpu": 1e9, "memory": 1e-6, "disk": 7}))
    )
    assert partition(plain) == partition(shuffled) == partition(other_units)
    assert plain.as_json() == shuffled.as_json()
    assert plain.noise_ratios == pytest.approx(other_units.noise_ratios)


def test_executions_of_a_machine_give_its_interval():
    # log scores of n1: -.01, .01; n2: .99, 1.01: pooled variance 2e-4, standard error sqrt(2e-4 / 2) = .01
    rows = pd.DataFrame({"node": ["n1", "n1", "n2", "n2"], "aspect": "cpu", "score": np.exp([-0.01, 0.01, 0.99, 1.01])})
    table = score_table(rows)
    assert table.has_intervals
    assert table.log_scores[:, 0] == pytest.approx([0.0, 1.0])
    assert table.deviations[:, 0] == pytest.approx([0.01, 0.01])
    assert len(group_machines(rows).groups) == 2


def test_an_interval_of_a_score_becomes_its_standard_error():
    rows = pd.DataFrame({"machine": ["a", "b"], "aspect": "cpu", "score": [1.0, 2.0]})
    rows = rows.assign(low=rows.score * np.exp(-0.05 * Z95), high=rows.score * np.exp(0.05 * Z95))
    assert score_table(rows).deviations[:, 0] == pytest.approx([0.05, 0.05])


def test_two_machines_with_a_single_score_each_cannot_be_told_apart():
    rows = pd.DataFrame({"machine": ["a", "b"], "aspect": "cpu", "score": [1.0, 5.0]})
    grouping = group_machines(rows)
    assert grouping.is_noise_estimated
    assert len(grouping.groups) == 1


def test_levels_are_those_of_the_quartiles():
    # positions p (n + 1) / 100 of 1..7: 2 and 6
    assert quartile_levels([1, 2, 3, 4, 5, 6, 7]).tolist() == [0, 0, 1, 1, 1, 2, 2]
    assert quartile_levels([3.0, 3.0]).tolist() == [1, 1]


def test_groups_that_an_aspect_does_not_tell_apart_share_its_level():
    rows, _ = fleet({"big": 4, "mid": 4, "small": 4}, 0.02, interval=0.02)
    levels = [group.levels for group in group_machines(rows).groups]
    assert [at["cpu"] for at in levels] == [2, 1, 0]
    assert [at["memory"] for at in levels] == [2, 2, 0]
    assert [at["disk"] for at in levels] == [2, 0, 0]


def test_the_answer_is_plain_json_with_the_sentence_first():
    told = json.loads(json.dumps(group_machines(fleet({"big": 3, "small": 3})[0]).as_json()))
    assert next(iter(told)) == "answer"
    assert told["n_groups"] == 2
    assert told["groups"][0]["scores"]["cpu"] == pytest.approx(4.0, rel=0.05)


def test_the_script_labels_every_node_and_quotes_what_it_names():
    rows, _ = fleet({"big": 2, "small": 2}, interval=0.02)
    rows["aspect"] = rows["aspect"].replace({"memory": "memory; rm -rf $HOME", "disk": "_" + "d" * 80})
    lines = kubectl_script(group_machines(rows)).splitlines()
    assert lines[:2] == ["#!/bin/sh", "set -e"]
    words = shlex.split(lines[2])
    assert words[:5] == ["kubectl", "label", "--overwrite", "node", "n00"]
    assert words[5] == "whorl.advice/group=A"
    keys = [word.split("=")[0].split("/")[1] for word in words[5:]]
    assert "memory-rm--rf-HOME" in keys
    assert all(len(key) <= 63 and key[0].isalnum() and key[-1].isalnum() for key in keys)
    assert len(lines) == 2 + 4


def test_a_name_that_no_node_can_have_is_refused_by_the_script_alone():
    rows, _ = fleet({"big": 2, "small": 2}, interval=0.02)
    grouping = group_machines(rows.assign(machine=rows.machine.str.replace("n00", "--all")))
    with pytest.raises(BadInput, match=r"machine '--all': no Kubernetes node can have this name"):
        kubectl_script(grouping)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[rows.machine == "n00"], "scores: 1 machine; expected at least 2 machines"),
        (lambda rows: rows.iloc[1:], "machine 'n00': no score of aspect 'cpu'; expected a score of every aspect"),
        (
            lambda rows: rows.assign(score=rows.score.where(rows.index != 1, 0.0)),
            "machine 'n00', aspect 'memory': score 0",
        ),
        (lambda rows: rows.assign(score=rows.score.where(rows.index != 1, np.nan)), "expected a finite score above 0"),
        (lambda rows: rows.assign(score="fast"), "expected a finite score above 0"),
        (
            lambda rows: rows.assign(low=rows.score * 2, high=rows.score * 3),
            "a finite score above 0 inside its interval",
        ),
    ],
)
def test_scores_that_cannot_be_used_are_refused_in_one_line(change, message):
    with pytest.raises(BadInput, match=message) as caught:
        group_machines(change(fleet({"big": 2, "small": 2})[0]))
    assert "\n" not in str(caught.value)
