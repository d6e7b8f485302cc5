"""A trained model in its files: the same predictions after loading, and one clear line for broken files."""

import json

import numpy as np
import pytest

from tasks.errors import BadInput, NotFound
from tasks.jobs.predict.outcomes import MAIN as OUTCOMES
from tasks.jobs.predict.predicting import predict_next, predict_rows, shape_shares
from tasks.jobs.predict.predictor import MAIN, TREES
from tasks.jobs.predict.preparation import read_runs
from tasks.jobs.predict.trained import champion_of, load_trained, needed_champion

LEVELS = (0.05, 0.5, 0.95)


def quantiles(told):
    return told.quantile(np.broadcast_to(LEVELS, (told.n, len(LEVELS))))


@pytest.fixture
def trained(trained_log):
    _, found = champion_of(trained_log, "log")
    return found


@pytest.fixture
def runs(trained_log):
    return read_runs(trained_log, "log")


def test_a_model_that_was_saved_and_loaded_predicts_the_same_bits(trained, runs, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    trained.save(first)
    again = load_trained(first)
    again.save(second)
    assert {file.name: file.read_bytes() for file in first.iterdir()} == {
        file.name: file.read_bytes() for file in second.iterdir()
    }
    before, after = (predict_rows(one, runs[-50:], runs) for one in (trained, again))
    assert (quantiles(before) == quantiles(after)).all()
    assert (before.crps(runs["runtime_s"][-50:]) == after.crps(runs["runtime_s"][-50:])).all()
    for kind, shares in shape_shares(trained, predict_next(trained, runs)).items():
        assert (shares == shape_shares(again, predict_next(again, runs))[kind]).all()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (MAIN, None), (MAIN, "{"), (MAIN, "[]"), (TREES, "no trees"), (TREES, None), ("params.json", "{"),
        ("medians.parquet", ""), ("training_runs.parquet", None), ("shapes-ratio.json", "{}"),
        ("classifier-ratio.json", None), ("classifier-ratio.txt", "tree"),
    ],
)  # fmt: skip
def test_a_broken_file_is_one_line_that_says_train_again(trained_log, file, text):
    (model,) = (folder for folder in (trained_log.models / "jobs").iterdir() if folder.is_dir())
    (model / file).unlink()
    if text is not None:
        (model / file).write_text(text)
    with pytest.raises(BadInput, match=r"no trained model \(.*\); expected .*; train again$") as raised:
        load_trained(model)
    assert "\n" not in str(raised.value)
    assert str(model) in str(raised.value)


def test_a_model_of_an_earlier_format_says_so_whatever_else_has_changed(trained_log):
    (model,) = (folder for folder in (trained_log.models / "jobs").iterdir() if folder.is_dir())
    main = json.loads((model / MAIN).read_text())
    (model / MAIN).write_text(json.dumps({key: value for key, value in main.items() if key != "format"}))
    (model / OUTCOMES).write_text("{}")
    with pytest.raises(BadInput, match=r"not of format [0-9]+\); .*; train again$"):
        load_trained(model)


def test_a_source_without_a_model_says_how_to_make_one(job_log):
    warehouse = job_log([{"runtime_s": 1.0}], source="my log")
    assert champion_of(warehouse, "my log") is None
    with pytest.raises(NotFound) as raised:
        needed_champion(warehouse, "my log")
    told = "source 'my log' has no trained model yet; make one with whorl jobs train --source 'my log'"
    assert str(raised.value) == told


def test_one_job_alone_is_predicted_as_among_all(trained, runs):
    everything = predict_next(trained, runs)
    alone = predict_next(trained, runs, keys=[everything.jobs["group_key"].iloc[3]])
    assert quantiles(alone.predicted)[0] == pytest.approx(quantiles(everything.predicted)[3], rel=1e-12)
