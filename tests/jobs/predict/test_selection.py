"""Feature selection: noise, copies and constants go, with a reason; what tells shapes apart stays."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.predict.classifier_params import SelectionParams
from tasks.jobs.predict.selection import select_features

STRICT = SelectionParams(noise_quantile=0.9, min_features=1)


def case(n_jobs: int = 120, n_runs: int = 10) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Three shapes by job: `load` varies by run, `size` by job, both tell; `noise` and `job_noise` do not."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(n_jobs), n_runs)
    labels = rng.integers(0, 3, n_jobs)
    frame = pd.DataFrame(
        {
            "load": labels[groups] + rng.normal(0, 0.7, len(groups)),
            "size": (np.where(labels == 1, 2.0, -1.0) + rng.normal(0, 0.7, n_jobs))[groups],
            "noise": rng.normal(0, 1, len(groups)),
            "job_noise": rng.normal(0, 1, n_jobs)[groups],
        }
    )
    return frame, labels[groups], groups


def test_noise_goes_and_what_tells_shapes_apart_stays():
    frame, labels, groups = case()
    found = select_features(frame, labels, groups, STRICT)
    assert set(found.kept) == {"load", "size"}
    assert found.table["reason"].to_dict() == {"load": "kept", "size": "kept", "noise": "noise", "job_noise": "noise"}
    assert found.table.loc["noise", "because"].startswith("not above")
    assert list(found.kept) == list(found.table.loc[list(found.kept), "importance"].sort_values(ascending=False).index)


@pytest.mark.parametrize("copy", [lambda x: x, lambda x: -3 * x + 1, np.exp])
def test_a_copy_of_a_feature_goes_and_names_the_one_it_follows(copy):
    frame, labels, groups = case()
    found = select_features(frame.assign(copy=copy(frame["load"])), labels, groups, STRICT)
    assert len({"load", "copy"} & set(found.kept)) == 1
    left = "copy" if "load" in found.kept else "load"
    row = found.table.loc[left]
    assert (row["reason"], row["because"]) == ("correlated", "load" if left == "copy" else "copy")
    assert abs(row["correlation"]) == pytest.approx(1)
    assert "size" in found.kept


def test_features_that_rise_together_a_little_both_stay():
    frame, labels, groups = case()
    rng = np.random.default_rng(4)
    loose = frame.assign(like_load=frame["load"] + rng.normal(0, 0.7, len(frame)))
    assert {"load", "like_load"} <= set(select_features(loose, labels, groups, STRICT).kept)
    tight = STRICT.model_copy(update={"max_correlation": 0.5})
    assert len({"load", "like_load"} & set(select_features(loose, labels, groups, tight).kept)) == 1


def test_a_constant_goes_and_one_that_is_missing_with_the_shape_stays():
    frame, labels, groups = case()
    odd = frame.assign(constant=2.0, empty=np.nan, told=np.where(labels == 2, np.nan, 7.0))
    found = select_features(odd, labels, groups, STRICT)
    assert "told" in found.kept
    assert found.table.loc[["constant", "empty"], "reason"].tolist() == ["constant", "constant"]


def test_a_scale_of_a_feature_does_not_matter():
    frame, labels, groups = case()
    scaled = frame.assign(load=frame["load"] * 2.0**40, size=frame["size"] / 1024)
    one, other = (select_features(f, labels, groups, STRICT) for f in (frame, scaled))
    assert one.kept == other.kept
    assert one.table["importance"].to_numpy() == pytest.approx(other.table["importance"].to_numpy(), rel=1e-6)


def test_some_features_stay_however_little_they_tell():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(60), 5)
    frame = pd.DataFrame(rng.normal(0, 1, (300, 8)), columns=list("abcdefgh"))
    labels = rng.integers(0, 2, 60)[groups]
    params = SelectionParams(noise_quantile=1, min_features=3)
    assert len(select_features(frame, labels, groups, params).kept) >= 3


def test_the_same_seed_gives_the_same_features_and_unlabelled_rows_do_not_count():
    frame, labels, groups = case()
    one = select_features(frame, labels, groups, STRICT)
    longer = pd.concat([frame, frame * 100], ignore_index=True)
    other = select_features(longer, np.r_[labels, np.full(len(labels), -1)], np.r_[groups, groups], STRICT)
    pd.testing.assert_frame_equal(one.table, other.table)


def test_of_many_rows_a_sample_is_looked_at():
    frame, labels, groups = case()
    params = STRICT.model_copy(update={"max_rows": 600})
    assert set(select_features(frame, labels, groups, params).kept) == {"load", "size"}


def test_with_one_shape_or_one_job_every_feature_that_varies_stays():
    frame, labels, groups = case()
    one_shape = select_features(frame.assign(constant=1.0), np.zeros(len(frame), dtype=int), groups, STRICT)
    assert set(one_shape.kept) == set(frame)
    assert len(select_features(frame, labels, np.zeros(len(frame)), STRICT).kept) >= 1


def test_a_single_feature_stays():
    frame, labels, groups = case()
    assert select_features(frame[["noise"]], labels, groups, STRICT).kept == ("noise",)


def test_rows_without_labels_or_features_are_refused_in_one_line():
    frame, labels, groups = case()
    with pytest.raises(BadInput, match="training rows: 0 rows with a label, 4 features; expected at least one of each"):
        select_features(frame, np.full(len(labels), -1), groups, STRICT)
    with pytest.raises(BadInput, match="1200 rows with a label, 0 features"):
        select_features(frame[[]], labels, groups, STRICT)
