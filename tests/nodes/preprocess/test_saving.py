import json
import re

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.nodes.preprocess.fitting import fit, load_preprocessor, save_preprocessor, transform
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.synthetic import synthetic_history


@pytest.mark.parametrize("params", [PreprocessParams(), PreprocessParams(variant="paper"), PreprocessParams(clip_at=7)])
def test_a_loaded_preprocessor_gives_the_same_numbers_to_the_last_bit(tmp_path, params) -> None:
    history, new = synthetic_history(runs=15), synthetic_history(runs=15, seed=1, types=7)
    preprocessor = fit(history, params)
    save_preprocessor(preprocessor, tmp_path / "folder" / "preprocessor.json")
    loaded = load_preprocessor(tmp_path / "folder" / "preprocessor.json")
    assert loaded == preprocessor
    np.testing.assert_array_equal(transform(loaded, new).scaled, transform(preprocessor, new).scaled)


def test_a_preprocessor_of_nothing_can_be_saved(tmp_path) -> None:
    preprocessor = fit(synthetic_history(runs=0), PreprocessParams())
    save_preprocessor(preprocessor, tmp_path / "p.json")
    assert load_preprocessor(tmp_path / "p.json") == preprocessor


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "FileNotFoundError"),
        ("{", "JSONDecodeError"),
        ("[]", "not of the format"),
        ('{"format": "whorl.nodes.preprocess", "version": 2}', "version 2 of the format, this whorl reads 1"),
        ('{"format": "whorl.nodes.preprocess", "version": 1}', "ValidationError"),
    ],
)
def test_a_file_that_is_missing_damaged_or_foreign_is_refused_in_one_line(tmp_path, text, problem) -> None:
    file = tmp_path / "p.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadInput, match=re.escape(problem)) as refused:
        load_preprocessor(file)
    assert "\n" not in str(refused.value) and str(file) in str(refused.value)


def test_a_value_of_the_wrong_kind_is_refused(tmp_path) -> None:
    save_preprocessor(fit(synthetic_history(runs=3), PreprocessParams()), tmp_path / "p.json")
    main = json.loads((tmp_path / "p.json").read_text())
    main["metrics"][0]["orientation"]["sign"] = 3
    (tmp_path / "p.json").write_text(json.dumps(main))
    with pytest.raises(BadInput, match="ValidationError"):
        load_preprocessor(tmp_path / "p.json")
