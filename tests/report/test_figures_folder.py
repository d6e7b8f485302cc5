"""Figures in a folder of somebody: a page that holds all of them, an image of each that there is, nothing half done."""

from functools import partial

import numpy as np
import pytest

from tasks.report.figures_folder import Asked, write_figures
from tasks.report.shapes_figures import bins_figure
from tasks.report.whatif_figures import migration_figure
from tasks.report.whatif_migration import MigrationMap

HOSTILE = "<script>alert('x')</script> <img src=x> $x$"
ASKED = Asked(HOSTILE, HOSTILE, HOSTILE, HOSTILE, {"What it says": [HOSTILE], "Nothing": []})


@pytest.fixture
def written(tmp_path):
    moves = migration_figure(MigrationMap(np.array([[5, 1], [0, 4]]), HOSTILE), "moves")
    return write_figures(tmp_path / "new" / "folder", "a page", [moves, bins_figure(None, "ratio")], ASKED)


def test_a_page_and_an_image_of_each_figure_that_there_is_are_written(written):
    page, image = written
    assert sorted(page.parent.iterdir()) == sorted(written)
    assert image.name == "moves.png"
    assert image.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_page_asks_nobody_and_takes_nothing_as_markup(written, tags_of, words_of):
    page = written[0].read_text()
    tags = tags_of(page)
    assert tags.open == []
    assert tags.names.isdisjoint({"script", "img"})
    assert [address for address in tags.addresses if not address.startswith(("#", "data:"))] == []
    words = words_of(page)
    assert "n = 10 runs, 10.0 % moved" in words
    assert "Numbers of bins were not compared" in words
    assert "What it says" in words
    assert "Nothing" not in words


def test_a_figure_that_fails_leaves_no_page_and_no_draft(tmp_path):
    figure = migration_figure(MigrationMap(np.array([[5, 1], [0, 4]]), "x"), "moves")

    def fail(width_in):
        raise RuntimeError("it cannot be drawn")

    with pytest.raises(RuntimeError):
        write_figures(tmp_path, "page", [figure.__class__(**{**vars(figure), "draw": partial(fail)})], ASKED)
    assert list(tmp_path.iterdir()) == []
