"""Values worked out by hand from Perona, III-B (Scheinert et al., IEEE BigData 2022), and from what ours differs in."""

import numpy as np
import pytest

from tasks.nodes.preprocess.fitting import learn_scale, scaled, softly_clipped
from tasks.nodes.preprocess.selection import ValueSpread, rule_of, spread_of
from tasks.nodes.preprocess.unification import conversion_of


def spread(*values: float) -> ValueSpread:
    found = spread_of(np.array(values))
    assert found is not None
    return found


def z(values, x, *, sign=1, is_paper=False):
    """The scaled value of x, and what stands for a missing one."""
    values = np.array(values, dtype=float)
    scale = learn_scale(values, spread(*values), sign, is_paper=is_paper)
    return scaled(np.array([x, scale.fill], dtype=float), sign, scale).tolist()


def test_unification_tells_decimal_from_binary_and_bits_from_bytes() -> None:
    """100 MB/s are 100,000,000 B/s; 100 MiB/s 104,857,600; 100 Mbit/s 12,500,000."""
    sizes = [100 * conversion_of(unit).factor for unit in ("MB/s", "MiB/s", "Mbit/s")]
    assert sizes == [100_000_000, 104_857_600, 12_500_000]


def test_a_cost_of_two_seconds_a_gigabyte_is_two_billionths_of_a_second_a_byte() -> None:
    """And not the 500 MB/s that the authors' code makes of it."""
    found = conversion_of("sec/GB")
    assert (2 * found.factor, found.base) == (pytest.approx(2e-9), "s/B")


def test_selection_by_the_robust_coefficient_of_variation() -> None:
    """100, 101, …, 120: the 5 % and 95 % quantiles are 101 and 119, so (18 / 3.28971) / 110."""
    assert spread(*np.arange(100.0, 121.0)).dispersion == pytest.approx(18 / 3.28970725 / 110)


def test_selection_where_the_median_is_nothing() -> None:
    """0 (nine times) and 5 (twice): the quantiles are 0 and 5, so 5 / 3.28971, over 5."""
    assert spread(*[0.0] * 9, 5.0, 5.0).dispersion == pytest.approx(1 / 3.28970725)


def test_standard_deviation_and_distinct_values_as_the_paper_selects_by() -> None:
    """1, 1, 2, 4: mean 2, squares 1 + 1 + 0 + 4 over 3; three distinct values."""
    found = spread(1, 1, 2, 4)
    assert found.deviation == pytest.approx(np.sqrt(2))
    assert (found.n_distinct, found.mean) == (3, 2)


def test_orientation_a_throughput_with_a_tail_below_is_maximised() -> None:
    """2, 8, 9, 9, 10: median 9, L = 9 - 2 = 7, R = 10 - 9 = 1."""
    assert rule_of(spread(2, 8, 9, 9, 10)) == 1


def test_orientation_a_latency_with_a_tail_above_is_minimised() -> None:
    """1, 1.1, 1.2, 5: median 1.15, L = 0.15, R = 3.85."""
    assert rule_of(spread(1, 1.1, 1.2, 5)) == -1


def test_orientation_a_tie_is_maximised_and_a_constant_has_none() -> None:
    assert rule_of(spread(1, 2, 3)) == 1
    assert rule_of(spread(4, 4, 4)) is None


def test_stress_is_what_tells_the_rule() -> None:
    """Without stress 9, 10, 12: L = 1, R = 2, minimise. One stressed value of 3: median 9.5, L = 6.5, R = 2.5."""
    assert (rule_of(spread(9, 10, 12)), rule_of(spread(9, 10, 12, 3))) == (-1, 1)


def test_the_papers_scaling_and_mirror() -> None:
    """10, 20, 30: 25 is 0.75; mirrored, 10 + 30 - 25 = 15 is 0.25. 40, never seen, is 1.5 and mirrored -0.5."""
    for x, up, down in ((25, 0.75, 0.25), (40, 1.5, -0.5)):
        assert z([10, 20, 30], x, is_paper=True)[0] == pytest.approx(up)
        assert z([10, 20, 30], x, sign=-1, is_paper=True)[0] == pytest.approx(down)


def test_the_papers_imputation_is_the_mean_of_the_oriented_column() -> None:
    """10, 10, 40: mean 20. Mirrored 40, 40, 10: mean 30, which is (30 - 10) / 30."""
    assert z([10, 10, 40], 0, is_paper=True)[1] == pytest.approx(1 / 3)
    assert z([10, 10, 40], 0, sign=-1, is_paper=True)[1] == pytest.approx(2 / 3)


def test_our_scale_of_a_metric_that_is_negative_too() -> None:
    """-2, 0, 2, 4, 6: median 2, quartiles 0 and 4: 6 lies (6 - 2) / (4 / 1.34898) = 1.34898 above."""
    assert z([-2, 0, 2, 4, 6], 6) == pytest.approx([1.3489795, 0])
    assert z([-2, 0, 2, 4, 6], 6, sign=-1) == pytest.approx([-1.3489795, 0])


def test_our_logarithmic_scale() -> None:
    """1, 2, 4, 8, 16: median 4, quartiles 2 and 8, so ln 4 / 1.34898: 16 is ln 4 above the median, 2 is ln 2 below."""
    assert z([1, 2, 4, 8, 16], 16) == pytest.approx([1.3489795, 0])
    assert z([1, 2, 4, 8, 16], 2)[0] == pytest.approx(-1.3489795 / 2)


def test_our_soft_clip() -> None:
    """From 4 to 10: 10 is 1 span beyond 4, so 4 + 6 · 1/2 = 7; -16 is 2 spans beyond, so -(4 + 6 · 2/3) = -8."""
    assert softly_clipped(np.array([3.0, 4.0, 10.0, -16.0, np.inf])) == pytest.approx([3, 4, 7, -8, 10])
