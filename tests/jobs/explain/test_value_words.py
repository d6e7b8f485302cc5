"""Values of features as people say them."""

import math

import pytest

from tasks.jobs.explain.value_words import in_words, multiple_of, size, words_of


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("input_bytes", 3.2e9, "3.2 GB"),
        ("input_bytes", 999.0, "999 B"),
        ("input_bytes", math.nan, "unknown"),
        ("input_ratio", 2.1, "2.1 ×"),
        ("requested_tokens", 6.0, "6 tokens"),
        ("requested_tokens", 1.0, "1 token"),
        ("n_vertices_mean", 1.0, "1 vertex"),
        ("n_vertices_mean", 0.0, "0 vertices"),
        ("requested_runtime_s", 90.0, "90 s"),
        ("hours_since_last", 0.5, "30 min"),
        ("load_mean", 0.823, "82.3 %"),
        ("sku_load_sd_gen4", 0.5, "50.0 %"),
        ("vertex_share_gen4_mean", 1.0, "100.0 %"),
        ("outlier_share_before", 0.05, "5.0 %"),
        ("shape_ratio_7", 4.7e-8, "< 0.1 %"),
        ("recent_shape_delta_0", 1.0, "100.0 %"),
        ("log_median_before", math.log(5400.0), "90 min"),
        ("log_ratio_mean", math.log(1.5), "1.5 ×"),
        ("last_log_ratio", 0.0, "1 ×"),
        ("ewma_log_ratio", math.log(3.0), "3 ×"),
        ("p25_p75_before", 0.4, "0.4 ×"),
        ("hour_of_day", 14.5, "14:30"),
        ("hour_of_day", 23.999, "00:00"),
        ("day_of_week", 1.0, "Tuesday"),
        ("offered_gen3", 0.0, "no"),
        ("op_WINDOW", 2.0, "2 operators"),
        ("colour", 3.0, "3"),
        ("other_bytes", 2000.0, "2 kB"),
    ],
)
def test_a_value_is_said_with_its_unit(name, value, text):
    assert in_words(name, value) == text


def test_bytes_have_decimal_prefixes_and_an_end():
    assert [size(value) for value in (0, 1e3, 1.5e6, 2e12, 3e18)] == ["0 B", "1 kB", "1.5 MB", "2 TB", "3,000 PB"]


def test_amounts_are_compared_as_multiples_and_shares_are_not():
    assert multiple_of("input_bytes", 6.0, 2.0) == pytest.approx(3.0)
    assert multiple_of("log_median_before", math.log(6.0), math.log(2.0)) == pytest.approx(3.0)
    for name in ("load_mean", "shape_ratio_7", "hour_of_day", "day_of_week", "offered_gen3", "input_ratio"):
        assert multiple_of(name, 2.0, 1.0) is None
    assert multiple_of("requested_tokens", 2.0, 0.0) is None
    assert multiple_of("requested_tokens", math.nan, 1.0) is None


def test_the_note_that_a_feature_is_a_logarithm_is_left_out_since_its_value_is_said_without():
    assert words_of("log_median_before") == "median runtime of the job before"
    assert words_of("last_log_ratio") == "runtime of the last run against the job's median"


def test_a_feature_without_words_is_said_by_its_name():
    assert words_of("moon_phase") == "moon phase"
