import json

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.identify.identification import identify_all
from tasks.workloads.identify.model import fit_model
from tasks.workloads.identify.params import OpenSetParams
from tasks.workloads.identify.saving import ARRAYS, MAIN, load_model, save_model


@pytest.fixture
def folder(case, tmp_path):
    save_model(case.model, tmp_path / "model")
    return tmp_path / "model"


def test_a_loaded_model_gives_the_same_answers(case, folder):
    runs = [*case.test, *case.strangers]
    assert identify_all(runs, load_model(folder)) == identify_all(runs, case.model)


def test_a_model_of_whitened_distances_and_equation_7_is_kept_whole(case, quick, tmp_path):
    params = quick.model_copy(update={"open_set": OpenSetParams(metric="whitened")})
    absolute = params.fingerprint.normalisation.model_copy(update={"normalisation": "absolute"})
    params = params.model_copy(
        update={"fingerprint": params.fingerprint.model_copy(update={"normalisation": absolute})}
    )
    model = fit_model(case.train, params)
    save_model(model, tmp_path)
    assert identify_all(case.test, load_model(tmp_path)) == identify_all(case.test, model)


def test_nothing_that_runs_code_is_written(folder):
    assert {file.suffix for file in folder.iterdir()} == {".json", ".parquet", ".txt"}


def test_saving_twice_writes_the_same_bytes(case, folder, tmp_path):
    save_model(case.model, tmp_path / "again")
    for file in folder.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_a_file_that_is_missing_is_named(folder):
    (folder / "trees-1.txt").unlink()
    with pytest.raises(BadInput, match=r"no model of workloads .*trees-1.txt.*train again"):
        load_model(folder)
    with pytest.raises(BadInput, match="no model of workloads"):
        load_model(folder / "elsewhere")


@pytest.mark.parametrize("name", [ARRAYS, "trees-0.txt"])
def test_a_damaged_file_is_refused_in_one_line(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(bytes(content))
    with pytest.raises(BadInput, match=f"{name} is damaged, or of another model") as error:
        load_model(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "not of the format"),
        ('{"format": "whorl.workloads.identify", "version": 99}', "version 99"),
        ('{"format": "whorl.workloads.identify", "version": 1, "files": {}}', "no model of workloads"),
    ],
)
def test_a_foreign_file_is_refused_in_one_line(folder, content, told):
    (folder / MAIN).write_text(content)
    with pytest.raises(BadInput, match=told) as error:
        load_model(folder)
    assert "\n" not in str(error.value)


def test_a_part_that_does_not_fit_the_others_is_refused(folder):
    main = json.loads((folder / MAIN).read_text())
    main["counters"] = main["counters"][1:]
    (folder / MAIN).write_text(json.dumps(main))
    with pytest.raises(BadInput, match="no model of workloads"):
        load_model(folder)


def test_numbers_are_kept_to_the_last_bit(case, folder):
    loaded = load_model(folder)
    np.testing.assert_array_equal(loaded.judge.points, case.model.judge.points)
    assert loaded.open_set.limit == case.model.open_set.limit
    assert loaded.learned_ids == case.model.learned_ids and loaded.judge.spreads == case.model.judge.spreads
