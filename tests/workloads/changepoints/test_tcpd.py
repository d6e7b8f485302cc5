"""Annotated series (TCPD), where WHORL_DATASETS has them: read, scored as published, ours against the defaults."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from tasks.errors import BadInput, NotFound
from tasks.workloads.changepoints.comparison import by_setting, paired_difference, score, table_of
from tasks.workloads.changepoints.evaluate_tcpd import compare, report
from tasks.workloads.changepoints.params import ChangePointParams
from tasks.workloads.changepoints.plain import PLAIN
from tasks.workloads.changepoints.published_defaults import binary_segmentation
from tasks.workloads.changepoints.scores import covering_of
from tasks.workloads.changepoints.tcpd import AnnotatedSeries, read_annotated

# (F1, covering) of nothing found, F1 of default BOCPD, (F1, covering) of default binary segmentation; as published
PUBLISHED = {
    "brent_spot": ((0.3146, 0.2658), 0.5208, (0.4834, 0.6268)),
    "businv": ((0.5882, 0.4609), 0.2703, (0.3704, 0.5616)),
    "centralia": ((0.7629, 0.6747), 0.9091, (0.9091, 0.5636)),
    "gdp_argentina": ((0.8235, 0.7371), 0.9474, (0.8889, 0.6675)),
    "gdp_croatia": ((0.8235, 0.7083), 1.0000, (0.5833, 0.6054)),
    "homeruns": ((0.6592, 0.5107), 0.7286, (0.8119, 0.6826)),
    "jfk_passengers": ((0.7234, 0.6298), 0.4368, (0.7755, 0.8393)),
    "nile": ((0.8235, 0.7581), 1.0000, (1.0000, 0.8801)),
    "ozone": ((0.7234, 0.5737), 0.6496, (0.6496, 0.6001)),
    "quality_control_1": ((0.6667, 0.5031), 0.8000, (1.0000, 0.9924)),
    "quality_control_2": ((0.7500, 0.6383), 1.0000, (1.0000, 0.9223)),
    "quality_control_3": ((0.6667, 0.5003), 1.0000, (1.0000, 0.9956)),
    "rail_lines": ((0.5366, 0.4282), 0.8462, (0.8462, 0.7864)),
    "seatbelts": ((0.6207, 0.5284), 0.5833, (0.6829, 0.7969)),
}


@pytest.fixture(scope="module")
def series() -> list[AnnotatedSeries]:
    folder = Path(os.environ.get("WHORL_DATASETS", "-")) / "tcpd"
    if not folder.is_dir():
        pytest.skip("needs tcpd in the folder WHORL_DATASETS")
    return [one for one in read_annotated(folder) if one.name in PUBLISHED]


def test_finding_nothing_scores_as_published(series):
    scores = score(lambda _: [], series)
    assert scores == pytest.approx(np.array([PUBLISHED[one.name][0] for one in series]), abs=6e-5)


def test_default_binary_segmentation_scores_as_published(series):
    for one in series:
        found = binary_segmentation(one.values[:, 0])
        f1, _ = score(lambda _, found=found: found, [one])[0]
        assert f1 == pytest.approx(PUBLISHED[one.name][2][0], abs=6e-5), one.name
        # R counts from 1 and names the last sample of a segment: the published points lie one sample too early
        early = covering_of(one.annotations, [index - 1 for index in found], len(one.values))
        assert early == pytest.approx(PUBLISHED[one.name][2][1], abs=6e-5), one.name


def test_default_bocpd_scores_as_published_but_where_the_package_finds_a_change_less(series):
    scores = score(by_setting(PLAIN), series)[:, 0]
    published = np.array([PUBLISHED[one.name][1] for one in series])
    assert [one.name for one, gap in zip(series, np.abs(scores - published), strict=True) if gap > 6e-5] == [
        "quality_control_1"
    ]


def test_the_default_beats_both_published_defaults_in_f1_and_covering(series):
    ours = score(by_setting(ChangePointParams()), series)
    bocpd = score(by_setting(PLAIN), series)
    binseg = score(lambda values: binary_segmentation(values[:, 0]), series)
    for rival in (bocpd, binseg):
        assert (ours.mean(axis=0) > rival.mean(axis=0)).all()
        assert paired_difference(ours[:, 0], rival[:, 0], np.random.default_rng(0)).low > 0


@pytest.mark.slow
def test_ours_reaches_the_tuned_published_method(series, capsys):
    scores = compare(series)
    with capsys.disabled():
        print("\n" + report(scores, [one.name for one in series]))
    f1, covering = scores["ours"].mean(axis=0)
    assert f1 > 0.880
    assert covering > 0.789


def write_series(folder: Path, content: object, marks: object) -> Path:
    (folder / "series").mkdir()
    (folder / "series" / "one.json").write_text(json.dumps(content))
    (folder / "annotations.json").write_text(json.dumps(marks))
    return folder


def test_missing_samples_and_several_counters_are_read(tmp_path):
    content = {"name": "one", "series": [{"raw": [1, None, 3]}, {"raw": [4, 5, 6]}]}
    (found,) = read_annotated(write_series(tmp_path, content, {"one": {"7": [2], "8": []}}))
    assert found.annotations == ((2,), ())
    assert found.values == pytest.approx(np.array([[1, 4], [np.nan, 5], [3, 6]]), nan_ok=True)


def test_a_series_that_nobody_annotated_is_left_out(tmp_path):
    assert read_annotated(write_series(tmp_path, {"name": "one", "series": [{"raw": [1]}]}, {})) == []


@pytest.mark.parametrize("content", [{"name": "one"}, {"name": "one", "series": [{"raw": ["x"]}]}, [], {"series": 3}])
def test_a_file_that_is_no_series_is_named(tmp_path, content):
    with pytest.raises(BadInput, match=r"one\.json"):
        read_annotated(write_series(tmp_path, content, {"one": {"7": [2]}}))


def test_a_folder_without_annotations_is_named(tmp_path):
    with pytest.raises(NotFound, match="annotations"):
        read_annotated(tmp_path)


def test_a_paired_difference_has_no_spread_where_all_series_differ_alike():
    found = paired_difference(np.array([0.7, 0.9]), np.array([0.5, 0.7]), np.random.default_rng(0))
    assert (found.mean, found.low, found.high) == pytest.approx((0.2, 0.2, 0.2))


def test_the_table_has_a_row_a_series_and_the_mean():
    table = table_of(["a", "b"], {"ours": np.array([[1.0, 0.5], [0.5, 0.5]])})
    assert table.splitlines()[2:] == ["| a | 1.000, 0.500 |", "| b | 0.500, 0.500 |", "| mean | 0.750, 0.500 |"]
