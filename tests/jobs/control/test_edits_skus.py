"""Vertices moved between SKUs: all of them arrive, and the offer and the load go with them."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.control.asking import parse_scenario
from tasks.jobs.control.edits import apply, changed_columns
from tasks.jobs.control.edits_skus import skus_of
from tasks.jobs.control.params import WhatIfParams

NAN = np.nan


def features():
    """Four runs in order of submission: on both SKUs, on gen3 only, on gen10 only, the first of a job on both."""
    return pd.DataFrame(
        {
            "load_mean": [0.5, 0.8, 0.2, 0.4],
            "load_sd": [0.35, 0.1, 0.2, 0.3],
            "sku_load_mean_gen3": [0.8, 0.8, NAN, 0.5],
            "sku_load_mean_gen10": [0.2, NAN, 0.2, 0.3],
            "sku_load_sd_gen3": [0.1, 0.1, NAN, 0.1],
            "sku_load_sd_gen10": [0.25, NAN, 0.2, 0.15],
            "sku_free_tokens_gen3": [1.0, 0.0, NAN, 2.0],
            "sku_free_tokens_gen10": [5.0, NAN, 4.0, 3.0],
            "offered_gen3": [1.0, 1.0, 0.0, 1.0],
            "offered_gen10": [1.0, 0.0, 1.0, 1.0],
            "n_vertices_mean": [6.0, 2.0, 3.0, NAN],
            "vertices_gen3_mean": [4.0, 2.0, 0.0, NAN],
            "vertices_gen10_mean": [2.0, 0.0, 3.0, NAN],
            "vertex_share_gen3_mean": [2 / 3, 1.0, 0.0, NAN],
            "vertex_share_gen10_mean": [1 / 3, 0.0, 1.0, NAN],
        }
    )


def shifted(text="gen3:gen10", frame=None):
    return apply(parse_scenario(WhatIfParams(), shifts=[text]), features() if frame is None else frame)


def test_skus_are_those_that_features_name_in_order_of_their_numbers():
    assert skus_of(features()) == ["gen3", "gen10"]
    assert skus_of(pd.DataFrame({"n_vertices_mean": [1.0], "load_mean": [1.0]})) == []


def test_all_vertices_and_shares_of_one_sku_arrive_at_the_other_and_their_sum_stays():
    after = shifted()
    assert after["vertices_gen3_mean"].tolist()[:3] == [0, 0, 0]
    assert after["vertices_gen10_mean"].tolist()[:3] == [6, 2, 3]
    assert after["vertex_share_gen10_mean"].tolist()[:3] == pytest.approx([1, 1, 1])
    assert np.isnan(after["vertices_gen10_mean"].iloc[3])
    assert after["n_vertices_mean"].equals(features()["n_vertices_mean"])


def test_the_offer_moves_and_what_is_no_longer_offered_is_unknown_as_in_the_log():
    after = shifted()
    assert after["offered_gen3"].tolist() == [0, 0, 0, 0]
    assert after["offered_gen10"].tolist() == [1, 1, 1, 1]
    assert after[["sku_load_mean_gen3", "sku_load_sd_gen3", "sku_free_tokens_gen3"]].isna().all(axis=None)


def test_a_sku_not_offered_before_has_the_load_that_the_run_before_saw_there():
    after = shifted()
    assert after["sku_load_mean_gen10"].tolist() == [0.2, 0.2, 0.2, 0.3]
    assert after["sku_free_tokens_gen10"].tolist() == [5, 5, 4, 3]


def test_the_load_of_a_moved_run_is_that_of_the_skus_left_to_it():
    after = shifted()
    assert after["load_mean"].tolist() == pytest.approx([0.2, 0.2, 0.2, 0.3])
    assert after["load_sd"].tolist() == pytest.approx([0.25, 0.25, 0.2, 0.15])


def test_load_over_two_skus_is_pooled_over_them_and_over_time():
    frame = features().assign(offered_gen4=[1.0, 0, 0, 0], sku_load_mean_gen4=0.4, sku_load_sd_gen4=0.0)
    after = shifted("gen4:gen10", frame)
    # gen3 and gen10 are left: means 0.8 and 0.2, deviations 0.1 and 0.25
    assert after["load_mean"].iloc[0] == pytest.approx(0.5)
    assert after["load_sd"].iloc[0] == pytest.approx(np.sqrt((0.01 + 0.0625) / 2 + 0.09))


def test_a_run_with_nothing_on_the_sku_stays_as_it_was():
    pd.testing.assert_series_equal(shifted().iloc[2], features().iloc[2])


def test_newest_sku_takes_from_all_others_and_is_the_last_by_name_unless_named():
    frame = features().assign(vertices_gen4_mean=[1.0, 0, 0, NAN])
    newest = apply(parse_scenario(WhatIfParams(), scenario="newest_sku"), frame)
    assert newest["vertices_gen10_mean"].tolist()[:3] == [7, 2, 3]
    oldest = apply(parse_scenario(WhatIfParams(newest_sku="gen3"), scenario="newest_sku"), frame)
    assert oldest["vertices_gen3_mean"].tolist()[:3] == [7, 2, 3]


def test_a_shift_twice_is_a_shift_once():
    once = shifted()
    assert changed_columns(once, shifted(frame=once)) == []


def test_a_log_with_vertices_but_no_offers_moves_its_vertices():
    after = shifted(frame=features()[["vertices_gen3_mean", "vertices_gen10_mean"]])
    assert after["vertices_gen10_mean"].tolist()[:3] == [6, 2, 3]


@pytest.mark.parametrize("text", ["gen5:gen10", "gen3:gen5", "all:gen5"])
def test_an_unknown_sku_is_named_beside_those_that_there_are(text):
    with pytest.raises(BadInput, match=r"the log has no SKU 'gen5'; expected one of gen3, gen10"):
        shifted(text)
