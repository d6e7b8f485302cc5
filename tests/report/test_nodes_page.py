"""The page about nodes, from tables of drawn executions. What is made of them is made once, and no test changes it."""

import re
import shutil

import pytest

from tasks.errors import NotFound
from tasks.nodes import answers
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.ranking.params import ScoreParams
from tasks.report.nodes_artifact import nodes_artifact
from tasks.report.nodes_data import fetch_nodes_data
from tasks.report.nodes_figures import ranking_figure, reruns_figure
from tasks.report.nodes_page import nodes_text, render_nodes
from tasks.report.nodes_params import NodesReportParams
from tasks.report.style import NARROW_IN, WIDE_IN
from tasks.warehouse.place import Warehouse

QUICK = ScoreParams(resamples=100)


@pytest.fixture(scope="module")
def ranked(tmp_path_factory, nodes_home):
    """The source `log`, preprocessed and ranked."""
    home = tmp_path_factory.mktemp("ranked") / "home"
    shutil.copytree(nodes_home, home)
    warehouse = Warehouse(home=home, memory_mb=256, threads=1)
    answers.preprocess(warehouse, "log", PreprocessParams(), QUICK, "")
    answers.rank(warehouse, "log", QUICK, "")
    return warehouse


@pytest.fixture(scope="module")
def data(ranked):
    """What the page of `log` shows."""
    return fetch_nodes_data(ranked, "log", NodesReportParams())


@pytest.fixture(scope="module")
def page(data):
    """The page of `log`."""
    return nodes_text(data)


def test_the_page_is_one_file_that_fetches_nothing_and_leaves_no_tag_open(page, tags_of):
    tags = tags_of(page)
    assert tags.open == []
    assert [address for address in tags.addresses if not address.startswith(("data:", "#"))] == []


def test_drawn_executions_are_called_simulated(page, words_of):
    assert "Simulated: these executions were drawn, not measured." in words_of(page)


def test_the_page_shows_ranking_decisions_and_repeatability(page, words_of):
    words = words_of(page)
    for title in (
        "How good each node is",
        "Scores by aspect",
        "Nodes by slow executions",
        "How much a rerun differs",
        "Metrics: kept or dropped, and why",
    ):
        assert title in words
    assert "the paper recorded 153 and kept 54" in words
    assert "dropped: a setting or a version, not a result" in words


def test_without_answers_the_page_says_which_commands_give_them(nodes_log, words_of):
    words = words_of(render_nodes(nodes_log, "log").read_text())
    assert "whorl nodes rank --source log" in words
    assert "whorl nodes preprocess --source log" in words
    assert "360" in words


def test_the_same_tables_give_the_same_page(ranked, page):
    params = NodesReportParams()
    assert nodes_text(fetch_nodes_data(ranked, "log", params), params) == page


def test_a_source_without_executions_is_told(nodes_log):
    with pytest.raises(NotFound, match="has no executions of benchmarks"):
        render_nodes(nodes_log, "nothing")


@pytest.mark.parametrize("width_in", [WIDE_IN, NARROW_IN])
def test_every_figure_fits_its_width_and_names_all_nodes(data, width_in):
    for figure in (ranking_figure(data.ranking), reruns_figure(data.reruns)):
        drawn = figure.draw(width_in)
        assert drawn.get_figwidth() == pytest.approx(width_in)
    words = " ".join(
        text.get_text() for axes in ranking_figure(data.ranking).draw(width_in).axes for text in axes.texts
    )
    assert all(f"node-{at}" in words for at in (1, 2, 3))


def test_the_figure_of_the_ranking_shows_the_best_first_in_each_aspect(data):
    for axes in ranking_figure(data.ranking).draw(WIDE_IN).axes:
        scores = [float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "o"]
        assert scores == sorted(scores, reverse=True)


def test_a_node_without_repetitions_has_a_score_and_no_interval(data):
    scores = data.scores.assign(low=float("nan"), high=float("nan"))
    from tasks.report.nodes_ranking import RankedNodes, draw_ranking

    assert draw_ranking(RankedNodes(scores), WIDE_IN) is not None
    text = nodes_text(type(data)(**{**vars(data), "scores": scores}))
    assert not re.search(r"\bnan\b", text)


def test_the_artifact_shows_its_figures_below_the_size_that_prefect_can_show(ranked):
    text = nodes_artifact(ranked, "log")
    assert text.count("data:image/png;base64,") == 2


def test_the_page_ranks_as_the_ranking_does_and_shows_what_tools_say_in_common(data, words_of):
    """Three nodes of one machine type, in the order of the shared component, which is not that of the scores."""
    is_all = data.scores["aspect"] == "all"
    own = data.scores.assign(machine_type="m", shared=float("nan"), shared_place=float("nan"))
    own.loc[is_all, "shared"], own.loc[is_all, "shared_place"] = [1.5, 0.2, -0.7], [1.0, 2.0, 3.0]
    own.loc[is_all, "score"] = sorted(own.loc[is_all, "score"])
    own.loc[is_all, "rank"], own.loc[is_all, "is_tied"] = [1, 2, 3], False
    page = nodes_text(type(data)(**{**vars(data), "scores": own}))
    table = page[page.index("Scores by aspect") :]
    places = [table.index(f"<td>{node}") for node in own.loc[is_all, "node"]]
    assert places == sorted(places)
    words = words_of(page)
    assert "by what tools say in common (shared component)" in words
    assert "1.5, place 1" in words and "-0.7, place 3" in words
    assert f"Best: {own.loc[is_all, 'node'].iloc[0]}." in words


def test_nodes_that_no_interval_tells_apart_are_told_so_on_the_page(data, words_of):
    tied = data.scores.assign(rank=1, is_tied=True)
    words = words_of(nodes_text(type(data)(**{**vars(data), "scores": tied})))
    assert "no difference can be told between node-" in words
