"""What a search tries: Table II, in ours also the batches and rates that it learns with, and nothing else."""

import pytest

from tasks.nodes.perona.params import FitParams, ModelParams, SearchParams
from tasks.nodes.perona.search import space_of, with_values

TABLE_II = {
    "network.heads": {1, 3, 5},
    "network.beta": {False, True},
    "network.dropout": {0.0, 0.1, 0.2},
    "network.edge_dropout": {0.0, 0.1, 0.2},
    "network.root_weight": {False, True},
    "loss.focal_gamma": {0.5, 1.0, 2.0, 5.0},
    "loss.class_balance": {0.9, 0.99, 0.999, 0.9999},
    "fit.learning_rate": {1e-1, 1e-2, 1e-3},
    "fit.weight_decay": {1e-2, 1e-3, 1e-4},
}


def test_the_paper_searches_all_of_its_table():
    space = space_of(ModelParams(variant="paper"))
    assert {name: set(choices) for name, choices in space.items()} == TABLE_II


def test_ours_leaves_out_what_has_no_effect_there():
    assert set(TABLE_II) - set(space_of(ModelParams())) == {"network.beta", "network.root_weight"}


@pytest.mark.parametrize("n_graphs", [100, 256, 600, 1080, 100_000])
def test_ours_tries_the_batches_and_rates_that_it_learns_with_unsearched_beside_those_of_the_table(n_graphs):
    space = {name: set(choices) for name, choices in space_of(ModelParams()).items()}
    assert set(space) - set(TABLE_II) == {"fit.batch_size"}
    assert space["fit.learning_rate"] == TABLE_II["fit.learning_rate"] | {0.02}
    settled = ModelParams().settled(n_graphs).fit
    assert min(space["fit.batch_size"]) <= settled.batch_size <= max(space["fit.batch_size"])
    largest = ModelParams().settled(100_000).fit
    assert largest.batch_size in space["fit.batch_size"]
    assert any(rate == pytest.approx(largest.learning_rate) for rate in space["fit.learning_rate"])
    same = [name for name in TABLE_II if name in space and name != "fit.learning_rate"]
    assert {name: space[name] for name in same} == {name: TABLE_II[name] for name in same}


def test_what_is_fixed_in_the_table_is_the_default_of_the_papers_variant():
    params = ModelParams(variant="paper").settled(1080)
    assert (params.fit.epochs, params.network.hidden, params.fit.batch_size) == (100, 32, 16)
    search = SearchParams()
    assert (search.n_trials, search.concurrency, search.grace_epochs, search.reduction) == (100, 4, 50, 4)


def test_values_replace_parameters_and_leave_the_rest():
    params = ModelParams(fit=FitParams(batch_size=64))
    found = with_values(params, {"network.heads": 5, "fit.learning_rate": 0.1})
    assert (found.network.heads, found.fit.learning_rate, found.fit.batch_size) == (5, 0.1, 64)
    assert with_values(found, {"network.heads": 3, "fit.learning_rate": 0.0}) == params
    with pytest.raises(KeyError):
        with_values(params, {"nets.heads": 5})
    with pytest.raises(ValueError, match="extra"):
        with_values(params, {"network.arms": 5})
