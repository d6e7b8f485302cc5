"""All that is said of an execution: of values beyond all bounds, and by what is learned once."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from tasks.nodes.detectors.evidence import evidence_of, n_evidence
from tasks.nodes.detectors.node_rows import rows_of_nodes
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.detectors.zscore import z_scores, zscore_scores

PARAMS = DetectorParams(trees=10)


def with_value(case, value, row=-1):
    """The case with one value of its last execution replaced, in its natural unit."""
    tables = list(case.tables.tables)
    natural = tables[0].natural.copy()
    natural[row, 0] = value
    tables[0] = replace(tables[0], natural=natural)
    return replace(case, tables=replace(case.tables, tables=tuple(tables)))


@pytest.mark.parametrize("value", [1e300, -1e300])
def test_a_huge_value_of_a_metric_that_never_varied_is_cut_without_a_warning(campaign, value):
    """Its spread is rounding: the deviation is beyond the largest number, and was told as an overflow."""
    case = campaign(nodes=2, runs=20, types=1, stressed=0.0)
    table = case.tables.tables[0]
    constant = replace(table, natural=np.ones_like(table.natural))
    case = with_value(replace(case, tables=replace(case.tables, tables=(constant,))), value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        z = z_scores(case.tables.tables[0], case.normals[0], PARAMS)
        found = zscore_scores(case, PARAMS)
        said = evidence_of(case, PARAMS, node_metrics=True)
    assert np.isinf(z[-1, 0]) and (z[:-1] == 0).all()
    assert found[-1] > 10 and (found[:-1] == 0).all()
    assert not np.isinf(said).any() and said[-1, 0] == found[-1]


def test_what_is_normal_is_learned_anew_of_other_executions(campaign):
    """It is learned once for a case; a case of which other executions are normal must not go on with that."""
    case = campaign(nodes=2, runs=20, types=2, quality={})
    first = case.normals
    assert case.normals is first
    fewer = replace(case, is_normal=case.is_normal & (np.arange(len(case.is_normal)) >= 20))
    assert fewer.normals[0].n.sum() < first[0].n.sum()
    assert not np.array_equal(fewer.normals[0].centre, first[0].centre)


def test_each_execution_has_as_many_numbers_as_are_promised(campaign):
    case = campaign(nodes=2, runs=10, types=2)
    assert evidence_of(case, PARAMS, node_metrics=False).shape == (len(case.is_train), n_evidence())


def test_rows_are_gathered_by_node_in_their_order():
    assert [rows.tolist() for rows in rows_of_nodes(np.array([2, 0, 2, 5, 0]))] == [[1, 4], [0, 2], [3]]
    assert rows_of_nodes(np.array([], dtype=np.int64)) == []
