"""Which nodes stand out by slow executions: values worked out by hand, and rates on drawn fleets whose truth is known.

The grid of measured rates in tasks/nodes/README.md: pytest tests/nodes/ranking/test_suspicion.py -m slow -k grid -s"""

from datetime import datetime
from math import comb

import numpy as np
import pytest

from tasks.nodes.node_words import behind_words, slow_time, standing_out
from tasks.nodes.params import ScoreParams
from tasks.nodes.ranking.node_scores import learn_reference
from tasks.nodes.ranking.suspicion import (
    ALPHA,
    LEAST_SHARE,
    excess_p_values,
    slow_executions,
    slow_stretch,
    suspicious_nodes,
)

PARAMS = ScoreParams(resamples=100)
NODES, RUNS = 6, 80
ALIKE, UNSTATED = ("m",) * NODES, ("",) * NODES
SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
PLACES = ("late", "early", "middle", "scattered")
NOISES = ("normal", "student", "skewed", "correlated")


def noise(kind, variation, shape, rng):
    """Logarithms: normal, Student's t of 3, with a long tail below, or correlated by a half."""
    if kind == "student":
        return variation * rng.standard_t(3, shape) / 1.134  # as wide as a normal one between quartiles
    if kind == "skewed":
        return variation * (2 - rng.gamma(2, 1, shape)) / np.sqrt(2)
    drawn = rng.standard_normal(shape)
    if kind == "correlated":
        for at in range(1, shape[0]):
            drawn[at] = drawn[at - 1] / 2 + np.sqrt(0.75) * drawn[at]
    return variation * drawn


def bad_ones(share, place, n, rng):
    """Which of n executions are bad: (n,)."""
    k = round(share * n)
    first = {"late": n - k, "early": 0, "middle": (n - k) // 2, "scattered": 0}[place]
    found = (np.arange(n) >= first) & (np.arange(n) < first + k)
    return rng.permutation(found) if place == "scattered" else found


def rates(rng, *, loss=0.0, share=0.0, place="late", kind="normal", variation=0.05, types=ALIKE, levels=0.02, n=RUNS,
          draws=100):  # fmt: skip
    """Shares of the draws in which the sick node (the first) stands out, and in which another does.

    levels: honest differences between the levels of nodes, up or down at most."""
    sick = others = 0
    nodes = np.tile(np.arange(len(types)), n)
    for _ in range(draws):
        scores = noise(kind, variation, (n, len(types)), rng) + levels * rng.uniform(-1, 1, len(types))
        scores[:, 0] += np.log1p(-loss) * bad_ones(share, place, n, rng)
        _, is_slow = slow_executions(scores.ravel(), nodes, types)
        counts = np.bincount(nodes[is_slow], minlength=len(types))
        is_out = (excess_p_values(counts[None], np.full((1, len(types)), n)) < ALPHA) & (counts >= LEAST_SHARE * n)
        sick += is_out[0]
        others += is_out[1:].any()
    return sick / draws, others / draws


def test_the_chance_is_that_of_drawing_so_many_slow_ones():
    """4 of 4 executions of one node, none of another: 1 of the 70 ways to draw 4 of 8; Holm doubles the smallest."""
    assert excess_p_values(np.array([[4, 0]]), np.array([[4, 4]])) == pytest.approx([2 / comb(8, 4), 1.0])
    # of two types the chances of both: 3 of 3 and 2 of 2
    p = 2 * (1 / comb(6, 3)) * (1 / comb(4, 2))
    assert excess_p_values(np.array([[3, 0], [2, 0]]), np.array([[3, 3], [2, 2]])) == pytest.approx([p, 1.0])
    assert np.isnan(excess_p_values(np.array([[3]]), np.array([[9]]))).all()


def test_counts_as_chance_lets_expect_name_nobody():
    """19, 11 and 9 of 480: the chance of 19 or more of 39 at one of three nodes is 0.03, at any of them 0.1."""
    found = excess_p_values(np.array([[19, 11, 9]]), np.full((1, 3), 480))
    tail = sum(comb(39, h) * comb(1401, 480 - h) for h in range(19, 40)) / comb(1440, 480)
    assert found == pytest.approx([3 * tail, 1, 1]) and 0.05 < 3 * tail < 0.2


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        ("....", ("", -1, -1)),
        ("####", ("lasting", 0, 3)),
        ("....................####", ("lasting", 20, 23)),
        ("##########..........", ("recovered", 0, 9)),
        ("..........##########..........", ("recovered", 10, 19)),
        ("..........##########..", ("lasting", 10, 19)),  # two well ones do not say that it is over
        (".....####################", ("lasting", 5, 24)),
        ("#...#..#...#..#...#..#..", ("scattered", 0, 21)),
    ],
)
def test_how_slow_executions_lie_in_time(marks, told):
    assert slow_stretch(np.array([mark == "#" for mark in marks])) == told


def table_of(scores, table, together, **named):
    """Scores (n, nodes) as executions in time order, nodes taking turns."""
    m = scores.shape[1]
    return together(table([(at % m, float(np.exp(value))) for at, value in enumerate(scores.ravel())]), **named)


def stood(tables):
    everything = np.ones(tables.n_executions, dtype=bool)
    return suspicious_nodes(tables, learn_reference(tables, everything, PARAMS), PARAMS)


@pytest.mark.parametrize("types", [("m",) * 4, ("",) * 4])
@pytest.mark.parametrize(("place", "course", "ends"), [("late", "lasting", (32, 79)), ("early", "recovered", (0, 47))])
def test_a_node_slow_in_60_of_100_executions_is_named_with_its_time(table, together, types, place, course, ends):
    """Its median lies at the lower level, and so does that of its second, or first, half."""
    rng = np.random.default_rng(3)
    scores = 0.05 * rng.standard_normal((80, 4))
    scores[:, 1] += np.log(0.6) * bad_ones(0.6, place, 80, rng)
    found = stood(table_of(scores, table, together, nodes=("a", "b", "c", "d"), machine_types=types))
    first = found.iloc[0]
    assert (first["node"], first["n_low"], first["course"]) == ("b", 48, course)
    assert (first["first"] // 4, first["last"] // 4) == ends
    assert first["worst_ratio"] == pytest.approx(0.6, rel=0.03) and first["worst_type"] == "cpu-test"
    assert found["stands_out"].tolist() == [True, False, False, False]


def test_a_node_that_became_faster_late_was_not_slow_before_nor_is_one_that_varies_more(table, together):
    """As when a machine is exchanged for a better one: no other node of its type says what it should have done."""
    scores = 0.05 * np.random.default_rng(4).standard_normal((80, 3))
    scores[56:, 0] += np.log(1.4)
    names = ("a", "b", "c")
    found = stood(table_of(scores, table, together, nodes=names, machine_types=("x", "y", "z")))
    assert not found["stands_out"].any()
    scores = 0.05 * np.random.default_rng(4).standard_normal((80, 6))
    scores[39:, 0] += np.log(1.6)  # for half of the time, of a type whose other nodes say what it did before is usual
    assert not stood(table_of(scores, table, together, nodes=tuple("abcdef")))["stands_out"].any()
    scores[8, 0] += np.log(1.4)  # one lucky execution has not shown what it can do
    assert not stood(table_of(scores, table, together, nodes=tuple("abcdef")))["stands_out"].any()
    scores = np.random.default_rng(6).standard_normal((80, 3)) * [0.005, 0.05, 0.005]
    assert not stood(table_of(scores, table, together, nodes=names))["stands_out"].any()


def test_a_machine_type_that_is_slower_is_not_suspicious_and_a_node_below_its_peers_is(table, together):
    scores = 0.05 * np.random.default_rng(5).standard_normal((40, 6))
    scores[:, 3:] += np.log(0.7)
    names, types = tuple("abcdef"), ("m",) * 3 + ("s",) * 3
    assert not stood(table_of(scores, table, together, nodes=names, machine_types=types))["stands_out"].any()
    scores[:, 5] += np.log(0.6)  # throughout: its own executions show nothing
    found = stood(table_of(scores, table, together, nodes=names, machine_types=types))
    assert found.loc[found["stands_out"], "node"].tolist() == ["f"] and found["course"].iloc[0] == "lasting"


def test_of_one_node_and_of_few_executions_nothing_can_be_told(table, together):
    one = stood(table_of(0.05 * np.random.default_rng(7).standard_normal((30, 1)), table, together, nodes=("a",)))
    assert np.isnan(one["p_value"]).all() and not one["stands_out"].any()
    assert standing_out(one.to_dict("records"), {}) == "cannot be told: no other node to compare with"
    none = stood(table_of(np.zeros((4, 2)), table, together))
    assert standing_out(none.to_dict("records"), {}).endswith("no node ran a benchmark that counts often enough")


def test_words_name_who_stands_out_since_when_or_say_that_nobody_does():
    about = {"node": "a", "n_low": 32, "n_executions": 80, "worst_type": "cpu@1", "worst_ratio": 0.6, "p_value": 1e-9}
    about |= {"first_at": datetime(2026, 1, 3, 10), "last_at": datetime(2026, 1, 5, 9, 30)}
    now = about | {"stands_out": True, "course": "lasting"}
    assert standing_out([now], {"a": "a (emulated)"}) == (
        "a (emulated): 32 of 80 executions slow, most in cpu, there at 0.60 of what is usual; "
        "slow since 2026-01-03 10:00 UTC (p < 0.000001)"
    )
    assert standing_out([now | {"p_value": 0.0}], {}).endswith("(p < 0.000001)")
    over = about | {"course": "recovered"}
    assert slow_time(over) == "was slow from 2026-01-03 10:00 to 2026-01-05 09:30 UTC, has recovered"
    assert slow_time(about | {"course": "scattered"}) == "now and then, last 2026-01-05 09:30 UTC"
    calm = [about | {"n_low": n, "n_executions": 480, "p_value": p, "stands_out": False, "course": "scattered"}
            for n, p in ((19, 0.11), (11, 1.0), (9, 1.0))]  # fmt: skip
    counts = "19 of 480, 11 of 480, 9 of 480 executions slow (p = 0.11)"
    assert standing_out(calm, {}) == f"no difference can be told, no node stands out: {counts}"
    calm[0]["p_value"] = 0.001
    assert standing_out(calm, {}).endswith("executions slow (too few of any benchmark to matter)")


def test_a_node_that_was_always_slow_is_named_where_nobody_says_machine_types():
    rows = [
        {"node": node, "aspect": aspect, "score": score, "high": 1.02 * score, "machine_type": None}
        for aspect, cpu in (("all", 0.7), ("cpu", 0.7), ("disk", 0.9))
        for node, score in (("a", 1.0), ("b", 1.01), ("c", cpu))
    ]
    assert behind_words(rows, {"c": "c (emulated)"}).startswith("c (emulated) in cpu, at 0.70 of the median node; name")
    assert behind_words([row | {"machine_type": "m5.large"} for row in rows], {}) == ""


@pytest.mark.parametrize("place", PLACES)
def test_the_sick_node_is_named_and_no_other(place):
    """A coefficient of variation of 5 %, a loss of 30 %, from a fifth of the executions on."""
    rng = np.random.default_rng(8)
    for share in (0.2, 0.5, 0.7, 0.95):
        sick, others = rates(rng, loss=0.3, share=share, place=place, draws=40)
        assert sick >= 0.95 and others == 0, share


@pytest.mark.parametrize("kind", NOISES)
def test_without_a_sick_node_none_is_named(kind):
    rng = np.random.default_rng(9)
    for types, levels in ((ALIKE, 0.02), (UNSTATED, 0.3)):
        for n in (7, RUNS):
            assert sum(rates(rng, kind=kind, types=types, levels=levels, n=n, draws=50)) <= 0.02


@pytest.mark.slow
def test_the_grid_of_rates_is_as_the_readme_says(capsys):
    """1,000 draws a cell at a loss of 30 and 40 %, else 100; printed as the tables of tasks/nodes/README.md."""
    rng = np.random.default_rng(10)
    lines = ["| loss | bad ones | " + " | ".join(f"{share:.0%}" for share in SHARES) + " | another |"]
    for loss in (0.1, 0.2, 0.3, 0.4, 0.6):
        for place in PLACES:
            cells = [
                rates(rng, loss=loss, share=share, place=place, draws=1000 if loss in (0.3, 0.4) else 100)
                for share in SHARES
            ]
            lines.append(f"| {loss:.0%} | {place} | {_line(cells)}")
            assert max(others for _, others in cells) <= (0.01 if loss in (0.3, 0.4) else 0.03)
            assert loss < 0.3 or min(sick for sick, _ in cells[2:]) >= 0.95
    for name, asked in {
        "nobody says machine types": {"types": UNSTATED},
        "nor are levels alike, 30 % up or down": {"types": UNSTATED, "levels": 0.3},
        "variation 2 %": {"variation": 0.02},
        "variation 10 %": {"variation": 0.1},
        "Student's t of 3": {"kind": "student"},
        "a long tail below": {"kind": "skewed"},
        "correlated by 0.5": {"kind": "correlated"},
        "10 executions each": {"n": 10},
    }.items():
        for place in PLACES:
            cells = [rates(rng, loss=0.3, share=share, place=place, draws=100, **asked) for share in SHARES]
            lines.append(f"| {name} | {place} | {_line(cells)}")
        healthy = sum(rates(rng, draws=1000, **asked))
        lines.append(f"| {name} | none is sick | {healthy:.1%} |")
        assert healthy <= 0.01
    healthy = sum(rates(rng, draws=1000))
    assert healthy <= 0.01
    with capsys.disabled():
        print("", *lines, f"none is sick: {healthy:.1%}", sep="\n")


def _line(cells):
    return " | ".join(f"{100 * sick:.0f}" for sick, _ in cells) + f" | {max(others for _, others in cells):.1%} |"
