"""Stress where nobody knows of any: some executions of training and validation are made worse by drawn amounts.

A detector is learned from examples of both kinds, and most fleets have no labels. So a drawn share of the executions
counts as stressed, with metrics that are worse than measured by some spreads of their own node:

    m' = m · exp(-o · sign(m) · s · r · d / |c|)        o: 1 where more is better, -1 where less is

severity s of the execution, share r of the metric, spread d and centre c of the node (those of robust z-scores), d/|c|
at least a hundredth: who is steadier than that is not stressed by a change of a thousandth. As it is done before
anything is derived from results, plain detectors, trees and the network see imitations as they would see measured ones.
What is judged is never changed. Of what looks stressed already most teaches neither kind: where stress is common it
would be learned as calm. Source: Perona leaves training without labels open; this is ours."""

from dataclasses import replace
from zlib import crc32

import numpy as np
import pandas as pd

from tasks.nodes.aspects import is_stressed
from tasks.nodes.detectors.case import Case
from tasks.nodes.detectors.params import DetectorParams
from tasks.nodes.detectors.spreads import Normal
from tasks.nodes.detectors.zscore import centre_and_spread, zscore_scores
from tasks.nodes.fingerprint.judging import undisturbed
from tasks.nodes.history import History
from tasks.nodes.perona.params import ModelParams
from tasks.nodes.preprocess.fitted import Preprocessor
from tasks.nodes.tabulating import tables_of
from tasks.nodes.type_tables import Bools, Floats, TypeTable

SHARE = 0.4  # of the executions that look normal
LEAST, MOST = 1.0, 100.0  # severity in spreads of a metric, drawn evenly in logarithm
LEAST_FOLLOWED = 0.5  # a metric that reacts moves by this share of the severity at least
LEAST_REACTING = 0.2  # chance that a metric reacts: drawn for each execution, from here to 1
LEAST_SPREAD = 0.01  # of the centre
LARGEST_LOG = 3.0  # no metric is worse by more than a factor of 20
LOOKS_NORMAL = 2.0  # robust z-score of an execution up to which it may teach what is calm
LEFT = 0.1  # share of the others that do so too: what lies far off now and then is part of being calm
HASHES = 2.0**64  # of an id
NO_FACTORS = {"execution": np.empty(0, dtype=np.int64), "metric": np.empty(0, dtype=object), "factor": np.empty(0)}


def needs_imitation(case: Case, model: ModelParams) -> bool:
    """Whether no training execution is known to be stressed, in our variant, where a detector is asked for."""
    known = is_stressed(case.history.executions).to_numpy(dtype=bool) & case.is_train
    return model.variant == "ours" and model.loss.detection and not known.any()


def with_imitated_stress(case: Case, preprocessor: Preprocessor, params: DetectorParams) -> Case:
    """The case in which a share of training and validation was stressed, and the rest of them was not.

    preprocessor: of its tables. What is drawn depends on the seed and on what trains and validates, by id and type, so
    that the same is drawn again when later executions have joined. Without a table no metric gets worse."""
    executions = case.history.executions
    ids = executions["execution_id"].astype(str).to_numpy(dtype=object)
    is_calm = undisturbed(executions) & ~is_stressed(executions).to_numpy(dtype=bool)
    looks_normal = ~(zscore_scores(case, params) > LOOKS_NORMAL) | _are_drawn(ids, f"{case.seed}/kept", LEFT)
    may_be = (case.is_train | case.is_validation) & is_calm & looks_normal
    drawn = may_be & _are_drawn(ids, str(case.seed), SHARE)
    each = zip(case.tables.tables, case.normals, strict=True)
    worse = [_factors(table, drawn[table.executions], normal, ids, case.seed, params) for table, normal in each]
    factors = pd.concat(worse, ignore_index=True) if worse else pd.DataFrame(NO_FACTORS)
    is_worse = np.zeros(len(executions), dtype=bool)
    is_worse[factors["execution"].to_numpy(dtype=np.int64)] = True
    labels = pd.Series(pd.array(is_worse, dtype="boolean"), index=executions.index).where(may_be)
    history = replace(_times(case.history, factors), executions=executions.assign(is_stressed=labels))
    tables = tables_of(history, preprocessor)
    return replace(case, history=history, tables=tables, is_normal=case.is_normal & looks_normal & ~is_worse)


def spreads_lost(may_react: Bools, rng: np.random.Generator) -> Floats:
    """Spreads by which each metric gets worse, 0 for some: as may_react, (n, m). At least one of a row that has any."""
    n, shape = len(may_react), may_react.shape
    severity = np.exp(rng.uniform(np.log(LEAST), np.log(MOST), (n, 1)))
    reacts = rng.random(shape) < rng.uniform(LEAST_REACTING, 1.0, (n, 1))
    if may_react.shape[1]:
        reacts[np.arange(n), np.argmax(np.where(may_react, rng.random(shape), -1.0), axis=1)] = True
    return np.asarray(severity * np.where(reacts & may_react, rng.uniform(LEAST_FOLLOWED, 1.0, shape), 0.0))


def _are_drawn(ids: np.ndarray, stream: str, share: float) -> Bools:
    """Whether the hash of each id, (n,), is among the first share of all hashes."""
    told = np.array([f"{stream}/{one}" for one in ids], dtype=object)
    return np.asarray(pd.util.hash_array(told) < share * HASHES)


def _factors(
    table: TypeTable, is_drawn: Bools, normal: Normal, ids: np.ndarray, seed: int, params: DetectorParams
) -> pd.DataFrame:
    """One row a metric of a drawn execution that gets worse: execution, metric, factor. is_drawn: of the table's."""
    own = np.flatnonzero(is_drawn)
    own = own[np.argsort(ids[table.executions[own]], kind="stable")]  # whatever ran between does not matter
    directed = np.ones(len(table.metrics), dtype=bool) if table.is_directed is None else table.is_directed
    natural = table.natural[own]
    may_react = np.isfinite(natural) & (natural != 0) & (directed if directed.any() else ~directed)
    lost = spreads_lost(may_react, np.random.default_rng([seed, crc32(table.name.encode())]))
    centre, spread = centre_and_spread(table, normal, params)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.nan_to_num(spread[own] / np.abs(centre[own]), nan=0.0, posinf=LARGEST_LOG)
    logs = np.minimum(lost * np.maximum(relative, LEAST_SPREAD), LARGEST_LOG)
    rows, columns = np.nonzero(lost > 0)
    return pd.DataFrame(
        {
            "execution": table.executions[own[rows]],
            "metric": np.array(table.metrics, dtype=object)[columns],
            "factor": np.exp(-table.orientation[columns] * np.sign(natural[rows, columns]) * logs[rows, columns]),
        }
    )


def _times(history: History, factors: pd.DataFrame) -> History:
    """The history with some metrics multiplied. factors: execution, metric, factor, each pair once."""
    metrics = history.metrics
    keys = metrics[["execution"]].assign(metric=metrics["metric"].astype(str))
    given = keys.merge(factors, how="left", on=["execution", "metric"])["factor"].fillna(1.0).to_numpy()
    return replace(history, metrics=metrics.assign(value=metrics["value"].to_numpy(dtype=np.float64) * given))
