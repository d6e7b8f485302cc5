"""Boosters out of damaged texts: one error of ours, and nothing of LightGBM's own on stderr."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.boosters import train_booster, train_boosters

IS_READ = {  # how a text is damaged, and whether LightGBM gets to see it
    "cut in a tree": False,
    "cut in the head": False,
    "cut after the trees": False,
    "a hole in a tree": True,
    "a tree lost": True,
    "a name misspelt": True,
    "whole": True,
}
LOAD = """
import os, sys
from pathlib import Path
import lightgbm
from tasks.errors import BadInput
from tasks.boosters import booster_from
real = lightgbm.basic.Booster.__init__
def speaking(self, **named):
    os.write(2, b"another thread speaks\\n")
    real(self, **named)
lightgbm.basic.Booster.__init__ = speaking
for path in sys.argv[1:]:
    try:
        booster_from(Path(path).read_text(), 2)
        print("loaded", flush=True)
    except BadInput as error:
        print(error, flush=True)
    print(end="\\0", flush=True)
    os.write(2, b"and after it\\n\\0")
"""


@pytest.fixture(scope="module")
def text():
    rng = np.random.default_rng(0)
    features = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    return train_booster(features, rng.normal(size=200), {"objective": "regression"}, 3, 0).model_to_string()


def damaged(text, how):
    """Cut within a tree, its head or what follows the trees, without the end of a tree, with a name misspelt; whole."""
    cut = text.index("leaf_value") + 20
    return {
        "cut in a tree": text[:cut],
        "cut in the head": text[: text.index("feature_infos")],
        "cut after the trees": text[: text.index("end of trees") + 40],
        "a hole in a tree": text[:cut] + text[text.index("\n", cut) :],
        "a tree lost": text[: text.index("Tree=1")] + text[text.index("Tree=2") :],
        "a name misspelt": text.replace("num_leaves=", "num_leafes="),
        "whole": text,
    }[how]


@pytest.fixture(scope="module")
def told(tmp_path_factory, text):
    """What one process writes while it reads one text after the other: stdout and stderr, by text."""
    folder = tmp_path_factory.mktemp("texts")
    files = [folder / f"{place}.txt" for place, _ in enumerate(IS_READ)]
    for how, file in zip(IS_READ, files, strict=True):
        file.write_text(damaged(text, how))
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", LOAD, *files], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr  # LightGBM may abort the process
    streams = zip(done.stdout.split("\0")[:-1], done.stderr.split("\0")[:-1], strict=True)
    return dict(zip(IS_READ, streams, strict=True))


@pytest.mark.parametrize("how", IS_READ)
def test_a_damaged_text_is_one_error_and_no_line_of_lightgbm(told, how):
    out, err = told[how]
    assert out.startswith("loaded\n" if how == "whole" else "model: no LightGBM model (")
    assert out.count("\n") == 1
    assert err == "another thread speaks\n" * IS_READ[how] + "and after it\n"


def test_a_booster_is_read_without_importing_scikit_learn_which_can_be_imported_afterwards():
    asked = "import sys; from tasks.boosters import lightgbm_alone as load; load(); print('sklearn' in sys.modules); "
    done = subprocess.run(
        [sys.executable, "-c", asked + "import sklearn.base; print(sklearn.base.__name__)"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "sklearn.base"]


def test_boosters_that_share_bins_are_those_trained_alone():
    rng = np.random.default_rng(0)
    features = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    target = features["a"].to_numpy() + rng.normal(size=300)
    asked = [
        {"objective": "quantile", "alpha": level, "bagging_fraction": 0.7, "bagging_freq": 1} for level in (0.1, 0.9)
    ]
    together = train_boosters(features, target, asked, 5, 1)
    alone = [train_booster(features, target, one, 5, 1) for one in asked]
    assert [one.model_to_string() for one in together] == [one.model_to_string() for one in alone]
    assert together[0].model_to_string() != together[1].model_to_string()
