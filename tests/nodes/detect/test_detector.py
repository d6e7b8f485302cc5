"""The detector: what it finds with and without labels, what changes nothing, and that it is kept as it is."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tasks.nodes.detect.detector import COLD, Linear, StressTrees, fit_detector, load_detector, save_detector
from tasks.nodes.params import DetectorParams

HEADLINE = DetectorParams(headlines={"spin": ("rate",)})


def fitted_on(drawn_case, params=HEADLINE, **told):
    """Learned from the first three quarters."""
    tables, at_h, is_stressed = drawn_case
    is_train = np.arange(len(at_h)) < len(at_h) * 3 // 4
    return fit_detector(tables, at_h, is_train, is_stressed, ~is_stressed, params, **told)


def unlabelled(tables, at_h, params=HEADLINE):
    everything = np.ones(len(at_h), dtype=bool)
    nothing = np.zeros_like(everything)
    return fit_detector(tables, at_h, everything, nothing, everything, params).score(tables, at_h).score


def test_a_linear_model_is_its_equation():
    model = Linear(np.array([1.0, 2.0]), np.array([2.0, 4.0]), np.array([3.0, -1.0]), 0.5)
    assert model.logits(np.array([[3.0, 6.0]])).tolist() == [3.0 * 1 - 1.0 * 1 + 0.5]


def test_trees_are_the_logit_of_their_mean_share():
    """Two trees: one splits at 0 into shares 0 and 1, the other is a leaf of 0.5; shares are softened by 0.01."""
    trees = StressTrees(
        feature=np.array([0, 0, 0, 0]), threshold=np.array([0.0, 0.0, 0.0, 0.0]), left=np.array([1, 1, 2, 3]),
        right=np.array([2, 1, 2, 3]), share=np.array([0.5, 0.0, 1.0, 0.5]), roots=np.array([0, 3]),
    )  # fmt: skip
    shares = np.array([0.01 + 0.98 * 0.25, 0.01 + 0.98 * 0.75])
    assert trees.logits(np.array([[-1.0], [1.0]])) == pytest.approx(np.log(shares / (1 - shares)))


def test_without_labels_a_node_made_worse_is_found_where_a_headline_shows_it(drawn):
    tables, at_h, is_worse = drawn(stressed=0.05)
    scores = unlabelled(tables, at_h)
    assert np.mean(scores[is_worse] > 0) > 0.9 and np.quantile(scores[~is_worse], 0.8) < 0
    assert roc_auc_score(is_worse, scores) > 0.99
    tables, at_h, is_worse = drawn(stressed=0.05, falls=("wait",))
    assert roc_auc_score(is_worse, unlabelled(tables, at_h)) == pytest.approx(0.5, abs=0.2)


def test_with_labels_a_dose_on_another_metric_is_found(drawn):
    case = tables, at_h, is_stressed = drawn(falls=("wait",))
    fitted = fitted_on(case)
    scores = fitted.score(tables, at_h)
    later = np.arange(len(at_h)) >= 300
    assert roc_auc_score(is_stressed[later], scores.score[later]) > 0.98
    learned = ~np.isnan(fitted.in_training)
    assert learned.sum() == 300 and roc_auc_score(is_stressed[learned], fitted.in_training[learned]) > 0.98
    assert scores.by_labels.all()


def test_what_is_learned_of_an_execution_is_by_what_the_others_taught(drawn):
    """Labels drawn at random teach nothing: of their own executions the detector would say that they are right."""
    tables, at_h, _ = drawn(stressed=0.0)
    random = np.random.default_rng(3).random(len(at_h)) < 0.3
    fitted = fitted_on((tables, at_h, random))
    learned = ~np.isnan(fitted.in_training)
    assert roc_auc_score(random[learned], fitted.in_training[learned]) < 0.6
    assert roc_auc_score(random[:300], fitted.score(tables, at_h).score[:300]) > 0.65


def test_a_cold_node_is_not_flagged_and_one_of_a_known_machine_type_is_no_cold_one(drawn):
    named = {"names": ("a", "b", "c", "new", "odd"), "machines": ("m", "m", "m", "m", "other")}
    tables, at_h, is_stressed = drawn(n=300, n_nodes=3, **named)
    [table] = tables.tables
    fitted = fit_detector(tables, at_h, np.ones(300, dtype=bool), is_stressed, ~is_stressed, HEADLINE)
    awful = np.median(table.natural[~is_stressed], axis=0) * [0.01, 100.0]
    more = replace(
        table,
        executions=np.arange(302),
        nodes=np.append(table.nodes, [3, 4]),
        natural=np.vstack([table.natural, awful, awful]),
    )
    found = fitted.score(replace(tables, tables=(more,), n_executions=302), np.arange(302.0))
    assert found.is_cold[-2:].tolist() == [False, True]
    assert found.score[-2] > 0 and found.score[-1] <= COLD


def test_a_type_that_training_did_not_have_has_no_score(drawn, tables):
    fitted = fitted_on(drawn())
    other = tables(np.ones((6, 2)), [0] * 6, name="other@1", metrics=("rate", "wait"))
    found = fitted.score(other, np.arange(6.0))
    assert np.isnan(found.score).all() and np.isnan(found.probability).all() and not found.by_labels.any()


def test_fewer_than_five_calm_executions_teach_nothing(drawn):
    tables, at_h, is_stressed = drawn(n=40)
    few = np.flatnonzero(~is_stressed)[:4]
    fitted = fit_detector(tables, at_h, np.isin(np.arange(40), few), is_stressed, ~is_stressed, HEADLINE)
    assert fitted.types == {} and np.isnan(fitted.in_training).all()


def test_later_executions_change_no_earlier_score(drawn):
    case = tables, at_h, _ = drawn()
    fitted = fitted_on(case)
    whole = fitted.score(tables, at_h).score
    early = fitted.score(tables.of_executions(np.arange(len(at_h)) < 350), at_h).score
    np.testing.assert_array_equal(early[:350], whole[:350])


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(drawn):
    case = tables, at_h, _ = drawn()
    one, same, other = (fitted_on(case, seed=seed).score(tables, at_h).score for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_renaming_and_shuffling_nodes_changes_nothing(drawn):
    tables, at_h, is_stressed = drawn(n_nodes=6)
    [table] = tables.tables
    order = np.array([3, 0, 5, 1, 4, 2])  # the new number of each
    renamed = replace(
        tables, nodes=tuple(f"other-{at}" for at in range(6)), tables=(replace(table, nodes=order[table.nodes]),)
    )
    found = [fitted_on((one, at_h, is_stressed)).score(one, at_h).score for one in (tables, renamed)]
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(unlabelled(tables, at_h), unlabelled(renamed, at_h))


def test_other_units_change_nothing(drawn):
    tables, at_h, is_stressed = drawn()
    [table] = tables.tables
    scaled = replace(tables, tables=(replace(table, natural=table.natural * [8.0, 1000.0]),))
    np.testing.assert_allclose(unlabelled(tables, at_h), unlabelled(scaled, at_h), atol=1e-9)
    plain = [fitted_on((one, at_h, is_stressed), is_plain=True).score(one, at_h).score for one in (tables, scaled)]
    np.testing.assert_allclose(*plain, atol=1e-6)
    best = [fitted_on((one, at_h, is_stressed)).score(one, at_h).score for one in (tables, scaled)]
    assert np.corrcoef(*best)[0, 1] > 0.999  # a split may fall to the other side of a value


@pytest.mark.parametrize("stressed", [0.2, 0.0])
def test_what_is_saved_and_loaded_gives_the_same_numbers_to_the_bit(drawn, tmp_path, stressed):
    case = tables, at_h, _ = drawn(stressed=stressed)
    fitted = fitted_on(case)
    save_detector(fitted, tmp_path)
    again = load_detector(tmp_path)
    assert again.is_plain == fitted.is_plain and again.types["spin@1"].knows_stress == bool(stressed)
    np.testing.assert_array_equal(again.score(tables, at_h).score, fitted.score(tables, at_h).score)
